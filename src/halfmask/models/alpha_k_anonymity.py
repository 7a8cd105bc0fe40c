"""(alpha, k)-anonymity: k-anonymity in which no sensitive value prevails in a class.

Definition: |E| >= k, and the share of each value (or of one named value) in E <= alpha, for every
class E.
Source: Wong, Li, Fu and Wang, "(alpha, k)-anonymity: an enhanced k-anonymity model for privacy
preserving data publishing", 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from halfmask.errors import InternalError
from halfmask.models.exact import (
    at_most,
    fraction,
    largest,
    plain,
    require_name,
    require_number,
    require_whole,
)
from halfmask.models.statistics import filled, histogram, kept, reduce
from halfmask.models.verdict import Verdict, judge

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class AlphaKAnonymity:
    """Require ``k`` people in every class, and no value of ``column`` above the share ``alpha``.

    Attributes:
        alpha: the highest share, above 0 and up to 1.
        k: how many people.
        column: the sensitive column.
        value: the one value to guard; ``None``: every value.

    Example:
        >>> AlphaKAnonymity(0.5, 5, "disease").columns
        ('disease',)
    """

    name: ClassVar[str] = "(alpha, k)-anonymity"
    monotone: ClassVar[bool] = True  # the share in a merged class lies between those of its parts
    absorbing: ClassVar[bool] = False  # added rows may all hold one value
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    policy: ClassVar[tuple[str, ...]] = ()
    population: ClassVar[None] = None

    alpha: float
    k: int
    column: str
    value: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_name("column", self.column)
        require_number("alpha", self.alpha, 0, 1, open_low=True)
        require_whole("k", self.k, 2)

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive column."""
        return (self.column,)

    def faults(self, table: Table) -> list[str]:
        """Say where the named value is not in the column."""
        if self.value is None or positions(table.encode(self.column).values, self.value):
            return []
        return [f"the value named is not in column '{self.column}'."]

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it holds ``k`` people and no value prevails."""
        rare = at_most(self._counts(classes), classes.rows, fraction(self.alpha))
        return kept(classes, rare & (classes.people >= self.k))

    def unavoidable(self, classes: Classes, limit: int) -> int:  # noqa: ARG002 - one signature
        """A lower bound of the rows that any finer grouping must lose.

        Parts of a class of fewer than k people are no larger. In any other, x of its n rows must
        go until c - x <= alpha (n - x), with c the count of the value that prevails.
        """
        alpha = float(self.alpha)
        small = classes.people < self.k
        lost = classes.rows[small].sum()
        if alpha < 1:
            surplus = (self._counts(classes) - alpha * classes.rows)[~small] / (1 - alpha)
            lost += np.ceil(surplus[surplus > 0] - 1e-6).sum()
        return int(lost)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the highest share."""
        live = filled(classes)
        size = int(classes.people[live].min()) if live.any() else 0
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.alpha,
            achieved=largest(self._counts(classes)[live], classes.rows[live]),
            note=f"k = {self.k} required, {size} achieved.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {
            "model": self.name,
            "alpha": plain(self.alpha),
            "k": plain(self.k),
            "column": self.column,
            "value": self.value,
        }

    def _counts(self, classes: Classes) -> NDArray[np.int64]:
        """Per class, the count of the named value, or of the most frequent one."""
        values = histogram(classes, self.column)
        counts = values.counts
        if self.value is not None:
            if values.labels is None:
                raise InternalError("The class statistics lack the values.")
            counts = np.where(
                np.isin(values.values, positions(values.labels, self.value)), counts, 0
            )
        return reduce(np.maximum, counts, values.starts)


def positions(values: pa.Array, value: object) -> list[int]:
    """The code of ``value`` among ``values``, also where it was given as text; empty if absent."""
    known = [(i, label) for i, label in enumerate(values.to_pylist()) if label is not None]
    exact = [i for i, label in known if label == value]
    return exact or [i for i, label in known if str(label) == str(value)]
