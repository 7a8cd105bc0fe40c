"""A question made ready: its plan over the common schema, and the layout of its records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from halfmask.engines.request import AggregateState, Interval, kind_of
from halfmask.errors import UnsupportedQueryError
from halfmask.protocol.common_schema import Terms, named_columns
from halfmask.protocol.contribution import MOST_GROUPS, PEOPLE, categories
from halfmask.protocol.publication import plan_release
from halfmask.protocol.records.layout import KeyField, Packing, RecordLayout, StateField
from halfmask.protocol.records.sketches import LISTED, SKETCH
from halfmask.query.planning.guarantee import Requirement

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from halfmask.engines.request import GroupMeasure, Key
    from halfmask.protocol.common_schema import CommonSchema, CommonTable
    from halfmask.query.planning.aggregates import PlannedAggregate
    from halfmask.query.planning.guarantee import GuaranteePlan

_PACKINGS: dict[str, Packing] = {
    "integer": "number",
    "boolean": "number",
    "temporal": "number",
    "decimal": "number",
    "float": "float",
    "text": "text",
}


@dataclass(frozen=True, eq=False)
class CellPlan:
    """What every party derives from a question by itself.

    Attributes:
        plan: as ``hm.query`` makes it, over tables that nobody holds together.
        layout: the records.
        aggregated: the columns whose values enter the answer; ``*`` where people are counted.
        touched: the columns, in lower case, whose demands count: all that are named anywhere.
        terms: how the work is cut up, and what filtering does.
        shown: the common table of which a release shows rows; None: an answer is asked for.
    """

    plan: GuaranteePlan
    layout: RecordLayout
    aggregated: frozenset[str]
    touched: frozenset[str]
    terms: Terms = field(default_factory=Terms)
    shown: CommonTable | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are grouped by, as a release shows them."""
        return [key.expression.name for key in self.plan.request.keys]

    @property
    def diverse(self) -> list[str]:
        """The sensitive columns that a release shows: of these it keeps everybody's l."""
        known = () if self.shown is None else self.shown.schema.sensitive
        return [name for name in self.names if name in known]

    @property
    def uncounted(self) -> frozenset[str]:
        """The columns that are touched and whose values l does not count."""
        if self.shown is not None:
            return self.touched - {name.lower() for name in self.diverse}
        return frozenset(column.name.lower() for column in self.plan.uncounted)

    @property
    def sensitive(self) -> bool:
        """Whether one of these is sensitive."""
        if self.shown is not None:
            return any(name.lower() in self.uncounted for name in self.shown.schema.sensitive)
        return any(self.plan.scope.role(column) == "sensitive" for column in self.plan.uncounted)

    @property
    def measured(self) -> dict[str, exp.Expr]:
        """What is measured, by the names that the layout gives it."""
        kinds: dict[str, list[exp.Expr]] = {"distinct": [], "median": []}
        for measure in self.plan.measures:
            kinds[measure.kind].append(measure.expression)
        first = len(self.plan.request.tests)
        found = {f"v{first + j}": e for j, e in enumerate(kinds["distinct"])}
        return found | {f"h{i}": e for i, e in enumerate(kinds["median"])}


def plan_for_cells(
    commons: CommonSchema, text: str, terms: Terms | None = None, salt: bytes = b""
) -> CellPlan:
    """Plan a question.

    Raises:
        QueryError: it cannot be understood, or cells cannot answer it.
    """
    terms = terms or Terms()
    made = _plan(commons, text, terms.text, commons.floor)
    made = replace(made, terms=terms)
    if terms.noise or terms.epsilon:
        _refuse_noise(made)
    if terms.release:
        made = plan_release(commons, made)
    if salt or terms.noise:
        made = replace(made, layout=replace(made.layout, salt=salt, noisy=terms.noise))
    return made


