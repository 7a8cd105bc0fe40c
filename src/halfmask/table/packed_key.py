"""Several columns' codes side by side in one or two machine words: the key of a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where each column's code stands inside the packed key."""

    words: NDArray[np.int64]
    shifts: NDArray[np.uint64]
    masks: NDArray[np.uint64]

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Layout:
        """Place columns with ``sizes`` distinct values one after the other, none across words."""
        words, shifts, masks = [], [], []
        word = shift = 0
        for size in sizes:
            width = max(1, int(size - 1).bit_length())
            if shift + width > 64:
                word, shift = word + 1, 0
            words.append(word)
            shifts.append(shift)
            masks.append((1 << width) - 1)
            shift += width
        return cls(
            np.array(words, dtype=np.int64),
            np.array(shifts, dtype=np.uint64),
            np.array(masks, dtype=np.uint64),
        )

    def codes(self, keys: NDArray[np.uint64], column: int) -> NDArray[np.int64]:
        """Unpack one column from ``keys``."""
        word = keys[:, self.words[column]]
        codes = (word >> self.shifts[column]) & self.masks[column]
        return np.asarray(codes, dtype=np.int64)
