"""Promises that keep what each person demands: as many people, as many values, as near."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from halfmask.models.exact_comparison import at_most, fraction, largest
from halfmask.models.statistics import (
    demand_faults,
    demand_levels,
    highest_demands,
    histogram,
    lowest_demands,
    occupied_classes,
    own_demands,
    pass_empty,
    rows_short,
)
from halfmask.models.t_closeness import DISTANCE_WORDS, TCloseness, distances, usual_distance
from halfmask.models.verdict import (
    ALIKE,
    KNOWN_ONLY,
    ONE_VALUE,
    SOUGHT,
    SOUGHT_AGAINST_ALL,
    WHOLE_RELEASE,
    KernelDemand,
    Model,
    Option,
    Verdict,
    Words,
    judge,
    number,
    register_model,
    sensitive_column,
    whole_number,
    word,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@register_model
@dataclass(frozen=True, slots=True)
class PersonalKAnonymity(Model):
    """Require every class to hold as many people as each person in it demands.

    Definition: |E| >= max(k_i for i in E) for every class E, where |E| counts people.
    Source: Xiao and Tao, "Personalized privacy preservation", 2006 (the idea of a demand per
    person); the count as in Sweeney, 2002.

    Attributes:
        default: the demand of people who state none, or of everybody where the schema names no
            policy column; without it people who state none demand nothing.

    Example:
        >>> PersonalKAnonymity().policy
        ('k',)
    """

    family: ClassVar[str] = "personal k-anonymity"
    monotone: ClassVar[bool] = True  # the highest demand is that of one part, whose people stay
    policy: ClassVar[tuple[str, ...]] = ("k",)
    option: ClassVar[Option] = Option(
        "personal-k",
        "Each person's own k, from the policy column.",
        "each person's own k, from the policy column",
        common=True,
    )
    words: ClassVar[Words] = Words(
        "Everybody shares all published quasi-identifiers with as many people as they asked for.",
        KNOWN_ONLY,
        ONE_VALUE,
        "at least",
    )

    default: int | None = field(default=None, metadata=whole_number(1, text=False))

    @classmethod
    def own(cls, table: Table) -> list[Model]:  # noqa: ARG003 - whatever its columns
        """One, by which those who state nothing have nothing to keep."""
        return [cls(default=1)]

    def faults(self, table: Table) -> list[str]:
        """What hinders reading people's demands from ``table``."""
        return demand_faults(table, "k")

    def kernel_demand(self, table: Table) -> KernelDemand:
        """As many rows as each person asks for."""
        return KernelDemand(rows=own_demands(table, "k", self.default).astype(np.int64))

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it meets the highest demand inside it."""
        demands = highest_demands(classes, "k", self.default)
        return pass_empty(classes, classes.people >= demands)

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Per class, the rows that any finer grouping must lose.

        No part of a class holds more people than the class: whoever demands more must go.
        """
        return rows_short(classes, "k", self.default, classes.people)

    def shortfall(self, classes: Classes) -> str:
        """Say by counts how far ``classes`` fall short; a demand is a person's own affair."""
        rows, short = int(classes.rows.sum()), int(self.unavoidable(classes, 0).sum())
        return (
            f"{short} of {rows} rows are of people who demand more than the "
            "closest recoding can give; ask them for less"
        )

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``.

        Required is the highest demand of anybody. Achieved is the number of people in the smallest
        class that holds such a demand or, where demands are not met, in the smallest such class.
        """
        return _judge_highest(self, classes, classes.people, "people")

    def unmet(
        self, classes: Classes, ids: NDArray[Any], asked: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell per row whether its class holds fewer people than its person asks for."""
        return np.asarray(classes.people[ids] < asked)


