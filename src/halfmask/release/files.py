"""Files that appear whole or not at all: written under another name, then renamed."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``path`` and rename it once the body has succeeded.

    Example:
        >>> with whole_file("notes.txt") as temporary:  # doctest: +SKIP
        ...     temporary.write_text("all of it")
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(
            f"The folder {str(target.parent)!r} does not exist: make it first, or write elsewhere."
        )
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder: give the name of a file.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(
            f"Cannot write {str(target)!r}: {error.strerror or 'no access'}."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes of ours from changing a file in ``folder`` at the same time."""
    try:
        import fcntl

        place = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # no such system, or writing will say what is wrong
        yield
        return
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)
