"""beta-likeness: no class makes a sensitive value likelier by more than a stated gain.

Definition: (q - p) / p <= beta for every value with q > p in every class, with q its share in the
class and p its share in all rows; enhanced: (q - p) / p <= min(beta, -ln p).
Source: Cao and Karras, "Publishing microdata with a robust privacy guarantee", 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from halfmask.errors import ParameterError
from halfmask.models.exact import (
    at_most,
    fraction,
    largest,
    log,
    plain,
    require_name,
    require_number,
)
from halfmask.models.statistics import every, histogram, kept, lifts, reduce
from halfmask.models.verdict import Verdict, judge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.histogram import Histogram

KINDS = ("basic", "enhanced")


@dataclass(frozen=True, slots=True)
class BetaLikeness:
    """Require the relative gain of every value of ``column`` in every class to be at most ``beta``.

    Attributes:
        beta: the largest gain (q - p) / p, above 0.
        column: the sensitive column.
        kind: ``"basic"``, or ``"enhanced"``, which also caps the gain of frequent values.

    Example:
        >>> BetaLikeness(1, "disease", kind="enhanced").name
        'enhanced beta-likeness'
    """

    monotone: ClassVar[bool] = True  # a share in a merged class lies between those of its parts
    absorbing: ClassVar[bool] = False  # added rows may all hold one value
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    policy: ClassVar[tuple[str, ...]] = ()
    population: ClassVar[None] = None

    beta: float
    column: str
    kind: Literal["basic", "enhanced"] = "basic"

    def __post_init__(self) -> None:
        require_name("column", self.column)
        require_number("beta", self.beta, 0, open_low=True)
        if self.kind not in KINDS:
            raise ParameterError("kind", self.kind, "one of " + ", ".join(KINDS))

    @property
    def name(self) -> str:
        """The kind and the model."""
        return f"{self.kind} beta-likeness"

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive column."""
        return (self.column,)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether no value gains too much."""
        values = histogram(classes, self.column)
        here, everywhere = lifts(values)
        passing = every(values, at_most(here, everywhere, 1 + fraction(self.beta)))
        if self.kind == "enhanced":
            passing &= _within_caps(values)
        return kept(classes, passing)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the largest gain.

        With the enhanced kind it is infinite where a gain exceeds -ln p: no beta allows that.
        """
        values = histogram(classes, self.column)
        capped = self.kind == "enhanced" and not bool(_within_caps(values).all())
        gain = max(largest(*lifts(values)) - 1, Fraction(0))
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.beta,
            achieved=math.inf if capped else gain,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {
            "model": "beta-likeness",
            "beta": plain(self.beta),
            "column": self.column,
            "kind": self.kind,
        }


def _within_caps(values: Histogram) -> NDArray[np.bool_]:
    """Tell for each class whether q <= p (1 - ln p) for all its values.

    In counts: c <= n p (1 - ln p). Floats decide what lies clear of that limit; for the others a
    lower bound of 55 digits does.
    """
    total = values.totals()
    size = int(total.sum())
    share = np.maximum(total, 1) / max(size, 1)
    rows = np.repeat(reduce(np.add, values.counts, values.starts), np.diff(values.starts))
    limits = (share * (1 - np.log(share)))[values.values] * rows
    within = np.asarray(values.counts <= limits)
    for i in np.flatnonzero(np.abs(values.counts - limits) <= 2.0**-45 * limits):
        cap = _cap(int(total[values.values[i]]), size)
        within[i] = int(values.counts[i]) <= cap * int(rows[i])
    return every(values, within)


@lru_cache(maxsize=4096)
def _cap(count: int, size: int) -> Fraction:
    """A lower bound of p (1 - ln p), exact where p = 1."""
    share = Fraction(count, size)
    return share * (1 - log(share)[1])
