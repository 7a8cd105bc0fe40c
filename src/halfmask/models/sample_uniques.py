"""Sample uniques: few rows stand alone in their class.

Definition: the share of rows whose class holds a single person is at most the limit.
Source: Skinner and Elliot, "A measure of disclosure risk for microdata", 2002 (uniques as the
base of disclosure risk).
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
class SampleUniques:
    """Require the share of rows that are unique to be at most ``limit``.

    Example:
        >>> SampleUniques(0.05).whole
        True
    """

    name: ClassVar[str] = "sample uniques"
    monotone: ClassVar[bool] = True  # merging makes no row unique
    absorbing: ClassVar[bool] = False  # an added row may be a class of its own
    whole: ClassVar[bool] = True
    relative: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()
    policy: ClassVar[tuple[str, ...]] = ()
    population: ClassVar[None] = None

    limit: float

    def __post_init__(self) -> None:
        require_number("limit", self.limit, 0, 1)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell which classes may stay; see ``excess``."""
        return ~self.excess(classes)

    def excess(self, classes: Classes) -> NDArray[np.bool_]:
        """Mark the unique rows, as few as possible, without which the promise holds.

        Only a unique row can lower the share, and each takes as much as any other: x of u leave
        (u - x) / (rows - x) <= limit from x >= (u - limit * rows) / (1 - limit) on.
        """
        limit = fraction(self.limit)
        out = np.zeros(len(classes), dtype=np.bool_)
        unique = np.flatnonzero(classes.people == 1)
        over = int(classes.rows[unique].sum()) - limit * int(classes.rows.sum())
        if over <= 0:
            return out
        out[fewest(classes, unique, -(-over // (1 - limit)))] = True
        return out

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the share of unique rows."""
        alone = int(classes.rows[classes.people == 1].sum())
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.limit,
            achieved=Fraction(alone, max(int(classes.rows.sum()), 1)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {"model": self.name, "limit": plain(self.limit)}
