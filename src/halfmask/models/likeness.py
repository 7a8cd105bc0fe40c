"""delta-disclosure and beta-likeness: how far a class may change what is known of a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from halfmask.models.exact_comparison import (
    HUGE,
    SAFE,
    at_most,
    exponential,
    fraction,
    is_below,
    largest,
    log_bounds,
    power_bounds,
)
from halfmask.models.statistics import (
    ORIGINAL,
    ORIGINAL_NOTE,
    ReferenceRows,
    all_per_class,
    histogram,
    lifts,
    pass_empty,
    reduce,
    reference_totals,
)
from halfmask.models.verdict import (
    SOUGHT_AGAINST_ALL,
    Model,
    Option,
    Verdict,
    Words,
    compared_rows,
    judge,
    number,
    register_model,
    sensitive_column,
    word,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes, Histogram


_ONE = (Fraction(1), Fraction(1))
_TURNS = 4  # of the bound of lost rows; more raise it little


# What any finer grouping loses. Let C of N rows hold a value, and at most L rows be lost. The share
# of those that leave is then p <= C / (N - L), so that parts of a class which stay hold at most a
# share u of the value, u growing with p. Of n rows of a class, c of which hold the value, x leave,
# x(v) of each value: c(v) - x(v) <= u(v) (n - x) for each v. Summed over the values,
# x >= f(x) = sum max(0, c(v) - u(v) (n - x)). As f grows with x, f(0), f(f(0)) ... are lower
# bounds too. For one value it is x >= (c - u n) / (1 - u). Summed over the classes instead, of each
# value go X(v) = sum max(0, c(v) - u(v) (n - x)) rows or more, so that p <= (C - X) / (N - L), with
# which all this begins anew. Against the original table no share moves, whatever is lost: L and X
# are 0.


def _surplus(
    values: Histogram,
    total: NDArray[np.int64],
    factor: Fraction,
    limit: int | None,
    *,
    capped: bool = False,
    least: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """Per class, a lower bound of the rows to lose until every value keeps to its shares.

    ``limit``: of how many rows that may be lost in all; None: shares do not move.
    """
    from halfmask.kernels import resemblance

    low = np.zeros(values.domain) if least is None else least * (1 - resemblance.SLACK)
    found = resemblance.ClassHistogram(values.starts, values.values, values.counts)
    asked = resemblance.Frequencies(float(min(factor, HUGE)), capped)
    remaining = max(int(total.sum()) - (limit or 0), 1)
    turns = 1 if limit is None else _TURNS
    return np.asarray(resemblance.surplus(found, total, low, remaining, asked, turns))


def _survivors(
    values: Histogram,
    kept: NDArray[np.bool_],
    factor: Fraction,
    *,
    downward: bool = False,
    complete: bool = False,
    capped: bool = False,
) -> NDArray[np.bool_] | None:
    """The classes of ``kept`` that stay; None where exact integers must decide."""
    from halfmask.kernels import resemblance

    size = int(values.counts.sum())
    # With a bound downward equality fails, which the kernel leaves to Python's integers.
    fits = not downward and size * size * max(factor.numerator, factor.denominator) < SAFE
    if size * size >= SAFE or factor > HUGE:
        return None
    ratio = (factor.numerator, factor.denominator) if fits else (0, 0)
    left = kept.copy()
    totals = values.totals() if kept.all() else values.select(kept).totals()
    asked = resemblance.LikenessBounds(float(factor), downward, complete, capped, *ratio)
    found = resemblance.ClassHistogram(values.starts, values.values, values.counts)
    decided = resemblance.stay_likely(found, totals, left, asked)
    return left if decided else None


@register_model
@dataclass(frozen=True, slots=True)
class DeltaDisclosure(Model):
    """Require |log(q / p)| < ``delta`` for every value of ``column`` in every class.

    Definition: |log_b(q / p)| < delta for every value of the column in every class, with q its
    share in the class and p its share in all rows; a value that a class lacks (q = 0) fails. The
    relaxed definition in wide use skips such values.
    Source: Brickell and Shmatikov, "The cost of privacy: destruction of data-mining utility in
    anonymized data publishing", 2008.

    Attributes:
        delta: the bound, above 0.
        column: the sensitive column.
        base: of the logarithm; ``None``: natural.
        absent: whether a value that a class lacks ``"fails"`` (the original definition) or is
            ``"ignored"`` (the usual relaxed one).
        reference: ``"release"``: all rows are those that leave; ``"original"``: those of the table
            that the search began with, so that suppressed rows count.

    Example:
        >>> DeltaDisclosure(1, "disease", absent="ignored").name
        'relaxed delta-disclosure'
    """

    family: ClassVar[str] = "delta-disclosure"
    option: ClassVar[Option] = Option(
        "delta-disclosure",
        "delta-disclosure; ABSENT: a value that a class lacks fails or is ignored.",
        "delta-disclosure: delta at most",
    )
    words: ClassVar[Words] = Words(
        "No class makes a sensitive value much likelier or unlikelier than in the whole release "
        "(or, where the promise names it, in the original table): the logarithm of the change "
        "stays below delta.",
        SOUGHT_AGAINST_ALL,
        "With a large delta a value can become certain although the promise holds.",
        "at most",
    )

    delta: float = field(metadata=number(0, 1000, open_low=True, stronger=-1))
    column: str = field(metadata=sensitive_column())
    base: float | None = field(default=None, metadata=number(1, open_low=True, text=False))
    absent: Literal["fails", "ignored"] = field(
        default="fails",
        metadata=word("A value that a class lacks", fails="fails", ignored="is ignored"),
    )
    reference: ReferenceRows = field(default="release", metadata=compared_rows())

    @property
    def name(self) -> str:
        """The model; the relaxed definition says so."""
        name = self.family if self.absent == "fails" else f"relaxed {self.family}"
        return f"{name} {ORIGINAL}" if self.original else name

    @property
    def monotone(self) -> bool:
        """The original is: a share in a merged class lies between those of its parts.

        The relaxed one is not: a class without the value passes, and thins it out in the merger.
        """
        return self.absent == "fails"

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether every value keeps within the bound."""
        values = histogram(classes, self.column)
        total = reference_totals(values, self.reference)
        here, everywhere = lifts(values, total)
        # A quotient above the lower bound of b^delta is not proven to lie below b^delta.
        bound = self._factor()[0]
        passing = all_per_class(
            values, is_below(here, everywhere, bound) & is_below(everywhere, here, bound)
        )
        if self.absent == "fails":
            passing &= np.diff(values.starts) == np.count_nonzero(total)
        return pass_empty(classes, passing)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the largest |log(q / p)|."""
        values = histogram(classes, self.column)
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.delta,
            achieved=self._achieved(classes, values),
            note=" ".join(filter(None, (self._note(values), ORIGINAL_NOTE * self.original))),
        )

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:
        """Per class, how many rows any finer grouping must lose, if it may lose ``limit`` in all.

        With u = b^delta p. Where no value may be absent and one must remain (C > L), parts that
        stay hold more than a share w = p / b^delta of it, p >= (C - L) / (N - L), so that the class
        keeps at most c / w rows.
        """
        values = histogram(classes, self.column)
        total = reference_totals(values, self.reference)
        factor, lost = min(self._factor()[1], HUGE), 0 if self.original else limit
        least = None
        if self.absent == "fails":
            remaining = max(int(total.sum()) - lost, 1)
            least = np.maximum(total - lost, 0) / remaining / float(factor)
        return _surplus(values, total, factor, None if self.original else limit, least=least)

    def survivors(self, classes: Classes, kept: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The classes of ``kept`` that stay when those that fail leave, again and again."""
        if self.original:
            return None
        values = histogram(classes, self.column)
        complete = self.absent == "fails"
        return _survivors(values, kept, self._factor()[0], downward=True, complete=complete)

    def _factor(self) -> tuple[Fraction, Fraction]:
        """Bounds of b^delta."""
        return _bounds(fraction(self.delta), None if self.base is None else fraction(self.base))

    def _achieved(self, classes: Classes, values: Histogram) -> float:
        total = reference_totals(values, self.reference)
        lengths = np.diff(values.starts)[classes.rows > 0]
        if self.absent == "fails" and (lengths < np.count_nonzero(total)).any():
            return math.inf
        here, everywhere = lifts(values, total)
        widest = max(largest(here, everywhere), largest(everywhere, here), Fraction(1))
        if self.base is None:
            return math.log(widest)
        exactly = {2: math.log2, 10: math.log10}
        if self.base in exactly:
            return exactly[int(self.base)](widest)
        return math.log(widest) / math.log(self.base)

    def _note(self, values: Histogram) -> str:
        """Say for how many values even certainty would keep within the bound: p b^delta > 1."""
        total = reference_totals(values, self.reference)
        total = total[total > 0]
        size = np.full(len(total), total.sum())
        free = int(np.count_nonzero(is_below(size, total, self._factor()[1])))
        if not free:
            return ""
        certain = f"For {free} of {len(total)} values delta allows a share of 1 in a class: "
        if self.absent == "ignored":
            return certain + "the model bounds nothing here."
        return certain + "only that no other value may be absent bounds them."


