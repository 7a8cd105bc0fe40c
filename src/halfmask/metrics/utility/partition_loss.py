"""What the classes of a release lost, measured on the original rows inside them.

Definition: DBIL, SBIL, TBIL, EBIL and WCSS as in ``halfmask.metrics.partition``, where the class of
an original row is the released class whose labels cover it most tightly. A row that no class covers
is suppressed and charged the most that a row can lose; WCSS leaves it out. C_AVG = n / (classes k)
and the discernibility sum |e|^2 + n per suppressed row, with k the smallest released class.
Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, sections 3.4 and 5.3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics import partition
from halfmask.metrics.covering import Released, tightest_class
from halfmask.metrics.discrimination.rate import entropy_of
from halfmask.metrics.estimate import Estimate, exact, failed
from halfmask.metrics.space import space_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides
    from halfmask.metrics.space import Space

_PAIRS = 50_000_000  # distances inside classes that are looked at
_SAMPLE = 1_000  # rows of a class where there are more


@dataclass(frozen=True, slots=True)
class PartitionLoss:
    """The losses of a division of rows into classes, as sums over rows.

    Attributes:
        k: the rows of the smallest class; ``classes`` how many there are.
        average_class: C_AVG, how many times larger than ``k`` classes are on average.
        discernibility: the sum of squared class sizes, suppressed rows counting n each.
        dbil: every row is charged the diameter of its class; ``most`` is what all rows can lose.
        sbil: the widths of its columns; ``tbil`` the heights of common labels.
        ebil: the entropy of its values inside the class, in bits.
        wcss: the squared distance to the middle of its class.
        suppressed: rows that no class covers.
    """

    k: int
    classes: int
    average_class: float
    discernibility: int
    dbil: Estimate
    sbil: Estimate
    tbil: Estimate
    ebil: Estimate
    wcss: Estimate
    most: float
    suppressed: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        losses = ("dbil", "sbil", "tbil", "ebil", "wcss")
        plain = ("k", "classes", "average_class", "discernibility", "most", "suppressed")
        return {name: getattr(self, name) for name in plain} | {
            name: getattr(self, name).to_dict() for name in losses
        }


def partition_loss(sides: Sides) -> PartitionLoss:
    """Measure the classes of a release; losses are not known where its labels are not true."""
    quasi = sides.quasi
    ids = tightest_class(quasi)
    out = ids < 0
    suppressed = int(out.sum())
    sizes = _released_sizes(sides)
    rows = sides.before
    k, left = int(sizes.min()), max(0, rows - sides.after)
    average = sides.after / (len(sizes) * k)
    squares = int(sizes @ sizes) + left * rows
    if suppressed > left:
        nothing = failed(f"The labels cover {rows - suppressed:,} of {rows:,} original rows only.")
        return PartitionLoss(
            k, len(sizes), average, squares, nothing, nothing, nothing, nothing, nothing, 0.0,
            suppressed,
        )  # fmt: skip
    # A suppressed row stands alone, where it loses nothing, and is charged in full.
    alone = np.where(out, len(sizes) + np.arange(rows), ids)
    space = space_of(sides.original)
    whole = float(space.weights.sum())
    tree = float(sum(w for w, line in zip(space.weights, space.ordered, strict=True) if not line))
    return PartitionLoss(
        k=k,
        classes=len(sizes),
        average_class=average,
        discernibility=squares,
        dbil=_diameter_loss(space, alone, suppressed * whole),
        sbil=exact(partition.span_loss(space, alone) + suppressed * whole, rows),
        tbil=exact(partition.tree_loss(space, alone) + suppressed * tree, rows),
        ebil=exact(_entropy_loss(sides, alone, out), rows),
        wcss=exact(partition.squared_distances(space, alone), rows - suppressed),
        most=whole * rows,
        suppressed=suppressed,
    )


def _released_sizes(sides: Sides) -> NDArray[np.int64]:
    return Released(sides.quasi).rows.astype(np.int64)


def _diameter_loss(space: Space, ids: NDArray[np.int64], charge: float) -> Estimate:
    """DBIL; where classes are too large it lies between a sample's diameter and their width."""
    _, owner, sizes = np.unique(ids, return_inverse=True, return_counts=True)
    if float((sizes.astype(np.float64) ** 2).sum()) <= _PAIRS:
        return exact(partition.diameter_loss(space, ids) + charge, len(ids))
    order = np.random.default_rng(0).permutation(len(ids))
    order = order[np.argsort(owner[order], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    place = np.arange(len(order)) - np.repeat(starts[:-1], sizes)
    kept = order[place < _SAMPLE]
    _, wide = partition.diameters(space.take(kept), owner[kept])
    low = math.fsum((sizes * wide).tolist()) + charge
    high = partition.span_loss(space, ids) + charge
    reason = f"Classes of more than {_SAMPLE:,} rows were sampled: a lower and an upper bound."
    return Estimate(low, low, max(low, high), len(kept), reason=reason)


def _entropy_loss(sides: Sides, ids: NDArray[np.int64], out: NDArray[np.bool_]) -> float:
    names = [column.name for column in sides.quasi]
    inside = partition.entropy_loss(sides.original, ids, names)
    if not out.any():
        return inside
    whole = sum(entropy_of(np.bincount(sides.original.encode(name).codes)) for name in names)
    return inside + int(out.sum()) * whole
