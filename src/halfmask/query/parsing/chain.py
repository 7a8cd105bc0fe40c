"""The chain of guarantees: what is generalized step by step, and what is promised at each level.

Definition: level i applies the steps 1..i to the grouping columns and promises, for every row
published at that level, at least k_i people and at least l_i distinct values.
Source: Michel, "Personalizing Privacy Constraints in Generalization-based Anonymization Models",
2019, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operation = Literal["interval", "up", "delete"]
Semantics = Literal["selective", "complete", "complete-greedy"]
SEMANTICS: tuple[Semantics, ...] = ("selective", "complete", "complete-greedy")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands in the text of the query."""

    start: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Guarantee:
    """At least ``k`` people and ``l`` distinct values in every row.

    Example:
        >>> Guarantee(10, 4).covers(9, 4), Guarantee(10, 4).covers(9, 5)
        (True, False)
    """

    k: int
    l: int = 1

    def covers(self, k: float, l: float) -> bool:
        """Tell whether a person who demands ``k`` and ``l`` is content with this."""
        return k <= self.k and l <= self.l

    def __str__(self) -> str:
        return f"k={self.k} l={self.l}"


@dataclass(frozen=True, slots=True)
class Step:
    """One generalization of one grouping column.

    Attributes:
        column: the column's name as the asker wrote it.
        operation: to an interval, one level up its hierarchy, or away.
        width: the width of the interval.
        place: where it stands in the query.
    """

    column: str
    operation: Operation
    width: int = 0
    place: Place = Place(0)

    def __str__(self) -> str:
        what = {"interval": str(self.width), "up": "up", "delete": "del"}[self.operation]
        return f"{self.column} -> {what}"


@dataclass(frozen=True, slots=True)
class Level:
    """One entry of the chain: the step that leads to it (None: as grouped) and its guarantee."""

    guarantee: Guarantee
    step: Step | None = None
    place: Place = Place(0)


@dataclass(frozen=True, slots=True)
class Chain:
    """The levels from finest to coarsest.

    Attributes:
        levels: at least one.
        diverse: further columns whose distinct values l counts (``l = 3 OF disease``).
        places: where each of them stands.
    """

    levels: tuple[Level, ...]
    diverse: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def first(self) -> int:
        """The number of the finest level: 1 where the chain starts with a generalization."""
        return 0 if self.levels[0].step is None else 1

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What is promised, level by level."""
        return tuple(level.guarantee for level in self.levels)


def folded(name: str) -> str:
    """A name as it is compared: case, spaces and hyphens make no difference.

    Example:
        >>> folded("Native Country") == folded("native-country") == "native_country"
        True
    """
    return "_".join(name.replace("-", " ").lower().split())
