"""Personal epsilon: public levels, exact sampling, and what each person pays."""

from __future__ import annotations

from fractions import Fraction
from math import exp, expm1, log1p

import numpy as np
import pyarrow as pa
import pytest
from noise import least_epsilon, repeatable

import halfmask as hm
from halfmask.dp import personal
from halfmask.dp.accountant import Accountant, SpendingScope
from halfmask.dp.budget import Pure
from halfmask.dp.mechanisms import DiscreteLaplace
from halfmask.dp.personal import EpsilonLevels, PersonalPlan, PersonalSample, levels_of
from halfmask.errors import PrivacyError, SchemaError

LEVELS = EpsilonLevels((Fraction(1, 100), Fraction(1, 5), Fraction(1)), ("own",), (0.02, 0.18, 0.8))


def steps(epsilon: float, times: int) -> np.ndarray:
    return np.full(times, int(epsilon * 1_000_000))


def test_demands_are_rounded_down_and_odd_ones_are_out() -> None:
    stated = np.array([0.001, 0.01, 0.19, 0.2, 7, np.inf, -3, 0, np.nan])
    assert LEVELS.codes(stated).tolist() == [-1, 0, 0, 1, 2, -1, -1, -1, 3]


def test_levels_are_declared_or_the_usual_ones() -> None:
    schema = hm.Schema({}, policy={"epsilon": "own"}, epsilon_levels=(0.1, 2))
    assert levels_of(schema).epsilons == (Fraction(1, 10), Fraction(2))
    usual = levels_of(hm.Schema({}, policy={"epsilon": "own"})).epsilons
    assert (usual[0], usual[-1]) == (Fraction(1, 100), Fraction(20))
    assert levels_of(hm.Schema({"a": "quasi"})) is None


@pytest.mark.parametrize(
    ("levels", "shares"),
    [([1, 0.5], []), ([0.0001], []), ([1, 1], []), ([0.5, 1], [0.5]), ([0.5, 1], [0.5, 0.6])],
    ids=["falling", "too small", "twice", "too few shares", "more than everybody"],
)
def test_levels_that_cannot_be_are_refused(levels, shares) -> None:
    policy = {"epsilon": "own", "levels": {"epsilon": levels}, "shares": {"epsilon": shares}}
    with pytest.raises(SchemaError, match=r"levels|shares"):
        hm.Schema.from_dict({"policy": policy, "columns": {"a": "quasi"}})


def test_a_schema_file_keeps_levels_and_shares(tmp_path) -> None:
    policy = {"epsilon": "own", "levels": {"epsilon": [0.5, 1]}, "shares": {"epsilon": [0.4, 0.6]}}
    schema = hm.Schema.from_dict({"policy": policy, "columns": {"a": "quasi"}})
    (tmp_path / "a.toml").write_text(schema.to_toml())
    assert hm.Schema.read(tmp_path / "a.toml") == schema


def test_a_person_with_several_rows_stands_at_the_least_demand() -> None:
    table = hm.read(
        pa.table({"id": ["x", "x", "y", "y", "z"], "own": [1.0, 0.2, None, 1.0, None]}),
        {"table": {"person": "id"}, "columns": {}, "policy": {"epsilon": "own"}},
    )
    person, codes = LEVELS.of_people(hm.Table(table.arrow, table.schema))
    assert codes[person].tolist() == [1, 1, 2, 2, 3]


def test_people_are_kept_as_often_as_stated() -> None:
    for epsilon in (0.1, 0.5):
        stays = personal.draw_sample(steps(epsilon, 100_000), Fraction(1), repeatable(1))
        assert stays.mean() == pytest.approx(expm1(epsilon) / (exp(1) - 1), abs=0.006)
    assert personal.draw_sample(steps(1, 10), Fraction(1), repeatable(1)).all()
    assert not personal.draw_sample(steps(0, 1000), Fraction(1), repeatable(1)).any()


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_audit_every_person_has_the_own_epsilon(epsilon: float) -> None:
    """One person with this demand joins a count; the mechanism runs at epsilon 1."""

    def run(with_person: bool, times: int) -> np.ndarray:
        sampler = repeatable(2 + with_person)
        noise = DiscreteLaplace(Fraction(1)).apply(np.zeros(times, np.int64), sampler)
        stays = personal.draw_sample(steps(epsilon, times), Fraction(1), sampler)
        return (noise + (stays if with_person else 0)).astype(float)

    assert least_epsilon(run, 400_000) <= epsilon


