"""The work that a cell does for others: open frames at their places, merge, seal the result.

Nothing here remembers anything: the result of a task is decided by its inputs, so that a task may
be done twice, by two cells, without harm.

Whom a cell believes, and which replies it takes.

A cell's work for others: fetch the frames of a task, do it, deliver the result.

A cell works on one closing of a collection only. Were there two, their answers could be
subtracted, so a cell that is shown a second one refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from halfmask.errors import (
    AuthenticationError,
    EngineError,
    InternalError,
    MessageError,
    PartyUnavailableError,
    QueryError,
    RoomError,
    TamperedMessageError,
)
from halfmask.protocol import answering, crypto
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.crypto import Address, FrameKey, derive, place, seat, verify
from halfmask.protocol.filtering import keyed_sampler
from halfmask.protocol.keys import PROOF, SKEW, CellGroup
from halfmask.protocol.messages import (
    CHUNK,
    Accepted,
    AskedQuery,
    Deliver,
    Fetch,
    Frames,
    Idle,
    Late,
    Refuse,
    Reply,
    Request,
    Seek,
    Signed,
    TaskGrant,
    Trouble,
    read_query,
)
from halfmask.protocol.records import layout as records
from halfmask.protocol.records import merge
from halfmask.protocol.schedule import PIECE, MergeTask, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from halfmask.protocol.cell_plan import CellPlan
    from halfmask.protocol.common_schema import CommonSchema
    from halfmask.protocol.keys import CellKey
    from halfmask.protocol.messages import Closing
    from halfmask.protocol.records.layout import ContributionCount, Records


class Spill(Protocol):
    """Storage beside a cell's memory; it holds ciphertexts only."""

    def append(self, frame: bytes) -> None:
        """Keep one more."""
        ...

    def read(self, index: int) -> bytes:
        """Give one back."""
        ...

    def close(self) -> None:
        """Forget everything."""
        ...


class Signer(Protocol):
    """Whoever can prove to be a cell."""

    def prove(self, message: bytes) -> bytes:
        """The proof that this cell sends a message."""
        ...


class ProofVerifier(Protocol):
    """Whoever can tell which cell sent a message."""

    def serial(self, proof: bytes, message: bytes) -> bytes:
        """The serial of the cell that sent a message, or an AuthenticationError."""
        ...


def seal_contribution(
    key: FrameKey, query: bytes, serial: bytes, record: bytes, signer: Signer
) -> tuple[bytes, bytes]:
    """A cell's ticket in a query, and its record sealed for it; the proof travels inside."""
    ticket = key.ticket(serial)
    proof = signer.prove(b"contribution" + query + ticket + record)
    return ticket, key.seal(seat(query, ticket), record + proof)


@dataclass(frozen=True, eq=False)
class TaskContext:
    """Everything a task needs beside its frames."""

    cell_plan: CellPlan
    schedule: Schedule
    closing: Closing
    key: FrameKey
    query: bytes
    bound: bytes
    signer: Signer
    judge: ProofVerifier

    def admit(self, ticket: bytes, sealed: bytes) -> bytes | None:
        """The record of a contribution; None where no cell with this ticket sent it.

        Whoever holds the key of the group and no credential, and whoever repeats what was sent to
        another query or under another ticket, contributes nothing.
        """
        size = self.cell_plan.layout.size
        try:
            plain = self.key.open(seat(self.query, ticket), sealed)
            record, proof = plain[:size], plain[size:]
            message = b"contribution" + self.query + ticket + record
            serial = self.judge.serial(proof, message)
        except (AuthenticationError, TamperedMessageError):
            return None
        # One credential, one ticket: nobody contributes a second time under another one.
        return record if self.key.ticket(serial) == ticket else None

    def open(self, address: Address | None, sealed: bytes | None) -> Records:
        """The records at an address; no address means an empty frame.

        Raises:
            TamperedMessageError: the frame does not belong there, or is none.
            AuthenticationError: no cell made it.
        """
        layout, count = self.cell_plan.layout, self.schedule.terms.frame
        if address is None or sealed is None:
            return layout.empty(count)
        where = place(self.query, self.bound, address)
        plain = self.key.open(where, sealed)
        if len(plain) != layout.size * count + PROOF:
            raise TamperedMessageError("A frame has another size than all frames have.")
        content, proof = plain[:-PROOF], plain[-PROOF:]
        # The key is that of the whole group: the proof tells that one of its cells made the frame,
        # for this very place.
        self.judge.serial(proof, b"frame" + where + content)
        return layout.read(content)

    def seal(self, address: Address, content: Records) -> bytes:
        """Records sealed for one address."""
        where = place(self.query, self.bound, address)
        plain = self.cell_plan.layout.bytes_of(content)
        return self.key.seal(where, plain + self.signer.prove(b"frame" + where + plain))


