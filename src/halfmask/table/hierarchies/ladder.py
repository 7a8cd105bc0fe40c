"""The hierarchy with two levels: the value, or nothing.

Codes masked character by character: 35510, 3551*, 355**, ... and nothing.

Values in an order, merged into groups of neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.tree import (
    Levels,
    assemble,
    check_top,
    options,
    present_values,
    with_top,
)
from halfmask.table.hierarchy import TOP, canonical

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class Flat:
    """Keep the value or hide it; what a quasi-identifier gets that declares no hierarchy."""

    @classmethod
    def parse(cls, value: object, folder: Path) -> Flat:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``flat =`` in the schema file."""
        if value is not True:
            raise HierarchyError("hierarchy flat: write flat = true.")
        return cls()

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        return {"flat": True}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Two levels: the values and the top."""
        return assemble(column, values, Levels([]))


MOST_LEVELS = 255
_KEYS = ("length", "char", "from", "top")


@dataclass(frozen=True, slots=True)
class Mask:
    """Hide one more character at each level.

    A shorter value counts as already masked at the characters it lacks, so that levels nest.

    Attributes:
        length: how long a code is, which is the number of levels; ``None``: as the longest value.
        char: what stands for a hidden character.
        from_: the side that is hidden first.
        top: the label of the last level, where all is hidden; False: keep the first character.
    """

    length: int | None = None
    char: str = TOP
    from_: Literal["right", "left"] = "right"
    top: str | bool = True

    def __post_init__(self) -> None:
        faults = []
        whole = isinstance(self.length, int) and not isinstance(self.length, bool)
        if self.length is not None and (not whole or self.length < 1):
            faults.append("hierarchy mask: length must be a whole number of at least 1.")
        if not isinstance(self.char, str) or len(self.char) != 1:
            faults.append("hierarchy mask: char must be one character.")
        if self.from_ not in ("right", "left"):
            faults.append("hierarchy mask: from must be 'right' or 'left'.")
        if faults:
            raise HierarchyError(*faults)
        check_top("mask", self.top)

    @classmethod
    def parse(cls, value: object, folder: Path) -> Mask:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``mask =`` in the schema file."""
        if value is True:
            return cls()
        if isinstance(value, int):
            return cls(value)
        chosen = options("mask", value, _KEYS)
        if "from" in chosen:
            chosen["from_"] = chosen.pop("from")
        return cls(**chosen)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        rest: dict[str, object] = {}
        if self.char != TOP:
            rest["char"] = self.char
        if self.from_ != "right":
            rest["from"] = self.from_
        rest = with_top(rest, self.top)
        if not rest:
            return {"mask": True if self.length is None else self.length}
        return {"mask": rest if self.length is None else {"length": self.length, **rest}}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Mask the text of each value."""
        texts = [canonical(value) for value in present_values(values)]
        longest = max(map(len, texts), default=1)
        length = self.length or max(longest, 1)
        if length > MOST_LEVELS:
            raise HierarchyError(
                f"Column '{column}': a mask of {length:,} characters has as many levels, and"
                f" {MOST_LEVELS} are the most; give the length of the codes, or group the values."
            )
        long = sum(len(text) > length for text in texts)
        if long:
            raise HierarchyError(
                f"Column '{column}': {long} distinct value(s) are longer than the mask's {length}"
                f" characters; give mask = {longest}."
            )
        inside = [self._masked(texts, hidden, length) for hidden in range(1, length)]
        return assemble(column, values, Levels(inside), top=self.top)

    def _masked(self, texts: list[str], hidden: int, length: int) -> list[str]:
        char = self.char
        if self.from_ == "right":
            return [text[: length - hidden].ljust(length, char) for text in texts]
        return [text.rjust(length, char)[hidden:].rjust(length, char) for text in texts]


_ORDERED_KEYS = ("order", "groups", "top")


@dataclass(frozen=True, slots=True)
class Ordered:
    """Groups of neighbours in an order, by size or by name.

    Attributes:
        order: the values from lowest to highest; empty: the ascending values of the column.
        groups: per level, how many neighbours are merged (each size a multiple of the one
            before), or a mapping from a name to its members: values, or names of the level below.
        top: the label of the root that is added; False: leave it open.
    """

    order: Sequence[object] = ()
    groups: Sequence[int | Mapping[str, Sequence[object]]] = ()
    top: str | bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple(self.order))
        object.__setattr__(self, "groups", tuple(self.groups))
        check_top("ordered", self.top)
        faults = []
        if len({canonical(value) for value in self.order}) < len(self.order):
            faults.append("hierarchy ordered: the order names a value twice.")
        sizes = [size for size in self.groups if not isinstance(size, Mapping)]
        if any(not isinstance(size, int) or isinstance(size, bool) or size < 2 for size in sizes):
            faults.append("hierarchy ordered: a group size must be a whole number of at least 2.")
        elif sizes and len(sizes) < len(self.groups):
            faults.append("hierarchy ordered: give sizes or named groups, not both.")
        elif any(b <= a or b % a for a, b in itertools.pairwise(sizes)):
            faults.append("hierarchy ordered: each size must be a multiple of the one before.")
        if not sizes and self.groups and not self.order:
            faults.append("hierarchy ordered: named groups need the order.")
        if faults:
            raise HierarchyError(*faults)
        if self.order and self.groups and not sizes:
            self._label_levels([canonical(value) for value in self.order])

    @classmethod
    def parse(cls, value: object, folder: Path) -> Ordered:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``ordered =`` in the schema file."""
        if isinstance(value, list | tuple):
            value = {"groups": value}
        chosen = options("ordered", value, _ORDERED_KEYS)
        for key in ("order", "groups"):
            if not isinstance(chosen.get(key, []), list | tuple):
                raise HierarchyError(f"hierarchy ordered: {key} must be a list.")
        return cls(**chosen)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        out: dict[str, object] = {"order": list(self.order)} if self.order else {}
        groups = [_plain(group) if isinstance(group, Mapping) else group for group in self.groups]
        if groups:
            out["groups"] = groups
        return {"ordered": with_top(out, self.top)}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Merge neighbours; the order may hold values that the table does not."""
        held = [canonical(value) for value in present_values(values)]
        order = [canonical(value) for value in self.order] or held
        places = {value: place for place, value in enumerate(order)}
        absent = sum(value not in places for value in held)
        if absent:
            raise HierarchyError(
                f"Column '{column}': {absent} distinct value(s) are not in the order. Add them."
            )
        named = any(isinstance(group, Mapping) for group in self.groups)
        levels = self._label_levels(order) if named else self._sized(order)
        here = set(held)
        inside = [[labels[places[value]] for value in held] for labels in levels]
        others = [place for place, value in enumerate(order) if value not in here]
        outside = [[labels[place] for place in others] for labels in levels]
        known = Levels(inside, outside, len(others), rooted=named)
        return assemble(column, values, known, top=self.top)

    def _sized(self, order: list[str]) -> list[list[str]]:
        out = []
        for size in self.groups:
            assert isinstance(size, int)  # noqa: S101 - the constructor saw to it
            starts = [place - place % size for place in range(len(order))]
            ends = [min(start + size, len(order)) - 1 for start in starts]
            out.append([_span(order[a], order[b]) for a, b in zip(starts, ends, strict=True)])
        return out

    def _label_levels(self, order: list[str]) -> list[list[str]]:
        out: list[list[str]] = []
        faults = []
        for level, groups in enumerate(self.groups, start=1):
            assert isinstance(groups, Mapping)  # noqa: S101 - the constructor saw to it
            owner, twice = _owners(groups)
            below = out[-1] if out else order
            labels = [
                owner.get(label) or owner.get(value)
                for label, value in zip(below, order, strict=True)
            ]
            absent = sum(label is None for label in labels)
            runs = sum(a != b for a, b in zip(labels, [None, *labels], strict=False))
            if twice:
                faults.append(f"hierarchy ordered: level {level} names {twice} member(s) twice.")
            elif absent:
                faults.append(
                    f"hierarchy ordered: level {level} has no group for {absent} value(s) of the"
                    " order."
                )
            elif runs > len(set(labels)):
                faults.append(f"hierarchy ordered: a group of level {level} is not of neighbours.")
            if faults:
                raise HierarchyError(*faults)
            out.append([str(label) for label in labels])
        return out


def _owners(groups: Mapping[str, Sequence[object]]) -> tuple[dict[str, str], int]:
    owner: dict[str, str] = {}
    twice = 0
    for name, members in groups.items():
        for member in members:
            key = canonical(member)
            twice += key in owner
            owner[key] = str(name)
    return owner, twice


def _plain(group: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    return {name: list(members) for name, members in group.items()}


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"
