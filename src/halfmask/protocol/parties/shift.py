"""A cell's work for others: fetch the frames of a task, do it, deliver the result.

A cell works on one closing of a collection only. Were there two, their answers could be
subtracted, so a cell that is shown a second one refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.errors import (
    AuthenticationError,
    EngineError,
    InternalError,
    MessageError,
    QueryError,
    RoomError,
    TamperedMessageError,
)
from halfmask.protocol import answering
from halfmask.protocol.blueprint import blueprint
from halfmask.protocol.crypto import FrameKey, derive
from halfmask.protocol.keys import Members
from halfmask.protocol.messages import (
    CHUNK,
    Accepted,
    Deliver,
    Fetch,
    Frames,
    Grant,
    Idle,
    Late,
    Query,
    Refuse,
    Reply,
    Request,
    Seek,
)
from halfmask.protocol.parties import worker
from halfmask.protocol.parties.trust import believe, expect
from halfmask.protocol.schedule import Schedule, Task

if TYPE_CHECKING:
    from halfmask.protocol.commons import Commons
    from halfmask.protocol.keys import CellKey

# What is wrong with a task, and no trouble of this cell's own.
_REFUSED = (
    TamperedMessageError,
    AuthenticationError,
    MessageError,
    RoomError,
    QueryError,
    EngineError,
    InternalError,
)
Talk = Generator[Request, Reply, "str | None"]


@dataclass(frozen=True, eq=False)
class Shift:
    """One cell at work.

    Attributes:
        settle: given a query and a closing, the closing that this cell settled on first, which
            outlasts its process.
    """

    key: CellKey
    commons: Commons
    spill: Callable[[], worker.Spill] | None
    settle: Callable[[bytes, bytes], bytes]

    def session(self, now: float) -> Talk:
        """Do one task; None where there is nothing to do."""
        reply = yield Seek(self.key.group)
        if isinstance(reply, Idle):
            return None
        grant = expect(reply, Grant)
        try:
            return (yield from self._task(grant, now))
        except _REFUSED as error:
            yield Refuse(grant.query.id, self.key.group, grant.stage, grant.task, error.code)
            return f"refused: {error.code}"

    def _task(self, grant: Grant, now: float) -> Talk:
        query = believe(self.key, self.commons, grant.query, now)
        closing = grant.closing
        if not 0 < closing.contributions < 1 << 31:
            raise TamperedMessageError("The closing of a collection contradicts itself.")
        schedule = Schedule(query.terms, closing.contributions)
        task = schedule.task(grant.stage, grant.task)
        name = grant.query.id
        bound = closing.digest(name, self.key.group)
        if self.settle(name, bound) != bound:
            raise TamperedMessageError("The relay closes one collection twice.")
        salt = derive(self.key.secret, b"", b"tokens")
        bench = worker.Bench(
            blueprint(self.commons, query.text, query.terms, salt),
            schedule,
            closing,
            FrameKey(self.key.secret, name),
            name,
            bound,
            self.key,
            Members(self.key.issuer, self.key.group, query.until),
        )
        present = [a for a in task.inputs if a is not None]
        if task.kind == "swap":
            yield from self._swap(grant, bench, task)
            return task.kind
        count = len(grant.tickets) if task.kind == "fold" else len(present)
        given = yield from self._fetch(grant, count)
        yield from self._deliver(grant, self._done(grant, query, bench, task, given))
        return task.kind

    def _done(
        self, grant: Grant, query: Query, bench: worker.Bench, task: Task, given: list[bytes]
    ) -> list[bytes]:
        if task.kind == "fold":
            return worker.fold(bench, task, grant.tickets, given, grant.path)
        if task.kind == "tree":
            return worker.tree(bench, task, given)
        if task.kind in ("split", "pack"):
            rest = iter(given)
            return worker.split(
                bench, task, [None if a is None else next(rest) for a in task.inputs]
            )
        found, tally = worker.everything(bench, task, given)
        done = answering.answer(bench.blueprint, found)
        sealed = answering.envelope(
            done,
            tally,
            size=query.terms.reply,
            query=bench.query,
            box=query.certificate.box,
            signer=self.key,
        )
        return worker.pieces(bench, sealed)

    def _swap(
        self, grant: Grant, bench: worker.Bench, task: Task
    ) -> Generator[Request, Reply, None]:
        if self.spill is None:
            raise RoomError("This cell has no storage to swap to.")
        spill = self.spill()
        try:
            start = 0
            while start < len(task.inputs):
                frames = yield from self._some(grant, start)
                for frame in frames:
                    spill.append(frame)
                start += len(frames)
            if start != len(task.inputs):
                raise TamperedMessageError("The relay sent more frames than the task has.")
            yield from self._swap_back(grant, worker.swapped(bench, task, spill))
        finally:
            spill.close()

    def _swap_back(self, grant: Grant, frames: Iterator[bytes]) -> Generator[Request, Reply, None]:
        batch: list[bytes] = []
        sent = 0
        for frame in frames:
            batch.append(frame)
            if sum(map(len, batch)) + len(frame) > CHUNK:
                yield from self._deliver(grant, batch, sent)
                sent, batch = sent + len(batch), []
        if batch:
            yield from self._deliver(grant, batch, sent)

    def _fetch(self, grant: Grant, count: int) -> Generator[Request, Reply, list[bytes]]:
        found: list[bytes] = []
        while len(found) < count:
            found += yield from self._some(grant, len(found))
        if len(found) != count:
            raise TamperedMessageError("The relay sent more frames than the task has.")
        return found

    def _some(self, grant: Grant, start: int) -> Generator[Request, Reply, list[bytes]]:
        reply = yield Fetch(grant.query.id, self.key.group, grant.stage, grant.task, start)
        if isinstance(reply, Late):
            raise MessageError("The task was done by another cell meanwhile.")
        frames = expect(reply, Frames).frames
        if not frames:
            raise TamperedMessageError("The relay withholds frames of a task.")
        return frames

    def _deliver(
        self, grant: Grant, frames: list[bytes], start: int = 0
    ) -> Generator[Request, Reply, None]:
        batch: list[bytes] = []
        for i, frame in enumerate(frames):
            batch.append(frame)
            following = len(frames[i + 1]) if i + 1 < len(frames) else CHUNK
            if sum(map(len, batch)) + following > CHUNK:
                reply = yield Deliver(
                    grant.query.id,
                    self.key.group,
                    grant.stage,
                    grant.task,
                    grant.lease,
                    start,
                    batch,
                )
                if not isinstance(reply, Accepted | Late):
                    expect(reply, Accepted)
                start, batch = start + len(batch), []