@register_model
@dataclass(frozen=True, slots=True)
class PersonalLDiversity(Model):
    """Require every class to hold as many values of ``column`` as each person in it demands.

    Definition: |{s(j) : j in E, s(j) known}| >= max(l_i for i in E) for every class E in which
    somebody demands more than 1, s being the sensitive column.
    Source: Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2007 (distinct
    l-diversity); a demand per person as a perspective in Michel, "Personalizing privacy constraints
    in generalization-based anonymization models", 2019.

    Attributes:
        column: the sensitive column.
        default: the demand of people who state none; without it they demand nothing.

    Example:
        >>> PersonalLDiversity("disease").policy
        ('l',)
    """

    family: ClassVar[str] = "personal l-diversity"
    monotone: ClassVar[bool] = True  # the highest demand is that of one part, whose values stay
    policy: ClassVar[tuple[str, ...]] = ("l",)
    option: ClassVar[Option] = Option(
        "personal-l",
        "Each person's own l for a sensitive column.",
        "each person's own l",
        common=True,
    )
    words: ClassVar[Words] = Words(
        "Every class holds as many values of the sensitive column as each person in it asked for.",
        SOUGHT,
        ALIKE,
        "at least",
    )

    column: str = field(metadata=sensitive_column())
    default: int | None = field(default=None, metadata=whole_number(1, text=False))

    @classmethod
    def own(cls, table: Table) -> list[Model]:
        """One for each sensitive column, by which 1 asks for nothing."""
        return [cls(name, default=1) for name in _sensitive(table)]

    def faults(self, table: Table) -> list[str]:
        """What hinders reading people's demands from ``table``."""
        return demand_faults(table, "l", self.column)

    def kernel_demand(self, table: Table) -> KernelDemand:
        """As many values as each person asks for."""
        own = own_demands(table, "l", self.default, self.column)
        return KernelDemand(column=self.column, values=own)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it meets the highest demand inside it."""
        demands = highest_demands(classes, "l", self.default, self.column)
        return pass_empty(classes, self._values(classes) >= demands)

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Per class, the rows that any finer grouping must lose: those who demand more."""
        return rows_short(classes, "l", self.default, self._values(classes), self.column)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``.

        Required is the highest demand of anybody. Achieved is the number of values in the poorest
        class that holds such a demand or, where demands are not met, in the poorest such class.
        """
        return _judge_highest(self, classes, self._values(classes), "values")

    def unmet(
        self, classes: Classes, ids: NDArray[Any], asked: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell per row whether its class holds fewer values than its person asks for."""
        return np.asarray(self._values(classes)[ids] < asked)

    def _values(self, classes: Classes) -> NDArray[np.int64]:
        held = np.diff(histogram(classes, self.column).drop_missing().starts)
        return np.maximum(held, 1)  # a demand of 1 asks for nothing


