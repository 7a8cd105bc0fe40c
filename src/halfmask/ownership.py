"""Files and folders for their owner alone: whatever the umask, and whoever made them before.

What holds originals, keys, spendings or who took part is made so that no other user of the machine
ever sees a byte of it, and is tightened where an earlier hand left it open. Files that take the
place of others as a whole are ``release.files.private_file``, which begins here too.

What engines write on their way stands in folders that go with the process. A killed process cannot
take its folders away: each is locked while it is used, and who makes the next one removes those
that nobody holds any more.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.errors import InputError, usable_path

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHERS = 0o077
TEMPORARY = "halfmask-rows-"  # how temporary folders are called
_LOCK = "lock"
_BESIDE = ("", "-wal", "-shm", "-journal")  # SQLite's own files get the rights of their database


def make_private(path: str | os.PathLike[str]) -> None:
    """Make ``path`` a file that its owner alone may read; an empty one where there is none.

    For databases, which are opened where they stand: what SQLite writes beside its file gets the
    same rights.

    Raises:
        InputError: it is somebody else's file, or cannot be made.
    """
    try:
        os.close(os.open(usable_path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        tighten(path)
    except OSError as error:
        why = error.strerror or "no access"
        raise InputError(f"Cannot write {str(path)!r}: {why}.") from error


def write_new(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that its owner alone may read, and that must not exist.

    Raises:
        FileExistsError: there is one.
        InputError: it cannot be made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(usable_path(path), flags, 0o600), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise
    except OSError as error:
        why = error.strerror or "no access"
        raise InputError(f"The file {Path(path).name!r} cannot be made here: {why}.") from error


def tighten(path: str | os.PathLike[str]) -> None:
    """Take from others what rights they have on a file of ours, and on what SQLite keeps beside it.

    Raises:
        InputError: others may read it, and it belongs to somebody else.
    """
    place = usable_path(path)
    for suffix in _BESIDE:
        one = Path(f"{place}{suffix}")
        if not one.is_file() or not one.stat().st_mode & OTHERS:
            continue
        try:
            one.chmod(0o600)
        except OSError as error:
            raise InputError(
                f"{str(one)!r} can be read by others and belongs to somebody else: use a file of "
                "your own."
            ) from error


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """What a file of ours holds, which others cannot read from now on.

    A secret that the system lays out for several users is not ours to close, and is read as it is.

    Raises:
        OSError: it cannot be read.
    """
    place = usable_path(path)
    with suppress(InputError):
        tighten(place)
    return place.read_bytes()


def private_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made for its owner alone where there is none (and those above it)."""
    folder = usable_path(path)
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def is_listable(folder: Path) -> bool:
    """Whether others can see what files a folder holds."""
    return bool(folder.stat().st_mode & 0o044)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of this process in the temporary folder, which goes when the body ends."""
    _remove_abandoned()
    place = Path(tempfile.mkdtemp(prefix=TEMPORARY))
    try:
        held = _lock(place)
        try:
            yield place
        finally:
            if held is not None:
                os.close(held)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _lock(place: Path) -> int | None:
    """Hold a folder; it is seen to be held from the moment that its lock is there."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where nothing is removed either
        return None
    fresh = place / "locking"
    held = os.open(fresh, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    fresh.rename(place / _LOCK)
    return held


def _remove_abandoned() -> None:
    """Remove folders whose process is gone; those of others, or without a lock, stay."""
    try:
        import fcntl
    except ImportError:
        return
    for place in Path(tempfile.gettempdir()).glob(TEMPORARY + "*"):
        with suppress(OSError):
            if place.is_symlink() or place.stat().st_uid != os.getuid():
                continue
            held = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(held)
