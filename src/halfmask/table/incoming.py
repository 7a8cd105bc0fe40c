"""What each column was when it came in, so that what nobody touched can go back the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.dictionary import dictionary_of
from halfmask.table.numbers import is_text

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """The type that a column had outside.

    Attributes:
        type: the Arrow type.
        order: the values of an ordered dictionary, lowest first.
        dtype: the type in the frame's own library, where it says more than Arrow's.
    """

    type: pa.DataType
    order: pa.Array | None = field(default=None, repr=False)
    dtype: Any = None

    @property
    def text(self) -> bool:
        """Whether it was plain text, so that labels are of the same type."""
        return is_text(self.type)

    def restore(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The values of ``column`` in the incoming type; as they are where it cannot hold them.

        A dictionary holds the column's own values only: others are of rows that did not leave.
        """
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            return self._cast(column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return column

    def _cast(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        if pa.types.is_null(self.type) and column.null_count == len(column):
            return pa.chunked_array([pa.nulls(len(column))])
        if pa.types.is_run_end_encoded(self.type):
            values = column.cast(self.type.value_type)
            ends = self.type.run_end_type
            return pa.chunked_array(
                [pc.run_end_encode(c, run_end_type=ends) for c in values.chunks]
            )
        if not pa.types.is_dictionary(self.type):
            return column.cast(self.type)
        present = pc.unique(column.drop_null())
        if self.order is None:
            values = present.take(pc.sort_indices(present))
        else:
            known = self.order.cast(present.type)
            values = known.filter(pc.is_in(known, value_set=present))
        codes = pc.index_in(column.combine_chunks(), value_set=values)
        if isinstance(codes, pa.ChunkedArray):
            codes = codes.combine_chunks()
        array = pa.DictionaryArray.from_arrays(
            codes.cast(self.type.index_type),
            values.cast(self.type.value_type),
            ordered=self.type.ordered,
        )
        return pa.chunked_array([array])


def incoming(arrow: pa.Table, dtypes: Mapping[str, Any] | None = None) -> dict[str, Incoming]:
    """What the columns of ``arrow`` are, with the types of the frame they come from."""
    return {
        name: Incoming(column.type, _order(column), (dtypes or {}).get(name))
        for name, column in zip(arrow.column_names, arrow.columns, strict=True)
    }


def _order(column: pa.ChunkedArray) -> pa.Array | None:
    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return None
    values = dictionary_of(column).dictionary
    return values.cast(pa.string()) if is_text(values.type) else values
