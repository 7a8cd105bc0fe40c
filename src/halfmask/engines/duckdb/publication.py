"""A release as one table of a DuckDB database: filled, counted and named in one transaction.

A database that is there is changed by one commit; a new one is written under another name beside
its place and renamed when it is whole. Nothing else reads either before that.
"""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from halfmask.engines.request import MARK, quote
from halfmask.engines.staging import reach
from halfmask.errors import EngineError, EngineUnavailableError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa


def publish_in_file(
    place: str,
    name: str,
    record: str,
    rows: pa.RecordBatchReader,
    check: Callable[[Any, str], None],
) -> None:
    """Make the table ``name`` of a DuckDB database, or put new rows in its place, by one commit.

    Args:
        place: the database; it is made where there is none.
        name: the table; one that is there must be a release of ours.
        record: what the release says of itself, as the comment of the table.
        rows: the rows.
        check: looks at the new table, before anybody can see it.

    Raises:
        InputError: another table, or another program, is in the way.
        EngineError: the rows cannot be written; nothing was released.
    """
    target = Path(place)
    if target.exists():
        _fill(target, name, record, rows, check)
        return
    fresh = target.with_name(f".{target.name}.{token_hex(8)}.part")
    try:
        _fill(fresh, name, record, rows, check)
        reach("before publishing")
        if target.exists():
            raise InputError(f"Meanwhile there is a file {target.name!r}: try again.")
        fresh.rename(target)
    finally:
        for left in (fresh, fresh.with_name(fresh.name + ".wal")):
            left.unlink(missing_ok=True)
    reach("published")


def _fill(
    place: Path,
    name: str,
    record: str,
    rows: pa.RecordBatchReader,
    check: Callable[[Any, str], None],
) -> None:
    import duckdb

    fresh = f"hm_{token_hex(8)}"
    with _open(place) as connection:
        cursor: Any = connection
        try:
            cursor.execute("BEGIN")
            _require_free(cursor, name)
            cursor.register("hm_incoming", rows)
            cursor.execute(f"CREATE TABLE {fresh} AS SELECT * FROM hm_incoming")
            check(cursor, fresh)
            cursor.execute(f"DROP TABLE IF EXISTS {quote(name)}")
            cursor.execute(f"ALTER TABLE {fresh} RENAME TO {quote(name)}")
            text = (MARK + record).replace("'", "''")
            cursor.execute(f"COMMENT ON TABLE {quote(name)} IS '{text}'")
            reach("before the commit")
            cursor.execute("COMMIT")
        except duckdb.Error as error:
            raise EngineError(
                f"DuckDB could not publish the table ({type(error).__name__}): check the room on "
                "the disk, and that no view or index depends on it. Nothing was released."
            ) from None


@contextmanager
def _open(place: Path, *, read_only: bool = False) -> Iterator[Any]:
    """The database, closed whatever happens, so that what was not committed is gone.

    Raises:
        InputError: it cannot be opened or written.
    """
    try:
        import duckdb
    except ImportError:
        raise EngineUnavailableError("DuckDB", "pip install duckdb") from None
    try:
        connection = duckdb.connect(str(place), read_only=read_only)
    except duckdb.Error:
        raise InputError(
            f"{place.name!r} cannot be opened as a DuckDB database: check the file, the right to "
            "write it, and that no other program has it open."
        ) from None
    try:
        yield connection
    finally:
        connection.close()


def require_file_place(place: str, name: str) -> None:
    """Refuse, before work begins, a table that cannot be made or may not be replaced."""
    target = Path(place)
    if target.exists():
        if not os.access(target, os.W_OK):
            raise InputError(f"You may not write to {target.name!r}: ask for the right.")
        with _open(target, read_only=True) as connection:
            _require_free(connection, name)
    elif not target.parent.is_dir():
        raise InputError(f"The folder {str(target.parent)!r} does not exist: make it first.")
    elif not os.access(target.parent, os.W_OK):
        raise InputError(f"You may not write into {str(target.parent)!r}: ask for the right.")


def _require_free(connection: Any, name: str) -> None:
    """Refuse a name that something else has than a release of ours; names differ by more than case.

    Raises:
        InputError: say what to do.
    """
    listed = (
        "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() "
        "AND LOWER(table_name) = LOWER(?) UNION ALL SELECT '' FROM duckdb_views() "
        "WHERE database_name = current_database() AND NOT internal AND LOWER(view_name) = LOWER(?)"
    )
    found = connection.execute(listed, [name, name]).fetchall()
    if any(not (comment or "").startswith(MARK) for (comment,) in found):
        raise InputError(
            f"The database has something called {name!r} that is no release of ours: give the "
            "output another name."
        )
