"""t-closeness: in every class a sensitive column is distributed much as in the whole table.

Definition: EMD(P_E, Q) <= t for every class E, with P_E the distribution in E and Q that of all
rows; the distance between values is 1 (equal), their places apart (ordered), or the height of
their lowest common label (hierarchical), each divided by its maximum.
Source: Li, Li and Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity",
2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from halfmask.errors import ParameterError
from halfmask.models import distance
from halfmask.models.exact import at_most, fraction, largest, plain, require_name, require_number
from halfmask.models.statistics import filled, histogram, kept
from halfmask.models.verdict import Verdict, judge
from halfmask.table.population import is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table

DISTANCES = {
    "equal": distance.equal,
    "ordered": distance.ordered,
    "hierarchical": distance.hierarchical,
}
SORTED = ("ordinal", "date", "numeric")


@dataclass(frozen=True, slots=True)
class TCloseness:
    """Require the distribution of ``column`` in every class to lie within ``t`` of the table's.

    Attributes:
        t: the largest distance, 0 to 1.
        column: the sensitive column.
        distance: how far two values are apart.

    Example:
        >>> TCloseness(0.2, "disease").name
        't-closeness (equal distance)'
    """

    monotone: ClassVar[bool] = True  # the distance to a fixed Q is convex
    absorbing: ClassVar[bool] = False  # added rows may be of one value only
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    policy: ClassVar[tuple[str, ...]] = ()
    population: ClassVar[None] = None

    t: float
    column: str
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"

    def __post_init__(self) -> None:
        require_name("column", self.column)
        require_number("t", self.t, 0, 1)
        if self.distance not in DISTANCES:
            raise ParameterError("distance", self.distance, "one of " + ", ".join(DISTANCES))

    @property
    def name(self) -> str:
        """The model and its distance."""
        return f"t-closeness ({self.distance} distance)"

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive column."""
        return (self.column,)

    def faults(self, table: Table) -> list[str]:
        """Say where the column lacks what the distance needs."""
        column = table.schema.columns.get(self.column)
        if self.distance == "hierarchical" and (column is None or column.hierarchy is None):
            return [f"column '{self.column}' has no hierarchy: declare one in the schema."]
        stated = column is not None and (column.order is not None or column.kind in SORTED)
        if (
            self.distance == "ordered"
            and not stated
            and is_text(table.encode(self.column).values.type)
        ):
            return [f"column '{self.column}' holds text: declare its order in the schema."]
        return []

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether its distribution is close enough."""
        moved, full = DISTANCES[self.distance](histogram(classes, self.column), self.column)
        return kept(classes, at_most(moved, full, fraction(self.t)))

    def unavoidable(self, classes: Classes, limit: int) -> int:
        """A lower bound of the rows that any finer grouping must lose, if it may lose ``limit``.

        Losing a share s of all rows moves the table's distribution by at most s, and the rows that
        a class keeps lie within t of it, so a class at distance d loses at least the share
        (d - t - s) / (1 - t - s) of its rows.
        """
        values = histogram(classes, self.column)
        total = values.totals()
        if self.distance == "ordered" and total[total > 0].min(initial=limit + 1) <= limit:
            return 0  # a value could vanish, which would change the scale
        moved, full = DISTANCES[self.distance](values, self.column)
        slack = float(self.t) + limit / max(int(total.sum()), 1) + 1e-9
        if slack >= 1:
            return 0
        live = filled(classes)
        away = moved[live].astype(np.float64) / full[live].astype(np.float64)
        lost = classes.rows[live] * (away - slack) / (1 - slack)
        return int(np.ceil(lost[lost > 0] - 1e-6).sum())

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the largest distance."""
        live = filled(classes)
        moved, full = DISTANCES[self.distance](histogram(classes, self.column), self.column)
        return judge(
            self,
            classes,
            kept(classes, at_most(moved, full, fraction(self.t))),
            required=self.t,
            achieved=largest(moved[live], full[live]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {
            "model": "t-closeness",
            "t": plain(self.t),
            "column": self.column,
            "distance": self.distance,
        }
