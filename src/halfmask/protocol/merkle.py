"""One root over all contributions, so that nobody works on another collection than the others.

Every node names, beside the digest, the first and the last ticket under it, and its left part ends
before its right part begins. So whoever climbs from a partition to the root has seen that no ticket
of the partition stands in another one, whatever the relay does.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from halfmask.errors import TamperedMessageError
from halfmask.protocol.crypto import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

TICKET = 32
EMPTY = b""


class Span(NamedTuple):
    """A part of the contributions: its digest, and its first and last ticket."""

    digest: bytes
    first: bytes
    last: bytes

    def pack(self) -> bytes:
        """As bytes."""
        return self.digest + self.first + self.last


def partition(members: Sequence[tuple[bytes, bytes]]) -> Span:
    """A partition: its tickets, in order, and what was sent with them."""
    found = hashlib.sha256(b"partition")
    for ticket, frame in members:
        found.update(ticket)
        found.update(hashlib.sha256(frame).digest())
    return Span(found.digest(), members[0][0], members[-1][0])


def root_and_paths(leaves: Sequence[Span]) -> tuple[bytes, list[list[bytes]]]:
    """The root over partitions, and per partition the siblings on the way up."""
    paths: list[list[bytes]] = [[] for _ in leaves]
    row = list(leaves)
    members: list[list[int]] = [[i] for i in range(len(leaves))]
    while len(row) > 1:
        for i, inside in enumerate(members):
            sibling = row[i ^ 1].pack() if i ^ 1 < len(row) else EMPTY
            for leaf in inside:
                paths[leaf].append(sibling)
        row = [_above(row[i : i + 2]) for i in range(0, len(row), 2)]
        members = [
            [leaf for inside in members[i : i + 2] for leaf in inside]
            for i in range(0, len(members), 2)
        ]
    return digest(b"root", row[0].pack()), paths


def climb(leaf: Span, index: int, path: Sequence[bytes]) -> bytes:
    """The root that a partition and its path lead to.

    Raises:
        TamperedMessageError: parts of the collection overlap, or the path is none.
    """
    for packed in path:
        if packed == EMPTY:
            # Only the last node of a row has no sibling, and then it is a left one.
            if index % 2:
                raise TamperedMessageError("A partition is not the one that was closed.")
            leaf = _above([leaf])
        else:
            if len(packed) != 3 * TICKET:
                raise TamperedMessageError("A partition is not the one that was closed.")
            sibling = Span(packed[:TICKET], packed[TICKET : 2 * TICKET], packed[2 * TICKET :])
            pair = [leaf, sibling] if index % 2 == 0 else [sibling, leaf]
            if not pair[0].last < pair[1].first:
                raise TamperedMessageError("A ticket may stand in two partitions.")
            leaf = _above(pair)
        index //= 2
    return digest(b"root", leaf.pack())


def _above(parts: Sequence[Span]) -> Span:
    return Span(digest(b"node", *(p.pack() for p in parts)), parts[0].first, parts[-1].last)
