"""A table of rows about people, with its schema; columns are dictionary-encoded once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, SchemaError
from halfmask.table.demands import KEY, key_values
from halfmask.table.dictionary import dictionary_of
from halfmask.table.hierarchy import Hierarchy, canonical, flat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.table.incoming import Incoming
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


@dataclass(frozen=True, eq=False)
class Table:
    """Rows about people and what their columns are.

    Attributes:
        arrow: the rows.
        schema: the role, kind and hierarchy of each column.
        origin: the kind that came in and that a release goes back as.
        given: what the columns were when they came in and go back as; a column that is not here
            goes back as plain values.
        memo: tables that were made of this one and need not be made twice.
    """

    arrow: pa.Table
    schema: Schema
    origin: str = "arrow"
    given: Mapping[str, Incoming] = field(default_factory=dict, repr=False)
    _encoded: dict[str, Encoded] = field(default_factory=dict, repr=False)
    _hierarchies: dict[str, Hierarchy] = field(default_factory=dict, repr=False)
    memo: dict[str, Table] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __repr__(self) -> str:
        roles = ", ".join(f"{name}: {column.role}" for name, column in self.schema.columns.items())
        return f"Table({len(self):,} rows; {roles or 'no roles declared'})"

    def encode(self, name: str) -> Encoded:
        """The dictionary codes of one column, or of people's demands (``demand_key``); once."""
        if name not in self._encoded:
            if name.startswith(KEY):
                self._encoded[name] = encode(pa.chunked_array([key_values(self, name)]))
                return self._encoded[name]
            encoded = encode(self.arrow[name])
            column = self.schema.columns.get(name)
            if column is not None and column.order is not None:
                encoded = in_order(name, encoded, column.order)
            # Of several epsilons of one person the smallest counts; other demands must be one.
            several = set(self.schema.policy_names) - {self.schema.policy.get("epsilon")}
            if name in several and self.schema.person is not None:
                one_demand(name, encoded, self.encode(self.schema.person))
            self._encoded[name] = encoded
        return self._encoded[name]

    def hierarchy(self, name: str) -> Hierarchy:
        """The hierarchy of one column bound to its values; without a builder: as is, or nothing."""
        from halfmask.table.hierarchies.auto import Auto, settled

        if name not in self._hierarchies:
            values = self.encode(name).values
            column = self.schema.columns.get(name)
            builder = column.hierarchy if column else None
            if isinstance(builder, Auto):
                return settled(self).hierarchy(name)
            built = builder.build(name, values) if builder else flat(values.to_pylist())
            self._hierarchies[name] = built
        return self._hierarchies[name]


def encode(column: pa.ChunkedArray) -> Encoded:
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


def one_demand(name: str, demands: Encoded, person: Encoded) -> None:
    """Refuse a policy column in which one person demands several things.

    Their rows may stand in different classes, each of which would know one of the demands only.

    Raises:
        SchemaError: says how many people.
    """
    if len(person.values) == len(person.codes):
        return
    known = np.empty(len(person.values), dtype=np.int32)
    known[person.codes] = demands.codes
    people = len(np.unique(person.codes[known[person.codes] != demands.codes]))
    if people:
        raise SchemaError(
            f"Policy column '{name}': {people} person(s) have rows with different demands. Give"
            " one demand per person, such as the highest, in all rows."
        )


def require_table(value: object) -> Table:
    """Return ``value`` if it is a table; frames and files have to be read first."""
    if not isinstance(value, Table):
        kind, home = type(value).__name__, type(value).__module__.partition(".")[0]
        raise InputError(
            f"A {kind if home == 'builtins' else f'{home} {kind}'} is not a table with a schema: "
            "read it first, "
            'such as hm.read(frame, schema="people.toml").'
        )
    return value
