"""Find what was given, and the engine for it: a table, files, a database, a cluster.

Rows may stand in several files, a folder or a name with wildcards. All pieces are of one kind,
Parquet or CSV. Names such as ``year=2024/part-0.parquet`` give a column each (hive partitions).
Files whose name begins with a point or an underscore are no rows: others write there what is not
finished, or what they note of the rest.
"""

from __future__ import annotations

import glob
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError, ParameterError
from halfmask.table.files.rows import file_kind
from halfmask.table.files.text_file import file_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.engines.request import Engine

_HOME = "halfmask.engines"
# An engine over tables in memory is one line here: its module, and a class made of named tables.
# None: it reads no tables in memory, and has an address instead.
ENGINES: dict[str, tuple[str, str] | None] = {
    "duckdb": ("duckdb.engine", "DuckDB"),
    "postgres": None,
    "spark": ("spark", "Spark"),
    "reference": ("reference", "Reference"),
}
DEFAULT = "duckdb"
_WILD = "*?["
_ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".csv.zst": "csv",
}


def open_tables(tables: Mapping[str, pa.Table], engine: str | None) -> Engine:
    """An engine over tables in memory.

    Raises:
        ParameterError: no engine has that name, or it does not read tables in memory.
    """
    name = DEFAULT if engine is None else engine
    if name not in ENGINES:
        raise ParameterError("engine", engine, f"one of {', '.join(ENGINES)}")
    place = ENGINES[name]
    if place is None:
        raise ParameterError("engine", engine, f"a {name}:// address in place of the table")
    # Loaded when it is asked for: an engine may be an extra that is not installed.
    module, kind = place
    made: Engine = getattr(import_module(f"{_HOME}.{module}"), kind)(tables=tables)
    return made


def open_address(address: str) -> Engine:
    """An engine over a database that is named by its address or is a file."""
    if is_database(address):
        from halfmask.engines.duckdb.engine import open_database

        return open_database(address)
    from halfmask.engines.postgres import Postgres

    return Postgres(address)


def is_address(given: object) -> bool:
    """Tell whether something is the address of a database."""
    if isinstance(given, str) and given.startswith(("postgres://", "postgresql://")):
        return True
    return is_database(given)


def is_database(given: object) -> bool:
    """Tell whether something names a file that DuckDB keeps tables in."""
    return isinstance(given, str | PathLike) and str(given).lower().endswith((".duckdb", ".ddb"))


def is_spark(given: Any) -> bool:
    """Tell whether something is a Spark session or frame, without importing Spark."""
    return type(given).__module__.startswith("pyspark.")


def is_pieces(place: str) -> bool:
    """Whether a name stands for several files: a folder, or wildcards that name no one file."""
    if "://" in place:
        return False
    path = file_named(place)
    return path.is_dir() or (any(mark in place for mark in _WILD) and not path.exists())


def list_pieces(place: str) -> tuple[str, list[str]]:
    """The kind of the pieces, parquet or csv, and their files in order.

    Raises:
        InputError: there are none, or some are of another kind than the others.
    """
    path = file_named(place)
    pattern = str(Path(glob.escape(str(path)), "**", "*")) if path.is_dir() else str(path)
    found = sorted(one for one in glob.glob(pattern, recursive=True) if _holds_rows(one, path))
    what = f"The folder {path.name!r}" if path.is_dir() else f"The pattern {path.name!r}"
    if not found:
        raise InputError(f"{what} names no Parquet or CSV file: check it.")
    kinds = {_kind(Path(one)) for one in found}
    if len(kinds) > 1:
        raise InputError(f"{what} names files of several kinds ({', '.join(sorted(kinds))}): "
                         "name those of one kind, such as folder/*.parquet.")  # fmt: skip
    (kind,) = kinds
    if kind not in ("parquet", "csv"):
        raise InputError(f"{what} names {kind} files: only Parquet and CSV are read in pieces.")
    return kind, found


def _holds_rows(file: str, place: Path) -> bool:
    """Whether a file is one of the pieces, by its name below the place."""
    path = Path(file)
    if not path.is_file():
        return False
    inside = path.relative_to(place).parts if place.is_dir() else (path.name,)
    named = any(path.name.lower().endswith(end) for end in _ENDINGS)
    return (named or not place.is_dir()) and not any(one[:1] in "._" for one in inside)


def _kind(path: Path) -> str:
    ending = next((e for e in sorted(_ENDINGS, key=len) if path.name.lower().endswith(e)), None)
    return file_kind(path) if ending is None else _ENDINGS[ending]


def partition_columns(files: list[str]) -> list[str]:
    """The columns that folders on the way to the files name, as ``year=2024``."""
    parts = (part for one in files for part in Path(one).parent.parts)
    return list(dict.fromkeys(part.partition("=")[0] for part in parts if "=" in part))
