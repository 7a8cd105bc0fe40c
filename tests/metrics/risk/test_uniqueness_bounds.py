"""What holds under any model: exactly in expectation, and nearly always for samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.metrics.risk.uniqueness import uniqueness_bounds


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.floats(0.01, 1.0))
def test_the_expected_sample_bounds_every_population(population, fraction):
    sizes = np.array(population)
    truth = (sizes == 1).sum() / sizes.sum()
    # Somebody in a class of F is in the sample and alone there with p (1 - p)^(F - 1).
    alone = float((sizes * (1 - fraction) ** (sizes - 1)).sum()) / sizes.sum()
    assert 1 - (1 - alone) / fraction <= truth + 1e-9
    assert truth <= alone + 1e-9


POPULATIONS = {
    "nearly everybody unique": np.r_[np.ones(20_000, dtype=np.int64), np.full(400, 2)],
    "half in one class": np.r_[np.ones(5000, dtype=np.int64), [5000]],
    "pairs": np.full(5000, 2),
    "a long tail": np.minimum(np.random.default_rng(0).zipf(1.7, 8000), 500),
}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("fraction", [0.02, 0.3, 0.9])
def test_samples_keep_within(name, fraction):
    sizes = POPULATIONS[name]
    truth = (sizes == 1).sum() / sizes.sum()
    random = np.random.default_rng(7)
    missed = 0
    for _ in range(100):
        drawn = random.binomial(sizes, fraction)
        low, high = uniqueness_bounds(np.bincount(drawn[drawn > 0], minlength=2), fraction)
        missed += not low <= truth <= high
    assert missed <= 5


def test_everybody_alone_in_a_large_sample_is_nearly_everybody_unique():
    low, high = uniqueness_bounds(np.array([0, 2000]), 0.1)
    # At most 2 ln 40 people are expected to share a class here, which is 3.7 % of 20,000 there.
    assert low == pytest.approx(1 - 2 * np.log(40) / 200)
    assert high == 1
