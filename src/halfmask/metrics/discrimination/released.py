"""The released side of a column, as labels or as the blocks that hold what a label covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.covering import Released, tightest_class
from halfmask.metrics.discrimination.columns import CodedColumn
from halfmask.metrics.discrimination.partition import partitioning
from halfmask.metrics.risk.pairing import pairs_in_order
from halfmask.metrics.weighted import tally
from halfmask.table.table import encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides

_HALF = 0.5  # the share of released rows that must find their people


def released_column(
    both: Sides, name: str, partition: object = None
) -> tuple[CodedColumn, tuple[str, ...]]:
    """The released rows of a column, in blocks if a partition is given, and remarks.

    Raises:
        InputError: the partition does not fit the values.
    """
    column = both.columns[name]
    if partition is None:
        return CodedColumn(column.after, column.labels, range(column.labels)), ()
    block_of, blocks = _block_of_leaf(both, column, partition)
    held, begins = block_of[column.covered], column.starts[:-1]
    low, high = np.minimum.reduceat(held, begins), np.maximum.reduceat(held, begins)
    place = np.where(low == high, low, blocks + np.arange(column.labels)).astype(np.int32)
    size = blocks + column.labels
    several = int((low != high).sum())
    notes = (
        (f"{several} released label(s) of {name} cover several blocks and stand for themselves.",)
        if several
        else ()
    )
    return CodedColumn(place[column.after], size, range(size)), notes


def _block_of_leaf(
    both: Sides, column: SharedColumn, partition: object
) -> tuple[NDArray[np.int64], int]:
    """The block of each leaf, of the original's values and of those that are new."""
    stated = partitioning(partition)
    own = stated.bind(column.name, both.original.encode(column.name).values)
    block_of = np.empty(column.leaves, dtype=np.int64)
    block_of[: column.known] = own.places
    if column.leaves == column.known:
        return block_of, len(own.names)
    import pyarrow as pa

    fresh = np.flatnonzero(column.covered[column.starts[:-1]] >= column.known)
    values = encode(both.rows[column.name]).values.take(pa.array(fresh))
    new = stated.bind(column.name, values)
    number = {block: i for i, block in enumerate(own.names)}
    places = [number.setdefault(block, len(number)) for block in new.names]
    block_of[column.covered[column.starts[:-1][fresh]]] = np.array(places)[new.places]
    return block_of, len(number)


class Owners:
    """Which released labels each original row has, as far as the assessor can tell.

    Attributes:
        kept: whether an original row is in the release.
        words: how rows were paired.
    """

    def __init__(self, released: Released, owner: NDArray[np.int64], words: str) -> None:
        self._released, self._owner = released, owner
        self.kept: NDArray[np.bool_] = owner >= 0
        self.words = words

    def labels(self, place: int) -> CodedColumn:
        """The label of each original row in one quasi-identifier; rows left out have their own."""
        column = self._released.columns[place]
        held = self._released.labels[place][self._owner]
        codes = np.where(self.kept, held, column.labels).astype(np.int32)
        return CodedColumn(codes, column.labels + 1, range(column.labels + 1))


def owners(both: Sides, *, same_order: bool = False) -> Owners | None:
    """Pair original rows with released classes; None where the rows stand for nobody.

    Where the classes that values tell have the published sizes, the pairing follows from the
    values; else rows are taken to stand in the tightest class that covers them.
    """
    released = Released(both.quasi)
    if same_order:
        pairs_in_order(both)
        return Owners(released, released.ids, "Rows were paired by their place.")
    if any(column.foreign for column in both.quasi):
        return None
    owner = tightest_class(both.quasi)
    kept = owner >= 0
    counts = both.original_counts
    found = tally(owner[kept], len(released), None if counts is None else counts[kept])
    if (found == released.rows).all():
        return Owners(released, owner, "Which row became which follows from the values.")
    agree = float(np.minimum(found, released.rows).sum()) / both.after
    if agree < _HALF:
        return None
    return Owners(
        released,
        owner,
        f"Labels overlap: each row was taken to have the tightest that cover it, which agrees with "
        f"{agree:.1%} of the published rows: identity is an estimate then.",
    )
