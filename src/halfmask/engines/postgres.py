"""PostgreSQL: the rows stay in the database, only aggregated groups come back.

A release is published there as one table by one commit. The new table is filled under a name of its
own in one transaction: nobody sees it before the commit, and a server that loses its client takes
it back.
"""

# ruff: noqa: S608 - names are quoted, and values travel as parameters or by COPY

from __future__ import annotations

import io
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.engines.request import (
    MARK,
    RowOrigin,
    any_digits,
    bare_type,
    engine_refusal,
    quote,
    unread_type,
)
from halfmask.engines.sql import SqlEngine
from halfmask.engines.sql import table_node as named
from halfmask.engines.staging import STAGED, reach
from halfmask.errors import EngineError, EngineUnavailableError, InputError, QueryError
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlglot.expressions import Expr

    from halfmask.engines.staging import Labeling

_TYPES = {
    "bool": pa.bool_(),
    "int2": pa.int64(),
    "int4": pa.int64(),
    "int8": pa.int64(),
    "float4": pa.float64(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "unknown": pa.string(),
    "uuid": pa.string(),
}
# Texts that are equal without being the same: groups would be others here than there.
_ALIKE = (
    "SELECT a.attname FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation "
    "WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped AND "
    "(NOT c.collisdeterministic OR (a.atttypid = 'bpchar'::regtype AND a.atttypmod < 0))"
)
_COLUMNS = """
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""
_BEHIND = """
WITH RECURSIVE parts(oid) AS (
    SELECT oid FROM pg_class WHERE oid = to_regclass(%s)
    UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid)
SELECT MAX(CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END),
    BOOL_OR(c.relkind = 'f'),
    BOOL_OR(EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attgenerated = 'v')),
    BOOL_OR(c.relrowsecurity
        AND (row_security_active(c.oid) OR c.relowner <> current_user::regrole))
