"""From a statement to a plan: what is grouped by, aggregated, generalized, and what must hold.

The plan knows the request for the engine, how its groups are tested level by level, and the
query over the published rows that makes the asker's columns of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.engines.request import Request
from halfmask.query.final import Final
from halfmask.query.planning.aggregates import Aggregates
from halfmask.query.planning.elements import Plan, requirements
from halfmask.query.planning.generalizations import Generalizations
from halfmask.query.planning.inline import inline_derived_tables, people_of
from halfmask.query.planning.scope import (
    grouping_of,
    look_up_constants,
    refuse_hidden,
    scope_of,
    source_of,
)
from halfmask.query.total.rows import TotalRows

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.collect import Catalog
    from halfmask.query.parse import Statement


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
        select = look_up_constants(
            self.text, inline_derived_tables(self.text, statement.select), catalog, engine
        )
        self.scope, self.select = scope_of(self.text, select, catalog)
        self.total = TotalRows(self.scope)

    def plan(self) -> Plan:
        refuse_hidden(self.scope, self.select)
        source, chain = self.total.source(source_of(self.select)), self.statement.chain
        repeat = people_of(self.scope, self.engine, self.statement.rows_per_person).repeat
        keys = grouping_of(self.text, self.select)
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
            uncounted=self._uncounted(aggregates),
            limits=tuple(map(self.total, aggregates.conditions.limits)),
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

    def _uncounted(self, aggregates: Aggregates) -> tuple[exp.Column, ...]:
        """The columns that decide who stands in a row, or in a figure, and of which l counts none.

        By a key or a condition a row may hold one value of such a column.
        """
        from sqlglot import exp

        counted = aggregates.conditions.counted(self._named())
        touched = [c for c in self.select.find_all(exp.Column) if c.table]
        people = {(a, one.person) for a, one in self.scope.tables.items()}
        found = [c for c in touched if c not in counted and (c.table, c.name) not in people]
        return tuple(c.copy() for c in dict.fromkeys(found))

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
