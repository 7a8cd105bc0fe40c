"""The work on a closed collection as stages of tasks: the same for the relay and for every cell.

A task names the addresses of its inputs and outputs. Cells compute it from the public terms and
the closing, so that a relay cannot give a frame to a task it does not belong to. Stages follow
one another; the tasks of a stage depend on nothing in it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

from halfmask.errors import TamperedMessageError
from halfmask.protocol.common_schema import SUMS
from halfmask.protocol.crypto import Address
from halfmask.protocol.keys import PROOF
from halfmask.protocol.records import merge

if TYPE_CHECKING:
    from halfmask.protocol.common_schema import Terms

# The proof, the ephemeral key, the nonce and the tag around an answer.
ENVELOPE = PROOF + 32 + 28
PIECE = 1 << 20
Kind = Literal["fold", "tree", "swap", "split", "pack", "filter"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks that can be done at the same time."""

    kind: Kind
    level: int
    step: int
    tasks: int


@dataclass(frozen=True, slots=True)
class MergeTask:
    """One cell's piece of work; an input of None is an empty frame."""

    kind: Kind
    level: int
    node: int
    inputs: tuple[Address | None, ...]
    outputs: tuple[Address, ...]


@dataclass(frozen=True)
class Schedule:
    """All stages for so many contributions."""

    terms: Terms
    contributions: int

    @cached_property
    def partitions(self) -> int:
        """How many partitions the contributions are cut into."""
        return max(1, -(-self.contributions // self.terms.partition))

    def members(self, partition: int) -> int:
        """How many contributions a partition holds."""
        return min(self.terms.partition, self.contributions - partition * self.terms.partition)

    @cached_property
    def height(self) -> int:
        """The level of the node that covers everything."""
        return (self.partitions - 1).bit_length()

    @cached_property
    def pieces(self) -> int:
        """Pieces that the sealed answer is cut into."""
        return -(-(self.terms.reply + ENVELOPE) // PIECE)

    @lru_cache(maxsize=64)  # noqa: B019 - as many entries as there are levels
    def frames(self, level: int) -> int:
        """Frames of a node; depends on no data."""
        if level == 0:
            first = -(-(self.terms.partition + SUMS) // self.terms.frame)
            return min(first, self.terms.full)
        # By public terms alone: how full frames are would tell how many groups there are.
        return min(2 * self.frames(level - 1), self.terms.full)

    def width(self, level: int) -> int:
        """Nodes of a level."""
        return -(-self.partitions // (1 << level))

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """What is done, in order."""
        found = [Stage("fold", 0, 0, self.partitions)]
        for level in range(1, self.height + 1):
            pairs = self.width(level - 1) // 2
            if self.terms.merge != "network":
                found.append(Stage(self.terms.merge, level, 0, pairs))
                continue
            n = self.frames(level - 1)
            found += [Stage("split", level, j, pairs * (n - j + 1)) for j in range(1, n + 1)]
            found += [
                Stage("pack", level, n + 1 + s, pairs * len(compared))
                for s, compared in enumerate(self._sorting(level))
            ]
        found.append(Stage("filter", self.height + 1, 0, 1))
        return tuple(found)

    def task(self, stage: int, index: int) -> MergeTask:
        """One task of a stage.

        Raises:
            TamperedMessageError: there is no such task.
        """
        if not (0 <= stage < len(self.stages) and 0 <= index < self.stages[stage].tasks):
            raise TamperedMessageError("There is no such task in the work on this query.")
        at = self.stages[stage]
        if at.kind == "fold":
            return MergeTask("fold", 0, index, (), self._own(0, index))
        if at.kind == "filter":
            pieces = tuple(Address(at.level, 0, 0, p) for p in range(self.pieces))
            return MergeTask("filter", at.level, 0, self.node(self.height, 0), pieces)
        if at.kind in ("split", "pack"):
            return self._split(at, index)
        inputs = self.node(at.level - 1, 2 * index) + self.node(at.level - 1, 2 * index + 1)
        return MergeTask(at.kind, at.level, index, inputs, self._own(at.level, index))

    def node(self, level: int, index: int) -> tuple[Address, ...]:
        """The addresses of a node's frames; a node without a sibling is the one below it."""
        while level and 2 * index + 1 >= self.width(level - 1):
            level, index = level - 1, 2 * index
        if level == 0 or self.terms.merge != "network":
            return self._own(level, index)
        steps = len(self._sorting(level))
        count = min(2 * self.frames(level - 1), self.frames(level))
        return tuple(self._position_after(level, index, steps, p) for p in range(count))

    def _own(self, level: int, index: int) -> tuple[Address, ...]:
        return tuple(Address(level, index, 0, p) for p in range(self.frames(level)))

    @lru_cache(maxsize=64)  # noqa: B019 - as many entries as there are levels
    def _sorting(self, level: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The comparisons that bring empty places to the end, where there are too many frames."""
        whole = 2 * self.frames(level - 1)
        return merge.comparisons(whole) if whole > self.frames(level) else ()

    def _split(self, at: Stage, index: int) -> MergeTask:
        n = self.frames(at.level - 1)
        if at.step <= n:
            node, t = divmod(index, n - at.step + 1)
            if at.step == 1:
                sides = (self.node(at.level - 1, 2 * node), self.node(at.level - 1, 2 * node + 1))
                inputs = tuple(side[t] if t < len(side) else None for side in sides)
            else:
                inputs = (
                    Address(at.level, node, at.step - 1, 2 * t + 2),
                    Address(at.level, node, at.step - 1, 2 * t + 1),
                )
            low = 2 * t
            outputs = tuple(Address(at.level, node, at.step, low + i) for i in (0, 1))
            return MergeTask("split", at.level, node, inputs, outputs)
        step = at.step - n - 1
        compared = self._sorting(at.level)[step]
        node, t = divmod(index, len(compared))
        return MergeTask(
            "pack",
            at.level,
            node,
            tuple(self._position_after(at.level, node, step, p) for p in compared[t]),
            tuple(Address(at.level, node, at.step, p) for p in compared[t]),
        )

    def _position_after(self, level: int, node: int, steps: int, position: int) -> Address:
        """Where the frame at ``position`` lies after so many steps of comparisons."""
        n = self.frames(level - 1)
        touched = self._steps_touching(level).get(position, ())
        last = bisect_right(touched, steps - 1) - 1
        if last >= 0:
            return Address(level, node, n + 1 + touched[last], position)
        if position < n:
            return Address(level, node, position + 1, 0)
        j = 2 * n - position
        return Address(level, node, j, 2 * (n - j) + 1)

    @lru_cache(maxsize=64)  # noqa: B019 - as many entries as there are levels
    def _steps_touching(self, level: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for step, compared in enumerate(self._sorting(level)):
            for pair in compared:
                for position in pair:
                    found.setdefault(position, []).append(step)
        return found
