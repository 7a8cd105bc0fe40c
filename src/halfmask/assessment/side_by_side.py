"""Several releases of one original side by side: the same headline figures, and conditions on them.

Every figure is one of ``compare``: it is taken from its result and measured by nothing here.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from halfmask.assessment.measure import Document, FigureForm, known_figure
from halfmask.errors import InputError
from halfmask.metrics.estimate import Estimate, failed_estimate
from halfmask.metrics.risk.reidentification import HIGHEST, MEAN, SMALLEST
from halfmask.report.discrimination import NAMES
from halfmask.report.words import MADE_UP, STATISTICS
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from halfmask.assessment.comparison import Comparison


# What the attacker of a person's identity holds: released rows, a file with names too, or both
# tables.
_BOXES = {
    "highest_risk": " (black box)",
    "linkability, by names": " (grey box)",
    "identity": " (white box)",
}
_BOUND = re.compile(r"(<=|>=)\s*[-+]?\.?\d[^<>]*$")


@dataclass(frozen=True, slots=True)
class Headline(Result):
    """A figure of several releases, one beside the other.

    Attributes:
        name: its place in the document of a comparison, and what conditions call it.
        title: what people read.
        before: the figure of the original, where it has one.
        after: per release the figure with its interval; None: not measured.
        form: how the figure is written.
    """

    name: str
    title: str
    before: float | None
    after: tuple[Estimate | None, ...]
    form: FigureForm


@dataclass(frozen=True, slots=True)
class FigureBound(Result):
    """A bound on a figure, which the whole interval of the figure must keep.

    Attributes:
        figure: the name of the figure.
        sign: which side of the bound is kept.
        bound: the bound, which itself is kept.
    """

    figure: str
    sign: Literal["<=", ">="]
    bound: float

    @classmethod
    def of(cls, text: str) -> FigureBound:
        """Read ``highest_risk<=0.2`` or ``loss>=0.1``.

        Raises:
            InputError: it is not written so, or states two bounds.
        """
        sign: Literal["<=", ">="] = "<=" if text.rfind("<=") > text.rfind(">=") else ">="
        figure, found, number = text.rpartition(sign)
        try:
            bound = float(number) if found and figure.strip() else math.nan
        except ValueError:
            bound = math.nan
        if not math.isfinite(bound):
            raise InputError(
                f"The condition '{text}' cannot be read: write a figure, <= or >=, and a number, "
                "such as highest_risk<=0.2."
            )
        if _BOUND.search(figure):
            raise InputError(
                f"The condition '{text}' states two bounds: write two conditions, each with a "
                "figure, <= or >=, and a number."
            )
        return cls(figure.strip(), sign, bound)

    @property
    def text(self) -> str:
        """As it was written."""
        return f"{self.figure}{self.sign}{self.bound:g}"

    def met_by(self, found: Estimate | None) -> bool:
        """Whether a figure keeps it; one that is not known or not to be relied on does not."""
        if found is None or found.value is None or not found.trusted:
            return False
        ends = [end for end in (found.low, found.value, found.high) if end is not None]
        return max(ends) <= self.bound if self.sign == "<=" else min(ends) >= self.bound


@dataclass(frozen=True, slots=True)
class ConditionMet(Result):
    """Whether each release meets a condition, in their order."""

    condition: str
    figure: str
    met: tuple[bool, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SideBySide(Document):
    """Several releases, each compared with the same original.

    Attributes:
        releases: what they are called.
        headlines: the figures, one line each.
        conditions: the bounds of needs, then the stated conditions, and whether each is met.
        comparisons: all that ``compare`` finds of each release, in their order.
    """

    format: ClassVar[str] = "halfmask.side_by_side/1"
    derived: ClassVar[tuple[str, ...]] = ("met",)

    releases: tuple[str, ...]
    headlines: tuple[Headline, ...]
    conditions: tuple[ConditionMet, ...]
    comparisons: tuple[Comparison, ...]

    @classmethod
    def of(
        cls,
        releases: Sequence[str],
        comparisons: Sequence[Comparison],
        conditions: Sequence[str | FigureBound] = (),
    ) -> SideBySide:
        """Put comparisons side by side.

        Raises:
            InputError: a condition cannot be read or names no figure.
        """
        stated = [FigureBound.of(one) if isinstance(one, str) else one for one in conditions]
        lines, stated = headlines(comparisons), [*_need_bounds(comparisons[0]), *stated]
        return cls(tuple(releases), lines, _judge(stated, lines), tuple(comparisons))

    def __repr__(self) -> str:
        return f"SideBySide({', '.join(self.releases)}; {len(self.headlines)} figures)"

    @property
    def met(self) -> bool:
        """Whether every release meets every condition."""
        return all(all(one.met) for one in self.conditions)

    def require(self, *conditions: str) -> SideBySide:
        """The same with more conditions, as ``"highest_risk<=0.2"``; ``met``: whether all hold.

        Raises:
            InputError: a condition cannot be read or names no figure.
        """
        judged = _judge([FigureBound.of(one) for one in conditions], self.headlines)
        more = [one for one in judged if one not in self.conditions]
        return replace(self, conditions=(*self.conditions, *more))


def _need_bounds(one: Comparison) -> Iterator[FigureBound]:
    """The bounds of needs, which are the same of every release."""
    for need in one.needs:
        if need.at_least is not None:
            yield FigureBound(f"needs.{need.name}", ">=", need.at_least)
        if need.at_most is not None:
            yield FigureBound(f"needs.{need.name}", "<=", need.at_most)


def _judge(stated: Sequence[FigureBound], lines: Sequence[Headline]) -> tuple[ConditionMet, ...]:
    known = {line.name: line for line in lines}
    for one in stated:
        if one.figure not in known:
            raise InputError(
                f"No figure is called '{one.figure}'. Conditions can name: {'; '.join(known)}."
            )
    return tuple(
        ConditionMet(one.text, one.figure, tuple(map(one.met_by, known[one.figure].after)))
        for one in stated
    )


def headlines(comparisons: Sequence[Comparison]) -> tuple[Headline, ...]:
    """The figures of some comparisons with the same original, line by line."""
    found = [{line.name: line for line in _figures(one)} for one in comparisons]
    names = dict.fromkeys(name for lines in found for name in lines)  # some may lack a column
    out = []
    for name in names:
        first = next(lines[name] for lines in found if name in lines)
        after = tuple(lines[name].after[0] if name in lines else None for lines in found)
        out.append(Headline(name, first.title, first.before, after, first.form))
    return tuple(out)


def _figures(one: Comparison) -> Iterator[Headline]:
    """The figures of one comparison."""

    def line(
        name: str, title: str, after: Estimate | None, form: FigureForm, before: float | None = None
    ) -> Headline:
        return Headline(name, title, before, (after,), form)

    yield line("rows_released", "rows", known_figure(one.rows_released), "count", one.rows)
    yield line("suppressed", "rows fewer", known_figure(one.suppressed), "count")
    yield from _risks(one)
    for attack in one.criteria:
        about = "" if attack.column is None else f" of {attack.column}"
        place = "" if attack.column is None else f".{attack.column}"
        name = f"criteria.{attack.name}{place}"
        title = f"risk by {attack.name}{about}{_BOXES.get(attack.name, '')}"
        yield line(name, title, attack.risk, "percent")
    yield line("loss", "loss", known_figure(one.loss), "percent")
    yield line("score", "loss and risk by linkage, half each", known_figure(one.score), "percent")
    yield line("counting.error", "random counts, mean error", one.counting.error, "percent")
    for each in one.moments:
        if each.statistic not in ("mean", "covariance"):  # whose size is that of the columns
            name = f"moments.{each.statistic.replace(' ', '_')}"
            title = f"{STATISTICS[each.statistic]}, mean absolute error"
            yield line(name, title, known_figure(each.absolute_error), "score")
    alike = one.likeness
    for key, words in (
        ("area", "telling apart (0.5 is perfect)"),
        ("clusters", "clusters (1 is the same)"),
        ("pmse", "propensity (pMSE)"),
    ):
        yield line(f"likeness.{key}", words, alike and getattr(alike, key), "score")
    for need in one.needs:
        yield line(f"needs.{need.name}", f"need {need.name}",
                   _rate(need.after, need.reason), "score", need.before)  # fmt: skip
    lost = known_figure(one.discrimination.loss)
    yield line("discrimination.loss", "overall information loss by rates", lost, "score")
    yield from _rates(one)


def _risks(one: Comparison) -> Iterator[Headline]:
    """Risks by the release's own classes; not known where these do not hold the people."""
    forms: dict[str, tuple[str, str, FigureForm]] = {
        "smallest": (SMALLEST, "smallest", "count"),
        "highest_risk": (HIGHEST, "prosecutor", "percent"),
        "mean_risk": (MEAN, "marketer", "percent"),
    }
    for name, (title, part, form) in forms.items():
        known = failed_estimate(MADE_UP) if one.made_up else known_figure(getattr(one, name))
        title = f"{title}{_BOXES.get(name, '')}"
        yield Headline(name, title, getattr(one.before, part), (known,), form)


def _rates(one: Comparison) -> Iterator[Headline]:
    """Attacks scored by discrimination rates, by all quasi-identifiers together."""
    quasi = len(one.generalized)
    for each in one.discrimination.rates:
        if each.attack == "identity" or len(each.keys) == quasi:
            yield Headline(
                f"discrimination.{each.attack}.{each.target}",
                f"{NAMES.get(each.attack, each.attack)}: {each.target}"
                f"{_BOXES.get(each.attack, '')}",
                each.before,
                (_rate(each.rate, each.reason, each.rows),),
                "score",
            )


def _rate(rate: float | None, reason: str, rows: int = 0) -> Estimate | None:
    """A rate, or why there is none; one that is not defined is none."""
    if rate is None or math.isnan(rate):
        return failed_estimate(reason, rows)
    return known_figure(rate, rows)
