"""The plan of a query under guarantees: what every published row must reach, level by level.

It knows the request for the engine, how its groups are tested at each level of the chain, and the
rules by which grouping columns are generalized from one level to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

import pyarrow as pa

from halfmask.engines.request import (
    Climb,
    Delete,
    DistinctTest,
    Interval,
    Key,
    Request,
    Rule,
    ValueKind,
)
from halfmask.engines.sql import table_node as named
from halfmask.errors import HierarchyError, QueryError
from halfmask.query.answer_columns import AnswerColumns
from halfmask.query.clauses import fold_name
from halfmask.query.planning.aggregates import Aggregates
from halfmask.query.planning.plan import Plan, PlannedKey, resolve_query
from halfmask.query.planning.scope import people_repeat
from halfmask.query.vocabulary import fail
from halfmask.table.hierarchies.builders import Auto
from halfmask.table.hierarchies.ladder import Mask, Ordered
from halfmask.table.hierarchy import TOP, from_levels
from halfmask.table.table import encode_column
from halfmask.table.weights import unweighted_notes

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine, GroupMeasure
    from halfmask.query.catalog import AskedTable, Catalog
    from halfmask.query.clauses import Chain, Generalization, Semantics
    from halfmask.query.parse import Statement
    from halfmask.query.planning.aggregates import PlannedAggregate
    from halfmask.query.planning.plan import ResolvedQuery
    from halfmask.query.planning.scope import QueryScope
    from halfmask.table.hierarchy import Hierarchy, HierarchyBuilder


@dataclass(frozen=True, slots=True)
class Requirement:
    """A number that must reach a threshold at every level.

    Attributes:
        what: people, contributors (people with a value to aggregate), or diversity.
        column: the column or expression it speaks of.
        test: the position of its test (distinct values), or None where counts simply add up.
        state: the position of the count that adds up; None: the number of rows.
    """

    what: Literal["people", "contributors", "diversity"]
    column: str
    test: int | None = None
    state: int | None = None

    def threshold(self, k: int, l: int) -> int:
        """What must be reached under the guarantee (k, l)."""
        return l if self.what == "diversity" else k


@dataclass(frozen=True, eq=False, kw_only=True)
class GuaranteePlan(Plan):
    """The plan of a query that promises rows of enough people and values.

    Attributes:
        request: what the engine collects.
        aggregates: the figures of a row.
        measures: those of them that do not merge.
        requirements: what every published row must reach.
        repeat: whether a person can stand in several rows of the table.
        splits: what the conditional aggregates split the people of a row by.
        missing: where their values are missing, which splits people further.
        split_values: the columns that l counts in each part of such a row.
        limits: those of the splits that say where a number meets a limit or a date has no value.
        uncounted: the touched columns of which l does not count the values behind every figure.
    """

    request: Request
    aggregates: tuple[PlannedAggregate, ...]
    measures: tuple[GroupMeasure, ...]
    requirements: tuple[Requirement, ...]
    repeat: bool = False
    splits: tuple[exp.Expr, ...] = ()
    missing: tuple[exp.Expr, ...] = ()
    split_values: tuple[exp.Expr, ...] = ()
    limits: tuple[exp.Expr, ...] = ()
    uncounted: tuple[exp.Column, ...] = ()

    @property
    def chain(self) -> Chain:
        """The guarantees."""
        return self.statement.chain

    @property
    def conditional(self) -> tuple[str, ...]:
        """The columns of the published rows that hold conditional figures."""
        return tuple(f"a{i}" for i, a in enumerate(self.aggregates) if a.conditional)

    @property
    def semantics(self) -> Semantics:
        """What may move."""
        return self.chain.semantics


def plan_guarantee(statement: Statement, catalog: Catalog, engine: Engine) -> GuaranteePlan:
    """Decide how a query under guarantees is answered; reads column types, no rows of people.

    Raises:
        QueryError: with line, column and a caret.
    """
    chain = statement.chain
    query = resolve_query(statement, catalog, engine)
    text, scope, total = query.text, query.scope, query.total
    rows = query.rows
    repeat = people_repeat(scope, engine, statement.rows_per_person)
    aggregates = Aggregates(text, scope, query.select)
    types = aggregates.types(query.keys, total)
    for call in aggregates.calls():
        aggregates.add(call, types)
    steps = Generalizations(text, scope, catalog, engine)
    planned, requested = steps.bind(chain, query.keys, types)
    needed, tests = requirements(text, scope, chain, aggregates, repeat=repeat)
    final, names = AnswerColumns(text, query.select, aggregates.found).query(query.keys, planned)
    request = Request(
        source=rows,
        keys=tuple(requested),
        guarantees=tuple((g.k, g.l) for g in chain.guarantees),
        person=scope.person,
        tests=tuple(tests),
        states=tuple(aggregates.states),
    )
    diverse, conditions = _diverse_columns(scope, chain), aggregates.conditions
    touched = (*query.columns, *diverse)
    queried = tuple(dict.fromkeys(column.name for column in touched))
    unweighted = unweighted_notes(scope.tables[scope.main].schema, queried)
    return GuaranteePlan(
        statement=statement,
        scope=scope,
        keys=tuple(planned),
        queried=queried,
        final=final,
        names=tuple(names),
        notes=(*statement.notes, *steps.notes, *_undeclared_words(scope), *unweighted),
        request=total.request(request),
        aggregates=tuple(aggregates.planned),
        measures=tuple(map(total.measure, aggregates.measures)),
        requirements=tuple(needed),
        repeat=repeat,
        splits=tuple(map(total, conditions.splits)),
        missing=tuple(map(total, conditions.missing)),
        split_values=tuple(map(total, _split_values(chain, aggregates, diverse))),
        limits=tuple(map(total, conditions.limits)),
        uncounted=_uncounted_columns(query, aggregates, diverse),
    )


def _undeclared_words(scope: QueryScope) -> list[str]:
    """What nobody declared: then each row is a person, and no column is known to identify."""
    declared = scope.tables[scope.main].schema
    if declared is not None and declared.columns:
        return []
    return [
        "The table has no schema: each row counts as another person, and no column is "
        "known to identify anybody."
    ]


def _diverse_columns(scope: QueryScope, chain: Chain) -> list[exp.Column]:
    """The columns of ``l = 3 OF column``."""
    from sqlglot import exp

    found = []
    for name in chain.diverse:
        alias, column = scope.resolve(exp.column(name))
        found.append(exp.column(column, table=alias, quoted=True))
    return found


def _uncounted_columns(
    query: ResolvedQuery, aggregates: Aggregates, diverse: list[exp.Column]
) -> tuple[exp.Column, ...]:
    """The columns that decide who stands in a row, or in a figure, and of which l counts none.

    By a key or a condition a row may hold one value of such a column.
    """
    counted = aggregates.conditions.counted(diverse)
    people = {(a, one.person) for a, one in query.scope.tables.items()}
    found = [c for c in query.columns if c not in counted and (c.table, c.name) not in people]
    return tuple(c.copy() for c in dict.fromkeys(found))


def _split_values(
    chain: Chain, aggregates: Aggregates, diverse: list[exp.Column]
) -> list[exp.Expr]:
    """What l counts in each part of a row that has conditional figures."""
    if chain.guarantees[-1].l == 1 or not any(a.conditional for a in aggregates.planned):
        return []
    return list(dict.fromkeys((*aggregates.conditions.values, *diverse)))


def requirements(
    text: str, scope: QueryScope, chain: Chain, aggregates: Aggregates, *, repeat: bool
) -> tuple[list[Requirement], list[DistinctTest]]:
    """The requirements and the tests (numbers of distinct values) that they need."""
    from sqlglot import exp

    person = scope.person if repeat else None
    k, l = chain.guarantees[-1].k, chain.guarantees[-1].l
    tests: list[DistinctTest] = []
    needed = [Requirement("people", "people", None if person is None else 0)]
    if person is not None:
        tests.append(DistinctTest(person, k, total=True))
    # A figure made of few values tells of these few people, however many stand in its row.
    for argument in dict.fromkeys(aggregates.arguments):
        name = argument.name if isinstance(argument, exp.Column) else argument.sql("duckdb")
        if person is None:
            state = aggregates.state("count", argument, "other")
            needed.append(Requirement("contributors", name, None, state))
        elif argument.find(exp.Column):
            needed.append(Requirement("contributors", name, len(tests)))
            tests.append(DistinctTest(_owner(argument, person), k))
    # Homogeneity: k people who share a value would give it away.
    if l > 1:
        for column in _diverse(text, scope, chain, aggregates):
            needed.append(Requirement("diversity", column.name, len(tests)))
            tests.append(DistinctTest(column, l))
    return needed, tests


def _diverse(
    text: str, scope: QueryScope, chain: Chain, aggregates: Aggregates
) -> list[exp.Column]:
    """The columns whose values must be diverse: every aggregated one, and those named."""
    from sqlglot import exp

    columns: dict[str, exp.Column] = {}
    for call in aggregates.found:
        for column in call.find_all(exp.Column):
            if column != scope.person:
                columns.setdefault(column.sql(), column)
    for name, place in zip(chain.diverse, chain.places, strict=True):
        node = exp.column(name)
        node.this.meta.update(start=place.start, end=place.start + place.length - 1)
        alias, found = scope.resolve(node)
        column = exp.column(found, table=alias, quoted=True)
        if scope.is_hidden(column):
            fail(text, node, f"{name} identifies people: it is diverse by itself.")
        columns.setdefault(column.sql(), column)
    if not columns:
        level = next(x for x in chain.levels if x.guarantee.l > 1)
        raise QueryError(
            "l promises distinct values, but no column is aggregated: name one "
            "(l = 3 OF column), or promise l = 1.",
            text=text,
            start=level.place.start,
            length=level.place.length,
        )
    return list(columns.values())


def _owner(argument: exp.Expr, person: exp.Expr) -> exp.Expr:
    """Whoever has a value of ``argument``."""
    from sqlglot import exp

    present = argument.copy().is_(exp.null()).not_()
    return exp.Case().when(exp.paren(present), person.copy())


class Generalizations:
    """Walks the chain; ``notes`` says what changes nothing."""

    def __init__(self, text: str, scope: QueryScope, catalog: Catalog, engine: Engine) -> None:
        self.text, self.scope, self.catalog, self.engine = text, scope, catalog, engine
        self.notes: list[str] = []

    def bind(
        self, chain: Chain, keys: list[tuple[str, exp.Expr]], types: dict[str, ValueKind]
    ) -> tuple[list[PlannedKey], list[Key]]:
        """The keys as shown and as requested, with their rules per depth."""
        depth = [0] * len(keys)
        depths: list[list[int]] = [[] for _ in keys]
        rules: list[list[Rule]] = [[] for _ in keys]
        hierarchies: list[Hierarchy | None] = [None] * len(keys)
        for level in chain.levels:
            if level.step is not None:
                at = self._key_of(level.step, keys)
                kind = types[keys[at][1].sql()]
                rule, hierarchies[at] = self._rule(
                    level.step, keys[at], kind, rules[at], hierarchies[at]
                )
                if rules[at] and rules[at][-1] == rule and isinstance(rule, Interval):
                    self.notes.append(
                        f"{level.step} changes nothing: {keys[at][0]} has that width already."
                    )
                else:
                    rules[at].append(rule)
                    depth[at] += 1
            for i, d in enumerate(depth):
                depths[i].append(d)
        planned = [
            PlannedKey(name, bool(rules[i]), hierarchies[i]) for i, (name, _) in enumerate(keys)
        ]
        requests = [
            Key(e, types[e.sql()], tuple(depths[i]), tuple(rules[i]))
            for i, (_, e) in enumerate(keys)
        ]
        return planned, requests

    def _key_of(self, step: Generalization, keys: list[tuple[str, exp.Expr]]) -> int:
        from sqlglot import exp

        for i, (name, expression) in enumerate(keys):
            names = {fold_name(name)}
            if isinstance(expression, exp.Column):
                names.add(fold_name(expression.name))
            if fold_name(step.column) in names:
                return i
        raise QueryError(
            f"{step.column} is not grouped by; grouped by: {', '.join(n for n, _ in keys)}.",
            text=self.text,
            start=step.place.start,
            length=step.place.length,
        )

    def _rule(
        self,
        step: Generalization,
        key: tuple[str, exp.Expr],
        kind: ValueKind,
        before: list[Rule],
        hierarchy: Hierarchy | None,
    ) -> tuple[Rule, Hierarchy | None]:
        last = before[-1] if before else None
        if isinstance(last, Delete):
            self._step_error(step, f"{step.column} has been taken away already")
        if step.operation == "delete":
            return Delete(), hierarchy
        if step.operation == "interval":
            if kind not in ("integer", "decimal", "float"):
                self._step_error(
                    step, f"{step.column} holds no numbers, so it has no intervals; use up or del"
                )
            if isinstance(last, Climb):
                self._step_error(step, f"{step.column} climbs its hierarchy already")
            if isinstance(last, Interval) and step.width % last.width:
                self._step_error(
                    step,
                    f"intervals of {step.width} do not nest in those of "
                    f"{last.width}: use a multiple",
                )
            return Interval(step.width), hierarchy
        if isinstance(last, Interval):
            self._step_error(step, f"{step.column} is in intervals already; widen them or use del")
        if kind == "float":
            self._step_error(step, f"{step.column} holds fractions; use intervals or del")
        hierarchy = hierarchy or self._hierarchy(step, key[1])
        height = len(before) + 1
        if height > hierarchy.height:
            self._step_error(step, f"{step.column} is at the top of its hierarchy already")
        return climb_rule(hierarchy, height), hierarchy

    def _hierarchy(self, step: Generalization, expression: exp.Expr) -> Hierarchy:
        from sqlglot import exp

        if not isinstance(expression, exp.Column):
            self._step_error(step, f"{step.column} is an expression and has no hierarchy; use del")
        source = self.scope.tables[expression.table]
        at = (source.name, expression.name)
        if at not in self.catalog.hierarchies:
            declared = source.schema.columns.get(expression.name) if source.schema else None
            if declared is None or declared.hierarchy is None:
                self._step_error(
                    step, f"{step.column} has no hierarchy: declare one in the schema, or use del"
                )
            self._refuse_found(step, declared.hierarchy)
            self.catalog.hierarchies[at] = fit_hierarchy(
                declared.hierarchy, expression.name, self._values(source, expression.name)
            )
        return self.catalog.hierarchies[at]

    def _values(self, source: AskedTable, name: str) -> pa.Array:
        """The distinct values of a column."""
        from sqlglot import exp

        if source.table is not None:
            return encode_column(source.table.arrow[name]).values
        query = exp.select(exp.column(name, quoted=True)).distinct().from_(named(source.name))
        return encode_column(self.engine.run(query).column(0)).values

    def _refuse_found(self, step: Generalization, builder: HierarchyBuilder) -> None:
        """Refuse hierarchies that follow from the rows: a label would tell of others' values."""
        what = None
        if isinstance(builder, Auto):
            what = "is found from the rows: write it out (halfmask describe --hierarchies auto)"
        elif isinstance(builder, Mask) and builder.length is None:
            what = "is as long as the longest value: give the mask a length"
        elif isinstance(builder, Ordered) and not builder.order:
            what = "groups the values that are there: give their order"
        if what is not None:
            self._step_error(step, f"the hierarchy of {step.column} {what}; or use del")

    def _step_error(self, step: Generalization, message: str) -> NoReturn:
        raise QueryError(
            f"{message}.", text=self.text, start=step.place.start, length=step.place.length
        )


