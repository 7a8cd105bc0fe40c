"""``hm.explain``: the plan of a query, level by level, and the SQL that its engine would run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halfmask.engines.request import Climb
from halfmask.errors import ParameterError
from halfmask.query.run import Session, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.dp.budget import Number
    from halfmask.engines.request import Request
    from halfmask.query.planning.elements import Plan
    from halfmask.query.private.answer import PrivateExplanation

MEANINGS = {
    "selective": "what meets its guarantee is published where it stands, the rest moves up",
    "complete": "as many people as possible are published, at the finest levels that allow it",
    "complete-greedy": "as many people as possible are published; groups are pulled up greedily",
}


@dataclass(frozen=True, slots=True)
class Explanation:
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
        for text in self.sql:
            lines += ["", f"-- {self.engine}", text]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return {
            "levels": list(self.levels),
            "promises": list(self.promises),
            "semantics": self.semantics,
            "sql": list(self.sql),
            "engine": self.engine,
            "notes": list(self.notes),
        }


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
    from halfmask.query.parse import is_private

    with Session(table, engine=engine, schema=schema, floor=floor, tables=tables) as session:
        if epsilon is not None or is_private(sql):
            from halfmask.query.private.answer import NoiseTerms, explain_noise, prepare_noise

            terms = NoiseTerms(epsilon=epsilon, policies=policies, **private)
            return explain_noise(prepare_noise(session, sql, terms), session)
        if private:
            raise ParameterError(sorted(private)[0], "(given)", "epsilon too: it is for noise only")
        plan = session.prepare(sql, policies).plan
        return explain_plan(plan, session)


def explain_plan(plan: Plan, session: Session) -> Explanation:
    """The explanation of a plan."""
    from halfmask.engines.sql import measure_query, parts_query

    request = _without_values(plan.request)
    queries = session.engine.queries(request)
    if plan.measures:
        queries.append(measure_query(request, plan.measures))
    if plan.conditional:
        person = [request.person] if plan.repeat and request.person is not None else []
        splits = (*plan.splits, *plan.missing)
        queries.append(parts_query(request, splits, (*person, *plan.split_values)))
    texts = [re.sub(r"\bhm_policies_\d+", "hm_policies", session.engine.sql(q)) for q in queries]
    return Explanation(
        tuple(_levels(plan)),
        tuple(_promises(plan)),
        f"{plan.semantics}: {MEANINGS[plan.semantics]}",
        tuple(texts),
        session.engine.name,
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


def _levels(plan: Plan) -> list[dict[str, Any]]:
    return [
        {"level": i + plan.chain.first, "step": step, "keys": _keys(plan, i), "k": k, "l": l}
        for i, (step, (k, l)) in enumerate(zip(steps(plan), plan.request.guarantees, strict=True))
    ]


def _keys(plan: Plan, level: int) -> str:
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


def _promises(plan: Plan) -> list[str]:
    words = {
        "people": "at least k people",
        "contributors": "at least k people with a value of {}",
        "diversity": "at least l distinct values of {}",
    }
    return [words[r.what].format(r.column) for r in plan.requirements]
