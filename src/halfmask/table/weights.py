"""Sampling weights: how many people of the population each row of a survey stands for.

A weight belongs to a person: the rows of one person carry the same one and count it once.

A population beside a table: both speak of the same values, so that their classes are the same.

A table whose dictionaries also hold the population's values is made once (``widen``); from then on
codes, hierarchies and classes of the table cover both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InternalError, SchemaError
from halfmask.table.columns import abbreviate_names, require_known
from halfmask.table.table import Encoded, encode_column, in_order
from halfmask.table.values import (
    cast_dictionary,
    comma_hint,
    dictionary_of,
    is_text,
    number_type,
    used_values,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table


LARGEST = 1e12  # more people than anybody stands for; their sums are far from what overflows


@dataclass(frozen=True, slots=True, eq=False)
class WeightTally:
    """The weights of the rows behind each entry of a table, as an engine or a column gives them.

    Attributes:
        sums: per entry, the weights of its rows together; ``lows`` and ``highs`` the extremes.
        missing: rows without a weight; ``beyond`` and ``below`` those whose weight is not finite
            or above ``LARGEST``, or below 1.
    """

    sums: NDArray[np.float64]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    missing: int
    beyond: int
    below: int


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weights of a table, checked.

    Attributes:
        column: where they stand.
        sums: per entry of the table, the weights of its rows together.
        of_person: per person, the weight; None where every row is another person.
        people: how many people there are.
        total: how many people of the population they stand for.
        equal: whether all have the same weight.
    """

    column: str
    sums: NDArray[np.float64]
    of_person: NDArray[np.float64] | None
    people: int
    total: float
    equal: bool

    @property
    def fraction(self) -> float:
        """The share of the population that is in the table, by the weights."""
        return min(1.0, self.people / self.total)

    def by_class(self, classes: Classes, of_row: NDArray[np.int32]) -> NDArray[np.float64]:
        """Per class, how many people of the population its people stand for."""
        if classes.owners is None or self.of_person is None:
            place, each = of_row, self.sums
        else:
            place, each = classes.owners.unit, self.of_person[classes.owners.person]
        found = np.bincount(place, weights=each, minlength=len(classes))
        return np.asarray(found, dtype=np.float64)


def unweighted_notes(schema: Schema | None, named: Collection[str] = ()) -> tuple[str, ...]:
    """That figures are of the rows as they are, where weights are declared and not ``named``."""
    if schema is None or schema.weight is None or schema.weight in named:
        return ()
    return (
        f"Figures are unweighted: they are of the rows as they are, and the weights of column "
        f"{schema.weight!r} are not used.",
    )


def weights_of(table: Table, column: str) -> Weights:
    """The weights of the rows of ``table``.

    Raises:
        InputError: there is no such column.
        SchemaError: it holds something else than weights; says what to do.
    """
    require_known([column], table.arrow.column_names)
    values = _as_numbers(table.arrow[column])
    require_numbers(column, values.type, values)
    numbers = values.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    missing = values.null_count
    known = numbers[values.is_valid().to_numpy()] if missing else numbers
    tallied = WeightTally(
        numbers,
        numbers,
        numbers,
        missing,
        int((~(known <= LARGEST)).sum()),  # NaN is not above it, and not below it either
        int((known < 1).sum()),
    )
    return check_weights(table, column, tallied, len(table))


