"""Rows copied into PostgreSQL, and published there as one table by one commit.

The new table is filled under a name of its own in one transaction: nobody sees it before the
commit, and a server that loses its client takes it back.
"""

# ruff: noqa: S608 - names are quoted, and values travel by COPY
from __future__ import annotations

import io
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.engines.aside import reach
from halfmask.engines.labeling import quoted
from halfmask.errors import EngineError, EngineUnavailableError, InputError
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "halfmask release\n"  # how the comment of a released table begins
_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_decimal, "numeric"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (lambda t: pa.types.is_timestamp(t) and t.tz is not None, "timestamptz"),
    (pa.types.is_timestamp, "timestamp"),
)


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
    aside: Any = None,
    check: Callable[[Any, str], None],
) -> None:
    """Make the table ``name`` of a database, or put new rows in its place, by one commit.

    Args:
        address: the database.
        name: the table; one that is there must be a release of ours, and keeps its grants.
        schema: the columns and their types.
        record: what the release says of itself, as the comment of the table.
        rows: the rows; None: those that ``aside``, an engine of the same database, wrote there.
        aside: that engine.
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
        connection = aside._connection if aside is not None else psycopg.connect(address)  # noqa: SLF001
    except psycopg.Error as error:
        raise EngineError(
            f"The database cannot be reached ({type(error).__name__}). Check the address."
        ) from None
    fresh = f"hm_{token_hex(8)}"
    if aside is not None:
        aside.settle()  # else what follows would be a part of a transaction that nobody commits
    try:
        with connection.transaction(), connection.cursor() as cursor:
            kept = _require_place(cursor, name)
            if rows is None:
                cursor.execute(f"CREATE TABLE {quoted(fresh)} AS SELECT * FROM hm_aside")
            else:
                columns = ", ".join(f"{quoted(f.name)} {_kind(f.type)}" for f in schema)
                cursor.execute(f"CREATE TABLE {quoted(fresh)} ({columns})")
                copy_batches(cursor, quoted(fresh), rows)
            check(cursor, fresh)
            reach("before publishing")
            _replace(cursor, name, fresh, kept)
            text = (MARK + record).replace("'", "''")
            cursor.execute(f"COMMENT ON TABLE {quoted(name)} IS '{text}'")
    except psycopg.Error as error:
        raise EngineError(
            f"PostgreSQL could not publish the table ({type(error).__name__}): check that it can "
            "be reached, has room, and that you may create tables there. Nothing was released."
        ) from None
    finally:
        if aside is None:
            connection.close()
    reach("published")


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return next((name for test, name in _TYPES if test(kind)), "text")


def known_kind(kind: pa.DataType) -> bool:
    """Whether values of a type come back from PostgreSQL as they went there."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(plain) or any(test(plain) for test, _ in _TYPES)


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
        [quoted(name)],
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
        cursor.execute(f"DROP TABLE {quoted(name)}")
    cursor.execute(f"ALTER TABLE {quoted(fresh)} RENAME TO {quoted(name)}")
    for who, what, further in kept or ():
        more = " WITH GRANT OPTION" if further else ""
        cursor.execute(f"GRANT {what} ON {quoted(name)} TO {who}{more}")
