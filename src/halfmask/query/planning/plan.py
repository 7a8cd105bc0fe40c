"""From a statement to a plan: what is grouped by, aggregated, generalized, and what must hold.

The plan knows the request for the engine, how its groups are tested level by level, and the
query over the published rows that makes the asker's columns of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.engines.request import Request
from halfmask.query.final import Final
from halfmask.query.planning import vocabulary
from halfmask.query.planning.aggregates import Aggregates
from halfmask.query.planning.generalizations import Generalizations
from halfmask.query.planning.inline import inlined
from halfmask.query.planning.joins import people_of
from halfmask.query.planning.lookups import looked_up
from halfmask.query.planning.planned import Plan
from halfmask.query.planning.refusals import fail
from halfmask.query.planning.requirements import requirements
from halfmask.query.planning.scope import scope_of
from halfmask.query.total.rows import TotalRows

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.catalog import Catalog
    from halfmask.query.parsing.parse import Statement


def plan(statement: Statement, catalog: Catalog, engine: Engine) -> Plan:
    """Decide how a statement is answered; reads column types, no rows.

    Raises:
        QueryError: with line, column and a caret.
    """
    return _Planner(statement, catalog, engine).plan()


class _Planner:
    def __init__(self, statement: Statement, catalog: Catalog, engine: Engine) -> None:
        self.statement, self.catalog, self.engine = statement, catalog, engine
        self.text = statement.text
        select = looked_up(self.text, inlined(self.text, statement.select), catalog, engine)
        self.scope, self.select = scope_of(self.text, select, catalog)
        self.total = TotalRows(self.scope)

    def plan(self) -> Plan:
        self._refuse_hidden()
        source, chain = self.total.source(self._source()), self.statement.chain
        repeat = people_of(self.scope, self.engine, self.statement.rows_per_person).repeat
        keys = self._grouping()
        aggregates = Aggregates(self.text, self.scope, self.select)
        types = aggregates.types(keys, self.total)
        for call in aggregates.calls():
            aggregates.add(call, types)
        steps = Generalizations(self.text, self.scope, self.catalog, self.engine)
        planned, requested = steps.bind(chain, keys, types)
        needed, tests = requirements(self.text, self.scope, chain, aggregates, repeat=repeat)
        final, names = Final(self.text, self.select, aggregates.found).query(keys, planned)
        request = Request(
            source=source,
            keys=tuple(requested),
            guarantees=tuple((g.k, g.l) for g in chain.guarantees),
            person=self.scope.person,
            tests=tuple(tests),
            states=tuple(aggregates.states),
        )
        return Plan(
            statement=self.statement,
            scope=self.scope,
            request=self.total.request(request),
            keys=tuple(planned),
            aggregates=tuple(aggregates.planned),
            measures=tuple(map(self.total.measure, aggregates.measures)),
            requirements=tuple(needed),
            queried=self._touched(),
            final=final,
            names=tuple(names),
            notes=(*self.statement.notes, *steps.notes, *self._undeclared()),
            repeat=repeat,
            splits=tuple(map(self.total, aggregates.conditions.splits)),
            missing=tuple(map(self.total, aggregates.conditions.missing)),
            split_values=tuple(map(self.total, self._split_values(aggregates))),
        )

    def _undeclared(self) -> list[str]:
        """What nobody declared: then each row is a person, and no column is known to identify."""
        declared = self.scope.tables[self.scope.main].schema
        if declared is not None and declared.columns:
            return []
        return [
            "The table has no schema: each row counts as another person, and no column is "
            "known to identify anybody."
        ]

    def _touched(self) -> tuple[str, ...]:
        """Every column that influences what is seen, in whatever clause it stands.

        Derived tables are written out and names are resolved before, so that an alias, a position
        or a join hides none of them.
        """
        from sqlglot import exp

        names = [c.name for c in self.select.find_all(exp.Column) if c.table]
        return tuple(dict.fromkeys((*names, *(c.name for c in self._named()))))

    def _named(self) -> list[exp.Column]:
        """The columns of ``l = 3 OF column``."""
        from sqlglot import exp

        found = []
        for name in self.statement.chain.diverse:
            alias, column = self.scope.resolve(exp.column(name))
            found.append(exp.column(column, table=alias, quoted=True))
        return found

    def _split_values(self, aggregates: Aggregates) -> list[exp.Expr]:
        """What l counts in each part of a row that has conditional figures."""
        if self.statement.chain.guarantees[-1].l == 1 or not any(
            a.conditional for a in aggregates.planned
        ):
            return []
        return list(dict.fromkeys((*aggregates.conditions.values, *self._named())))

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
