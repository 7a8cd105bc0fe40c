"""From a statement to a plan: keys and their generalizations, aggregates, what must hold.

The plan knows the request for the engine, how its groups are tested level by level, and the
query over the published rows that makes the asker's columns of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

from halfmask.engines.request import (
    Climb,
    Delete,
    Interval,
    Key,
    Kind,
    Measure,
    Request,
    Rule,
    State,
    Test,
    kind_of,
)
from halfmask.errors import QueryError
from halfmask.query import vocabulary
from halfmask.query.chain import folded
from halfmask.query.joins import people_of
from halfmask.query.scope import Scope, fail, scope_of
from halfmask.table.table import encode

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.catalog import Catalog
    from halfmask.query.chain import Chain, Semantics, Step
    from halfmask.query.parse import Statement
    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class PlannedKey:
    """A grouping column as the asker sees it.

    Attributes:
        name: its name in the answer.
        labels: per depth, the label of each value (where it climbs a hierarchy).
        generalized: whether any level changes it; its values leave as text then.
    """

    name: str
    generalized: bool
    hierarchy: Hierarchy | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PlannedAggregate:
    """One aggregate: the states (or the measure) it is made of.

    Attributes:
        kind: count, sum, avg ...
        states: positions of its states in the request, or (-1,) for the number of rows.
        measure: position of its measure, where it does not merge.
        of: what its argument is.
    """

    kind: str
    states: tuple[int, ...] = ()
    measure: int | None = None
    of: Kind = "other"


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


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything that is decided before rows are read."""

    statement: Statement
    scope: Scope
    request: Request
    keys: tuple[PlannedKey, ...]
    aggregates: tuple[PlannedAggregate, ...]
    measures: tuple[Measure, ...]
    requirements: tuple[Requirement, ...]
    queried: tuple[str, ...]
    final: exp.Select
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    repeat: bool = False

    @property
    def chain(self) -> Chain:
        """The guarantees."""
        return self.statement.chain

    @property
    def semantics(self) -> Semantics:
        """What may move."""
        return self.statement.semantics


def plan(
    statement: Statement, catalog: Catalog, engine: Engine, *, check_people: bool = True
) -> Plan:
    """Decide how a statement is answered; reads column types, no rows.

    Raises:
        QueryError: with line, column and a caret.
    """
    return _Planner(statement, catalog, engine).plan(check_people=check_people)


