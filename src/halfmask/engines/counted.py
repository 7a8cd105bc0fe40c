"""A table as its distinct tuples and how many rows hold each, counted by an engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.open import is_address
from halfmask.errors import InputError, SchemaError
from halfmask.table.bind import bind, typed
from halfmask.table.decimal_comma import has_comma
from halfmask.table.demands import narrowed, sources, without_policies
from halfmask.table.normalize import normalize
from halfmask.table.weights import checked, weights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.engines.source import Source
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table
    from halfmask.table.weights import Weights


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What is measured: rows, or distinct tuples with their counts.

    Attributes:
        table: the rows or tuples; of tuples only the columns that were counted.
        counts: how many rows hold each tuple; None where the table holds the rows themselves.
        note: what a reader should know, or nothing.
        engine: who counted; nothing where rows were read.
        left_out: the columns of the source that were not counted.
        private: the columns of the source that must not leave.
        source: opens the rows again, where they stayed there.
        weights: how many people of the population the rows stand for, where that was asked.
    """

    table: Table
    counts: NDArray[np.int64] | None = None
    note: str = ""
    engine: str = ""
    left_out: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    source: Source | None = field(default=None, repr=False)
    weights: Weights | None = field(default=None, repr=False)

    @property
    def each(self) -> NDArray[np.int64]:
        """How many rows each entry of the table stands for."""
        return np.ones(len(self.table), dtype=np.int64) if self.counts is None else self.counts

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.table) if self.counts is None else int(self.counts.sum())

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the source, those that were counted first."""
        return (*self.table.arrow.column_names, *self.left_out)

    def texts(self, name: str, most: int) -> tuple[pa.Array, bool]:
        """Distinct values of a column as texts, ``most`` of them, and whether these are all."""
        if name not in self.left_out or self.source is None:
            values, whole = self.table.arrow[name].unique(), True
        else:
            from halfmask.engines.large import distinct_values

            with self.source.open() as (running, table):
                values, whole = distinct_values(running, table, name, most)
        return pc.drop_null(pc.cast(values, pa.string())), whole


def counted(
    source: Source,
    columns: Callable[[Schema], Sequence[str]],
    optional: Sequence[str] = (),
    *,
    weights: str | None = None,
) -> Counted:
    """Read a small source; have DuckDB or PostgreSQL count a large one.

    Args:
        source: the rows and how to come by them.
        columns: which columns are counted. People count one by one where their column is among
            them, so that every distinct tuple of a person comes back.
        optional: columns that are counted too where the source has them and they may leave.
        weights: a column whose numbers are added up beside the counts.
    """
    if not source.stays:
        table = source.read()
        known = None if weights is None else weights_of(table, weights)
        return Counted(table, private=table.schema.private, weights=known)
    from halfmask.engines.large import counted_tuples
    from halfmask.engines.weighed import split_off

    declared = source.declared
    source = replace(source, schema=declared)
    names = list(dict.fromkeys(columns(declared)))
    with source.open() as (running, name):
        there = list(running.columns(name) or ())
        held = set(there) - {*names, *declared.private}
        names += [one for one in dict.fromkeys(optional) if one in held]
        if not names:
            raise InputError("The source has none of the columns that are compared: check it.")
        faults = [f for one in sources(declared) for f in one.unknown([*there, *one.names])]
        if faults:
            raise SchemaError(*faults)
        used = _used(declared, names)
        if used.policy_file is not None:  # the demands stand in a file of their own
            names = [one for one in names if one not in used.policy_names or one in there]
        sums = [] if weights is None else _sums(source.place, declared, running, name, weights)
        tuples, counts = counted_tuples(running, name, names, more=sums)
    if weights is None:
        found = _bound(source.place, used, tuples, counts, running.name)
    else:
        tuples, tallied = split_off(tuples, counts)
        found = _bound(source.place, used, tuples, counts, running.name)
        found = replace(found, weights=checked(found.table, weights, tallied, found.rows))
    left_out = tuple(one for one in there if one not in names)
    return replace(found, left_out=left_out, private=declared.private, source=source)


def _sums(place: str, schema: Schema, engine: Engine, table: str, weights: str) -> list[exp.Expr]:
    """The aggregates of the weights of a source."""
    from halfmask.engines.weighed import weight_sums

    return weight_sums(engine, table, weights, written=_is_csv(place), comma=has_comma(schema))


def _is_csv(place: str) -> bool:
    from halfmask.engines.large import is_parquet

    return not is_address(place) and not is_parquet(place)


def _used(schema: Schema, names: Sequence[str]) -> Schema:
    """What the schema says of the columns that are counted; demands are read all or not at all."""
    wanted = {*schema.policy_names, *((schema.person,) if schema.person else ())}
    read = wanted <= set(names)
    used = replace(
        schema if read else without_policies(schema),
        columns={name: column for name, column in schema.columns.items() if name in names},
        person=schema.person if schema.person in names else None,
    )
    return narrowed(schema, used, names)


def _bound(
    place: str, schema: Schema, tuples: pa.Table, counts: NDArray[np.int64], engine: str
) -> Counted:
    """Make a table of distinct tuples, with the types that its rows would have."""
    texts = schema.missing or ()
    if _is_csv(place):
        texts = ("",) if schema.missing is None else texts
        tuples = typed(normalize(tuples, texts), schema)
    found = bind(normalize(tuples, texts), schema, "arrow")
    return Counted(
        found,
        counts,
        f"The rows were counted by {engine}: {len(found):,} distinct tuples stand for "
        f"{int(counts.sum()):,} rows. Every figure is counted on all rows.",
        engine,
    )
