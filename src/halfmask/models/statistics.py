"""What models read of class statistics: sums and extremes per class over sparse histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InternalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.histogram import Histogram

_SQUARES_FIT = 2**31


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


def fewest(classes: Classes, at: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The smallest of the classes ``at``, until they hold ``rows`` rows together."""
    ordered = at[np.argsort(classes.rows[at], kind="stable")]
    return ordered[: int(np.searchsorted(np.cumsum(classes.rows[ordered]), rows)) + 1]


def lifts(values: Histogram) -> tuple[NDArray[Any], NDArray[Any]]:
    """Per entry, how much more frequent the value is in its class than in all rows.

    With q its share in the class and p its share in all rows, q / p is the first over the second
    number that this gives; both are integers.
    """
    rows: NDArray[Any] = reduce(np.add, values.counts, values.starts)
    size, counts = int(values.counts.sum()), values.counts
    if size >= _SQUARES_FIT:
        rows, counts = rows.astype(object), counts.astype(object)
    n = np.repeat(rows, np.diff(values.starts))
    return counts * size, values.totals()[values.values] * n


def every(values: Histogram, entries: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell for each class whether all its entries are true."""
    failing = np.concatenate(([0], np.cumsum(~entries)))
    return np.asarray(failing[values.starts[1:]] == failing[values.starts[:-1]])
