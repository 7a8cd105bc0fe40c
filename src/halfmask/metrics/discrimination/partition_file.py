"""Partitions as a user states them in a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from halfmask.errors import InputError
from halfmask.metrics.discrimination.partition import Cuts, Partition, Partitioning


def stated_partitions(given: object) -> dict[str, Any]:
    """Partitions by column: a mapping as it is, or read from a file.

    A file has a table per column, with ``cuts`` for numbers, or with ``blocks`` (a table from block
    to values, or a list of lists) and, if wanted, ``overlap`` and ``rest``.

    Raises:
        InputError: the file cannot be read or says something else.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): blocks for name, blocks in given.items()}
    if not isinstance(given, str | os.PathLike):
        raise InputError("Partitions are a mapping from column to blocks, or a TOML file.")
    path = Path(given)
    return {name: stated_partition(name, blocks) for name, blocks in read_toml(path).items()}


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The file {path.name!r} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InputError(
            f"The file {path.name!r} is no TOML: see docs/discrimination-rate.md."
        ) from None


def stated_partition(name: str, stated: object) -> Partitioning:
    """The partition of one column, as a file states it."""
    if not isinstance(stated, Mapping) or ("cuts" in stated) == ("blocks" in stated):
        raise InputError(f"The partition of {name!r} needs either cuts or blocks.")
    known = {"cuts"} if "cuts" in stated else {"blocks", "overlap", "rest"}
    strange = sorted(set(stated) - known)
    if strange:
        raise InputError(f"The partition of {name!r} knows no {', '.join(strange)}.")
    if "cuts" in stated:
        edges = stated["cuts"]
        if not isinstance(edges, list) or not all(is_number(edge) for edge in edges):
            raise InputError(f"The cuts of {name!r} are a list of rising numbers (inf is one).")
        return Cuts(*edges)
    blocks = stated["blocks"]
    if isinstance(blocks, list):
        blocks = {f"block {i}": block for i, block in enumerate(blocks, 1)}
    if not isinstance(blocks, Mapping) or not all(isinstance(b, list) for b in blocks.values()):
        raise InputError(f"The blocks of {name!r} are lists of values, with or without names.")
    options = {key: stated[key] for key in ("overlap", "rest") if key in stated}
    return Partition(dict(blocks), **options)


def is_number(value: object) -> bool:
    """Whether a value of a file is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
