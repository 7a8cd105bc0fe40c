"""Bounds bought with a share of epsilon: what they cover, what they cost, and what they tell."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pyarrow as pa
import pytest
from noise import least_epsilon, repeatable

import halfmask as hm
from halfmask.dp.accountant import Accountant
from halfmask.dp.bounds import OpenRange, buy_bounds
from halfmask.dp.budget import Pure, total
from halfmask.dp.mechanisms import DiscreteLaplace
from halfmask.errors import ParameterError, SchemaError

NUMBER = {"pay": OpenRange()}


def bought(values, epsilon=1, seed=1, wanted=None, rows_per_person=1):
    """The range of ``pay`` for the whole of an epsilon."""
    wanted = wanted or NUMBER
    allowance = Accountant(Pure(epsilon)).allow(
        Pure(epsilon), "a test", rows_per_person=rows_per_person
    )
    table = hm.read(pa.table({"pay": values}), {"pay": "other"})
    return buy_bounds(table, wanted, allowance, Fraction(1), repeatable(seed))["pay"]


HEAVY = {
    "lognormal": lambda r: np.exp(r.normal(8, 1.5, 20_000)),
    "pareto": lambda r: 10 * (1 + r.pareto(1.2, 20_000)),
    "both signs": lambda r: r.standard_cauchy(20_000) * 100,
    "small": lambda r: r.exponential(0.05, 20_000),
    "mostly nothing": lambda r: np.where(r.random(20_000) < 0.7, 0.0, r.exponential(500, 20_000)),
}


@pytest.mark.parametrize("draw", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_nearly_all_of_heavy_tails(draw, seed):
    values = draw(np.random.default_rng(seed))
    low, *inner, high = bought(values, Fraction(1, 5), seed).edges
    # Noise of scale 5 and a threshold near 43: at most some 60 rows of a power of two are beyond.
    assert np.mean((values >= low) & (values <= high)) > 0.97
    assert low >= -2 * np.abs(values).max()
    assert high <= 2 * values.max()
    assert 10 <= len(inner) < 20
    # The cuts follow the rows: no interval holds more than a third, but a heap at one value.
    counts = np.histogram(values[values != 0], (low, *inner, high))[0]
    assert counts.max() < len(values) / 3


def test_whole_numbers_and_dates():
    whole = bought(list(range(18, 91)) * 100, wanted={"pay": OpenRange(5, integer=True)})
    assert (whole.edges[0], whole.edges[-1], whole.integer) == (16, 128, True)
    assert all(edge.is_integer() for edge in whole.edges)
    days = np.arange("1950-06-01", "2003-02-01", dtype="datetime64[D]")
    dates = bought(pa.array(days.repeat(3)), wanted={"pay": OpenRange(date=True)})
    assert dates.labels[0].startswith("[1950-01-01, ")
    assert dates.labels[-1].endswith(" 2004-01-01]")


@pytest.mark.parametrize("seed", range(5))
def test_dates_of_people_spread_over_many_years_stand_out_by_decades(seed):
    """36 people a year are hidden by noise of scale 10, and 364 a decade are not."""
    days = np.datetime64("1950-01-01") + np.random.default_rng(seed).integers(0, 20_000, 2000)
    found = bought(pa.array(days), "0.1", seed, {"pay": OpenRange(date=True)})
    assert found.labels[0].startswith("[1950-01-01, ")
    assert found.labels[-1].endswith(("2000-01-01]", "2010-01-01]"))  # 5 years of the last decade


def test_empty_decades_rarely_widen_the_bounds():
    one = OpenRange(date=True)
    for epsilon in ("0.01", 1, 30):
        mechanism = DiscreteLaplace(Fraction(epsilon))
        counts = np.zeros((1500, len(one.grid)), np.int64)
        counts[:, 100] = 10**6
        noisy = mechanism.apply(counts, repeatable(3))
        ends = [one.outermost(row, float(mechanism.variance)) for row in noisy]
        assert np.mean([end != (100, 100) for end in ends]) < 0.03  # 1% for years and for decades


def test_where_nothing_stands_out_the_bounds_are_the_whole_grid_and_a_note_says_so():
    ages = list(range(90)) * 10
    found = bought(ages, "0.0001", wanted={"pay": OpenRange(integer=True)})
    assert (found.edges[0], found.edges[-1]) == (-(2.0**40), 2.0**40)
    days = bought(pa.array([None] * 9, pa.date32()), "0.0001", wanted={"pay": OpenRange(date=True)})
    assert days.labels[0].startswith("[1900-01-01, ")
    assert days.labels[-1].endswith(" 2100-01-01]")
    for epsilon, said in (("0.001", True), (10, False)):
        made = hm.synthesize(people(), epsilon=epsilon, domains=DOMAINS, bounds="0.1", rows=9)
        assert any("the whole grid" in note for note in made.notes) == said


def test_missing_values_are_seen_by_their_noisy_count():
    assert bought([1.5] * 500 + [None] * 500).missing
    assert not bought([1.5] * 500).missing
    assert not bought([1.5] * 500 + [None] * 500, wanted={"pay": OpenRange(missing=False)}).missing


@pytest.mark.parametrize("values", [["x", "y"], [None], [1e300, -1e300], [float("inf")], [2]])
def test_no_row_makes_it_fail(values):
    for seed in range(5):
        assert len(bought(values, seed=seed)) >= 1


def high_ends(epsilon: Fraction, seed: int):
    """Runs of the bounds of 300 people, with or without one more whose pay stands out."""
    grid = OpenRange().grid
    usual, extreme = grid.encode(pa.array([700.0, 1e9]))

    def run(with_person: bool, times: int) -> np.ndarray:
        counts = np.zeros((times, len(grid)), np.int64)
        counts[:, usual], counts[:, extreme] = 300, 3 + with_person
        mechanism = DiscreteLaplace(epsilon)
        noisy = mechanism.apply(counts, repeatable(seed + with_person))
        variance = float(mechanism.variance)
        return np.array([OpenRange().outermost(one, variance)[1] for one in noisy], float)

    return run


def test_neighbors_cannot_be_told_apart_by_more_than_epsilon():
    assert least_epsilon(high_ends(Fraction(1), 1), 8000) <= 1
    assert least_epsilon(high_ends(Fraction(2), 1), 8000) > 1  # the audit sees twice as much


def test_the_chance_of_a_bound_is_that_of_its_noise():
    """4 people reach the threshold by noise of at least the rest, which is of scale 1."""
    run = high_ends(Fraction(1), 5)
    a, cells = exp(-1), len(OpenRange().grid)
    least = next(t for t in range(99) if cells * a**t / (1 + a) <= 0.01)
    chance = a ** (least - 4) / (1 + a)
    found = np.mean(run(True, 20_000) == OpenRange().grid.encode(pa.array([1e9]))[0])
    assert abs(found - chance) < 5 * np.sqrt(chance / 20_000)


ROWS = 2000
SCHEMA = {"pay": {"role": "other", "kind": "numeric"}, "sex": "other"}
DOMAINS = {"sex": ["f", "m"]}


def people() -> hm.Table:
    random = np.random.default_rng(4)
    pay = random.gamma(3, 800, ROWS).round()
    sex = np.where(random.random(ROWS) < 0.5, "f", "m")
    return hm.read(pa.table({"pay": pay, "sex": sex}), SCHEMA)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_bounds_are_a_part_of_epsilon_and_listed(delta):
    release = hm.synthesize(people(), epsilon=1, delta=delta, domains=DOMAINS, bounds=0.2)
    entries = release.receipt.entries
    assert entries[0].view == "bounds of pay"
    assert [one.view for one in entries].count("bounds of pay") == 1
    if not delta:
        assert entries[0].cost == Pure(Fraction(1, 5))
        assert sum((one.cost.epsilon for one in entries), Fraction(0)) <= 1
    assert total((one.cost for one in entries), release.receipt.limit) <= release.receipt.limit
    assert release.parameters["bounds"]["share"] == "1/5"
    low, _, high = release.parameters["bounds"]["found"]["pay"].partition(" to ")
    drawn = release.to_arrow()["pay"].drop_null().to_numpy()
    assert float(low) <= drawn.min() <= drawn.max() <= float(high)
    assert any("bought" in note for note in release.notes)


def test_the_ledger_is_charged_once_for_all():
    accountant = Accountant(Pure(1))
    hm.synthesize(people(), epsilon="0.4", domains=DOMAINS, bounds="0.25", accountant=accountant)
    assert accountant.remaining == Pure(Fraction(3, 5))


@pytest.mark.parametrize("epsilon", ["0.01", 1, 30])
def test_empty_cells_rarely_widen_the_bounds(epsilon):
    grid, mechanism = OpenRange().grid, DiscreteLaplace(Fraction(epsilon))
    counts = np.zeros((3000, len(grid)), np.int64)
    usual = grid.encode(pa.array([700.0]))[0]
    counts[:, usual] = 10**6
    noisy = mechanism.apply(counts, repeatable(3))
    ends = [OpenRange().outermost(one, float(mechanism.variance)) for one in noisy]
    assert np.mean([one != (usual, usual) for one in ends]) < 0.015


def test_nobody_is_read_for_bounds_who_allows_less():
    pay = [100.0 + i % 50 for i in range(1000)] + [1e9] * 1000
    own = [20.0] * 1000 + [0.1] * 1000
    table = hm.read(
        pa.table({"pay": pay, "own": own}),
        {"columns": {"pay": {"role": "other", "kind": "numeric"}},
         "policy": {"epsilon": "own", "levels": {"epsilon": [0.1, 20]}}},
    )  # fmt: skip
    release = hm.synthesize(table, epsilon=10, bounds=0.5)
    assert not release.parameters["bounds"]["found"]["pay"].endswith("e+09")


def test_what_cannot_be_bought_is_said_before_anything_is_spent():
    accountant = Accountant(Pure(1))
    ask = {"epsilon": 1, "accountant": accountant}
    with pytest.raises(SchemaError, match="categories cannot be bought without delta"):
        hm.synthesize(people(), bounds=0.1, **ask)
    with pytest.raises(SchemaError, match=r"bounds=0\.1"):
        hm.synthesize(people(), domains=DOMAINS, **ask)
    known = {**DOMAINS, "pay": {"low": 0, "high": 9000}}
    with pytest.raises(ParameterError, match="every column has a public domain"):
        hm.synthesize(people(), domains=known, bounds=0.1, **ask)
    for share in (0, 1, 1.5):
        with pytest.raises(ParameterError, match="share of the budget"):
            hm.synthesize(people(), domains=DOMAINS, bounds=share, **ask)
    with pytest.raises(SchemaError, match="Conditions on pay need public bounds"):
        hm.synthesize(
            people(), domains=DOMAINS, bounds=0.1, rows=9, given={"pay": {"below": 9}}, **ask
        )
    assert accountant.remaining == Pure(1)


def test_a_domain_without_ends_is_bought_too():
    table = hm.read(pa.table({"age": [30, 40, 50, None] * 500}), {"age": "quasi"})
    domains = {"age": {"bins": 8, "integer": True, "missing": True}}
    release = hm.synthesize(table, epsilon=2, domains=domains, bounds=0.5)
    ages = release.to_arrow()["age"]
    assert pa.types.is_integer(ages.type)
    assert ages.null_count > 300
    low, _, high = release.parameters["bounds"]["found"]["age"].partition(" to ")
    assert float(low) <= 16 < 64 <= float(high)
