"""A time limit: what searches have of it, and that each looks at the clock between two steps.

No test waits: clocks are counted.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.anonymize import auto, local, optimal
from halfmask.anonymize.partition import exact
from halfmask.anonymize.partition.optimum import Optimum
from halfmask.anonymize.problem import RecodingProblem
from halfmask.assessment import frontier
from halfmask.coclustering import trees
from halfmask.kernels.partition import pricing
from halfmask.metrics.cost import METRICS
from halfmask.models.requirements import statistics
from halfmask.table.hierarchies.builders import find_automatic
from halfmask.table.tuples import Tuples


class Clock:
    """A clock that stands still, or moves by a step whenever it is looked at."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step, self.looks, self.worked = 0.0, step, 0, 0.0

    def process_time(self) -> float:
        return self.worked

    def monotonic(self) -> float:
        self.looks += 1
        self.now += self.step
        return self.now


def people(rows: int = 80, columns: int = 4) -> hm.Table:
    rng = np.random.default_rng(3)
    data = {f"c{c}": rng.integers(0, 40, rows) for c in range(columns)}
    rule = {"role": "quasi", "kind": "numeric", "hierarchy": {"intervals": [5, 10, 20]}}
    return hm.read(pa.table(data), schema={"columns": dict.fromkeys(data, rule)})


def task(table: hm.Table) -> RecodingProblem:
    models = [hm.KAnonymity(3)]
    tuples, _ = statistics(Tuples.of(table), models)
    names = table.schema.quasi
    return RecodingProblem(
        tuples, [table.hierarchy(name) for name in names], models, METRICS["loss"]
    )


@pytest.mark.parametrize(
    ("limit", "cells", "left"),
    [
        (20.0, 100, 18.4),  # 8% for the door
        (20.0, 8_000 * 176, 20 - 2.816),  # what 1,408,000 cells take
        (1.0, 8_000 * 176, 0.25),  # three quarters of it at most
    ],
)
def test_the_door_keeps_its_time(monkeypatch, limit, cells, left):
    clock = Clock()
    monkeypatch.setattr(auto, "time", clock)
    counted = auto.Clock(limit, cells, 0.0, 0.0)
    assert counted.left == pytest.approx(left)
    clock.now = 0.25  # what was read before counts too
    assert counted.left == pytest.approx(max(left - 0.25, auto.NOTHING))


def test_on_a_busy_machine_the_door_keeps_more(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(auto, "time", clock)
    counted = auto.Clock(20.0, 400_000, 0.0, 0.0)
    clock.now, clock.worked = 3.0, 0.01  # waiting alone says nothing
    assert counted.left == pytest.approx(20 - 1.6 - 3)
    clock.now, clock.worked = 3.0, 1.0  # three times slower than the processor
    assert counted.left == pytest.approx(20 - 3 * 1.6 - 3)
    clock.now, clock.worked = 3.0, 6.0  # two threads at work
    assert counted.left == pytest.approx(20 - 1.6 - 3)
    clock.now, clock.worked = 3.0, 0.1
    assert counted.left == pytest.approx(20 - 15 - 3)  # three quarters at most
    clock.now = 30.0
    assert counted.left == 0.01


def test_methods_share_the_time_and_pass_on_what_they_leave(monkeypatch):
    clock, shares = Clock(), {}
    monkeypatch.setattr(auto, "time", clock)
    monkeypatch.setattr(auto, "_score", lambda found, choice: 1.0)
    uses = {"optimal": 2.0, "local": 6.0, "personal": 5.0, "mondrian": 7.0, "k-member": 5.0}

    def search(name: str, seconds: float | None) -> SimpleNamespace:
        shares[name] = seconds
        clock.now += uses[name]
        return SimpleNamespace(left_out=0, step=np.zeros(1))

    limit = auto.Clock(25 / 0.92, 1, 0.0, 0.0)  # 8% of it are the door's
    choice = auto.Choice([hm.KAnonymity(2)], None, 0.0, limit, {})
    auto.try_methods(Tuples.of(people()), choice, search)
    # 25 for five; 23 are left for four, 17 for three, 12 for two, 5 for the last.
    wanted = {"optimal": 5.0, "local": 5.75, "personal": 17 / 3, "mondrian": 6.0, "k-member": 5.0}
    assert shares == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("uses", "tried"),
    [(30.0, {"k-member": 46.0}), (20.0, {"k-member": 46.0, "mondrian": 26.0})],
)
def test_on_a_wide_table_the_first_may_take_all_the_time(monkeypatch, uses, tried):
    clock, shares = Clock(), {}
    monkeypatch.setattr(auto, "time", clock)
    monkeypatch.setattr(auto, "_score", lambda found, choice: 1.0)

    def search(name: str, seconds: float | None) -> SimpleNamespace:
        shares[name] = seconds
        clock.now += uses
        return SimpleNamespace(left_out=0, step=np.zeros(1))

    limit = auto.Clock(50.0, 1, 0.0, 0.0)
    choice = auto.Choice([hm.KAnonymity(2)], None, 0.0, limit, {})
    _, seen = auto.try_methods(Tuples.of(people(columns=65)), choice, search)
    assert shares == pytest.approx(tried)  # cuts begin only with as much as the first took
    reasons = {one.method: one.reason or "" for one in seen}
    assert "as mondrian does" in reasons["personal"]
    assert (reasons["mondrian"] == "no time was left") == ("mondrian" not in tried)


