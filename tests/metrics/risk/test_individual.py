"""The expected chance in a population, against the sum that defines it."""

from __future__ import annotations

from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.errors import ParameterError
from halfmask.metrics.risk.individual import household_risks, individual_risks


def summed(f: int, p: float) -> float:
    return sum(comb(F - 1, f - 1) * p**f * (1 - p) ** (F - f) / F for F in range(f, f + 2000))


@given(st.integers(1, 8), st.floats(0.05, 0.999))
def test_the_closed_form_is_the_sum(f, p):
    assert individual_risks(np.array([f]), p)[0] == pytest.approx(summed(f, p), rel=1e-6)


def test_a_sample_unique_of_a_small_sample():
    p = 0.001
    assert individual_risks(np.array([1]), p)[0] == pytest.approx(p / (1 - p) * log(1 / p))


def test_a_whole_population_has_the_prosecutors_risk():
    assert individual_risks(np.array([1, 4, 4]), 1.0).tolist() == [1.0, 0.25, 0.25]


@given(st.integers(1, 100_000), st.floats(1e-6, 1.0))
def test_never_above_the_prosecutor_and_never_below_the_mean_size(f, p):
    # Jensen: E[1/F] >= 1 / E[F] = p / f.
    found = individual_risks(np.array([f]), p)[0]
    assert p / f * (1 - 1e-9) <= found <= 1 / f


@pytest.mark.parametrize("fraction", [0.0, -1.0, 1.5, float("nan")])
def test_a_fraction_is_a_share(fraction):
    with pytest.raises(ParameterError, match="fraction"):
        individual_risks(np.array([1]), fraction)


def test_a_household_is_found_if_one_of_it_is():
    risks = np.array([0.5, 0.5, 0.1, 1.0, 0.2])
    found = household_risks(risks, np.array([0, 0, 1, 2, 2], dtype=np.int32))
    assert found == pytest.approx([0.75, 0.75, 0.1, 1.0, 1.0])
