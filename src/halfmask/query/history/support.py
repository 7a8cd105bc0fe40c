"""The rows and people behind an answer, told apart by numbers that no name or order changes.

A row of a table is known by its content: its values in the order of the columns' names, hashed
with the ledger's salt. A person is known by the value of the person column. So the same rows under
another name, in another file or engine, through a view or a join, are the same numbers. Rows with
the same content are in the same rows of every answer; where nobody is known to own them, each is
another person, and they are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.engines.request import REFUSED, WITHOUT_POLICY, kind_of
from halfmask.query import vocabulary
from halfmask.query.clauses import fold_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.duckdb.engine import DuckDB
    from halfmask.engines.request import Engine
    from halfmask.query.groups import Groups
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.semantics import PublishedRows

BELOW = "below the guarantee"
LEFT_OUT = {"no level satisfies their demands": REFUSED, "no policy": WITHOUT_POLICY}

Kind = Literal["people", "rows", "pairs"]
Profile = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """The groups that figures were told of.

    Attributes:
        places: per group (``level``, ``g0...``) the figure it belongs to; rows first, then totals.
        k: the largest guarantee of what was told.
        demand: what every difference must reach: k, and the own k of everybody in a place.
        splits: conditions of figures: a row tells of each part of its people that differs in them.
        rows: how many places are rows; the others are totals.
    """

    places: pa.Table
    k: int
    demand: int
    splits: tuple[exp.Expr, ...] = ()
    rows: int = 0


def support_of(
    plan: GuaranteePlan,
    groups: Groups,
    published: PublishedRows,
    withheld: Mapping[str, int | None],
    splits: tuple[exp.Expr, ...] = (),
) -> Support:
    """The rows of an answer, and its totals of people left out where they are said."""
    import pyarrow as pa

    ids = published.ids.copy()
    if withheld.get(BELOW) is not None:
        # How many are left out is a figure too: differences of it tell of people.
        ids[ids < 0] = len(published)
    inside = np.flatnonzero(ids >= 0)
    names = ["level", *(f"g{i}" for i in range(len(plan.keys)))]
    table = groups.states.select(names).append_column("place", pa.array(ids)).take(pa.array(inside))
    said = {x: level for x, level in LEFT_OUT.items() if withheld.get(x) is not None}
    # People left out are one group each: level below zero, and no keys.
    rest = {name: pa.nulls(len(said), table.schema.field(name).type) for name in names[1:]}
    rest["level"] = pa.array(list(said.values()), table.schema.field("level").type)
    rest["place"] = pa.array(range(len(published) + 1, len(published) + 1 + len(said)), pa.int64())
    # Made anew from its columns, because Spark says of some that they are never null.
    table = pa.table(table.columns, names=table.column_names)
    table = pa.concat_tables([table, pa.table(rest).select(table.column_names)])
    guarantees = plan.request.guarantees
    used = {0, *published.level.tolist()}
    if said or withheld.get(BELOW) is not None:
        used.add(groups.top)
    k = max(guarantees[level][0] for level in used)
    own = groups.demand[0][inside].tolist() if groups.demand is not None else []
    if REFUSED in said.values():
        own.append(groups.largest_refused)
    return Support(table, k, max([k, *own]), splits, len(published))


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """One way to see who stands where: by people, by rows of a table, or by rows joined.

    Attributes:
        kind: what is numbered.
        of: which figures are made of it: "" of all rows; else of those that have a value in the
            columns of that name.
        ids: the numbers.
        who: per number the person; the number itself where nobody is known.
        shared: per number, whether it is about several people.
        codes: per number, which profile it has.
        profiles: the places somebody stands in, and how often.
    """

    kind: Kind
    of: tuple[str, ...]
    ids: NDArray[np.uint64]
    who: NDArray[np.uint64]
    shared: NDArray[np.bool_]
    codes: NDArray[np.int64]
    profiles: tuple[Profile, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Everything that tells one answer's rows and people from another's.

    Attributes:
        parts: the people (where they are known), then the rows of each table.
        reads: the tables at the bottom of all views, by name.
        base: the one that the table in FROM is made of.
        opaque: whether rows of a view cannot be followed to the table that they come from.
    """

    parts: tuple[Numbering, ...]
    reads: tuple[str, ...]
    base: str
    opaque: bool


