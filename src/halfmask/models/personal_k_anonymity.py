"""Personal k-anonymity: every person hides among as many as this person demands.

Definition: |E| >= max(k_i for i in E) for every class E, where |E| counts people.
Source: Xiao and Tao, "Personalized privacy preservation", 2006 (the idea of a demand per person);
the count as in Sweeney, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from halfmask.models.demands import demand_faults, highest, stated
from halfmask.models.exact import require_whole
from halfmask.models.statistics import filled, histogram, kept
from halfmask.models.verdict import Verdict, judge
from halfmask.table.demands import demand_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table

_KEY = demand_key("k")


@dataclass(frozen=True, slots=True)
class PersonalKAnonymity:
    """Require every class to hold as many people as each person in it demands.

    Attributes:
        default: the demand of people who state none, or of everybody where the schema names no
            policy column; without it such people are an error.

    Example:
        >>> PersonalKAnonymity().policy
        ('k',)
    """

    name: ClassVar[str] = "personal k-anonymity"
    monotone: ClassVar[bool] = True  # the highest demand is that of one part, whose people stay
    absorbing: ClassVar[bool] = False  # an added person may demand more
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ()
    policy: ClassVar[tuple[str, ...]] = ("k",)
    population: ClassVar[None] = None

    default: int | None = None

    def __post_init__(self) -> None:
        if self.default is not None:
            require_whole("default", self.default, 1)

    def faults(self, table: Table) -> list[str]:
        """What hinders reading people's demands from ``table``."""
        return demand_faults(table, "k", self.default)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it meets the highest demand inside it."""
        return kept(classes, classes.people >= self._demands(classes))

    def unavoidable(self, classes: Classes, limit: int) -> int:  # noqa: ARG002 - one signature
        """A lower bound of the rows that any finer grouping must lose.

        No part of a class holds more people than the class: whoever demands more must go.
        """
        return self._short(classes)

    def shortfall(self, classes: Classes) -> str:
        """Say by counts how far ``classes`` fall short; a demand is a person's own affair."""
        rows = int(classes.rows.sum())
        return (
            f"{self._short(classes)} of {rows} rows are of people who demand more than the closest "
            "recoding can give; ask them for less"
        )

    def _short(self, classes: Classes) -> int:
        """How many rows are of people who demand a larger class than theirs."""
        if self._unstated(classes):
            return int(classes.rows[classes.people < (self.default or 0)].sum())
        demands = histogram(classes, _KEY)
        people = np.repeat(classes.people, np.diff(demands.starts))
        return int(demands.counts[stated(demands, self.default)[demands.values] > people].sum())

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``.

        Required is the highest demand of anybody. Achieved is the number of people in the smallest
        class that holds such a demand or, where demands are not met, in the smallest such class.
        """
        live = filled(classes)
        demands, people = self._demands(classes)[live], classes.people[live]
        passing = self.passes(classes)
        highest = float(demands.max(initial=0.0))
        short = people < demands
        decisive = people[short] if short.any() else people[demands == highest]
        met = int(np.count_nonzero(~short))
        return judge(
            self,
            classes,
            passing,
            required=int(np.ceil(highest)) if np.isfinite(highest) else highest,
            achieved=int(decisive.min()) if len(decisive) else 0,
            note=f"{met} of {len(people)} classes hold as many people as anybody in them demands.",
        )

    def unmet(
        self, classes: Classes, ids: NDArray[Any], asked: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell per row whether its class holds fewer people than its person asks for."""
        return np.asarray(classes.people[ids] < asked)

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {"model": self.name, "default": self.default}

    def _unstated(self, classes: Classes) -> bool:
        """Whether nobody can state a demand, so that the default is everybody's."""
        return self.default is not None and _KEY not in classes.histograms

    def _demands(self, classes: Classes) -> NDArray[np.float64]:
        return highest(classes, _KEY, self.default)
