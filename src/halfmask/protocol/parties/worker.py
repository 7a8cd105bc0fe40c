"""The work that a cell does for others: open frames at their places, merge, seal the result.

Nothing here remembers anything: the result of a task is decided by its inputs, so that a task may
be done twice, by two cells, without harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from halfmask.errors import AuthenticationError, RoomError, TamperedMessageError
from halfmask.protocol import merkle, records
from halfmask.protocol.crypto import Address, FrameKey, place, seat
from halfmask.protocol.keys import PROOF
from halfmask.protocol.merge import swap
from halfmask.protocol.schedule import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from halfmask.protocol.blueprint import Blueprint
    from halfmask.protocol.layout import Records
    from halfmask.protocol.messages import Closing
    from halfmask.protocol.records import Tally
    from halfmask.protocol.schedule import Schedule, Task


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


class Judge(Protocol):
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
class Bench:
    """Everything a task needs beside its frames."""

    blueprint: Blueprint
    schedule: Schedule
    closing: Closing
    key: FrameKey
    query: bytes
    bound: bytes
    signer: Signer
    judge: Judge

    def admit(self, ticket: bytes, sealed: bytes) -> bytes | None:
        """The record of a contribution; None where no cell with this ticket sent it.

        Whoever holds the key of the group and no credential, and whoever repeats what was sent to
        another query or under another ticket, contributes nothing.
        """
        size = self.blueprint.layout.size
        try:
            plain = self.key.open(seat(self.query, ticket), sealed)
            record, proof = plain[:size], plain[size:]
            message = b"contribution" + self.query + ticket + record
            serial = self.judge.serial(proof, message)
        except (AuthenticationError, TamperedMessageError):
            return None
        return record if self.key.ticket(serial) == ticket else None

    def open(self, address: Address | None, sealed: bytes | None) -> Records:
        """The records at an address; no address means an empty frame.

        Raises:
            TamperedMessageError: the frame does not belong there, or is none.
            AuthenticationError: no cell made it.
        """
        layout, count = self.blueprint.layout, self.schedule.terms.frame
        if address is None or sealed is None:
            return layout.empty(count)
        where = place(self.query, self.bound, address)
        plain = self.key.open(where, sealed)
        if len(plain) != layout.size * count + PROOF:
            raise TamperedMessageError("A frame has another size than all frames have.")
        content, proof = plain[:-PROOF], plain[-PROOF:]
        self.judge.serial(proof, b"frame" + where + content)
        return layout.read(content)

    def seal(self, address: Address, content: Records) -> bytes:
        """Records sealed for one address."""
        where = place(self.query, self.bound, address)
        plain = self.blueprint.layout.bytes_of(content)
        return self.key.seal(where, plain + self.signer.prove(b"frame" + where + plain))


def fold(
    bench: Bench,
    task: Task,
    tickets: Sequence[bytes],
    frames: Sequence[bytes],
    path: Sequence[bytes],
) -> list[bytes]:
    """Aggregate a partition of contributions; those without a credential count as void.

    Raises:
        TamperedMessageError: contributions are missing, moved, repeated or changed.
    """
    layout, size = bench.blueprint.layout, bench.schedule.members(task.node)
    if len(tickets) != size or len(frames) != size or {len(t) for t in tickets} != {merkle.TICKET}:
        raise TamperedMessageError("A partition holds other contributions than its own.")
    if not all(a < b for a, b in pairwise(tickets)):
        raise TamperedMessageError("A cell contributes twice, or its partition is out of order.")
    leaf = merkle.partition(list(zip(tickets, frames, strict=True)))
    expected = (bench.schedule.partitions - 1).bit_length()
    if len(path) != expected or merkle.climb(leaf, task.node, path) != bench.closing.root:
        raise TamperedMessageError("A partition is not the one that was closed.")
    admitted = [bench.admit(t, f) for t, f in zip(tickets, frames, strict=True)]
    found = layout.read(b"".join(record for record in admitted if record is not None))
    # A broken cell may not speak for several people either.
    found = found[layout.single(found)]
    return _sealed(bench, task, records.fold(layout, found, size - len(found)))


def tree(bench: Bench, task: Task, frames: Sequence[bytes]) -> list[bytes]:
    """Merge two nodes as a whole.

    Raises:
        RoomError: a cell of this size cannot hold them.
    """
    layout, terms = bench.blueprint.layout, bench.schedule.terms
    if len(frames) * layout.size * terms.frame > terms.ram:
        raise RoomError(
            f"Two partitions do not fit into {terms.ram:,} bytes: merge by swap or network."
        )
    parts = [bench.open(a, f) for a, f in zip(task.inputs, frames, strict=True)]
    return _sealed(bench, task, records.combine(layout, np.concatenate(parts)))


def swapped(bench: Bench, task: Task, spill: Spill) -> Iterator[bytes]:
    """Merge two nodes of which the spill holds the frames, two frames at a time."""
    half = len(bench.schedule.node(task.level - 1, 2 * task.node))
    sides = [
        (bench.open(task.inputs[i], spill.read(i)) for i in range(low, high))
        for low, high in ((0, half), (half, len(task.inputs)))
    ]
    merged = swap.merge(bench.blueprint.layout, sides[0], sides[1], bench.schedule.terms.frame)
    written = 0
    for address, content in zip(
        task.outputs,
        swap.padded(bench.blueprint.layout, merged, task, bench.schedule.terms.frame),
        strict=False,
    ):
        written += 1
        yield bench.seal(address, content)
    if written != len(task.outputs):
        raise RoomError(_room(bench))


def split(bench: Bench, task: Task, frames: Sequence[bytes | None]) -> list[bytes]:
    """Merge two frames into a lower and an upper one."""
    left, right = (bench.open(a, f) for a, f in zip(task.inputs, frames, strict=True))
    way = records.pack if task.kind == "pack" else records.split
    halves = way(bench.blueprint.layout, left, right)
    return [bench.seal(a, h) for a, h in zip(task.outputs, halves, strict=True)]


def everything(bench: Bench, task: Task, frames: Sequence[bytes]) -> tuple[Records, Tally]:
    """All groups, at the end of the work, and how many took part.

    Raises:
        TamperedMessageError: contributions were lost or counted twice on the way.
        RoomError: there was not room for all groups.
    """
    layout = bench.blueprint.layout
    parts = [bench.open(a, f) for a, f in zip(task.inputs, frames, strict=True)]
    found, tally = records.groups(layout, np.concatenate(parts))
    counted = tally.contributions
    if counted != bench.closing.contributions or tally.real + tally.void > counted:
        raise TamperedMessageError("Contributions were lost or repeated on the way.")
    if int(layout.people(found).sum()) != tally.real:
        raise RoomError(_room(bench))
    keys = found["key"]
    if len(np.unique(keys)) != len(keys):
        raise TamperedMessageError("A group stands in two places.")
    return found, tally


def pieces(bench: Bench, envelope: bytes) -> list[bytes]:
    """The sealed answer in pieces of one size."""
    count = bench.schedule.pieces
    if len(envelope) > count * PIECE:
        raise RoomError("The answer is larger than its query has room for: raise row or room.")
    return [envelope[i * PIECE : (i + 1) * PIECE] for i in range(count)]


def _sealed(bench: Bench, task: Task, content: Records) -> list[bytes]:
    layout, size = bench.blueprint.layout, bench.schedule.terms.frame
    try:
        cut = records.frames(layout, content, size, len(task.outputs))
    except OverflowError:
        raise RoomError(_room(bench)) from None
    return [bench.seal(a, f) for a, f in zip(task.outputs, cut, strict=True)]


def _room(bench: Bench) -> str:
    return (
        f"There are more than {bench.schedule.terms.room:,} groups: ask with more room, or for "
        "fewer groups."
    )
