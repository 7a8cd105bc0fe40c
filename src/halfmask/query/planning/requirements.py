"""What every published row must reach: people, people with a value, distinct values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.engines.request import Test
from halfmask.errors import QueryError
from halfmask.query.planning.planned import Requirement
from halfmask.query.planning.refusals import fail

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.query.parsing.chain import Chain
    from halfmask.query.planning.aggregates import Aggregates
    from halfmask.query.planning.scope import Scope


def requirements(
    text: str, scope: Scope, chain: Chain, aggregates: Aggregates, *, repeat: bool
) -> tuple[list[Requirement], list[Test]]:
    """The requirements and the tests (numbers of distinct values) that they need."""
    from sqlglot import exp

    person = scope.person if repeat else None
    k, l = chain.guarantees[-1].k, chain.guarantees[-1].l
    tests: list[Test] = []
    needed = [Requirement("people", "people", None if person is None else 0)]
    if person is not None:
        tests.append(Test(person, k, total=True))
    for argument in dict.fromkeys(aggregates.arguments):
        name = argument.name if isinstance(argument, exp.Column) else argument.sql("duckdb")
        if person is None:
            state = aggregates.state("count", argument, "other")
            needed.append(Requirement("contributors", name, None, state))
        elif argument.find(exp.Column):
            needed.append(Requirement("contributors", name, len(tests)))
            tests.append(Test(_owner(argument, person), k))
    if l > 1:
        for column in _diverse(text, scope, chain, aggregates):
            needed.append(Requirement("diversity", column.name, len(tests)))
            tests.append(Test(column, l))
    return needed, tests


def _diverse(text: str, scope: Scope, chain: Chain, aggregates: Aggregates) -> list[exp.Column]:
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
