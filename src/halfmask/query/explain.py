"""``hm.explain``: the plan of a query and the SQL that its engine would run.

With guarantees it says level by level what is generalized and promised; with noise what each figure
will cost and how far off it may be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halfmask.engines.request import Climb
from halfmask.errors import ParameterError
from halfmask.query.run import PreparedQuery, Session, level_steps
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.dp.budget import Number
    from halfmask.dp.figures import NoisyVector
    from halfmask.dp.views import Question, View
    from halfmask.engines.request import Engine, Request
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.planning.noise import NoisePlan
    from halfmask.query.private.answer import NoisePreparation
    from halfmask.query.private.personal import Audience

MEANINGS = {
    "selective": "what meets its guarantee is published where it stands, the rest moves up",
    "complete": "as many people as possible are published, at the finest levels that allow it",
    "complete-greedy": "as many people as possible are published; groups are pulled up greedily",
}


@dataclass(frozen=True, slots=True)
class Explanation(Result):
    """What would be done for a query; no row has been read.

    Attributes:
        levels: per level, its number, what is generalized, the keys, and what is promised.
        promises: what every row must reach.
        semantics: what may move, in words.
        sql: the queries for the engine.
        engine: its name.
        notes: what the asker should know.
    """

    levels: tuple[dict[str, Any], ...]
    promises: tuple[str, ...]
    semantics: str
    sql: tuple[str, ...]
    engine: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"Level {x['level']}: {x['step']}; by {x['keys'] or 'nothing'}; "
            f"k >= {x['k']}, l >= {x['l']}"
            for x in self.levels
        ]
        lines += [f"Every row: {p}" for p in self.promises]
        lines += [f"Semantics: {self.semantics}", *(f"Note: {n}" for n in self.notes)]
        return "\n".join([*lines, *_texts(self.sql, self.engine)])


@dataclass(frozen=True, slots=True)
class PrivateExplanation(Result):
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
        return "\n".join([*lines, *_texts(self.sql, self.engine)])


def _texts(sql: Sequence[str], engine: str) -> list[str]:
    return [line for text in sql for line in ("", f"-- {engine}", text)]


def explain(
    table: object,
    sql: str,
    policies: object = None,
    engine: Any = None,
    *,
    schema: object = None,
    epsilon: Number | None = None,
    floor: int | None = None,
    tables: Sequence[str] | None = None,
    **private: Any,
) -> Explanation | PrivateExplanation:
    """Say how a query would be answered, without reading rows; takes what ``hm.query`` takes.

    Under differential privacy it says what each figure would cost and how far off it may be;
    nothing is spent.

    Raises:
        QueryError: the query cannot be answered; says where and why.

    Example:
        >>> import pyarrow as pa
        >>> people = pa.table({"city": ["Bourges"], "salary": [1]})
        >>> print(str(explain(people, "SELECT city, AVG(salary) FROM people GROUP BY city "
        ...                           "GUARANTEE k = 5")).splitlines()[0])
        Level 0: as grouped; by city; k >= 5, l >= 1
    """
    from halfmask.query.parse import parse

    with Session(table, engine=engine, schema=schema, floor=floor, tables=tables) as session:
        statement = parse(sql, noisy=epsilon is not None)
        if statement.noisy:
            from halfmask.query.private.answer import NoiseTerms, prepare_noise

            terms = NoiseTerms(epsilon=epsilon, policies=policies, **private)
            return explain_prepared(prepare_noise(session, statement, terms), session)
        if private:
            raise ParameterError(sorted(private)[0], "(given)", "epsilon too: it is for noise only")
        return explain_prepared(session.prepare(statement, policies), session)


def explain_prepared(
    prepared: PreparedQuery | NoisePreparation, session: Session
) -> Explanation | PrivateExplanation:
    """The explanation of a query that is ready to be answered, whatever it promises."""
    if isinstance(prepared, PreparedQuery):
        return _with_guarantees(prepared.plan, session.engine)
    return _with_noise(prepared, session.engine)


def _with_guarantees(plan: GuaranteePlan, engine: Engine) -> Explanation:
    from halfmask.engines.sql import measure_query, parts_query

    request = _without_values(plan.request)
    queries = engine.queries(request)
    if plan.measures:
        queries.append(measure_query(request, plan.measures))
    if plan.conditional:
        person = [request.person] if plan.repeat and request.person is not None else []
        splits = (*plan.splits, *plan.missing)
        queries.append(parts_query(request, splits, (*person, *plan.split_values)))
    texts = [re.sub(r"\bhm_policies_\d+", "hm_policies", engine.sql(q)) for q in queries]
    return Explanation(
        tuple(_levels(plan)),
        tuple(_promises(plan)),
        f"{plan.semantics}: {MEANINGS[plan.semantics]}",
        tuple(texts),
        engine.name,
        plan.notes,
    )


def _without_values(request: Request) -> Request:
    """The same request, in which hierarchies do not list the values of the rows."""
    listed = Climb({"(value)": "(label)"})
    keys = tuple(
        replace(k, rules=tuple(listed if isinstance(r, Climb) else r for r in k.rules))
        for k in request.keys
    )
    return replace(request, keys=keys)


def _levels(plan: GuaranteePlan) -> list[dict[str, Any]]:
    return [
        {"level": i + plan.chain.first, "step": step, "keys": _keys(plan, i), "k": k, "l": l}
        for i, (step, (k, l)) in enumerate(
            zip(level_steps(plan), plan.request.guarantees, strict=True)
        )
    ]


def _keys(plan: GuaranteePlan, level: int) -> str:
    from halfmask.engines.request import Delete, Interval

    shown = []
    for key, planned in zip(plan.request.keys, plan.keys, strict=True):
        depth = key.depths[level]
        rule = key.rules[depth - 1] if depth else None
        if isinstance(rule, Delete):
            continue
        if isinstance(rule, Interval):
            shown.append(f"{planned.name} in steps of {rule.width}")
        elif isinstance(rule, Climb):
            shown.append(f"{planned.name} {depth} up")
        else:
            shown.append(planned.name)
    return ", ".join(shown)


def _promises(plan: GuaranteePlan) -> list[str]:
    words = {
        "people": "at least k people",
        "contributors": "at least k people with a value of {}",
        "diversity": "at least l distinct values of {}",
    }
    return [words[r.what].format(r.column) for r in plan.requirements]


def _with_noise(prepared: NoisePreparation, engine: Engine) -> PrivateExplanation:
    """Of levels that are read apart, errors are those of the most cautious one that is read."""
    from halfmask.dp.accountant import whose_rows
    from halfmask.dp.views import vectors_of
    from halfmask.engines.tallies import tally_query

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
        tuple(engine.sql(tally_query(request)) for request in asked),
        engine.name,
        (*whose.notes(), *whose_rows(source.schema, prepared.rows_per_person)),
    )


def _groups(plan: NoisePlan, views: tuple[View, ...]) -> str:
    if not plan.keys:
        return "none, one row"
    from math import prod

    from halfmask.dp.mechanisms import StableGroups

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


def _noise(views: tuple[View, ...], whose: Audience) -> dict[str, NoisyVector]:
    """Per vector what will be in it, around nothing."""
    import numpy as np

    from halfmask.dp.figures import NoisyVector

    each = whose.weights if whose.apart else (1.0,)
    found: dict[str, list[Any]] = {}
    for view in views:
        found.setdefault(view.vector, []).append(view.mechanism)
    return {
        vector: NoisyVector(np.zeros(1), tuple(zip(each, mechanisms, strict=True)))
        for vector, mechanisms in found.items()
    }


def _error(
    question: Question, plan: NoisePlan, noisy: Mapping[str, NoisyVector], confidence: float
) -> str:
    """How far off a figure may be; what is divided by people depends on how many there are."""
    from halfmask.dp.figures import noisy_figure
    from halfmask.dp.views import count_of, vectors_of

    if question.kind in ("count", "sum"):
        found = noisy_figure(question, count_of(question.column, plan.labels), noisy, confidence)
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
