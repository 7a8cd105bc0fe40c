"""Tables larger than memory: the engine counts distinct tuples, and only these come back.

DuckDB reads CSV and Parquet files and its own databases piece by piece, within a memory limit, and
spills what does not fit to disk; PostgreSQL counts where the rows are.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.engines.duckdb import DuckDB
from halfmask.engines.open import is_address, is_database, open_address
from halfmask.engines.sql import table as named
from halfmask.errors import EngineError, EngineUnavailableError, InputError, ParameterError
from halfmask.table.names import require_known
from halfmask.table.text_file import file_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine

MEMORY = "1GB"
MOST = 50_000_000  # distinct tuples that come back at most
_NAME = "halfmask_rows"
_NO_TEXT = "\x01halfmask\x01"  # DuckDB would read empty texts as missing, whatever the schema says


@contextmanager
def open_large(
    source: str,
    *,
    table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Iterator[tuple[Engine, str]]:
    """An engine over a file or database, and the name that the table has in it.

    Args:
        source: a CSV or Parquet file, a DuckDB database (.duckdb, .ddb) or a PostgreSQL address.
        table: which table of a database.
        memory_limit: how much memory DuckDB may take, such as ``"500MB"``.
        delimiter: what stands between the fields of a CSV file; None: detected.
        encoding: the character encoding of a CSV file; None: UTF-8.
    """
    if is_address(source) and not is_database(source):
        engine = open_address(source)
        try:
            yield engine, _named(table)
        finally:
            engine.close()
        return
    if not file_named(source).is_file():
        raise InputError(f"There is no file {Path(source).name!r}.")
    with limited(memory_limit) as connection:
        yield (
            DuckDB(connection=connection),
            _shown(connection, source, table, {"delim": delimiter, "encoding": encoding}),
        )


@contextmanager
def limited(memory_limit: str | None = None) -> Iterator[Any]:
    """A connection to DuckDB that takes so much memory and spills the rest to disk."""
    with tempfile.TemporaryDirectory(prefix="halfmask-") as spill:
        connection = _connected(memory_limit or MEMORY, spill)
        try:
            yield connection
        finally:
            connection.close()


def counted_tuples(
    engine: Engine,
    table: str,
    columns: Sequence[str],
    *,
    most: int = MOST,
    more: Sequence[exp.Expr] = (),
) -> tuple[pa.Table, NDArray[np.int64]]:
    """The distinct tuples of ``columns`` in order, and how many rows hold each.

    With ``more``, these aggregates of the rows behind each tuple stand beside the columns.

    In order, because engines group in any, and what is drawn from tuples would not repeat.

    Raises:
        InputError: a column is not there, or there are more distinct tuples than ``most``.
    """
    from sqlglot import exp

    known = engine.columns(table)
    if known is None:
        raise InputError(f"The source has no table called {table!r}: name one of its tables.")
    require_known(columns, known)
    names = [exp.column(name, quoted=True) for name in columns]
    counted = exp.Count(this=exp.Star()).as_(_NAME)
    query = exp.select(*names, counted, *more).from_(named(table))
    tuples = query.group_by(*names).limit(most + 1).subquery("tuples")
    found = engine.run(exp.select("*").from_(tuples).order_by(*names))
    if found.num_rows > most:
        raise InputError(
            f"The columns form more than {most:,} distinct tuples, too many to hold. Name fewer "
            "quasi-identifiers, generalize one in the source first (years for days, districts for "
            "streets), or draw people at random and assess them with their share as the fraction: "
            "its population estimates then speak of the whole table."
        )
    counts = np.asarray(found[_NAME].to_numpy(), dtype=np.int64)
    return found.drop_columns([_NAME]), counts


def distinct_values(
    engine: Engine, table: str, column: str, most: int
) -> tuple[pa.ChunkedArray, bool]:
    """Distinct values of a column, no more than ``most``, and whether these are all."""
    from sqlglot import exp

    name = exp.column(column, quoted=True)
    query = exp.select(name).from_(named(table)).group_by(name)
    found = engine.run(query.limit(most + 1))[column]
    return found.slice(0, most), len(found) <= most


def _connected(memory_limit: str, spill: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise EngineUnavailableError("DuckDB", "pip install duckdb") from None
    try:
        connection = duckdb.connect(
            ":memory:", config={"memory_limit": memory_limit, "temp_directory": spill}
        )
    except duckdb.Error:
        raise ParameterError("memory_limit", memory_limit, "a size such as 500MB or 4GB") from None
    for setting in (
        "enable_progress_bar",
        "python_enable_replacements",
        "preserve_insertion_order",
    ):
        connection.execute(f"SET {setting} = false")
    return connection


def _shown(
    connection: Any, source: str, table: str | None, written: Mapping[str, str | None]
) -> str:
    """Make the rows of a file known under one name."""
    import duckdb

    path = _literal(source)
    if is_database(source):
        origin = 'given."' + _named(table).replace('"', '""') + '"'
    elif is_parquet(source):
        origin = f"read_parquet({path})"
    else:  # texts become what they are afterwards, as for a table that is read
        options = [f"{key} = {_literal(text)}" for key, text in written.items() if text]
        texts = ["all_varchar = true", "header = true", f"nullstr = {_literal(_NO_TEXT)}"]
        origin = f"read_csv({', '.join([path, *texts, *options])})"
    try:
        if is_database(source):
            connection.execute(f"ATTACH {path} AS given (READ_ONLY)")
        connection.execute(f"CREATE TEMPORARY VIEW rows_ AS SELECT * FROM {origin}")  # noqa: S608
    except duckdb.Error as error:
        raise EngineError(f"DuckDB cannot read the source ({type(error).__name__}).") from None
    return "rows_"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def is_parquet(source: str) -> bool:
    """Whether a file is Parquet, by its first bytes."""
    with Path(source).open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _named(table: str | None) -> str:
    if table is None:
        raise ParameterError("table", None, "the name of a table of the database")
    return table
