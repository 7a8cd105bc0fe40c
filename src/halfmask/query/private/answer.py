"""``hm.query(..., epsilon=...)``: SQL under differential privacy, exact where the rows are.

The budget is spent before anything is read. The engine adds up bounded contributions; the totals
get noise; select list, HAVING, ORDER BY and LIMIT see noisy figures only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from halfmask.dp.accountant import Accountant
from halfmask.dp.answers import Stratum, answer
from halfmask.dp.ledger import BudgetLedger
from halfmask.errors import ParameterError, QueryError
from halfmask.query.private.groups import Grouped, collected
from halfmask.query.private.prepare import prepare_privately
from halfmask.release.seal_private import Draft, seal_private

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.dp.answers import Answered
    from halfmask.dp.budget import Number
    from halfmask.dp.questions import Exact
    from halfmask.query.private.personal import Audience
    from halfmask.query.private.plan import PrivatePlan
    from halfmask.query.run import Session
    from halfmask.release.private import PrivateRelease


def answer_privately(
    session: Session,
    sql: str,
    *,
    epsilon: Number | Literal["personal"] | None = None,
    delta: Number | None = None,
    domains: Mapping[str, object] | str | PathLike[str] | None = None,
    rows_per_person: int | None = None,
    confidence: float | None = None,
    share: Number | None = None,
    demands: str = "keep",
    insist: bool = False,
    ledger: object = None,
) -> PrivateRelease:
    """Answer SQL with noise, for a budget that is spent first.

    Args:
        session: the table and its engine.
        sql: one SELECT, with or without the clause ``WITH EPSILON ...``.
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
        ledger: a ``BudgetLedger`` or an ``Accountant`` that keeps the budget of this table.

    Raises:
        QueryError: noise cannot answer this; says where and what to do.
        BudgetExceededError: less than this is left; nothing was read.
    """
    keeper = _keeper(ledger)
    ready = prepare_privately(
        session,
        sql,
        epsilon=epsilon,
        delta=delta,
        domains=domains,
        rows_per_person=rows_per_person,
        confidence=confidence,
        share=share,
        demands=demands,
        insist=insist,
        accountant=keeper,
    )
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
    found = collected(plan, session.engine, whose)
    told = answer(
        plan.questions,
        _strata(whose, found),
        allowance,
        groups=ready.groups,
        confidence=ready.confidence,
        mixture=whose.mixture,
    )
    rows = _rows(plan, found, told)
    draft = Draft(
        rows,
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
        (*whose.notes(), *_notes(plan, ledger)),
        schema=source.schema,
    )
    return seal_private(draft, allowance.receipt())


def _strata(whose: Audience, found: Grouped) -> Exact | list[Stratum]:
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


def _rows(plan: PrivatePlan, found: Grouped, told: Answered) -> pa.Table:
    """The asker's columns, each bare aggregate with its interval behind it."""
    from halfmask.engines.duckdb import finish

    shown = np.flatnonzero(told.published)
    columns = {f"k{i}": values.take(pa.array(shown)) for i, values in enumerate(found.keys)}
    whole = [question.kind == "count" for question in plan.questions]
    for i, figure in enumerate(told.figures):
        columns[f"a{i}"] = _numbers(figure.values[shown], whole=whole[i])
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


def _notes(plan: PrivatePlan, ledger: object) -> tuple[str, ...]:
    notes = [
        "Noise is in every figure, also in those of empty groups: small counts may fall below 0."
    ]
    if not plan.public:
        notes.append("Groups are not public: those near or below the threshold are not shown.")
    if plan.scope.person is None:
        notes.append("The table has no person column: each row counts as another person.")
    if ledger is None:
        notes.append("No ledger was given: other releases of this table add to its epsilon.")
    return tuple(notes)
