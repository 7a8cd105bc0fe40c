"""A cell: takes part in queries with its person's own rows, and works for others.

Sessions are generators: they yield a message to the relay and are sent its reply, so that any
transport (or a test) can drive them. What must outlast a session goes through ``Home``.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeVar

from halfmask.errors import (
    AuthenticationError,
    HalfmaskError,
    InputError,
    MessageError,
    PartyUnavailableError,
    RoomError,
    TamperedMessageError,
)
from halfmask.protocol import answering
from halfmask.protocol.blueprint import Blueprint, blueprint
from halfmask.protocol.contribution import DAY, Contribution, Policy, contribution
from halfmask.protocol.crypto import OPEN, Address, FrameKey, derive, place, verify
from halfmask.protocol.keys import SKEW, GroupKey
from halfmask.protocol.messages import (
    CHUNK,
    Accepted,
    Browse,
    Contribute,
    Deliver,
    Fetch,
    Frames,
    Grant,
    Idle,
    Join,
    Late,
    Open,
    Query,
    Refuse,
    Reply,
    Request,
    Seek,
    Signed,
    Slot,
    Trouble,
    read_query,
)
from halfmask.protocol.parties import worker
from halfmask.protocol.schedule import Schedule, Task

if TYPE_CHECKING:
    import pyarrow as pa

    from halfmask.protocol.commons import Commons


@dataclass(frozen=True, slots=True)
class Entry:
    """What the person can read about one query.

    Attributes:
        query: its name.
        asker: who asked.
        text: the question.
        time: when this cell took part.
        aggregated: the columns whose values could enter the answer.
        outcome: contributed, or why not.
        level: the level of the contribution.
        revoked: the person took it back (before it was sent, or for later queries).
        epsilon: what a contribution with noise cost.
    """

    query: bytes
    asker: str
    text: str
    time: int
    aggregated: frozenset[str]
    outcome: str
    level: int | None = None
    revoked: bool = False
    epsilon: float = 0.0


class Home(Protocol):
    """What one person's cell keeps."""

    @property
    def secret(self) -> bytes:
        """Known to this cell alone."""
        ...

    def tables(self) -> Mapping[str, pa.Table]:
        """The person's own rows, one table per common table."""
        ...

    def policy(self) -> Policy | None:
        """What the person demands."""
        ...

    def log(self) -> list[Entry]:
        """What was answered before."""
        ...

    def note(self, entry: Entry) -> None:
        """Keep an entry, in place of an earlier one on the same query."""
        ...


R = TypeVar("R")
Talk = Generator[Request, Reply, "str | None"]