def test_audit_fails_where_everybody_is_kept() -> None:
    def run(with_person: bool, times: int) -> np.ndarray:
        noise = DiscreteLaplace(Fraction(1)).apply(np.zeros(times, np.int64), repeatable(9))
        return (noise + with_person).astype(float)

    assert least_epsilon(run, 400_000) > 0.2


@pytest.mark.parametrize(("cost", "loss"), [(Fraction(1, 5), 0.2), (Fraction(3), 1.0)])
def test_sampling_loses_what_is_paid_and_no_more(cost: Fraction, loss: float) -> None:
    # Kept with chance p, a method at epsilon 1 loses log(1 - p + p e) of it.
    assert log1p(personal._chance(cost, Fraction(1)) * expm1(1)) == pytest.approx(loss)


def test_the_threshold_is_the_best_of_the_levels_and_rises_with_noisy_numbers() -> None:
    plan = PersonalPlan.of(LEVELS, Fraction(1), None)
    people = [20, 180, 800]
    for numbers in (1, 10, 1000):
        best = plan.threshold(people, numbers)
        assert plan.variance(best, people, numbers=numbers) == min(
            plan.variance(level, people, numbers=numbers) for level in LEVELS.epsilons
        )
    assert plan.threshold(people, 1000) == 1
    assert plan.share(Fraction(1), people) == pytest.approx(
        (20 * expm1(0.01) + 180 * expm1(0.2)) / expm1(1) / 1000 + 0.8
    )


def test_counting_levels_is_paid_by_each_of_them() -> None:
    levels = EpsilonLevels(LEVELS.epsilons, ("own",))
    plan = PersonalPlan.of(levels, Fraction(1, 2), None)
    assert plan.costs == (Fraction(1, 200), Fraction(1, 10), Fraction(1, 2))
    assert plan.counting == tuple(cost / 10 for cost in plan.costs)
    table = hm.read(
        pa.table({"own": [0.2] * 300 + [1.0] * 700}),
        {"columns": {}, "policy": {"epsilon": "own"}},
    )
    paid = dict(zip(levels.epsilons, plan.costs, strict=True))
    limits = {e: Pure(c) for e, c in zip(levels.epsilons, plan.counting, strict=True)}
    allowance = Accountant(Pure(1)).allow(Pure("0.5"), "x", scope=SpendingScope(paid, limits))
    people = PersonalSample.of(table, plan).people(allowance, repeatable(3))
    assert people[2] == pytest.approx(700, abs=150)
    assert [(e.level, e.cost) for e in allowance.entries] == [
        (level, Pure(cost)) for level, cost in zip(levels.epsilons, plan.counting, strict=True)
    ]
    allowance.receipt().verify()


def test_a_level_that_has_spent_its_demand_pays_no_more() -> None:
    keeper = Accountant(Pure(3))
    first = LEVELS.costs(Fraction(1, 5), keeper)
    assert first == (0, Fraction(1, 5), Fraction(1, 5))
    keeper.allow(
        Pure("0.2"), "a", scope=SpendingScope(dict(zip(LEVELS.epsilons, first, strict=True)))
    )
    assert keeper.left(LEVELS.epsilons) == (Fraction(1, 100), 0, Fraction(4, 5))
    assert LEVELS.costs(Fraction(1, 100), keeper) == (Fraction(1, 100), 0, Fraction(1, 100))
    keeper.allow(Pure("0.8"), "for everybody")
    assert not any(LEVELS.costs(Fraction(1, 100), keeper))
    with pytest.raises(PrivacyError, match="No public level"):
        LEVELS.require_somebody(LEVELS.costs(Fraction(1, 100), keeper))


def test_a_level_beyond_its_demand_is_refused_even_where_the_planner_forgot() -> None:
    keeper = Accountant(Pure(3))
    with pytest.raises(hm.errors.BudgetExceededError, match=r"who allow 0\.01"):
        keeper.allow(Pure(1), "a", scope=SpendingScope({Fraction(1, 100): Fraction(1, 50)}))
    assert keeper.remaining == Pure(3)