@lru_cache(maxsize=32)
def _plan(commons: CommonSchema, text: str, text_width: int, floor: int) -> CellPlan:
    from sqlglot import exp

    from halfmask.engines.duckdb.engine import DuckDB
    from halfmask.query.parse import parse, raise_to_floor
    from halfmask.query.planning.guarantee import plan_guarantee

    # Types are all that is asked for: nobody holds the rows together.
    engine = DuckDB({name: t.arrow.empty_table() for name, t in commons.tables.items()})
    try:
        planned = plan_guarantee(raise_to_floor(parse(text), floor), commons.catalog(), engine)
        _refuse(planned)
        # What is left (COUNT of a column) is counted as SUM and AVG of it are.
        plain = tuple(replace(a, conditional=False) for a in planned.aggregates)
        planned = replace(_within_limits(_with_values(planned)), aggregates=plain, missing=())
        counting = len(planned.request.states)
        planned = _by_person(_with_absences(planned))
        request = planned.request
        wanted = [*(k.expression for k in request.keys), *(s.expression for s in request.states)]
        probe = request.source.copy()
        for i, expression in enumerate(wanted or [exp.Literal.number(1)]):
            probe = probe.select(exp.alias_(expression.copy(), f"x{i}", quoted=True))
        types = [field.type for field in engine.run(probe.limit(0)).schema]
    finally:
        engine.close()
    # Demands are joined by each cell itself; the request says that there are some.
    one = exp.Literal.number(1)
    planned = replace(planned, request=replace(request, demands=(one, one.copy())))
    keys = tuple(
        _key(commons, planned, k, t, text_width) for k, t in zip(request.keys, types, strict=False)
    )
    states = tuple(
        StateField(
            s.kind,
            t,
            _packing(t, s.kind),
            text_width if _packing(t, s.kind) == "text" else 8,
            getattr(t, "scale", 0) or 0,
            once=i >= counting,
        )
        for i, (s, t) in enumerate(zip(request.states, types[len(request.keys) :], strict=False))
    )
    histograms = tuple(_values(commons, planned, m) for m in planned.measures if m.kind == "median")
    sketches = len(planned.measures) - len(histograms)
    caps = (*(t.cap for t in request.tests), *(SKETCH for _ in range(sketches)))
    layout = RecordLayout(keys, states, caps, sketches=sketches, histograms=histograms)
    queried = frozenset(name.lower() for name in planned.queried)
    # By the plan, and by the text read apart from it: what one misses the other counts.
    touched = queried | named_columns(commons, text)
    return CellPlan(planned, layout, _aggregated_columns(planned), touched)


def _refuse(plan: GuaranteePlan) -> None:
    text = plan.statement.text
    if plan.statement.explain:
        raise UnsupportedQueryError(
            "EXPLAIN cannot be asked of cells: explain it on a table.", text=text, start=0
        )
    if set(plan.splits) - set(plan.limits) or any(
        not _of_one_column(test) for test in plan.missing
    ):
        raise UnsupportedQueryError(
            "An aggregate that depends on a condition or a choice (FILTER, CASE, COALESCE, a "
            "comparison ...) cannot be checked by cells: put it in WHERE or GROUP BY.",
            text=text,
            start=0,
        )
    if any(measure.kind not in ("distinct", "median") for measure in plan.measures):
        raise UnsupportedQueryError(
            "Cells answer no other measures than COUNT(DISTINCT ...) and MEDIAN.",
            text=text,
            start=0,
        )


def _values(commons: CommonSchema, plan: GuaranteePlan, measure: GroupMeasure) -> pa.Array:
    """The values that a median is read from.

    Raises:
        UnsupportedQueryError: they are not listed, so that no cell could tell a median from the
            rows of single people.
    """
    column = _listed_values(commons, plan, measure.expression)
    numeric = column is not None and kind_of(column.type) in ("integer", "decimal", "float")
    if column is None or not numeric or len(column) > LISTED:
        raise UnsupportedQueryError(
            "Cells read a MEDIAN from the numbers of people per value: they answer it for a "
            f"column whose values, at most {LISTED}, the common schema lists. For another one, "
            "group by intervals and count.",
            text=plan.statement.text,
            start=0,
        )
    return column


def _listed_values(
    commons: CommonSchema, plan: GuaranteePlan, expression: exp.Expr
) -> pa.Array | None:
    """The values that the common schema lists of a column."""
    from sqlglot import exp

    if not isinstance(expression, exp.Column):
        return None
    table = commons.tables[plan.scope.tables[expression.table].name]
    return table.domains.get(expression.name)


def _of_one_column(missing: exp.Expr) -> bool:
    """Whether a test for missing values speaks of a bare column, as COUNT(column) does."""
    from sqlglot import exp

    test = missing.find(exp.Is)
    return test is not None and isinstance(test.this.unnest(), exp.Column)


def _with_values(plan: GuaranteePlan) -> GuaranteePlan:
    """Have at least k people with a value behind COUNT(column) and COUNT(DISTINCT column)."""
    from sqlglot import exp

    states, needed = list(plan.request.states), list(plan.requirements)
    for test in plan.missing:
        known = test.find(exp.Column)
        if known is None or any(
            r.what == "contributors" and r.column == known.name for r in needed
        ):
            continue
        states.append(AggregateState("count", known.copy()))
        needed.append(Requirement("contributors", known.name, None, len(states) - 1))
    request = replace(plan.request, states=tuple(states))
    return replace(plan, request=request, requirements=tuple(needed))


def absence(column: exp.Expr) -> exp.Expr:
    """A value where a column has none: who has such a row stands in the part without a value."""
    from sqlglot import exp

    missing = column.copy().is_(exp.null())
    return exp.Case().when(missing, exp.Literal.number(1), copy=False)


def _with_absences(plan: GuaranteePlan) -> GuaranteePlan:
    """Have the people counted who have a row without a value, whatever their other rows hold."""
    counts = {plan.request.states[a.states[0]].expression for a in plan.aggregates
              if a.kind == "count" and a.states != (-1,)}  # fmt: skip
    counts |= {m.expression for m in plan.measures if m.kind == "distinct"}
    known = {r.column for r in plan.requirements if r.what == "contributors"}
    named = sorted({c.name: c for c in counts if c.name in known}.items())
    more = (AggregateState("count", absence(column)) for _, column in named)
    return replace(plan, request=replace(plan.request, states=(*plan.request.states, *more)))


