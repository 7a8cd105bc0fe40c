"""k-anonymity, alone and with a limit on how far one sensitive value prevails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.errors import InternalError
from halfmask.models.exact_comparison import at_most, fraction, largest
from halfmask.models.statistics import (
    MISSING_NOTE,
    MissingValues,
    histogram,
    occupied_classes,
    pass_empty,
    reduce,
    value_histogram,
)
from halfmask.models.verdict import (
    KNOWN,
    KNOWN_ONLY,
    ONE_VALUE,
    SOUGHT,
    KernelDemand,
    Model,
    Option,
    Verdict,
    Words,
    judge,
    missing_values,
    number,
    register_model,
    sensitive_column,
    whole_number,
)
from halfmask.table.demands import HOUSEHOLD

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@register_model
@dataclass(frozen=True, slots=True)
class KAnonymity(Model):
    """Require every class to hold at least ``k`` people.

    Definition: min |E| >= k over all classes E, where |E| counts people.
    Source: Sweeney, "k-anonymity: a model for protecting privacy", 2002.

    Example:
        >>> KAnonymity(5).to_dict()
        {'model': 'k-anonymity', 'k': 5}
    """

    family: ClassVar[str] = "k-anonymity"
    monotone: ClassVar[bool] = True  # a merged class holds the people of each part
    absorbing: ClassVar[bool] = True  # rows only add people
    option: ClassVar[Option] = Option(
        "k",
        "k-anonymity: each class holds at least K people.",
        "k: each person hides among at least",
        "people who look alike; empty: no common k. What people demand in the schema is kept "
        "besides",
        common=True,
    )
    words: ClassVar[Words] = Words(
        "Everybody shares all published quasi-identifiers with at least k - 1 others.",
        KNOWN_ONLY,
        ONE_VALUE,
        "at least",
    )

    k: int = field(metadata=whole_number(2, stronger=1))

    def kernel_demand(self, table: Table) -> KernelDemand:  # noqa: ARG002 - the same for every table
        """As many rows."""
        return KernelDemand(rows=self.k)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it holds ``k`` people."""
        return pass_empty(classes, classes.people >= self.k)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the size of the smallest class."""
        sizes = classes.people[occupied_classes(classes)]
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.k,
            achieved=int(sizes.min()) if len(sizes) else 0,
        )


@register_model
@dataclass(frozen=True, slots=True)
class HouseholdKAnonymity(Model):
    """Require every class to hold people of at least ``k`` households.

    Definition: min |{h(i) : i in E}| >= k over all classes E, where h(i) is the household of a row
    that the schema names; rows without one count for nothing.
    Source: Sweeney, "k-anonymity: a model for protecting privacy", 2002, with the household as the
    unit, as in Hundepool et al., "Statistical disclosure control", 2012 (household risk).

    Example:
        >>> HouseholdKAnonymity(3).to_dict()
        {'model': 'household k-anonymity', 'k': 3}
    """

    family: ClassVar[str] = "household k-anonymity"
    monotone: ClassVar[bool] = True  # a merged class holds the households of each part
    absorbing: ClassVar[bool] = True  # rows only add households
    units: ClassVar[tuple[str, ...]] = (HOUSEHOLD,)
    option: ClassVar[Option] = Option(
        "k-households",
        "Each class holds people of at least K households.",
        "households that each class holds at least",
    )
    words: ClassVar[Words] = Words(
        "Everybody shares all published quasi-identifiers with people of at least k - 1 other "
        "households.",
        f"{KNOWN}; people of one household know of each other.",
        ONE_VALUE,
        "at least",
    )

    k: int = field(metadata=whole_number(2, stronger=1))

    def faults(self, table: Table) -> list[str]:
        """Say where no column names households."""
        if table.schema.household is not None:
            return []
        return ['nothing says who lives with whom: add household = "<column>" under [table].']

    def kernel_demand(self, table: Table) -> KernelDemand:  # noqa: ARG002 - the same for every table
        """As many different households."""
        return KernelDemand(rows=self.k, column=HOUSEHOLD, values=self.k)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it holds ``k`` households."""
        return pass_empty(classes, self._households(classes) >= self.k)

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Per class, the rows that any finer grouping must lose: no part holds more."""
        return np.where(self._households(classes) < self.k, classes.rows, 0)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the fewest households of a class."""
        held = self._households(classes)[occupied_classes(classes)]
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.k,
            achieved=int(held.min()) if len(held) else 0,
        )

    def _households(self, classes: Classes) -> NDArray[np.int64]:
        return np.diff(histogram(classes, HOUSEHOLD).drop_missing().starts)


