"""The exact MODL criterion of a grid, in its published form and in that of Khiops 11.

Definition: cost = -log P(model) - log P(data | model): choice of the partitions, of the cells'
    counts and of the values' counts inside groups, plus the likelihood of the observations.
Source: Boullé, "Data grid models for preparation and modeling in supervised learning", 2011; the
    Khiops 11 form was found by reproducing the costs that Khiops prints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.coclustering.observations import (
    log_compositions,
    log_factorials,
    log_partitions,
    sum_duplicates,
    universal,
    universal_bounded,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.observations import Observations, Variable

CriterionForm = Literal["published", "khiops11"]
GridPartition = tuple["NDArray[np.int32]", ...]
_GARBAGE_VALUES = 7  # Khiops codes the absence of a garbage group above so many values


@dataclass(frozen=True, eq=False)
class GridCriterion:
    """The cost of grids over some observations.

    Attributes:
        observations: what was observed.
        form: ``"published"`` or ``"khiops11"``.
    """

    observations: Observations
    form: CriterionForm = "published"
    _priors: dict[int, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def cost(
        self, partition: GridPartition, *, garbage: Sequence[int | None] | None = None
    ) -> float:
        """The cost of one grid.

        Args:
            partition: per variable, the part of each value (0, 1, ... without gaps).
            garbage: per variable the part that is a garbage group (Khiops 11 form only).
        """
        observed = self.observations
        factorial = log_factorials(observed.total + max(observed.sizes))
        parts = [int(side.max()) + 1 for side in partition]
        cost = self.level(parts)
        for side, (variable, assigned) in enumerate(
            zip(observed.variables, partition, strict=True)
        ):
            counts = observed.marginal(side)
            inside = np.bincount(assigned, counts, parts[side]).astype(np.int64)
            if variable.kind == "numeric":
                cost += factorial[inside].sum()
            else:
                held = np.bincount(assigned, minlength=parts[side])
                cost += (factorial[inside + held - 1] - factorial[held - 1]).sum()
                cost -= factorial[counts].sum()
                if garbage is not None and garbage[side] is not None:
                    cost += self._garbage(variable, parts[side], int(held[garbage[side]]))
                    cost -= self.prior(side, parts[side])[parts[side]]
        cells = cell_counts(observed, partition)[1]  # empty ones add log 0! = 0
        return float(cost - factorial[cells].sum())

    def null(self) -> float:
        """The cost of the grid with one cell: the variables tell nothing of each other."""
        return self.cost(tuple(np.zeros(size, dtype=np.int32) for size in self.observations.sizes))

    def level(self, parts: Sequence[int]) -> float:
        """The terms that depend on the numbers of parts alone, and log N!."""
        total = self.observations.total
        cost = log_compositions(total, math.prod(float(p) for p in parts))
        cost += math.lgamma(total + 1.0) + self.informative(sum(p > 1 for p in parts))
        return cost + sum(float(self.prior(k, p)[p]) for k, p in enumerate(parts))

    def informative(self, sides: int) -> float:
        """The cost of saying how many variables have more than one part."""
        if self.form == "published":
            return 0.0
        return math.log(2) + (universal(sides) - math.lgamma(sides + 1.0) if sides else 0.0)

    def prior(self, side: int, limit: int) -> NDArray[np.float64]:
        """The cost of choosing 0..limit parts (or more) of one variable and the partition."""
        known = self._priors.get(side)
        if known is None or len(known) <= limit:
            variable = self.observations.variables[side]
            known = self._prior(variable, min(max(2 * limit, 256), max(variable.size, limit)))
            self._priors[side] = known
        return known

    def _prior(self, variable: Variable, limit: int) -> NDArray[np.float64]:
        total, size = self.observations.total, variable.size
        categorical = variable.kind == "categorical"
        if self.form == "published":
            if categorical:
                return math.log(size) + log_partitions(size, limit)
            return np.full(limit + 1, math.log(total))
        bound = (size if categorical else total) - 1
        out = np.zeros(limit + 1)
        out[2:] = [universal_bounded(parts - 1, bound) for parts in range(2, limit + 1)]
        if categorical:
            out[2:] += log_partitions(size, limit)[2:]
            out[2:] += math.log(2) if size > _GARBAGE_VALUES else 0.0
        return out

    def _garbage(self, variable: Variable, parts: int, held: int) -> float:
        """The prior of a variable one of whose parts gathers ``held`` values as garbage."""
        size, kept = variable.size, variable.size - held
        return (
            math.log(2)
            + universal_bounded(kept - 1, size - 2)
            + kept * math.log(size)
            - math.lgamma(kept + 1.0)
            + universal_bounded(parts - 2, kept - 1)
            + float(log_partitions(kept, parts - 1)[parts - 1])
        )

    def best_garbage(self, partition: GridPartition) -> tuple[int | None, ...]:
        """Per variable, the part that is cheapest as a garbage group, or None where none is."""
        found: list[int | None] = []
        for side, assigned in enumerate(partition):
            held = np.bincount(assigned)
            widest = int(held.argmax())
            saved = self.garbage_change(side, len(held), int(held[widest])) < 0
            found.append(widest if saved else None)
        return tuple(found)

    def garbage_change(self, side: int, parts: int, held: int) -> float:
        """What the cost falls by with a part of ``held`` values as garbage group; 0: not at all."""
        variable = self.observations.variables[side]
        known = self.form == "published" or variable.kind == "numeric"
        if known or parts < 3 or variable.size <= _GARBAGE_VALUES:
            return 0.0
        plain = float(self.prior(side, parts)[parts])
        return min(0.0, self._garbage(variable, parts, held) - plain)

    def least(self, partition: GridPartition) -> float:
        """The cost of one grid with the garbage groups that it is cheapest with."""
        return self.cost(partition, garbage=self.best_garbage(partition))


def cell_counts(
    observations: Observations, partition: GridPartition
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The non-empty cells of a grid: (cells, variables) part codes, and their counts."""
    codes = np.column_stack([p[observations.codes[:, k]] for k, p in enumerate(partition)])
    return sum_duplicates(codes.astype(np.int32), observations.weights)