def _within_limits(plan: GuaranteePlan) -> GuaranteePlan:
    """Leave out rows in which a number meets a limit or a date has no value: they make a part."""
    from sqlglot import exp

    source = plan.request.source
    for limit in plan.limits:
        source = source.where(exp.EQ(this=limit.copy(), expression=exp.Literal.number(0)))
    request = replace(plan.request, source=source)
    return replace(plan, request=request, splits=(), limits=())


def _by_person(plan: GuaranteePlan) -> GuaranteePlan:
    """Have people counted apart from rows: a cell may hold several rows of its person.

    The states that count people come last, the number of all people at the very end.
    """
    from sqlglot import exp

    states = list(plan.request.states)
    needed = []
    for requirement in reversed(plan.requirements):
        if requirement.test is None:
            counted: exp.Expr = (
                exp.Literal.number(1)
                if requirement.state is None
                else plan.request.states[requirement.state].expression
            )
            states.append(AggregateState("count", counted.copy()))
            requirement = replace(requirement, state=len(states) - 1)
        needed.append(requirement)
    request = replace(plan.request, states=tuple(states))
    return replace(plan, request=request, requirements=tuple(reversed(needed)))


def _refuse_noise(made: CellPlan) -> None:
    from sqlglot import exp

    plan, layout = made.plan, made.layout
    # Noise at filtering hides it: who meets a condition counts once more or less.
    exactly = made.terms.noise and plan.request.source.find(exp.Where, exp.Join)
    if exactly:
        raise UnsupportedQueryError(
            "With noise cells answer without WHERE and JOIN: who meets them would leave exactly. "
            "Group by the column instead.",
            text=plan.statement.text,
            start=0,
        )
    counts = all(a.states == (-1,) for a in plan.aggregates)
    domains = layout.keys and all(key.domain is not None for key in layout.keys)
    if not counts or not domains or len(plan.chain.levels) > 1 or plan.requirements[1:]:
        raise UnsupportedQueryError(
            "With noise cells answer COUNT(*) only, by columns whose values the common schema "
            "lists, with one guarantee on k.",
            text=plan.statement.text,
            start=0,
        )
    most = min(MOST_GROUPS, made.terms.room) if made.terms.epsilon else MOST_GROUPS
    if categories(layout) > most:
        raise UnsupportedQueryError(
            f"There are more than {most:,} possible groups: noise would drown them, or there is no "
            "room for all of them.",
            text=plan.statement.text,
            start=0,
        )


def _key(
    commons: CommonSchema, plan: GuaranteePlan, key: Key, kind: pa.DataType, text_width: int
) -> KeyField:
    whole = not any(isinstance(rule, Interval) for rule in key.rules)
    domain = _listed_values(commons, plan, key.expression) if whole else None
    if domain is not None:
        return KeyField(domain.type, "code", 4, domain)
    packing = _packing(kind, "min")
    return KeyField(kind, packing, text_width if packing == "text" else 8)


def _packing(kind: pa.DataType, state: str) -> Packing:
    packing = _PACKINGS.get(kind_of(kind))
    if state == "count":
        return "number"
    if state == "moments":
        return "float"
    if packing is None:
        raise UnsupportedQueryError("A column of this query is of a type that cells cannot send.")
    return packing


def _aggregated_columns(plan: GuaranteePlan) -> frozenset[str]:
    """The columns whose values an answer could be subtracted from another for.

    Where people are counted, in whatever words, every column that is read decides who is counted.
    """
    from sqlglot import exp

    found: set[str] = set()
    ways: dict[str, set[str]] = {}
    counted = not plan.aggregates
    for aggregate in plan.aggregates:
        for of in _arguments(plan, aggregate):
            found |= {column.name for column in of.find_all(exp.Column)}
            # Of a bare column no count can be made; of an expression, such as s * 0 + 1, it can.
            counted = counted or not isinstance(of, exp.Column)
            if aggregate.kind not in ("min", "max"):
                ways.setdefault(of.sql(), set()).add(aggregate.kind)
        counted = counted or aggregate.kind in ("count", "distinct")
    # SUM over AVG, and one kind of variance over the other, are counts as well.
    if counted or any(len(kinds) > 1 for kinds in ways.values()):
        read = [plan.request.source, *(key.expression for key in plan.request.keys)]
        found |= {PEOPLE, *(column.name for part in read for column in part.find_all(exp.Column))}
    return frozenset(found)


def _arguments(plan: GuaranteePlan, aggregate: PlannedAggregate) -> list[exp.Expr]:
    states = [plan.request.states[state].expression for state in aggregate.states if state >= 0]
    if aggregate.measure is None:
        return states
    return [*states, plan.measures[aggregate.measure].expression]
