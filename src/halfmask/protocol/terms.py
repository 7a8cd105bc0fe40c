"""How the work on a query is cut up: public, part of the question, the same for everybody."""

from __future__ import annotations

from math import ceil
from typing import Literal

import msgspec

from halfmask.errors import MessageError

Merge = Literal["tree", "swap", "network"]
MERGES: tuple[Merge, ...] = ("tree", "swap", "network")
SUMS = 3
LARGEST = 1 << 14


class Terms(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Sizes that depend on nobody's data.

    Attributes:
        merge: how partial aggregates are merged.
        partition: contributions that one cell aggregates at first.
        frame: groups in one frame.
        room: groups that there is room for; with more the query fails.
        text: bytes for a text key; people with a longer one do not contribute.
        ram: bytes that a cell can hold (``tree`` needs room for everything it merges).
        row: bytes of the answer per group that there is room for.
        noise: every cell reports its group by chance, under its person's own epsilon.
    """

    merge: Merge = "tree"
    partition: int = 256
    frame: int = 256
    room: int = 4096
    text: int = 32
    ram: int = 64 << 20
    row: int = 64
    noise: bool = False

    @property
    def reply(self) -> int:
        """Bytes of the answer, whatever it says."""
        return (1 << 16) + self.room * self.row

    @property
    def full(self) -> int:
        """Frames that hold everything there is room for."""
        return ceil((self.room + SUMS) / self.frame)

    def check(self) -> None:
        """Refuse sizes that cannot be worked with.

        Raises:
            MessageError: a size is out of range.
        """
        limits = {
            "partition": (1, 1 << 16),
            "frame": (2, 1 << 16),
            "room": (1, 1 << 24),
            "text": (1, 1024),
            "ram": (1 << 10, 1 << 40),
            "row": (1, 1 << 16),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise MessageError(f"The query's {name} must lie between {low:,} and {high:,}.")
        if self.full > LARGEST:
            raise MessageError(f"The query's room needs over {LARGEST:,} frames: enlarge them.")
