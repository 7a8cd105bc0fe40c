"""What a private synthesizer sees of the rows: noisy views, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.dp.budget import Budget


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A noisy table of counts.

    Attributes:
        columns: whose values span it.
        counts: noisy, may be negative.
        variance: of the noise in each cell.
    """

    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """What a model believes of one table of counts, to be compared with the rows.

    Attributes:
        columns: whose values span it.
        counts: the model's counts, whole numbers.
        penalty: what the score loses whatever the rows say.
    """

    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    penalty: int = 0


class NoisyViews(Protocol):
    """All that a synthesizer may ask about the rows."""

    sizes: Mapping[str, int]
    limit: Budget

    def count(self, columns: Sequence[str], cost: Budget) -> Measured:
        """A noisy table of counts over ``columns``."""
        ...

    def grouped(self, maps: Mapping[str, NDArray[np.int64]]) -> NoisyViews:
        """The same rows after each column's codes went through a public map."""
        ...

    def within(self, limit: Budget) -> NoisyViews:
        """The same rows for a part of the budget."""
        ...

    def heavy(
        self, columns: Sequence[str], cost: Budget
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
        """The cells of a table too large to list whose noisy count is large, and the total."""
        ...

    def worst(self, guesses: Sequence[Guess], cost: Budget) -> int:
        """Which guess is (about) farthest from the rows, by the sum of absolute differences."""
        ...

    def dependent(self, pairs: Sequence[tuple[tuple[str, ...], str]], cost: Budget) -> int:
        """Which (parents, child) is (about) farthest from independence."""
        ...
