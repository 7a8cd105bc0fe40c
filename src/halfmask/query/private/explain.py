"""The plan of a question under differential privacy: what each figure will cost and how far off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.dp.figures import Noisy, figure
from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.views import counted, vectors_of
from halfmask.engines.tally import tally_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.dp.questions import Question
    from halfmask.dp.views import View
    from halfmask.query.private.personal import Audience
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
        notes: whose rows would be read.
    """

    promise: str
    groups: str
    views: tuple[dict[str, Any], ...]
    figures: tuple[dict[str, Any], ...]
    confidence: float
    sql: tuple[str, ...]
    engine: str
    notes: tuple[str, ...] = ()

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
        lines += [f"Note: {note}" for note in self.notes]
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
            "notes": list(self.notes),
        }


def explained_privately(prepared: Prepared, session: Session) -> PrivateExplanation:
    """The explanation of a question that is ready to be answered.

    Of levels that are read apart, errors are those of the most cautious one that is read.
    """
    plan, views, whose = prepared.plan, prepared.views(), prepared.audience
    source = plan.scope.tables[plan.scope.main]
    requests = [plan.tally]
    requests += [
        replace(plan.tally, keys=(*plan.tally.keys, place), parts=())
        for place in plan.trees.values()
    ]
    asked = [whose.tally(request, source, plan.scope.main) for request in requests]
    noisy = _noise(views, whose)
    names = {view.vector: view.name for view in views}
    return PrivateExplanation(
        str(prepared.promise),
        _groups(plan, views),
        tuple(_view(view) for view in views),
        tuple(
            {
                "figure": f"{q.kind} of {q.column}" if q.column else "count of rows",
                "views": [names[vector] for vector in vectors_of(q, plan.labels)],
                "error": _error(q, plan, noisy, prepared.confidence),
            }
            for q in plan.questions
        ),
        prepared.confidence,
        tuple(session.engine.sql(tally_query(request)) for request in asked),
        session.engine.name,
        whose.notes(),
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


def _noise(views: tuple[View, ...], whose: Audience) -> dict[str, Noisy]:
    """Per vector what will be in it, around nothing."""
    each = whose.weights if whose.apart else (1.0,)
    found: dict[str, list[Any]] = {}
    for view in views:
        found.setdefault(view.vector, []).append(view.mechanism)
    return {
        vector: Noisy(np.zeros(1), tuple(zip(each, mechanisms, strict=True)))
        for vector, mechanisms in found.items()
    }


def _error(
    question: Question, plan: PrivatePlan, noisy: Mapping[str, Noisy], confidence: float
) -> str:
    """How far off a figure may be; what is divided by people depends on how many there are."""
    if question.kind in ("count", "sum"):
        found = figure(question, counted(question.column, plan.labels), noisy, confidence)
        return f"+- {found.high[0]:,.4g}"
    scale = question.scale
    assert scale is not None  # noqa: S101 - whatever is no count has bounds
    if question.kind == "quantile":
        rank = noisy[f"tree {question.column}"].rank(question.at, confidence).max()
        return f"+- {rank:,.4g} people in rank, and the width of an interval"
    halves = [max(noisy[v].spread(confidence)) for v in vectors_of(question, plan.labels)]
    step, reach = scale.step, (scale.high - scale.low) / 2
    mean = step * halves[1] + reach * halves[0]
    if question.kind == "mean":
        return f"about +- {mean:,.4g} / people of the group, at most"
    spread = step**2 * halves[2] + reach**2 * halves[0] + 2 * reach * mean
    if question.kind == "variance":
        return f"about +- {spread:,.4g} / people of the group, at most"
    return f"about +- {spread:,.4g} / people of the group in its square, at most"
