"""The tables a query may speak of: who opens them, their columns, roles and hierarchies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from halfmask.errors import HalfmaskError, ParameterError, SchemaError
from halfmask.query.clauses import fold_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from halfmask.engines.request import Engine
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.schema import QueryRules, Schema
    from halfmask.table.table import StoredRows, Table

    Opened = tuple[Engine, "Catalog", Callable[[], object]]

THE_TABLE = "the_table"  # what a single table in memory is called
# What databases keep about tables holds samples of everybody's values.
SYSTEM = re.compile(r"(pg_|duckdb_|sqlite_|pragma_|information_schema|hm_)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class AskedTable:
    """One table.

    Attributes:
        name: what the engine calls it.
        columns: its columns and their types.
        schema: what they are, where it is known.
        table: the table itself, where it is in memory.
        repeats: whether people have several rows; None where it must be asked.
        not_a_number: whether its decimals may be NaN, which counts as missing.
    """

    name: str
    columns: Mapping[str, pa.DataType]
    schema: Schema | None = None
    table: Table | None = None
    repeats: bool | None = None
    not_a_number: bool = False

    @property
    def person(self) -> str | None:
        """The column that says whose row it is."""
        return self.schema.person if self.schema else None

    @property
    def hidden(self) -> set[str]:
        """Columns that may not leave: identifiers, people, households, demands, and drops."""
        return set() if self.schema is None else set(self.schema.over(self.columns).private)

    def role(self, column: str) -> str:
        """The role of a column; undeclared columns count as known to others."""
        declared = self.schema.columns.get(column) if self.schema else None
        return declared.role if declared else "quasi"

    def find(self, name: str) -> str | None:
        """The column of that name; case, spaces and hyphens make no difference."""
        if name in self.columns:
            return name
        same = [c for c in self.columns if fold_name(c) == fold_name(name)]
        return same[0] if len(same) == 1 else None


@dataclass(frozen=True, eq=False)
class Catalog:
    """All tables.

    Attributes:
        sources: by name.
        main: the one that a query on a single table means whatever it calls it.
        lookup: asks the engine for a table that is not listed yet.
        hierarchies: those that were built already.
        declared: what all given tables are, also those that no query reads.
        rules: what the controller lets be asked, by the schemas that were given.
    """

    sources: dict[str, AskedTable]
    main: str | None = None
    lookup: Callable[[str], AskedTable | None] | None = None
    hierarchies: dict[tuple[str, str], Hierarchy] = field(default_factory=dict)
    rules: tuple[QueryRules, ...] = ()
    declared: Mapping[str, Schema] = field(default_factory=dict)

    def find(self, name: str) -> AskedTable | None:
        """The table of that name."""
        for source in self.sources.values():
            if fold_name(source.name) == fold_name(name):
                return source
        if self.main is not None:
            return self.sources.get(self.main)
        found = self.lookup(name) if self.lookup is not None else None
        if found is not None:
            self.sources[found.name] = found
        return found


def open_catalog(
    table: object, engine: Any, schema: object, tables: Sequence[str] | None
) -> Opened:
    """The engine and the tables that it may be asked for, and what closes it if it is ours."""
    from halfmask.engines.read import is_typed, read
    from halfmask.engines.sources import is_address, is_spark, open_address

    if hasattr(engine, "collect"):
        asked = [table] if isinstance(table, str) else table if isinstance(table, Mapping) else ()
        named = [*asked] or engine.given
        return engine, _ask_engine(engine, schema, tables, named), _leave_open
    if hasattr(table, "collect") and hasattr(table, "dialect"):
        given = cast("Engine", table)
        return given, _ask_engine(given, schema, tables, given.given), _leave_open
    if is_address(table):
        opened = open_address(str(table))
        return _close_unless_usable(opened, schema, tables)
    if is_spark(table):
        from halfmask.engines.spark import Spark

        named = [THE_TABLE] if hasattr(table, "createOrReplaceTempView") else []
        return _close_unless_usable(Spark(table), schema, tables, named)
    if isinstance(table, Mapping):
        return _in_memory(table, engine, schema, tables)
    found = read(table, schema)  # type: ignore[arg-type]
    if found.stored is not None and engine in (None, found.stored.engine) and is_typed(found):
        return _in_place(found, found.stored)
    return _in_memory(found, engine, None, tables)


def _leave_open() -> None:
    """What closes an engine that somebody else opened."""


def _in_place(table: Table, stored: StoredRows) -> Opened:
    """The engine that has the rows of a table; the query may call it by any name."""
    from halfmask.query.planning.views import require_plain_rows

    with ExitStack() as stack:
        engine, name = stack.enter_context(stored.open())
        require_plain_rows(engine, name, called=getattr(stored, "table", None))
        odd = engine.name == "postgres"
        source = AskedTable(name, stored.columns(), table.schema, not_a_number=odd)
        rules, declared = (table.schema.query,), {name: table.schema}
        catalog = Catalog({name: source}, name, rules=rules, declared=declared)
        return engine, catalog, stack.pop_all().close


def _close_unless_usable(
    engine: Engine, schema: object, tables: Sequence[str] | None, named: Sequence[str] = ()
) -> Opened:
    """An engine that was opened here; it is closed where its tables cannot be asked."""
    try:
        return engine, _ask_engine(engine, schema, tables, named), engine.close
    except HalfmaskError:
        engine.close()
        raise


def _in_memory(
    table: object, engine: str | None, schema: object, listed: Sequence[str] | None
) -> Opened:
    from halfmask.engines.read import read
    from halfmask.engines.sources import open_tables

    several = isinstance(table, Mapping)
    given = table if isinstance(table, Mapping) else {THE_TABLE: table}
    tables = {
        name: read(
            t,
            schema.get(name)
            if several and isinstance(schema, Mapping)  # type: ignore[arg-type]
            else schema,
        ).collect()
        for name, t in given.items()
    }
    rules = [t.schema.query for t in tables.values()]
    declared = {name: t.schema for name, t in tables.items()}
    if several:
        names = _names(listed, rules)
        tables = {
            n: t for n, t in tables.items() if not names or fold_name(n) in map(fold_name, names)
        }
    opened = open_tables({name: t.arrow for name, t in tables.items()}, engine)
    sources = {}
    for name, read_table in tables.items():
        columns = opened.columns(name) or {}
        person = read_table.schema.person
        repeats = None
        if person is not None:
            repeats = len(read_table.encode(person).values) != len(read_table) or (
                read_table.arrow[person].null_count > 0
            )
        sources[name] = AskedTable(name, columns, read_table.schema, read_table, repeats)
    main = None if several else THE_TABLE
    return opened, Catalog(sources, main, rules=tuple(rules), declared=declared), opened.close


def _ask_engine(
    engine: Engine, schema: object, tables: Sequence[str] | None, named: Sequence[str] = ()
) -> Catalog:
    """A catalog that asks the engine for tables as queries name them, of those that are listed.

    Raises:
        SchemaError: nobody said which tables may be asked.
    """
    from halfmask.query.planning.views import require_plain_rows

    schemas = _schemas(schema)
    rules = [one.query for one in schemas.values()]
    # Tables that a schema is given for by name are listed by that.
    names = _names(tables, rules) or [name for name in schemas if name] or list(named)
    if not names:
        raise SchemaError(
            'Say which tables of the database may be asked: tables = ["visits"] under [query] '
            'in the schema, tables=["visits"] in Python, or --tables visits.'
        )

    def lookup(name: str) -> AskedTable | None:
        listed = next((n for n in names if fold_name(n) == fold_name(name)), None)
        if listed is None or SYSTEM.match(listed):
            return None
        require_plain_rows(engine, listed)
        columns = engine.columns(listed)
        if columns is None:
            return None
        declared = schemas.get(listed, schemas.get(""))
        return AskedTable(listed, columns, declared, not_a_number=engine.name == "postgres")

    declared = {name: one for name, one in schemas.items() if name}
    return Catalog({}, None, lookup, rules=tuple(rules), declared=declared)


def _names(given: Sequence[str] | None, rules: Sequence[QueryRules]) -> list[str]:
    """The tables that may be asked; where argument and schema both list some, those of both."""
    if isinstance(given, str):
        raise ParameterError("tables", given, "a list of names")
    lists = [list(rule.tables) for rule in rules if rule.tables is not None]
    stated = list(dict.fromkeys(name for names in lists for name in names))
    if given is None or not lists:
        return list(given or stated)
    return [name for name in given if fold_name(name) in map(fold_name, stated)]


def _schemas(schema: object) -> dict[str, Schema]:
    """The schemas by table; one for all tables has no name."""
    from halfmask.table.read import as_schema

    if schema is None:
        return {}
    if isinstance(schema, Mapping) and not _is_one_schema(schema):
        return {str(name): as_schema(one) for name, one in schema.items() if one is not None}
    return {"": as_schema(schema)}


def _is_one_schema(given: Mapping[str, object]) -> bool:
    """Whether a mapping is the schema of one table, and not schemas by name."""
    from halfmask.table.schema import are_columns, are_sections

    return not given or are_sections(given) or are_columns(given)
