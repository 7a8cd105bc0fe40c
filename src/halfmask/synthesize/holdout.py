"""Rows that are kept out of a model: the control against which its risk is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.coclustering.prepare import cut_column
from halfmask.errors import ParameterError
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.prepare import ColumnParts


def split(table: Table, share: float, random: np.random.Generator) -> tuple[Table, Table | None]:
    """The rows to learn from and those held out; people with several rows stay together.

    Raises:
        ParameterError: the share is not from 0 to below 1, or leaves one side empty.
    """
    if not 0 <= share < 1:
        raise ParameterError("holdout", share, "from 0 to below 1")
    if share == 0:
        return table, None
    if table.schema.person is None:
        owner, people = np.arange(len(table)), len(table)
    else:
        encoded = table.encode(table.schema.person)
        owner, people = encoded.codes, len(encoded.values)
    out = np.zeros(people, dtype=bool)
    out[random.choice(people, round(share * people), replace=False)] = True
    held = out[owner]
    if held.all() or not held.any():
        raise ParameterError("holdout", share, "a share that leaves rows on both sides")
    return _rows(table, ~held), _rows(table, held)


def held_out_codes(
    columns: Sequence[ColumnParts], learned: Table, held: Table
) -> NDArray[np.int32]:
    """(rows, columns) the parts of held-out rows; values that were not learned are a new part."""
    out = []
    for column in columns:
        if column.cuts is not None:
            out.append(cut_column(held, column.name, column.cuts).codes)
            continue
        known = {value: i for i, value in enumerate(learned.encode(column.name).values.to_pylist())}
        encoded = held.encode(column.name)
        places = [known.get(value, len(known)) for value in encoded.values.to_pylist()]
        out.append(np.array(places, dtype=np.int32)[encoded.codes])
    return np.column_stack(out).astype(np.int32)


def _rows(table: Table, chosen: NDArray[np.bool_]) -> Table:
    return Table(
        table.arrow.filter(pa.array(chosen)), table.schema, origin=table.origin, given=table.given
    )
