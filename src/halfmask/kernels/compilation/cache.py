"""Compiled kernels kept on disk, one file each.

The folder carries a digest of all kernels' sources and of the versions of numba, numpy and
Python, since a kernel holds the code of those that it calls. Each file is named after
what it was compiled for and begins with a digest of the rest, so that processes that write at the
same time do not disturb each other, and what cannot be read is compiled anew.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import pickle
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

# As numba's own cache does; not typed there.
_REBUILD: Any = CompileResult._rebuild  # noqa: SLF001
_DUMPS: Any = dumps

_DIGEST = hashlib.sha256().digest_size


def _writable(folder: Path) -> bool:
    """Whether ``folder`` can be written, or made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def choose_cache(source: Path, home: Path) -> Path:
    """Where compiled code goes: NUMBA_CACHE_DIR, else beside the source, else the user's cache.

    Where none can be written (an installed package run by a user without a home), a private
    temporary folder serves, which is removed at the end.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return Path(named)
    if _writable(source / "__pycache__"):
        return source / "__pycache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    if _writable(user):
        return user / "halfmask" / "kernels"
    private = Path(tempfile.mkdtemp(prefix="halfmask-kernels-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def source_digest(source: Path) -> str:
    """What the compiled code depends on: the kernels' sources, and who compiles them."""
    about = hashlib.sha256()
    versions = (numba.__version__, np.__version__, sys.version)
    about.update("\n".join(versions).encode())
    for file in sorted(source.rglob("*.py")):
        name = file.relative_to(source).as_posix()
        about.update(f"\n{name}\n".encode() + file.read_bytes())
    return about.hexdigest()[:16]


@cache
def folder() -> Path:
    """The folder of these versions."""
    source = Path(__file__).parents[1]  # all kernels: they hold each other's code
    home = Path(os.path.expanduser("~"))
    return choose_cache(source, home) / f"halfmask-{source_digest(source)}"


class KernelCache(_Cache):
    """The files of one kernel."""

    def __init__(self, function: Callable[..., Any], chosen: Path | None = None) -> None:
        self._name = f"{function.__module__.rpartition('.kernels.')[2]}.{function.__qualname__}"
        self._chosen = chosen

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._chosen or folder())

    def enable(self) -> None:
        """Nothing: it always is."""

    def disable(self) -> None:
        """Nothing: compiling again tells nothing new."""

    def flush(self) -> None:
        """Forget what was kept of this kernel."""
        for file in self.kept:
            file.unlink(missing_ok=True)

    @property
    def kept(self) -> list[Path]:
        """The files of this kernel that there are."""
        return list(Path(self.cache_path).glob(f"{self._name}-*.nbc"))

    def _path(self, signature: Any, codegen: Any) -> Path:
        key = hashlib.sha256(repr((signature, codegen.magic_tuple())).encode()).hexdigest()
        return Path(self.cache_path) / f"{self._name}-{key[:24]}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for a signature, or None where that is not there or not readable."""
        target_context.refresh()
        try:
            held = self._path(sig, target_context.codegen()).read_bytes()
            if hashlib.sha256(held[_DIGEST:]).digest() != held[:_DIGEST]:
                return None
            # Written by this user with these versions; the digest in front is of accidents only.
            payload = pickle.loads(held[_DIGEST:])  # noqa: S301
            return _REBUILD(target_context, *payload)
        except Exception:  # noqa: BLE001 - whatever is wrong with it, it is compiled anew
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; where that cannot be written, it is compiled again next time."""
        if data.library.has_dynamic_globals:
            return
        path = self._path(sig, data.codegen)
        payload = _DUMPS(data._reduce())  # noqa: SLF001 - as numba's own
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(hashlib.sha256(payload).digest() + payload)
                os.replace(name, path)
            except BaseException:  # an interrupt too leaves nothing half written
                Path(name).unlink(missing_ok=True)
                raise
