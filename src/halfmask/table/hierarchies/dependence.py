"""Hierarchies that follow the values of the rows, and whether they stay when rows go.

``mask = true`` is as long as the longest code, neighbors without an order are those that the rows
hold: labels of such a hierarchy can show a value of a row that does not leave. A declared hierarchy
gives each value its labels whatever the others are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.dates import Dates
from halfmask.table.hierarchies.intervals import Intervals
from halfmask.table.hierarchies.ladder import Flat, Mask, Ordered
from halfmask.table.hierarchies.tree import Tree
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


def follows_values(builder: object, kind: pa.DataType) -> bool:
    """Whether the labels of a value of type ``kind`` may depend on other values of its column."""
    if builder is None or isinstance(builder, Flat | Csv | Tree):
        return False
    if isinstance(builder, Mask):
        return builder.length is None
    if isinstance(builder, Ordered):
        return bool(builder.groups) and not builder.order
    if isinstance(builder, Intervals | Dates):
        # One text decides whether all are written as whole numbers, or as days.
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(is_text(inner) or pa.types.is_uint64(inner))
    return True


def following(table: Table, names: Sequence[str]) -> list[str]:
    """Those of ``names`` whose hierarchy follows the values of the rows."""
    columns, types = table.schema.columns, table.arrow.schema
    return [
        name
        for name in names
        if name in table.found or follows_values(columns[name].hierarchy, types.field(name).type)
    ]


def labels_stay(whole: Table, rest: Table, keep: NDArray[np.bool_], names: Sequence[str]) -> bool:
    """Whether the rows ``keep`` of ``whole``, alone in ``rest``, have the same labels there."""
    for name in names:
        old, new = whole.hierarchy(name), rest.hierarchy(name)
        if old.height != new.height:
            return False
        codes, first = np.unique(rest.encode(name).codes, return_index=True)
        before = whole.encode(name).codes[keep][first]
        for level in range(1, old.height + 1):
            if _labels(old, level, before) != _labels(new, level, codes):
                return False
    return True


def _labels(hierarchy: Hierarchy, level: int, codes: NDArray[np.int32]) -> list[object]:
    return [hierarchy.labels[level][code] for code in hierarchy.maps[level][codes].tolist()]
