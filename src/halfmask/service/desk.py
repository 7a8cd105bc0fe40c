"""Starts the steps as jobs, and keeps what they give; a step that gives nothing leaves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfmask.service.kept import document
from halfmask.service.steps import described
from halfmask.service.workspace import Result

if TYPE_CHECKING:
    from pathlib import Path

    from halfmask.service import requests
    from halfmask.service.jobs import Job, Jobs
    from halfmask.service.standing import Population
    from halfmask.service.worker import Worker
    from halfmask.service.workspace import Workspace


@dataclass(frozen=True, eq=False)
class Desk:
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
            with self.space.kept_if_done(place.parent):
                found: Population = self.worker.do("open_population", job, **given)
            self.space.compare_with(found)
            return document("population", found.to_dict())

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
        _ = self.space.standing  # refused at once where there is no table
        job = self.jobs.claim("schema")

        def work() -> dict[str, Any]:
            now = self.space.standing
            return self._become(self.worker.do("schema", job, now=now, asked=asked, toml=toml))

        return self.jobs.start(job, work)

    def begin(self, verb: str, asked: requests.Asked) -> Job:
        """Run one of the verbs that leave a result."""
        _ = self.space.standing
        job = self.jobs.claim(verb)

        def work() -> dict[str, Any]:
            self.space.drop(verb)
            given: dict[str, Any] = {"now": self.space.standing, "asked": asked}
            if verb in ("assess", "anonymize", "frontier"):
                people = self.space.population
                given["population"] = None if people is None else people.path
            if verb == "compare":
                given["made"] = self.space.result("anonymize").folder
            if verb in ("query", "synthesize"):
                given["books"] = self.space.books
            folder = self.space.new_folder()
            with self.space.kept_if_done(folder):
                document: dict[str, Any] = self.worker.do(verb, job, folder=folder, **given)
            self.space.results[verb] = Result(document, folder)
            return document

        return self.jobs.start(job, work)

    def _open(self, job: Job, into: Path, command: str, **given: Any) -> dict[str, Any]:
        with self.space.kept_if_done(into):
            return self._become(self.worker.do(command, job, **given))

    def _become(self, standing: Any) -> dict[str, Any]:
        self.space.become(standing)
        return described(standing)
