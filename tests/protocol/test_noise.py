"""Personal epsilon at collection: how likely the truth is, no bias, and a budget that ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from memory_cell import MemoryCellStore
from noise import repeatable
from tests.protocol.town import NOW, Town, row

from halfmask.errors import ParameterError, UnsupportedQueryError
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import Policy, Terms, commons_from
from halfmask.protocol.contribution import (
    Participation,
    categories,
    contribution,
    debias,
    object_to_cost,
    randomize_group,
    response,
)
from halfmask.protocol.crypto import FrameKey, seat
from halfmask.protocol.messages import Contribute
from halfmask.protocol.transport import drive

COMMONS = commons_from({"tables": {"people": {"columns": {
    "b": {"role": "quasi", "values": ["x", "y", "z"]},
    "s": {"type": "integer", "role": "sensitive"},
}}}})  # fmt: skip
TEXT = "SELECT b, COUNT(*) AS n FROM people GROUP BY b GUARANTEE k = 5"
TERMS = Terms(partition=64, frame=64, room=64, noise=True)
MADE = plan_for_cells(COMMONS, TEXT, TERMS)


def test_reports_have_the_stated_distribution() -> None:
    assert categories(MADE.layout) == 4
    drawn = [randomize_group(["y"], MADE.layout, response(1.0, 4))[0] for _ in range(4000)]
    p = math.e / (math.e + 3)
    for value in ("x", "y", "z", None):
        expected = p if value == "y" else (1 - p) / 3
        spread = 5 * math.sqrt(expected * (1 - expected) / 4000)
        assert abs(drawn.count(value) / 4000 - expected) < spread


def test_estimates_have_no_bias_where_everybody_has_another_epsilon() -> None:
    layout = MADE.layout
    true = np.array([0] * 3000 + [1] * 1000)
    epsilons = np.tile([0.8, 2.0], 2000)
    reported, weights = np.empty(4000, np.int64), np.empty(4000)
    for epsilon in (0.8, 2.0):
        mechanism, own = response(epsilon, 4), epsilons == epsilon
        reported[own] = mechanism.tell(true[own], repeatable(5))
        weights[own] = mechanism.weight
    groups = np.zeros(4, layout.dtype)
    groups["key"] = [bytes([1, 0, i + 1]) for i in range(4)]
    groups["rows"] = np.bincount(reported, minlength=4)
    groups["w"] = np.bincount(reported, weights=weights, minlength=4)
    found = debias(layout, groups)
    estimate = dict(zip(found["key"].tolist(), found["rows"].tolist(), strict=True))
    assert abs(estimate[bytes([1, 0, 1])] - 3000) < 500
    assert abs(estimate[bytes([1, 0, 2])] - 1000) < 500


def test_two_fair_coins_are_estimated_by_twice_the_seen_less_half_of_all() -> None:
    # tabular-models, example 9: 60 of 100 say yes, so about 2 * 60 - 50 = 70 mean it.
    values = {"tables": {"people": {"columns": {"b": {"role": "quasi", "values": ["yes"]}}}}}
    layout = plan_for_cells(commons_from(values), TEXT, TERMS).layout
    groups = np.zeros(2, layout.dtype)
    groups["key"] = [bytes([1, 0, i + 1]) for i in range(2)]
    groups["rows"] = [60, 40]
    groups["w"] = groups["rows"] * response(math.log(3), categories(layout)).weight
    assert debias(layout, groups)["rows"].tolist() == [70, 30]


def test_cells_answer_with_noise_and_keep_to_their_budget() -> None:
    people = [{"b": "x", "s": i, "k": 1} for i in range(60)]
    town = Town(people, COMMONS, TERMS)
    for cell in town.cells:
        cell.home.demands = Policy(1, epsilon=8.0, budget=16.0)  # type: ignore[union-attr]
    for turn in range(3):
        found = town.ask(TEXT)
        assert found is not None
        shown = {r["b"]: r["n"] for r in found[0].rows.to_pylist()}
        if turn < 2:
            assert 50 <= shown["x"] <= 70
            assert "by chance" in " ".join(found[0].document["notes"])
        else:
            assert shown == {}
    home = town.cells[0].home
    assert home is not None
    assert [e.epsilon for e in home.log()] == [8.0, 8.0, 0.0]
    assert home.log()[-1].outcome == "the budget is spent"


def test_a_budget_is_added_up_exactly() -> None:
    policy = Policy(1, epsilon=0.1, budget=0.3)
    log = [
        Participation(bytes([i]), "a", "t", int(NOW), frozenset(), "contributed", 0, epsilon=0.1)
        for i in range(2)
    ]
    # 0.1 + 0.1 + 0.1 as binary numbers is more than 0.3: refused rather than rounded away.
    assert object_to_cost(log, policy, NOW) == "the budget is spent"
    assert object_to_cost(log[:1], policy, NOW) is None
    assert object_to_cost(log, policy, NOW + 31 * 86_400) is None
    assert (
        object_to_cost([replace(e, revoked=True) for e in log], policy, NOW)
        == "the budget is spent"
    )


def test_a_second_try_reports_the_same_and_costs_nothing_more() -> None:
    # Two reports drawn afresh would tell whoever opens both more than one epsilon allows.
    town = Town([{"b": "x", "s": 1, "k": 1}], COMMONS, TERMS)
    cell = town.cells[0]
    assert isinstance(cell.home, MemoryCellStore)
    cell.home.demands = Policy(1, epsilon=0.1, budget=0.1)
    question = town.question(TEXT)
    drive(town.asker.ask(question), town.send)
    key = FrameKey(cell.key.secret, question.id)
    reports = set()
    for _ in range(20):
        sent = next(cell.contribute(question, NOW))
        assert isinstance(sent, Contribute)
        reports.add(key.open(seat(question.id, sent.ticket), sent.frame))
    assert len(reports) == 1
    assert [e.epsilon for e in cell.home.log()] == [0.1]


def test_no_epsilon_means_a_dummy_of_the_same_length() -> None:
    person = {"people": row(COMMONS, {"b": "x", "s": 1})}
    without = contribution(MADE, person, Policy(1))
    given = contribution(MADE, person, Policy(1, epsilon=1.0))
    assert (without.level, without.reason, without.epsilon) == (None, "no epsilon", 0.0)
    assert (given.level, given.epsilon) == (0, 1.0)
    assert len(without.record) == len(given.record)
    outside = contribution(
        MADE, {"people": row(COMMONS, {"b": "elsewhere"})}, Policy(1, epsilon=1.0)
    )
    assert outside.level is None


@pytest.mark.parametrize("text", [
    "SELECT b, SUM(s) AS t FROM people GROUP BY b GUARANTEE k = 5",
    "SELECT COUNT(*) AS n FROM people GUARANTEE k = 5",
    "SELECT s, COUNT(*) AS n FROM people GROUP BY s GUARANTEE k = 5",
    "SELECT b, COUNT(*) AS n FROM people WHERE s > 3 GROUP BY b GUARANTEE k = 5",
    "SELECT b, COUNT(*) AS n FROM (SELECT b FROM people WHERE s > 3) t GROUP BY b GUARANTEE k = 5",
    "SELECT b, COUNT(*) AS n FROM people GROUP BY b GUARANTEE k = 5 THEN b -> del GUARANTEE k = 6",
])  # fmt: skip
def test_questions_that_noise_does_not_suit(text: str) -> None:
    with pytest.raises(UnsupportedQueryError):
        plan_for_cells(COMMONS, text, TERMS)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-13, math.inf, math.nan, 20.01])
def test_epsilons_that_cannot_be(epsilon: float) -> None:
    with pytest.raises(ParameterError):
        Policy(1, epsilon=epsilon)
