"""What the door has an engine count beside a query, to see for itself whose demands are met.

Nothing here shares code with the resolver that plans the query; the demands are read again from the
tables, by the person of each row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.request import AggregateState
from halfmask.errors import InternalError, SchemaError
from halfmask.release.demands import STRICTER, as_text
from halfmask.table.demands import file_policies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot import exp

    from halfmask.engines.request import Engine, Request
    from halfmask.table.policies import Policies
    from halfmask.table.schema import Schema

AskedColumns: TypeAlias = "tuple[str, Mapping[str, pa.DataType], Schema | None]"
_MOST = "9007199254740992"  # from here on, doubles leave whole numbers out


@dataclass(frozen=True, slots=True)
class DemandWatch:
    """What the door has an engine count beside a query, to see for itself whose demands are met.

    Attributes:
        states: what is counted, by the demand and a number: ``"k0"`` ... is the largest k among the
            contributors of a group in one source, ``"noise0"`` whether one of them demands noise,
            ``"owed0"`` the largest l for a column of which no values are counted.
        floors: the demands that hold for everybody.
    """

    states: Mapping[str, AggregateState]
    floors: Mapping[str, float]

    def met(self, found: Mapping[str, Any], k: int, l: int) -> bool:  # noqa: E741
        """Whether a row that is published under (k, l) has given its contributors their due."""
        asked = {what: value for what, value in found.items() if value is not None}
        asked |= {f"{demand} of all": value for demand, value in self.floors.items()}
        given = {"k": k, "l": l, "noise": 0, "owed": 1}
        demands = ("noise", "owed", "k", "l", "t")
        for what, value in asked.items():
            demand = next((one for one in demands if what.startswith(one)), "")
            if demand == "t" and float(value) < 1:
                return False
            if demand in given and float(value) > given[demand]:
                return False
        return True


_WATCHES = itertools.count()


def watch_demands(
    request: Request,
    tables: Mapping[str, AskedColumns],
    given: Policies | None,
    touched: Sequence[str],
    engine: Engine,
    *,
    repeat: bool = True,
    uncounted: Sequence[tuple[str, str]] = (),
) -> tuple[Request, DemandWatch]:
    """The request that also counts what the door looks at, and what that is.

    Args:
        request: what is asked of the engine; whom it leaves out is no matter here.
        tables: alias to the name, the columns with their types, and the schema of each table of the
            query, the one in FROM first.
        given: policies that were given with the query.
        touched: the columns that the query touches.
        engine: takes the demands of single people along.
        repeat: whether somebody may have several rows in the first table.
        uncounted: the touched columns, with their tables, whose values are not counted by l.
    """
    from sqlglot import exp

    parts: dict[str, list[exp.Expr]] = {demand: [] for demand in (*STRICTER, "owed")}
    floors: dict[str, float] = {}
    source = request.source
    owing = _owing(tables, uncounted)
    for of, stated, people, aliases in _sources(tables, given, touched):
        entry = {**stated, "owed": stated.get("l") if of in owing else None}
        for demand, where in entry.items():
            if isinstance(where, str):
                parts[demand] += [
                    exp.column(where, table=a, quoted=True)
                    for a in aliases
                    if where in tables[a][1]
                ]
            elif where is not None:
                pick = min if STRICTER.get(demand) == "min" else max
                floors[demand] = pick(floors.get(demand, where), where)
        if people is not None and request.person is not None:
            own = engine.run(source.copy().select(request.person.copy(), append=False).limit(0))
            if pa.types.is_floating(own.schema[0].type) or pa.types.is_timestamp(
                own.schema[0].type
            ):
                raise SchemaError("People whose keys are fractions or times cannot be told apart.")
            name = f"hm_watched_{next(_WATCHES)}"
            engine.add(name, _one_each(people, touched, owing))
            match = exp.EQ(
                this=exp.cast(request.person.copy(), "text"),
                expression=exp.column("person", table=name),
            )
            source = source.join(exp.to_table(name), on=match, join_type="left")
            for demand in parts:
                if people["l" if demand == "owed" else demand].null_count < people.num_rows:
                    parts[demand].append(exp.column(demand, table=name))
    source, parts = _of_people(request, source, tables, parts, repeat=repeat)
    states = {
        f"{demand}{i}": AggregateState(
            "min" if STRICTER.get(demand) == "min" else "max", part, "float"
        )
        for demand in ("k", "l", "t", "owed")
        for i, part in enumerate(dict.fromkeys(parts[demand]))
    }
    exact = [part for demand in ("k", "l", "t") for part in dict.fromkeys(parts[demand])]
    if not {"k", "l", "t"} & set(floors):
        for i, part in enumerate(dict.fromkeys(parts["epsilon"])):
            silent = [one.copy().is_(exp.null()) for one in exact]
            alone = exp.and_(part.copy().is_(exp.null()).not_(), *silent)
            one, none = exp.Literal.number(1), exp.Literal.number(0)
            states[f"noise{i}"] = AggregateState(
                "max", exp.Case().when(alone, one).else_(none), "integer"
            )
    counted = (*request.states, *(s for s in states.values() if s not in request.states))
    return replace(request, source=source, states=counted), DemandWatch(states, floors)


def _read(
    tables: Mapping[str, AskedColumns], demand: str, column: exp.Expr, alias: str
) -> exp.Expr:
    """A demand in a column as a double; null where it is empty, and the strictest if it is odd.

    Nothing is converted before it is known to lie within the range of its kind.
    """
    from sqlglot import exp

    kind = tables[alias][1][column.name]
    if demand == "epsilon" or (demand != "t" and pa.types.is_integer(kind)):
        return column  # the largest whole number comes back however large it is
    most, worst = ("1", "0") if demand == "t" else (_MOST, _MOST)  # below 1, no t is met
    number = column
    if not pa.types.is_decimal256(kind):
        number = exp.cast(column.copy(), "double")
    known = exp.not_(column.copy().is_(exp.null()))
    fits = exp.and_(
        exp.GTE(this=number.copy(), expression=exp.Literal.number(1)),
        exp.LTE(this=number.copy(), expression=exp.Literal.number(most)),
    )
    case = exp.Case().when(fits, exp.cast(number.copy(), "double"))
    return case.when(known, exp.cast(exp.Literal.number(worst), "double"))


def _owing(
    tables: Mapping[str, AskedColumns], uncounted: Sequence[tuple[str, str]]
) -> set[str | None]:
    """The columns whose l no row gives; None stands for what is said in general."""
    found: set[str | None] = {name for _, name in uncounted}
    for alias, name in uncounted:
        schema = tables[alias][2]
        if schema is not None and name in schema.sensitive:
            found.add(None)
    return found


def _of_people(
    request: Request,
    source: exp.Select,
    tables: Mapping[str, AskedColumns],
    parts: Mapping[str, Sequence[exp.Expr]],
    *,
    repeat: bool,
) -> tuple[exp.Select, dict[str, list[exp.Expr]]]:
    """Demands of joined tables by the person of the row, whichever row was joined, if any."""
    from sqlglot import exp

    first = next(iter(tables))
    found: dict[str, list[exp.Expr]] = {demand: [] for demand in parts}
    looked: dict[str, dict[tuple[str, str], exp.Expr]] = {}
    for demand, stated in parts.items():
        for part in dict.fromkeys(stated):
            alias = part.text("table")
            if alias not in tables:
                found[demand].append(part)
                continue
            if alias == first and not repeat:
                found[demand].append(_read(tables, demand, part, alias))
                continue
            strictest = exp.Min if STRICTER.get(demand) == "min" else exp.Max
            column = _read(tables, demand, exp.column(part.name, table="w", quoted=True), alias)
            of = looked.setdefault(alias, {})
            of[demand, part.name] = exp.alias_(strictest(this=column), f"e{len(of)}")
            at = list(of).index((demand, part.name))
            found[demand].append(exp.column(f"e{at}", table=f"hm_owners_{alias}", quoted=True))
    for alias, stated_there in looked.items():
        name, _, schema = tables[alias]
        if schema is None or schema.person is None or request.person is None:
            raise InternalError("Demands stand in a table that does not say whose they are.")
        person = exp.column(schema.person, table="w", quoted=True)
        rows = exp.Table(this=exp.to_identifier(name, quoted=True))
        rows.set("alias", exp.TableAlias(this=exp.to_identifier("w")))
        each = exp.select(exp.alias_(person, "owner"), *stated_there.values()).from_(rows)
        each = each.where(person.copy().is_(exp.null()).not_()).group_by(person.copy())
        owner = exp.column("owner", table=f"hm_owners_{alias}", quoted=True)
        same = exp.EQ(this=request.person.copy(), expression=owner)
        looked_up = exp.Subquery(
            this=each,
            alias=exp.TableAlias(this=exp.to_identifier(f"hm_owners_{alias}", quoted=True)),
        )
        source = source.join(looked_up, on=same, join_type="left")
    return source, found


def _sources(
    tables: Mapping[str, AskedColumns],
    given: Policies | None,
    touched: Sequence[str],
) -> Iterator[tuple[str | None, Mapping[str, Any], pa.Table | None, tuple[str, ...]]]:
    """Of which column, every entry that holds, rows of single people, and where columns stand."""
    for alias, (_, columns, schema) in tables.items():
        if schema is None:
            continue
        apart = set(schema.policy_names) - set(columns)
        if apart and schema.policy_file is not None:
            for source in file_policies(schema, tuple(columns)):
                yield from _entries(source, touched, (alias,))
            continue
        yield None, schema.policy, None, (alias,)
        yield from ((c, schema.policy_columns.get(c, {}), None, (alias,)) for c in touched)
        for source in schema.policies:
            yield from _entries(source, touched, (alias,))
    if given is not None:
        yield from _entries(given, touched, tuple(tables))


def _entries(
    source: Policies, touched: Sequence[str], aliases: tuple[str, ...]
) -> Iterator[tuple[str | None, Mapping[str, Any], pa.Table | None, tuple[str, ...]]]:
    yield None, {name: getattr(source, name) for name in STRICTER}, source.people, aliases
    yield from ((c, source.columns.get(c, {}), None, aliases) for c in touched)


def _one_each(people: pa.Table, touched: Sequence[str], owing: set[str | None]) -> pa.Table:
    """One row per person of a policy table: the strictest of what holds, by Arrow."""
    said = people.set_column(0, "person", as_text(people["person"]))
    wanted = pc.field("column").is_null()
    if touched:
        wanted = wanted | pc.field("column").isin(pa.array(list(touched), pa.string()))
    said = said.filter(wanted & pc.field("person").is_valid())
    columns = [c for c in owing if c is not None]
    owes = pc.is_in(said["column"], pa.array(columns, pa.string()))
    if None in owing:
        owes = pc.or_(owes, pc.is_null(said["column"]))
    said = said.append_column("owed", pc.if_else(owes, said["l"], None))
    asked = {**STRICTER, "owed": "max"}
    said = said.group_by("person").aggregate(list(asked.items()))
    names = [f"{demand}_{how}" for demand, how in asked.items()]
    return said.select(["person", *names]).rename_columns(["person", *asked])