@lru_cache(maxsize=256)
def _more(gain: float) -> Fraction:
    return 1 + fraction(gain)  # thousands of nodes ask: Python adds fractions slowly


@lru_cache(maxsize=256)
def _bounds(delta: Fraction, base: Fraction | None) -> tuple[Fraction, Fraction]:
    return exponential(delta, _ONE) if base is None else power_bounds(base, delta)


@register_model
@dataclass(frozen=True, slots=True)
class BetaLikeness(Model):
    """Require the relative gain of every value of ``column`` in every class to be at most ``beta``.

    Definition: (q - p) / p <= beta for every value with q > p in every class, with q its share in
    the class and p its share in all rows; enhanced: (q - p) / p <= min(beta, -ln p).
    Source: Cao and Karras, "Publishing microdata with a robust privacy guarantee", 2012.

    Attributes:
        beta: the largest gain (q - p) / p, above 0.
        column: the sensitive column.
        kind: ``"basic"``, or ``"enhanced"``, which also caps the gain of frequent values.
        reference: ``"release"``: all rows are those that leave; ``"original"``: those of the table
            that the search began with, so that suppressed rows count.

    Example:
        >>> BetaLikeness(1, "disease", kind="enhanced").name
        'enhanced beta-likeness'
    """

    family: ClassVar[str] = "beta-likeness"
    monotone: ClassVar[bool] = True  # a share in a merged class lies between those of its parts
    option: ClassVar[Option] = Option(
        "beta", "beta-likeness; KIND: basic or enhanced.", "beta-likeness: beta at most"
    )
    words: ClassVar[Words] = Words(
        "No class makes a sensitive value likelier than in the whole release (or, where the "
        "promise names it, in the original table) by more than the factor beta allows.",
        SOUGHT_AGAINST_ALL,
        "That a value becomes less likely is not bounded.",
        "at most",
    )

    beta: float = field(metadata=number(0, open_low=True, stronger=-1))
    column: str = field(metadata=sensitive_column())
    kind: Literal["basic", "enhanced"] = field(
        default="basic", metadata=word("Which beta-likeness", basic="basic", enhanced="enhanced")
    )
    reference: ReferenceRows = field(default="release", metadata=compared_rows())

    @property
    def name(self) -> str:
        """The kind and the model."""
        name = f"{self.kind} {self.family}"
        return f"{name} {ORIGINAL}" if self.original else name

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether no value gains too much."""
        values = histogram(classes, self.column)
        total = reference_totals(values, self.reference)
        here, everywhere = lifts(values, total)
        passing = all_per_class(values, at_most(here, everywhere, self._factor()))
        if self.kind == "enhanced":
            passing &= _within_caps(values, total)
        return pass_empty(classes, passing)

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:
        """Per class, how many rows any finer grouping must lose, if it may lose ``limit`` in all.

        With u = p (1 + beta) or p (1 + min(beta, -ln p)): both grow with p.
        """
        values = histogram(classes, self.column)
        total = reference_totals(values, self.reference)
        allowed = None if self.original else limit
        return _surplus(values, total, self._factor(), allowed, capped=self.kind == "enhanced")

    def survivors(self, classes: Classes, kept: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The classes of ``kept`` that stay when those that fail leave, again and again."""
        if self.original:
            return None
        values = histogram(classes, self.column)
        return _survivors(values, kept, self._factor(), capped=self.kind == "enhanced")

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the largest gain.

        With the enhanced kind it is infinite where a gain exceeds -ln p: no beta allows that.
        """
        values = histogram(classes, self.column)
        total = reference_totals(values, self.reference)
        capped = self.kind == "enhanced" and not bool(_within_caps(values, total).all())
        gain = max(largest(*lifts(values, total)) - 1, Fraction(0))
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.beta,
            achieved=math.inf if capped else gain,
            note=ORIGINAL_NOTE if self.original else "",
        )

    def _factor(self) -> Fraction:
        """How many times its share of all rows a value's share of a class may be."""
        return _more(self.beta)


def _within_caps(values: Histogram, total: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell for each class whether q <= p (1 - ln p) for all its values.

    In counts: c <= n p (1 - ln p). Floats decide what lies clear of that limit; for the others a
    lower bound of 55 digits does.
    """
    size = int(total.sum())
    share = np.maximum(total, 1) / max(size, 1)
    rows = np.repeat(reduce(np.add, values.counts, values.starts), np.diff(values.starts))
    limits = (share * (1 - np.log(share)))[values.values] * rows
    within = np.asarray(values.counts <= limits)
    for i in np.flatnonzero(np.abs(values.counts - limits) <= 2.0**-45 * limits):
        cap = _cap(int(total[values.values[i]]), size)
        within[i] = int(values.counts[i]) <= cap * int(rows[i])
    return all_per_class(values, within)


@lru_cache(maxsize=4096)
def _cap(count: int, size: int) -> Fraction:
    """A lower bound of p (1 - ln p), exact where p = 1."""
    share = Fraction(count, size)
    return share * (1 - log_bounds(share)[1])
