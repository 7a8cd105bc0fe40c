"""How many values, or owners of values, the parts of one variable hold while parts are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Held:
    """The sizes of the parts of one variable; an owner of several values counts once in a part."""

    def __init__(self, part: NDArray[np.int32], owner: NDArray[np.int32] | None = None) -> None:
        self._part = part.astype(np.int64)
        self._owner = owner
        self.alive = np.ones(int(part.max()) + 1, dtype=bool)
        self.sizes = self._counted()

    def __repr__(self) -> str:
        return f"Held({int(self.alive.sum())} parts)"

    def fewest(self) -> int:
        """The size of the smallest part."""
        return int(self.sizes[self.alive].min())

    def join(self, kept: int, gone: int) -> None:
        """Let one part take in another."""
        self.alive[gone] = False
        if self._owner is None:
            self.sizes[kept] += self.sizes[gone]
            return
        self._part[self._part == gone] = kept
        self.sizes[kept] = len(np.unique(self._owner[self._part == kept]))

    def _counted(self) -> NDArray[np.int64]:
        part, count = self._part, len(self.alive)
        if self._owner is not None:
            pairs = np.unique(part << 32 | self._owner)
            part = pairs >> 32
        return np.bincount(part, minlength=count)
