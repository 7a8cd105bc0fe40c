from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Concentrated, Pure
from halfmask.errors import ParameterError
from halfmask.synthesize import marginals, privbayes
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def test_a_tree_joins_all_columns_where_the_budget_allows(people, domains, make_views) -> None:
    model = marginals.learn(make_views(people, domains, 5), ordered=["age"])
    assert len(model.pairs) >= 3
    joined = {"sex"}
    for _ in domains:
        joined |= {name for pair in model.pairs if joined & set(pair) for name in pair}
    assert joined == set(domains)


def test_a_poor_budget_goes_to_single_columns(people, domains, make_views) -> None:
    vault = make_views(people, domains, "0.005")
    model = marginals.learn(vault, ordered=["age"])
    assert len(model.pairs) < 3


def test_one_column_is_enough(people, domains, make_views) -> None:
    one = Table(people.arrow.select(["job"]), Schema())
    model = marginals.learn(make_views(one, {"job": domains["job"]}))
    assert model.pairs == ()


def test_the_model_stays_as_small_as_asked(people, domains, make_views) -> None:
    model = marginals.learn(make_views(people, domains, 5), ordered=["age"], cells=60, rounds=6)
    assert model.beliefs.tree.cells <= 120


def test_no_pair_of_the_tree_makes_the_model_larger_than_asked(people, domains, make_views) -> None:
    """Columns that cannot be joined within the cells stay alone; all of the budget is used."""
    vault = make_views(people, domains, 8)
    model = marginals.learn(vault, ordered=["age"], cells=22)
    assert model.beliefs.tree.cells <= 22  # some 18 of the columns alone
    assert 1 <= len(model.pairs) < len(domains) - 1
    vault.allowance.receipt().verify()
    left = vault.allowance.remaining.parts()[0] / vault.allowance.limit.parts()[0]
    assert left < 1e-3


def test_network_families_stay_useful(people, domains, make_views) -> None:
    vault = make_views(people, domains, 1)
    loose = privbayes.learn(vault, theta=1)
    strict = privbayes.learn(make_views(people, domains, 1), theta=200)
    assert sum(len(f.parents) for f in strict.families) <= sum(
        len(f.parents) for f in loose.families
    )
    assert {f.child for f in loose.families} == set(domains)


@pytest.mark.slow
def test_adult_pairs_within_the_target(data) -> None:
    """Nine columns, epsilon = 1, delta = 1e-9: mean total variation over all pairs."""
    import halfmask as hm
    from halfmask.dp.domain import public_codes, public_domains
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

    path = data / "arx" / "adult.csv"
    names = path.read_text(encoding="utf-8").splitlines()[0].split(";")
    table = hm.read(path, dict.fromkeys(names, "other"))
    domains = {n: sorted(table.encode(n).values.to_pylist()) for n in names}
    domains["age"] = range(17, 91)
    known = public_domains(names, domains)
    made = hm.synthesize(table, "marginals", epsilon=1, delta=1e-9, domains=domains)
    both = [
        {n: public_codes(one, n, d).astype(np.int64) for n, d in known.items()}
        for one in (table, Table(made.to_arrow(), Schema()))
    ]
    distances = []
    for x, y in combinations(names, 2):
        size = len(known[x]) * len(known[y])
        p, q = (np.bincount(c[x] * len(known[y]) + c[y], minlength=size) for c in both)
        distances.append(np.abs(p / p.sum() - q / q.sum()).sum() / 2)
    assert np.mean(distances) <= 0.031


@pytest.mark.parametrize("method", ["marginals", "adaptive"])
def test_more_columns_than_are_chosen_from_in_time_cost_nothing(method) -> None:
    """Ten columns of up to 20 rows of a person are 201 wide ones; by public numbers alone."""
    names = [f"c{i}" for i in range(10)]
    table = Table(pa.table({"id": [1, 2], **{n: ["x", "y"] for n in names}}), Schema(person="id"))
    keeper = Accountant(Pure(1))
    with pytest.raises(ParameterError, match=r"201 is not possible: give at most 100: .* constant"):
        hm.synthesize(
            table,
            method,
            epsilon=1,
            accountant=keeper,
            domains={name: ["x", "y"] for name in names},
            together="person",
            rows_per_person=20,
        )
    assert keeper.remaining == Pure(1)