class _Planner:
    def __init__(self, statement: Statement, catalog: Catalog, engine: Engine) -> None:
        self.statement, self.catalog, self.engine = statement, catalog, engine
        self.text = statement.text
        self.scope, self.select = scope_of(self.text, statement.select, catalog)
        self.notes = list(statement.notes)
        self.states: list[State] = []
        self.measures: list[Measure] = []
        self.aggregates: list[PlannedAggregate] = []
        self.found: list[exp.Expr] = []
        self.arguments: list[exp.Expr] = []
        self.queried: list[str] = []

    def plan(self, *, check_people: bool) -> Plan:
        self._refuse_hidden()
        source = self._source()
        bound = self.statement.rows_per_person
        self.repeat = self.scope.person is not None
        if check_people:
            self.repeat = people_of(self.scope, source, self.engine, bound).repeat
        keys = self._grouping()
        calls = self._calls()
        types = self._types(keys, calls)
        for call in calls:
            self._aggregate(call, types)
        planned, requests = self._generalizations(keys, types)
        requirements, tests = self._requirements()
        final, names = self._final(keys, planned)
        request = Request(
            source=source,
            keys=tuple(requests),
            guarantees=tuple((g.k, g.l) for g in self.statement.chain.guarantees),
            person=self.scope.person,
            tests=tuple(tests),
            states=tuple(self.states),
        )
        return Plan(
            self.statement,
            self.scope,
            request,
            tuple(planned),
            tuple(self.aggregates),
            tuple(self.measures),
            tuple(requirements),
            tuple(self.queried),
            final,
            tuple(names),
            tuple(self.notes),
            self.repeat,
        )

    # -- names and grouping

    def _refuse_hidden(self) -> None:
        from sqlglot import exp

        person = self.scope.person
        for column in self.select.find_all(exp.Column):
            if column.find_ancestor(exp.Join) or not column.table:
                continue
            counted = isinstance(column.parent, exp.Distinct) and isinstance(
                column.parent.parent, exp.Count
            )
            if counted and person is not None and column == person:
                continue
            if self.scope.is_hidden(column):
                fail(
                    self.text,
                    column,
                    f"{column.name} identifies people or holds their demands: "
                    "it may only tie tables together (or be counted: COUNT(DISTINCT person)).",
                )

    def _grouping(self) -> list[tuple[str, exp.Expr]]:
        from sqlglot import exp

        group = self.select.args.get("group")
        keys: list[tuple[str, exp.Expr]] = []
        for node in group.expressions if group else []:
            expression, alias = self._key_expression(node)
            if any(e == expression for _, e in keys):
                continue
            if expression.find(*vocabulary.aggregates()):
                fail(self.text, node, "an aggregate cannot be grouped by.")
            if not expression.find(exp.Column):
                fail(self.text, node, "a constant groups nothing: leave it away.")
            keys.append((alias or self._name_of(expression, len(keys)), expression))
        return keys

    def _key_expression(self, node: exp.Expr) -> tuple[exp.Expr, str]:
        from sqlglot import exp

        items = self.select.expressions
        if isinstance(node, exp.Literal) and not node.is_string:
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                fail(self.text, node, "there is no such column in the select list.")
            item = items[int(node.name) - 1]
            return item.unalias().copy(), item.alias
        if isinstance(node, exp.Column) and not node.table:
            item = next(e for e in items if e.alias.lower() == node.name.lower())
            return item.unalias().copy(), item.alias
        for item in items:
            if isinstance(item, exp.Alias) and item.this == node:
                return node.copy(), item.alias
        return node.copy(), ""

    def _name_of(self, expression: exp.Expr, index: int) -> str:
        from sqlglot import exp

        return expression.name if isinstance(expression, exp.Column) else f"key_{index + 1}"

    # -- aggregates

    def _calls(self) -> list[exp.Expr]:
        from sqlglot import exp

        kinds = tuple(vocabulary.aggregates())
        clauses = [*self.select.expressions]
        clauses += [c for n in ("having", "order") if (c := self.select.args.get(n))]
        calls: list[exp.Expr] = []
        for clause in clauses:
            for node in clause.find_all(*kinds):
                whole = node.parent if isinstance(node.parent, exp.Filter) else node
                if node.find_ancestor(*kinds):
                    fail(self.text, node, "an aggregate inside an aggregate cannot be answered.")
                if whole not in calls:
                    calls.append(whole)
        for name in ("where", "group"):
            clause = self.select.args.get(name)
            if clause is not None and clause.find(*kinds):
                fail(self.text, clause, f"aggregates cannot stand in {name.upper()}.")
        return calls

    def _argument(self, call: exp.Expr) -> tuple[str, exp.Expr | None, bool]:
        """The kind of an aggregate, its argument (None: rows), and whether it is DISTINCT."""
        from sqlglot import exp

        condition = None
        if isinstance(call, exp.Filter):
            condition, call = call.expression.this, call.this
        kind = vocabulary.aggregates()[type(call)]
        inner, distinct = call.this, False
        if isinstance(inner, exp.Distinct):
            if len(inner.expressions) != 1:
                fail(self.text, call, "DISTINCT takes one expression.")
            inner, distinct = inner.expressions[0], True
        if call.args.get("expressions"):
            fail(self.text, call, "an aggregate takes one expression.")
        if isinstance(inner, exp.Star) or inner is None:
            inner = None
            if kind != "count":
                fail(self.text, call, "only COUNT takes *.")
        if condition is not None:
            inner = exp.Case().when(condition.copy(), inner or exp.Literal.number(1))
        return kind, inner, distinct

    def _types(self, keys: list[tuple[str, exp.Expr]], calls: list[exp.Expr]) -> dict[str, Kind]:
        """Ask the engine what the expressions are; this also lets it refuse what it cannot do."""
        from sqlglot import exp

        wanted = [e for _, e in keys]
        wanted += [a for c in calls if (a := self._argument(c)[1]) is not None]
        self.scales: dict[str, int] = {}
        if not wanted:
            wanted = [exp.Literal.number(1)]
        probe = self._source()
        for i, expression in enumerate(wanted):
            probe = probe.select(exp.alias_(expression.copy(), f"x{i}", quoted=True))
        found = self.engine.run(probe.limit(0)).schema
        kinds = {}
        for expression, field in zip(wanted, found, strict=True):
            kinds[expression.sql()] = kind_of(field.type)
            self.scales[expression.sql()] = getattr(field.type, "scale", 0) or 0
        return kinds

    def _aggregate(self, call: exp.Expr, types: dict[str, Kind]) -> None:
        kind, argument, distinct = self._argument(call)
        if argument is None:
            self.aggregates.append(PlannedAggregate("count", (-1,)))
            self.found.append(call)
            return
        of = types[argument.sql()]
        self._check_argument(call, kind, argument, of)
        if distinct and kind in ("min", "max"):
            distinct = False
        if distinct and kind != "count":
            fail(
                self.text,
                call,
                "DISTINCT can be counted only: SUM and AVG of distinct values do not merge.",
            )
        if distinct:
            planned = PlannedAggregate("distinct", (), self._measure("distinct", argument), of)
        elif kind == "median":
            planned = PlannedAggregate("median", (), self._measure("median", argument), of)
        elif kind in ("avg",):
            states = (self._state("sum", argument, of), self._state("count", argument, of))
            planned = PlannedAggregate(kind, states, None, of)
        elif kind.startswith(("var", "stddev")):
            planned = PlannedAggregate(kind, (self._state("moments", argument, of),), None, of)
        else:
            state: Literal["count", "sum", "min", "max"] = (
                "count"
                if kind == "count"
                else "sum"
                if kind == "sum"
                else "min"
                if kind == "min"
                else "max"
            )
            planned = PlannedAggregate(kind, (self._state(state, argument, of),), None, of)
        self.aggregates.append(planned)
        self.found.append(call)
        if kind != "count":
            self.arguments.append(argument)

    def _check_argument(self, call: exp.Expr, kind: str, argument: exp.Expr, of: Kind) -> None:
        from sqlglot import exp

        numeric = kind.startswith(("sum", "avg", "median", "var", "stddev"))
        if numeric and of not in ("integer", "decimal", "float", "boolean"):
            fail(self.text, call, f"{kind.upper()} needs numbers.")
        columns = list(dict.fromkeys((c.table, c.name) for c in argument.find_all(exp.Column)))
        if len(columns) > 1:
            for column in argument.find_all(exp.Column):
                if self.scope.role(column) in ("quasi", "identifier"):
                    fail(
                        self.text,
                        call,
                        f"{column.name} is known to others: together with another "
                        "column inside one aggregate it could pick single people out of a group. "
                        "Group by it, or filter in WHERE; columns that are not known to others "
                        "must be declared so in the schema.",
                    )
        person = self.scope.person
        for alias, name in columns:
            if person is not None and (alias, name) == (person.table, person.name):
                continue
            if name not in self.queried:
                self.queried.append(name)

    def _state(
        self,
        kind: Literal["count", "sum", "min", "max", "moments"],
        argument: exp.Expr,
        of: Kind,
    ) -> int:
        of = "other" if kind == "count" else of
        state = State(kind, argument, of, self.scales.get(argument.sql(), 0))
        if state not in self.states:
            self.states.append(state)
        return self.states.index(state)

    def _measure(self, kind: Literal["median", "distinct"], argument: exp.Expr) -> int:
        self.measures.append(Measure(kind, argument))
        return len(self.measures) - 1

    # -- generalization

    def _generalizations(
        self, keys: list[tuple[str, exp.Expr]], types: dict[str, Kind]
    ) -> tuple[list[PlannedKey], list[Key]]:
        chain = self.statement.chain
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

    def _key_of(self, step: Step, keys: list[tuple[str, exp.Expr]]) -> int:
        from sqlglot import exp

        for i, (name, expression) in enumerate(keys):
            names = {folded(name)}
            if isinstance(expression, exp.Column):
                names.add(folded(expression.name))
            if folded(step.column) in names:
                return i
        raise QueryError(
            f"{step.column} is not grouped by; grouped by: {', '.join(n for n, _ in keys)}.",
            text=self.text,
            start=step.place.start,
            length=step.place.length,
        )

    def _rule(
        self,
        step: Step,
        key: tuple[str, exp.Expr],
        kind: Kind,
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
        return climb(hierarchy, height), hierarchy

    def _hierarchy(self, step: Step, expression: exp.Expr) -> Hierarchy:
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
            if source.table is not None:
                built = source.table.hierarchy(expression.name)
            else:
                query = (
                    exp.select(exp.column(expression.name, quoted=True))
                    .distinct()
                    .from_(exp.to_table(source.name))
                )
                values = encode(self.engine.run(query).column(0)).values
                built = declared.hierarchy.build(expression.name, values)
            self.catalog.hierarchies[at] = built
        return self.catalog.hierarchies[at]

    def _step_error(self, step: Step, message: str) -> NoReturn:
        raise QueryError(
            f"{message}.", text=self.text, start=step.place.start, length=step.place.length
        )

    # -- what must hold

    def _requirements(self) -> tuple[list[Requirement], list[Test]]:
        from sqlglot import exp

        chain = self.statement.chain
        person = self.scope.person if self.repeat else None
        k, l = chain.guarantees[-1].k, chain.guarantees[-1].l
        tests: list[Test] = []
        requirements = [Requirement("people", "people", len(tests) if person is not None else None)]
        if person is not None:
            tests.append(Test(person, k))
        for argument in dict.fromkeys(self.arguments):
            name = argument.sql(dialect="duckdb")
            if person is None:
                requirements.append(
                    Requirement("contributors", name, None, self._state("count", argument, "other"))
                )
            elif argument.find(exp.Column):
                requirements.append(Requirement("contributors", name, len(tests)))
                tests.append(Test(_owner(argument, person), k))
        if l > 1:
            for column in self._diverse():
                requirements.append(Requirement("diversity", column.name, len(tests)))
                tests.append(Test(column, l))
        return requirements, tests

    def _diverse(self) -> list[exp.Column]:
        """The columns whose values must be diverse: every aggregated one, and those named."""
        from sqlglot import exp

        person = self.scope.person
        columns: dict[str, exp.Column] = {}
        for call in self.found:
            for column in call.find_all(exp.Column):
                if column != person:
                    columns.setdefault(column.sql(), column)
        chain = self.statement.chain
        for name, place in zip(chain.diverse, chain.places, strict=True):
            node = exp.column(name)
            node.this.meta.update(start=place.start, end=place.start + place.length - 1)
            alias, found = self.scope.resolve(node)
            column = exp.column(found, table=alias, quoted=True)
            if self.scope.is_hidden(column):
                fail(self.text, node, f"{name} identifies people: it is diverse by itself.")
            columns.setdefault(column.sql(), column)
            if found not in self.queried:
                self.queried.append(found)
        if not columns:
            level = next(x for x in chain.levels if x.guarantee.l > 1)
            raise QueryError(
                "l promises distinct values, but no column is aggregated: name one "
                "(l = 3 OF column), or promise l = 1.",
                text=self.text,
                start=level.place.start,
                length=level.place.length,
            )
        return list(columns.values())

    # -- source and final query

    def _source(self) -> exp.Select:
        from sqlglot import exp

        source = exp.Select()
        name = "from_" if "from_" in self.select.args else "from"
        for part in (name, "joins", "where"):
            value = self.select.args.get(part)
            if value is not None:
                source.set(
                    part, [v.copy() for v in value] if isinstance(value, list) else value.copy()
                )
        return source

    def _final(
        self, keys: list[tuple[str, exp.Expr]], planned: list[PlannedKey]
    ) -> tuple[exp.Select, list[str]]:
        """The asker's columns as a query over the published rows (k0..., a0..., level)."""
        from sqlglot import exp

        names: list[str] = []
        final = exp.select().from_("published")
        aliases: dict[str, exp.Expr] = {}
        for item in self.select.expressions:
            if isinstance(item, exp.Alias):
                aliases.setdefault(item.alias.lower(), item.this)
        for item in self.select.expressions:
            name = item.alias or (
                item.name
                if isinstance(item, exp.Column)
                else item.sql(dialect="duckdb").replace('"', "")
            )
            if isinstance(item, (exp.Column,)) is False and not item.alias:
                name = self._unqualified(item)
            while name.lower() in (n.lower() for n in (*names, "level", "guarantee")):
                name += "_"
            names.append(name)
            node = self._over_published(item.unalias(), keys, planned, bare=True)
            final = final.select(exp.alias_(node, name, quoted=True), copy=False)
        final = final.select(exp.column("level"), exp.column("hm_row"), copy=False)
        having = self.select.args.get("having")
        if having is not None:
            condition = self._over_published(_unaliased(having.this, aliases), keys, planned)
            final = final.where(condition, copy=False)
        order = self.select.args.get("order")
        if order is not None:
            parts = []
            for part in order.expressions:
                part = part.copy()
                part.set("this", self._ordered(part.this, aliases, keys, planned))
                parts.append(part)
            final = final.order_by(*parts, copy=False)
        for name in ("limit", "offset"):
            clause = self.select.args.get(name)
            if clause is not None:
                number = clause.args.get("expression")
                if not isinstance(number, exp.Literal) or number.is_string:
                    fail(self.text, clause, f"{name.upper()} takes a number.")
                final.set(name, clause.copy())
        return final, names

    def _unqualified(self, item: exp.Expr) -> str:
        from sqlglot import exp

        item = item.copy()
        for column in item.find_all(exp.Column):
            column.set("table", None)
            column.this.args["quoted"] = False
        return item.sql(dialect="duckdb")

    def _ordered(
        self,
        node: exp.Expr,
        aliases: dict[str, exp.Expr],
        keys: list[tuple[str, exp.Expr]],
        planned: list[PlannedKey],
    ) -> exp.Expr:
        from sqlglot import exp

        if isinstance(node, exp.Literal) and not node.is_string:
            items = self.select.expressions
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                fail(self.text, node, "there is no such column in the select list.")
            node = items[int(node.name) - 1].unalias()
        return self._over_published(_unaliased(node, aliases), keys, planned, bare=True)

    def _over_published(
        self,
        node: exp.Expr,
        keys: list[tuple[str, exp.Expr]],
        planned: list[PlannedKey],
        *,
        bare: bool = False,
    ) -> exp.Expr:
        """Rewrite an expression over rows to one over published rows."""
        from sqlglot import exp

        def rewritten(part: exp.Expr, *, whole: bool) -> exp.Expr:
            for i, call in enumerate(self.found):
                if part == call:
                    return exp.column(f"a{i}")
            for i, (name, expression) in enumerate(keys):
                if part == expression:
                    if planned[i].generalized and not (bare and whole):
                        fail(
                            self.text,
                            part,
                            f"{name} is generalized in this query: it can be "
                            "shown and ordered by, but not computed with.",
                        )
                    return exp.column(f"k{i}")
            if isinstance(part, exp.Column):
                fail(self.text, part, f"{part.name} is neither grouped by nor aggregated.")
            part = part.copy() if whole else part
            for name, value in list(part.args.items()):
                if isinstance(value, exp.Expr):
                    part.set(name, rewritten(value.copy(), whole=False))
                elif isinstance(value, list):
                    part.set(
                        name,
                        [
                            rewritten(v.copy(), whole=False) if isinstance(v, exp.Expr) else v
                            for v in value
                        ],
                    )
            return part

        return rewritten(node, whole=True)


def climb(hierarchy: Hierarchy, height: int) -> Climb:
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


def _owner(argument: exp.Expr, person: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    present = argument.copy().is_(exp.null()).not_()
    return exp.Case().when(exp.paren(present), person.copy())


def _unaliased(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    from sqlglot import exp

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
            return aliases[part.name.lower()].copy()
        return part

    return node.copy().transform(replaced)
