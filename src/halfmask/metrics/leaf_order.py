"""Leaves of a column in an order in which labels are ranges, and leaves that no label tells apart.

What covers a tuple of leaves is found by walking over ranges; where labels are nested, an order
exists in which each is one. Leaves that stand under the same labels are covered alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS = 1 << 22  # up to so many pairs of label and leaf, leaves are put in another order


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Leaves by numbers.

    Attributes:
        number: per leaf, its number; ``count`` how many numbers there are.
        starts: where the numbers of each label begin in ``covered``.
        covered: the numbers under each label, ascending.
    """

    number: NDArray[np.int32]
    count: int
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Per label, how many numbers it covers."""
        return np.diff(self.starts)

    @property
    def gaps(self) -> int:
        """How many labels do not cover all numbers between their first and their last."""
        spans = self.covered[self.starts[1:] - 1] - self.covered[self.starts[:-1]] + 1
        return int((spans > self.sizes).sum())


def in_order(leaves: int, starts: NDArray[np.int64], covered: NDArray[np.int64]) -> Ordered:
    """Number leaves so that fewer labels have gaps, none where labels are nested."""
    kept = Ordered(np.arange(leaves, dtype=np.int32), leaves, starts, covered)
    labels = len(starts) - 1
    if not kept.gaps or labels * leaves > _CELLS:
        return kept
    owner = np.repeat(np.arange(labels), kept.sizes)
    under = np.zeros((labels, leaves), dtype=bool)
    under[owner, covered] = True
    number = np.empty(leaves, dtype=np.int32)
    # By the widest label first, then by those inside it.
    number[np.lexsort(under[np.argsort(kept.sizes, kind="stable")])] = np.arange(leaves)
    moved = number[covered].astype(np.int64)
    tried = Ordered(number, leaves, starts, moved[np.lexsort((moved, owner))])
    return tried if tried.gaps < kept.gaps else kept


def merged(given: Ordered) -> Ordered:
    """One number for neighbors that stand under the same labels; as given where few do."""
    begins = np.diff(given.covered, prepend=-2) != 1
    begins[given.starts[:-1]] = True
    edges = np.zeros(given.count + 1, dtype=bool)
    edges[given.covered[begins]] = True
    edges[given.covered[np.roll(begins, -1)] + 1] = True
    edges[0] = False
    group = np.cumsum(edges[:-1])
    if 2 * (int(group[-1]) + 1) > given.count:
        return given
    held = group[given.covered]
    kept = np.diff(held, prepend=-1) != 0
    kept[given.starts[:-1]] = True
    upto = np.concatenate(([0], np.cumsum(kept)))
    number = group[given.number].astype(np.int32)
    return Ordered(number, int(group[-1]) + 1, upto[given.starts], held[kept])
