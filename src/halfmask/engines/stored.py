"""Rows that stay where they are: a large file, or a table of a database.

DuckDB reads CSV and Parquet files and its own databases piece by piece, within a memory limit, and
spills what does not fit to disk; PostgreSQL counts where the rows are. Connections are opened when
something is asked and closed after it.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.engines.request import ATTACHED, file_literal, memory_bytes, quote
from halfmask.engines.sources import (
    is_address,
    is_database,
    is_pieces,
    list_pieces,
    open_address,
    partition_columns,
)
from halfmask.errors import (
    EngineError,
    InputError,
    InternalError,
    ParameterError,
)
from halfmask.table.files.rows import file_kind, incoming_types, normalize
from halfmask.table.files.text_file import file_named, has_nameless_first, packing_of
from halfmask.table.read import bind_schema, infer_types, read_rows
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from halfmask.engines.request import Engine
    from halfmask.table.proposals.counts import ColumnCounts
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

_NO_TEXT = "\x01halfmask\x01"  # DuckDB would read empty texts as missing, whatever the schema says


@dataclass(frozen=True, eq=False, repr=False)
class Storage:
    """One file or table of a database; the ``StoredRows`` of tables that are not in memory.

    Attributes:
        place: a CSV or Parquet file, a folder or pattern of such files, a DuckDB database (.duckdb,
            .ddb) or a PostgreSQL address.
        table: which table of a database.
        memory_limit: how much memory DuckDB may take, such as ``"500MB"``.
        delimiter: what stands between the fields of a CSV file; None: detected.
        encoding: the character encoding of a CSV file; None: UTF-8.
    """

    place: str
    table: str | None = None
    memory_limit: str | None = None
    delimiter: str | None = None
    encoding: str | None = None

    def __repr__(self) -> str:
        return f"Storage({self.engine})"  # an address may hold a password

    @property
    def engine(self) -> str:
        """Who counts the rows."""
        return "postgres" if self._is_server else "duckdb"

    @property
    def are_texts(self) -> bool:
        """Whether all values are texts, as in a CSV file."""
        if is_address(self.place):
            return False
        if is_pieces(self.place):
            return list_pieces(self.place)[0] == "csv"
        return file_kind(Path(self.place)) == "csv"

    @property
    def _is_server(self) -> bool:
        return is_address(self.place) and not is_database(self.place)

    @property
    def has_row_names(self) -> bool:
        """Whether a first column without a name is left out, as where the rows are read."""
        return self.are_texts and has_nameless_first(
            Path(list_pieces(self.place)[1][0] if is_pieces(self.place) else self.place),
            self.delimiter,
            self.encoding,
        )

    def hold(self) -> ExitStack:
        """Keep one engine open, with one state of the rows, until the stack is closed.

        All that is asked meanwhile is answered by it. Who takes its contents over (``pop_all``)
        keeps the engine, and the next question opens another.
        """
        held = ExitStack()
        opened: tuple[Any, str] = held.enter_context(self._open_rows())
        engine, name = opened
        engine.begin()
        vars(self)["_held"] = (held, engine, name)  # frozen: no field
        return held

    @contextmanager
    def open(self) -> Iterator[tuple[Engine, str]]:
        """An engine over the rows, and the name that their table has in it."""
        held = vars(self).get("_held")
        if held is not None:
            yield held[1], held[2]
            return
        with self._open_rows() as opened:
            yield opened

    @property
    def held(self) -> ExitStack:
        """What keeps the engine that is held open."""
        if "_held" not in vars(self):
            raise InternalError("No engine is held over the rows.")
        found: ExitStack = vars(self)["_held"][0]
        return found

    def let_go(self) -> None:
        """Hold no engine any more; whoever has it closes it."""
        vars(self).pop("_held", None)

    @contextmanager
    def _open_rows(self) -> Iterator[tuple[Engine, str]]:
        if self._is_server:
            name = require_table_name(self.table)
            engine = open_address(self.place)
            try:
                yield engine, name
            finally:
                engine.close()
            return
        if not is_pieces(self.place) and not file_named(self.place).is_file():
            raise InputError(f"There is no file {Path(self.place).name!r}.")
        from halfmask.engines.duckdb.engine import DuckDB, connect_within

        with connect_within(self.memory_limit) as connection:
            written = {"delim": self.delimiter, "encoding": self.encoding}
            name = _show(connection, self.place, self.table, written, apart=self.has_row_names)
            yield DuckDB(connection=connection), name

    def columns(self) -> Mapping[str, pa.DataType]:
        """The columns and their types.

        Raises:
            InputError: the source has no such table.
        """
        return self._columns

    @cached_property
    def _columns(self) -> Mapping[str, pa.DataType]:
        with self.open() as (engine, name):
            found = engine.columns(name)
        if found is None:
            raise _unknown_table(name)
        return found

    def count(self) -> int:
        """How many rows there are; counted once."""
        return self._count

    @cached_property
    def _count(self) -> int:
        from sqlglot import exp

        from halfmask.engines.sql import table_node as named

        self.columns()  # says which table is not there
        with self.open() as (engine, name):
            counted = exp.Count(this=exp.Star()).as_("n")
            return int(engine.run(exp.select(counted).from_(named(name)))["n"][0].as_py())

    def distinct_values(self, column: str, most: int) -> tuple[pa.ChunkedArray, bool]:
        """Distinct values of a column, no more than ``most``, and whether these are all."""
        from halfmask.engines.counting.columns import list_values

        with self.open() as (engine, name):
            return list_values(engine, name, column, most)

    def column_counts(self, schema: Schema) -> ColumnCounts | None:
        """Every column as it is counted here; None where it has to be read to be known."""
        from halfmask.engines.counting.columns import count_stored

        return count_stored(self, schema)

    def collect(self, schema: Schema) -> Table:
        """All rows in memory, bound to ``schema``.

        Raises:
            InputError: they would take more than the memory limit.
        """
        self.require_whole_room()
        if not is_address(self.place) and not is_pieces(self.place):
            return read_rows(self.place, schema, delimiter=self.delimiter, encoding=self.encoding)
        from sqlglot import exp

        from halfmask.engines.sql import table_node as named

        self.columns()
        with self.open() as (engine, name):
            arrow = engine.run(exp.select("*").from_(named(name)))
        if self.are_texts:
            texts = ("",) if schema.missing is None else schema.missing
            known = schema.over(arrow.column_names)
            return bind_schema(infer_types(normalize(arrow, texts), known), known, "csv")
        rows = normalize(arrow, schema.missing or ())
        return bind_schema(rows, schema, "arrow", incoming_types(arrow))

    def require_whole_room(self) -> None:
        """Refuse to hold all rows where they would take more than the memory limit."""
        if self.memory_limit is not None:
            kinds = self.columns().values()
            self.require_room(sum(_TEXT if is_text(kind) else 8 for kind in kinds))

    def require_room(self, width: int) -> None:
        """Refuse rows of so many bytes where a memory limit was given, before any is read."""
        most = None if self.memory_limit is None else memory_bytes(self.memory_limit)
        if most is None:
            return
        needed = self.count() * width
        if needed > most:
            raise InputError(
                f"The rows are needed one by one, and would take about {needed / 1e9:,.1f} GB, "
                f"more than memory_limit = {self.memory_limit!r}. Ask what is counted in place "
                "(describe, risks, anonymize by optimal or local, check, assess, compare, query), "
                "draw some of the rows first, or raise the limit."
            )


_TEXT = 24  # bytes of a short text and of where it stands


def _show(
    connection: Any,
    source: str,
    table: str | None,
    written: Mapping[str, str | None],
    *,
    apart: bool,
) -> str:
    """Make the rows of a file known under one name; ``apart``: all but their first column."""
    import duckdb

    path = _literal(source) if is_database(source) else file_literal(source)
    more: tuple[str, ...] = ()
    if is_pieces(source):
        kind, files = list_pieces(source)
        path = f"[{', '.join(map(file_literal, files))}]"
        # By their names: else the types of the first file are forced on all others.
        more = ("union_by_name = true",) if len(files) > 1 else ()
        more += ("hive_partitioning = true",) if partition_columns(files) else ()
    elif not is_database(source):
        kind = file_kind(Path(source))
    if is_database(source):
        origin = f"{ATTACHED}.{quote(require_table_name(table))}"
    elif kind == "parquet":
        origin = f"read_parquet({', '.join([path, *more])})"
    elif not is_pieces(source) and (
        kind != "csv" or packing_of(Path(source)) not in (None, "gzip", "zstd")
    ):
        what = "an Arrow file" if kind == "arrow" else f"a {kind} file, or packed in a way"
        raise InputError(
            f"The file {Path(source).name!r} is {what}, which DuckDB does not read: leave "
            "the engine away to read it into memory, or write it as Parquet."
        )
    else:  # texts become what they are afterwards, as for a table that is read
        options = [f"{key} = {_literal(text)}" for key, text in written.items() if text]
        texts = ["all_varchar = true", "header = true", f"nullstr = {_literal(_NO_TEXT)}"]
        origin = f"read_csv({', '.join([path, *texts, *options, *more])})"
    try:
        if is_database(source):
            connection.execute(f"ATTACH {path} AS {ATTACHED} (READ_ONLY)")
        chosen = "*"
        if apart:  # DuckDB makes up a name for it
            described = connection.execute(f"DESCRIBE SELECT * FROM {origin}")  # noqa: S608
            chosen = f"* EXCLUDE ({quote(described.fetchall()[0][0])})"
        connection.execute(f"CREATE TEMPORARY VIEW rows_ AS SELECT {chosen} FROM {origin}")  # noqa: S608
    except duckdb.CatalogException:
        raise _unknown_table(table) from None
    except duckdb.Error as error:
        raise EngineError(f"DuckDB cannot read the source ({type(error).__name__}).") from None
    return "rows_"


def _unknown_table(name: str | None) -> InputError:
    return InputError(f"The source has no table called {name!r}: name one of its tables.")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def require_table_name(table: str | None) -> str:
    """The name of a table, which rows in a database need."""
    if table is None:
        raise ParameterError("table", None, "the name of a table of the database")
    return table
