"""Personal t-closeness: each person's class is as close to the whole table as they demand.

Definition: EMD(P_E, Q) <= min(t_i for i in E) for every class E, with P_E the distribution of the
sensitive column in E and Q that of all rows; distances as in t-closeness.
Source: Li, Li and Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity",
2007; a demand per person as a perspective in Michel, "Personalizing privacy constraints in
generalization-based anonymization models", 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from halfmask.models.demands import demand_faults, lowest
from halfmask.models.exact import at_most, fraction, largest, plain, require_number
from halfmask.models.statistics import filled, histogram, kept
from halfmask.models.t_closeness import DISTANCES, TCloseness
from halfmask.models.verdict import Verdict, judge
from halfmask.table.demands import demand_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class PersonalTCloseness:
    """Require the distribution of ``column`` in a class within the ``t`` of everybody in it.

    Attributes:
        column: the sensitive column.
        distance: how far two values are apart.
        default: the demand of people who state none; without it such people are an error.

    Example:
        >>> PersonalTCloseness("disease").policy
        ('t',)
    """

    monotone: ClassVar[bool] = False  # a part that is far off may join one that demands nearness
    absorbing: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    policy: ClassVar[tuple[str, ...]] = ("t",)
    population: ClassVar[None] = None

    column: str
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    default: float | None = None

    def __post_init__(self) -> None:
        TCloseness(0.5, self.column, self.distance)  # the same parameters are possible
        if self.default is not None:
            require_number("default", self.default, 0, 1)

    @property
    def name(self) -> str:
        """The model and its distance."""
        return f"personal t-closeness ({self.distance} distance)"

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive column."""
        return (self.column,)

    def faults(self, table: Table) -> list[str]:
        """What hinders reading people's demands from ``table``."""
        found = demand_faults(table, "t", self.default, self.column)
        return found + TCloseness(0.5, self.column, self.distance).faults(table)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it is close enough for everybody in it."""
        moved, full = self._distance(classes)
        demands = lowest(classes, self._key, self.default)
        passing = np.zeros(len(demands), dtype=np.bool_)
        for t in np.unique(demands):
            at = demands == t
            passing[at] = at_most(moved[at], full[at], fraction(float(t))) if t >= 0 else False
        return kept(classes, passing)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``.

        Required is the strictest demand of anybody. Achieved is the largest distance of a class
        that holds such a demand or, where demands are not met, of a class that fails.
        """
        live, passing = filled(classes), self.passes(classes)
        moved, full = self._distance(classes)
        demands = lowest(classes, self._key, self.default)
        strictest = float(demands[live].min(initial=1.0))
        decisive = live & ~passing if (live & ~passing).any() else live & (demands == strictest)
        met = int(np.count_nonzero(live & passing))
        return judge(
            self,
            classes,
            passing,
            required=strictest if strictest >= 0 else float("inf"),
            achieved=largest(moved[decisive], full[decisive]),
            note=f"{met} of {int(live.sum())} classes are as close as anybody in them demands.",
        )

    def unmet(
        self, classes: Classes, ids: NDArray[Any], asked: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell per row whether its class is farther off than its person allows."""
        moved, full = self._distance(classes)
        short = np.zeros(len(ids), dtype=np.bool_)
        for t in np.unique(asked[~np.isnan(asked)]):
            far = ~at_most(moved, full, fraction(float(t)))
            short |= (asked == t) & far[ids]
        return short

    @property
    def _key(self) -> str:
        return demand_key("t", self.column)

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {
            "model": "personal t-closeness",
            "column": self.column,
            "distance": self.distance,
            "default": None if self.default is None else plain(self.default),
        }

    def _distance(self, classes: Classes) -> tuple[NDArray[Any], NDArray[Any]]:
        return DISTANCES[self.distance](histogram(classes, self.column), self.column)
