"""What the relay keeps: questions, contributions, tasks and frames, in terms of no database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from halfmask.protocol.messages import Closing, Query, Signed

if TYPE_CHECKING:
    from halfmask.protocol.crypto import Address


@dataclass(frozen=True, slots=True)
class Room:
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

    def add_query(self, name: bytes, signed: bytes, signature: bytes, query: Query) -> None:
        """Keep a question and open a room in every group of cells."""
        ...

    def signed(self, name: bytes) -> Signed | None:
        """A question."""
        ...

    def open_queries(self, group: int, now: float) -> list[Signed]:
        """Questions that still collect."""
        ...

    def room(self, name: bytes, group: int) -> Room | None:
        """One query in one group."""
        ...

    def rooms(self, name: bytes) -> list[Room]:
        """One query in all groups."""
        ...

    def working(self, group: int) -> list[Room]:
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

    def close(self, room: Room, paths: list[list[bytes]]) -> None:
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

    def lease(self, room: Room, now: float, until: float) -> Lease | None:
        """Give out a task that nobody has, or has had for too long."""
        ...

    def leased(self, name: bytes, group: int, stage: int, task: int) -> Lease | None:
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