@register_model
@dataclass(frozen=True, slots=True)
class PersonalTCloseness(Model):
    """Require the distribution of ``column`` in a class within the ``t`` of everybody in it.

    Definition: EMD(P_E, Q) <= min(t_i for i in E) for every class E, with P_E the distribution of
    the sensitive column's known values in E and Q that of all rows; distances as in t-closeness.
    Source: Li, Li and Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and
    l-diversity", 2007; a demand per person as a perspective in Michel, "Personalizing privacy
    constraints in generalization-based anonymization models", 2019.

    Attributes:
        column: the sensitive column.
        distance: how far two values are apart.
        default: the demand of people who state none; without it they demand nothing.

    Example:
        >>> PersonalTCloseness("disease").policy
        ('t',)
    """

    family: ClassVar[str] = "personal t-closeness"
    monotone: ClassVar[bool] = False  # a part that is far off may join one that demands nearness
    relative: ClassVar[bool] = True
    policy: ClassVar[tuple[str, ...]] = ("t",)
    option: ClassVar[Option] = Option(
        "personal-t",
        "Each person's own t for a sensitive column.",
        "each person's own t",
        common=True,
    )
    words: ClassVar[Words] = Words(
        "In every class the sensitive column is distributed as near to the whole release as each "
        "person in it asked for.",
        SOUGHT_AGAINST_ALL,
        WHOLE_RELEASE,
        "at most",
    )

    column: str = field(metadata=sensitive_column())
    distance: Literal["equal", "ordered", "hierarchical"] = field(
        default="equal", metadata=word("How each person's own t measures", **DISTANCE_WORDS)
    )
    default: float | None = field(default=None, metadata=number(0, 1, text=False))

    @property
    def name(self) -> str:
        """The model and its distance."""
        return f"{self.family} ({self.distance} distance)"

    @classmethod
    def own(cls, table: Table) -> list[Model]:
        """One for each sensitive column, by which 1 asks for nothing.

        Where nobody says how t is measured, it is along numbers, dates and declared orders.
        """
        return [cls(name, usual_distance(table, name), default=1.0) for name in _sensitive(table)]

    def faults(self, table: Table) -> list[str]:
        """What hinders reading people's demands from ``table``."""
        found = demand_faults(table, "t", self.column)
        return found + TCloseness(0.5, self.column, self.distance).faults(table)

    def kernel_demand(self, table: Table) -> KernelDemand | None:
        """As near as each person asks for, in the equal distance; kernels know no other."""
        if self.distance != "equal":
            return None
        own = own_demands(table, "t", self.default, self.column)
        return KernelDemand(column=self.column, distance=own)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it is close enough for everybody in it."""
        moved, full = self._distance(classes)
        demands = lowest_demands(classes, "t", self.default, self.column)
        passing = np.zeros(len(demands), dtype=np.bool_)
        for t in np.unique(demands):
            at = demands == t
            passing[at] = at_most(moved[at], full[at], fraction(float(t)))
        return pass_empty(classes, passing)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``.

        Required is the strictest demand of anybody. Achieved is the largest distance of a class
        that holds such a demand or, where demands are not met, of a class that fails.
        """
        live, passing = occupied_classes(classes), self.passes(classes)
        moved, full = self._distance(classes)
        demands = lowest_demands(classes, "t", self.default, self.column)
        strictest = float(demands[live].min(initial=1.0))
        decisive = live & ~passing if (live & ~passing).any() else live & (demands == strictest)
        met = int(np.count_nonzero(live & passing))
        return judge(
            self,
            classes,
            passing,
            required=strictest,
            achieved=largest(moved[decisive], full[decisive]),
            note=f"{met} of {int(live.sum())} classes are as close as anybody in them demands.",
            demands=demand_levels(classes, "t", self.default, _quotients(moved, full), self.column),
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

    def _distance(self, classes: Classes) -> tuple[NDArray[Any], NDArray[Any]]:
        return distances(classes, self.column, self.distance, "unknown")


def _quotients(moved: NDArray[Any], full: NDArray[Any]) -> NDArray[np.float64]:
    """What is shown of distances that are decided exactly; 0 of an empty class."""
    over = np.maximum(np.asarray(full, dtype=np.float64), 1.0)
    return np.asarray(np.asarray(moved, dtype=np.float64) / over)


def _sensitive(table: Table) -> list[str]:
    """The sensitive columns that are there."""
    return [name for name in table.schema.sensitive if name in table.arrow.column_names]


def _judge_highest(
    model: PersonalKAnonymity | PersonalLDiversity,
    classes: Classes,
    given: NDArray[np.int64],
    what: str,
) -> Verdict:
    """The verdict on what is ``given`` per class against the highest demand inside it."""
    live = occupied_classes(classes)
    levels = demand_levels(classes, model.policy[0], model.default, given, *model.columns)
    demands = highest_demands(classes, model.policy[0], model.default, *model.columns)[live]
    given = given[live]
    highest = float(demands.max(initial=0.0))
    short = given < demands
    decisive = given[short] if short.any() else given[demands == highest]
    met = int(np.count_nonzero(~short))
    return judge(
        model,
        classes,
        model.passes(classes),
        required=int(np.ceil(highest)) if np.isfinite(highest) else highest,
        achieved=int(decisive.min()) if len(decisive) else 0,
        note=f"{met} of {len(given)} classes hold as many {what} as anybody in them demands.",
        demands=levels,
    )
