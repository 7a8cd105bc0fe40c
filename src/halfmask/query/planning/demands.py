"""People's demands as SQL: one k and one l per row's person, the strictest of all sources."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from halfmask.engines.request import WITHOUT_POLICY, kind_of
from halfmask.engines.sql import table_node as named
from halfmask.errors import QueryError, SchemaError
from halfmask.query.total_form.conversions import bounded_numeric, case_of, comparison_of, double
from halfmask.query.total_form.rows import TotalRows
from halfmask.table.demands import file_policies, person_texts, sources
from halfmask.table.policies import DEMANDS, LARGEST, STRICTEST
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.catalog import AskedTable, Catalog
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.table.policies import Demand, Policies

_NUMBERS = count()
BY_PERSON, NAMED = "hm_by_person", "hm_named"
UNMET = 2**53  # of people whom no exact answer can serve: more than any guarantee gives


@dataclass
class _PersonDemands:
    """What is said of a row's person, as expressions of it.

    Attributes:
        demands: demand to all that holds in general or for the queried columns.
        general: the same of what columns of tables and numbers say whatever is queried.
        columns: the same for single columns.
        people: 1 where an entry of the person's own holds whatever is queried, else null.
        people_of: the same for each queried column.
        owed: the l that no row can give, because of a touched column no values are counted.
        anywhere: what is not null where anything is said of any column.
    """

    demands: dict[str, list[exp.Expr]] = field(default_factory=lambda: {d: [] for d in DEMANDS})
    general: dict[str, list[exp.Expr]] = field(default_factory=lambda: {d: [] for d in DEMANDS})
    columns: dict[str, dict[str, list[exp.Expr]]] = field(default_factory=dict)
    people: list[exp.Expr] = field(default_factory=list)
    people_of: dict[str, list[exp.Expr]] = field(default_factory=dict)
    anywhere: list[exp.Expr] = field(default_factory=list)
    owed: list[exp.Expr] = field(default_factory=list)


def join_demands(plan: GuaranteePlan, given: Policies | None, engine: Engine) -> GuaranteePlan:
    """The plan in which every person contributes under all that this person demands of it.

    Args:
        plan: the query, which knows the schemas of its tables.
        given: more policies, which add to those of the schemas.
        engine: takes the demands of single people along.

    Raises:
        SchemaError: the policies name columns that are not there.
    """
    stated = stated_policies(plan, given)
    if not stated:
        note = "Nobody states an own demand: everybody contributes at the finest level."
        return replace(plan, notes=(*plan.notes, note))
    _refuse_policy_columns(plan, given)
    source, said = plan.request.source.copy(), _PersonDemands()
    for aliases, policies in stated:
        if policies.people is not None:
            source = _with_people(plan, policies.people, source, engine, said)
        _with_columns(plan, policies, aliases, said)
    source = _by_person(plan, source, said)
    lenient = all(policies.missing != "refuse" for _, policies in stated)
    return replace(
        plan,
        request=replace(
            plan.request,
            source=source,
            demands=_pair(said, plan.queried, lenient=lenient),
            missing=0 if lenient else WITHOUT_POLICY,
        ),
    )


def require_known_people(given: Policies | None, catalog: Catalog, engine: Engine) -> None:
    """Refuse policies of people whom no table has: nobody would ever keep them.

    All tables that may be asked are looked at, so that it does not depend on the question.

    Raises:
        SchemaError: tells how many there are, and no names.
    """
    from sqlglot import exp

    if given is None or given.people is None:
        return
    for name in catalog.declared:
        catalog.find(name)
    person = exp.column("person", table="p", quoted=True)
    named_people = person_texts(given.people["person"]).drop_null().unique()
    known: set[str] = set()
    looked = [one for one in catalog.sources.values() if _has_plain_keys(one)]
    for table in looked:
        engine.add(NAMED, pa.table({"person": named_people}))
        own = exp.cast(exp.column(table.person or "", table="t", quoted=True), "text")
        match = exp.EQ(this=own, expression=person.copy())
        query = exp.select(exp.alias_(person.copy(), "person", quoted=True))
        query = query.from_(named(table.name, "t")).join(exp.to_table(NAMED, alias="p"), on=match)
        known |= set(engine.run(query.group_by(person.copy()))["person"].to_pylist())
    absent = len(set(named_people.to_pylist()) - known)
    if looked and absent:
        raise SchemaError(
            f"The policies name {absent} person(s) who are not in the table: write them as the "
            "table does, or leave them out."
        )


def _has_plain_keys(table: AskedTable) -> bool:
    """Whether a table names people in a way that all engines write alike."""
    kind = table.columns.get(table.person or "")
    return kind is not None and _is_plain(kind)


def _is_plain(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_integer(kind) or pa.types.is_date(kind) or is_text(kind)


def stated_policies(
    plan: GuaranteePlan, given: Policies | None
) -> list[tuple[tuple[str, ...], Policies]]:
    """Every source of demands of a query, with the tables that its columns stand in.

    Raises:
        SchemaError: a source names columns that are not there.
    """
    tables = plan.scope.tables
    found: list[tuple[tuple[str, ...], Policies]] = []
    faults: list[str] = []
    for alias, source in tables.items():
        for policies in _of_table(source):
            faults += policies.unknown(list(source.columns))
            faults += type_faults(policies, source.columns)
            found.append(((alias,), policies))
    if given is not None and given.stated:
        faults += given.unknown(list(dict.fromkeys(c for s in tables.values() for c in s.columns)))
        faults += [fault for s in tables.values() for fault in type_faults(given, s.columns)]
        found.append((tuple(tables), given))
    if faults:
        raise SchemaError(*dict.fromkeys(faults))
    return found


def _of_table(source: AskedTable) -> tuple[Policies, ...]:
    """What a table's schema states; of a table that is not read, its policy file is looked up."""
    if source.schema is None:
        return ()
    if source.table is not None or source.schema.policy_file is None:
        return sources(source.schema)
    return file_policies(source.schema, tuple(source.columns))


