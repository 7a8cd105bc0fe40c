"""What is co-clustered: counted tuples of several variables; empty cells take no memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

VariableKind = Literal["categorical", "numeric"]


@dataclass(frozen=True, slots=True)
class Variable:
    """One side of a grid.

    Attributes:
        name: what it is called in reports.
        kind: categorical values are grouped, numeric ones are cut into intervals.
        size: how many distinct values it has; numeric codes are in ascending order of the values.
        values: the values' texts (categorical) or numbers (numeric), where known.
    """

    name: str
    kind: VariableKind
    size: int
    values: tuple[object, ...] | None = None

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.kind}, {self.size} values)"


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Counted tuples of at least two variables.

    Attributes:
        variables: the sides.
        codes: (tuples, variables) int32, distinct tuples only.
        weights: how often each tuple was observed, at least 1.
    """

    variables: tuple[Variable, ...]
    codes: NDArray[np.int32]
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Observations({len(self.weights):,} tuples of {len(self.variables)} variables)"

    @property
    def total(self) -> int:
        """The number of observations."""
        return int(self.weights.sum())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values per variable."""
        return tuple(variable.size for variable in self.variables)

    def marginal(self, side: int) -> NDArray[np.int64]:
        """How often each value of one variable was observed."""
        counts = np.bincount(self.codes[:, side], self.weights, self.variables[side].size)
        return counts.astype(np.int64)


def observe(
    variables: Sequence[Variable],
    codes: Sequence[NDArray[np.int32]],
    weights: NDArray[np.int64] | None = None,
) -> Observations:
    """Count the distinct tuples of ``codes``; tuples of weight 0 are left out.

    Raises:
        InputError: fewer than two variables, no observation, or weights that are not counts.
    """
    if len(variables) < 2:
        raise InputError("Co-clustering needs at least two variables.")
    matrix = np.column_stack([np.asarray(column, dtype=np.int32) for column in codes])
    if weights is None:
        weights = np.ones(len(matrix), dtype=np.int64)
    if not np.issubdtype(np.asarray(weights).dtype, np.integer) or (weights < 0).any():
        raise InputError("Weights must be counts (integers of at least 0): round them first.")
    keep = weights > 0
    matrix, weights = matrix[keep], np.asarray(weights, dtype=np.int64)[keep]
    if not len(matrix):
        raise InputError("There is no observation to co-cluster.")
    distinct, summed = count_tuples(matrix, weights)
    return Observations(tuple(variables), distinct, summed)


def count_tuples(
    codes: NDArray[np.int32], weights: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The distinct rows of ``codes`` in ascending order and the sum of their weights."""
    order = np.lexsort(codes.T[::-1])
    sorted_codes = codes[order]
    new = np.ones(len(codes), dtype=bool)
    new[1:] = (sorted_codes[1:] != sorted_codes[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    return (
        np.ascontiguousarray(sorted_codes[starts]),
        np.add.reduceat(weights[order], starts).astype(np.int64),
    )
