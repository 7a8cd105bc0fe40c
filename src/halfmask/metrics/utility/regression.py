"""Do linear models that are fitted on either table have the same coefficients?

Definition: ordinary least squares of a numeric target on the features of all other columns, fitted
on either side. The overlap of a coefficient is the mean of o / (length of the original's 95 %
confidence interval) and o / (length of the release's), where o is the length that both intervals
share, below 0 the gap between them: 1 is the same interval, 0 or below are disjoint ones. The mean
over coefficients is about 0.80 where the released rows are drawn anew from the original's, about
0.71 where they are other people of the same population.
Source: Karr et al., "A framework for evaluating the utility of data altered to protect
confidentiality", 2006.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, exact, failed
from halfmask.metrics.utility.learning import features

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides

    Numbers = NDArray[np.float64]

_ROWS = 50_000
_CELLS = 10_000_000  # rows times features of either side
_SPARE = 10  # rows beyond the coefficients below which nothing is fitted
_NOTHING = 1e-8  # the share of a spread below which it is rounding


@dataclass(frozen=True, slots=True)
class Regression:
    """How far a linear model of one target agrees.

    Attributes:
        target: the column.
        overlap: the mean overlap of the coefficients' confidence intervals.
        coefficients: how many coefficients both tables can estimate, without the intercept.
        lost: how many more the original can.
        significant: how many differ from 0 on the original with 95 % confidence.
        same_sign: the share of these with the same sign on the release; None where there are none.
        largest: the largest difference of a coefficient, in standard errors of the original's.
    """

    target: str
    overlap: Estimate
    coefficients: int = 0
    lost: int = 0
    significant: int = 0
    same_sign: float | None = None
    largest: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Side:
    """Sums of products of centered features over so many rows."""

    products: Numbers
    rows: int

    def fit(self, kept: list[int], target: int) -> tuple[Numbers, Numbers, Numbers] | None:
        """Coefficients, standard errors and half intervals; None where nothing is left open."""
        from scipy.special import stdtrit

        inverse = np.linalg.inv(self.products[np.ix_(kept, kept)])
        found = inverse @ self.products[kept, target]
        total, spare = self.products[target, target], self.rows - len(kept) - 1
        error = total - self.products[kept, target] @ found
        if error <= _NOTHING * total:
            return None
        errors = np.sqrt(np.diag(inverse) * error / spare)
        return found, errors, stdtrit(spare, 0.975) * errors


def regress(sides: Sides, targets: Sequence[str], *, seed: int = 0) -> tuple[Regression, ...]:
    """Fit each numeric target on all other columns, on up to 50,000 rows of either side.

    A generalized value enters as its expectation. Features that the others give, on either side,
    are left out on both; the most frequent value of a column is what the others are held against.
    """
    numeric = [name for name in targets if sides.columns[name].numbers is not None]
    if not numeric:
        return ()
    columns, none = list(sides.columns.values()), np.arange(0)
    widths = [features([column], none, none)[0].shape[1] for column in columns]
    owner = np.repeat(np.arange(len(columns)), widths)
    most = min(_ROWS, _CELLS // len(owner))
    before, original = _drawn(sides.before, sides.original_at, most, seed)
    after, released = _drawn(sides.after, sides.released_at, most, seed)
    left, right = features(columns, before, after)
    both = _side(left, original), _side(right, released)
    whole = max(sides.before, sides.after) <= most
    reason = "" if whole else f"On {most:,} rows of either table at most."
    names = list(sides.columns)
    return tuple(_regression(name, both, owner == names.index(name), reason) for name in numeric)


def _drawn(
    rows: int, entries_at: Callable[[NDArray[np.int64]], NDArray[np.int64]], most: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries and how many of the drawn rows each holds; the same rows of tables of one size."""
    drawn = np.random.default_rng(seed).choice(rows, min(most, rows), replace=False)
    entries, counts = np.unique(entries_at(drawn), return_counts=True)
    return entries, counts


def _side(values: Numbers, counts: NDArray[np.int64]) -> _Side:
    rows = int(counts.sum())
    centered = values - counts @ values / rows
    return _Side(centered.T @ (centered * counts[:, None]), rows)


def _regression(
    name: str, both: tuple[_Side, _Side], own: NDArray[np.bool_], reason: str
) -> Regression:
    rows = min(side.rows for side in both)
    target, others = int(np.flatnonzero(own)[0]), np.flatnonzero(~own)[::-1]
    if not _independent(both, np.array([target])):
        return Regression(name, failed("The target does not vary on both sides.", rows))
    kept = _independent(both, others)
    lost = len(_independent(both[:1], others)) - len(kept)
    if not kept:
        nothing = failed("No other column varies on both sides.", rows)
        return Regression(name, nothing, lost=lost)
    if rows - len(kept) - 1 < _SPARE:
        return Regression(name, failed("There are too few rows for so many columns.", rows))
    first, second = (side.fit(kept, target) for side in both)
    if first is None or second is None:
        return Regression(name, failed("The other columns give the target in full.", rows))
    (one, errors, half), (two, _, other) = first, second
    sure = np.abs(one) > half
    return Regression(
        name,
        exact(round(float(overlap(one, half, two, other).mean()), 12), rows, reason),
        len(kept),
        lost,
        int(sure.sum()),
        float((one * two > 0)[sure].mean()) if sure.any() else None,
        float((np.abs(one - two) / errors).max()),
    )


def overlap(one: Numbers, half: Numbers, two: Numbers, other: Numbers) -> Numbers:
    """How far intervals around ``one`` and ``two``, half as wide as given, overlap."""
    shared = np.minimum(one + half, two + other) - np.maximum(one - half, two - other)
    return np.asarray((shared / half + shared / other) / 4)


def _independent(both: Sequence[_Side], places: NDArray[np.int64]) -> list[int]:
    """Those of some features that vary on each side beyond what the ones before them give."""
    rest = [side.products[np.ix_(places, places)] for side in both]
    spreads = [np.diag(one).copy() for one in rest]
    kept = []
    for turn, place in enumerate(places):
        # A spread of one row in all rows is about 1.
        if all(
            one[turn, turn] > max(_NOTHING * spread[turn], _NOTHING)
            for one, spread in zip(rest, spreads, strict=True)
        ):
            kept.append(int(place))
            for one in rest:
                one -= np.outer(one[:, turn], one[turn]) / one[turn, turn]
    return kept
