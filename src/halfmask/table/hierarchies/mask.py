"""Codes masked character by character: 35510, 3551*, 355**, ... and nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.assemble import (
    Levels,
    assemble,
    check_top,
    options,
    present,
    with_top,
)
from halfmask.table.hierarchy import TOP, canonical

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy

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
        texts = [canonical(value) for value in present(values)]
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
