"""Counts over time: the tree covers every period once, one person changes little, one charge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from effort import THOROUGH, turn

import halfmask as hm
from halfmask.dp import views as dp_views
from halfmask.dp.budget import Pure, budget
from halfmask.dp.continual import ContinualCount
from halfmask.errors import BudgetExceededError, HalfmaskError, LedgerError
from halfmask.ledger import CONTINUAL, LedgerFile

MONTHS = [f"m{i:02d}" for i in range(12)]
CITIES = ["a", "b", "c"]


def table_of(rows, person="name"):
    names, months, cities = zip(*rows, strict=True)
    schema = {"columns": {"name": "identifier", "month": "quasi", "city": "quasi"}}
    if person:
        schema["table"] = {"person": person}
    return hm.read({"name": list(names), "month": list(months), "city": list(cities)}, schema)


def ledger_of(tmp_path, epsilon=1, delta=0):
    return hm.BudgetLedger.create(tmp_path / "people.ledger", budget(epsilon, delta))


def release_of(table, ledger, through, months=MONTHS, **more):
    domains = {"city": CITIES, "month": months}
    settings = {"epsilon": 1, "domains": domains, "period": "month", **more}
    return hm.tabulate(table, "city", method="dp", accountant=hm.Accountant.of(ledger),
                       through=through, **settings)  # fmt: skip


def history(rng, people, months=MONTHS, rows=1):
    """Everybody's rows are of different months: of equal ones some would be drawn at random."""
    return [
        (f"p{i}", months[month], CITIES[int(rng.integers(3))])
        for i in range(people)
        for month in rng.permutation(len(months))[: int(rng.integers(1, rows + 1))].tolist()
    ]


TREES = [(1, 2), (2, 2), (7, 2), (8, 2), (12, 3), (27, 3), (28, 3), (30, 5), (12, 12)]


@pytest.mark.parametrize(("horizon", "branching"), TREES)
def test_nodes_cover_each_period_once_and_a_period_is_in_one_node_of_a_level(horizon, branching):
    tree, ever = ContinualCount(horizon, branching), set()
    for through in range(1, horizon + 1):
        nodes = tree.nodes(through)
        ever |= set(nodes)
        covered = [p for node in nodes for p in range(*tree.span(node))]
        assert sorted(covered) == list(range(through))
        assert len(nodes) <= branching * tree.levels
    for period in range(horizon):
        for level in range(tree.levels):
            holding = [n for n in ever if n[0] == level and tree.span(n)[0] <= period
                       < tree.span(n)[1]]  # fmt: skip
            assert len(holding) <= 1
    assert max(level for level, _ in ever) < tree.levels


def test_the_tree_is_the_one_of_least_noise_by_counting_nodes():
    years = ((365, True),) if THOROUGH else ()
    for horizon, concentrated in ((12, False), (12, True), (60, False), *years):
        best = min(
            np.mean([len(ContinualCount(horizon, b).nodes(t)) for t in range(1, horizon + 1)])
            * ContinualCount(horizon, b).levels ** (1 if concentrated else 2)
            for b in range(2, horizon + 1)
        )
        chosen = ContinualCount.of(horizon, concentrated=concentrated)
        assert chosen.relative_variance(concentrated=concentrated) <= 1.02 * best
    # With rho, a year of days carries far less noise than a sum of daily counts.
    assert ContinualCount.of(365, concentrated=True).relative_variance(concentrated=True) < 40
    # And growing the horizon eightfold adds a constant, not a factor of eight.
    long = ContinualCount.of(8 * 365, concentrated=True).relative_variance(concentrated=True)
    assert long < 80


class Silent:
    """No noise, to see what one person changes."""

    variance, cost = 1.0, Pure(Fraction(1, 100))

    def apply(self, counts, sampler):
        return counts.copy()


def counted(tmp_path, rows, most, monkeypatch, branching):
    """All nodes that a series over all periods ever counts, without noise."""
    monkeypatch.setattr(dp_views, "noise", lambda cost, sensitivity: Silent())
    monkeypatch.setattr(
        ContinualCount, "of", classmethod(lambda cls, horizon, **_: cls(horizon, branching))
    )
    tmp_path.mkdir()
    ledger = ledger_of(tmp_path)
    for month in MONTHS:
        release_of(table_of(rows), ledger, month, rows_per_person=most)
    found = {}
    for record in LedgerFile(ledger.path, ledger.key).records():
        if record.kind == CONTINUAL:
            for level, place, counts, _ in record.body.get("nodes", ()):
                assert (level, place) not in found
                found[level, place] = np.array(counts)
    return found


