"""DuckDB, embedded: the default engine. Reads Arrow tables in place, files and databases."""

from __future__ import annotations

import atexit
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from halfmask.engines.duckdb import single_pass
from halfmask.engines.request import (
    ATTACHED,
    GroupMeasure,
    Request,
    RowOrigin,
    any_digits,
    bare_type,
    engine_refusal,
    file_literal,
    memory_bytes,
    quote,
)
from halfmask.engines.sql import SqlEngine
from halfmask.errors import (
    EngineError,
    EngineUnavailableError,
    InputError,
    ParameterError,
    QueryError,
)
from halfmask.ownership import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlglot import exp

    from halfmask.engines.staging import Labeling


# A relation is planned when it is made and again when it is read: what is long is planned once.
LONG = 1000
KEPT = 64  # texts and plans of queries that are asked again
SMALL = 1000  # rows that may be exchanged under a plan
WORDS = 1 << 16  # texts that are sorted as numbers of a list
MANY = 100_000  # rows from which on it pays to look for columns with few values
DEFAULT_LIMIT = "1GB"  # of memory, where nothing is said
SORTED_WITHIN = 1_000_000_000  # bytes that sorting may take: more makes it no faster
WIDE = ("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT")  # whole numbers beyond all decimals


class Slot:
    """A place for few rows: others of the same columns may take it, and what was planned holds."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.rows.schema

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


class DuckDB(SqlEngine):
    """An embedded database over the given tables."""

    name = "duckdb"
    dialect = "duckdb"
    hashed = "HASH({})"

    def __init__(
        self,
        tables: Mapping[str, pa.Table | str] | None = None,
        *,
        connection: Any = None,
        attached: str | None = None,
    ) -> None:
        self._own = connection is None or attached is not None
        self._attached = attached
        self._connection = connection if connection is not None else _connect()
        self._brought: list[str] = []
        self._types: dict[str, dict[str, pa.DataType]] = {}
        self._sizes: dict[str, int] = {}  # of rows in memory
        self._slots: dict[str, Slot] = {}
        # Plans outlast a question only where all tables are rows in memory: files may change.
        self._in_memory = connection is None
        self._plans: dict[str, str] = {}
        self._texts: dict[tuple[object, ...], tuple[str, tuple[object, ...]]] = {}
        self._written: tuple[Request, Request] | None = None
        self._staged: Path | None = None
        self.given = tuple(tables or ())
        for name, rows in (tables or {}).items():
            self._bring(name, rows)

    def columns(self, table: str) -> dict[str, pa.DataType] | None:
        """The columns of a table; None where there is no such table."""
        if table in self._types:
            return dict(self._types[table])
        # Only what is listed: DuckDB would also take the name of a file or of a Python variable.
        # And of an attached file only its own tables, not those of others in this process.
        listed = (
            "SELECT 1 FROM information_schema.tables WHERE table_name = ? "
            "AND table_catalog IN (current_database(), 'temp') "
            "AND table_schema NOT IN ('information_schema', 'pg_catalog')"
        )
        brought = table in self.given
        if not brought and not self._connection.execute(listed, [table]).fetchall():
            return None
        relation = self._connection.sql(f"SELECT * FROM {quote(table)} LIMIT 0")  # noqa: S608
        wide = [str(kind) in WIDE for kind in relation.types]
        found = relation.to_arrow_table().schema
        types = {
            field.name: any_digits() if wide[i] else field.type for i, field in enumerate(found)
        }
        if brought and table in self._brought:  # rows in memory stay as they are
            self._types[table] = types
        return dict(types)

    def run(self, query: exp.Expr) -> pa.Table:
        """Run one query."""
        # Queries are made to be run: none is copied to be written.
        return self.run_text(query.sql(dialect=self.dialect, copy=False))

    def ask(self, make: Callable[..., exp.Expr], *parts: Any) -> pa.Table:
        """Run the query that is made of the parts; of the very same parts it is written once."""
        key = (make, *map(_identity, parts))
        if key not in self._texts:
            query = make(*map(self._write_part, parts))
            if len(self._texts) == KEPT:
                self._texts.clear()
            # The parts are held, so that no other object gets their identities.
            self._texts[key] = query.sql(dialect=self.dialect, copy=False), parts
        return self.run_text(self._texts[key][0])

    def run_text(self, query: str) -> pa.Table:
        """Run one query that is written in this engine's dialect already."""
        import duckdb

        try:
            if self._own and (self._in_memory or len(query) > LONG):
                query = f"EXECUTE {self._plan(query)}"
            return self._connection.sql(query).to_arrow_table()
        except duckdb.Error:
            raise engine_refusal("duckdb") from None

    def _plan(self, query: str) -> str:
        """The name under which a query is planned."""
        if not self._in_memory or len(self._plans) == KEPT:
            self._plans.clear()
        if query in self._plans:
            return self._plans[query]
        name = f"hm_query_{len(self._plans)}"
        self._connection.execute(f"PREPARE {name} AS {query}")
        self._plans[query] = name
        return name

    def add(self, name: str, rows: pa.Table) -> None:
        """Bring a small table along."""
        self._bring(name, rows)

    def bring(self, name: str, rows: pa.Table, like: tuple[str, str | None]) -> None:  # noqa: ARG002
        """Bring a table along to join with; its values find their own type."""
        self._bring(name, rows)

    def keep(self, name: str, query: exp.Expr) -> int:
        """Keep what a query gives as a table of this engine; how many rows it gave."""
        import duckdb

        text = query.sql(dialect=self.dialect, copy=False)
        try:
            made = self._connection.execute(f"CREATE TEMPORARY TABLE {quote(name)} AS {text}")
        except duckdb.Error:
            raise engine_refusal("duckdb") from None
        return int(made.fetchone()[0])

    def forget(self, name: str) -> None:
        """Let go of what was kept."""
        self._connection.execute(f"DROP TABLE {quote(name)}")

    def write_rows(self, name: str, labeling: Labeling, table: str, folder: Path) -> None:
        """Write the rows with their labels into ``folder``, in the order of their columns.

        Raises:
            EngineError: they cannot be written.
        """
        import duckdb

        self._staged = folder / "rows.parquet"
        place = str(self._staged).replace("'", "''")
        names = ", ".join(map(quote, labeling.published))
        try:
            rows = self._number_texts(labeling, table)
            if labeling.repeated:
                groups = labeling.groups(rows)
                count, turn = labeling.unused("hm_n"), labeling.unused("hm_i")
                each = f"SELECT {names}, UNNEST(RANGE({count})) AS {turn} FROM ({groups}) g"  # noqa: S608
                query = f"SELECT {names} FROM ({each}) h"  # noqa: S608
            else:
                query = f"{rows} ORDER BY {labeling.places}"
            with self._sparing():
                self._connection.execute(f"COPY ({query}) TO '{place}' (FORMAT parquet)")
            origin = f"read_parquet({file_literal(self._staged)})"
            self._connection.execute(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM {origin}")  # noqa: S608
        except duckdb.Error as error:
            raise EngineError(
                f"DuckDB could not write the rows ({type(error).__name__}): check the room on the "
                "disk and the memory limit. Nothing was released."
            ) from None

    @contextmanager
    def _sparing(self) -> Iterator[None]:
        """Sort within a bound that does not grow with the limit: DuckDB would take all of it."""
        (limit,) = self._connection.execute("SELECT current_setting('memory_limit')").fetchone()
        if (memory_bytes(limit) or 0) <= SORTED_WITHIN:
            yield
            return
        self._connection.execute(f"SET memory_limit = '{SORTED_WITHIN}B'")
        try:
            yield
        finally:
            self._connection.execute(f"SET memory_limit = '{limit}'")

    def _number_texts(self, labeling: Labeling, table: str) -> str:
        """The rows with their labels, in which texts of few words are numbers of a list.

        Texts are sorted five times slower, and stay in memory whole. The written file holds all
        words of the lists, whether they leave or not: it is read as texts, never handed on.
        """
        rows = labeling.rows(table)
        relation = self._connection.sql(f"SELECT * FROM ({rows}) t LIMIT 0")  # noqa: S608
        texts = [n for n, k in zip(relation.columns, relation.types, strict=True) if k == "VARCHAR"]
        listed: dict[str, str] = {}
        for name in texts:
            words = labeling.words(name)
            if words is None:
                cell = quote(name)
                known = f"SELECT APPROX_COUNT_DISTINCT({cell}) FROM {quote(table)}"  # noqa: S608
                size = self._connection.execute(known).fetchone()[0]
                query = f"SELECT {cell} AS word FROM {quote(table)}"  # noqa: S608
            else:
                words = pa.table({"word": words.cast(pa.string()).unique().drop_null()})
                size, query = len(words), "SELECT word FROM hm_words"
                self._bring("hm_words", words)
            # Sorted, since the order of an ENUM is that of its list.
            if 0 < size <= WORDS:
                listed[name] = f"hm_words_{len(listed)}"
                self._connection.execute(
                    f"CREATE OR REPLACE TYPE {listed[name]} AS ENUM (SELECT DISTINCT word "  # noqa: S608
                    f"FROM ({query}) w WHERE word IS NOT NULL ORDER BY word)"
                )
        cells = (
            f"CAST({quote(n)} AS {listed[n]}) AS {quote(n)}" if n in listed else quote(n)
            for n in labeling.published
        )
        return f"SELECT {', '.join(cells)} FROM ({rows}) w"  # noqa: S608

    def stream(self, rows: int) -> pa.RecordBatchReader:
        """The rows that were written, so many at a time, in their order."""
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self._staged)
        return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(rows))

    def collect(self, request: Request) -> pa.Table:
        """Aggregate the rows into groups."""
        return single_pass.collect_bounded(self, request, large=self._is_large(request))

    def queries(self, request: Request) -> list[exp.Select]:
        """The queries behind ``collect``."""
        return single_pass.bounded_queries(self, request)

    def parts(
        self,
        request: Request,
        places: pa.Table,
        splits: tuple[exp.Expr, ...],
        counted: tuple[exp.Expr, ...],
    ) -> pa.Table:
        """Count the rows of each place for which the splits are the same."""
        large = self._is_large(request)
        return single_pass.parts_bounded(self, request, places, splits, counted, large=large)

    def capped(self, value: exp.Expr, count: int) -> exp.Expr:
        """The ``count`` smallest values: a bounded list."""
        from sqlglot import exp

        return exp.Anonymous(this="MIN", expressions=[value, exp.Literal.number(count)])

    def fingerprint(self, table: str) -> str:
        """A text that changes where the table's rows change."""
        import duckdb

        counted = f"SELECT COUNT(*), SUM(HASH(t)::HUGEINT) FROM {quote(table)} t"  # noqa: S608
        ((rows, total),) = self._connection.execute(counted).fetchall()
        return f"duckdb {duckdb.__version__}:{rows}-{total}"

    def definition(self, table: str) -> str | None:
        """The SQL of a view; None for a table."""
        text = (
            "SELECT sql FROM duckdb_views() WHERE view_name = ? AND NOT internal "
            "AND database_name IN (current_database(), 'temp')"
        )
        found = self._connection.execute(text, [table]).fetchall()
        return str(found[0][0]) if found else None

    def leave(self) -> None:
        """Let go of the database that the rows came from: somebody in this process writes to it."""
        # A process opens a file once, and here it is read only.
        attached = "SELECT 1 FROM duckdb_databases() WHERE database_name = 'given'"
        if self._connection.execute(attached).fetchall():
            self._connection.execute("DETACH given")

    def row_origin(self, table: str, schema: str = "") -> RowOrigin | None:
        """What gives the rows of a table or view."""
        import duckdb

        home = f"{quote(schema)}." if schema else ""
        try:
            relation = self._connection.sql(f"SELECT * FROM {home}{quote(table)} LIMIT 0")  # noqa: S608
        except duckdb.Error:
            return None
        types = dict(zip(relation.columns, map(bare_type, map(str, relation.types)), strict=True))
        if table in self._brought:  # rows in memory
            return RowOrigin(types)
        where = (
            "= ? AND NOT internal AND database_name IN (current_database(), 'temp', ?) "
            "AND (schema_name = ? OR (schema_name = 'main' AND database_name = ?))"
        )
        values = [table, ATTACHED, schema or "main", schema]
        views = f"SELECT sql FROM duckdb_views() WHERE view_name {where}"  # noqa: S608
        tables = f"SELECT sql FROM duckdb_tables() WHERE table_name {where}"  # noqa: S608
        seen = self._connection.execute(views, values).fetchall()
        held = self._connection.execute(tables, values).fetchall()
        if len(seen) + len(held) != 1:
            return None
        if seen:
            return RowOrigin(types, seen[0][0])
        generated = "GENERATED ALWAYS" in str(held[0][0]).upper()
        return RowOrigin(types, None, "generated columns" if generated else "")

    def close(self) -> None:
        """Close the connection if it was opened here, else take away what was brought along."""
        if self._attached is not None:
            self._connection.execute("USE memory")  # what is in use cannot be detached
            self._connection.execute(f"DETACH {self._attached}")
        if self._own:
            self._connection.close()
        else:
            for name in self._brought:
                self._connection.unregister(name)

    def _write_part(self, part: Any) -> Any:
        """A part of a query with its expressions written out; several queries are made of each."""
        from sqlglot import exp

        if isinstance(part, tuple):
            return tuple(map(self._write_part, part))
        if isinstance(part, Request):
            if self._written is None or self._written[0] is not part:
                self._written = part, write_request(part)
            return self._written[1]
        if isinstance(part, GroupMeasure):
            return replace(part, expression=as_text_node(part.expression))
        is_value = isinstance(part, exp.Expr) and not isinstance(part, exp.Query)
        return as_text_node(part) if is_value else part

    def _is_large(self, request: Request) -> bool:
        """Whether any of its tables has many rows, or it is not known how many."""
        from sqlglot import exp

        tables = request.source.find_all(exp.Table)
        return any(self._sizes.get(table.name, MANY) >= MANY for table in tables)

    def _bring(self, name: str, rows: pa.Table | str) -> None:
        if isinstance(rows, str):
            path = rows.replace("'", "''")
            view = f"CREATE TEMPORARY VIEW {quote(name)} AS SELECT * FROM '{path}'"  # noqa: S608
            self._connection.execute(view)
            self._in_memory = False
            return
        rows = _narrow(rows)
        self._sizes[name] = rows.num_rows
        slot = self._slots.get(name)
        # What a column is may stand in the metadata alone.
        same = slot is not None and slot.schema.equals(rows.schema, check_metadata=True)
        if rows.num_rows <= SMALL and slot is not None and same:
            slot.rows = rows
        else:
            slot = Slot(rows) if rows.num_rows <= SMALL else None
            self._slots.pop(name, None)
            self._plans.clear()  # they would go on to read what had this name before
            self._connection.register(name, rows if slot is None else slot)
            if slot is not None:
                self._slots[name] = slot
            self._brought.append(name)
            self._types.pop(name, None)
            if _is_lasting(rows.schema):
                self._types[name] = {field.name: field.type for field in rows.schema}


