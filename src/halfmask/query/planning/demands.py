"""Join people's policies to what is aggregated: one k and one l per row's person."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Literal

from halfmask.engines.request import WITHOUT_POLICY
from halfmask.engines.sql import table as named
from halfmask.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.planning.planned import Plan
    from halfmask.query.planning.scope import Scope
    from halfmask.query.policies import Demand, Policies

_NUMBERS = count()
BY_PERSON = "hm_by_person"


def with_demands(plan: Plan, policies: Policies, engine: Engine) -> Plan:
    """The plan in which every person contributes under the policy that holds for this query.

    Raises:
        SchemaError: the policies name columns that are not there.
    """
    if not policies.stated:
        note = "Nobody states an own demand: everybody contributes at the finest level."
        return replace(plan, notes=(*plan.notes, note))
    source = plan.request.source.copy()
    own: dict[str, exp.Expr | None] = {
        "k": _from_columns(plan, policies, "k"),
        "l": _from_columns(plan, policies, "l"),
    }
    if any(e is not None for e in own.values()):
        own = dict(zip(("k", "l"), _pair(own), strict=True))
    given: dict[str, exp.Expr | None] = dict(own)
    if plan.repeat and any(e is not None for e in own.values()):
        source, given = _by_person(plan, source, own)
    if policies.people is not None:
        source, stated = _from_people(plan, policies.people, source, engine)
        given = {n: _first(stated[n], given[n]) for n in ("k", "l")}
    missing = 0 if policies.missing == "level 0" else WITHOUT_POLICY
    return replace(
        plan, request=replace(plan.request, source=source, demands=_pair(given), missing=missing)
    )


def _pair(given: dict[str, exp.Expr | None]) -> tuple[exp.Expr, exp.Expr]:
    from sqlglot import exp

    one = exp.Literal.number(1)
    return given["k"] or one, given["l"] or one.copy()


def _first(stated: exp.Expr, otherwise: exp.Expr | None) -> exp.Expr:
    from sqlglot import exp

    if otherwise is None:
        return stated
    return exp.Coalesce(this=stated, expressions=[otherwise])


def _from_columns(plan: Plan, policies: Policies, name: Literal["k", "l"]) -> exp.Expr | None:
    """The largest demand over the queried columns, null where one of them has none."""
    if not plan.queried:
        return _expression(plan.scope, policies.k if name == "k" else policies.l)
    parts: list[exp.Expr] = []
    for column in plan.queried:
        part = _expression(plan.scope, policies.demand(name, column))
        if part is not None and part not in parts:
            parts.append(part)
    return _largest(parts)


def _largest(parts: list[exp.Expr]) -> exp.Expr | None:
    """The largest of several; null where any is null (engines differ on that in GREATEST)."""
    from sqlglot import exp

    if len(parts) <= 1:
        return parts[0] if parts else None
    absent = exp.or_(*(part.copy().is_(exp.null()) for part in parts))
    largest = exp.Greatest(this=parts[0].copy(), expressions=[p.copy() for p in parts[1:]])
    return exp.Case().when(absent, exp.null()).else_(largest)


def _expression(scope: Scope, demand: Demand) -> exp.Expr | None:
    from sqlglot import exp

    if demand is None:
        return None
    if isinstance(demand, int):
        return exp.Literal.number(demand)
    for alias, source in scope.tables.items():
        name = source.find(demand)
        if name is not None:
            return exp.column(name, table=alias, quoted=True)
    known = ", ".join(sorted({c for s in scope.tables.values() for c in s.columns}))
    raise SchemaError(f"The policies name the column {demand!r}, which is not there: {known}.")


def _by_person(
    plan: Plan, source: exp.Select, own: dict[str, exp.Expr | None]
) -> tuple[exp.Select, dict[str, exp.Expr | None]]:
    """Somebody with several rows demands the most that any of them says."""
    from sqlglot import exp

    scope = plan.scope
    person = scope.person
    assert person is not None  # noqa: S101 - people repeat only where they are known
    table = named(scope.tables[scope.main].name, scope.main)
    columns = [exp.alias_(person.copy(), "person")]
    columns += [exp.alias_(exp.Max(this=e.copy()), n) for n, e in own.items() if e is not None]
    for part in own.values():
        if part is not None and any(c.table != scope.main for c in part.find_all(exp.Column)):
            raise SchemaError("People's demands must stand in the table that FROM names.")
    grouped = exp.select(*columns).from_(table).group_by(person.copy())
    match = exp.EQ(this=person.copy(), expression=exp.column("person", table=BY_PERSON))
    source = source.join(grouped.subquery(BY_PERSON), on=match, join_type="left")
    return source, {
        n: exp.column(n, table=BY_PERSON) if e is not None else None for n, e in own.items()
    }


def _from_people(
    plan: Plan, people: pa.Table, source: exp.Select, engine: Engine
) -> tuple[exp.Select, dict[str, exp.Expr]]:
    from sqlglot import exp

    person = plan.scope.person
    if person is None:
        raise SchemaError("Policies are keyed by person: declare the person column of the table.")
    main = plan.scope.tables[plan.scope.main]
    rows = for_columns(people, plan.queried)
    key: exp.Expr = person.copy()
    if rows.schema.field("person").type != main.columns[person.name]:
        import pyarrow as pa

        rows = rows.set_column(0, "person", rows["person"].cast(pa.string()))
        key = exp.cast(key, "text")
    # Two plans may be compared side by side (by the ledger), each with its own policies.
    name = f"hm_policies_{next(_NUMBERS)}"
    engine.add(name, rows)
    match = exp.EQ(this=key, expression=exp.column("person", table=name))
    source = source.join(exp.to_table(name), on=match, join_type="left")
    return source, {n: exp.column(n, table=name) for n in ("k", "l")}


def for_columns(people: pa.Table, queried: tuple[str, ...]) -> pa.Table:
    """One k and l per person: for each queried column its own entry, else the general one."""
    from sqlglot import parse_one

    from halfmask.engines.duckdb import finish

    names = list(queried)
    parts = {}
    for demand in ("k", "l"):
        general = f'MAX({demand}) FILTER (WHERE "column" IS NULL)'
        if not names:
            parts[demand] = f"COALESCE({general}, MAX({demand}))"
            continue
        each = [
            f"COALESCE(MAX({demand}) FILTER (WHERE LOWER(\"column\") = '{_quoted(n)}'), {general})"
            for n in names
        ]
        absent = " OR ".join(f"({e}) IS NULL" for e in each)
        largest = f"GREATEST({', '.join(each)})"
        parts[demand] = f"CASE WHEN {absent} THEN NULL ELSE {largest} END"
    text = (
        f"SELECT person, {parts['k']} AS k, {parts['l']} AS l FROM published "  # noqa: S608
        "WHERE person IS NOT NULL GROUP BY person"
    )
    return finish(people, parse_one(text, read="duckdb"))


def _quoted(name: str) -> str:
    return name.lower().replace("'", "''")
