"""A population beside a table: both speak of the same values, so that their classes are the same.

A table whose dictionaries also hold the population's values is made once (``widen``); from then on
codes, hierarchies and classes of the table cover both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InternalError, SchemaError
from halfmask.table.table import Encoded, encode, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table


def widen(table: Table, population: Table, names: Sequence[str]) -> Table:
    """The same table with dictionaries of ``names`` that hold the values of both tables.

    Raises:
        SchemaError: the population lacks a column, holds another type, or repeats a person.
    """
    faults = _faults(table, population, names)
    if faults:
        raise SchemaError(*faults)
    encoded = dict(table._encoded)  # noqa: SLF001 - a second view of the same table
    hierarchies = dict(table._hierarchies)  # noqa: SLF001
    for name in names:
        own, other = table.encode(name), population.encode(name).values
        kind = other.type if pa.types.is_null(own.values.type) else own.values.type
        values = own.values.cast(kind)
        both = encode(pa.chunked_array([values, other.cast(kind)]))
        column = table.schema.columns.get(name)
        if column is not None and column.order is not None:
            both = in_order(name, both, column.order)
        if len(both.values) > len(own.values):
            encoded[name] = Encoded(both.values, _places(values, both.values)[own.codes])
            hierarchies.pop(name, None)
    return replace(table, _encoded=encoded, _hierarchies=hierarchies)


def codes(table: Table, population: Table, name: str) -> NDArray[np.int32]:
    """Per row of the population, the code that its value has in ``table``."""
    values = table.encode(name).values
    places = _places(population.encode(name).values.cast(values.type), values)
    if (places < 0).any():
        raise InternalError(f"Column {name!r}: the table was not widened to its population.")
    return places[population.encode(name).codes]


def _places(values: pa.Array, known: pa.Array) -> NDArray[np.int32]:
    """The position of each value in ``known``; -1 where it is not there."""
    found = pc.fill_null(pc.index_in(values, known), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int32)


def _faults(table: Table, population: Table, names: Sequence[str]) -> list[str]:
    faults = []
    for name in names:
        if name not in population.arrow.column_names:
            faults.append(f"The population has no column '{name}', a quasi-identifier: add it.")
            continue
        own, other = table.encode(name).values.type, population.encode(name).values.type
        if not _comparable(own, other):
            faults.append(
                f"Column '{name}' is {own} in the table and {other} in the population: "
                "give both the same kind of values."
            )
    person = population.schema.person
    if person is not None and len(population.encode(person).values) < len(population):
        faults.append("The population holds several rows of one person: give one row per person.")
    if len(population) == 0:
        faults.append(
            "The population is empty: give the people among whom those of the table hide."
        )
    return faults


def _comparable(own: pa.DataType, other: pa.DataType) -> bool:
    if own == other or pa.types.is_null(own) or pa.types.is_null(other):
        return True
    if pa.types.is_floating(own):
        return bool(pa.types.is_floating(other) or pa.types.is_integer(other))
    families = (pa.types.is_integer, is_text)
    return any(family(own) and family(other) for family in families)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