def _narrow(rows: pa.Table) -> pa.Table:
    """Decimals of more than 38 digits, which DuckDB does not read, as doubles.

    One such number gives a frame's column that type: no question may fail for it.
    """
    for place, column in enumerate(rows.schema):
        if pa.types.is_decimal256(column.type):
            plain = rows.column(place).cast(pa.float64())
            rows = rows.set_column(place, pa.field(column.name, pa.float64()), plain)
    return rows


def _identity(part: object) -> object:
    """What two parts of a query have in common if they are the very same."""
    if isinstance(part, tuple):
        return tuple(map(_identity, part))
    return part if isinstance(part, str | int | None) else id(part)


def as_text_node(node: exp.Expr) -> exp.Expr:
    """An expression as its text: to write it anew for each query costs more than a small query."""
    from sqlglot import exp

    return node if isinstance(node, exp.Var) else exp.Var(this=node.sql(dialect="duckdb"))


def write_request(request: Request) -> Request:
    """A request in which every expression is its text."""
    source = request.source.copy()
    for clause, name in [(source.args.get("where"), "this")] + [
        (join, "on") for join in source.args.get("joins") or []
    ]:
        if clause is not None and clause.args.get(name) is not None:
            clause.set(name, as_text_node(clause.args[name]))
    demands = request.demands
    return replace(
        request,
        source=source,
        keys=tuple(replace(k, expression=as_text_node(k.expression)) for k in request.keys),
        demands=demands and (as_text_node(demands[0]), as_text_node(demands[1])),
        person=request.person and as_text_node(request.person),
        tests=tuple(replace(t, expression=as_text_node(t.expression)) for t in request.tests),
        states=tuple(replace(s, expression=as_text_node(s.expression)) for s in request.states),
    )


