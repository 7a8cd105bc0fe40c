"""A walk over all column sets up to a size, each grouping refined from the one before.

Sets are visited so that every subset comes first. Rows collapse to distinct tuples once; a tuple
that stands alone in its group leaves the walk below that set, because nothing can split it further.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError
from halfmask.table.names import require_known
from halfmask.table.packed_key import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.discrimination.partition import Blocks
    from halfmask.table.table import Table


MOST = 2**31 - 1  # rows up to which narrow counters do

_SETS = 4000  # column sets that are looked at without being asked


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The distinct tuples of some columns, as packed keys.

    Attributes:
        columns: the names.
        keys: (tuples, words) the packed codes; ``layout`` says where each column stands.
        rows: how many rows hold each tuple.
        total: how many rows there are.
        of_row: the tuple of each row of the table.
    """

    columns: tuple[str, ...]
    keys: NDArray[np.uint64]
    layout: Layout
    rows: NDArray[np.int32] | NDArray[np.int64]
    total: int
    of_row: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def start(self) -> NDArray[np.int64]:
        """The starts of the grouping that has all tuples in one group."""
        return np.array([0, len(self)], dtype=np.int64)

    def field(self, column: int) -> tuple[int, np.uint64, np.uint64]:
        """Where a column's code stands in the keys: word, shift and mask."""
        layout = self.layout
        return int(layout.words[column]), layout.shifts[column], layout.masks[column]

    def names(self, mask: int) -> tuple[str, ...]:
        """The columns of a set given as a bit mask."""
        return tuple(name for i, name in enumerate(self.columns) if mask >> i & 1)


def units_of(
    table: Table,
    columns: Sequence[str],
    blocks: Mapping[str, Blocks] | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Units:
    """Collapse the rows of ``table`` to distinct tuples of ``columns`` (of their blocks).

    With ``counts``, each row of ``table`` stands for so many.
    """
    from halfmask.kernels import group

    bound = blocks or {}
    sizes = [
        len(bound[name].names) if name in bound else len(table.encode(name).values)
        for name in columns
    ]
    layout = Layout.of(sizes)
    keys = np.zeros((len(table), int(layout.words.max(initial=0)) + 1), dtype=np.uint64)
    for j, name in enumerate(columns):
        codes = table.encode(name).codes
        codes = bound[name].places[codes] if name in bound else codes
        group.pack(keys, int(layout.words[j]), int(layout.shifts[j]), codes)
    nothing, none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    weights = np.ones(len(table), dtype=np.int64) if counts is None else counts
    ids, unique, rows = group.regroup(keys, weights, nothing, none, none, nothing, none)
    total = int(weights.sum())
    held = rows.astype(np.int32 if total <= MOST else np.int64)
    return Units(tuple(columns), unique, layout, held, total, ids)


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