@pytest.mark.parametrize(("most", "branching"), [(1, 2), (2, 2), (2, 4), (1, 12)])
def test_one_person_changes_all_nodes_together_by_rows_times_levels(
    tmp_path, monkeypatch, most, branching
):
    rng = np.random.default_rng(most)
    rows = history(rng, 30, rows=3)
    everybody = counted(tmp_path / "all", rows, most, monkeypatch, branching)
    levels, worst = ContinualCount(12, branching).levels, 0
    for person in turn(("p0", "p7", "p19"), most + branching):
        others = [row for row in rows if row[0] != person]
        without = counted(tmp_path / person, others, most, monkeypatch, branching)
        assert without.keys() == everybody.keys()
        moved = sum(int(np.abs(everybody[n] - without[n]).sum()) for n in everybody)
        own = len([row for row in rows if row[0] == person])
        assert moved <= min(own, most) * levels
        worst = max(worst, moved)
    assert worst > 0


def test_the_noise_is_of_the_budget_divided_by_the_levels(tmp_path, monkeypatch):
    asked = []
    real = dp_views.noise
    monkeypatch.setattr(dp_views, "noise", lambda cost, s: asked.append((cost, s)) or real(cost, s))
    monkeypatch.setattr(ContinualCount, "of", classmethod(lambda cls, h, **_: cls(h, 2)))
    rows = history(np.random.default_rng(0), 20)
    release = release_of(table_of(rows), ledger_of(tmp_path), "m04", rows_per_person=3)
    assert asked == [(Pure(Fraction(1, 4)), 3)]
    release.receipt.verify()
    assert [e.cost for e in release.receipt.entries] == [Pure(Fraction(1, 4))] * 4


def test_the_horizon_is_charged_once_and_what_was_counted_stays(tmp_path):
    ledger = ledger_of(tmp_path)
    rows = history(np.random.default_rng(1), 500)
    shown = {}
    for month in MONTHS:
        release = release_of(table_of(rows), ledger, month)
        shown[month] = release.to_arrow().to_pylist()
        assert not any(ledger.remaining().parts())
        release.receipt.verify()
    assert len(ledger.history()) == 1
    again = release_of(table_of(rows), ledger, "m05")
    assert again.to_arrow().to_pylist() == shown["m05"]
    assert any("Nothing was spent" in note for note in again.notes)
    assert again.parameters["through"] == "m05"


def test_counts_are_near_the_truth_and_nearer_than_releases_that_share_the_budget(tmp_path):
    months = [f"d{i:03d}" for i in range(64)]
    rng = np.random.default_rng(2)
    rows = history(rng, 20_000, months)
    ledger = ledger_of(tmp_path, 1, "1e-6")
    errors = []
    for place in (20, 41, 62, 63):
        release = release_of(table_of(rows), ledger, months[place], months, delta="1e-6")
        late = set(months[place + 1 :])
        for row in release.to_arrow().to_pylist()[:3]:
            true = sum(1 for _, m, c in rows if c == row["city"] and m not in late)
            errors.append(abs(row["count"] - true) / release.parameters["deviation"])
        # 64 releases that share the budget: each has 64 times the variance of one.
        alone = float(dp_views.noise(hm.dp.accountant.unit(budget(1, "1e-6")), 1).variance) * 64
        assert release.parameters["deviation"] ** 2 < alone / 2
    assert max(errors) < 7


def test_a_period_that_is_not_listed_is_counted_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(dp_views, "noise", lambda cost, sensitivity: Silent())
    rows = [("p1", "m00", "a"), ("p2", "m01", "a"), ("p3", "later", "a"), ("p4", "m11", "b")]
    release = release_of(table_of(rows), ledger_of(tmp_path), "m10")
    assert release.to_arrow()["count"].to_pylist() == [2, 0, 0, 2]


def test_who_has_more_rows_counts_with_the_first_whenever_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(dp_views, "noise", lambda cost, sensitivity: Silent())
    rows = [("p1", "m05", "b"), ("p1", "m01", "a"), ("p1", "m09", "c"), ("p2", "m02", "b")]
    ledger = ledger_of(tmp_path)
    for month, expected in (("m00", [0, 0, 0]), ("m01", [1, 0, 0]), ("m11", [1, 1, 0])):
        counts = release_of(table_of(rows), ledger, month).to_arrow()["count"].to_pylist()
        assert counts[:3] == expected


