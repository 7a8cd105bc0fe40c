"""What losses of classes can be where their labels overlap: the least and the most.

Definition: a class of m rows consists of m rows that its labels cover, whoever they are. Its
diameter is at most the largest distance of two rows that fit, and at least the least radius that
holds m of them around one of them. The entropy of its values is least where the most frequent
values that fit fill it, and most where it holds all values as evenly as their rows allow.
Source: ours, for DBIL and EBIL of ``halfmask.metrics.partition``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.covering import Cover
from halfmask.metrics.space import space_of
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from halfmask.metrics.sides import Sides


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that DBIL and EBIL of the published rows can be."""

    dbil: tuple[float, float]
    ebil: tuple[float, float]


def class_bounds(both: Sides, pairs: int) -> Bounds | None:
    """Bound the losses of the rows that stay.

    None where some class has fewer rows that fit than it publishes, so that its rows stand for
    nobody, or where more than ``pairs`` pairs of rows would have to be looked at.
    """
    from halfmask.kernels import class_bounds as kernels

    columns = both.quasi
    found = Cover(columns)
    fitting = found.fitting(pairs)
    if fitting is None:
        return None
    starts, fits = fitting
    rows = tally(found.ids, found.count, both.original_counts)
    sizes = found.released.rows.astype(np.int64)
    upto = np.concatenate(([0], np.cumsum(rows[fits])))
    if (upto[starts[1:]] - upto[starts[:-1]] < sizes).any():
        return None
    codes = np.stack([column.before[found.first] for column in columns])
    space = space_of(both.original, [column.name for column in columns])
    classes = kernels.Fits(sizes, starts, fits, rows, found.first, codes)
    dbil = kernels.radii(space.points, classes)
    ebil = kernels.entropies(classes, max(column.leaves for column in columns))
    return Bounds(dbil, ebil)
