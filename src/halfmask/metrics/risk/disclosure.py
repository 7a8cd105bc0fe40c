"""What the classes of a table give away about a sensitive column.

Definition: homogeneity: rows whose class holds one value. Background knowledge: rows whose class
holds two at most, so that ruling one out is enough. Skewness: how far the likeliest value of a
class exceeds its share in the table. Similarity: rows whose class holds several values of one
meaning (one label of the next hierarchy level, or numbers within a tenth of the range).
Source: Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2007; Li et al.,
"t-closeness: privacy beyond k-anonymity and l-diversity", 2007.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.discrimination.grouping import entropy_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.histogram import Histogram


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What an attacker who knows the quasi-identifiers learns about one sensitive column.

    Attributes:
        column: the sensitive column.
        homogeneity: the share of rows whose value is certain.
        background: the share of rows whose value is certain once one value is ruled out.
        skewness: the largest gain in the probability of a value, class against table.
        mean_shift: the mean over rows of the distance between class and table, 0 to 1.
        similarity: the share of rows whose values differ but mean the same; None where no
            hierarchy or order says what is alike.
        discrimination: the discrimination rate of all quasi-identifiers together.
        external: 1 - that, the share of information an attacker must bring along.
        best_guess: how often guessing the likeliest value of a class is right.
        prior_guess: how often guessing the likeliest value of the table is right.
    """

    column: str
    homogeneity: float
    background: float
    skewness: float
    mean_shift: float
    similarity: float | None
    discrimination: float | None
    external: float | None
    best_guess: float
    prior_guess: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def disclosure(classes: Classes, column: str) -> Disclosure:
    """Measure the attacks on ``column`` in classes that carry its histogram."""
    held = classes.histograms[column]
    rows = classes.rows
    total = int(rows.sum())
    kinds = np.diff(held.starts)
    owner = held.owners
    shares = held.counts / rows[owner]
    totals = held.totals()
    prior = totals / total
    gain = shares - prior[held.values]
    inside = np.bincount(owner, weights=np.minimum(shares, prior[held.values]), minlength=len(rows))
    entropy = entropy_of(totals)
    own = np.bincount(owner, weights=-shares * np.log2(shares), minlength=len(rows))
    residual = float(rows @ own) / total
    rate = None if entropy == 0 else max(0.0, 1.0 - residual / entropy)
    top = np.maximum.reduceat(held.counts, held.starts[:-1])
    return Disclosure(
        column,
        float(rows[kinds == 1].sum()) / total,
        float(rows[kinds <= 2].sum()) / total,
        float(gain.max()),
        float(rows @ (1.0 - inside)) / total,
        _similar(held, kinds, rows, total),
        rate,
        None if rate is None else 1.0 - rate,
        float(top.sum()) / total,
        float(prior.max()),
    )


def _similar(
    held: Histogram, kinds: NDArray[np.int64], rows: NDArray[np.int64], total: int
) -> float | None:
    several = kinds > 1
    if held.hierarchy is not None and held.hierarchy.height > 1:
        meaning = held.hierarchy.maps[1][held.values]
        low = np.minimum.reduceat(meaning, held.starts[:-1])
        high = np.maximum.reduceat(meaning, held.starts[:-1])
        return float(rows[several & (low == high)].sum()) / total
    if held.numbers is not None:
        numbers = np.where(np.isfinite(held.numbers), held.numbers, np.nan)
        span = float(np.nanmax(numbers) - np.nanmin(numbers)) if np.isfinite(numbers).any() else 0.0
        each = numbers[held.values]
        low = np.minimum.reduceat(each, held.starts[:-1])
        high = np.maximum.reduceat(each, held.starts[:-1])
        return float(rows[several & (high - low <= span / 10)].sum()) / total
    return None
