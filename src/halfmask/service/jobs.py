"""Steps that take long: one at a time, asked about until it ends, or cancelled.

Starts the steps as jobs, and keeps what they give; a step that gives nothing leaves nothing.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from halfmask.errors import BusyError, CancelledError, MissingError
from halfmask.failure import failure
from halfmask.service import requests
from halfmask.service.verbs import describe_table, verb_document
from halfmask.service.workspace import StepResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from halfmask.service.worker import Worker
    from halfmask.service.workspace import Population, Workspace


KEPT = 5  # with their results, for those who still wait


@dataclass(eq=False)
class Job:
    """One step on its way.

    Attributes:
        id: its number.
        verb: what it does.
        state: working, done, failed or cancelled.
        result: the document of the verb, or of the error, once it has ended.
        unwanted: whether somebody cancelled it.
    """

    id: int
    verb: str
    state: str = "working"
    result: dict[str, Any] | None = None
    unwanted: bool = False
    _started: float = field(default_factory=time.monotonic)
    _ended: float | None = None

    def end(self, state: str, result: dict[str, Any]) -> None:
        """Say how it ended."""
        self.result, self._ended = result, time.monotonic()
        self.state = state  # last: whoever sees it finds the rest

    def fail(self, error: BaseException) -> None:
        """Say why it gave nothing; that somebody cancelled it explains any error."""
        if self.unwanted:
            self.end("cancelled", failure(CancelledError()).to_dict())
        else:
            self.end("failed", failure(error).to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The job as plain values; with its result once it has ended."""
        seconds = (self._ended or time.monotonic()) - self._started
        told = {"id": self.id, "verb": self.verb, "state": self.state, "seconds": round(seconds, 1)}
        return told if self.state == "working" else {**told, "result": self.result}


class Jobs:
    """The jobs of one table; a second one is refused while the first runs.

    ``stop`` ends what the running one does, at once.
    """

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: dict[int, Job] = {}
        self.closing = False

    @property
    def current(self) -> Job | None:
        """The job that runs, if one does."""
        with self._lock:
            return next((job for job in self._jobs.values() if job.state == "working"), None)

    def find(self, number: int) -> Job:
        """A job by its number."""
        with self._lock:
            if number not in self._jobs:
                raise MissingError(f"There is no job {number}, or it ended long ago.")
            return self._jobs[number]

    def claim(self, verb: str) -> Job:
        """Take the one place; raises BusyError where it is taken."""
        with self._lock:
            for job in self._jobs.values():
                if job.state == "working":
                    raise BusyError(
                        f"Another step ('{job.verb}') is still running: wait until it ends, or "
                        "cancel it."
                    )
            job = Job(next(self._numbers), verb)
            self._jobs[job.id] = job
            for number in sorted(self._jobs)[:-KEPT]:
                del self._jobs[number]
            return job

    def cancel(self, number: int) -> Job:
        """Stop a job if it still runs; nobody else's can begin before that is done."""
        job = self.find(number)
        with self._lock:
            if job.state == "working":
                job.unwanted = True
                self._stop()
        return job

    def start(self, job: Job, work: Callable[[], dict[str, Any]]) -> Job:
        """Run ``work`` for a claimed job; it goes on when nobody waits."""
        name = f"halfmask-{job.verb}"
        try:
            threading.Thread(target=run_job, args=(job, work), name=name, daemon=True).start()
        except RuntimeError as error:  # there are too many: nobody would ever end the job
            job.fail(error)
            raise
        return job


def run_job(job: Job, work: Callable[[], dict[str, Any]]) -> None:
    """Do the work of a job; a failure becomes the one document that may be shown of it."""
    try:
        job.end("done", work())
    except BaseException as error:  # noqa: BLE001 - a thread has nobody else to tell, no value may leak
        job.fail(error)


@dataclass(frozen=True, eq=False)
class StepRunner:
    """A workspace, the process of its steps, and who waits for them."""

    space: Workspace
    worker: Worker
    jobs: Jobs

    def open_sent(
        self, job: Job, place: Path, unpacked_limit: int, how: dict[str, str | None]
    ) -> Job:
        """Open a file that was sent to ``place`` for a job that is claimed already."""
        given = {"path": place, "unpacked_limit": unpacked_limit, "how": how}
        return self.jobs.start(job, lambda: self._open(job, place.parent, "open_sent", **given))

    def open_population(self, job: Job, place: Path, unpacked_limit: int) -> Job:
        """Take a file that was sent to ``place`` as the population of the table."""
        given = {"path": place, "unpacked_limit": unpacked_limit}

        def work() -> dict[str, Any]:
            with self.space.remove_unless_done(place.parent):
                found: Population = self.worker.do("open_population", job, **given)
            self.space.compare_with(found)
            return verb_document("population", found.to_dict())

        return self.jobs.start(job, work)

    def open_sample(self, rows: int) -> Job:
        """Open an invented table."""
        job = self.jobs.claim("open")

        def work() -> dict[str, Any]:
            folder = self.space.new_folder()
            return self._open(job, folder, "open_sample", folder=folder, rows=rows)

        return self.jobs.start(job, work)

    def change_schema(self, asked: dict[str, Any], toml: str | None) -> Job:
        """Put another schema in force."""
        _ = self.space.table_facts  # refused at once where there is no table
        job = self.jobs.claim("schema")

        def work() -> dict[str, Any]:
            now = self.space.table_facts
            return self._become(self.worker.do("schema", job, now=now, asked=asked, toml=toml))

        return self.jobs.start(job, work)

    def begin(self, verb: str, asked: requests.PageRequest) -> Job:
        """Run one of the verbs that leave a result."""
        _ = self.space.table_facts
        job = self.jobs.claim(verb)

        def work() -> dict[str, Any]:
            self.space.drop(verb)
            given: dict[str, Any] = {"now": self.space.table_facts, "asked": asked}
            needs = requests.STEPS[verb].needs
            if needs is not None:
                given[needs] = self._find_needed(needs)
            folder = self.space.new_folder()
            with self.space.remove_unless_done(folder):
                document: dict[str, Any] = self.worker.do(verb, job, folder=folder, **given)
            self.space.results[verb] = StepResult(document, folder)
            return document

        return self.jobs.start(job, work)

    def _find_needed(self, needs: str) -> Any:
        """What a step is given of the workspace beside the table."""
        if needs == "population":
            return None if self.space.population is None else self.space.population.path
        return self.space.ledgers if needs == "ledgers" else self.space.result("anonymize").folder

    def _open(self, job: Job, into: Path, command: str, **given: Any) -> dict[str, Any]:
        with self.space.remove_unless_done(into):
            return self._become(self.worker.do(command, job, **given))

    def _become(self, table_facts: Any) -> dict[str, Any]:
        self.space.become(table_facts)
        return describe_table(table_facts)