def fold_task(
    context: TaskContext,
    task: MergeTask,
    tickets: Sequence[bytes],
    frames: Sequence[bytes],
    path: Sequence[bytes],
) -> list[bytes]:
    """Aggregate a partition of contributions; those without a credential count as void.

    Raises:
        TamperedMessageError: contributions are missing, moved, repeated or changed.
    """
    layout, size = context.cell_plan.layout, context.schedule.members(task.node)
    if len(tickets) != size or len(frames) != size or {len(t) for t in tickets} != {crypto.TICKET}:
        raise TamperedMessageError("A partition holds other contributions than its own.")
    # Strictly ascending: no ticket stands twice.
    if not all(a < b for a, b in pairwise(tickets)):
        raise TamperedMessageError("A cell contributes twice, or its partition is out of order.")
    # Every cell settled on the root before any work: a relay that drops or swaps contributions now
    # is found out.
    leaf = crypto.partition(list(zip(tickets, frames, strict=True)))
    expected = (context.schedule.partitions - 1).bit_length()
    if len(path) != expected or crypto.root_of_path(leaf, task.node, path) != context.closing.root:
        raise TamperedMessageError("A partition is not the one that was closed.")
    admitted = [context.admit(t, f) for t, f in zip(tickets, frames, strict=True)]
    found = layout.read(b"".join(record for record in admitted if record is not None))
    # A broken cell may not speak for several people either.
    found = found[layout.single(found)]
    return _seal_frames(context, task, records.fold_contributions(layout, found, size - len(found)))


def merge_task(context: TaskContext, task: MergeTask, frames: Sequence[bytes]) -> list[bytes]:
    """Merge two nodes as a whole.

    Raises:
        RoomError: a cell of this size cannot hold them.
    """
    layout, terms = context.cell_plan.layout, context.schedule.terms
    if len(frames) * layout.size * terms.frame > terms.ram:
        raise RoomError(
            f"Two partitions do not fit into {terms.ram:,} bytes: merge by swap or network."
        )
    parts = [context.open(a, f) for a, f in zip(task.inputs, frames, strict=True)]
    return _seal_frames(context, task, records.combine_records(layout, np.concatenate(parts)))


def merge_swapped(context: TaskContext, task: MergeTask, spill: Spill) -> Iterator[bytes]:
    """Merge two nodes of which the spill holds the frames, two frames at a time."""
    half = len(context.schedule.node(task.level - 1, 2 * task.node))
    sides = [
        (context.open(task.inputs[i], spill.read(i)) for i in range(low, high))
        for low, high in ((0, half), (half, len(task.inputs)))
    ]
    merged = merge.merge_frames(
        context.cell_plan.layout, sides[0], sides[1], context.schedule.terms.frame
    )
    written = 0
    for address, content in zip(
        task.outputs,
        merge.pad_frames(context.cell_plan.layout, merged, task, context.schedule.terms.frame),
        strict=False,
    ):
        written += 1
        yield context.seal(address, content)
    if written != len(task.outputs):
        raise RoomError(_room(context))


def split_task(
    context: TaskContext, task: MergeTask, frames: Sequence[bytes | None]
) -> list[bytes]:
    """Merge two frames into a lower and an upper one."""
    left, right = (context.open(a, f) for a, f in zip(task.inputs, frames, strict=True))
    way = records.pack_frames if task.kind == "pack" else records.split_frames
    halves = way(context.cell_plan.layout, left, right)
    return [context.seal(a, h) for a, h in zip(task.outputs, halves, strict=True)]


