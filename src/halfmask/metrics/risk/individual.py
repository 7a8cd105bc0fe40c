"""Individual risk: how likely a person of a sample is found in the population it was drawn from.

Definition: E[1 / F | f] for a class of f people in the sample and F in the population, where
P(F | f) = C(F - 1, f - 1) p^f (1 - p)^(F - f) and p is the sampling fraction; in closed form
(p / f) 2F1(1, 1; f + 1; 1 - p). Of a household: the chance that at least one of its members is
found, 1 - prod (1 - risk).
Source: Benedetti and Franconi, "Statistical and technological solutions for controlled data
dissemination", 1998; Templ, "Statistical disclosure control for microdata", 2017 (households).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SMALL = 60  # classes of fewer people go by the recurrence, which is stable for p below one half
_HALF = 0.5
_TERMS = 100


def individual_risks(people: NDArray[np.int64], fraction: float) -> NDArray[np.float64]:
    """The expected chance to find a person of each sample class of ``people``.

    Example:
        >>> individual_risks(np.array([1, 2]), 1.0)
        array([1. , 0.5])
    """
    if not 0 < fraction <= 1:
        raise ParameterError("fraction", fraction, "more than 0 and at most 1")
    sizes, place = np.unique(people, return_inverse=True)
    expected = _series(sizes.astype(np.float64), fraction)
    if fraction < _HALF:
        small = sizes < _SMALL
        expected[small] = _recurrence(fraction)[sizes[small]]
    return np.asarray(np.clip(expected, 0.0, 1.0 / sizes)[place], dtype=np.float64)


def _series(f: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """The power series in 1 - p; quick where classes are large or p is."""
    term, total = np.ones(len(f)), np.ones(len(f))
    for n in range(_TERMS):
        term = term * ((n + 1) * (1 - p) / (f + 1 + n))
        total += term
    return np.asarray(p / f * total)


def _recurrence(p: float) -> NDArray[np.float64]:
    """The product p I(f): I(1) = -log(p) / q, I(f + 1) = (1 / f - p I(f)) / q, q = 1 - p."""
    out = np.zeros(_SMALL)
    out[1] = -np.log(p) / (1 - p)
    for f in range(1, _SMALL - 1):
        out[f + 1] = (1 / f - p * out[f]) / (1 - p)
    return p * out


def household_risks(
    risks: NDArray[np.float64], households: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Per row, the chance that somebody of its household is found."""
    sure = risks >= 1.0
    logs = np.log1p(-np.where(sure, 0.0, risks))
    total = np.bincount(households, weights=logs)
    found = np.bincount(households, weights=sure) > 0
    return np.where(found, 1.0, -np.expm1(total))[households]