def trace_of(engine: Engine, plan: GuaranteePlan, support: Support, salt: str) -> Trace:
    """Follow what an answer tells to the rows of the tables it reads."""
    from sqlglot import exp

    from halfmask.engines.duckdb.engine import DuckDB

    source = plan.request.source.copy()
    origins = [_origin(engine, s.name, s.columns) for s in plan.scope.tables.values()]
    for alias, origin in zip(plan.scope.tables, origins, strict=True):
        if origin.derived is not None:
            table = next(t for t in source.find_all(exp.Table) if t.alias_or_name == alias)
            table.replace(origin.derived.subquery(exp.to_identifier(alias, quoted=True)))
    columns: dict[str, exp.Expr] = {}
    if plan.request.person is not None:
        person = plan.scope.tables[plan.scope.main].columns[plan.request.person.name]
        columns["who"] = _plain(plan.request.person, person)
    for i, (alias, origin) in enumerate(zip(plan.scope.tables, origins, strict=True)):
        for j, (name, data_type) in enumerate(origin.columns):
            columns[f"c{i}_{j}"] = _plain(exp.column(name, table=alias, quoted=True), data_type)
    columns |= {f"x{j}": split for j, split in enumerate(support.splits)}
    values = _values(plan)
    columns |= {f"n{j}": _is_there(names) for j, names in enumerate(values)}
    figures = [
        {f"n{j}": _key(v) for j, v in enumerate(values) if any(c.table == alias for c in v)}
        for alias in plan.scope.tables
    ]
    request = replace(plan.request, source=source, tests=(), states=())
    local = DuckDB({"traced": _without_zones(engine.trace(request, support.places, columns))})
    try:
        parts = _parts(local, support, salt, [len(o.columns) for o in origins], figures)
    finally:
        local.close()
    reads = sorted(set().union(*(o.reads for o in origins)))
    return Trace(tuple(parts), tuple(reads), origins[0].base, any(o.opaque for o in origins))


def _values(plan: GuaranteePlan) -> list[tuple[exp.Column, ...]]:
    """The columns that each aggregate is made of: where one is missing, so is the row."""
    from sqlglot import exp

    every = [state.expression for state in plan.request.states]
    every += [measure.expression for measure in plan.measures]
    found = [tuple(dict.fromkeys(e.find_all(exp.Column))) for e in every]
    return [columns for columns in dict.fromkeys(found) if columns]


def _key(columns: tuple[exp.Column, ...]) -> str:
    return ",".join(sorted({fold_name(c.name) for c in columns}))


def _is_there(columns: tuple[exp.Column, ...]) -> exp.Expr:
    from sqlglot import exp

    absent = exp.or_(*(c.copy().is_(exp.null()) for c in columns))
    return exp.Case().when(absent, exp.null()).else_(exp.Literal.number(1))


@dataclass(frozen=True, slots=True, eq=False)
class _Origin:
    """Where the rows of a table or view come from.

    Attributes:
        base: the table at the bottom of it.
        columns: the columns that tell its rows apart, by the names of the table at the bottom.
        reads: all tables it is made of.
        derived: a query that gives the view's columns and these; None where it is the table.
        opaque: whether it is a view whose rows cannot be followed further.
    """

    base: str
    columns: tuple[tuple[str, pa.DataType], ...]
    reads: frozenset[str]
    derived: exp.Select | None = None
    opaque: bool = False


def _origin(engine: Engine, name: str, columns: Mapping[str, pa.DataType]) -> _Origin:
    ordered = tuple(sorted(columns.items(), key=lambda c: (fold_name(c[0]), c[0])))
    view, followed = _view(engine, name)
    if view is None:
        return _Origin(name, ordered, frozenset([fold_name(name)]))
    if followed is not None:
        derived = _follow(engine, followed)
        if derived is not None:
            return derived
    return _Origin(name, ordered, frozenset(_reads(engine, view)), opaque=True)