@pytest.mark.parametrize(("most", "branching"), [(1, 2), (2, 3), (1, 12)])
def test_rows_that_move_or_come_late_are_counted_no_more_often_than_is_paid_for(
    tmp_path, monkeypatch, most, branching
):
    """Everybody's rows get another period, and some people further rows, before every release."""
    monkeypatch.setattr(dp_views, "noise", lambda cost, sensitivity: Silent())
    monkeypatch.setattr(
        ContinualCount, "of", classmethod(lambda cls, horizon, **_: cls(horizon, branching))
    )

    def played(folder, left_out):
        rng, people = np.random.default_rng(5), 12
        folder.mkdir()
        ledger = ledger_of(folder)
        for month in MONTHS:
            rows = [(f"p{i}", MONTHS[rng.integers(12)], CITIES[rng.integers(3)])
                    for i in range(people) for _ in range(3)]  # fmt: skip
            rows = [row for row in rows if row[0] != left_out]
            release = release_of(table_of(rows), ledger, month, rows_per_person=most)
        assert any("also where rows move" in note for note in release.notes)
        return {(level, place): np.array(counts)
                for record in LedgerFile(ledger.path, ledger.key).records()
                for level, place, counts, _ in record.body.get("nodes", ())}  # fmt: skip

    everybody = played(tmp_path / "all", None)
    spent = 0
    for level in range(ContinualCount(12, branching).levels):
        total = sum(int(held.sum()) for (one, _), held in everybody.items() if one == level)
        assert total <= 12 * most
        spent += total
    assert spent > 5
    for person in turn(("p0", "p5"), branching):
        without = played(tmp_path / person, person)
        for level in range(ContinualCount(12, branching).levels):
            moved = sum(int(np.abs(held - without[node]).sum()) for node, held in everybody.items()
                        if node[0] == level)  # fmt: skip
            assert moved <= most


def test_the_ledger_of_counts_names_nobody(tmp_path):
    ledger = ledger_of(tmp_path)
    release_of(table_of([(f"canary-{i}", "m00", "a") for i in range(9)]), ledger, "m02")
    assert b"canary" not in ledger.path.read_bytes()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"through": "m99"}, "the last period that is over"),
        ({"through": None}, "the last period that is over"),
        ({"period": "city"}, "does not span"),
        ({"period": "nothing"}, "no column 'nothing'"),
        ({"accountant": None}, "ledger"),
        ({"accountant": hm.Accountant(Pure(1))}, "ledger"),
        ({"period": None}, "none without period"),
        ({"domains": {"city": CITIES, "month": {"low": 0, "high": 3}}}, "lists all periods"),
    ],
)
def test_what_cannot_be_counted_over_time_is_refused_and_nothing_spent(tmp_path, more, words):
    ledger = ledger_of(tmp_path)
    settings = {
        "epsilon": 1, "domains": {"city": CITIES, "month": MONTHS}, "period": "month",
        "through": "m03", "accountant": hm.Accountant.of(ledger), **more,
    }  # fmt: skip
    table = table_of(history(np.random.default_rng(0), 9))
    with pytest.raises(HalfmaskError, match=words):
        hm.tabulate(table, "city", method="dp", **settings)
    assert not ledger.history()


def test_another_budget_is_another_series_and_another_table_has_another_ledger(tmp_path):
    ledger = ledger_of(tmp_path)
    table = table_of(history(np.random.default_rng(0), 9))
    release_of(table, ledger, "m03")
    with pytest.raises(BudgetExceededError):
        release_of(table, ledger, "m03", epsilon="0.5")
    with pytest.raises(LedgerError):
        release_of(table_of(history(np.random.default_rng(0), 9), person=None), ledger, "m04")
    columns = {"name": "identifier", "month": "quasi", "city": "quasi", "more": "identifier"}
    held = {"month": ["m01"], "city": ["a"], "name": ["x"], "more": [1]}
    other = hm.read(held, {"table": {"person": "name"}, "columns": columns})
    with pytest.raises(LedgerError, match="another table"):
        release_of(other, ledger, "m04")


def test_an_own_epsilon_is_not_passed_over(tmp_path):
    rows = {"name": ["p1", "p2"], "month": ["m01", "m02"], "city": ["a", "b"], "eps": [0.1, 1.0]}
    schema = {
        "table": {"person": "name"},
        "columns": {"name": "identifier", "month": "quasi", "city": "quasi"},
        "policy": {"epsilon": "eps"},
    }
    ledger = ledger_of(tmp_path)
    with pytest.raises(HalfmaskError, match="epsilon of their own"):
        release_of(hm.read(rows, schema), ledger, "m03")
    assert not ledger.history()
