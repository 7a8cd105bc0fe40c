"""k-anonymity: every person hides among at least k - 1 others.

Definition: min |E| >= k over all classes E, where |E| counts people.
Source: Sweeney, "k-anonymity: a model for protecting privacy", 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.models.exact import plain, require_whole
from halfmask.models.statistics import filled, kept
from halfmask.models.verdict import Verdict, judge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes


@dataclass(frozen=True, slots=True)
class KAnonymity:
    """Require every class to hold at least ``k`` people.

    Example:
        >>> KAnonymity(5).to_dict()
        {'model': 'k-anonymity', 'k': 5}
    """

    name: ClassVar[str] = "k-anonymity"
    monotone: ClassVar[bool] = True  # a merged class holds the people of each part
    absorbing: ClassVar[bool] = True  # rows only add people
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ()
    policy: ClassVar[tuple[str, ...]] = ()
    population: ClassVar[None] = None

    k: int

    def __post_init__(self) -> None:
        require_whole("k", self.k, 2)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it holds ``k`` people."""
        return kept(classes, classes.people >= self.k)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the size of the smallest class."""
        sizes = classes.people[filled(classes)]
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