@dataclass(eq=False)
class Cell:
    """One person's cell.

    Attributes:
        key: what it was enrolled with.
        commons: the common schema.
        home: what it keeps; None: it only works for others.
        spill: makes storage for swap-merge.
    """

    key: GroupKey
    commons: Commons
    home: Home | None = None
    spill: Callable[[], worker.Spill] | None = None

    def take_part(self, now: float) -> Talk:
        """Look for open questions and contribute to each once.

        Returns:
            What was done, in words; None where there is no question.
        """
        reply = yield Browse(self.key.group)
        done = None
        for signed in _expect(reply, Open).queries:
            try:
                done = yield from self.contribute(signed, now)
            except (AuthenticationError, MessageError, InputError) as error:
                done = f"refused: {error.code}"
        return done

    def contribute(self, signed: Signed, now: float) -> Talk:
        """Answer one question: a slot first, then a record for it; real or dummy alike.

        Raises:
            AuthenticationError: the question is not one that this cell answers.
        """
        home = self.home
        if home is None:
            return None
        query = self.believe(signed, now)
        made = self._blueprint(query)
        given = self._decide(signed.id, made, now)
        ticket = hmac.digest(home.secret, b"ticket" + signed.id, "sha256")
        reply = yield Join(signed.id, self.key.group, ticket)
        if isinstance(reply, Late):
            return "late"
        slot = _expect(reply, Slot).slot
        if slot < 0 or slot >= 1 << 32:
            raise MessageError("The relay names a slot that cannot be.")
        # Noted before it is sent: whatever happens then, it counts as answered.
        home.note(
            Entry(
                signed.id,
                query.certificate.name,
                query.text,
                int(now),
                made.aggregated,
                given.reason,
                given.level,
                epsilon=given.epsilon,
            )
        )
        frames = FrameKey(self.key.secret, signed.id)
        where = place(signed.id, OPEN, Address(-1, slot))
        sealed = frames.seal(where, given.record)
        reply = yield Contribute(signed.id, self.key.group, ticket, slot, sealed)
        if isinstance(reply, Late):
            return "late"
        _expect(reply, Accepted)
        return given.reason

    def believe(self, signed: Signed, now: float) -> Query:
        """The question, if it is one for this cell.

        Raises:
            AuthenticationError: wrong signature, certificate, time, group or common schema.
        """
        query = read_query(signed.body)
        query.certificate.check(self.key.issuer, now)
        verify(query.certificate.signing, signed.signature, signed.body, "The query")
        if query.commons != self.commons.digest:
            raise AuthenticationError("The query is written for another common schema.")
        if self.key.group not in query.groups:
            raise AuthenticationError("The query asks other groups of cells.")
        if not query.asked - SKEW <= now <= query.until + SKEW:
            raise AuthenticationError("The query is not of this time: check the clocks.")
        return query

    def work(self, now: float) -> Talk:
        """Do one task for others.

        Returns:
            What was done; None where there is nothing to do.
        """
        reply = yield Seek(self.key.group)
        if isinstance(reply, Idle):
            return None
        grant = _expect(reply, Grant)
        try:
            return (yield from self._task(grant, now))
        except (TamperedMessageError, AuthenticationError, MessageError, RoomError) as error:
            yield Refuse(grant.query.id, self.key.group, grant.stage, grant.task, error.code)
            return f"refused: {error.code}"

    # -- own contribution

    def _blueprint(self, query: Query) -> Blueprint:
        salt = derive(self.key.secret, b"", b"tokens")
        return blueprint(self.commons, query.text, query.terms, salt)

    def _decide(self, name: bytes, made: Blueprint, now: float) -> Contribution:
        home = self.home
        assert home is not None  # noqa: S101 - the caller looked
        policy = home.policy()
        log = home.log()
        if made.layout.noisy:
            objection = exhausted(log, policy, name, now)
        else:
            objection = objects(log, policy, name, made.aggregated, now)
        try:
            return contribution(made, home.tables(), policy, objection)
        except HalfmaskError:
            return contribution(
                made, _nothing(self.commons), policy, "the rows do not suit the query"
            )

    # -- work for others

    def _task(self, grant: Grant, now: float) -> Talk:
        query = self.believe(grant.query, now)
        closing = grant.closing
        if not 0 < closing.contributions <= closing.slots < 1 << 31:
            raise TamperedMessageError("The closing of a collection contradicts itself.")
        schedule = Schedule(query.terms, closing.slots)
        task = schedule.task(grant.stage, grant.task)
        name = grant.query.id
        bench = worker.Bench(
            self._blueprint(query),
            schedule,
            grant.closing,
            FrameKey(self.key.secret, name),
            name,
            grant.closing.digest(name, self.key.group),
        )
        present = [a for a in task.inputs if a is not None]
        if task.kind == "swap":
            yield from self._swap(grant, bench, task)
            return task.kind
        count = len(grant.slots) if task.kind == "fold" else len(present)
        given = yield from self._fetch(grant, count)
        yield from self._deliver(grant, self._done(grant, query, bench, task, given))
        return task.kind

    def _done(
        self, grant: Grant, query: Query, bench: worker.Bench, task: Task, given: list[bytes]
    ) -> list[bytes]:
        if task.kind == "fold":
            return worker.fold(bench, task, grant.slots, given, grant.path)
        if task.kind == "tree":
            return worker.tree(bench, task, given)
        if task.kind in ("split", "pack"):
            rest = iter(given)
            return worker.split(
                bench, task, [None if a is None else next(rest) for a in task.inputs]
            )
        found = worker.everything(bench, task, given)
        done = answering.answer(bench.blueprint, found, time_limit=60.0)
        sealed = answering.envelope(
            done,
            bench.closing.contributions,
            size=query.terms.reply,
            query=bench.query,
            box=query.certificate.box,
            signing=self.key.signing,
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
        frames = _expect(reply, Frames).frames
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
                    _expect(reply, Accepted)
                start, batch = start + len(batch), []


def objects(
    log: list[Entry], policy: Policy | None, name: bytes, aggregated: frozenset[str], now: float
) -> str | None:
    """Why an earlier answer forbids this one: somebody could subtract the two.

    Two answers can be subtracted where they aggregate the same values. So a person's value enters
    at most ``answers`` answers within ``days``, however the question is worded and whoever asks.
    """
    if policy is None:
        return None
    earlier = [
        entry
        for entry in log
        if entry.query != name
        and entry.outcome == "contributed"
        and entry.aggregated & aggregated
        and now - entry.time < policy.days * DAY
    ]
    if any(entry.query == name and entry.revoked for entry in log):
        return "revoked"
    return "answered before" if len(earlier) >= policy.answers else None


def exhausted(log: list[Entry], policy: Policy | None, name: bytes, now: float) -> str | None:
    """Why a person's budget of epsilon forbids another answer with noise."""
    if policy is None or policy.epsilon is None:
        return None
    since = now - policy.days * DAY
    spent = [e.epsilon for e in log if e.query != name and e.time > since]
    if any(e.query == name and e.revoked for e in log):
        return "revoked"
    # Added up as exact fractions: rounding must not make room for one more.
    total = sum(map(Fraction, spent), Fraction(policy.epsilon))
    return "the budget is spent" if total > Fraction(policy.budget) else None


def _nothing(commons: Commons) -> dict[str, pa.Table]:
    return {name: table.arrow.empty_table() for name, table in commons.tables.items()}


def _expect(reply: Reply, kind: type[R]) -> R:
    if isinstance(reply, kind):
        return reply
    if isinstance(reply, Trouble):
        raise PartyUnavailableError(f"The relay refuses: {reply.code}.")
    raise MessageError("The relay gave an answer that does not fit the question.")
