"""A table as its distinct tuples and how many rows hold each, counted by an engine."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.engines.large import counted_tuples, is_parquet, open_large
from halfmask.engines.open import is_address
from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.table.normalize import normalize
from halfmask.table.read import bind, declared_schema, typed
from halfmask.table.table import Table, require_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.schema import Schema

LARGE = 2 << 30  # files of more bytes are counted by the engine without being asked


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What is assessed: rows, or distinct tuples with their counts.

    Attributes:
        table: the rows or tuples; of tuples only the columns that were counted.
        counts: how many rows hold each tuple; None where the table holds the rows themselves.
        note: what a reader should know, or nothing.
    """

    table: Table
    counts: NDArray[np.int64] | None = None
    note: str = ""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.table) if self.counts is None else int(self.counts.sum())


def counted(
    source: object,
    *,
    schema: object = None,
    engine: str | None = None,
    table: str | None = None,
    memory_limit: str | None = None,
) -> Counted:
    """Read a small source; have DuckDB or PostgreSQL count a large one.

    Raises:
        SchemaError: no column is a quasi-identifier, or people have several rows.
    """
    if not isinstance(source, str | os.PathLike):
        return Counted(require_table(source))
    place = os.fspath(source)
    declared = declared_schema(source, schema)
    if not stays(place, engine):
        from halfmask.table.read import read

        return Counted(read(place, declared))
    return _by_engine(place, declared, table, memory_limit)


def stays(place: str, engine: str | None) -> bool:
    """Whether the rows of a source stay where they are and are counted by an engine.

    Raises:
        ParameterError: there is no such engine.
    """
    if engine not in (None, "duckdb", "postgres", "memory"):
        raise ParameterError("engine", engine, "duckdb, postgres or memory")
    if is_address(place) or _database(place):
        return True
    if engine is None:
        return Path(place).is_file() and Path(place).stat().st_size > LARGE
    return engine == "duckdb"


def _database(place: str) -> bool:
    return Path(place).suffix.lower() in (".duckdb", ".db")


def _by_engine(place: str, schema: Schema, table: str | None, memory_limit: str | None) -> Counted:
    if not schema.quasi:
        raise SchemaError(
            "No column is a quasi-identifier: give columns the role quasi in the schema or --quasi."
        )
    if schema.person is not None:
        raise InputError(
            "People with several rows are not counted by an engine: read the table "
            "(engine='memory'), or aggregate it to one row per person first."
        )
    names = [*schema.quasi, *schema.sensitive]
    with open_large(place, table=table, memory_limit=memory_limit) as (engine, name):
        tuples, counts = counted_tuples(engine, name, names)
    kept = {name: schema.columns[name] for name in names}
    used = replace(schema, columns=kept, policy={}, policy_file=None)
    texts = schema.missing or ()
    if not is_address(place) and not _database(place) and not is_parquet(place):
        tuples = typed(normalize(tuples, texts or ("",)), used)  # CSV
    found = bind(normalize(tuples, texts), used, "arrow")
    return Counted(
        found,
        counts,
        f"The rows were counted by {engine.name}: {len(found):,} distinct tuples stand for "
        f"{int(counts.sum()):,} rows. Every figure is counted on all rows.",
    )