def open_database(path: str) -> DuckDB:
    """The tables of a DuckDB file, read only; nothing is ever written to it.

    Raises:
        InputError: there is no such file, or it is none of DuckDB's.
    """
    import duckdb

    if not Path(path).is_file():
        raise InputError(f"There is no file {Path(path).name!r}.")
    connection = _connect()
    name = "hm_" + uuid4().hex
    place = str(path).replace("'", "''")
    try:
        connection.execute(f"ATTACH '{place}' AS {name} (READ_ONLY)")
        connection.execute(f"USE {name}")
    except duckdb.Error:
        connection.close()
        raise InputError(
            f"{Path(path).name!r} cannot be opened as a DuckDB database: check the file, and "
            "that no other program is writing to it."
        ) from None
    return DuckDB(connection=connection, attached=name)


# DuckDB gives them back as they are.
_LASTING = {
    *(pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32()),
    *(pa.timestamp("us"), pa.decimal128(38, 0)),
}


def _is_lasting(schema: pa.Schema) -> bool:
    """Whether DuckDB has these very columns; it tells names apart without their case."""
    names = {name.casefold() for name in schema.names}
    return len(names) == len(schema) and all(kind in _LASTING for kind in schema.types)


def finish(rows: pa.Table, query: exp.Expr) -> pa.Table:
    """Run a query over published rows only (named ``published``), for every engine."""
    plain = _plain_columns(query)
    if plain is not None and all(kind in _LASTING for kind in rows.schema.types):
        rows = rows.sort_by("hm_order").select([name for name, _ in plain])
        return rows.rename_columns([shown for _, shown in plain])
    try:
        return compute_apart("published", rows, _copy, query)
    except EngineError:
        raise QueryError(
            "the select list, HAVING or ORDER BY cannot be computed from the published figures: "
            "check the types in them."
        ) from None


