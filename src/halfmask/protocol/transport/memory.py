"""Everything in one process: sessions speak to a relay by function calls."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from halfmask.protocol.messages import Reply, Request, encode, read_reply

T = TypeVar("T")
Send = Callable[[bytes], bytes]


def drive(session: Generator[Request, Reply, T], send: Send) -> T:
    """Carry a session's messages to the relay and back until it is over."""
    try:
        request = next(session)
        while True:
            request = session.send(read_reply(send(encode(request))))
    except StopIteration as over:
        result: T = over.value
        return result
