"""Everything that travels between cells, relay and asker, and the limits of it."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from halfmask.errors import MessageError
from halfmask.protocol.common_schema import Terms  # noqa: TC001 - read when decoding
from halfmask.protocol.crypto import digest
from halfmask.protocol.keys import Certificate  # noqa: TC001 - read when decoding

LARGEST = 8 << 20
CHUNK = 1 << 20
HASH = 32
M = TypeVar("M")


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    pass


class AskedQuery(_Message, frozen=True, tag="Query"):
    """A question as the asker signs it.

    Attributes:
        text: guaranteed SQL.
        commons: the digest of the common schema it was written for.
        certificate: who asks, and whom the answer is sealed for.
        nonce: makes every question another one.
        asked: when it was asked; seconds since 1970, as all times here.
        closes: when the collection ends at the latest.
        until: when everything ends.
        cells: the collection ends with so many contributions, of all groups of cells together.
        groups: the groups of cells that are asked.
        terms: how the work is cut up.
    """

    text: str
    commons: bytes
    certificate: Certificate
    nonce: bytes
    asked: int
    closes: int
    until: int
    cells: int
    groups: list[int]
    terms: Terms


class Signed(_Message, frozen=True):
    """A query and its asker's signature."""

    body: bytes
    signature: bytes

    @property
    def id(self) -> bytes:
        """The query's name; its keys hang on it."""
        return digest(b"query", self.body)


class Closing(_Message, frozen=True):
    """What is worked on: so many contributions, and the root over all."""

    contributions: int
    root: bytes

    def digest(self, query: bytes, group: int) -> bytes:
        """The name of this closing; every later frame is bound to it."""
        return digest(
            b"closing",
            query,
            *(str(n).encode() for n in (group, self.contributions)),
            self.root,
        )


class Ask(_Message, frozen=True):
    """Asker: put this question."""

    query: Signed


class Collect(_Message, frozen=True):
    """Asker: is there an answer?"""

    query: bytes


class Retrieve(_Message, frozen=True):
    """Asker: one piece of a group's sealed answer."""

    query: bytes
    group: int
    piece: int


class Browse(_Message, frozen=True):
    """Cell: which questions are open?"""

    group: int


class Contribute(_Message, frozen=True):
    """Cell: its contribution. The ticket is its name in this one query."""

    query: bytes
    group: int
    ticket: bytes
    frame: bytes


class Seek(_Message, frozen=True):
    """Cell: is there work?"""

    group: int


class Fetch(_Message, frozen=True):
    """Cell: the frames of a task from one on."""

    query: bytes
    group: int
    stage: int
    task: int
    start: int


class Deliver(_Message, frozen=True):
    """Cell: the results of a task from one on."""

    query: bytes
    group: int
    stage: int
    task: int
    lease: int
    start: int
    frames: list[bytes]


class Refuse(_Message, frozen=True):
    """Cell: what it was given is not right."""

    query: bytes
    group: int
    stage: int
    task: int
    code: str


class Accepted(_Message, frozen=True):
    """Relay: noted."""


class Open(_Message, frozen=True):
    """Relay: the open questions."""

    queries: list[Signed]


class Late(_Message, frozen=True):
    """Relay: the collection is closed, or the task done."""


class Idle(_Message, frozen=True):
    """Relay: no work at the moment."""


class TaskGrant(_Message, frozen=True, tag="Grant"):
    """Relay: a task. ``tickets`` and ``path`` belong to the first stage only."""

    query: Signed
    closing: Closing
    stage: int
    task: int
    lease: int
    tickets: list[bytes]
    path: list[bytes]


class Frames(_Message, frozen=True):
    """Relay: frames of a task."""

    frames: list[bytes]


class Pending(_Message, frozen=True):
    """Relay: no answer yet."""

    state: Literal["collecting", "working"]


class Ready(_Message, frozen=True):
    """Relay: per group of cells, into how many pieces its sealed answer is cut; 0: nobody came."""

    pieces: dict[int, int]


class Failed(_Message, frozen=True):
    """Relay: there will be no answer, and why."""

    code: str


class Trouble(_Message, frozen=True):
    """Relay: the message cannot be taken."""

    code: str
    message: str


Request = Ask | Collect | Retrieve | Browse | Contribute | Seek | Fetch | Deliver | Refuse
Reply = Accepted | Open | Late | Idle | TaskGrant | Frames | Pending | Ready | Failed | Trouble
_REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_QUERIES = msgspec.msgpack.Decoder(AskedQuery)


def encode_message(message: Request | Reply | AskedQuery) -> bytes:
    """A message as bytes."""
    return msgspec.msgpack.encode(message)


def read_request(data: bytes) -> Request:
    """What somebody asks of the relay.

    Raises:
        MessageError: malformed or too large.
    """
    return _read(data, _REQUESTS)


def read_reply(data: bytes) -> Reply:
    """What the relay answers.

    Raises:
        MessageError: malformed or too large.
    """
    return _read(data, _REPLIES)


def read_query(body: bytes) -> AskedQuery:
    """The question inside a signed one.

    Raises:
        MessageError: malformed or too large.
    """
    query = _read(body, _QUERIES)
    query.terms.check()
    groups = query.groups
    if not groups or len(set(groups)) != len(groups) or not all(0 <= g < 4096 for g in groups):
        raise MessageError("A query names no groups of cells, or some twice.")
    if query.cells < 1 or not query.asked <= query.closes <= query.until:
        raise MessageError("A query's times or sizes contradict each other.")
    return query


def _read(data: bytes, decoder: msgspec.msgpack.Decoder[M]) -> M:
    if len(data) > LARGEST:
        raise MessageError(f"A message is larger than {LARGEST:,} bytes.")
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise MessageError("A message is malformed.") from None
