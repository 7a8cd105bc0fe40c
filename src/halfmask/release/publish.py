"""Releases that leave for a folder or a database, by one step that nobody sees half of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.engines.copying import publish_table, require_place
from halfmask.engines.labeling import quoted
from halfmask.engines.open import is_address, is_database
from halfmask.errors import InputError, InternalError, ParameterError
from halfmask.release.record import require_folder, write_folder

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.release.release import Release


def is_folder(path: str | PathLike[str]) -> bool:
    """Whether a name asks for a folder of files."""
    return isinstance(path, str) and path.endswith(("/", os.sep)) and not is_address(path)


def is_server(path: str | PathLike[str]) -> bool:
    """Whether a name is the address of a database server."""
    return is_address(path) and not is_database(path)


def require_target(path: str | PathLike[str], table: str | None) -> bool:
    """Look at a folder or a table before work begins; whether the name asks for one.

    Raises:
        InputError: something else is in the way, or it may not be made.
    """
    if is_server(path):
        require_place(str(path), _require_name(table))
        return True
    if table is not None:
        raise ParameterError("table", table, "nothing: only a database has tables")
    if is_folder(path):
        require_folder(Path(path))
        return True
    return False


def write_elsewhere(release: Release, path: str | PathLike[str], table: str | None) -> bool:
    """Write to a folder or a database, whole or not at all; whether the name asks for one."""
    if not require_target(path, table):
        return False
    record = None if release.schema is None else release.record()
    if is_folder(path):
        write_folder(release.to_batches(), str(path), record)
        return True
    if record is None:
        raise InputError("Only the release of a table goes to a database: write a file instead.")
    aside = release._aside  # noqa: SLF001 - the door gave it to the release
    inside = aside is not None and aside.address == str(path)
    rows = None if inside else release.to_batches()
    expected = len(release)

    def check(cursor: Any, name: str) -> None:
        cursor.execute(f"SELECT COUNT(*) FROM {quoted(name)}")  # noqa: S608 - quoted
        if cursor.fetchone()[0] != expected:
            raise InternalError("Other rows arrived than were released; nothing was released.")

    publish_table(
        str(path),
        _require_name(table),
        release._arrow.schema if rows is None else rows.schema,  # noqa: SLF001
        record.text({}),
        rows=rows,
        aside=aside.connection if inside and aside is not None else None,
        check=check,
    )
    return True


def _require_name(table: str | None) -> str:
    if not table:
        raise ParameterError("table", table, "the name of the table to write in the database")
    return table
