"""The process in which steps run, so that a step can be stopped for good.

Threads cannot be stopped, and a search spends minutes inside compiled code. A process is killed in
an instant: its memory and processor are free, and the next step gets a new one. It reads commands
from a pipe, one after the other, and writes to no terminal and no log.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from contextlib import contextmanager, suppress
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.errors import CancelledError, ElsewhereError, InternalError
from halfmask.failure import Failure, failure
from halfmask.service import verbs
from halfmask.service.verbs import LoadedTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfmask.service.jobs import Job

_KILLED = -9
_PATIENCE = 10.0  # seconds until a killed process is gone


class Worker:
    """The process of the steps as its parent sees it: made when needed, killed when asked."""

    def __init__(self, folder: Path) -> None:
        self._home = folder
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Any = None

    def start(self) -> None:
        """Begin now what the first step would else wait for."""
        with self._lock:
            self._ready()

    def do(self, command: str, job: Job | None = None, **given: Any) -> Any:
        """Run a step, for a job that somebody may cancel meanwhile, and give what it gives.

        Raises:
            CancelledError: the job was cancelled before the step began.
            ElsewhereError: the step failed.
            MemoryError: the system killed it, which it does where memory runs out.
        """
        with self._lock:  # who cancels takes it after saying so
            if job is not None and job.unwanted:
                raise CancelledError
            process, pipe = self._ready()
            with suppress(OSError):  # it just ended, which receiving tells too
                pipe.send((command, given))
        try:
            found = pipe.recv()
        except (EOFError, OSError):
            process.join(_PATIENCE)
            if process.exitcode == _KILLED:
                raise MemoryError from None
            raise InternalError("The process of the steps ended.") from None
        if isinstance(found, Failure):
            raise ElsewhereError(found)
        return found

    def restart(self) -> None:
        """End what runs at once, remove what it was writing, and be ready for more."""
        with self._lock:
            self._end()
            self._ready()

    def close(self) -> None:
        """End what runs at once."""
        with self._lock:
            self._end()

    def _ready(self) -> tuple[Any, Any]:
        if self._process is None or not self._process.is_alive():
            self._begin()
        return self._process, self._pipe

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join(_PATIENCE)
            self._process = None
        shutil.rmtree(self._home / "temporary", ignore_errors=True)

    def _begin(self) -> None:
        self._end()
        (self._home / "temporary").mkdir(mode=0o700)
        spawn = multiprocessing.get_context("spawn")  # a fork would copy locks that are held
        self._pipe, theirs = spawn.Pipe()
        target, given = work, (theirs, self._home)
        self._process = spawn.Process(target=target, args=given, name="halfmask", daemon=True)
        with _ignore_interrupts():
            self._process.start()
        theirs.close()


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Let a new process not hear the Ctrl-C of a terminal before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def work(pipe: connection.Connection, home: Path) -> None:
    """Run commands until there is nobody to give them."""
    for name in ("SIGINT", "SIGHUP"):  # a terminal sends them to the parent too, which ends this
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    with suppress(OSError):  # Linux: where memory runs out, this process goes, and no other
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    tempfile.tempdir = os.environ["TMPDIR"] = str(home / "temporary")
    threading.Thread(target=_watch, args=(home,), daemon=True).start()
    with Path(os.devnull).open("r+") as nothing:
        for stream in (1, 2):
            os.dup2(nothing.fileno(), stream)
    loaded = LoadedTable()
    with suppress(EOFError, OSError):
        while True:
            command, given = pipe.recv()
            pipe.send(perform(loaded, command, given))
    _leave(home)


def perform(loaded: LoadedTable, command: str, given: dict[str, Any]) -> Any:
    """What a step gives, or the one thing that may be shown of its failure."""
    try:
        return getattr(verbs, command)(loaded, **given)
    except BaseException as error:  # noqa: BLE001 - there is nobody else to tell, no value may leak
        return failure(error)


def _watch(home: Path) -> None:
    """End with the parent, whatever step runs."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        _leave(home)


def _leave(home: Path) -> None:
    """End, and remove what a parent that was killed had no time to."""
    shutil.rmtree(home, ignore_errors=True)
    os._exit(1)