FROM pg_class c JOIN parts USING (oid) HAVING COUNT(*) > 0"""


class Postgres(SqlEngine):
    """A PostgreSQL database, read in one transaction that sees one state of the tables."""

    name = "postgres"
    dialect = "postgres"
    hashed = "HASHTEXTEXTENDED({}, 0)"

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise EngineUnavailableError("psycopg", "pip install 'halfmask[postgres]'") from None
        self._staged = ""
        try:
            self._connection: Any = psycopg.connect(address, autocommit=True)
            # A text of a question ends at its quote: by a backslash it could become SQL of its own.
            self._connection.execute("SET standard_conforming_strings = on")
            self._connection.autocommit = False
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        except psycopg.Error as error:
            # The message may quote the address, and with it a password.
            raise EngineError(
                f"The database cannot be reached ({type(error).__name__}). Check the address."
            ) from None

    def columns(self, table: str) -> dict[str, pa.DataType] | None:
        """The columns of a table; None where there is no such table."""
        import psycopg
        from sqlglot import exp

        # Not the system's own tables: they hold samples of everybody's values.
        listed = (
            "SELECT 1 FROM information_schema.tables WHERE table_name = %s "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        try:
            # Inside a transaction this is a savepoint: a failure does not end the state that is
            # seen.
            with self._connection.cursor() as cursor, self._connection.transaction():
                if not cursor.execute(listed, [table]).fetchall():
                    return None
        except psycopg.Error:
            raise engine_refusal("postgres") from None
        try:
            with self._connection.cursor() as cursor, self._connection.transaction():
                alike = cursor.execute(_ALIKE, [quote(table)]).fetchall()
                cursor.execute(self.sql(exp.select("*").from_(named(table)).limit(0)))
                found = {column.name: self._declared_type(column) for column in cursor.description}
                return found | {name: unread_type() for (name,) in alike}
        except psycopg.Error:
            raise engine_refusal("postgres") from None

    def run(self, query: Expr) -> pa.Table:
        """Run one query."""
        import psycopg

        try:
            with self._connection.cursor() as cursor, self._connection.transaction():
                cursor.execute(self.sql(query))
                described, rows = cursor.description, cursor.fetchall()
        except psycopg.Error:
            raise engine_refusal("postgres") from None
        return pa.table(
            {c.name: self._array(c, [r[i] for r in rows]) for i, c in enumerate(described)}
        )

    def sql(self, query: Expr) -> str:
        """The text of a query in this engine's dialect."""
        from sqlglot import exp

        query = query.copy()
        for node in list(query.find_all(exp.Mod)):
            node.set("this", exp.paren(node.this))
        # A null key is a key, and the join must be one that hashes: JSON is equal where keys are,
        # however a number is written (1.0 and 1.00, 0 and -0).
        for same in list(query.find_all(exp.NullSafeEQ)):
            same.replace(exp.EQ(this=_json(same.this), expression=_json(same.expression)))
        for median in list(query.find_all(exp.Median)):
            median.replace(
                exp.WithinGroup(
                    this=exp.PercentileCont(this=exp.Literal.number("0.5")),
                    expression=exp.Order(expressions=[exp.Ordered(this=median.this)]),
                )
            )
        for total in list(query.find_all(exp.Sum)):
            # A sum of doubles fails where it leaves them: then it is infinite here.
            if isinstance(total.parent, exp.Cast) and total.parent.is_type("double"):
                total.set("this", _addable(total.this))
        return super().sql(query)

    def add(self, name: str, rows: pa.Table) -> None:
        """Bring a small table along, as a temporary one."""
        import psycopg

        columns = ", ".join(f"{quote(f.name)} {_name(f.type)}" for f in rows.schema)
        names = ", ".join(quote(f.name) for f in rows.schema)
        table = quote(name)
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{table}")
                cursor.execute(f"CREATE TEMPORARY TABLE {table} ({columns})")
                with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                    for row in zip(*(c.to_pylist() for c in rows.columns), strict=True):
                        copy.write_row(row)
                # Nobody else counts a temporary table, and joins are planned by its size.
                cursor.execute(f"ANALYZE {table}")
        except psycopg.Error:
            raise engine_refusal("postgres") from None

    def begin(self) -> None:
        """See one state of the tables from now on, until ``settle``."""
        import psycopg

        try:
            # The state that a transaction sees is that of its first statement.
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            raise engine_refusal("postgres") from None

    def bring(self, name: str, rows: pa.Table, like: tuple[str, str | None]) -> None:
        """Bring a table along to join with; values have the type that they have in the column."""
        import psycopg

        table, column = like
        kinds = [f"{quote(f.name)} {_name(f.type)}" for f in rows.schema]
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{quote(name)}")
                if column is None:
                    cursor.execute(f"CREATE TEMPORARY TABLE {quote(name)} ({', '.join(kinds)})")
                else:
                    # With the column's own type and collation, its values are compared as there.
                    more = "".join(f", NULL::{kind.rpartition(' ')[2]} AS {kind.partition(' ')[0]}"
                                   for kind in kinds[1:])  # fmt: skip
                    cursor.execute(
                        f"CREATE TEMPORARY TABLE {quote(name)} AS SELECT r.{column} AS value"
                        f"{more} FROM {quote(table)} r LIMIT 0"
                    )
                copy_batches(cursor, quote(name), rows.to_reader())
                cursor.execute(f"ANALYZE {quote(name)}")
        except psycopg.errors.InsufficientPrivilege:
            raise _no_temporary_tables() from None
        except psycopg.Error:
            raise engine_refusal("postgres") from None

    def keep(self, name: str, query: Expr) -> int:
        """Keep what a query gives as a temporary table; how many rows it gave."""
        import psycopg

        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"CREATE TEMPORARY TABLE {quote(name)} AS {self.sql(query)}")
                return int(cursor.rowcount)
        except psycopg.errors.InsufficientPrivilege:
            raise _no_temporary_tables() from None
        except psycopg.Error:
            raise engine_refusal("postgres") from None

    def forget(self, name: str) -> None:
        """Let go of what was kept."""
        import psycopg

        try:
            self._connection.execute(f"DROP TABLE pg_temp.{quote(name)}")
        except psycopg.Error:
            raise engine_refusal("postgres") from None

    def write_rows(self, name: str, labeling: Labeling, table: str, folder: Path) -> None:  # noqa: ARG002
        """Write the rows with their labels as a temporary table, rows that are alike together.

        Raises:
            EngineError: they cannot be written.
        """
        import psycopg

        self._staged = name
        names = ", ".join(f"g.{quote(one)}" for one in labeling.published)
        rows = labeling.rows(table)
        query = self._in_order(rows, labeling)
        if labeling.repeated:
            query = (
                f"SELECT {names} FROM ({labeling.groups(rows)}) g "
                f"CROSS JOIN LATERAL GENERATE_SERIES(1, g.{labeling.unused('hm_n')})"
            )
        try:
            self._connection.execute(f"CREATE TEMPORARY TABLE {quote(name)} AS {query}")
        except psycopg.Error as error:
            raise EngineError(
                f"PostgreSQL could not write the rows ({type(error).__name__}): check the room on "
                "its disk and the right to make temporary tables. Nothing was released."
            ) from None

    def _in_order(self, rows: str, labeling: Labeling) -> str:
        """The rows of a query in an order that their published columns alone decide.

        A table of a database has no order of its own, so that it may be the cheapest: by one number
        made of all columns, as a sort by many texts takes three times as long.
        """
        row = labeling.unused("hm_row")
        number = f"HASH_RECORD_EXTENDED({row}, 0), " if self._hashes_rows else ""
        return f"SELECT {row}.* FROM ({rows}) {row} ORDER BY {number}{labeling.places}"

    @property
    def _hashes_rows(self) -> bool:
        """Whether the server makes one number of a row, which it does since version 14."""
        return bool(self._connection.info.server_version >= 140_000)

    def stream(self, rows: int) -> pa.RecordBatchReader:
        """The staged rows, so many at a time."""
        import psycopg

        table = self._staged

        try:
            kinds = pa.schema(list(self._digits(table).items()))
            # A cursor with a name stays at the server; without one all rows come at once.
            cursor = self._connection.cursor(f"hm_{token_hex(6)}")
            cursor.execute(f"SELECT * FROM {quote(table)}")
        except psycopg.Error:
            raise engine_refusal("postgres") from None

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                with cursor:  # to close it asks the server too
                    while found := cursor.fetchmany(rows):
                        columns = [
                            pa.array([_spell(row[i], kind) for row in found], kind)
                            for i, kind in enumerate(kinds.types)
                        ]
                        yield pa.record_batch(columns, schema=kinds)
            except psycopg.Error:
                raise engine_refusal("postgres") from None

        return pa.RecordBatchReader.from_batches(kinds, batches())

    def _digits(self, table: str) -> dict[str, pa.DataType]:
        """The types of a table's columns; of numbers of any digits, those that are there."""
        found = dict(self.columns(table) or {})
        for name, kind in found.items():
            if kind == any_digits():
                scale = self._connection.execute(
                    f"SELECT MAX(SCALE({quote(name)})) FROM {quote(table)}"
                ).fetchone()[0]
                found[name] = pa.decimal128(38, scale or 0)
        return found

    def settle(self) -> None:
        """End the transaction; temporary tables stay."""
        import psycopg

        try:
            self._connection.commit()
        except psycopg.Error:
            raise engine_refusal("postgres") from None

    def capped(self, value: Expr, count: int) -> Expr:
        """The values where there are fewer than ``count``."""
        from sqlglot import exp

        few = exp.LT(this=exp.Count(this=value.copy()), expression=exp.Literal.number(count))
        present = exp.Filter(
            this=exp.ArrayAgg(this=value),
            expression=exp.Where(this=value.copy().is_(exp.null()).not_()),
        )
        return exp.Case().when(few, present)

    def fingerprint(self, table: str) -> str:
        """A text that changes where the table's rows change."""
        import psycopg

        counted = f"SELECT COUNT(*), SUM(hashtextextended(t::text, 0)) FROM {quote(table)} t"
        try:
            with self._connection.cursor() as cursor, self._connection.transaction():
                rows, total = cursor.execute(counted).fetchone()
        except psycopg.Error:
            raise engine_refusal("postgres") from None
        return f"postgres:{rows}-{total}"

    def definition(self, table: str) -> str | None:
        """The SQL of a view; None for a table."""
        import psycopg

        text = (
            "SELECT CASE c.relkind WHEN 'm' THEN 'CREATE MATERIALIZED VIEW v AS ' ELSE '' END "
            "|| pg_get_viewdef(c.oid) FROM pg_class c "
            "WHERE c.oid = to_regclass(%s) AND c.relkind IN ('v', 'm')"
        )
        try:
            with self._connection.cursor() as cursor, self._connection.transaction():
                found = cursor.execute(text, [quote(table)]).fetchall()
        except psycopg.Error:
            raise engine_refusal("postgres") from None
        return str(found[0][0]) if found else None

    def row_origin(self, table: str, schema: str = "") -> RowOrigin | None:
        """What gives the rows of a table or view."""
        import psycopg

        name = f"{quote(schema)}.{quote(table)}" if schema else quote(table)
        try:
            with self._connection.cursor() as cursor, self._connection.transaction():
                kinds = cursor.execute(_COLUMNS, [name]).fetchall()
                found = cursor.execute(_BEHIND, [name]).fetchone()
        except psycopg.Error:
            raise engine_refusal("postgres") from None
        if found is None:
            return None
        definition, *more = found
        words = ("the rows of another server", "generated columns", "row security")
        types = {column: bare_type(kind) for column, kind in kinds}
        return RowOrigin(
            types, definition, next((w for w, x in zip(words, more, strict=True) if x), "")
        )

    def close(self) -> None:
        """Close the connection; temporary tables go with it."""
        self._connection.close()

    def _array(self, column: Any, values: list[Any]) -> pa.Array:
        """The values of one column.

        Raises:
            QueryError: they have a type that is not read here.
        """
        try:
            data_type = self._type(column, values)
            if pa.types.is_string(data_type):  # of a type of its own: as its text
                values = [v if v is None or isinstance(v, str) else str(v) for v in values]
            elif pa.types.is_decimal(data_type):  # Arrow's know neither NaN nor infinity
                values = [v if v is None or v.is_finite() else None for v in values]
            array = pa.array(values, data_type)
        except (pa.ArrowException, TypeError, ValueError):
            # The cause would quote a value.
            raise QueryError(
                "postgres returns values of a type that cannot be read here (intervals, NUMERIC "
                "beyond 38 digits or NaN, own types): CAST the column to DOUBLE, DECIMAL or TEXT."
            ) from None
        return array

    def _declared_type(self, column: Any) -> pa.DataType:
        """The type of a column as declared; its digits, where it has some."""
        known = self._connection.adapters.types.get(column.type_code)
        if known is None or (known.name not in _TYPES and known.name != "numeric"):
            return unread_type()
        if known.name != "numeric" or column.type_code == known.array_oid:
            return self._type(column, [])
        if column.precision is None or column.precision > 38 or column.scale < 0:
            return any_digits()
        return pa.decimal128(column.precision, column.scale)

    def _type(self, column: Any, values: list[Any]) -> pa.DataType:
        known = self._connection.adapters.types.get(column.type_code)
        name = known.name if known is not None else "text"
        if known is not None and column.type_code == known.array_oid:
            return pa.list_(self._element(known.name, values))
        if name == "numeric":
            scale = column.scale
            if scale is None:  # a NUMERIC without digits, such as a sum: those of its values
                scale = max(
                    (
                        max(0, -v.as_tuple().exponent)
                        for v in values
                        if v is not None and v.is_finite()
                    ),
                    default=0,
                )
            return pa.decimal128(38, scale)
        return _TYPES.get(name, pa.string())

    def _element(self, name: str, values: list[Any]) -> pa.DataType:
        if name == "numeric":
            flat = [x for v in values if v is not None for x in v if x is not None]
            scale = max((max(0, -x.as_tuple().exponent) for x in flat), default=0)
            return pa.decimal128(38, scale)
        return _TYPES.get(name, pa.string())