def _refuse_policy_columns(plan: GuaranteePlan, given: Policies | None) -> None:
    """A column that holds demands may not be asked for, also where an argument names it."""
    for name in plan.queried:
        if given is not None and name in given.names:
            raise QueryError(f"{name} holds people's demands: it may not be asked for.")


def _with_columns(
    plan: GuaranteePlan, policies: Policies, aliases: Iterable[str], said: _PersonDemands
) -> None:
    listed = tuple(aliases)
    for demand, where in policies.general.items():
        found = _expressions(plan, demand, where, listed)
        said.general[demand] += found
        said.demands[demand] += found
        if demand == "l" and _owes_general(plan):
            said.owed += found
    for name, entry in policies.columns.items():
        own = said.columns.setdefault(name, {d: [] for d in DEMANDS})
        for demand, where in entry.items():
            found = _expressions(plan, demand, where, listed)
            own[demand] += found
            said.anywhere += found
            if name in plan.queried:
                said.demands[demand] += found
            if demand == "l" and name in {c.name for c in plan.uncounted}:
                said.owed += found


def _owes_general(plan: GuaranteePlan) -> bool:
    """Whether a general l speaks of a column of which no values are counted."""
    return any(plan.scope.role(column) == "sensitive" for column in plan.uncounted)


def _expressions(
    plan: GuaranteePlan, demand: str, where: Demand, aliases: tuple[str, ...]
) -> list[exp.Expr]:
    """The number, or what the columns of that very name state."""
    from sqlglot import exp

    if not isinstance(where, str):
        return [exp.convert(where)]
    found: list[exp.Expr] = []
    for alias in aliases:
        source = plan.scope.tables[alias]
        if where in source.columns:
            column = exp.column(where, table=alias, quoted=True)
            # Of a table that was read, demands were looked at then.
            known = source.table is not None and where in source.table.schema.policy_names
            found.append(column if known else stated_number(column, source.columns[where], demand))
    return found


def _of_rows(stated: exp.Expr) -> exp.Column | None:
    """The column that a demand is read from; None where one number holds for everybody."""
    from sqlglot import exp

    return stated.find(exp.Column)


def _pair(
    said: _PersonDemands, queried: tuple[str, ...], *, lenient: bool
) -> tuple[exp.Expr, exp.Expr]:
    """The k and l of a row's person; null where nothing is said of a queried column."""
    from sqlglot import exp

    t: list[exp.Expr] = [
        exp.LT(this=e.copy(), expression=exp.Literal.number(1)) for e in said.demands["t"]
    ]
    t += [exp.GT(this=e.copy(), expression=exp.Literal.number(1)) for e in said.owed]
    exact = [e for name in ("k", "l", "t") for e in said.demands[name]]
    noise = said.demands["epsilon"]
    if noise and all(_of_rows(e) is not None for e in exact):
        t.append(exp.and_(exp.paren(_any(noise)), *(e.copy().is_(exp.null()) for e in exact)))
    silent = None if lenient else _silent(said, queried)
    pair = []
    for name in ("k", "l"):
        number: exp.Expr = _largest(said.demands[name])
        if t or silent is not None:
            case = exp.Case()
            if t:
                case = case.when(exp.or_(*(e.copy() for e in t)), exp.Literal.number(UNMET))
            if silent is not None:
                case = case.when(silent.copy(), exp.null())
            number = case.else_(number)
        pair.append(number)
    return pair[0], pair[1]


