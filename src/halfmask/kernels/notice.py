"""Say on a terminal that something is compiled, which happens once."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_AFTER, _EVERY = 0.4, 0.2  # seconds


class _Notice:
    """What kernels that compile each other say together."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.spent = 0.0  # by kernels that were compiled before, in this process
        self.over = threading.Event()

    def begin(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth > 1 or not sys.stderr.isatty():
                return
            self.over = threading.Event()
            arguments = (sys.stderr, self.over, time.monotonic())
            threading.Thread(target=self.tell, args=arguments, daemon=True).start()

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.over.set()

    def tell(self, out: TextIO, over: threading.Event, began: float) -> None:
        told = False
        while not over.wait(_EVERY):
            passed = self.spent + time.monotonic() - began
            if passed >= _AFTER:
                out.write(f"\rcompiling, once: {passed:.0f} s\x1b[K")
                out.flush()
                told = True
        self.spent += time.monotonic() - began
        if told:
            out.write("\r\x1b[K")
            out.flush()


_NOTICE = _Notice()


@contextmanager
def notice() -> Iterator[None]:
    """Show the time spent on a terminal, and nothing elsewhere, while the block runs."""
    _NOTICE.begin()
    try:
        yield
    finally:
        _NOTICE.end()