def _no_temporary_tables() -> EngineError:
    return EngineError(
        "You may not make temporary tables in this database, and labels are joined by them: ask "
        "for the right TEMPORARY. Nothing was released."
    )


def _spell(value: Any, kind: pa.DataType) -> Any:
    """A value of a type of its own as its text."""
    return value if value is None or not pa.types.is_string(kind) else str(value)


def _addable(value: Expr) -> Expr:
    from sqlglot import exp

    case = exp.Case().when(exp.EQ(this=value.copy(), expression=_real("NaN")), _real("NaN"))
    case = case.when(exp.GT(this=value.copy(), expression=_real("1e290")), _real("Infinity"))
    case = case.when(exp.LT(this=value.copy(), expression=_real("-1e290")), _real("-Infinity"))
    return case.else_(value.copy())


def _real(text: str) -> Expr:
    from sqlglot import exp

    return exp.cast(exp.Literal.string(text), "double")


def _json(value: Expr) -> Expr:
    from sqlglot import exp

    null = exp.cast(exp.Literal.string("null"), "jsonb")
    present = exp.Anonymous(this="TO_JSONB", expressions=[value.copy()])
    return exp.Coalesce(this=present, expressions=[null])


_NAMES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_decimal256, "numeric"),
    (pa.types.is_date, "date"),
    # Before those without a zone, whose test they pass too.
    (lambda t: pa.types.is_timestamp(t) and t.tz is not None, "timestamptz"),
    (pa.types.is_timestamp, "timestamp"),
)


