"""Puts one column of an original and of its release on common ground."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.metrics.published_labels import published_labels
from halfmask.metrics.shared_column import SharedColumn
from halfmask.metrics.space import finite
from halfmask.metrics.weighted import quantiles, tally
from halfmask.table.numbers import is_number
from halfmask.table.table import encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.weighted import Counts
    from halfmask.table.table import Table

_FINE = 50  # numeric columns with more values are compared in bins
_BINS = 20
_DAY = 86_400_000_000.0  # microseconds
_COARSE = 100  # bins in which pairs of columns are compared


def shared_column(
    original: Table, rows: pa.Table, name: str, counts: tuple[Counts, Counts] = (None, None)
) -> SharedColumn:
    """Put the column ``name`` of both tables on common ground.

    With ``counts``, the entries of either table stand for so many rows.
    """
    own, published = original.encode(name), encode(rows[name])
    declared = original.schema.columns.get(name)
    hierarchy = original.hierarchy(name)
    labels = published_labels(hierarchy, own.values, published.values)
    known, leaves = len(own.values), len(own.values) + len(labels.fresh)
    leaf_rows = tally(own.codes, leaves, counts[0])
    label_rows = tally(published.codes, len(labels.level), counts[1])
    numbers = _numbers(original, name, own.values, published.values, labels.fresh)
    wide = int(labels.wide @ label_rows) / int(label_rows.sum())
    lost = (wide - 1) / (hierarchy.size - 1) if hierarchy.size > 1 else 0.0
    bin_of, bins = _binned(numbers, leaf_rows)
    coarse_of, coarse = _coarse(bin_of, bins, leaf_rows)
    return SharedColumn(
        name=name,
        role=declared.role if declared else "other",
        before=own.codes,
        after=published.codes,
        before_counts=counts[0],
        after_counts=counts[1],
        leaves=leaves,
        known=known,
        starts=labels.starts,
        covered=labels.covered,
        level=labels.level,
        numbers=numbers,
        foreign=int(label_rows[labels.fresh].sum()),
        loss=None if len(labels.fresh) else lost,
        bin_of=bin_of,
        bins=bins,
        coarse_of=coarse_of,
        coarse=coarse,
    )


def _numbers(
    original: Table,
    name: str,
    values: pa.Array,
    published: pa.Array,
    fresh: NDArray[np.int64],
) -> NDArray[np.float64] | None:
    """The number of each leaf, where the column is numeric; a missing value takes the mean."""
    column = original.schema.columns.get(name)
    if column is not None and column.kind in ("nominal", "ordinal"):
        return None
    own = _measured(values)
    if own is None or not len(fresh):
        return None if own is None else _filled(own)
    theirs = _measured(published)
    if theirs is None or _dated(values.type) != _dated(published.type):
        return None
    new = theirs[fresh]
    return _filled(np.concatenate([own, new]))


def _dated(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _measured(values: pa.Array) -> NDArray[np.float64] | None:
    """Values as numbers, dates and times as days; None where they are neither."""
    kind = values.type
    if _dated(kind):
        values = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    elif not is_number(kind):
        return None
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(found / _DAY if _dated(kind) else found, dtype=np.float64)


def _filled(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    numbers = finite(numbers)
    missing = ~np.isfinite(numbers)
    if missing.all():
        return np.zeros_like(numbers)
    return np.where(missing, numbers[~missing].mean(), numbers)


def leaf_bins(original: Table, name: str, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The bin of each value in which distributions are compared, where ``rows`` rows hold it."""
    values = original.encode(name).values
    return _binned(_numbers(original, name, values, values, np.arange(0)), rows)


def _binned(
    numbers: NDArray[np.float64] | None, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Leaves themselves, or quantile bins of the original's rows for fine numbers."""
    if numbers is None or len(rows) <= _FINE:
        return np.arange(len(rows)), len(rows)
    edges = np.unique(quantiles(numbers, rows, np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.searchsorted(edges, numbers, side="right").astype(np.int64), len(edges) + 1


def _coarse(
    bin_of: NDArray[np.int64], bins: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """The frequent bins by themselves, all others together."""
    if bins <= _COARSE:
        return bin_of, bins
    frequent = np.argsort(-tally(bin_of, bins, rows), kind="stable")
    place = np.full(bins, _COARSE - 1, dtype=np.int64)
    place[frequent[: _COARSE - 1]] = np.arange(_COARSE - 1)
    return place[bin_of], _COARSE