def test_without_a_limit_a_wide_table_tries_the_same_in_another_order():
    table, models = people(columns=65), [hm.KAnonymity(2)]
    assert auto.suitable_methods(table, models, "loss") == ["k-member", "mondrian"]
    assert auto.suitable_methods(table, models, "dbil") == ["k-member", "personal", "mondrian"]
    both = [hm.anonymize(table, *models, method=name).loss for name in ("personal", "mondrian")]
    assert both[0] == both[1]
    large, limit = people(40_000, 65), auto.Clock(20.0, 1, 0.0, 0.0)
    assert auto.suitable_methods(large, models, "loss") == ["mondrian"]
    # In blocks, between which the clock is looked at, its size is no matter.
    assert auto.suitable_methods(large, models, "loss", limit) == ["k-member"]


def test_a_large_table_in_a_hurry_is_cut_first(monkeypatch):
    """A search of levels that ends at the top keeps nothing, a division wherever it is stopped."""
    table, models = people(2_000, 30), [hm.KAnonymity(2)]
    hurry, leisure = (auto.Clock(seconds, 1, 0.0, 0.0) for seconds in (0.5, 60.0))
    assert auto.suitable_methods(table, models, "loss", hurry) == ["mondrian"]
    assert auto.suitable_methods(table, models, "loss", leisure)[0] == "local"
    assert auto.suitable_methods(table, models, "loss")[0] == "local"
    clock, shares = Clock(), {}
    monkeypatch.setattr(auto, "time", clock)
    monkeypatch.setattr(auto, "_score", lambda found, _: found.step.mean())

    def search(name: str, seconds: float | None) -> SimpleNamespace:
        shares[name] = seconds
        clock.now += seconds
        return SimpleNamespace(left_out=0, step=np.zeros(1))

    choice = auto.Choice(models, None, 0.0, hurry, {})
    auto.try_methods(Tuples.of(table), choice, search)
    assert shares == {"mondrian": pytest.approx(0.5 - 0.08 * 0.5)}  # all that the door leaves