def _copy(query: exp.Expr) -> exp.Expr:
    """The query to be written, which changes it: it may be asked again."""
    return query.copy()


_finisher = threading.local()


def compute_apart(
    name: str, rows: pa.Table, make: Callable[..., exp.Expr], *parts: Any
) -> pa.Table:
    """Ask the query that is made of the parts of these rows alone, which are let go then.

    Each thread has one engine for it: to open one takes longer than to ask it about few rows.
    """
    if not hasattr(_finisher, "engine"):
        _finisher.engine = DuckDB()
    engine: DuckDB = _finisher.engine
    engine.add(name, rows)
    try:
        return engine.ask(make, *parts)
    finally:
        engine.add(name, rows.schema.empty_table())  # a slice would hold the buffers


def _plain_columns(query: exp.Expr) -> list[tuple[str, str]] | None:
    """The columns of a query that only chooses and names them, in the usual order; else None."""
    from sqlglot import exp

    more = {name for name, part in query.args.items() if part} - {"expressions", "from_", "order"}
    ordered = query.args.get("order")
    order = [part.this.name for part in ordered.expressions] if ordered is not None else []
    chosen = [(item.unalias(), item.alias_or_name) for item in query.expressions]
    if more or order != ["hm_order"] or any(type(node) is not exp.Column for node, _ in chosen):
        return None
    return [(node.name, shown) for node, shown in chosen]


