"""m-invariance: everybody keeps the same values to hide among, release after release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.models.statistics import histogram, occupied_classes, pass_empty, reduce
from halfmask.models.verdict import (
    SOUGHT,
    Model,
    Option,
    Verdict,
    Words,
    judge,
    register,
    sensitive_column,
    whole_number,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes


@register
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
