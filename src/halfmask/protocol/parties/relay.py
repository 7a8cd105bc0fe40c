"""What the relay keeps: questions, contributions, tasks and frames, in terms of no database.

The relay: keeps ciphertexts, forms partitions, hands out work, hands it on when it is late.

It knows who asks what, how many cells take part, and sizes that the terms fix; it has no key.
Every message is handled whole or not at all, and may be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from halfmask.errors import AuthenticationError, HalfmaskError, MessageError, QueryError, RoomError
from halfmask.protocol import crypto
from halfmask.protocol.crypto import Address, verify
from halfmask.protocol.keys import SKEW
from halfmask.protocol.messages import (
    CHUNK,
    HASH,
    Accepted,
    Ask,
    AskedQuery,
    Browse,
    Closing,
    Collect,
    Contribute,
    Deliver,
    Failed,
    Fetch,
    Frames,
    Idle,
    Late,
    Open,
    Pending,
    Ready,
    Refuse,
    Reply,
    Request,
    Retrieve,
    Seek,
    Signed,
    TaskGrant,
    Trouble,
    encode_message,
    read_query,
    read_request,
)
from halfmask.protocol.schedule import Schedule

if TYPE_CHECKING:
    from halfmask.protocol.common_schema import Terms
    from halfmask.protocol.schedule import MergeTask


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """One query in one group of cells.

    Attributes:
        state: collecting, working, done, empty or failed.
        closing: what is worked on, once the collection is closed.
        stage: the stage that is worked on.
        reason: why it failed.
    """

    query: bytes
    group: int
    state: str
    contributions: int
    root: bytes
    stage: int
    reason: str

    @property
    def closing(self) -> Closing:
        """What is worked on."""
        return Closing(self.contributions, self.root)


@dataclass(frozen=True, slots=True)
class Lease:
    """A task that a cell has, until a time."""

    stage: int
    task: int
    lease: int
    attempts: int


class Store(Protocol):
    """What outlasts the relay's process. Each message is one transaction."""

    def begin(self) -> None:
        """Start a message."""
        ...

    def commit(self) -> None:
        """Everything of the message holds."""
        ...

    def rollback(self) -> None:
        """Nothing of the message holds."""
        ...

    def add_query(self, name: bytes, signed: bytes, signature: bytes, query: AskedQuery) -> None:
        """Keep a question and open a room in every group of cells."""
        ...

    def find_question(self, name: bytes) -> Signed | None:
        """A question."""
        ...

    def open_queries(self, group: int, now: float) -> list[Signed]:
        """Questions that still collect."""
        ...

    def room(self, name: bytes, group: int) -> GroupQuery | None:
        """One query in one group."""
        ...

    def rooms(self, name: bytes) -> list[GroupQuery]:
        """One query in all groups."""
        ...

    def queries_at_work(self, group: int) -> list[GroupQuery]:
        """Queries with work for a group."""
        ...

    def due(self, now: float) -> list[tuple[bytes, int]]:
        """Collections whose time is over."""
        ...

    def has_ticket(self, name: bytes, group: int, ticket: bytes) -> bool:
        """Whether there is a contribution with a ticket."""
        ...

    def keep(self, name: bytes, group: int, ticket: bytes, frame: bytes) -> None:
        """Keep a contribution."""
        ...

    def number(self, name: bytes, group: int) -> int:
        """Number the contributions in the order of their tickets; how many there are."""
        ...

    def members(self, name: bytes, group: int, low: int, high: int) -> list[tuple[bytes, bytes]]:
        """Tickets and contributions in a range of numbers, in order."""
        ...

    def close(self, room: GroupQuery, paths: list[list[bytes]]) -> None:
        """End a collection."""
        ...

    def path(self, name: bytes, group: int, partition: int) -> list[bytes]:
        """The way from a partition up to the root."""
        ...

    def set_state(self, name: bytes, group: int, state: str, reason: str = "") -> None:
        """Move a room on."""
        ...

    def start(self, name: bytes, group: int, stage: int, tasks: int) -> None:
        """Begin a stage."""
        ...

    def lease(self, room: GroupQuery, now: float, until: float) -> Lease | None:
        """Give out a task that nobody has, or has had for too long."""
        ...

    def find_lease(self, name: bytes, group: int, stage: int, task: int) -> Lease | None:
        """A task that is being done."""
        ...

    def give_back(self, name: bytes, group: int, stage: int, task: int) -> None:
        """A task may be given out again at once."""
        ...

    def finish(self, name: bytes, group: int, stage: int, task: int) -> int:
        """A task is done; how many of its stage are not."""
        ...

    def put(self, name: bytes, group: int, address: Address, frame: bytes, *, over: bool) -> None:
        """Keep a frame; the first one stays unless ``over``."""
        ...

    def get(self, name: bytes, group: int, address: Address) -> bytes | None:
        """A frame."""
        ...

    def has(self, name: bytes, group: int, addresses: tuple[Address, ...]) -> bool:
        """Whether all frames are there."""
        ...