def test_the_settings_of_a_frontier_share_one_limit(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(auto, "time", clock)
    monkeypatch.setattr(frontier, "time", clock)
    shares = []

    def divide(measure, setting, effort, seconds):
        shares.append(seconds)
        clock.now += seconds + 2.0  # reading figures looks at no clock
        return divided(measure, setting, effort, None)

    divided = frontier.divided_point
    monkeypatch.setattr(frontier, "divided_point", divide)
    ks = [hm.KAnonymity(k) for k in range(2, 10)]
    found = hm.frontier(people(), ks, methods=["mdav"], time_limit=10 / 0.92)
    # 10 for 8; 6.75 are left for 7, of which each takes 2 beside its search; 4.74 begin one more.
    assert shares == pytest.approx([1.25, 0.01, 0.01])
    assert len(found.points) == 3
    assert found.undecided == tuple(f"k = {k}; mdav" for k in range(5, 10))
    assert not found.impossible


def test_exact_divides_no_block_anew_when_time_is_up(monkeypatch):
    clock, tried = Clock(), []
    monkeypatch.setattr(exact, "time", clock)
    given = SimpleNamespace(take=lambda rows: rows)

    def optimum(rows, metric, until, known):
        tried.append(until)
        clock.now += 4.0
        return SimpleNamespace(ids=np.zeros(len(rows), dtype=np.int64))

    monkeypatch.setattr(exact, "optimum", optimum)
    ids = np.repeat(np.arange(6), 2)
    blocks = [np.arange(4), np.arange(4, 8), np.arange(8, 12)]
    found = exact._improve_blocks(given, ids, blocks, "dbil", 6.0)
    assert tried == [2.0, 5.0]  # a third of 6, half of the 2 that are left; then it is over
    assert len(set(found[8:].tolist())) == 2  # as it was


@pytest.mark.parametrize("looks", [2, 5, 20, 60, 200])
@pytest.mark.parametrize("search", ["scan", "branch", "local"])
def test_no_combination_is_evaluated_twice_between_two_looks(monkeypatch, looks, search):
    clock = Clock(step=1.0)
    for module in (optimal, local):
        monkeypatch.setattr(module, "time", clock)
    seen: list[int] = []
    evaluate = RecodingProblem.evaluate

    def counted(self, levels, *near):
        seen.append(clock.looks)
        return evaluate(self, levels, *near)

    monkeypatch.setattr(RecodingProblem, "evaluate", counted)
    problem = task(people())
    if search == "local":
        local.find_steps(problem, seed=None, time_limit=float(looks))
    else:
        getattr(optimal, search)(problem, deadline=float(looks))
    late = [look for look in seen if look > looks]
    # A search may look at its top once more when time is up, to have something to release.
    assert max(np.bincount(seen)) <= 3
    assert len(late) <= 3


def test_hierarchies_are_found_within_a_share_and_found_anew_without_limit(monkeypatch):
    given: list[float | None] = []

    def build(table, seconds=None):
        given.append(seconds)
        return table

    monkeypatch.setattr(trees, "build_automatic", build)
    table = hm.read(
        pa.table({"a": [1, 2], "b": [1, 2]}),
        schema={"columns": {n: {"role": "quasi", "hierarchy": "auto"} for n in "ab"}},
    )
    find_automatic(table, 2.0)
    find_automatic(table, 3.0)  # found once under a limit
    assert given == [2.0]
    find_automatic(table)  # what was found in haste is not kept where there is time
    find_automatic(table, 1.0)
    assert given == [2.0, None]


def test_what_is_released_when_time_is_up_keeps_its_promise():
    table = people()
    for method in ("auto", "optimal", "local", "personal", "mondrian", "mdav", "k-member"):
        release = hm.anonymize(table, hm.KAnonymity(3), method=method, seed=0, time_limit=1e-6)
        counts = (
            release.to_arrow().group_by(list(table.schema.quasi)).aggregate([([], "count_all")])
        )
        assert min(counts["count_all"].to_pylist()) >= 3
        assert release.verdicts[0].holds


def distances(size: int = 14) -> np.ndarray:
    places = np.random.default_rng(5).random((size, 2))
    return np.abs(places[:, None] - places[None]).sum(axis=2)


def test_a_walk_over_classes_that_pauses_finds_what_one_without_pauses_finds(monkeypatch):
    far = distances()
    rules = pricing.Rules.of_sizes(np.full(len(far), 3))
    prices = np.full(len(far), 0.8)
    given = (
        far,
        rules,
        prices,
        pricing.ClassSearch(pricing.DBIL, np.inf, 0.0),
        10_000,
        10_000_000,
    )
    wanted = pricing.priced_classes(*given)
    monkeypatch.setattr(pricing, "_SLICE", 1)
    found = pricing.priced_classes(*given, 1e300)
    assert wanted[4] is found[4] is True
    assert len(wanted[2]) > 10
    for one, other in zip(wanted[:3], found[:3], strict=True):
        assert np.array_equal(one, other)


def test_a_walk_over_classes_looks_at_the_clock_and_stops(monkeypatch):
    far = distances(40)
    rules = pricing.Rules.of_sizes(np.full(len(far), 8))
    clock = Clock(1.0)
    monkeypatch.setattr(pricing, "time", clock)
    prices = np.full(len(far), 50.0)  # every class qualifies: far more than can be listed
    given = (
        far,
        rules,
        prices,
        pricing.ClassSearch(pricing.WCSD, np.inf, 0.0),
        2_000_000,
        10**12,
    )
    *_, whole = pricing.priced_classes(*given, 5.0)
    assert not whole
    assert clock.looks == 5


def test_a_search_without_proof_says_so_with_its_gap():
    found = Optimum(np.zeros(4, np.int64), 8.0, 6.0)
    task = SimpleNamespace()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "repair", lambda _, ids: ids)
        division = exact._division_of(task, found, "dbil")
    assert division.gap == 2.0
    assert division.notes == (
        "Not proven optimal: the search stopped at its limit, and the optimum may be lower by 2 "
        "(25.0% of what was found).",
    )