def _view(engine: Engine, name: str) -> tuple[exp.Expr | None, exp.Select | None]:
    """The query of a view, and again where each of its rows is one row of one table."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    text = engine.definition(name)
    if text is None:
        return None, None
    try:
        parsed = parse_one(text, read=engine.dialect)
    except SqlglotError:
        return exp.Select(), None
    query = parsed.expression if isinstance(parsed, exp.Create) else parsed
    if not any(engine.columns(t.name) is not None for t in query.find_all(exp.Table)):
        return None, None  # of a file, or of an Arrow table: a table to us
    if isinstance(parsed, exp.Create) and parsed.find(exp.MaterializedProperty):
        return query, None
    names = parsed.this.expressions if isinstance(parsed, exp.Create) else []
    simple = query.copy() if isinstance(query, exp.Select) else None
    if simple is None or not _is_per_row(simple) or (names and simple.is_star):
        return query, None
    if names:
        items = [
            exp.alias_(e.unalias(), n.name, quoted=True)
            for e, n in zip(simple.expressions, names, strict=True)
        ]
        simple.set("expressions", items)
    return query, simple


def _is_per_row(select: exp.Select) -> bool:
    from sqlglot import exp

    source = select.args.get("from_") or select.args.get("from")
    used = {name for name, value in select.args.items() if value}
    allowed = set(vocabulary.allowed()) - set(vocabulary.aggregates())
    return (
        used <= {"expressions", "from", "from_", "where"}
        and source is not None
        and isinstance(source.this, exp.Table)
        and not source.this.args.get("joins")
        and all(type(node) in allowed for node in select.walk())
        and len(list(select.find_all(exp.Select))) == 1
    )


def _follow(engine: Engine, select: exp.Select) -> _Origin | None:
    from sqlglot import exp

    source = select.args.get("from_") or select.args.get("from")
    assert source is not None  # noqa: S101 - looked at before
    table = source.this
    columns = engine.columns(table.name)
    if columns is None:
        return None
    below = _origin(engine, table.name, columns)
    if below.opaque:
        return None
    alias = table.alias_or_name
    if below.derived is not None:
        table.replace(below.derived.subquery(exp.to_identifier(alias, quoted=True)))
    star = any(e.is_star for e in select.expressions)
    if not (star and below.derived is not None):  # else they come along with the star
        more = [
            exp.alias_(exp.column(n, table=alias, quoted=True), f"hm_{j}", quoted=True)
            for j, (n, _) in enumerate(below.columns)
        ]
        select = select.select(*more)
    kept = tuple((f"hm_{j}", data_type) for j, (_, data_type) in enumerate(below.columns))
    return _Origin(below.base, kept, below.reads, select)


def _reads(engine: Engine, query: exp.Expr, seen: frozenset[str] = frozenset()) -> set[str]:
    """The tables that a query of a view reads, through other views."""
    from sqlglot import exp

    found: set[str] = set()
    for name in {t.name for t in query.find_all(exp.Table)} - seen:
        view = _view(engine, name)[0] if engine.columns(name) is not None else None
        below = _reads(engine, view, seen | {name}) if view is not None else {fold_name(name)}
        found |= below
    return found


def _plain(value: exp.Expr, data_type: pa.DataType) -> exp.Expr:
    """A value as every engine gives it: whole numbers, floats, dates, truth and text."""
    import pyarrow as pa
    from sqlglot import exp

    kind = kind_of(data_type)
    if kind in ("integer", "float", "boolean"):
        return value.copy()
    if kind == "temporal" and (pa.types.is_date(data_type) or pa.types.is_timestamp(data_type)):
        return value.copy()
    return exp.cast(value.copy(), "double" if kind == "decimal" else "text")


def _without_zones(rows: pa.Table) -> pa.Table:
    """Times as they are in Greenwich, wherever the engine stands."""
    import pyarrow as pa

    for i, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            rows = rows.set_column(i, field.name, rows[i].cast(pa.timestamp(field.type.unit)))
    return rows


def _parts(
    local: DuckDB,
    support: Support,
    salt: str,
    widths: list[int],
    figures: list[dict[str, str]],
) -> list[Numbering]:
    """Number the people and the rows of each table in what was traced."""
    types = local.columns("traced") or {}
    texts = [f"{_text(name, types[name])} AS {name}" for name in types if name != "place"]
    there = "".join(f", {name}" for name in types if name.startswith("n"))
    rows = ", ".join(f"{_row_id(i, width, salt)} AS h{i}" for i, width in enumerate(widths))
    who = f"MD5_NUMBER_LOWER('{salt}person' || who)" if "who" in types else "NULL::UBIGINT"
    known = "who" in types
    place = "place"
    if support.splits:
        split = ", ".join(f"x{j}" for j in range(len(support.splits)))
        own = f"CASE WHEN place < {support.rows} THEN MD5(CAST(ROW({split}) AS VARCHAR)) END"
        place = f"DENSE_RANK() OVER (ORDER BY place, {own})"
    hashed = (
        f"SELECT {place} AS place, {who} AS person, {rows}{there} "  # noqa: S608
        f"FROM (SELECT place, {', '.join(texts)} FROM traced)"
    )
    # Alike rows of nobody known are as many people: they are numbered.
    number = "1" if known else "ROW_NUMBER() OVER (PARTITION BY h0)"
    other = f"MD5_NUMBER_LOWER('{salt}again' || h0 || ':' || again)"
    first = f"CASE WHEN again = 1 THEN h0 ELSE {other} END"
    others = "".join(
        f", COALESCE(h{i}, MD5_NUMBER_LOWER('{salt}none{i}:' || h0 || ':' || again)) AS r{i}"
        for i in range(1, len(widths))
    )
    numbered = (
        f"SELECT place, COALESCE(person, {first}) AS who, person, {first} AS r0{others}{there} "  # noqa: S608
        f"FROM (SELECT *, {number} AS again FROM ({hashed}))"
    )
    local.add("numbered", local.run_text(numbered))
    found = [_part(local, "people", "person")] if known else []
    tables = [_part(local, "rows", f"r{i}") for i in range(len(widths))]
    missing = _missing(local, list(dict.fromkeys(n for values in figures for n in values)))
    for i, (part, values) in enumerate(zip(tables, figures, strict=True)):
        partial = {n: of for n, of in values.items() if n in missing}
        whole = [of for n, of in values.items() if n not in partial]
        found.append(replace(part, of=("", *dict.fromkeys(whole))))
        found += [
            replace(_part(local, "rows", f"r{i}", f"numbered WHERE {n} IS NOT NULL"), of=(of,))
            for n, of in partial.items()
        ]
    if len(widths) > 1 and all(_repeats(part) for part in tables):
        every = " || ':' || ".join(f"r{i}" for i in range(len(widths)))
        pairs = f"SELECT place, who, MD5_NUMBER_LOWER({every}) AS pair FROM numbered"  # noqa: S608
        local.add("paired", local.run_text(pairs))
        found.append(_part(local, "pairs", "pair", "paired"))
    return found


def _missing(local: DuckDB, names: list[str]) -> set[str]:
    """The columns that are missing in some of the rows."""
    if not names:
        return set()
    counts = ", ".join(f"COUNT(*) - COUNT({name}) AS {name}" for name in names)
    (found,) = local.run_text(f"SELECT {counts} FROM numbered").to_pylist()  # noqa: S608
    return {name for name, absent in found.items() if absent}


def _repeats(part: Numbering) -> bool:
    return any(len(p) > 1 or p[0][1] > 1 for p in part.profiles)


def _text(name: str, data_type: pa.DataType) -> str:
    """The text of a value, the same however the number or date is kept."""
    import pyarrow as pa

    kind = kind_of(data_type)
    if kind == "float":
        whole = f"{name} = FLOOR({name}) AND ABS({name}) < 1e15"
        return (
            f"CASE WHEN {whole} THEN CAST(TRY_CAST({name} AS BIGINT) AS VARCHAR) "
            f"ELSE CAST({name} AS VARCHAR) END"
        )
    if kind == "temporal" and pa.types.is_timestamp(data_type):
        return f"REGEXP_REPLACE(STRFTIME({name}, '%Y-%m-%d %H:%M:%S.%f'), ' 00:00:00.0+$', '')"
    return f"CAST({name} AS VARCHAR)"


def _row_id(i: int, width: int, salt: str) -> str:
    names = [f"c{i}_{j}" for j in range(width)]
    values = ", ".join(f"COALESCE(LENGTH({n}) || ':' || {n}, 'n')" for n in names)
    absent = f"COALESCE({', '.join(names)}) IS NULL"
    number = f"MD5_NUMBER_LOWER(CONCAT('{salt}row', {values}))"
    # A row of the first table is there even if it is empty; of others it was not joined then.
    return f"CASE WHEN {absent} THEN NULL ELSE {number} END" if i else number


def _part(local: DuckDB, kind: Kind, column: str, table: str = "numbered") -> Numbering:
    import pyarrow as pa

    counted = (
        f"SELECT {column} AS id, place, COUNT(*) AS n, MIN(who) AS low, MAX(who) AS high "  # noqa: S608
        f"FROM (SELECT * FROM {table}) WHERE {column} IS NOT NULL GROUP BY {column}, place"
    )
    query = (
        "SELECT id, MIN(low) AS low, MAX(high) AS high, "  # noqa: S608
        "STRING_AGG(place || 'x' || n, ',' ORDER BY place) AS profile "
        f"FROM ({counted}) GROUP BY id ORDER BY id"
    )
    found = local.run_text(query)
    profiles = found["profile"].combine_chunks().dictionary_encode()
    if isinstance(profiles, pa.ChunkedArray):
        profiles = profiles.combine_chunks()
    low, high = (found[n].to_numpy().astype(np.uint64) for n in ("low", "high"))
    return Numbering(
        kind,
        ("",),
        found["id"].to_numpy().astype(np.uint64),
        low,
        low != high,
        profiles.indices.to_numpy().astype(np.int64),
        tuple(map(_profile, profiles.dictionary.to_pylist())),
    )


def _profile(text: str) -> Profile:
    pairs = [pair.split("x") for pair in text.split(",")]
    return tuple((int(place), int(times)) for place, times in pairs)
