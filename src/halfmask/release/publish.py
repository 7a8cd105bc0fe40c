"""Releases that leave for a folder or a database, by one step that nobody sees half of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.engines.copying import known_kind, publish_table, require_place
from halfmask.engines.labeling import quoted
from halfmask.engines.open import is_address, is_database
from halfmask.errors import InputError, InternalError, ParameterError
from halfmask.release.groups import count_groups, require_groups
from halfmask.release.record import require_folder, write_folder, write_pieces

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.release.groups import Groups
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
    aside = release._aside  # noqa: SLF001 - the door gave it to the release
    if is_folder(path):
        if aside is None or record is None or not write_pieces(aside, str(path), record):
            write_folder(release.to_batches(), str(path), record)
        return True
    if record is None or release.schema is None:
        raise InputError("Only the release of a table goes to a database: write a file instead.")
    inside = aside is not None and aside.address == str(path)
    rows = None if inside else release.to_batches()
    if aside is not None and aside.groups is not None:
        expected = aside.groups
    else:
        columns = release.schema.columns
        told = [n for n, one in columns.items() if one.role in ("quasi", "sensitive")]
        expected = count_groups(release.to_arrow(), told)

    def check(cursor: Any, name: str) -> None:
        require_groups(*_both_sides(cursor, name, expected, len(release)))

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


def _both_sides(cursor: Any, name: str, expected: Groups, rows: int) -> tuple[Groups, Groups]:
    """The groups that should be in a new table, and those that are, by a count of its rows.

    Raises:
        InternalError: there are more or fewer rows, or values of another type.
    """
    told = [n for n in expected[0].column_names if known_kind(expected[0].schema.field(n).type)]
    shown = ", ".join([*map(quoted, told), "COUNT(*)"])
    groups = f" GROUP BY {', '.join(map(quoted, told))}" if told else ""
    cursor.execute(f"SELECT {shown} FROM {quoted(name)}{groups}")  # noqa: S608 - quoted
    found = cursor.fetchall()
    counts = [row[-1] for row in found]
    try:
        arrived = {n: pa.array([row[i] for row in found], _plain(expected[0].schema.field(n).type))
                   for i, n in enumerate(told)}  # fmt: skip
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InternalError(
            "Other values arrived than were released; nothing was released."
        ) from None
    if sum(counts) != rows:
        raise InternalError("Other rows arrived than were released; nothing was released.")
    return (expected[0].select(told), expected[1]), (pa.table(arrived), counts)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _require_name(table: str | None) -> str:
    if not table:
        raise ParameterError("table", table, "the name of the table to write in the database")
    return table
