from __future__ import annotations

import numpy as np
import pytest

from halfmask.dp.views import NoisyCounts
from halfmask.synthesize.marginals import (
    join_small,
    merge_values,
    pool_small,
    rows_from,
    shrink,
    simplex,
    smooth_counts,
)


def test_simplex_by_hand() -> None:
    # Take 1 from each: (4, 0, -3) -> the last is cut, the rest already sums to 4.
    assert simplex(np.array([5, 1, -2]), 4.0).tolist() == [4.0, 0.0, 0.0]
    assert simplex(np.array([1.0, 1.0]), 4.0).tolist() == [2.0, 2.0]


def test_clamping_invents_rows_and_the_simplex_does_not() -> None:
    # Hazard D4: 17,280 cells at epsilon 0.01
    random = np.random.default_rng(1)
    noisy = np.rint(random.laplace(0, 100, 17_280)).astype(np.int64)
    noisy[:300] += 109  # 32,561 rows, about
    clamped = np.maximum(noisy, 0).sum()
    assert clamped > 800_000
    assert simplex(noisy, float(noisy.sum())).sum() == pytest.approx(noisy.sum())
    assert (simplex(noisy, 32_561.0) >= 0).all()


def test_rows_are_weighted_by_precision() -> None:
    good = NoisyCounts(("a",), np.array([50, 50]), 1.0)
    poor = NoisyCounts(("b",), np.array([500, 500]), 10_000.0)
    assert rows_from([good, poor]) == pytest.approx(100, abs=1)
    assert rows_from([NoisyCounts((), np.array(-5), 1.0)]) == 1.0


def test_shrinking_keeps_signal_and_drops_noise() -> None:
    random = np.random.default_rng(2)
    believed = np.full(400, 100.0)
    noise = random.normal(0, 50, 400)
    assert np.abs(shrink(believed + noise, believed, 2500.0) - believed).mean() < 10
    signal = random.normal(0, 500, 400)
    kept = shrink(believed + signal + noise, believed, 2500.0)
    assert np.corrcoef(kept - believed, signal)[0, 1] > 0.98


def test_groups_by_hand() -> None:
    assert pool_small(np.array([50.0, 1.0, 40.0, 2.0]), 10).tolist() == [0, 2, 1, 2]
    assert pool_small(np.array([50.0, 1.0, 40.0]), 10).tolist() == [0, 1, 2]
    assert pool_small(np.array([1.0, 1.0]), 10).tolist() == [0, 0]
    assert join_small(np.array([5.0, 5, 1, 9, 1]), 8).tolist() == [0, 0, 1, 1, 1]
    assert join_small(np.array([1.0, 1]), 10).tolist() == [0, 0]


def test_who_has_any_stays_apart_from_those_who_have_none() -> None:
    """Three of four earn nothing: the fourth is a group, though smaller than groups should be."""
    counts = np.array([7300.0, *[2700 / 31] * 31])
    groups, _ = merge_values({"gain": counts}, 10_000, 280.0, ["gain"], [])
    assert groups["gain"].tolist() == [0, *[1] * 31]
    few = np.array([9300.0, *[700 / 31] * 31])  # too few to be told from noise
    assert merge_values({"gain": few}, 10_000, 280.0, ["gain"], [])[0]["gain"].max() == 0


def test_neighbors_are_smoothed_and_a_frequent_value_stays_alone():
    truth = np.r_[8000.0, np.linspace(120, 20, 31)]
    random = np.random.default_rng(3)
    before, after = [], []
    for _ in range(20):
        noisy = truth + random.normal(0, 60, len(truth))
        found = smooth_counts(noisy, 60.0**2)
        assert np.isclose(found.sum(), noisy.sum())
        assert abs(found[0] - noisy[0]) < 120  # the value that many share
        before.append(np.abs(noisy - truth)[1:].sum())
        after.append(np.abs(found - truth)[1:].sum())
    assert np.mean(after) < 0.5 * np.mean(before)


def test_steps_beyond_the_noise_stay():
    steps = np.array([10.0, 10, 10, 500, 500, 500, 500, 20, 20, 900, 20])
    assert np.allclose(smooth_counts(steps, 1.0), steps)
    assert smooth_counts(np.array([4.0]), 1.0).tolist() == [4.0]
