"""``hm.query(..., epsilon=...)``: SQL under differential privacy, exact where the rows are.

The budget is spent before anything is read. The engine adds up bounded contributions; the totals
get noise; select list, HAVING, ORDER BY and LIMIT see noisy figures only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from halfmask.dp.accountant import Accountant
from halfmask.dp.answers import answer, require_confidence
from halfmask.dp.budget import Approximate, Number, budget
from halfmask.dp.declared import given_domains
from halfmask.dp.ledger import BudgetLedger
from halfmask.errors import ParameterError, QueryError, UnsupportedQueryError
from halfmask.query.private_clause import PrivateStatement, parse_private
from halfmask.query.private_groups import Grouped, collected
from halfmask.query.private_plan import PrivatePlan, plan_private
from halfmask.release.seal_private import Draft, seal_private

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance
    from halfmask.dp.answers import Answered
    from halfmask.dp.budget import Budget
    from halfmask.query.run import Session
    from halfmask.release.private import PrivateRelease

T = TypeVar("T")


def answer_privately(
    session: Session,
    sql: str,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    domains: Mapping[str, object] | str | PathLike[str] | None = None,
    rows_per_person: int | None = None,
    confidence: float | None = None,
    ledger: object = None,
) -> PrivateRelease:
    """Answer SQL with noise, for a budget that is spent first.

    Args:
        session: the table and its engine.
        sql: one SELECT, with or without the clause ``WITH EPSILON ...``.
        epsilon: what it may cost, where the clause does not say.
        delta: the chance that nothing is promised, where the clause does not say.
        domains: public values or bounds by column, besides those of the schema; a path is TOML.
        rows_per_person: how many rows of one person count; 1 where nobody says.
        confidence: of each interval; 0.95 where nobody says.
        ledger: a ``BudgetLedger`` or an ``Accountant`` that keeps the budget of this table.

    Raises:
        QueryError: noise cannot answer this; says where and what to do.
        BudgetExceededError: less than this is left; nothing was read.
    """
    statement = parse_private(sql)
    promise = _promise(statement, epsilon, delta)
    most = _stated("rows_per_person", statement.rows_per_person, rows_per_person, 1)
    sure = _stated("confidence", statement.confidence, confidence, 0.95)
    require_confidence(sure)
    plan = plan_private(
        statement,
        session.catalog,
        session.engine,
        domains=given_domains(domains),
        rows_per_person=most,
    )
    _require_groups(plan, statement, promise)
    allowance = _keeper(ledger, promise).allow(
        promise, "query", rows_per_person=most, as_promised=not plan.public
    )
    found = collected(plan, session.engine)
    told = answer(
        plan.questions,
        found.exact,
        allowance,
        groups="public" if plan.public else "threshold",
        confidence=sure,
    )
    rows = _rows(plan, found, told)
    draft = Draft(
        rows,
        plan.sizes,
        "query",
        {
            "sql": sql,
            "engine": session.engine.name,
            "groups": "public" if plan.public else "threshold",
            "confidence": sure,
            "rows_per_person": most,
        },
        _notes(plan, ledger, allowance),
    )
    return seal_private(draft, allowance.receipt())


def _promise(statement: PrivateStatement, epsilon: Number | None, delta: Number | None) -> Budget:
    """The budget, stated once: in the clause or in the call."""
    if statement.epsilon and (epsilon is not None or delta is not None):
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


def _require_groups(plan: PrivatePlan, statement: PrivateStatement, promise: Budget) -> None:
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


def _keeper(ledger: object, promise: Budget) -> Accountant:
    if ledger is None:
        return Accountant(promise)
    if isinstance(ledger, BudgetLedger):
        return Accountant.of(ledger)
    if isinstance(ledger, Accountant):
        return ledger
    raise ParameterError(
        "ledger", type(ledger).__name__, "a BudgetLedger or an Accountant under EPSILON"
    )


def _rows(plan: PrivatePlan, found: Grouped, told: Answered) -> pa.Table:
    """The asker's columns, each bare aggregate with its interval behind it."""
    from halfmask.engines.duckdb import finish

    shown = np.flatnonzero(told.published)
    columns = {f"k{i}": values.take(pa.array(shown)) for i, values in enumerate(found.keys)}
    whole = [question.kind == "count" for question in plan.questions]
    for i, figure in enumerate(told.figures):
        columns[f"a{i}"] = _numbers(figure.values[shown], whole=whole[i])
    columns["level"] = pa.array(np.zeros(len(shown), np.int64))
    columns["hm_row"] = pa.array(np.arange(len(shown)))
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
    return pa.array(values.astype(np.int64) if whole else values)


def _notes(plan: PrivatePlan, ledger: object, allowance: Allowance) -> tuple[str, ...]:
    notes = [
        "Noise is in every figure, also in those of empty groups: small counts may fall below 0."
    ]
    if not plan.public:
        notes.append("Groups are not public: those near or below the threshold are not shown.")
    if plan.scope.person is None:
        notes.append("The table has no person column: each row counts as another person.")
    if ledger is None:
        notes.append("No ledger was given: other releases of this table add to its epsilon.")
    del allowance
    return tuple(notes)
