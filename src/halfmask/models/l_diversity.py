"""l-diversity, well-represented values in every class; and m-invariance, the same ones for good."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from halfmask.errors import ParameterError
from halfmask.models.exact_comparison import fraction, is_below
from halfmask.models.statistics import (
    MISSING_NOTE,
    MissingValues,
    effective_values,
    entropy_at_least,
    histogram,
    occupied_classes,
    pass_empty,
    reduce,
    value_histogram,
)
from halfmask.models.verdict import (
    ALIKE,
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
    require_whole,
    sensitive_column,
    whole_number,
    word,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes, Histogram
    from halfmask.table.table import Table


@register_model
@dataclass(frozen=True, slots=True)
class LDiversity(Model):
    """Require every class to hold at least ``l`` well-represented values of ``column``.

    Definition: per class, of the values that are known, distinct: at least l different ones;
    entropy: H >= ln l; recursive (c, l): r_1 < c (r_l + ... + r_m), where r_i is the i-th highest
    count.
    Source: Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity: privacy beyond
    k-anonymity", 2007.

    Attributes:
        l: how many values; a whole number, for the entropy kind any number above 1.
        column: the sensitive column.
        kind: what "well-represented" means.
        c: the factor of the recursive kind.
        missing: ``"unknown"``: missing values protect nobody and are not counted; ``"value"``: they
            count as one more value.

    Example:
        >>> LDiversity(3, "disease").name
        'distinct l-diversity'
    """

    family: ClassVar[str] = "l-diversity"
    monotone: ClassVar[bool] = True  # see docs/definitions/l_diversity.md for the three proofs
    option: ClassVar[Option] = Option(
        "l",
        "l-diversity; KIND: distinct, entropy or recursive (then C).",
        "l: different values",
        common=True,
    )
    words: ClassVar[Words] = Words(
        "Every class holds at least l well-represented values of the sensitive column; missing "
        "values are not counted, unless a note says so.",
        SOUGHT,
        ALIKE,
        "at least",
    )

    l: float = field(  # noqa: E741 - the letter of the definition
        metadata=number(1, open_low=True, counts=True, stronger=1)
    )
    column: str = field(metadata=sensitive_column())
    kind: Literal["distinct", "entropy", "recursive"] = field(
        default="distinct",
        metadata=word(
            "How l counts", distinct="different values", entropy="entropy", recursive="recursive"
        ),
    )
    c: float | None = field(
        default=None, metadata=number(0, open_low=True, label="c, if l is recursive")
    )
    missing: MissingValues = field(default="unknown", metadata=missing_values())

    def __post_init__(self) -> None:
        if self.kind != "entropy":
            require_whole("l", self.l, 2)
        Model.__post_init__(self)
        if (self.kind == "recursive") != (self.c is not None):
            raise ParameterError("c", self.c, "a factor for kind='recursive', and only there")

    @property
    def name(self) -> str:
        """The kind and the model."""
        return f"{self.kind} {self.family}"

    @property
    def absorbing(self) -> bool:
        """Only distinct values can never get fewer; rows may make one value prevail."""
        return self.kind == "distinct"

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it is diverse."""
        values = value_histogram(classes, self.column, self.missing)
        if self.kind == "distinct":
            passing = np.diff(values.starts) >= self.l
        elif self.kind == "entropy":
            passing = entropy_at_least(values, fraction(self.l))
        else:
            passing = self._recursive(values, int(self.l))
        return pass_empty(classes, passing)

    def kernel_demand(self, table: Table) -> KernelDemand:  # noqa: ARG002 - the same for every table
        """As many different values, which every kind needs."""
        return KernelDemand(
            column=self.column, values=math.ceil(self.l), missing=self.missing == "value"
        )

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Per class, the rows that any finer grouping must lose.

        Every kind needs at least l different values, which parts of a class cannot have if the
        class has not.
        """
        held = value_histogram(classes, self.column, self.missing)
        return np.where(np.diff(held.starts) < math.ceil(self.l), classes.rows, 0)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the highest l that they satisfy."""
        notes = [] if self.c is None else [f"With c = {self.c}."]
        notes += [MISSING_NOTE] if self.missing == "value" else []
        held = value_histogram(classes, self.column, self.missing)
        achieved = self._achieved(held.select(occupied_classes(classes)))
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.l,
            achieved=achieved,
            note=" ".join(notes),
        )

    def _recursive(self, values: Histogram, least: int) -> NDArray[np.bool_]:
        top, tail = _top_and_tail(values, least)
        return is_below(top, tail, fraction(self.c or 0))

    def _achieved(self, values: Histogram) -> float:
        lengths = np.diff(values.starts)
        if len(lengths) == 0:
            return 0
        if self.kind == "distinct":
            return int(lengths.min())
        if self.kind == "entropy":
            return effective_values(values)
        # More values demanded leave a smaller tail: what fails at some l fails at every higher one.
        low, high = 0, int(lengths.min())
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if self._recursive(values, middle).all() else (low, middle - 1)
            )
        return low


