"""Where rows stand for the labels of classes, so that newcomers join those who lose least by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.space import Space
    from halfmask.table.table import Table

    Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Rows as points, such that a class loses about the width of the box around it.

    Attributes:
        points: (rows, axes); an axis is a column on a line, or one level of a hierarchy.
        weight: per axis, what its whole width costs.
        level: per axis, whether any width counts in full.
    """

    points: Reals
    weight: Reals
    level: NDArray[np.bool_]

    @classmethod
    def of(cls, table: Table, space: Space) -> Coordinates:
        """The points of a table."""
        axes: list[Reals] = []
        weight: list[float] = []
        level: list[bool] = []
        for place, (name, on_line) in enumerate(zip(space.columns, space.ordered, strict=True)):
            if on_line:
                held = space.places[:, place].astype(np.float64)
                axes.append(held / max(float(held.max(initial=1)), 1))
                weight.append(1.0)
                level.append(False)
                continue
            hierarchy, codes = table.hierarchy(name), table.encode(name).codes
            shares = [
                float(hierarchy.leaves[one][hierarchy.maps[one][codes]].mean() / hierarchy.size)
                for one in range(hierarchy.height + 1)
            ]
            steps = np.maximum(np.diff([*shares, 1.0]), 0.0)
            for one, cost in enumerate(steps.tolist()):
                axes.append(hierarchy.maps[one][codes].astype(np.float64))
                weight.append(cost)
                level.append(True)
        return cls(np.column_stack(axes), np.array(weight), np.array(level))

    def width(self, low: Reals, high: Reals) -> Reals:
        """What boxes cost."""
        return np.where(self.level, high > low, high - low) @ self.weight
