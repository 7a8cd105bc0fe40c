"""Pairs of columns in drawn rows, counted again by an oracle that halves lists."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.coclustering.stretches import stretches
from halfmask.errors import InternalError, UnsatisfiableError
from halfmask.release.doors import synthetic
from halfmask.release.doors.synthetic import require_shared_together
from halfmask.synthesize.shared_combinations import exchange_rare, shared_combinations
from halfmask.synthesize.shared_parts import shared_parts


def around(part, people, runs):
    """The nested stretches of parts around one, the longest first, by halving lists."""
    run = next(run for run in runs if part in run)
    while True:
        yield run, sum(people[p] for p in run)
        if len(run) == 1:
            return
        middle = (len(run) + 1) // 2
        run = run[:middle] if part in run[:middle] else run[middle:]


def shortest(part, people, runs, wanted):
    fitting = [run for run, held in around(part, people, runs) if held >= wanted]
    return fitting[-1] if fitting else next(around(part, people, runs))[0]


def runs_of(column, people, everybody):
    """Lists of neighboring parts: intervals between frequent values, anything else alone."""
    intervals = 0 if column.cuts is None else len(column.cuts)
    values = Counter(column.of_value.tolist())
    runs = [[]]
    for part in range(len(column.labels)):
        heavy = values[part] == 1 and people[part] >= everybody / 4
        if heavy or part >= intervals:
            runs += [[part], []]
        else:
            runs[-1].append(part)
    return runs


def oracle(columns, owner, k):
    """Per pair of columns, the pairs of parts that k people share in their stretches."""
    everybody = len(set(owner))
    held = [
        {p: len({o for o, c in zip(owner, column.codes, strict=True) if c == p})
         for p in range(len(column.labels))}
        for column in columns
    ]  # fmt: skip
    runs = [runs_of(c, people, everybody) for c, people in zip(columns, held, strict=True)]
    found = {}
    for i, j in combinations(range(len(columns)), 2):
        wanted = 2 * k * everybody
        for a in held[i]:
            for b in held[j]:
                own = [max(1, sum(held[x][p] for p in shortest(y, held[x], runs[x], sqrt(wanted))))
                       for x, y in ((i, a), (j, b))]  # fmt: skip
                left = shortest(a, held[i], runs[i], wanted / own[1])
                right = shortest(b, held[j], runs[j], wanted / own[0])
                both = zip(owner, columns[i].codes, columns[j].codes, strict=True)
                found[i, j, a, b] = len({o for o, x, y in both if x in left and y in right}) >= k
    return found


def odd_table(seed, rows=240):
    """Zeros and heavy tails, skewed names, days, missing values; columns that go together."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, rows)
    name = np.minimum(random.zipf(1.5, rows), 9) + kind
    amount = np.where(random.random(rows) < 0.2 + 0.3 * kind, 0, np.exp(random.normal(8, 2, rows)))
    day = np.datetime64("2020-01-01") + (kind * 90 + random.integers(0, 120, rows))
    return pa.table(
        {
            "name": [f"n{v}" for v in name],
            "amount": pa.array(np.round(amount, 2), mask=random.random(rows) < 0.1),
            "day": pa.array(day.astype("datetime64[D]")),
            "kind": [f"k{v}" for v in kind],
        }
    )


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_agree_with_halving_lists(seed, several):
    rows = odd_table(seed)
    table = hm.read(rows, dict.fromkeys(rows.column_names, "quasi"))
    owner = np.arange(240, dtype=np.int32) // (3 if several else 1)
    k = 5
    columns = [shared_parts(table, n, k, owner, bins=7) for n in rows.column_names]
    found = shared_combinations(columns, 2, k, owner if several else None, stretch=True)
    expected = oracle(columns, owner.tolist(), k)
    for (i, j), held in zip(found.sets, found.shared, strict=True):
        table_of = held.reshape(found.sizes[i], found.sizes[j])
        for (a, b), one in np.ndenumerate(table_of):
            assert one == expected[i, j, a, b], (i, j, a, b)


def test_frequent_values_end_stretches():
    people = np.array([10, 10, 50, 10, 10, 10])
    single = np.array([False, False, True, False, False, True])
    found = stretches(people, 5, single, 100)  # the last part is what is missing
    assert found.first.tolist() == [[0, 1, 2, 3, 4, 5], [0, 0, 2, 3, 3, 5]]
    assert found.people[-1].tolist() == [20, 20, 50, 20, 20, 10]


def exact_pairs(rows, names, owner):
    """How many people hold each pair of names."""
    return {
        pair: Counter(
            (a, b) for _, a, b in set(zip(owner, *(rows[n].to_pylist() for n in pair), strict=True))
        )
        for pair in combinations(names, 2)
    }


