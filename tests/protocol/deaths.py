"""A relay that is killed at every statement of its store, and started again, for tests."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effort import THOROUGH

from halfmask.protocol.messages import read_request
from halfmask.protocol.parties.relay import Relay
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.transport import drive

if TYPE_CHECKING:
    from tests.protocol.town import Town


ROOT = Path(__file__).parents[2]


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


class Nursery:
    """A small process that begins relays and lets them die: a copy of this one takes far longer."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from tests.protocol.deaths import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        )

    def kills(self, *request: Any) -> bool:
        """Handle a message and be killed at one of its statements; whether there were so many.

        Where there were not, everything was done but nothing said, or nothing done.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump(request, self.process.stdin)
        self.process.stdin.flush()
        return self.process.stdout.read(1) == b"k"

    def close(self) -> None:
        """End it."""
        self.process.communicate()


def serve() -> None:
    """Begin one relay a request, until there are no more."""
    with suppress(EOFError):
        while True:
            path, data, now, statements, speechless = pickle.load(sys.stdin.buffer)  # noqa: S301
            child = os.fork()
            if child == 0:
                store = Dying(path)
                store.statements, store.speechless = statements, speechless
                Relay(store, attempts=10**6).handle(data, now)
                os._exit(0)
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert ended in (0, -signal.SIGKILL), ended
            sys.stdout.buffer.write(b"k" if ended else b"-")
            sys.stdout.buffer.flush()


def ask_dying_relays(
    nursery: Nursery, town: Town, path: Path, text: str
) -> tuple[Any, dict[str, int]]:
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
            while nursery.kills(path, data, town.clock, statement, speechless):
                statement += 1
            deaths[kind] = max(deaths.get(kind, 0), statement)
        else:
            step = handled[kind] % (deaths[kind] + 1)
            nursery.kills(path, data, town.clock, step, speechless)
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
