"""Personal l-diversity: every person's class holds as many sensitive values as they demand.

Definition: |{s(j) : j in E}| >= max(l_i for i in E) for every class E, s being the sensitive
column.
Source: Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2007 (distinct
l-diversity); a demand per person as a perspective in Michel, "Personalizing privacy constraints in
generalization-based anonymization models", 2019.
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


@dataclass(frozen=True, slots=True)
class PersonalLDiversity:
    """Require every class to hold as many values of ``column`` as each person in it demands.

    Attributes:
        column: the sensitive column.
        default: the demand of people who state none; without it such people are an error.

    Example:
        >>> PersonalLDiversity("disease").policy
        ('l',)
    """

    name: ClassVar[str] = "personal l-diversity"
    monotone: ClassVar[bool] = True  # the highest demand is that of one part, whose values stay
    absorbing: ClassVar[bool] = False  # an added person may demand more
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    policy: ClassVar[tuple[str, ...]] = ("l",)
    population: ClassVar[None] = None

    column: str
    default: int | None = None

    def __post_init__(self) -> None:
        if self.default is not None:
            require_whole("default", self.default, 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive column."""
        return (self.column,)

    def faults(self, table: Table) -> list[str]:
        """What hinders reading people's demands from ``table``."""
        return demand_faults(table, "l", self.default, self.column)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it meets the highest demand inside it."""
        return kept(classes, self._values(classes) >= self._demands(classes))

    def unavoidable(self, classes: Classes, limit: int) -> int:  # noqa: ARG002 - one signature
        """A lower bound of the rows that any finer grouping must lose: those who demand more."""
        if self._key not in classes.histograms:
            return int(classes.rows[self._values(classes) < self._demands(classes)].sum())
        demands = histogram(classes, self._key)
        held = np.repeat(self._values(classes), np.diff(demands.starts))
        asked = stated(demands, self.default)[demands.values]
        return int(demands.counts[asked > held].sum())

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``.

        Required is the highest demand of anybody. Achieved is the number of values in the poorest
        class that holds such a demand or, where demands are not met, in the poorest such class.
        """
        live = filled(classes)
        demands, values = self._demands(classes)[live], self._values(classes)[live]
        top = float(demands.max(initial=0.0))
        short = values < demands
        decisive = values[short] if short.any() else values[demands == top]
        met = int(np.count_nonzero(~short))
        return judge(
            self,
            classes,
            self.passes(classes),
            required=int(np.ceil(top)) if np.isfinite(top) else top,
            achieved=int(decisive.min()) if len(decisive) else 0,
            note=f"{met} of {len(values)} classes hold as many values as anybody in them demands.",
        )

    def unmet(
        self, classes: Classes, ids: NDArray[Any], asked: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell per row whether its class holds fewer values than its person asks for."""
        return np.asarray(self._values(classes)[ids] < asked)

    @property
    def _key(self) -> str:
        return demand_key("l", self.column)

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {"model": self.name, "column": self.column, "default": self.default}

    def _values(self, classes: Classes) -> NDArray[np.int64]:
        return np.diff(histogram(classes, self.column).starts)

    def _demands(self, classes: Classes) -> NDArray[np.float64]:
        return highest(classes, self._key, self.default)
