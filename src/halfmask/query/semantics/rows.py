"""The rows of a linear program, gathered as triplets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Rows:
    """Rows lower <= sum of value x column <= upper."""

    def __init__(self) -> None:
        self._entries: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        self._limits: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._count = 0

    def add(
        self,
        rows: NDArray[Any],
        columns: NDArray[Any],
        values: NDArray[Any],
        lower: NDArray[Any],
        upper: NDArray[Any],
    ) -> None:
        """Add ``len(lower)`` rows; ``rows`` numbers them from 0."""
        self._entries.append((rows + self._count, columns, values))
        self._limits.append((lower, upper))
        self._count += len(lower)

    def one(
        self, columns: Sequence[int], values: Sequence[float], lower: float, upper: float
    ) -> None:
        """Add one row."""
        at = np.zeros(len(columns))
        self.add(at, np.array(columns), np.array(values), np.array([lower]), np.array([upper]))

    def constraint(self, columns: int) -> Any:
        """All rows as SciPy wants them."""
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        rows, at, values = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        lower, upper = (np.concatenate(part) for part in zip(*self._limits, strict=True))
        shape = (self._count, columns)
        matrix = csr_array(
            (values.astype(float), (rows.astype(np.int64), at.astype(np.int64))), shape=shape
        )
        return LinearConstraint(matrix, lower.astype(float), upper.astype(float))