@pytest.mark.parametrize("apart", [True, False])
def test_no_round_looks_at_too_many_pairs(people, domains, make_views, monkeypatch, apart) -> None:
    """Pairs are dealt to rounds, with and without zeros, and still join all columns."""
    monkeypatch.setattr(marginals, "MOST_PAIRS", 2)
    vault = make_views(people, domains, 20)
    zero = {name: np.arange(vault.sizes[name]) == 0 for name in list(vault.sizes)[:2]}
    looked = []
    found = marginals.PairSelection._candidates

    def candidates(self):
        pairs = found(self)
        looked.append(len(pairs))
        return pairs

    monkeypatch.setattr(marginals.PairSelection, "_candidates", candidates)
    model = marginals.learn(vault, ordered=["age"], zeros=[] if apart else [zero])
    assert max(looked) == 2
    assert len(model.pairs) >= len(domains) - 1


def test_families_are_the_largest_useful_ones() -> None:
    """Against the definition: every set of at most four parents that fits and lies in no other."""
    random = np.random.default_rng(6)
    for _ in range(20):
        sizes = {f"c{i}": int(random.integers(1, 6)) for i in range(8)}
        known, left, most = list(sizes)[:6], list(sizes)[6:], float(random.integers(1, 300))
        wanted = set()
        for child in left:
            fits = [
                set(one)
                for degree in range(5)
                for one in combinations(known, degree)
                if np.prod([sizes[n] for n in one], dtype=float) <= most / sizes[child]
            ]
            largest = [one for one in fits if not any(one < other for other in fits)] or [set()]
            wanted |= {(frozenset(one), child) for one in largest}
        found = privbayes._candidates(known, left, sizes, most)
        assert {(frozenset(one.parents), one.child) for one in found} == wanted
        assert len(found) == len(wanted)


def test_a_network_of_many_columns_tries_a_bounded_number_of_parents(monkeypatch) -> None:
    tried = []
    monkeypatch.setattr(privbayes, "prod", lambda held: tried.append(1) or np.prod(list(held)))
    sizes = {f"c{i}": 2 for i in range(60)}
    found = privbayes._candidates(list(sizes)[:30], list(sizes)[30:], sizes, 1e9)
    assert {one.child for one in found} == set(list(sizes)[30:])
    assert all(len(one.parents) == 2 for one in found)  # 435 pairs of 30, each for 30 columns
    assert len(tried) < 20_000


def chained(columns: int, rows: int = 8000) -> tuple[Table, dict[str, object]]:
    """Columns of three values, each of which follows the one before and none else."""
    random = np.random.default_rng(7)
    found = {"c0": random.integers(0, 3, rows)}
    for i in range(1, columns):
        fresh = random.integers(0, 3, rows)
        found[f"c{i}"] = np.where(random.random(rows) < 0.6, found[f"c{i - 1}"], fresh)
    return Table(pa.table(found), Schema()), dict.fromkeys(found, range(3))


def test_the_search_ends_where_pairs_teach_no_more_than_noise(make_views) -> None:
    """A tree is all that there is: its pairs are counted once more for what is left."""
    table, known = chained(14)
    vault = make_views(table, known, "0.5", 1e-9)
    model = marginals.learn(vault)
    assert len(model.pairs) < 30  # of 37 that would be bearable
    receipt = vault.allowance.receipt()
    receipt.verify()
    counted = [entry.view for entry in receipt.entries].count(" x ".join(model.pairs[0]))
    assert counted == 2
    left = vault.allowance.remaining.parts()[0] / vault.allowance.limit.parts()[0]
    assert left < 1e-3
    neighbors = {(f"c{i}", f"c{i + 1}") for i in range(13)}
    assert set(model.pairs[:13]) == neighbors


def test_choices_that_join_columns_get_more(people, domains, make_views) -> None:
    vault = make_views(people, domains, 5)
    marginals.learn(vault, ordered=["age"], rounds=6)
    paid = [e.cost.parts()[0] for e in vault.allowance.receipt().entries if "worst" in e.view]
    assert len(paid) >= 4
    assert paid[0] == pytest.approx(marginals.JOINING * paid[3], rel=1e-6)


def test_many_columns_buy_better_choices() -> None:
    """Of hundreds of pairs one with a rare value would else be chosen by noise."""
    rho = Concentrated(Fraction(1, 90))  # about epsilon 1 with delta 1e-9
    few, many = (marginals._choices(columns, 10_000.0, rho) for columns in (9, 24))
    assert few == marginals.CHOICES
    assert 2 * few < many <= marginals.MOST_CHOICES
    assert marginals._choices(24, 1e6, rho) == marginals.CHOICES
