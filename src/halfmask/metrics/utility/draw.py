"""A release as rows of the original's types: each label becomes one of the values it covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides


def drawn_leaves(column: SharedColumn, random: np.random.Generator) -> NDArray[np.int64]:
    """Per released row, a leaf under its label, each with the same chance."""
    sizes = column.sizes[column.after]
    pick = np.minimum((random.random(len(sizes)) * sizes).astype(np.int64), sizes - 1)
    return np.asarray(column.covered[column.starts[column.after] + pick])


def draw(sides: Sides, random: np.random.Generator) -> pa.Table:
    """One table of values that the release may stand for."""
    columns = {}
    for name, column in sides.columns.items():
        values = sides.original.encode(name).values
        if column.leaves > column.known:  # new values: the released ones are as they should be
            columns[name] = _plain(sides.rows[name])
        else:
            columns[name] = values.take(pa.array(drawn_leaves(column, random)))
    return pa.table(columns)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