def fit_hierarchy(builder: HierarchyBuilder, name: str, values: pa.Array) -> Hierarchy:
    """The declared hierarchy of ``values``; one that it has no place for stands under the top.

    Whether somebody has such a value must not show, so it cannot be an error here.

    Raises:
        HierarchyError: the hierarchy itself is at fault.
    """
    fits = _fitting(builder, name, values)
    if all(fits):
        return builder.build(name, values)
    built = builder.build(name, values.filter(pa.array(fits, pa.bool_())))
    top = built.labels[-1][0] if len(built.labels[-1]) == 1 else TOP
    inside = dict(zip(built.labels[0], built.maps.T.tolist(), strict=True))
    levels: list[list[object]] = [values.to_pylist()]
    for height in range(1, built.height + 1):
        levels.append(
            [built.labels[height][inside[v][height]] if v in inside else top for v in levels[0]]
        )
    return from_levels(levels, other_leaves=[[] for _ in levels])


def _fitting(builder: HierarchyBuilder, name: str, values: pa.Array) -> list[bool]:
    """Per value, whether the hierarchy has a place for it; halved until it is known."""
    try:
        builder.build(name, values)
    except HierarchyError:
        if len(values) <= 1:
            builder.build(name, values.slice(0, 0))
            return [False] * len(values)
        half = len(values) // 2
        return [
            *_fitting(builder, name, values.slice(0, half)),
            *_fitting(builder, name, values.slice(half)),
        ]
    return [True] * len(values)


def climb_rule(hierarchy: Hierarchy, height: int) -> Climb:
    """The rule that goes up to one level of a hierarchy."""
    values = hierarchy.labels[0]
    codes = hierarchy.maps[height]
    if len(hierarchy.labels[height]) == 1:
        return Climb(dict.fromkeys(values))
    first: dict[int, object] = {}
    for value, code in zip(values, codes.tolist(), strict=True):
        if value is not None:
            first.setdefault(code, value)
    return Climb(
        {v: None if v is None else first[c] for v, c in zip(values, codes.tolist(), strict=True)}
    )
