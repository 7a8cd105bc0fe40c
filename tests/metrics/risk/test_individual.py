"""The expected chance in a population, against the sum that defines it."""

from __future__ import annotations

from decimal import Decimal, localcontext
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


def exact(f: int, p: float) -> float:
    """By I(1) = log(1 / p) / q and I(f + 1) = (1 / f - p I(f)) / q, in very many digits."""
    with localcontext() as context:
        context.prec = 60 + (0 if p <= 0.5 or p == 1 else int(f * log(p / (1 - p), 10)))
        share = Decimal(p)
        rest = 1 - share
        if not rest:
            return 1 / f
        found = -share.ln() / rest
        for size in range(1, f):
            found = (Decimal(1) / size - share * found) / rest
        return float(share * found)


SHARES = [1e-9, 1e-4, 0.01, 0.05, 0.0966, 0.1, 0.3, 0.5, 0.51, 0.9, 0.999, 1 - 1e-9, 1.0]


@pytest.mark.parametrize("f", [1, 2, 3, 4, 17, 59, 60, 61, 100, 130])
def test_accurate_to_the_last_digits_at_every_limit(f):
    # SciPy's 2F1 is infinite for f = 100 and p = 0.0966, and small p vanish in 1 - p.
    found = individual_risks(np.full(len(SHARES), f), np.array(SHARES))
    assert found == pytest.approx([exact(f, p) for p in SHARES], rel=1e-13)


@given(st.floats(0.01, 0.95))
def test_the_closed_forms_of_the_literature(p):
    q, ln = 1 - p, log(1 / p)
    expected = [
        p / q * ln,
        p / q - (p / q) ** 2 * ln,
        p / (2 * q**3) * (q * (1 - 3 * p) + 2 * p**2 * ln),
    ]
    found = individual_risks(np.array([1, 2, 3]), np.full(3, p))
    assert found == pytest.approx(expected, rel=1e-6)


def test_as_recorded_for_sdcmicro():
    # indivRisk(method = "exact") in the tests of sdcMicro, classes (f, F^) of eight rows.
    people = np.array([3, 1, 1, 2, 1])
    stood_for = np.array([108, 45.5, 17, 100, 123.5])
    recorded = [0.01355297, 0.08579129, 0.17707583, 0.01877883, 0.03931625]
    found = individual_risks(people, people / stood_for)
    assert found == pytest.approx(recorded, abs=5e-9)


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
    for given_as in (fraction, np.array([fraction])):
        with pytest.raises(ParameterError, match="fraction"):
            individual_risks(np.array([1]), given_as)


def test_a_household_is_found_if_one_of_it_is():
    risks = np.array([0.5, 0.5, 0.1, 1.0, 0.2])
    found = household_risks(risks, np.array([0, 0, 1, 2, 2], dtype=np.int32))
    assert found == pytest.approx([0.75, 0.75, 0.1, 1.0, 1.0])
