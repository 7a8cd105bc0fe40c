"""Measures: what ``assess`` and ``compare`` find, each declared once.

A measure says what it is called, which question it answers, who attacks and what it needs, how it
is found, and which of its figures people read. The attributes of a result, its document, the lines
on a terminal and those of a report all follow from the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from halfmask.errors import ParameterError
from halfmask.metrics.estimate import Estimate, exact_estimate
from halfmask.release.document import versions
from halfmask.release.files import private_file, write_report
from halfmask.table.document import Result, document_field, plain_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from os import PathLike

# What assess asks of a table and compare of a release, in the same words.
DISCLOSURES = "What do the classes give away, per sensitive column?"
CRITERIA = "Are the criteria of the data protection authorities met?"


class Document(Result):
    """A result that says its format and what made it, and that can be written to a file."""

    __slots__ = ()

    format: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, the same as in JSON."""
        return {"format": self.format, **self.figures_as_values(), "versions": versions()}

    def figures_as_values(self) -> dict[str, Any]:
        """What stands between the format and the versions."""
        return Result.to_dict(self)

    def report(self, path: str | PathLike[str]) -> None:
        """Write it, as it speaks of original rows, to a private .json, .html or .pdf file."""
        values = self.to_dict()
        write_report(path, values, lambda: self._page(values), private_file)

    def _repr_html_(self) -> str:
        """What the report says first: the outcome, the figures, what to do next."""
        from halfmask.report.page import notebook_parts
        from halfmask.table.document import view

        return view(type(self).__name__, *notebook_parts(self.to_dict()))

    def _page(self, values: dict[str, Any]) -> str:
        from halfmask.report.page import render_page

        return render_page(values)


Section = Literal["sizes", "classes", "use", "attacks"]
FigureForm = Literal["percent", "score", "count", "figure"]


@dataclass(frozen=True, slots=True)
class Finding(Result):
    """One figure as people read it.

    Attributes:
        name: what was found, in few words.
        before: the figure of the original, where there is one to hold it against.
        after: the figure, with its interval and whether it may be relied on; None: not measured.
        meaning: what the figure counts.
        sentence: what is to be said beside the figure, or in its place.
        form: how the figure is written.
        attacker: what an attacker knows or does; as the measure says where it is empty.
        section: where it stands; as the measure says where it is empty.
        measure: the measure that found it.
    """

    name: str
    before: float | None = None
    after: Estimate | None = None
    meaning: str = ""
    sentence: str = ""
    form: FigureForm = "percent"
    attacker: str = ""
    section: Section | Literal[""] = ""
    measure: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """What is found of a table, or of an original and its release.

    Attributes:
        name: what it is called as an attribute of the result.
        question: what it answers.
        find: finds it, given what is measured.
        findings: its figures for people, given what was found and the whole result.
        section: where these stand.
        attacker: what its attacker knows or does, if it is an attack.
        needs: what must be given for it, an attribute of what is measured; without it the measure
            is None.
        written: its name in the document, where that is another.
        parts: what the parts of each of its tuples are called in the document.
        short: whether the few lines of a terminal say it, or follow from it.
    """

    name: str
    question: str
    find: Callable[[Any], Any]
    findings: Callable[[Any, Any], Iterable[Finding]] | None = None
    section: Section = "use"
    attacker: str = ""
    needs: str = ""
    written: str = ""
    parts: tuple[str, ...] = ()
    short: bool = False


_ADDED: dict[str, list[Measure]] = {"assess": [], "compare": []}


def register_measures(verb: Literal["assess", "compare"], *measures: Measure) -> None:
    """Have a verb find further measures from now on."""
    _ADDED[verb] += measures


def registered_measures(verb: str) -> tuple[Measure, ...]:
    """Those that were registered, also by packages that name a module under halfmask.measures."""
    _load_foreign()
    return tuple(_ADDED[verb])


@cache
def _load_foreign() -> None:
    for entry in metadata.entry_points(group="halfmask.measures"):
        entry.load()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MeasureResults(Document):
    """All that a verb found; every measure is an attribute under its name.

    Attributes:
        figures: what was found, by measure.
        limit: the highest acceptable risk.
        notes: what a reader should know.
        findings: what people read, line by line.
    """

    figures: Mapping[str, Any] = field(metadata=document_field(hidden=True))
    limit: float
    notes: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    _written: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(
        cls,
        verb: str,
        own: Sequence[Measure],
        case: Any,
        notes: tuple[str, ...],
        only: Collection[str] | None = None,
    ) -> Self:
        """Find the verb's own measures and those that were registered, in this order.

        With ``only``, those of its own that it names: the result has no others, and is for who
        reads no others. All are found beside registered ones, which may look at any of them.
        """
        added = registered_measures(verb)
        if only is not None and not added:
            own = [one for one in own if one.name in only]
        measures = (*own, *added)
        figures = {
            one.name: one.find(case) if not one.needs or getattr(case, one.needs) else None
            for one in measures
        }
        names = tuple((one.name, one.written or one.name, one.parts) for one in measures)
        found = cls(figures, case.options.limit, notes, (), names)
        return replace(found, findings=list_findings(measures, found))

    def __getattr__(self, name: str) -> Any:
        # A copy asks before it has figures, and would ask here for them again and again.
        if not name.startswith("_") and name != "figures" and name in self.figures:
            return self.figures[name]
        raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.figures]

    def figures_as_values(self) -> dict[str, Any]:
        """The measures, then what follows from them."""
        return self._figure_values() | Document.figures_as_values(self)

    def select(self, *derived: str) -> dict[str, Any]:
        """The measures that were found, limit and notes as plain values, and some that follow."""
        named = ("limit", "notes", *derived)
        return self._figure_values() | {name: plain_value(getattr(self, name)) for name in named}

    def _figure_values(self) -> dict[str, Any]:
        return {said: _values(self.figures[name], parts) for name, said, parts in self._written}


def require_limit(limit: float) -> None:
    """Refuse a limit of risk that nothing or everything would keep."""
    allowed = "a number above 0 and below 1"
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1:
        raise ParameterError("limit", limit, allowed)


def list_findings(measures: Sequence[Measure], found: MeasureResults) -> tuple[Finding, ...]:
    """What people read of some measures."""
    return tuple(
        replace(
            finding,
            measure=one.name,
            section=finding.section or one.section,
            attacker=finding.attacker or one.attacker,
        )
        for one in measures
        if one.findings is not None
        for finding in one.findings(found.figures[one.name], found)
    )


def known_figure(value: float | None, n: int = 0) -> Estimate | None:
    """A figure that was counted on all rows; None where it is not known."""
    return None if value is None else exact_estimate(value, n)


def _values(value: Any, parts: tuple[str, ...]) -> Any:
    if parts and value is not None:
        value = [dict(zip(parts, each, strict=True)) for each in value]
    return plain_value(value)
