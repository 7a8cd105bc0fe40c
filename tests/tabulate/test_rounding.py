"""Rounding keeps sums, stays within the base, and hides who asks to be hidden."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tabular_oracles as oracles
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import ParameterError, PrivacyError
from halfmask.tabulate.rounding import round_controlled, round_randomly


@settings(max_examples=examples(20), deadline=None)
@given(
    st.sampled_from([(3,), (2, 3), (4, 4), (2, 2, 3)]),
    st.integers(0, 2**32 - 1),
    st.integers(2, 10),
)
def test_controlled_rounding_keeps_all_sums_within_the_base(shape, seed, base):
    full = oracles.with_totals(np.random.default_rng(seed).integers(0, 20, size=shape))
    values = full.ravel().astype(float)
    grid = oracles.grid_of(shape)
    rounded, restricted = round_controlled(grid, values, base, time_limit=20)
    assert not (rounded % base).any()
    assert not (grid.relations @ rounded).any()
    assert (np.abs(rounded - values) <= (base - 1 if restricted else base)).all()
    assert (rounded >= 0).all()
    if restricted:
        assert (rounded[values % base == 0] == values[values % base == 0]).all()
    if len(shape) < 3:
        assert restricted  # a table of two columns always has one


@pytest.mark.parametrize("seed", range(20))
def test_multiples_stay_wherever_that_is_possible(seed):
    """Against all ways to round the eight finest cells of a cube."""
    full = oracles.with_totals(np.random.default_rng(seed).integers(0, 7, size=(2, 2, 2)))
    values, base = full.ravel().astype(float), 3
    leaves = full[:2, :2, :2].ravel()
    possible = False
    for up in itertools.product((0, 1), repeat=8):
        tried = (leaves // base + np.array(up) * (leaves % base > 0)) * base
        made = oracles.with_totals(tried.reshape(2, 2, 2)).ravel()
        possible |= bool((np.abs(made - values) < base).all())
    _, restricted = round_controlled(oracles.grid_of((2, 2, 2)), values, base, time_limit=20)
    assert restricted == possible


def test_time_that_ends_changes_no_promise(monkeypatch):
    """Multiples of the base move only where they must: never because a machine was busy."""
    import scipy.optimize

    asked = []

    def slow(*_, **__):
        asked.append(1)
        return scipy.optimize.OptimizeResult(x=None, status=1)

    monkeypatch.setattr(scipy.optimize, "milp", slow)
    values = oracles.with_totals(np.array([4, 7, 2])).ravel().astype(float)
    with pytest.raises(PrivacyError, match="in 20 seconds"):
        round_controlled(oracles.grid_of((3,)), values, 3, time_limit=20)
    assert len(asked) == 1


def test_random_rounding_has_the_true_figure_as_its_mean():
    values = np.full(20_000, 7.0)
    rounded = round_randomly(values, 5)
    assert set(np.unique(rounded)) == {5.0, 10.0}
    assert abs(rounded.mean() - 7) < 0.1


def test_a_rounded_table_leaves(town):
    release = hm.tabulate(town, ["city", "sex"], method="round", base=10)
    shown = np.array(release.to_arrow()["count"].to_pylist())
    assert not (shown % 10).any()
    assert release.withheld == 0
    assert release.demands.kept


def test_a_base_that_hides_too_little_is_refused(town):
    with pytest.raises(PrivacyError, match="does not hide that fewer people"):
        hm.tabulate(town, ["city", "ill", "sex"], method="round", base=2, threshold=8)


def test_random_rounding_does_not_add_up_and_says_so(town):
    release = hm.tabulate(town, ["city", "sex"], method="random-round", base=5, demands="ignore")
    assert "totals do not add up" in " ".join(release.notes)


@pytest.mark.parametrize("method", ["round", "random-round", "cell-key"])
def test_diversity_is_not_kept_by_noise(town, method):
    with pytest.raises(PrivacyError, match="use method='suppress'"):
        hm.tabulate(town, ["city", "ill"], method=method, l={"ill": 3}, demands="ignore")


@pytest.mark.parametrize("more", [{"base": 1}, {"base": 2.5}, {"sum": "income"}, {"p": 10}])
def test_what_rounding_does_not_take(town, more):
    with pytest.raises(ParameterError):
        hm.tabulate(town, "city", method="round", **more)
