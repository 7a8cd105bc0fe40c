"""The plan of a question under differential privacy: what each figure will cost and how far off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.views import vectors_of
from halfmask.engines.tally import tally_query
from halfmask.errors import UnsupportedQueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.dp.questions import Question
    from halfmask.dp.views import View
    from halfmask.query.private.plan import PrivatePlan
    from halfmask.query.private.prepare import Prepared
    from halfmask.query.run import Session


@dataclass(frozen=True, slots=True)
class PrivateExplanation:
    """What would be done for a question under EPSILON; nothing is spent, no row has been read.

    Attributes:
        promise: what it would cost.
        groups: which groups would be shown, in words.
        views: per noisy view its mechanism, cost, and the standard deviation of the noise.
        figures: per aggregate the views it comes from, and how far off it may be.
        confidence: of the errors of figures.
        sql: the queries for the engine.
        engine: its name.
    """

    promise: str
    groups: str
    views: tuple[dict[str, Any], ...]
    figures: tuple[dict[str, Any], ...]
    confidence: float
    sql: tuple[str, ...]
    engine: str

    def __str__(self) -> str:
        lines = [f"Promise: {self.promise}; nothing is spent yet", f"Groups: {self.groups}"]
        lines += [
            f"View: {v['view']}; {v['mechanism']}; {v['cost']}; standard deviation "
            f"{v['deviation']:.4g}"
            for v in self.views
        ]
        lines += [
            f"Figure: {f['figure']}; from {', '.join(f['views'])}; {f['error']} "
            f"({self.confidence:.0%})"
            for f in self.figures
        ]
        for text in self.sql:
            lines += ["", f"-- {self.engine}", text]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return {
            "promise": self.promise,
            "groups": self.groups,
            "views": list(self.views),
            "figures": list(self.figures),
            "confidence": self.confidence,
            "sql": list(self.sql),
            "engine": self.engine,
        }


def explained_privately(prepared: Prepared, session: Session) -> PrivateExplanation:
    """The explanation of a question that is ready to be answered.

    Raises:
        UnsupportedQueryError: the noise would be drawn at a threshold among personal epsilons.
    """
    if prepared.own is not None:
        raise UnsupportedQueryError(
            "everybody's own epsilon is not explained: explain the query WITH EPSILON, at the "
            "epsilon of most people.",
            text=prepared.statement.text,
            start=prepared.statement.start,
        )
    plan, views = prepared.plan, prepared.views()
    trees = (
        replace(plan.tally, keys=(*plan.tally.keys, place), parts=())
        for place in plan.trees.values()
    )
    each = 1 - (1 - prepared.confidence) / 3
    named = {view.vector: view for view in views}
    return PrivateExplanation(
        str(prepared.promise),
        _groups(plan, views),
        tuple(_view(view) for view in views),
        tuple(_figure(question, plan, named, each) for question in plan.questions),
        prepared.confidence,
        tuple(session.engine.sql(tally_query(request)) for request in (plan.tally, *trees)),
        session.engine.name,
    )


def _groups(plan: PrivatePlan, views: tuple[View, ...]) -> str:
    if not plan.keys:
        return "none, one row"
    first = views[0].mechanism
    if isinstance(first, StableGroups):
        return f"those whose noisy count reaches {first.threshold:,}"
    known = prod(len(key.domain) for key in plan.keys if key.domain is not None)
    return f"{known:,} public ones, empty ones too"


def _view(view: View) -> dict[str, Any]:
    return {
        "view": view.name,
        "mechanism": view.entry.mechanism,
        "cost": str(view.entry.cost),
        "deviation": view.deviation,
    }


def _figure(
    question: Question, plan: PrivatePlan, views: Mapping[str, View], confidence: float
) -> dict[str, Any]:
    vectors = vectors_of(question, plan.labels)
    what = f"{question.kind} of {question.column}" if question.column else "count of rows"
    return {
        "figure": what,
        "views": [views[vector].name for vector in vectors],
        "error": _error(question, [views[vector].half_width(confidence) for vector in vectors]),
    }


def _error(question: Question, halves: list[float]) -> str:
    """How far off a figure may be; what is divided by people depends on how many there are."""
    if question.scale is None:
        return f"+- {halves[0]:,.4g}"
    step, reach = question.scale.step, (question.scale.high - question.scale.low) / 2
    if question.kind == "quantile":
        return f"+- {2 * halves[0]:,.4g} people in rank, and the width of an interval"
    if question.kind == "sum":
        center = abs(question.scale.center) * halves[0] if len(halves) > 1 else 0.0
        return f"+- {step * halves[-1] + center:,.4g}"
    mean = step * halves[1] + reach * halves[0]
    if question.kind == "mean":
        return f"about +- {mean:,.4g} / people of the group, at most"
    spread = step**2 * halves[2] + reach**2 * halves[0] + 2 * reach * mean
    if question.kind == "variance":
        return f"about +- {spread:,.4g} / people of the group, at most"
    return f"about +- {spread:,.4g} / people of the group in its square, at most"
