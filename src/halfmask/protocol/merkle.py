"""One root over all contributions, so that nobody works on another collection than the others."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from halfmask.protocol.crypto import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EMPTY = bytes(32)


def partition(members: Iterable[tuple[int, bytes]]) -> bytes:
    """The digest of a partition: its slots and what lies in them."""
    found = hashlib.sha256(b"partition")
    for slot, frame in members:
        found.update(struct.pack(">I", slot))
        found.update(hashlib.sha256(frame).digest())
    return found.digest()


def root_and_paths(leaves: Sequence[bytes]) -> tuple[bytes, list[list[bytes]]]:
    """The root over partitions, and per partition the siblings on the way up."""
    paths: list[list[bytes]] = [[] for _ in leaves]
    row = list(leaves)
    members: list[list[int]] = [[i] for i in range(len(leaves))]
    while len(row) > 1:
        if len(row) % 2:
            row.append(EMPTY)
            members.append([])
        for i, inside in enumerate(members):
            for leaf in inside:
                paths[leaf].append(row[i ^ 1])
        row = [digest(b"node", row[i], row[i + 1]) for i in range(0, len(row), 2)]
        members = [members[i] + members[i + 1] for i in range(0, len(members), 2)]
    return (row[0] if row else EMPTY), paths


def climb(leaf: bytes, index: int, path: Sequence[bytes]) -> bytes:
    """The root that a partition and its path lead to."""
    for sibling in path:
        pair = (leaf, sibling) if index % 2 == 0 else (sibling, leaf)
        leaf = digest(b"node", *pair)
        index //= 2
    return leaf
