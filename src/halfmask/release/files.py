"""Files that appear whole or not at all, and files that their owner alone may read."""

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
def private_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Like ``whole_file``, of a file that its owner alone may read, from its first byte on."""
    with whole_file(path) as temporary:
        make_private(temporary)
        yield temporary


def make_private(path: str | os.PathLike[str]) -> None:
    """Make ``path`` a file that its owner alone may read; an empty one where there is none.

    For databases, which are opened where they stand: what SQLite writes beside its file gets the
    same rights.

    Raises:
        InputError: it is somebody else's file, or cannot be made.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        _tighten(Path(path))
    except OSError as error:
        why = error.strerror or "no access"
        raise InputError(f"Cannot write {str(path)!r}: {why}.") from error


def _tighten(path: Path) -> None:
    """Take from others what rights they have on a file of ours."""
    if not path.is_file() or not path.stat().st_mode & 0o077:
        return
    try:
        path.chmod(0o600)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} can be read by others and belongs to somebody else: use a file of "
            "your own."
        ) from error


def private_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made for its owner alone where there is none (and those above it)."""
    folder = Path(path)
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


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