def _as_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts that are all numbers as such: text files keep 10.0 as text, lest its zero is lost."""
    inner = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not is_text(inner) or values.null_count == len(values):
        return values
    texts = pa.chunked_array([dictionary_of(values)])
    kind, _ = number_type(used_values(texts))
    return values if kind is None else cast_dictionary(texts, kind)


def check_weights(table: Table, column: str, found: WeightTally, rows: int) -> Weights:
    """The weights of the entries of ``table``, if they are all right.

    Raises:
        SchemaError: they are not; lists every fault.
    """
    faults = _faults(column, found)
    person, people = table.schema.person, rows
    each, total = None, 0.0 if faults else float(found.sums.sum())
    if person is not None and not faults:
        whose = table.encode(person)
        people = len(whose.values)
        each, low = np.zeros(people), np.full(people, np.inf)
        np.maximum.at(each, whose.codes, found.highs)
        np.minimum.at(low, whose.codes, found.lows)
        total = float(each.sum())
        differ = int((each > low).sum())
        if differ:
            faults.append(
                f"Column '{column}' holds different weights for rows of the same person, of "
                f"{differ:,} people: a weight says how many people somebody stands for, so give "
                "each person one."
            )
    if faults:
        raise SchemaError(*faults)
    equal = bool(len(found.sums) == 0 or found.lows.min() == found.highs.max())
    return Weights(column, found.sums, each, people, total, equal)


def require_numbers(column: str, kind: pa.DataType, values: pa.ChunkedArray | None = None) -> None:
    """Refuse a weight column that holds no numbers."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    hint = ""
    if values is not None and is_text(inner):
        hint = comma_hint(pc.drop_null(pc.unique(values.cast(pa.string()))).cast(pa.string()))
    raise SchemaError(
        f"Column '{column}' holds {'text' if is_text(inner) else inner}, not weights: name the "
        f"column that says how many people of the population each row stands for.{hint}"
    )


def _faults(column: str, found: WeightTally) -> list[str]:
    faults = []
    if found.missing:
        faults.append(
            f"Column '{column}': {found.missing:,} row(s) have no weight that is a number. Give "
            "every row one (1 for somebody who stands for nobody else), or leave these rows out."
        )
    if found.beyond:
        faults.append(
            f"Column '{column}': {found.beyond:,} weight(s) are not finite or above {LARGEST:g}, "
            "more people than any population has: correct them."
        )
    if found.below:
        faults.append(
            f"Column '{column}': {found.below:,} weight(s) are below 1, but a weight says how many "
            "people of the population somebody stands for, the person included. If the weights "
            "were scaled to a mean of 1, multiply them by population / sample first."
        )
    return faults


def widen(table: Table, population: Table, names: Sequence[str]) -> Table:
    """The same table with dictionaries of ``names`` that hold the values of both tables.

    Raises:
        SchemaError: the population lacks a column, holds another type, or repeats a person.
    """
    faults = _population_faults(table, population, names)
    if faults:
        raise SchemaError(*faults)
    encoded = dict(table._encoded)  # noqa: SLF001 - a second view of the same table
    hierarchies = dict(table._hierarchies)  # noqa: SLF001
    for name in names:
        own, other = table.encode(name), population.encode(name).values
        kind = other.type if pa.types.is_null(own.values.type) else own.values.type
        values = own.values.cast(kind)
        both = encode_column(pa.chunked_array([values, other.cast(kind)]))
        column = table.schema.columns.get(name)
        if column is not None and column.order is not None:
            both = in_order(name, both, column.order)
        if len(both.values) > len(own.values):
            encoded[name] = Encoded(both.values, _places(values, both.values)[own.codes])
            hierarchies.pop(name, None)  # of fewer values: it is built anew when asked for
    return replace(table, _encoded=encoded, _hierarchies=hierarchies)


def population_codes(table: Table, population: Table, name: str) -> NDArray[np.int32]:
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


def _population_faults(table: Table, population: Table, names: Sequence[str]) -> list[str]:
    lacking = [name for name in names if name not in population.arrow.column_names]
    faults = []
    if len(lacking) == 1:
        faults.append(f"The population has no column '{lacking[0]}', a quasi-identifier: add it.")
    elif lacking:
        faults.append(
            f"The population lacks {len(lacking):,} quasi-identifiers: add "
            f"{abbreviate_names(lacking)}."
        )
    for name in names:
        if name in lacking:
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
    families = (pa.types.is_integer, is_plain_text)
    return any(family(own) and family(other) for family in families)


def is_plain_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
