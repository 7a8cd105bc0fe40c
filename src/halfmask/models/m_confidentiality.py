"""m-confidentiality: what readers learn who know how the classes were chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.models.statistics import histogram, occupied_classes, pass_empty, reduce
from halfmask.models.verdict import (
    SOUGHT,
    KernelDemand,
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
    from halfmask.table.table import Table


@register
@dataclass(frozen=True, slots=True)
class MConfidentiality(Model):
    """Require that nobody is linked to a value with more than 1 in ``m``, the method being known.

    ``anonymize`` keeps it by one method, ``"confidential"``: where rows are cut is decided by
    quasi-identifiers alone, and whether a cut is made partly by chance.

    Definition: of all tables with the same quasi-identifiers and sensitive values, each weighed by
    how likely the method publishes this release of it, a share of at most 1/m gives any person any
    one value. For that, no value may be held by more than one of m rows of a class; this is what
    classes alone can show.
    Source: Wong, Fu, Wang and Pei, "Minimality attack in privacy preserving data publishing", 2007.

    Attributes:
        m: one in how many.
        column: the sensitive column.

    Example:
        >>> MConfidentiality(3, "disease").to_dict()
        {'model': 'm-confidentiality', 'm': 3, 'column': 'disease'}
    """

    family: ClassVar[str] = "m-confidentiality"
    monotone: ClassVar[bool] = True  # the most frequent value of a merged class is no more frequent
    blind: ClassVar[bool] = True
    option: ClassVar[Option] = Option(
        "m-confidentiality",
        "m-confidentiality: at most 1 in M for any value of anybody, also for readers who know the "
        "method.",
        "m: one in how many, the method being known",
    )
    words: ClassVar[Words] = Words(
        "Whoever runs the method on every table that may be behind the release links nobody to any "
        "value with a chance above 1 in m.",
        f"{SOUGHT} The attacker knows the method and its promises too, and takes all tables that "
        "fit for equally likely.",
        "Values may be alike in meaning. Who knows that some values are likelier for some people "
        "learns more.",
        "at least",
    )

    m: int = field(metadata=whole_number(2, stronger=1))
    column: str = field(metadata=sensitive_column())

    def faults(self, table: Table) -> list[str]:
        """Missing values, among which nobody hides, and people with several rows."""
        found = []
        if table.encode(self.column).values.null_count:
            found.append(
                f"column '{self.column}' has missing values, among which nobody can hide: fill "
                "them in, or leave these people out."
            )
        if table.schema.person is not None:
            people = table.encode(table.schema.person)
            rows = np.bincount(people.codes, minlength=len(people.values))
            several = int((rows > 1).sum())
            if several:
                found.append(
                    f"{several:,} people have several rows, of which one value each could be told: "
                    "keep one row of each person."
                )
        return found

    def kernel_demand(self, table: Table) -> KernelDemand:  # noqa: ARG002 - the same for every table
        """As many rows, each with a value of its own."""
        return KernelDemand(rows=self.m)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether no value is above one in ``m`` rows."""
        return pass_empty(classes, _most(classes, self.column) * self.m <= classes.rows)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict of the classes alone; more than ``m`` is never said to be achieved."""
        live = occupied_classes(classes)
        reached = classes.rows[live] // np.maximum(_most(classes, self.column)[live], 1)
        reached = np.minimum(reached, self.m)
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.m,
            achieved=int(reached.min()) if live.any() else 0,
        )


def _most(classes: Classes, column: str) -> NDArray[np.int64]:
    """Per class, how many rows hold its most frequent value."""
    values = histogram(classes, column)
    return reduce(np.maximum, values.counts, values.starts)
