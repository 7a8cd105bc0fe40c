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

_SMALL = (
    60  # SciPy's function is exact to the last digits up to 99 people, infinite for some beyond
)
_TERMS = 40  # of the series for larger classes, whose terms fall faster than 1 / C(60 + n, n)


def individual_risks(
    people: NDArray[np.int64], fraction: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """The expected chance to find a person of each sample class of ``people``.

    Args:
        people: per class, how many people of the sample it holds.
        fraction: the share of the population that is in the sample, of all or of each class.

    Example:
        >>> individual_risks(np.array([1, 2]), 1.0)
        array([1. , 0.5])
    """
    p = np.asarray(fraction, dtype=np.float64)
    if not bool(((p > 0) & (p <= 1)).all()):
        raise ParameterError("fraction", fraction if p.ndim == 0 else "per class",
                             "more than 0 and at most 1")  # fmt: skip
    if p.ndim:
        return _expected(people.astype(np.float64), p)
    sizes, place = np.unique(people, return_inverse=True)
    return _expected(sizes.astype(np.float64), np.full(len(sizes), float(p)))[place]


def _expected(f: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import hyp2f1

    out = p / f  # becomes the function's value times this
    one, large = f == 1, f >= _SMALL
    # 1 - p loses the last digits of a small p, which counts for people alone only: log(1 / p).
    rest = np.where(p[one] < 1, 1 - p[one], 1.0)
    out[one] *= np.where(p[one] < 1, -np.log(p[one]) / rest, 1.0)
    some = ~one & ~large
    out[some] *= hyp2f1(1.0, 1.0, f[some] + 1, 1 - p[some])
    out[large] *= _series(f[large], p[large])
    return np.asarray(np.clip(out, 0.0, 1.0 / f))


def _series(f: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The power series of 2F1(1, 1; f + 1; 1 - p)."""
    term, total = np.ones(len(f)), np.ones(len(f))
    for n in range(_TERMS):
        term = term * ((n + 1) * (1 - p) / (f + 1 + n))
        total += term
    return total


def household_risks(
    risks: NDArray[np.float64], households: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Per row, the chance that somebody of its household is found."""
    sure = risks >= 1.0
    logs = np.log1p(-np.where(sure, 0.0, risks))
    total = np.bincount(households, weights=logs)
    found = np.bincount(households, weights=sure) > 0
    return np.where(found, 1.0, -np.expm1(total))[households]