def _silent(said: _PersonDemands, queried: tuple[str, ...]) -> exp.Expr | None:
    """Whether nothing at all is stated, in general nor for one of the queried columns."""
    from sqlglot import exp

    if not queried:
        stated = [e for demand in DEMANDS for e in said.general[demand]]
        return _unless(_any([*stated, *said.people, *said.anywhere]))
    parts = []
    for name in queried:
        own = said.columns.get(name, {})
        stated = [e for d in DEMANDS for e in (*said.general[d], *own.get(d, []))]
        parts.append(_unless(_any([*stated, *said.people, *said.people_of.get(name, [])])))
    silent = [part for part in dict.fromkeys(parts) if part is not None]
    return exp.or_(*silent) if silent else None


def _unless(spoken: exp.Expr) -> exp.Expr | None:
    """Whether this does not hold; None where it always does."""
    from sqlglot import exp

    return None if spoken == exp.true() else exp.paren(spoken).not_()


def _any(stated: list[exp.Expr]) -> exp.Expr:
    from sqlglot import exp

    if not stated:
        return exp.false()
    if any(_of_rows(e) is None for e in stated):
        return exp.true()  # a number holds for everybody
    return exp.or_(*(e.copy().is_(exp.null()).not_() for e in dict.fromkeys(stated)))


def _largest(parts: list[exp.Expr]) -> exp.Expr:
    """The largest of several, 1 where none is stated."""
    from sqlglot import exp

    one = exp.Literal.number(1)
    stated: list[exp.Expr] = [
        exp.Coalesce(this=part.copy(), expressions=[one.copy()])
        if _of_rows(part) is not None
        else part.copy()
        for part in dict.fromkeys(parts)
    ]
    if not stated:
        return one
    return stated[0] if len(stated) == 1 else exp.Greatest(this=stated[0], expressions=stated[1:])


def _by_person(plan: GuaranteePlan, source: exp.Select, said: _PersonDemands) -> exp.Select:
    """Look demands up by person in the whole table that states them, whichever row was joined.

    A row of a joined table may be absent (LEFT JOIN), or be the mildest of several of its person:
    what the asker's ON and WHERE leave of it says nothing about what the person demands.
    """
    from sqlglot import exp

    tables, main = plan.scope.tables, plan.scope.main
    found: dict[str, list[exp.Expr]] = {}
    every = [*(e for es in said.general.values() for e in es), *said.anywhere]
    kinds = {e: "t" if name in ("t", "epsilon") else "k" for name, es in said.demands.items()
             for e in es}  # fmt: skip
    for expression in dict.fromkeys([*every, *kinds]):
        of = _of_rows(expression)
        if of is not None and of.table in tables:
            found.setdefault(of.table, []).append(expression)
    if not plan.repeat:  # each person has the one row that is read
        found.pop(main, None)
    swapped: dict[exp.Expr, exp.Expr] = {}
    total = TotalRows(plan.scope)
    for alias, columns in found.items():
        person, owner = tables[alias].person, plan.scope.person
        if person is None or owner is None:
            raise SchemaError(
                "People's demands must stand in the table that FROM names, or in one with a "
                "person column."
            )
        name = f"{BY_PERSON}_{len(swapped)}" if swapped else BY_PERSON
        key = total(exp.column(person, table=alias, quoted=True))
        parts: list[exp.Expr] = [exp.alias_(key.copy(), "person")]
        for i, column in enumerate(columns):
            strictest = exp.Min if kinds.get(column) == "t" else exp.Max
            parts.append(exp.alias_(strictest(this=column.copy()), f"d{i}"))
            swapped[column] = exp.column(f"d{i}", table=name)
        grouped = exp.select(*parts).from_(named(tables[alias].name, alias))
        grouped = grouped.group_by(key.copy())
        match = exp.EQ(this=total(owner), expression=exp.column("person", table=name))
        source = source.join(grouped.subquery(name), on=match, join_type="left")

    def swap(stated: dict[str, list[exp.Expr]]) -> dict[str, list[exp.Expr]]:
        return {demand: [swapped.get(e, e) for e in es] for demand, es in stated.items()}

    said.demands, said.general = swap(said.demands), swap(said.general)
    said.columns = {name: swap(own) for name, own in said.columns.items()}
    said.anywhere = [swapped.get(e, e) for e in said.anywhere]
    said.owed = [swapped.get(e, e) for e in said.owed]
    return source


