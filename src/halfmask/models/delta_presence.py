"""delta-presence: whether a person is in the table cannot be told, nor excluded, too surely.

Definition: lower <= |E in the table| / |E in the population| <= upper for every class E of the
population, where |.| counts people.
Source: Nergiz, Atzori and Clifton, "Hiding the presence of individuals from shared databases",
2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.errors import InternalError, ParameterError
from halfmask.models.exact import at_most, fraction, largest, plain, require_number
from halfmask.models.verdict import Verdict, judge
from halfmask.table.table import require_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class DeltaPresence:
    """Require the share of the population that is in the table to lie within bounds, per class.

    Attributes:
        lower: the lowest share, 0 to 1; above 0, classes without anybody of the table fail.
        upper: the highest share, 0 to 1.
        population: the table of all people among whom those of the table hide; it holds them too.

    Example:
        >>> DeltaPresence(0, 0.5, population=None)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        ParameterError: population = None is not possible: give a table.
    """

    name: ClassVar[str] = "delta-presence"
    monotone: ClassVar[bool] = True  # the share in a merged class lies between those of its parts
    absorbing: ClassVar[bool] = False  # added rows raise the share
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ()
    policy: ClassVar[tuple[str, ...]] = ()

    lower: float
    upper: float
    population: Table = field(repr=False)

    def __post_init__(self) -> None:
        require_number("lower", self.lower, 0, 1)
        require_number("upper", self.upper, 0, 1)
        if fraction(self.lower) > fraction(self.upper):
            raise ParameterError("lower", self.lower, "a number that is not above upper")
        if self.population is None:
            raise ParameterError("population", None, "a table")
        require_table(self.population)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether the share lies within the bounds.

        A class that holds more people than the population fails: the population is incomplete.
        """
        inside, outside = classes.people, _counts(classes)
        not_above = at_most(inside, outside, fraction(self.upper))
        if self.lower == 0:
            return not_above
        return not_above & at_most(outside, inside, 1 / fraction(self.lower))

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the highest share."""
        inside, outside = classes.people, _counts(classes)
        known = outside > 0
        full = bool(known.all())
        everywhere = full and bool((inside > 0).all()) and len(inside) > 0
        lowest = 1 / largest(outside, inside) if everywhere else 0
        achieved = largest(inside, outside) if full else math.inf
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.upper,
            achieved=achieved,
            note=f"Lower bound {self.lower} required, {float(lowest):.6g} achieved.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {"model": self.name, "lower": plain(self.lower), "upper": plain(self.upper)}


def _counts(classes: Classes) -> NDArray[np.int64]:
    if classes.population is None:
        raise InternalError("The class statistics lack the population.")
    return classes.population
