"""What planning decides: keys, aggregates, what must hold, and the request for the engine.

What every published row must reach: people, people with a value, distinct values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from halfmask.engines.request import DistinctTest
from halfmask.errors import QueryError
from halfmask.query.vocabulary import fail

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import GroupMeasure, Kind, Request
    from halfmask.query.clauses import Chain, Semantics
    from halfmask.query.parse import Statement
    from halfmask.query.planning.aggregates import Aggregates
    from halfmask.query.planning.scope import QueryScope
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
        conditional: whether it depends on who meets a condition: it may be null in a row.
    """

    kind: str
    states: tuple[int, ...] = ()
    measure: int | None = None
    of: Kind = "other"
    conditional: bool = False


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
    """Everything that is decided before rows are read.

    Attributes:
        queried: every column that influences what is seen, in any clause.
        splits: what the conditional aggregates split the people of a row by.
        missing: where their values are missing, which splits people further.
        split_values: the columns that l counts in each part of such a row.
        uncounted: the touched columns of which l does not count the values behind every figure.
        limits: those of the splits that say where a number meets a limit or a date has no value.
    """

    statement: Statement
    scope: QueryScope
    request: Request
    keys: tuple[PlannedKey, ...]
    aggregates: tuple[PlannedAggregate, ...]
    measures: tuple[GroupMeasure, ...]
    requirements: tuple[Requirement, ...]
    queried: tuple[str, ...]
    final: exp.Select
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
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
    for argument in dict.fromkeys(aggregates.arguments):
        name = argument.name if isinstance(argument, exp.Column) else argument.sql("duckdb")
        if person is None:
            state = aggregates.state("count", argument, "other")
            needed.append(Requirement("contributors", name, None, state))
        elif argument.find(exp.Column):
            needed.append(Requirement("contributors", name, len(tests)))
            tests.append(DistinctTest(_owner(argument, person), k))
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