@register_model
@dataclass(frozen=True, slots=True)
class AlphaKAnonymity(Model):
    """Require ``k`` people in every class, and no value of ``column`` above the share ``alpha``.

    Definition: |E| >= k, and the share of each value (or of one named value) among the known ones
    of E <= alpha, for every class E; a class of which no value is known has the share 1.
    Source: Wong, Li, Fu and Wang, "(alpha, k)-anonymity: an enhanced k-anonymity model for privacy
    preserving data publishing", 2006.

    Attributes:
        alpha: the highest share, above 0 and up to 1.
        k: how many people.
        column: the sensitive column.
        value: the one value to guard; ``None``: every value.
        missing: ``"unknown"``: missing values protect nobody and are not counted; ``"value"``: they
            count as one more value.

    Example:
        >>> AlphaKAnonymity(0.5, 5, "disease").columns
        ('disease',)
    """

    family: ClassVar[str] = "(alpha, k)-anonymity"
    monotone: ClassVar[bool] = True  # the share in a merged class lies between those of its parts
    option: ClassVar[Option] = Option(
        "alpha",
        "(alpha,k)-anonymity: no value above this share of a class; needs --k.",
        "alpha: share of one value at most (needs k)",
    )
    words: ClassVar[Words] = Words(
        "Everybody shares all published quasi-identifiers with at least k - 1 others, and no "
        "sensitive value makes up more than the share alpha of a class.",
        SOUGHT,
        "Values that are near each other count as different; rare values may still stand out.",
        "at most",
    )

    alpha: float = field(metadata=number(0, 1, open_low=True, stronger=-1))
    k: int = field(metadata=whole_number(2, stronger=1, option="k"))
    column: str = field(metadata=sensitive_column())
    value: object = field(default=None, repr=False)
    missing: MissingValues = field(default="unknown", metadata=missing_values())

    def kernel_demand(self, table: Table) -> KernelDemand:  # noqa: ARG002 - the same for every table
        """As many rows."""
        return KernelDemand(rows=self.k)

    def faults(self, table: Table) -> list[str]:
        """Say where the named value is not in the column."""
        if self.value is None or codes_of_value(table.encode(self.column).values, self.value):
            return []
        return [f"the value named is not in column '{self.column}'."]

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it holds ``k`` people and no value prevails."""
        rare = at_most(*self._shares(classes), fraction(self.alpha))
        return pass_empty(classes, rare & (classes.people >= self.k))

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Per class, how many rows any finer grouping must lose at least.

        Parts of a class of fewer than k people are no larger. In any other, x of its n rows must
        go until c - x <= alpha (n - x), with c the count of the value that prevails.
        """
        alpha = float(self.alpha)
        lost = np.zeros(len(classes), dtype=np.int64)
        if alpha < 1:
            counts, rows = self._shares(classes)
            surplus = np.ceil((counts - alpha * rows) / (1 - alpha) - 1e-6)
            lost = np.maximum(surplus, 0).astype(np.int64)
        return np.where(classes.people < self.k, classes.rows, lost)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the highest share."""
        live = occupied_classes(classes)
        counts, rows = self._shares(classes)
        note = "" if self.missing == "unknown" else f" {MISSING_NOTE}"
        size = int(classes.people[live].min()) if live.any() else 0
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.alpha,
            achieved=largest(counts[live], rows[live]),
            note=f"k = {self.k} required, {size} achieved.{note}",
        )

    def _shares(self, classes: Classes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per class, the count of the named value, or of the most frequent one, and of all."""
        values = value_histogram(classes, self.column, self.missing)
        silent = np.diff(values.starts) == 0
        rows = np.where(silent, 1, reduce(np.add, values.counts, values.starts))
        counts = values.counts
        if self.value is not None:
            if values.labels is None:
                raise InternalError("The class statistics lack the values.")
            counts = np.where(
                np.isin(values.values, codes_of_value(values.labels, self.value)), counts, 0
            )
        return np.where(silent, 1, reduce(np.maximum, counts, values.starts)), rows


def codes_of_value(values: pa.Array, value: object) -> list[int]:
    """The code of ``value`` among ``values``, also where it was given as text; empty if absent."""
    known = [(i, label) for i, label in enumerate(values.to_pylist()) if label is not None]
    exact = [i for i, label in known if label == value]
    return exact or [i for i, label in known if str(label) == str(value)]
