"""Folders for what engines write on their way: for their owner alone, and gone with the process.

DuckDB spills there what does not fit into the memory that it was given.

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
from typing import TYPE_CHECKING, Any

from halfmask.errors import EngineUnavailableError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "halfmask-rows-"
_LOCK = "lock"
MEMORY = "1GB"  # of DuckDB, where nothing is said


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


@contextmanager
def connect_within(memory_limit: str | None = None) -> Iterator[Any]:
    """A connection to DuckDB that takes so much memory and spills the rest to disk."""
    with scratch_folder() as spill:
        connection = _connected(memory_limit or MEMORY, str(spill))
        try:
            yield connection
        finally:
            connection.close()


def _connected(memory_limit: str, spill: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise EngineUnavailableError("DuckDB", "pip install duckdb") from None
    try:
        connection = duckdb.connect(
            ":memory:", config={"memory_limit": memory_limit, "temp_directory": spill}
        )
    except duckdb.Error:
        raise ParameterError("memory_limit", memory_limit, "a size such as 500MB or 4GB") from None
    for setting in (
        "enable_progress_bar",
        "python_enable_replacements",
        "preserve_insertion_order",
    ):
        connection.execute(f"SET {setting} = false")
    return connection
