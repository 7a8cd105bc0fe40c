"""Average risk: an attacker who names somebody for every row is right for few of them.

Definition: the mean over rows of 1 / |E|, with E the row's class and |E| its people, is at most the
limit; where every row is another person it is the number of classes divided by that of people.
Source: El Emam, "Guide to the de-identification of personal health information", 2013 (marketer
risk).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from halfmask.models.exact import fraction, plain, require_number
from halfmask.models.statistics import fewest
from halfmask.models.verdict import Verdict, judge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes


@dataclass(frozen=True, slots=True)
class AverageRisk:
    """Require the average chance of naming the person behind a row to be at most ``limit``.

    Example:
        >>> AverageRisk(0.1).whole
        True
    """

    name: ClassVar[str] = "average risk"
    monotone: ClassVar[bool] = True  # in a merged class every row hides among more people
    absorbing: ClassVar[bool] = False  # an added row may be a class of its own
    whole: ClassVar[bool] = True
    relative: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()
    policy: ClassVar[tuple[str, ...]] = ()
    population: ClassVar[None] = None

    limit: float

    def __post_init__(self) -> None:
        require_number("limit", self.limit, 0, 1, open_low=True)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell which classes may stay; see ``excess``."""
        return ~self.excess(classes)

    def excess(self, classes: Classes) -> NDArray[np.bool_]:
        """Mark the smallest classes, as few as possible, without which the promise holds.

        Where every row is another person no other choice takes fewer classes or fewer rows: a
        class of s people lifts the balance (limit * people - classes) by 1 - limit * s, most for
        the smallest, so that any set of j classes that suffices is matched by the j smallest.
        """
        sizes, rows = _by_size(classes)
        limit = fraction(self.limit)
        over = _sum(sizes, rows) - limit * sum(rows)
        out = np.zeros(len(classes), dtype=np.bool_)
        for size, held in zip(sizes, rows, strict=True):
            if over <= 0:
                break
            gain = Fraction(1, size) - limit
            at = np.flatnonzero((classes.people == size) & (classes.rows > 0))
            out[at if gain * held <= over else fewest(classes, at, -(-over // gain))] = True
            over -= gain * held
        return out

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the average risk."""
        sizes, rows = _by_size(classes)
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.limit,
            achieved=_sum(sizes, rows) / max(sum(rows), 1),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {"model": self.name, "limit": plain(self.limit)}


def _by_size(classes: Classes) -> tuple[list[int], list[int]]:
    """The sizes of classes in people, ascending, and the rows in classes of each size."""
    live = classes.rows > 0
    sizes, place = np.unique(classes.people[live], return_inverse=True)
    rows = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(rows, place, classes.rows[live])
    return sizes.tolist(), rows.tolist()


def _sum(sizes: list[int], rows: list[int]) -> Fraction:
    """The expected number of rows that an attacker names rightly."""
    return sum((Fraction(r, s) for s, r in zip(sizes, rows, strict=True)), Fraction(0))