def collect_groups(
    context: TaskContext, task: MergeTask, frames: Sequence[bytes]
) -> tuple[Records, ContributionCount]:
    """All groups, at the end of the work, and how many took part.

    Raises:
        TamperedMessageError: contributions were lost or counted twice on the way.
        RoomError: there was not room for all groups.
    """
    layout = context.cell_plan.layout
    parts = [context.open(a, f) for a, f in zip(task.inputs, frames, strict=True)]
    found, tally = records.groups(layout, np.concatenate(parts))
    counted = tally.contributions
    # Dummies are the rest: real and void ones never exceed what was closed, and no merge changes
    # the sum.
    if counted != context.closing.contributions or tally.real + tally.void > counted:
        raise TamperedMessageError("Contributions were lost or repeated on the way.")
    # Groups without room are gone, and their people with them: no partial answer.
    if int(layout.people(found).sum()) != tally.real:
        raise RoomError(_room(context))
    keys = found["key"]
    if len(np.unique(keys)) != len(keys):
        raise TamperedMessageError("A group stands in two places.")
    return found, tally


def pieces(context: TaskContext, envelope: bytes) -> list[bytes]:
    """The sealed answer in pieces of one size."""
    count = context.schedule.pieces
    if len(envelope) > count * PIECE:
        raise RoomError("The answer is larger than its query has room for: raise row or room.")
    return [envelope[i * PIECE : (i + 1) * PIECE] for i in range(count)]


def _seal_frames(context: TaskContext, task: MergeTask, content: Records) -> list[bytes]:
    layout, size = context.cell_plan.layout, context.schedule.terms.frame
    try:
        cut = records.frames(layout, content, size, len(task.outputs))
    except OverflowError:
        raise RoomError(_room(context)) from None
    return [context.seal(a, f) for a, f in zip(task.outputs, cut, strict=True)]


def _room(context: TaskContext) -> str:
    return (
        f"There are more than {context.schedule.terms.room:,} groups: ask with more room, or for "
        "fewer groups."
    )


R = TypeVar("R")


def verify_query(key: CellKey, commons: CommonSchema, signed: Signed, now: float) -> AskedQuery:
    """The question, if it is one for a cell with this key and common schema.

    Raises:
        AuthenticationError: wrong signature, certificate, time, group or common schema.
    """
    query = read_query(signed.body)
    query.certificate.check(key.issuer, now)
    verify(query.certificate.signing, signed.signature, signed.body, "The query")
    if query.commons != commons.digest:
        raise AuthenticationError("The query is written for another common schema.")
    if key.group not in query.groups:
        raise AuthenticationError("The query asks other groups of cells.")
    if not query.asked - SKEW <= now <= query.until + SKEW:
        raise AuthenticationError("The query is not of this time: check the clocks.")
    return query


