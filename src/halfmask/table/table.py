"""Rows about people wherever they are, with their schema; columns are dictionary-encoded once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, SchemaError
from halfmask.table.demands import HOUSEHOLD, KEY, key_values
from halfmask.table.hierarchy import Hierarchy, canonical, flat
from halfmask.table.schema import REST
from halfmask.table.values import dictionary_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from halfmask.table.files.rows import Incoming
    from halfmask.table.proposals.counts import ColumnCounts
    from halfmask.table.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """One column as small integers.

    Attributes:
        values: the distinct values in ascending order (an ordinal column's own, where one is
            declared), the missing value (null) last.
        codes: per row, the position of its value in ``values``.
    """

    values: pa.Array
    codes: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Encoded({len(self.values)} values, {len(self.codes)} rows)"


class StoredRows(Protocol):
    """Rows that stay in a file or database, where an engine counts them.

    ``engine`` says which, ``memory_limit`` how much memory it was given; ``are_texts`` whether all
    values are texts, which become numbers and dates only as they are read.
    """

    @property
    def engine(self) -> str: ...  # noqa: D102 - the class says what it is
    @property
    def memory_limit(self) -> str | None: ...  # noqa: D102
    @property
    def are_texts(self) -> bool: ...  # noqa: D102

    def columns(self) -> Mapping[str, pa.DataType]:
        """The columns and their types."""
        ...

    def count(self) -> int:
        """How many rows there are."""
        ...

    def require_room(self, width: int) -> None:
        """Refuse rows of so many bytes each where a memory limit was given."""
        ...

    def distinct_values(self, column: str, most: int) -> tuple[pa.ChunkedArray, bool]:
        """Distinct values of a column, no more than ``most``, and whether these are all."""
        ...

    def column_counts(self, schema: Schema) -> ColumnCounts | None:
        """Every column as it is counted there; None where it has to be read to be known."""
        ...

    def collect(self, schema: Schema) -> Table:
        """All rows in memory, bound to ``schema``."""
        ...

    def open(self) -> AbstractContextManager[tuple[Any, str]]:
        """An engine over the rows, and the name that their table has in it."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """Rows about people and what their columns are.

    Rows that stay in a file or database are counted there; they come into memory once, when they
    are first asked for one by one (``arrow``, ``encode``, ``hierarchy``).

    Attributes:
        rows: the rows in memory, or where they stay.
        schema: the role, kind and hierarchy of each column.
        origin: the kind that came in and that a release goes back as.
        given: what the columns were when they came in and go back as; a column that is not here
            goes back as plain values.
        memo: tables that were made of this one and need not be made twice.
        found: the columns whose hierarchy was found from all these rows together.
        place: the file or database that the rows were read from, without who may open it, and
            which table of it; None where they came from no such place.
        notes: what reading them had to decide, in sentences.
    """

    rows: pa.Table | StoredRows
    schema: Schema
    origin: str = "arrow"
    given: Mapping[str, Incoming] = field(default_factory=dict, repr=False)
    _encoded: dict[str, Encoded] = field(default_factory=dict, repr=False)
    _hierarchies: dict[str, Hierarchy] = field(default_factory=dict, repr=False)
    memo: dict[str, Table] = field(default_factory=dict, repr=False)
    found: frozenset[str] = field(default_factory=frozenset, repr=False)
    place: tuple[str, str | None] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if REST in self.schema.columns:
            object.__setattr__(self, "schema", self.schema.over(self.column_names))

    @property
    def stored(self) -> StoredRows | None:
        """Where the rows stay; None where they are in memory."""
        return None if isinstance(self.rows, pa.Table) else self.rows

    @property
    def arrow(self) -> pa.Table:
        """The rows in memory."""
        return self.collect().rows

    @property
    def column_names(self) -> list[str]:
        """The names of all columns, in their order."""
        return self.arrow.column_names if self.stored is None else list(self.stored.columns())

    def collect(self) -> Table:
        """The table with its rows in memory: this one, or, made once, that of its stored rows."""
        if self.stored is None:
            return self
        if "collected" not in self.memo:
            found = self.stored.collect(self.schema)
            self.memo["collected"] = replace(found, place=self.place, notes=self.notes)
        return self.memo["collected"]

    def __len__(self) -> int:
        return int(self.arrow.num_rows) if self.stored is None else self.stored.count()

    def with_schema(self, schema: Schema, arrow: pa.Table | None = None) -> Table:
        """The same rows under another schema; ``arrow``: these rows in their place."""
        rows = self.rows if arrow is None else arrow
        return Table(rows, schema, self.origin, self.given, place=self.place, notes=self.notes)

    def name_people(self) -> Table:
        """The same rows, of which the tokens of a release say whose they are."""
        schema = self.schema.name_people()
        return self if schema is self.schema else self.with_schema(schema)

    def keep(self, mask: NDArray[np.bool_]) -> Table:
        """The rows that ``mask`` marks as a table of their own, which knows nothing of the others.

        Codes, hierarchies and ranges are made anew, of these rows alone.
        """
        return self.with_schema(self.schema, self.arrow.filter(pa.array(mask)))

    def __repr__(self) -> str:
        roles = ", ".join(f"{name}: {column.role}" for name, column in self.schema.columns.items())
        # Counting may take a database long: what is only shown does not have it counted.
        size = f"{len(self):,} rows" if self.stored is None else f"rows in {self.stored.engine}"
        notes = "; see its notes" if self.notes else ""
        return f"Table({size}; {roles or 'no roles declared'}{notes})"

    def _repr_html_(self) -> str:
        """Its columns and how many rows it has; never a row of anybody."""
        from halfmask.table.document import lines, schema_parts, view

        size = f"{len(self):,} rows" if self.stored is None else f"rows in {self.stored.engine}"
        parts = schema_parts(self.schema, self.column_names)
        return view(f"Table of {size}", parts, lines(self.notes))

    def encode(self, name: str) -> Encoded:
        """The dictionary codes of one column, or of people's demands (``demand_key``); once."""
        if self.stored is not None:
            return self.collect().encode(name)
        if name not in self._encoded:
            if name.startswith(KEY):
                self._encoded[name] = encode_column(pa.chunked_array([key_values(self, name)]))
                return self._encoded[name]
            if name == HOUSEHOLD:
                self._encoded[name] = encode_column(self.arrow[self.schema.household])
                return self._encoded[name]
            encoded = encode_column(self.arrow[name])
            column = self.schema.columns.get(name)
            if column is not None and column.order is not None:
                encoded = in_order(name, encoded, column.order)
            self._encoded[name] = encoded
        return self._encoded[name]

    def hierarchy(self, name: str) -> Hierarchy:
        """The hierarchy of one column bound to its values; without a builder: as is, or nothing."""
        from halfmask.table.hierarchies.builders import Auto, find_automatic

        if self.stored is not None:
            return self.collect().hierarchy(name)
        if name not in self._hierarchies:
            values = self.encode(name).values
            column = self.schema.columns.get(name)
            builder = column.hierarchy if column else None
            if isinstance(builder, Auto):
                return find_automatic(self).hierarchy(name)
            built = builder.build(name, values) if builder else flat(values.to_pylist())
            self._hierarchies[name] = built
        return self._hierarchies[name]

    def bind_codes(self, name: str, encoded: Encoded, hierarchy: Hierarchy) -> None:
        """State the codes and the hierarchy of a column whose rows stand for others too."""
        self._encoded[name] = encoded
        self._hierarchies[name] = hierarchy


