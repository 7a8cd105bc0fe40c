"""What models read of class statistics: sums and extremes per class over sparse histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InternalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes, Histogram

POLICY = "policy."


def histogram(classes: Classes, column: str) -> Histogram:
    """The histogram of ``column``."""
    if column not in classes.histograms:
        raise InternalError(f"The class statistics lack column {column!r}.")
    return classes.histograms[column]


def reduce(operation: np.ufunc, entries: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[Any]:
    """Combine the entries of each class; 0 for a class without entries."""
    begins = starts[:-1]
    if len(entries) == 0:
        return np.zeros(len(begins), dtype=entries.dtype)
    filled = begins < starts[1:]
    if filled.all():
        return np.asarray(operation.reduceat(entries, begins))
    out = np.zeros(len(begins), dtype=entries.dtype)
    out[filled] = operation.reduceat(entries, begins[filled])
    return out


def kept(classes: Classes, passing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``passing``, where classes that hold no row of the table always pass."""
    return passing if classes.population is None else passing | (classes.rows == 0)


def filled(classes: Classes) -> NDArray[np.bool_]:
    """The classes that hold rows of the table."""
    return classes.rows > 0
