"""Folders for what engines write on their way: for their owner alone, and gone with the process.

A process that is killed cannot take its folders away. Each is locked while it is used; who makes
the next one removes those that nobody holds any more, so that rows which spilled to disk or were
not published yet do not stay there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "halfmask-rows-"
_LOCK = "lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of this process in the temporary folder, which goes when the body ends."""
    _remove_abandoned()
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
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
    for place in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            if place.is_symlink() or place.stat().st_uid != os.getuid():
                continue
            held = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(held)
