"""A table as its distinct tuples and how many rows hold each, counted by an engine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.open import is_address
from halfmask.errors import InputError, ParameterError
from halfmask.table.decimal_comma import has_comma
from halfmask.table.normalize import normalize
from halfmask.table.read import bind, declared_schema, read, typed
from halfmask.table.table import Table, require_table
from halfmask.table.weights import checked, weights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.table.schema import Schema
    from halfmask.table.weights import Weights

LARGE = 2 << 30  # files of more bytes are counted by the engine without being asked


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
        opening: opens the source again, where its rows stayed there.
        weights: how many people of the population the rows stand for, where that was asked.
    """

    table: Table
    counts: NDArray[np.int64] | None = None
    note: str = ""
    engine: str = ""
    left_out: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    opening: Callable[[], AbstractContextManager[Any]] | None = field(default=None, repr=False)
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
        if name not in self.left_out or self.opening is None:
            values, whole = self.table.arrow[name].unique(), True
        else:
            from halfmask.engines.large import distinct_values

            with self.opening() as (running, table):
                values, whole = distinct_values(running, table, name, most)
        found = pc.drop_null(pc.cast(values, pa.string()))
        return found.filter(pc.not_equal(found, "")), whole


def counted(
    source: object,
    columns: Callable[[Schema], Sequence[str]],
    *,
    schema: object = None,
    engine: str | None = None,
    table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    optional: Sequence[str] = (),
    weights: str | None = None,
) -> Counted:
    """Read a small source; have DuckDB or PostgreSQL count a large one.

    Args:
        source: a table (or, with ``schema``, a frame), the name of a file, or the address of a
            database.
        columns: which columns are counted. People count one by one where their column is among
            them, so that every distinct tuple of a person comes back.
        schema: as for ``read``.
        engine: see ``stays``.
        table: which table of a database.
        memory_limit: how much memory DuckDB may take.
        delimiter: what stands between the fields of a text file; None: detected.
        encoding: the character encoding of a text file; None: detected.
        optional: columns that are counted too where the source has them and they may leave.
        weights: a column whose numbers are added up beside the counts.
    """
    if not isinstance(source, str | os.PathLike):
        return _read(
            require_table(source)
            if schema is None
            else read(source, declared_schema(source, schema)),
            weights,
        )
    place = os.fspath(source)
    declared = declared_schema(source, schema)
    if not stays(place, engine, memory_limit):
        return _read(read(place, declared, delimiter=delimiter, encoding=encoding), weights)
    from halfmask.engines.large import counted_tuples, open_large
    from halfmask.engines.weighed import split_off

    names = list(dict.fromkeys(columns(declared)))
    opening = partial(
        open_large,
        place,
        table=table,
        memory_limit=memory_limit,
        delimiter=delimiter or declared.delimiter,
        encoding=encoding or declared.encoding,
    )
    with opening() as (running, name):
        there = list(running.columns(name) or ())
        held = set(there) - {*names, *declared.private}
        names += [one for one in dict.fromkeys(optional) if one in held]
        if not names:
            raise InputError("The source has none of the columns that are compared: check it.")
        used = _used(declared, names)
        if used.policy_file is not None:  # the demands stand in a file of their own
            names = [one for one in names if one not in used.policy.values()]
        sums = [] if weights is None else _sums(place, declared, running, name, weights)
        tuples, counts = counted_tuples(running, name, names, more=sums)
    tallied = None
    if weights is not None:
        tuples, tallied = split_off(tuples, counts)
    found = _bound(place, used, tuples, counts, running.name)
    if weights is not None and tallied is not None:
        found = replace(found, weights=checked(found.table, weights, tallied, found.rows))
    left_out = tuple(one for one in there if one not in names)
    return replace(found, left_out=left_out, private=declared.private, opening=opening)


def _read(table: Table, weights: str | None = None) -> Counted:
    """Rows that are in memory."""
    known = None if weights is None else weights_of(table, weights)
    return Counted(table, private=table.schema.private, weights=known)


def _sums(place: str, schema: Schema, engine: Engine, table: str, weights: str) -> list[exp.Expr]:
    """The aggregates of the weights of a source."""
    from halfmask.engines.weighed import weight_sums

    return weight_sums(engine, table, weights, written=_is_csv(place), comma=has_comma(schema))


def _is_csv(place: str) -> bool:
    from halfmask.engines.large import is_parquet

    return not is_address(place) and not is_parquet(place)


def stays(place: str, engine: str | None, memory_limit: str | None = None) -> bool:
    """Whether the rows of a source stay where they are and are counted by an engine.

    A database counts its own rows, DuckDB those of a large file or where a memory limit is given.

    Raises:
        ParameterError: there is no such engine, or it does not go with the source.
    """
    if engine not in (None, "duckdb", "postgres", "memory"):
        raise ParameterError("engine", engine, "duckdb, postgres or memory")
    if is_address(place):
        if engine == "memory":
            raise ParameterError("engine", engine, "nothing: a database counts its own rows")
        return True
    if engine == "postgres":
        raise ParameterError("engine", engine, "a postgres:// address in place of the file")
    if engine is None and memory_limit is not None:
        return True
    if engine is None:
        return Path(place).is_file() and Path(place).stat().st_size > LARGE
    return engine == "duckdb"


def _used(schema: Schema, names: Sequence[str]) -> Schema:
    """What the schema says of the columns that are counted."""
    policy = {demand: name for demand, name in schema.policy.items() if name in names}
    return replace(
        schema,
        columns={name: column for name, column in schema.columns.items() if name in names},
        person=schema.person if schema.person in names else None,
        policy=policy,
        policy_file=schema.policy_file if policy else None,
    )


def _bound(
    place: str, schema: Schema, tuples: pa.Table, counts: NDArray[np.int64], engine: str
) -> Counted:
    """Make a table of distinct tuples, with the types that its rows would have."""
    texts = schema.missing or ()
    if _is_csv(place):
        tuples = typed(normalize(tuples, texts or ("",)), schema)
    found = bind(normalize(tuples, texts), schema, "arrow")
    return Counted(
        found,
        counts,
        f"The rows were counted by {engine}: {len(found):,} distinct tuples stand for "
        f"{int(counts.sum()):,} rows. Every figure is counted on all rows.",
        engine,
    )