@dataclass(eq=False)
class Relay:
    """The relay's decisions over a store.

    Attributes:
        store: where everything lies.
        patience: seconds after which work is given to another cell.
        attempts: how often a task may be refused or given on before the query fails.
        issuer: where known, queries of askers without its certificate are not even kept.
    """

    store: Store
    patience: float = 30.0
    attempts: int = 20
    issuer: bytes | None = None

    def handle(self, data: bytes, now: float) -> bytes:
        """Answer one message; never raises for what others send."""
        try:
            request = read_request(data)
            self.store.begin()
            try:
                reply = self.reply(request, now)
            except BaseException:
                self.store.rollback()
                raise
            self.store.commit()
        except HalfmaskError as error:
            reply = Trouble(error.code, str(error))
        return encode_message(reply)

    def reply(self, request: Request, now: float) -> Reply:
        """Decide about one message."""
        # Nothing runs by the clock here: whatever message comes next ends the collections that are
        # due.
        for name, group in self.store.due(now):
            self._close(name, group)
        if isinstance(request, Ask):
            return self._ask(request.query, now)
        if isinstance(request, Browse):
            return Open(self.store.open_queries(request.group, now))
        if isinstance(request, Seek):
            return self._seek(request.group, now)
        if self.store.find_question(request.query) is None:
            return Trouble("protocol.unknown", "There is no such query here.")
        if isinstance(request, Collect):
            return self._collect(request.query)
        if isinstance(request, Retrieve):
            return self._retrieve(request)
        if isinstance(request, Contribute):
            return self._contribute(request)
        return self._about_task(request)

    # -- the asker

    def _ask(self, signed: Signed, now: float) -> Reply:
        query = read_query(signed.body)
        if self.issuer is not None:
            query.certificate.check(self.issuer, now)
        verify(query.certificate.signing, signed.signature, signed.body, "The query")
        if now > query.until + SKEW or query.asked > now + SKEW:
            raise AuthenticationError("The query is not of this time: check the clocks.")
        if self.store.find_question(signed.id) is None:
            self.store.add_query(signed.id, signed.body, signed.signature, query)
        return Accepted()

    def _collect(self, name: bytes) -> Reply:
        rooms = self.store.rooms(name)
        failed = [room for room in rooms if room.state == "failed"]
        if failed:
            return Failed(failed[0].reason)
        if any(room.state == "collecting" for room in rooms):
            return Pending("collecting")
        if any(room.state == "working" for room in rooms):
            return Pending("working")
        return Ready({r.group: self._pieces(r) for r in rooms})

    def _pieces(self, room: GroupQuery) -> int:
        return self._schedule(room).pieces if room.state == "done" else 0

    def _retrieve(self, request: Retrieve) -> Reply:
        room = self.store.room(request.query, request.group)
        if room is None or room.state != "done":
            return Late()
        schedule = self._schedule(room)
        if not 0 <= request.piece < schedule.pieces:
            return Late()
        frame = self.store.get(
            request.query, request.group, Address(schedule.height + 1, 0, 0, request.piece)
        )
        return Late() if frame is None else Frames([frame])

    # -- collection

    def _contribute(self, request: Contribute) -> Reply:
        room = self.store.room(request.query, request.group)
        if room is None:
            return Trouble("protocol.group", "This query asks other groups of cells.")
        if len(request.ticket) != HASH:
            raise MessageError("A ticket has another length than all have.")
        # One ticket, one contribution: the first stays.
        if self.store.has_ticket(request.query, request.group, request.ticket):
            return Accepted()
        if room.state != "collecting":
            return Late()
        self.store.keep(request.query, request.group, request.ticket, request.frame)
        rooms = self.store.rooms(request.query)
        if sum(room.contributions for room in rooms) >= self._query(request.query).cells:
            for room in rooms:
                if room.state == "collecting":
                    self._close(request.query, room.group)
        return Accepted()

    def _close(self, name: bytes, group: int) -> None:
        count = self.store.number(name, group)
        if count == 0:
            self.store.set_state(name, group, "empty")
            return
        size = self._query(name).terms.partition
        leaves = [
            crypto.partition(self.store.members(name, group, low, low + size))
            for low in range(0, count, size)
        ]
        root, paths = crypto.root_and_paths(leaves)
        room = GroupQuery(name, group, "working", count, root, 0, "")
        self.store.close(room, paths)
        self.store.start(name, group, 0, self._schedule(room).stages[0].tasks)

    # -- work

    def _seek(self, group: int, now: float) -> Reply:
        for room in self.store.queries_at_work(group):
            lease = self.store.lease(room, now, now + self.patience)
            if lease is None:
                continue
            # A cell that takes a task and never comes back spends an attempt as well.
            if lease.attempts > self.attempts:
                self.store.set_state(room.query, group, "failed", "protocol.unavailable")
                continue
            signed = self.store.find_question(room.query)
            if signed is None:
                continue
            tickets: list[bytes] = []
            path: list[bytes] = []
            # Contributions are shown to belong to what was closed; every later frame is bound to
            # its address.
            if lease.stage == 0:
                tickets = [ticket for ticket, _ in self._leaves(room, lease.task)]
                path = self.store.path(room.query, group, lease.task)
            return TaskGrant(
                signed, room.closing, lease.stage, lease.task, lease.lease, tickets, path
            )
        return Idle()

    def _leaves(self, room: GroupQuery, task: int) -> list[tuple[bytes, bytes]]:
        size = self._query(room.query).terms.partition
        return self.store.members(room.query, room.group, task * size, (task + 1) * size)

    def _about_task(self, request: Fetch | Deliver | Refuse) -> Reply:
        room = self.store.room(request.query, request.group)
        if room is None or room.state != "working" or room.stage != request.stage:
            return Late()
        lease = self.store.find_lease(request.query, request.group, request.stage, request.task)
        if lease is None:
            return Late()
        task = self._schedule(room).task(request.stage, request.task)
        if isinstance(request, Fetch):
            return self._fetch(room, task, request)
        if isinstance(request, Deliver):
            return self._deliver(room, task, request, lease)
        return self._take_refusal(room, request, lease)

    def _fetch(self, room: GroupQuery, task: MergeTask, request: Fetch) -> Reply:
        if task.kind == "fold":
            given = [frame for _, frame in self._leaves(room, task.node)[request.start :]]
            return Frames(_chunk(iter(given)))
        wanted = [a for a in task.inputs if a is not None][request.start :]
        found = (self.store.get(room.query, room.group, a) for a in wanted)
        return Frames(_chunk(f for f in found if f is not None))

    def _deliver(self, room: GroupQuery, task: MergeTask, request: Deliver, lease: Lease) -> Reply:
        # Any cell's result is as good as another's, but an answer's pieces belong together.
        if task.kind == "filter" and request.lease != lease.lease:
            return Late()
        end = request.start + len(request.frames)
        if not 0 <= request.start < end <= len(task.outputs):
            raise MessageError("A delivery holds other frames than its task has.")
        for address, frame in zip(task.outputs[request.start : end], request.frames, strict=True):
            self.store.put(room.query, room.group, address, frame, over=task.kind == "filter")
        if end == len(task.outputs) and self.store.has(room.query, room.group, task.outputs):
            left = self.store.finish(room.query, room.group, request.stage, request.task)
            if left == 0:
                self._next(room)
        return Accepted()

    def _next(self, room: GroupQuery) -> None:
        stages = self._schedule(room).stages
        following = room.stage + 1
        if following == len(stages):
            self.store.set_state(room.query, room.group, "done")
        else:
            self.store.start(room.query, room.group, following, stages[following].tasks)

    def _take_refusal(self, room: GroupQuery, request: Refuse, lease: Lease) -> Reply:
        # Every cell would come to the same where the groups or the query are at fault.
        final = request.code in (RoomError.code, QueryError.code)
        if final or lease.attempts >= self.attempts:
            self.store.set_state(room.query, room.group, "failed", request.code[:64])
        else:
            self.store.give_back(room.query, room.group, request.stage, request.task)
        return Accepted()

    def _query(self, name: bytes) -> AskedQuery:
        signed = self.store.find_question(name)
        if signed is None:
            raise MessageError("There is no such query here.")
        return read_query(signed.body)

    def _schedule(self, room: GroupQuery) -> Schedule:
        return _schedule(self._query(room.query).terms, room.contributions)


@lru_cache(maxsize=64)
def _schedule(terms: Terms, contributions: int) -> Schedule:
    return Schedule(terms, contributions)


def _chunk(frames: object) -> list[bytes]:
    found: list[bytes] = []
    size = 0
    for frame in frames:  # type: ignore[attr-defined]
        if found and size + len(frame) > CHUNK:
            break
        found.append(frame)
        size += len(frame)
    return found
