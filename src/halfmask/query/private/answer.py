"""What is decided before a question under EPSILON is paid for: its plan, promise and views.

``hm.query(..., epsilon=...)``: SQL under differential privacy, exact where the rows are.

The budget is spent before anything is read. The engine adds up bounded contributions; the totals
get noise; select list, HAVING, ORDER BY and LIMIT see noisy figures only.

The plan of a question under differential privacy: what each figure will cost and how far off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from halfmask.dp.accountant import Accountant, unit, whose_rows
from halfmask.dp.budget import Approximate, Number, Pure, budget, given_domains, require_modest
from halfmask.dp.figures import NoisyVector, Stratum, answer, noisy_figure, require_confidence
from halfmask.dp.ledger import BudgetLedger
from halfmask.dp.mechanisms import StableGroups
from halfmask.dp.views import GroupRule, View, count_of, vectors_of, views_of
from halfmask.engines.levels import tally_query
from halfmask.errors import ParameterError, QueryError, UnsupportedQueryError
from halfmask.models.verdict import require_whole
from halfmask.query.parse import NoiseStatement, parse_private
from halfmask.query.private.parts import ExactGroups, collect_totals
from halfmask.query.private.personal import Audience, audience
from halfmask.query.private.plan import NoisePlan, plan_private
from halfmask.release.candidate import NoiseCandidate
from halfmask.release.seal import seal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.dp.budget import Budget, Number
    from halfmask.dp.figures import NoisyAnswer
    from halfmask.dp.views import ExactCounts, Question, View
    from halfmask.query.private.personal import Audience
    from halfmask.query.private.plan import NoisePlan
    from halfmask.query.run import Session
    from halfmask.release.release import PrivateRelease


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NoisePreparation:
    """A question that is ready to be answered or explained; nothing is spent."""

    statement: NoiseStatement
    plan: NoisePlan
    audience: Audience
    rows_per_person: int
    confidence: float

    @property
    def promise(self) -> Pure | Approximate:
        """What it costs those who pay most."""
        return self.audience.promise

    @property
    def groups(self) -> GroupRule:
        """How groups are found."""
        return "public" if self.plan.public else "threshold"

    def views(self) -> tuple[View, ...]:
        """The noisy views that will be read; of levels that are read apart, those of all."""
        limits = [unit(self.promise) if self.plan.public else self.promise]
        if self.audience.apart:
            limits = [self.audience.limit(code) for code in self.audience.read]
        return tuple(
            view
            for limit in limits
            for view in views_of(
                self.plan.questions,
                self.plan.labels,
                limit,
                self.rows_per_person,
                groups=self.groups,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTerms:
    """What a call states beside the query; the clause behind the query may state some of it.

    Attributes:
        epsilon: what it may cost, where the clause does not say; people who state less, or have
            less left, are left out. ``"personal"``: everybody's own, which the schema's policy
            names.
        delta: the chance that nothing is promised, where the clause does not say.
        domains: public values or bounds by column, besides those of the schema; a path is TOML.
        rows_per_person: how many rows of one person count; 1 where nobody says.
        confidence: of each interval; 0.95 where nobody says.
        share: with personal epsilons, the share of everybody's own to spend.
        demands: ``"ignore"`` sets people's own epsilons aside, by the controller.
        insist: whether an epsilon above 20 or a delta above 0.0001 is meant.
        policies: more demands of people, which may be keyed by person.
    """

    epsilon: Number | Literal["personal"] | None = None
    delta: Number | None = None
    domains: Mapping[str, object] | str | PathLike[str] | None = None
    rows_per_person: int | None = None
    confidence: float | None = None
    share: Number | None = None
    demands: str = "keep"
    insist: bool = False
    policies: object = None


def prepare_noise(
    session: Session, sql: str, terms: NoiseTerms, accountant: Accountant | None = None
) -> NoisePreparation:
    """Decide everything that can be decided before the budget is spent."""
    epsilon, delta = terms.epsilon, terms.delta
    statement = parse_private(sql)
    most = _stated("rows_per_person", statement.rows_per_person, terms.rows_per_person, 1)
    require_whole("rows_per_person", most, 1)
    sure = _stated("confidence", statement.confidence, terms.confidence, 0.95)
    require_confidence(sure)
    plan = plan_private(
        statement,
        session.catalog,
        session.engine,
        domains=given_domains(terms.domains),
        rows_per_person=most,
        policies=terms.policies,
    )
    own = epsilon == "personal" or (statement.personal and epsilon is None)
    part = _stated("share", statement.share, terms.share, None)
    if part is not None and not own:
        raise ParameterError("share", str(part), "it with PERSONAL EPSILON only")
    promise = None
    if own:
        chance = statement.delta if delta is None else delta
    else:
        chance = 0
        promise = _promise(statement, epsilon, delta)
        require_modest(promise, insist=terms.insist)
        _require_groups(plan, statement, promise)
    whose = audience(
        plan,
        statement,
        promise,
        delta=chance,
        share=1 if part is None else part,
        demands=terms.demands,
        accountant=accountant,
    )
    require_modest(whose.promise, insist=terms.insist)
    return NoisePreparation(statement, plan, whose, most, sure)


def _promise(
    statement: NoiseStatement, epsilon: Number | None, delta: Number | None
) -> Pure | Approximate:
    """The budget, stated once: in the clause or in the call."""
    if (statement.epsilon or statement.personal) and (epsilon is not None or delta is not None):
        raise QueryError(
            "the budget is stated twice, here and in the call: keep one.",
            text=statement.text,
            start=statement.start,
            length=12,
        )
    if statement.epsilon:
        return budget(statement.epsilon, statement.delta)
    if epsilon is None:
        raise QueryError(
            "the query states no budget: add WITH EPSILON 1.0 behind it.",
            text=statement.text,
            start=statement.start,
        )
    return budget(epsilon, 0 if delta is None else delta)


def _stated(name: str, written: T | None, given: T | None, default: T) -> T:
    if written is not None and given is not None and written != given:
        raise ParameterError(name, given, "it in the query or in the call, not both")
    return written if written is not None else given if given is not None else default


def _require_groups(plan: NoisePlan, statement: NoiseStatement, promise: Budget) -> None:
    """Groups that nobody declared need a delta."""
    if plan.public or (isinstance(promise, Approximate) and promise.delta):
        return
    unknown = next(key.name for key in plan.keys if key.domain is None)
    at = statement.text.lower().rfind(unknown.lower(), 0, statement.start)
    raise UnsupportedQueryError(
        f"the groups of {unknown} are not public: declare domain = [...] for it in the schema (or "
        "domains=...), or add DELTA 1e-6, and only groups far above one person are shown.",
        text=statement.text,
        start=max(at, 0),
        length=len(unknown),
    )


def answer_with_noise(
    session: Session, sql: str, terms: NoiseTerms, ledger: object = None
) -> PrivateRelease:
    """Answer SQL with noise, for a budget that is spent first.

    Args:
        session: the table and its engine.
        sql: one SELECT, with or without the clause ``WITH EPSILON ...``.
        terms: what the call states beside it.
        ledger: a ``BudgetLedger`` or an ``Accountant`` that keeps the budget of this table.

    Raises:
        QueryError: noise cannot answer this; says where and what to do.
        BudgetExceededError: less than this is left; nothing was read.
    """
    keeper = _keeper(ledger)
    ready = prepare_noise(session, sql, terms, keeper)
    if ready.statement.explain:
        raise QueryError(
            "EXPLAIN asks for the plan only: use --explain or hm.explain.", text=sql, start=0
        )
    plan, whose, most = ready.plan, ready.audience, ready.rows_per_person
    ready.views()  # what noise cannot serve is refused before it is paid
    keeper = keeper or Accountant(ready.promise)
    source = plan.scope.tables[plan.scope.main]
    allowance = keeper.allow(
        ready.promise,
        "query",
        rows_per_person=most,
        as_promised=not plan.public,
        scope=whose.spender(source, plan.parts.get(keeper.partition)),
    )
    found = collect_totals(plan, session.engine, whose)
    told = answer(
        plan.questions,
        _strata(whose, found),
        allowance,
        groups=ready.groups,
        confidence=ready.confidence,
        mixture=whose.mixture,
    )
    rows = _rows(plan, found, told)
    candidate = NoiseCandidate(
        rows,
        allowance.receipt(),
        plan.sizes,
        "query",
        {
            **whose.parameters(),
            "sql": sql,
            "engine": session.engine.name,
            "groups": ready.groups,
            "confidence": ready.confidence,
            "rows_per_person": most,
        },
        (*whose.notes(), *whose_rows(source.schema, most), *_notes(plan, ledger)),
        schema=source.schema,
    )
    return seal(candidate)


def _strata(whose: Audience, found: ExactGroups) -> ExactCounts | list[Stratum]:
    """The exact figures, each level with its weight where levels are read apart."""
    if not whose.apart or whose.levels is None:
        return found.exact[0]
    return [
        Stratum(whose.levels.epsilons[code], exact, weight)
        for code, exact, weight in zip(whose.read, found.exact, whose.weights, strict=True)
    ]


def _keeper(ledger: object) -> Accountant | None:
    if ledger is None:
        return None
    if isinstance(ledger, BudgetLedger):
        return Accountant.of(ledger)
    if isinstance(ledger, Accountant):
        return ledger
    raise ParameterError(
        "ledger", type(ledger).__name__, "a BudgetLedger or an Accountant under EPSILON"
    )


def _rows(plan: NoisePlan, found: ExactGroups, told: NoisyAnswer) -> pa.Table:
    """The asker's columns, each bare aggregate with its interval behind it."""
    from halfmask.engines.duckdb import finish

    shown = np.flatnonzero(told.published)
    columns = {f"k{i}": values.take(pa.array(shown)) for i, values in enumerate(found.keys)}
    whole = [question.kind == "count" for question in plan.questions]
    for i, one in enumerate(told.figures):
        columns[f"a{i}"] = _numbers(one.values[shown], whole=whole[i])
    columns["level"] = pa.array(np.zeros(len(shown), np.int64))
    columns["hm_row"] = columns["hm_order"] = pa.array(np.arange(len(shown)))
    asked = finish(pa.table(columns), plan.final)
    order = shown[asked["hm_row"].to_numpy()]
    out: dict[str, pa.Array] = {}
    taken = {name.lower() for name in plan.names}
    for place, (name, bare) in enumerate(zip(plan.names, plan.bare, strict=True)):
        out[name] = asked.column(place).combine_chunks()
        if bare is None:
            continue
        figure = told.figures[bare]
        for end, values in (("low", figure.low), ("high", figure.high)):
            label = f"{name}_{end}"
            while label.lower() in taken:
                label += "_"
            taken.add(label.lower())
            out[label] = _numbers(values[order], whole=whole[bare])
    return pa.table(out)


def _numbers(values: NDArray[np.float64], *, whole: bool) -> pa.Array:
    return pa.array(np.rint(values).astype(np.int64) if whole else values)


def _notes(plan: NoisePlan, ledger: object) -> tuple[str, ...]:
    notes = [
        "Noise is in every figure, also in those of empty groups: small counts may fall below 0."
    ]
    if not plan.public:
        notes.append("Groups are not public: those near or below the threshold are not shown.")
    if ledger is None:
        notes.append("No ledger was given: other releases of this table add to its epsilon.")
    return tuple(notes)


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


def explain_noise(prepared: NoisePreparation, session: Session) -> PrivateExplanation:
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
        (*whose.notes(), *whose_rows(source.schema, prepared.rows_per_person)),
    )


def _groups(plan: NoisePlan, views: tuple[View, ...]) -> str:
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


def _noise(views: tuple[View, ...], whose: Audience) -> dict[str, NoisyVector]:
    """Per vector what will be in it, around nothing."""
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
