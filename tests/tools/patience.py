"""How long a test waits for something to happen: a fault ends it, and no load does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 900  # seconds; a machine may be busy with much else


def until(seen: Callable[[], object], every: float = 0.02) -> None:
    """Wait until ``seen`` gives something true."""
    end = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < end, f"not seen within {PATIENCE} seconds"
        time.sleep(every)