@pytest.mark.parametrize("seed", range(12))
def test_no_release_holds_names_or_a_frequent_number_that_few_share(seed, monkeypatch):
    monkeypatch.setattr(synthetic, "measure_synthetic", lambda *_, **__: {"likeness": {}})
    rows, several = odd_table(seed, 600), seed % 3 == 0
    owner = np.arange(600) // (2 if several else 1)
    schema = {"columns": dict.fromkeys(rows.column_names, "quasi")}
    if several:
        rows, schema["table"] = rows.append_column("who", pa.array(owner)), {"person": "who"}
    k = 8 + seed
    try:
        made = hm.synthesize(hm.read(rows, schema), method="cocluster", k=k, rows=2000).to_arrow()
    except UnsatisfiableError:
        assert seed != 1  # one that is drawn at all
        return
    sides = []
    for side in (rows, made):  # a zero is a name here; other amounts are one
        amount = side["amount"].to_pylist()
        as_name = pa.array(["none" if v is None else "zero" if v == 0 else "some" for v in amount])
        sides.append(side.append_column("sign", as_name))
    names = ["name", "kind", "sign"]
    held = exact_pairs(sides[0], names, owner.tolist())
    left = exact_pairs(sides[1], names, list(range(2000)))
    zeros = np.mean([v == 0 for v in rows["amount"].to_pylist() if v is not None])
    for pair, combinations_ in left.items():
        for one in combinations_:
            if "sign" in pair and zeros < 0.25:
                continue
            assert held[pair][one] >= k, (pair, one)


def test_exchanges_keep_how_often_each_value_is_drawn():
    rows = odd_table(4, 600)
    table = hm.read(rows, dict.fromkeys(rows.column_names, "quasi"))
    columns = [shared_parts(table, n, 10, None) for n in rows.column_names]
    shared = shared_combinations(columns, 2, 10, None, stretch=True)
    random = np.random.default_rng(0)
    drawn = np.column_stack([random.permutation(c.codes) for c in columns])
    before = [sorted(column.tolist()) for column in drawn.T]
    worst = shared.rare(drawn).any(axis=1).mean()
    exchange_rare(drawn, np.zeros(600, np.int32), shared, random)
    assert [sorted(column.tolist()) for column in drawn.T] == before
    assert shared.rare(drawn).any(axis=1).mean() < worst / 3


def test_zeros_and_a_tail_stay_where_pairs_are_protected(monkeypatch):
    monkeypatch.setattr(synthetic, "measure_synthetic", lambda *_, **__: {"likeness": {}})
    random = np.random.default_rng(7)
    kind = random.integers(0, 5, 4000)
    gain = np.where(random.random(4000) < 0.92, 0, np.exp(random.normal(8 + kind / 5, 1)))
    job = np.where(random.random(4000) < 0.05, 20, 0) + kind  # each of five rare ones: 1%
    columns = {
        "job": [f"j{v}" for v in job],
        "age": 18 + random.integers(0, 15, 4000) + 10 * kind,
        "gain": np.round(gain),
        "kind": [f"k{v}" for v in kind],
    }
    rows = pa.table(columns)
    table = hm.read(rows, dict.fromkeys(rows.column_names, "quasi"))
    made = hm.synthesize(table, method="cocluster", k=20, seed=3)
    assert made.parameters["combinations"] == 2
    drawn = made.to_arrow()
    gains = drawn["gain"].to_numpy()
    assert np.mean(gains == 0) == pytest.approx(0.92, abs=0.015)
    assert gains.mean() == pytest.approx(np.round(gain).mean(), rel=0.2)
    rare = np.mean([v >= 20 for v in (int(j[1:]) for j in drawn["job"].to_pylist())])
    assert rare == pytest.approx(0.05, abs=0.015)


def test_the_door_counts_stretches_for_itself():
    people = pa.table({"job": ["cook"] * 40 + ["smith"] * 40,
                       "pay": [*range(40), *range(60, 100)]})  # fmt: skip
    table = hm.read(people, {"job": "quasi", "pay": "quasi"})
    cuts = {"pay": [20.0, 50.0, 80.0]}
    fine = pa.table({"job": ["cook", "smith"], "pay": [5, 95]})
    require_shared_together(table, fine, 5, columns=2, cuts=cuts)
    require_shared_together(table, fine, 11, columns=2, cuts=cuts)  # of half of all, for 20 each
    crossed = pa.table({"job": ["cook"], "pay": [70]})
    for k in (5, 10):
        with pytest.raises(InternalError, match="fewer than"):
            require_shared_together(table, crossed, k, columns=2, cuts=cuts)


def test_a_column_too_fine_is_named():
    random = np.random.default_rng(0)
    kind = random.integers(0, 3, 600)
    rows = pa.table(
        {
            "kind": [f"k{v}" for v in kind],
            "sort": [
                f"s{(v + (r < 0.1)) % 3}" for v, r in zip(kind, random.random(600), strict=True)
            ],
            "town": [f"t{v}" for v in random.integers(0, 20, 600)],
        }
    )
    table = hm.read(rows, dict.fromkeys(rows.column_names, "quasi"))
    with pytest.raises(UnsatisfiableError, match="'town'"):
        hm.synthesize(table, method="cocluster", k=25, seed=0)
