"""k-map: every class of the table matches at least k people of the population.

Definition: |E in the population| >= k for every class E that holds somebody of the table.
Source: Sweeney, "Computational disclosure control: a primer on data privacy protection", 2001.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.errors import InternalError, ParameterError
from halfmask.models.exact import plain, require_whole
from halfmask.models.statistics import filled, kept
from halfmask.models.verdict import Verdict, judge
from halfmask.table.table import require_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class KMap:
    """Require every class to match at least ``k`` people of ``population``.

    Attributes:
        k: how many people.
        population: the table of all people whom an attacker may think of; it holds those of the
            table too.
    """

    name: ClassVar[str] = "k-map"
    monotone: ClassVar[bool] = True  # a merged class matches the people of each part
    absorbing: ClassVar[bool] = True  # rows of the table do not change who is in the population
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ()
    policy: ClassVar[tuple[str, ...]] = ()

    k: int
    population: Table = field(repr=False)

    def __post_init__(self) -> None:
        require_whole("k", self.k, 2)
        if self.population is None:
            raise ParameterError("population", None, "a table")
        require_table(self.population)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it matches ``k`` people."""
        return kept(classes, _counts(classes) >= self.k)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the fewest people that a class matches."""
        sizes = _counts(classes)[filled(classes)]
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.k,
            achieved=int(sizes.min()) if len(sizes) else 0,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {"model": self.name, "k": plain(self.k)}


def _counts(classes: Classes) -> NDArray[np.int64]:
    if classes.population is None:
        raise InternalError("The class statistics lack the population.")
    return classes.population