def expect(reply: Reply, kind: type[R]) -> R:
    """The reply, if it is of the kind that fits.

    Raises:
        PartyUnavailableError: the relay says that it cannot.
        MessageError: it is something else.
    """
    if isinstance(reply, kind):
        return reply
    if isinstance(reply, Trouble):
        raise PartyUnavailableError(f"The relay refuses: {reply.code}.")
    raise MessageError("The relay gave an answer that does not fit the question.")


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
class WorkSession:
    """One cell at work.

    Attributes:
        settle: given a query and a closing, the closing that this cell settled on first, which
            outlasts its process.
    """

    key: CellKey
    commons: CommonSchema
    spill: Callable[[], Spill] | None
    settle: Callable[[bytes, bytes], bytes]

    def session(self, now: float) -> Talk:
        """Do one task; None where there is nothing to do."""
        reply = yield Seek(self.key.group)
        if isinstance(reply, Idle):
            return None
        grant = expect(reply, TaskGrant)
        try:
            return (yield from self._task(grant, now))
        except _REFUSED as error:
            yield Refuse(grant.query.id, self.key.group, grant.stage, grant.task, error.code)
            return f"refused: {error.code}"

    def _task(self, grant: TaskGrant, now: float) -> Talk:
        query = verify_query(self.key, self.commons, grant.query, now)
        closing = grant.closing
        if not 0 < closing.contributions < 1 << 31:
            raise TamperedMessageError("The closing of a collection contradicts itself.")
        schedule = Schedule(query.terms, closing.contributions)
        task = schedule.task(grant.stage, grant.task)
        name = grant.query.id
        bound = closing.digest(name, self.key.group)
        # Answers to two closings that differ by one cell could be subtracted: they would tell of
        # its person.
        if self.settle(name, bound) != bound:
            raise TamperedMessageError("The relay closes one collection twice.")
        salt = derive(self.key.secret, b"", b"tokens")
        context = TaskContext(
            plan_for_cells(self.commons, query.text, query.terms, salt),
            schedule,
            closing,
            FrameKey(self.key.secret, name),
            name,
            bound,
            self.key,
            CellGroup(self.key.issuer, self.key.group, query.until),
        )
        present = [a for a in task.inputs if a is not None]
        if task.kind == "swap":
            yield from self._swap(grant, context, task)
            return task.kind
        count = len(grant.tickets) if task.kind == "fold" else len(present)
        given = yield from self._fetch(grant, count)
        yield from self._deliver(grant, self._done(grant, query, context, task, given))
        return task.kind

    def _done(
        self,
        grant: TaskGrant,
        query: AskedQuery,
        context: TaskContext,
        task: MergeTask,
        given: list[bytes],
    ) -> list[bytes]:
        if task.kind == "fold":
            return fold_task(context, task, grant.tickets, given, grant.path)
        if task.kind == "tree":
            return merge_task(context, task, given)
        if task.kind in ("split", "pack"):
            # Where one side has fewer frames, nothing lies opposite the last ones of the other.
            rest = iter(given)
            return split_task(
                context, task, [None if a is None else next(rest) for a in task.inputs]
            )
        found, tally = collect_groups(context, task, given)
        # Drawn from the group's key: whoever does this task again draws the same.
        sampler = keyed_sampler(derive(self.key.secret, context.bound, b"noise"))
        rows, told = answering.filter_cells(context.cell_plan, found, sampler)
        sealed = answering.envelope(
            rows,
            told,
            tally,
            size=query.terms.reply,
            query=context.query,
            box=query.certificate.box,
            signer=self.key,
        )
        return pieces(context, sealed)

    def _swap(
        self, grant: TaskGrant, context: TaskContext, task: MergeTask
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
            yield from self._swap_back(grant, merge_swapped(context, task, spill))
        finally:
            spill.close()

    def _swap_back(
        self, grant: TaskGrant, frames: Iterator[bytes]
    ) -> Generator[Request, Reply, None]:
        batch: list[bytes] = []
        sent = 0
        for frame in frames:
            batch.append(frame)
            if sum(map(len, batch)) + len(frame) > CHUNK:
                yield from self._deliver(grant, batch, sent)
                sent, batch = sent + len(batch), []
        if batch:
            yield from self._deliver(grant, batch, sent)

    def _fetch(self, grant: TaskGrant, count: int) -> Generator[Request, Reply, list[bytes]]:
        found: list[bytes] = []
        while len(found) < count:
            found += yield from self._some(grant, len(found))
        if len(found) != count:
            raise TamperedMessageError("The relay sent more frames than the task has.")
        return found

    def _some(self, grant: TaskGrant, start: int) -> Generator[Request, Reply, list[bytes]]:
        reply = yield Fetch(grant.query.id, self.key.group, grant.stage, grant.task, start)
        if isinstance(reply, Late):
            raise MessageError("The task was done by another cell meanwhile.")
        frames = expect(reply, Frames).frames
        if not frames:
            raise TamperedMessageError("The relay withholds frames of a task.")
        return frames

    def _deliver(
        self, grant: TaskGrant, frames: list[bytes], start: int = 0
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