def _name(data_type: pa.DataType) -> str:
    if pa.types.is_decimal128(data_type):
        return f"numeric({data_type.precision}, {data_type.scale})"
    return next((name for test, name in _NAMES if test(data_type)), "text")


def copy_batches(cursor: Any, table: str, rows: pa.RecordBatchReader) -> int:
    """Copy rows into a table, as CSV that tells missing values from empty texts."""
    import pyarrow.csv as csv

    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    count = 0
    with cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        for batch in rows:
            plain = pa.table(
                [
                    c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c
                    for c in batch.columns
                ],
                names=batch.schema.names,
            )
            written = io.BytesIO()
            csv.write_csv(plain, written, options)
            copy.write(written.getvalue())
            count += batch.num_rows
    return count


def publish_table(
    address: str,
    name: str,
    schema: pa.Schema,
    record: str,
    *,
    rows: pa.RecordBatchReader | None = None,
    writer: Any = None,
    check: Callable[[Any, str], None],
) -> None:
    """Make the table ``name`` of a database, or put new rows in its place, by one commit.

    Args:
        address: the database.
        name: the table; one that is there must be a release of ours, and keeps its grants.
        schema: the columns and their types.
        record: what the release says of itself, as the comment of the table.
        rows: the rows; None: those that ``writer``, an engine of the same database, wrote there.
        writer: that engine.
        check: looks at the new table, before anybody can see it.

    Raises:
        InputError: another table or something that reads it is in the way.
        EngineError: the database cannot be reached or written to; nothing was released.
    """
    try:
        import psycopg
    except ImportError:
        raise EngineUnavailableError("psycopg", "pip install 'halfmask[postgres]'") from None
    try:
        connection = writer._connection if writer is not None else psycopg.connect(address)  # noqa: SLF001
    except psycopg.Error as error:
        raise EngineError(
            f"The database cannot be reached ({type(error).__name__}). Check the address."
        ) from None
    fresh = f"hm_{token_hex(8)}"  # a name that nobody guesses or has
    if writer is not None:
        writer.settle()  # else what follows would be a part of a transaction that nobody commits
    try:
        with connection.transaction(), connection.cursor() as cursor:
            kept = _require_place(cursor, name)
            _fill(cursor, fresh, schema, rows)
            check(cursor, fresh)
            reach("before publishing")
            _replace(cursor, name, fresh, kept)
            text = (MARK + record).replace("'", "''")
            cursor.execute(f"COMMENT ON TABLE {quote(name)} IS '{text}'")
    except psycopg.Error as error:
        raise EngineError(
            f"PostgreSQL could not publish the table ({type(error).__name__}): check that it can "
            "be reached, has room, and that you may create tables there. Nothing was released."
        ) from None
    finally:
        if writer is None:
            connection.close()
    reach("published")