def _connect() -> Any:
    """A connection of its own on the one database of this process: it sees only its own tables."""
    return _database().cursor()


@cache
def _spill() -> Path:
    """A private folder that goes with this process."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(temporary_folder())


@cache
def _database() -> Any:
    try:
        import duckdb
    except ImportError:
        raise EngineUnavailableError("DuckDB", "pip install duckdb") from None
    # What does not fit in memory would else lie in the current folder, for all to read.
    database = duckdb.connect(":memory:", config={"temp_directory": str(_spill())})
    database.execute("SET enable_progress_bar = false")
    database.execute("SET python_enable_replacements = false")
    return database


@contextmanager
def connect_within(memory_limit: str | None = None) -> Iterator[Any]:
    """A connection to DuckDB that takes so much memory and spills the rest to disk."""
    with temporary_folder() as spill:
        connection = _open_connection(memory_limit or DEFAULT_LIMIT, str(spill))
        try:
            yield connection
        finally:
            connection.close()


def _open_connection(memory_limit: str, spill: str) -> Any:
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
    # No variable of Python is taken for a table; and to keep an order that nobody asked for takes
    # memory.
    for setting in (
        "enable_progress_bar",
        "python_enable_replacements",
        "preserve_insertion_order",
    ):
        connection.execute(f"SET {setting} = false")
    return connection