def _top_and_tail(values: Histogram, least: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per class the highest count, and the sum of all but the ``least - 1`` highest."""
    owners = values.owners
    order = np.lexsort((-values.counts, owners))
    counts = values.counts[order]
    place = np.arange(len(counts)) - values.starts[:-1][owners]
    tail = reduce(np.add, np.where(place >= least - 1, counts, 0), values.starts)
    return reduce(np.maximum, counts, values.starts), tail


@register_model
@dataclass(frozen=True, slots=True)
class MInvariance(Model):
    """Require that every class can be divided into sets of ``m`` rows with different values.

    Over a series of releases (``previous=`` of ``anonymize``) the set of values of a person's
    class, the signature, also stays the same in every release that holds the person.

    Definition: per release, each class holds at least m rows and no value twice; the signatures of
    all classes that ever held a person are equal. Classes that publish the same labels are one to a
    reader, so of one release alone it is checked that each holds m values or more, none of them in
    more than one of m rows.
    Source: Xiao and Tao, "m-invariance: towards privacy preserving re-publication of dynamic
    datasets", 2007.

    Attributes:
        m: how many values.
        column: the sensitive column.

    Example:
        >>> MInvariance(3, "disease").to_dict()
        {'model': 'm-invariance', 'm': 3, 'column': 'disease'}
    """

    family: ClassVar[str] = "m-invariance"
    monotone: ClassVar[bool] = True  # the most frequent value of a merged class is no more frequent
    option: ClassVar[Option] = Option(
        "m-invariance",
        "m-invariance: M values in every class, the same for a person in every release; see "
        "--previous.",
        "m: values that stay the same over a series",
    )
    words: ClassVar[Words] = Words(
        "Everybody stands in a class with m or more values, none above one in m rows; in a series "
        "a person's values stay the same in every release.",
        f"{SOUGHT} In a series the attacker has all releases, and knows who was in them.",
        "Values may be alike in meaning. Without the ledger of a series it speaks of one release.",
        "at least",
    )

    m: int = field(metadata=whole_number(2, stronger=1))
    column: str = field(metadata=sensitive_column())

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether no value is above one in ``m`` rows."""
        most = reduce(np.maximum, *_counts(classes, self.column))
        return pass_empty(classes, most * self.m <= classes.rows)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict; achieved is the largest m that every class satisfies."""
        live = occupied_classes(classes)
        most = reduce(np.maximum, *_counts(classes, self.column))[live]
        reached = classes.rows[live] // np.maximum(most, 1)
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.m,
            achieved=int(reached.min()) if live.any() else 0,
            note="It is of one release alone: previous= (--previous) keeps it over a series.",
        )


def _counts(classes: Classes, column: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    values = histogram(classes, column)
    return values.counts, values.starts
