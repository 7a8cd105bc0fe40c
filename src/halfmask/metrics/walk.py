"""A walk over all column sets up to a size, each grouping refined from the one before.

Sets are visited so that every subset comes first. Rows collapse to distinct tuples once; a tuple
that stands alone in its group leaves the walk below that set, because nothing can split it further.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.table.names import require_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table


MOST = 2**31 - 1  # rows up to which narrow counters do

_SETS = 4000  # column sets that are looked at without being asked


def narrow_counts(rows: NDArray[np.int64]) -> NDArray[Any]:
    """Counts in 32 bits where the rows together fit, which halves what a walk moves."""
    return rows.astype(np.int32 if int(rows.sum()) <= MOST else np.int64)


def one_group(entries: int) -> NDArray[np.int64]:
    """The starts of the grouping that has all entries in one group."""
    return np.array([0, entries], dtype=np.int64)


def chosen_columns(table: Table, columns: Sequence[str] | None, size: int) -> list[str]:
    """The columns to walk over: those given, or all that may leave."""
    if size < 1:
        raise ParameterError("size", size, "at least 1")
    known = table.arrow.column_names
    if columns is None:
        return [name for name in known if name not in table.schema.private]
    require_known(columns, known)
    if not columns:
        raise ParameterError("columns", (), "at least one column")
    return list(dict.fromkeys(columns))


def by_size(table: Table, columns: Sequence[str]) -> list[str]:
    """``columns`` with those of many values last, so that a walk drops most tuples early."""
    return sorted(columns, key=lambda name: len(table.encode(name).values))


def below(mask: int, count: int) -> Iterator[int]:
    """The columns that extend a set, lowest first, so that subsets are visited before it."""
    lowest = (mask & -mask).bit_length() - 1 if mask else count
    yield from range(lowest)


def affordable(columns: int, size: int) -> int:
    """The largest set size for which there are not too many sets."""
    if size < 1:
        raise ParameterError("size", size, "at least 1")
    size = min(size, columns)
    while size > 1 and sum(comb(columns, s) for s in range(1, size + 1)) > _SETS:
        size -= 1
    return size
