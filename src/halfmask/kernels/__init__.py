"""The compiled inner loops. Compiled code is kept where it can be written.

numba keeps it beside the source, or in the user's cache folder. Where neither can be written (an
installed package run by a user without a home), it would refuse to compile at all; then a private
temporary folder serves, which is removed at the end.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path


def _writable(folder: Path) -> bool:
    """Whether ``folder`` can be written, or made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def choose_cache(source: Path, home: Path) -> Path | None:
    """The folder for compiled code, or None where numba's own choice works."""
    if _writable(source / "__pycache__"):
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    if _writable(cache):
        return cache / "halfmask" / "numba"
    private = Path(tempfile.mkdtemp(prefix="halfmask-numba-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


if "NUMBA_CACHE_DIR" not in os.environ and "numba" not in sys.modules:
    _chosen = choose_cache(Path(__file__).parent, Path(os.path.expanduser("~")))
    if _chosen is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(_chosen)
