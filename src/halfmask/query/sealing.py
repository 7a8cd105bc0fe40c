"""Hand an answer to the door: the rows as asked for, and all that is needed to check them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.engines.request import Measure
from halfmask.release.answer_candidate import AnswerCandidate, Promise, Shares

if TYPE_CHECKING:
    import pyarrow as pa

    from halfmask.engines.request import Engine
    from halfmask.query.filter import Choice, Published
    from halfmask.query.groups import Groups
    from halfmask.query.planning.planned import Plan

CONDITIONAL = (
    "A figure that depends on a condition is empty where those who meet it, or those who do not, "
    "are fewer people, or have fewer values, than the row's guarantee asks for."
)
DOMINATED = "A sum or average is empty where few people make up too much of it."


def candidate_of(
    plan: Plan,
    groups: Groups,
    choice: Choice,
    published: Published,
    rows: pa.Table,
    engine: Engine,
    *,
    second_look: bool,
    parts: pa.Table | None = None,
    shares: Shares | None = None,
) -> AnswerCandidate:
    """Apply the select list, HAVING, ORDER BY and LIMIT to the published rows; gather the rest."""
    import pyarrow as pa

    from halfmask.engines.duckdb import finish

    return AnswerCandidate(
        rows=finish(rows, plan.final),
        groups=groups.states.append_column("place", pa.array(published.ids)),
        places=published.level,
        request=plan.request,
        promises=promises(plan),
        steps=steps(plan),
        first=plan.chain.first,
        refused=(groups.refused, groups.largest_refused),
        without_policy=groups.without_policy,
        semantics=plan.semantics,
        gap=choice.gap,
        engine=engine.name,
        sql=plan.statement.text,
        notes=_notes(plan, published, shares),
        below=_below(plan, groups, published, engine) if plan.repeat else None,
        counted=_second_look(plan, groups, published, engine) if second_look else None,
        figures=rows.select(["hm_row", *plan.conditional, *(shares.figures if shares else ())]),
        conditional=len(plan.conditional),
        parts=parts,
        shares=shares,
    )


def promises(plan: Plan) -> tuple[Promise, ...]:
    """What every published row must reach."""
    found = []
    for r in plan.requirements:
        thresholds = tuple(r.threshold(k, l) for k, l in plan.request.guarantees)
        if r.test is None:
            column = "rows" if r.state is None else f"s{r.state}"
            found.append(Promise(r.what, r.column, thresholds, column))
        else:
            found.append(
                Promise(
                    r.what,
                    r.column,
                    thresholds,
                    f"t{r.test}_n",
                    f"t{r.test}_values",
                    plan.request.tests[r.test].cap,
                )
            )
    return tuple(found)


def steps(plan: Plan) -> tuple[str, ...]:
    """Per level, what was generalized to get there."""
    return tuple("as grouped" if x.step is None else str(x.step) for x in plan.chain.levels)


def _notes(plan: Plan, published: Published, shares: Shares | None) -> tuple[str, ...]:
    notes = list(plan.notes)
    if not len(published):
        notes.append("No group meets its guarantee: nothing could be published.")
    if plan.conditional:
        notes.append(CONDITIONAL)
    if shares is not None:
        notes.append(DOMINATED)
    if plan.repeat:
        notes.append(
            "People with several rows count once for each row of the answer they stand in."
        )
    return tuple(notes)


def _below(plan: Plan, groups: Groups, published: Published, engine: Engine) -> int:
    """How many people have rows below the guarantee, each once however many groups there are."""
    import numpy as np

    from halfmask.query.aggregate import places

    left = published.ids < 0
    person = plan.request.person
    if person is None or not left.any():
        return 0
    one = replace(published, ids=np.where(left, 0, -1))
    found = engine.measure(plan.request, places(plan, groups, one), (Measure("distinct", person),))
    return int(found["m0"][0].as_py())


def _second_look(
    plan: Plan, groups: Groups, published: Published, engine: Engine
) -> pa.Table | None:
    """Count every promise once more, from the rows."""
    from sqlglot import exp

    from halfmask.query.aggregate import places

    if not len(published):
        return None
    measures = []
    for r in plan.requirements:
        if r.test is not None:
            measures.append(Measure("distinct", plan.request.tests[r.test].expression))
        else:
            counted = (
                exp.Literal.number(1)
                if r.state is None
                else (plan.request.states[r.state].expression)
            )
            measures.append(Measure("rows", counted))
    if plan.request.demands is not None:
        measures += [Measure("max", d) for d in plan.request.demands]
    return engine.measure(plan.request, places(plan, groups, published), tuple(measures))
