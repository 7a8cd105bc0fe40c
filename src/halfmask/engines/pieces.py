"""Rows that stand in several files: a folder, or a name with wildcards.

All pieces are of one kind, Parquet or CSV. Names such as ``year=2024/part-0.parquet`` give a column
each (hive partitions). Files whose name begins with a point or an underscore are no rows: others
write there what is not finished, or what they note of the rest.
"""

from __future__ import annotations

import glob
from pathlib import Path

from halfmask.errors import InputError
from halfmask.table.files.rows import file_kind
from halfmask.table.files.text_file import file_named

_WILD = "*?["
_ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".csv.zst": "csv",
}


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
    pattern = str(path / "**" / "*") if path.is_dir() else str(path)
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


def partition_columns(files: list[str]) -> bool:
    """Whether folders on the way to the files name columns, as ``year=2024``."""
    return any("=" in part for one in files for part in Path(one).parent.parts)
