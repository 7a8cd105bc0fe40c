"""The file that holds the key of a cell's home."""

from __future__ import annotations

import os
from pathlib import Path

from halfmask.errors import InputError


def new_key_file(path: str | Path) -> bytes:
    """A fresh key in a file that its owner alone may read."""
    key = os.urandom(32)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key.hex().encode() + b"\n")
    except FileExistsError:
        raise InputError(f"{Path(path).name} exists already; a key is never overwritten.") from None
    return key


def read_key_file(path: str | Path) -> bytes:
    """The key in a key file."""
    try:
        key = bytes.fromhex(Path(path).read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        key = b""
    if len(key) != 32:
        raise InputError(f"{Path(path).name} cannot be read as a cell's key file.")
    return key