def _fill(cursor: Any, fresh: str, schema: pa.Schema, rows: pa.RecordBatchReader | None) -> None:
    """Make the new table of the rows, or of those that are staged in this database."""
    if rows is None:
        cursor.execute(f"CREATE TABLE {quote(fresh)} AS SELECT * FROM {STAGED}")
        return
    columns = ", ".join(f"{quote(f.name)} {_kind(f.type)}" for f in schema)
    cursor.execute(f"CREATE TABLE {quote(fresh)} ({columns})")
    copy_batches(cursor, quote(fresh), rows)


_PUBLISHED = (
    (pa.types.is_float32, "real"),
    (pa.types.is_decimal, "numeric"),
    (pa.types.is_time, "time"),
)


def _kind(kind: pa.DataType) -> str:
    """The type of a published column: as narrow as the values, and decimals of any digits."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return next((name for test, name in _PUBLISHED if test(kind)), None) or _name(kind)


def known_kind(kind: pa.DataType) -> bool:
    """Whether values of a type come back from PostgreSQL as they went there."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(plain) or _kind(plain) != "text"


def require_place(address: str, name: str) -> None:
    """Refuse, before work begins, a table that cannot be made or may not be replaced."""
    try:
        import psycopg
    except ImportError:
        raise EngineUnavailableError("psycopg", "pip install 'halfmask[postgres]'") from None
    try:
        with psycopg.connect(address) as connection, connection.cursor() as cursor:
            _require_place(cursor, name)
    except psycopg.Error as error:
        raise EngineError(
            f"The database cannot be reached ({type(error).__name__}). Check the address."
        ) from None


