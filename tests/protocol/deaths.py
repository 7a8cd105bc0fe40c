"""A relay that is killed at every statement of its store, and started again, for tests."""

from __future__ import annotations

import os
import signal
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

from effort import THOROUGH

from halfmask.protocol.messages import read_request
from halfmask.protocol.parties.relay import Relay
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.transport import drive

if TYPE_CHECKING:
    from pathlib import Path

    from tests.protocol.town import Town


class Dying(RelayStore):
    """Kills its own process before a statement."""

    statements = 0
    speechless = True

    def _run(self, text: str, *values: object) -> Any:
        if self.statements == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.statements -= 1
        if text == "COMMIT" and not self.speechless:
            os._exit(0)
        return super()._run(text, *values)


def killed(path: Path, data: bytes, now: float, statements: int, *, speechless: bool) -> bool:
    """Handle a message and be killed at one of its statements; whether there were so many.

    Where there were not, everything was done but nothing said (``speechless``), or nothing done.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        store = Dying(path)
        store.statements, store.speechless = statements, speechless
        Relay(store, attempts=10**6).handle(data, now)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def ask_dying_relays(town: Town, path: Path, text: str) -> tuple[Any, dict[str, int]]:
    """What is found by relays that every message kills, and how often a message of a kind did.

    It kills one before each of its statements, and one before its reply. A task that such a relay
    gave to nobody must come back in time; every third Seek is answered. After the first messages of
    a kind, the ordinary run kills at one statement alone, each time at the next.
    """
    deaths: dict[str, int] = {}
    handled: Counter[str] = Counter()

    def restarting(data: bytes) -> bytes:
        town.store.stop()
        kind, statement = type(read_request(data)).__name__, 0
        handled[kind] += 1
        speechless = kind != "Seek" or handled[kind] % 3 == 0
        if THOROUGH or handled[kind] <= (3 if kind == "Seek" else 1):
            while killed(path, data, town.clock, statement, speechless=speechless):
                statement += 1
            deaths[kind] = max(deaths.get(kind, 0), statement)
        else:
            step = handled[kind] % (deaths[kind] + 1)
            killed(path, data, town.clock, step, speechless=speechless)
        town.store = RelayStore(path)
        town.relay = Relay(town.store, attempts=10**6)
        return town.raw(data)

    town.send = restarting
    question = town.question(text)
    town.gather(question)
    for turn in range(40):
        if drive(town.cells[turn % len(town.cells)].work(town.clock), town.send) is None:
            found = drive(town.asker.collect(question), town.send)
            town.clock += 31  # tasks given to nobody are given out again
            if found is not None:
                return found, deaths
    return None, deaths
