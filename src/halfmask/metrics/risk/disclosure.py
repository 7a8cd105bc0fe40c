"""What the classes of a table give away about a sensitive column.

Definition: homogeneity: rows whose class holds one value. Background knowledge: rows whose class
holds two at most, so that ruling one out is enough. Skewness: how far the likeliest value of a
class exceeds its share in the table. Similarity: rows whose class holds several values, all of one
block of those that mean the same; ``halfmask.metrics.discrimination.meaning`` says which do.
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
        similarity: the share of rows whose values differ but mean the same; None where nothing
            says which values are alike.
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


def disclosure(
    classes: Classes, column: str, blocks: NDArray[np.int32] | None = None
) -> Disclosure:
    """Measure the attacks on ``column`` in classes that carry its histogram.

    Args:
        classes: the classes.
        column: a sensitive column.
        blocks: per value of it, by code, the block of values that mean the same.
    """
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
        None if blocks is None else float(rows[_similar(held, blocks)].sum()) / total,
        rate,
        None if rate is None else 1.0 - rate,
        float(top.sum()) / total,
        float(prior.max()),
    )


def _similar(held: Histogram, blocks: NDArray[np.int32]) -> NDArray[np.bool_]:
    """The classes with several values that all stand in one block."""
    meaning, begins = blocks[held.values], held.starts[:-1]
    same = np.minimum.reduceat(meaning, begins) == np.maximum.reduceat(meaning, begins)
    return np.asarray(same & (np.diff(held.starts) > 1))