def encode_column(column: pa.ChunkedArray) -> Encoded:
    """Dictionary-encode a column with ascending values, null last."""
    array = dictionary_of(column)
    dictionary, indices = array.dictionary, array.indices
    used = pc.unique(indices.drop_null())
    order = pc.take(used, pc.sort_indices(pc.take(dictionary, used)))
    values = pc.take(dictionary, order)
    places = order.to_numpy(zero_copy_only=False)
    ready = np.array_equal(places, np.arange(len(dictionary))) and not array.null_count
    if ready and indices.type == pa.int32():
        return Encoded(values, indices.to_numpy())  # the memory is shared
    rank = np.full(len(dictionary) + 1, len(values), dtype=np.int32)
    rank[places] = np.arange(len(values), dtype=np.int32)
    positions = pc.fill_null(indices, len(dictionary)).to_numpy(zero_copy_only=False)
    codes = rank[positions]
    if array.null_count:
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return Encoded(values, codes)


def in_order(name: str, encoded: Encoded, order: Sequence[object]) -> Encoded:
    """The same codes with the values in a declared order.

    Raises:
        SchemaError: values of the column are not in the order; says how many.
    """
    places = {canonical(value): place for place, value in enumerate(order)}
    held = [None if value is None else canonical(value) for value in encoded.values.to_pylist()]
    absent = sum(text is not None and text not in places for text in held)
    if absent:
        raise SchemaError(
            f"Column '{name}': {absent} distinct value(s) are not in its order. Add them."
        )
    ranks = np.array([len(places) if text is None else places[text] for text in held])
    sequence = np.argsort(ranks, kind="stable")
    position = np.empty(len(sequence), dtype=np.int32)
    position[sequence] = np.arange(len(sequence), dtype=np.int32)
    return Encoded(encoded.values.take(pa.array(sequence)), position[encoded.codes])


def require_table(value: object) -> Table:
    """Return ``value`` with its rows in memory if it is a table; frames have to be read first."""
    if not isinstance(value, Table):
        kind, home = type(value).__name__, type(value).__module__.partition(".")[0]
        raise InputError(
            f"A {kind if home == 'builtins' else f'{home} {kind}'} is not a table with a schema: "
            "read it first, "
            'such as hm.read(frame, schema="people.toml").'
        )
    return value.collect()
