"""delta-disclosure: no class makes a sensitive value much likelier, or unlikelier, than it is.

Definition: |log_b(q / p)| < delta for every value of the column in every class, with q its share
in the class and p its share in all rows; a value that a class lacks (q = 0) fails. The relaxed
definition in wide use skips such values.
Source: Brickell and Shmatikov, "The cost of privacy: destruction of data-mining utility in
anonymized data publishing", 2008.
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
    below,
    exponential,
    fraction,
    largest,
    plain,
    power,
    require_name,
    require_number,
)
from halfmask.models.statistics import every, histogram, kept, lifts
from halfmask.models.verdict import Verdict, judge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.histogram import Histogram

ABSENT = ("fails", "ignored")
_ONE = (Fraction(1), Fraction(1))


@dataclass(frozen=True, slots=True)
class DeltaDisclosure:
    """Require |log(q / p)| < ``delta`` for every value of ``column`` in every class.

    Attributes:
        delta: the bound, above 0.
        column: the sensitive column.
        base: of the logarithm; ``None``: natural.
        absent: whether a value that a class lacks ``"fails"`` (the original definition) or is
            ``"ignored"`` (the usual relaxed one).

    Example:
        >>> DeltaDisclosure(1, "disease", absent="ignored").name
        'relaxed delta-disclosure'
    """

    absorbing: ClassVar[bool] = False  # added rows may all hold one value
    whole: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    policy: ClassVar[tuple[str, ...]] = ()
    population: ClassVar[None] = None

    delta: float
    column: str
    base: float | None = None
    absent: Literal["fails", "ignored"] = "fails"

    def __post_init__(self) -> None:
        require_name("column", self.column)
        require_number("delta", self.delta, 0, 1000, open_low=True)
        if self.base is not None:
            require_number("base", self.base, 1, open_low=True)
        if self.absent not in ABSENT:
            raise ParameterError("absent", self.absent, "one of " + ", ".join(ABSENT))

    @property
    def name(self) -> str:
        """The model; the relaxed definition says so."""
        return "delta-disclosure" if self.absent == "fails" else "relaxed delta-disclosure"

    @property
    def monotone(self) -> bool:
        """The original is: a share in a merged class lies between those of its parts.

        The relaxed one is not: a class without the value passes, and thins it out in the merger.
        """
        return self.absent == "fails"

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive column."""
        return (self.column,)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether every value keeps within the bound."""
        values = histogram(classes, self.column)
        here, everywhere = lifts(values)
        # A quotient above the lower bound of b^delta is not proven to lie below b^delta.
        bound = self._factor()[0]
        passing = every(values, below(here, everywhere, bound) & below(everywhere, here, bound))
        if self.absent == "fails":
            passing &= np.diff(values.starts) == np.count_nonzero(values.totals())
        return kept(classes, passing)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the largest |log(q / p)|."""
        values = histogram(classes, self.column)
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.delta,
            achieved=self._achieved(classes, values),
            note=self._note(values),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters."""
        return {
            "model": "delta-disclosure",
            "delta": plain(self.delta),
            "column": self.column,
            "base": None if self.base is None else plain(self.base),
            "absent": self.absent,
        }

    def _factor(self) -> tuple[Fraction, Fraction]:
        """Bounds of b^delta."""
        return _bounds(fraction(self.delta), None if self.base is None else fraction(self.base))

    def _achieved(self, classes: Classes, values: Histogram) -> float:
        lengths = np.diff(values.starts)[classes.rows > 0]
        if self.absent == "fails" and (lengths < np.count_nonzero(values.totals())).any():
            return math.inf
        here, everywhere = lifts(values)
        widest = max(largest(here, everywhere), largest(everywhere, here), Fraction(1))
        if self.base is None:
            return math.log(widest)
        exactly = {2: math.log2, 10: math.log10}
        if self.base in exactly:
            return exactly[int(self.base)](widest)
        return math.log(widest) / math.log(self.base)

    def _note(self, values: Histogram) -> str:
        """Say for how many values even certainty would keep within the bound: p b^delta > 1."""
        total = values.totals()
        total = total[total > 0]
        size = np.full(len(total), total.sum())
        free = int(np.count_nonzero(below(size, total, self._factor()[1])))
        if not free:
            return ""
        certain = f"For {free} of {len(total)} values delta allows a share of 1 in a class: "
        if self.absent == "ignored":
            return certain + "the model bounds nothing here."
        return certain + "only that no other value may be absent bounds them."


@lru_cache(maxsize=256)
def _bounds(delta: Fraction, base: Fraction | None) -> tuple[Fraction, Fraction]:
    return exponential(delta, _ONE) if base is None else power(base, delta)