def _require_place(cursor: Any, name: str) -> list[tuple[Any, ...]] | None:
    """What the table that is there grants to whom; None where there is none."""
    cursor.execute("SELECT HAS_SCHEMA_PRIVILEGE(CURRENT_SCHEMA(), 'CREATE')")
    if not cursor.fetchone()[0]:
        raise InputError("You may not create tables in this database: ask for the right CREATE.")
    cursor.execute(
        "SELECT c.oid, c.relkind, COALESCE(OBJ_DESCRIPTION(c.oid, 'pg_class'), '') "
        "FROM pg_class c WHERE c.oid = TO_REGCLASS(%s)",
        [quote(name)],
    )
    there = cursor.fetchone()
    if there is None:
        return None
    oid, kind, said = there
    if kind not in ("r", b"r") or not said.startswith(MARK):
        raise InputError(
            f"The database has something called {name!r} that is no release of ours: give the "
            "output another name."
        )
    cursor.execute(
        "SELECT COUNT(DISTINCT w.ev_class) FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid "
        "WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = %s",
        [oid],
    )
    if views := cursor.fetchone()[0]:
        raise InputError(
            f"{views} view(s) read the table {name!r}: drop them first, or name another output."
        )
    cursor.execute(
        "SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE QUOTE_IDENT(PG_GET_USERBYID(a.grantee)) "
        "END, a.privilege_type, a.is_grantable FROM pg_class c, ACLEXPLODE(c.relacl) a "
        "WHERE c.oid = %s AND a.grantee <> c.relowner",
        [oid],
    )
    return list(cursor.fetchall())


def _replace(cursor: Any, name: str, fresh: str, kept: list[tuple[Any, ...]] | None) -> None:
    """Give the new table its name, and to others what they had of the old one."""
    if kept is not None:
        cursor.execute(f"DROP TABLE {quote(name)}")
    cursor.execute(f"ALTER TABLE {quote(fresh)} RENAME TO {quote(name)}")
    for who, what, further in kept or ():
        more = " WITH GRANT OPTION" if further else ""
        cursor.execute(f"GRANT {what} ON {quote(name)} TO {who}{more}")