def _with_people(
    plan: GuaranteePlan, people: pa.Table, source: exp.Select, engine: Engine, said: _PersonDemands
) -> exp.Select:
    """Join what a policy table says of single people."""
    from sqlglot import exp

    person = plan.scope.person
    if person is None:
        raise SchemaError("Policies are keyed by person: declare the person column of the table.")
    kind = engine.run(source.copy().select(person.copy(), append=False).limit(0)).schema[0].type
    if not _is_plain(kind):
        raise SchemaError(
            f"Policies are keyed by person, and the person column holds {kind}, which engines "
            "write in different ways: give whole numbers or text."
        )
    owing = tuple(dict.fromkeys(c.name for c in plan.uncounted))
    rows = for_columns(people, plan.queried, owing, general=_owes_general(plan))
    # Two plans may be compared side by side (by the ledger), each with its own policies.
    name = f"hm_policies_{next(_NUMBERS)}"
    engine.add(name, rows)
    match = exp.EQ(
        this=exp.cast(person.copy(), "text"), expression=exp.column("person", table=name)
    )
    source = source.join(exp.to_table(name), on=match, join_type="left")
    for demand in DEMANDS:
        if people[demand].null_count < people.num_rows:
            said.demands[demand].append(exp.column(demand, table=name))
    if rows["owed"].null_count < rows.num_rows:
        said.owed.append(exp.column("owed", table=name))
    said.people.append(exp.column("in_general", table=name))
    said.anywhere.append(exp.column("anywhere", table=name))
    for i, column in enumerate(plan.queried):
        said.people_of.setdefault(column, []).append(exp.column(f"of_{i}", table=name))
    return source


def for_columns(
    people: pa.Table,
    queried: tuple[str, ...],
    owing: tuple[str, ...] = (),
    *,
    general: bool = False,
) -> pa.Table:
    """One row per person: the strictest that holds for the queried columns, and what is said.

    ``owed`` is the l that is asked of the columns ``owing``, and in ``general`` where that counts.

    ``in_general``, ``anywhere`` and ``of_0`` ... are 1 where something is said in general, of any
    column, and of each queried column, else null.
    """
    from sqlglot import parse_one

    from halfmask.engines.duckdb.engine import finish

    stated = " OR ".join(f"{demand} IS NOT NULL" for demand in DEMANDS)
    names = [f"'{_quote(name)}'" for name in queried]
    holds = '"column" IS NULL' + (f' OR "column" IN ({", ".join(names)})' if names else "")
    parts = [
        f"{'MAX' if demand in ('k', 'l') else 'MIN'}({demand}) FILTER (WHERE {holds}) AS {demand}"
        for demand in DEMANDS
    ]
    owed = [f"\"column\" = '{_quote(name)}'" for name in owing]
    owed += ['"column" IS NULL'] if general else []
    parts.append(f"MAX(l) FILTER (WHERE {' OR '.join(owed) or 'FALSE'}) AS owed")
    flags = {"in_general": '"column" IS NULL', "anywhere": "TRUE"}
    flags |= {f"of_{i}": f'"column" = {name}' for i, name in enumerate(names)}
    parts += [
        f"MAX(CASE WHEN ({where}) AND ({stated}) THEN 1 END) AS {flag}"
        for flag, where in flags.items()
    ]
    text = (
        f"SELECT person, {', '.join(parts)} FROM published "  # noqa: S608
        "WHERE person IS NOT NULL GROUP BY person"
    )
    keyed = people.set_column(0, "person", person_texts(people["person"]))
    return finish(keyed, parse_one(text, read="duckdb"))


def _quote(name: str) -> str:
    return name.replace("'", "''")


def type_faults(policies: Policies, columns: Mapping[str, pa.DataType]) -> list[str]:
    """One fault per policy column whose type holds no numbers; rows have no say in it."""
    named: dict[str, str] = {}
    for entry in (policies.general, *policies.columns.values()):
        named |= {where: demand for demand, where in entry.items() if isinstance(where, str)}
    return [
        f"Policy column '{name}' ({demand}) holds no numbers: name a column that does."
        for name, demand in named.items()
        if name in columns
        and not pa.types.is_null(columns[name])
        and kind_of(columns[name]) not in ("integer", "decimal", "float")
    ]


def stated_number(column: exp.Column, kind: pa.DataType, demand: str) -> exp.Expr:
    """What a row states as ``demand``, whatever its column holds; null where it states nothing.

    A number within the range of its kind is what it says. All else that is not empty, too large,
    not a number or below the range, is the strictest demand of its kind, which no exact answer can
    meet: its person is left out, and nothing fails.
    """
    from sqlglot import exp

    if demand == "epsilon":  # exact answers ask only whether there is one
        return column
    low, high = (0, 1) if demand == "t" else (1, LARGEST)
    number: exp.Expr = column
    if pa.types.is_decimal256(kind):
        number = bounded_numeric(column)
    elif kind_of(kind) != "integer":
        number = double(column)
    inside = exp.Between(this=number, low=exp.convert(low), high=exp.convert(high))
    read = double(number) if demand == "t" or kind_of(kind) != "integer" else _whole(number)
    known = comparison_of(exp.Is, column, exp.null())
    strictest = exp.convert(int(STRICTEST[demand]))
    return case_of((known, exp.null()), (inside, read), other=strictest)


def _whole(number: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    return exp.cast(exp.paren(number), "bigint")
