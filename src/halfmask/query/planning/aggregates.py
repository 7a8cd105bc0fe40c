"""The aggregates of a query: which there are, what they read, and the states they are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from halfmask.engines.request import AggregateState, GroupMeasure
from halfmask.query import vocabulary
from halfmask.query.planning.conditions import Conditions
from halfmask.query.vocabulary import fail

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import ValueKind
    from halfmask.query.planning.scope import QueryScope
    from halfmask.query.total_form.rows import TotalRows


@dataclass(frozen=True, slots=True, eq=False)
class PlannedAggregate:
    """One aggregate: the states (or the measure) it is made of.

    Attributes:
        kind: count, sum, avg ...
        states: positions of its states in the request, or (-1,) for the number of rows.
        measure: position of its measure, where it does not merge.
        of: what its argument is.
        conditional: whether it depends on who meets a condition: it may be null in a row.
    """

    kind: str
    states: tuple[int, ...] = ()
    measure: int | None = None
    of: ValueKind = "other"
    conditional: bool = False


class Aggregates:
    """Collects aggregates one after the other.

    Attributes:
        planned: the aggregates, in the order of ``found``.
        found: where they stand in the query.
        states: their mergeable parts.
        measures: those that do not merge.
        arguments: what must have a value of at least k people.
        conditions: what the conditional ones among them split people by.
    """

    def __init__(self, text: str, scope: QueryScope, select: exp.Select) -> None:
        self.text, self.scope, self.select = text, scope, select
        self.states: list[AggregateState] = []
        self.measures: list[GroupMeasure] = []
        self.planned: list[PlannedAggregate] = []
        self.found: list[exp.Expr] = []
        self.arguments: list[exp.Expr] = []
        self.conditions = Conditions(scope)
        self.scales: dict[str, int] = {}

    def calls(self) -> list[exp.Expr]:
        """All aggregates of the select list, HAVING and ORDER BY, once each."""
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

    def types(self, keys: list[tuple[str, exp.Expr]], total: TotalRows) -> dict[str, ValueKind]:
        """What the expressions are, from the types of columns: no engine is asked, no row read."""
        kinds: dict[str, ValueKind] = {}
        wanted = [e for _, e in keys]
        wanted += [a for c in self.calls() if (a := self._argument(c)[1]) is not None]
        for expression in wanted:
            kind, scale = total.kind(expression)
            text = expression.sql()
            kinds[text], self.scales[text] = kind, scale
        return kinds

    def add(self, call: exp.Expr, types: dict[str, ValueKind]) -> None:
        """Plan one aggregate."""
        kind, argument, distinct = self._argument(call)
        if argument is None:
            self.planned.append(PlannedAggregate("count", (-1,)))
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
            states = (self.state("sum", argument, of), self.state("count", argument, of))
            planned = PlannedAggregate(kind, states, None, of)
        elif kind.startswith(("var", "stddev")):
            planned = PlannedAggregate(kind, (self.state("moments", argument, of),), None, of)
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
            planned = PlannedAggregate(kind, (self.state(state, argument, of),), None, of)
        depends = self.conditions.add(kind, argument)
        self.planned.append(replace(planned, conditional=bool(depends)))
        self.found.append(call)
        if kind != "count" and depends != "conditional":
            self.arguments.append(argument)

    def _check_argument(self, call: exp.Expr, kind: str, argument: exp.Expr, of: ValueKind) -> None:
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

    def state(
        self,
        kind: Literal["count", "sum", "min", "max", "moments"],
        argument: exp.Expr,
        of: ValueKind,
    ) -> int:
        """The position of a mergeable part, added where it is new."""
        of = "other" if kind == "count" else of
        state = AggregateState(kind, argument, of, self.scales.get(argument.sql(), 0))
        if state not in self.states:
            self.states.append(state)
        return self.states.index(state)

    def _measure(self, kind: Literal["median", "distinct"], argument: exp.Expr) -> int:
        self.measures.append(GroupMeasure(kind, argument))
        return len(self.measures) - 1
