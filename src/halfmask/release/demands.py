"""What the doors know of people's own demands: read again from the table, and held against classes.

Nothing here shares code with the resolver that the searches use; rows are joined and grouped by
Arrow. Whether demands were kept or set aside is written into the release by the door itself.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.request import State
from halfmask.errors import InternalError, ParameterError, PrivacyError, SchemaError
from halfmask.table.demands import file_policies
from halfmask.table.numbers import is_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine, Request
    from halfmask.models.verdict import Model
    from halfmask.table.demands import Policies
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

Choice = Literal["keep", "ignore"]
_STRICTER = {"k": "max", "l": "max", "t": "min", "epsilon": "min"}
_TOLERANCE = 1e-9
DRAWN, INSTEAD = "rows drawn from groups", "anonymize, or differential privacy (epsilon)"
SET_ASIDE = "only the controller may set demands aside: demands='ignore', or --ignore-demands"


@dataclass(frozen=True, slots=True)
class DemandsStatement:
    """What became of people's own demands.

    Attributes:
        kept: whether every person who leaves has what this person demands.
        people: how many people state a demand.
        noise: how many of them also state an epsilon, which speaks of noise.
    """

    kept: bool
    people: int
    noise: int

    @property
    def words(self) -> str:
        """What a reader must know first; nothing where demands were kept."""
        if self.kept:
            return ""
        return (
            f"The own demands of {self.people:,} people were set aside by the controller: these "
            "rows may show them more closely than they asked for."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know besides."""
        if not self.kept or not self.noise:
            return ()
        return (
            f"{self.noise:,} people also state an own epsilon: it speaks of noise, and nothing "
            "here is noisy.",
        )

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain values; how many demand something is told where it was broken."""
        return {"kept": True} if self.kept else {"kept": False, "people": self.people}


def hold_demands(
    table: Table,
    rows: NDArray[np.int64],
    ids: NDArray[Any],
    models: Sequence[Model],
    choice: Choice,
) -> DemandsStatement | None:
    """Demand that the class of every row that leaves gives its person what this person demands.

    Args:
        table: the original rows.
        rows: which of them leave.
        ids: the class of each of these, from 0.
        models: the promises that were named, for the distance of t.
        choice: whether demands are kept or set aside.

    Returns:
        What became of the demands; None where nobody states any.

    Raises:
        PrivacyError: somebody demands noise, and nothing here is noisy.
        InternalError: a demand is not met; nothing leaves.
    """
    found = statement(table, choice)
    if found is None or choice == "ignore":
        return found
    classes = int(ids.max(initial=-1)) + 1
    short = {"k": _people(table, rows, ids, classes)[ids] < _numbers(table, "k", rows=rows)}
    for name in table.schema.sensitive:
        codes = table.encode(name).codes[rows]
        pairs = _pairs(ids, codes)
        l_, t = _numbers(table, "l", name, rows=rows), _numbers(table, "t", name, rows=rows)
        held = np.bincount(pairs["class"].to_numpy(), minlength=classes)[ids]
        short[f"l of {name}"] = held < l_
        if not np.isnan(t).all() and (apart := _apart(table, name, models)) is not None:
            far = _distances(pairs, classes, len(table.encode(name).values), apart)
            short[f"t of {name}"] = far[ids] > t + _TOLERANCE
    broken = {what: int(np.count_nonzero(one)) for what, one in short.items() if one.any()}
    if broken:
        words = ", ".join(f"{what} ({count} rows)" for what, count in broken.items())
        raise InternalError(f"The rows that would leave break people's own {words}.")
    return found


def hold_groups(table: Table, ids: NDArray[Any], choice: Choice) -> DemandsStatement | None:
    """Demand that rows were drawn from groups that hold as many people as anybody in them demands.

    Raises:
        PrivacyError: somebody demands an l, a t or noise, which such groups cannot give.
        InternalError: a demand is not met; nothing leaves.
    """
    found = statement(table, choice)
    if found is None or choice == "ignore":
        return found
    refuse_diversity(table, DRAWN, INSTEAD)
    every = np.arange(len(table))
    people = _people(table, every, ids, int(ids.max(initial=-1)) + 1)[ids]
    broken = int(np.count_nonzero(people < _numbers(table, "k", rows=every)))
    if broken:
        raise InternalError(f"{broken} rows are drawn from groups below their person's own k.")
    return found


def told_first(found: DemandsStatement | None, notes: Sequence[str]) -> tuple[str, ...]:
    """``notes`` behind what must be said of demands first."""
    if found is None:
        return tuple(notes)
    return (*((found.words,) if found.words else ()), *notes, *found.notes)


def refuse_diversity(table: Table, what: str, instead: str) -> None:
    """Refuse where somebody demands an l or t, which ``what`` cannot give."""
    l_, t = _numbers(table, "l"), _numbers(table, "t")
    count = _count(table, (l_ > 1) | (t < 1))
    if count:
        raise PrivacyError(
            f"{count:,} people state an own l or t, which {what} cannot keep: use {instead}; "
            f"{SET_ASIDE}."
        )


def require_choice(choice: object) -> None:
    """Refuse what is neither keeping demands nor setting them aside."""
    if choice not in ("keep", "ignore"):
        raise ParameterError("demands", choice, "'keep' or 'ignore'")


def statement(
    table: Table, choice: Choice, counts: NDArray[np.int64] | None = None
) -> DemandsStatement | None:
    """How many people state what, where each row stands for ``counts``.

    Raises:
        PrivacyError: somebody demands noise alone, which exact rows cannot give.
    """
    require_choice(choice)
    schema = table.schema
    if not schema.policy and not schema.policy_columns and not schema.policies:
        return None
    exact = [~np.isnan(_numbers(table, demand)) for demand in ("k", "l", "t")]
    own, noise = exact[0] | exact[1] | exact[2], ~np.isnan(_numbers(table, "epsilon"))
    people = _count(table, own | noise, counts)
    if not people:
        return None
    only = _count(table, noise & ~own, counts)
    if only and choice == "keep":
        raise PrivacyError(
            f"{only:,} people state an own epsilon and no k, l or t, which rows without noise "
            f"cannot keep: use differential privacy (epsilon); {SET_ASIDE}."
        )
    return DemandsStatement(choice == "keep", people, _count(table, noise, counts))


def _numbers(
    table: Table, demand: str, of: str | None = None, *, rows: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Per row, the strictest that any source says of its person; NaN where none says anything."""
    schema = table.schema
    counted = [c for c in _spoken_of(table) if c not in schema.private]
    if of is not None:  # what is said of another sensitive column is not said of this one
        counted = [c for c in counted if c == of or c not in schema.sensitive]
    entries: list[Mapping[str, Any]] = [schema.policy]
    entries += [schema.policy_columns[c] for c in counted if c in schema.policy_columns]
    joined = []
    for source in schema.policies:
        entries.append({name: getattr(source, name) for name in _STRICTER})
        entries += [source.columns[c] for c in counted if c in source.columns]
        if source.people is not None:
            joined.append(_joined(table, source.people, demand, counted))
    parts = [_entry(table, entry[demand]) for entry in entries if entry.get(demand) is not None]
    parts += joined
    if not parts:
        return np.full(len(table) if rows is None else len(rows), np.nan)
    pick = pc.max_element_wise if _STRICTER[demand] == "max" else pc.min_element_wise
    each = pick(*parts, skip_nulls=True)
    if schema.person is not None:  # somebody with several rows demands the most of them
        each = _of_all_rows(table, each, demand)
    found = each if rows is None else each.take(pa.array(rows))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.float64)


def _spoken_of(table: Table) -> list[str]:
    names = list(table.schema.policy_columns)
    for source in table.schema.policies:
        names += list(source.columns)
        if source.people is not None:
            names += source.people["column"].drop_null().unique().to_pylist()
    return list(dict.fromkeys(names))


def _entry(table: Table, where: str | float) -> pa.Array:
    if isinstance(where, str):
        if where not in table.arrow.column_names:
            raise SchemaError(f"The policy column '{where}' is not in the table.")
        column = table.arrow[where]
        if not is_number(column.type) and not pa.types.is_null(column.type):
            raise SchemaError(f"The policy column '{where}' holds text: give numbers.")
        return _whole(column.cast(pa.float64()))
    return pa.repeat(pa.scalar(float(where)), len(table))


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _joined(table: Table, people: pa.Table, demand: str, counted: Sequence[str]) -> pa.Array:
    """What a policy table says of each row's person, by a join in Arrow."""
    said = pa.table(
        {
            "person": _text(people["person"]),
            "general": pc.is_null(people["column"]),
            "column": people["column"],
            "asked": people[demand],
        }
    )
    wanted = pc.field("general")
    if counted:
        wanted = wanted | pc.field("column").isin(pa.array(list(counted), pa.string()))
    said = said.filter(wanted)
    how = _STRICTER[demand]
    said = said.group_by("person").aggregate([("asked", how)])
    named = pa.table(
        {
            "person": _text(table.arrow[table.schema.person]),
            "row": np.arange(len(table), dtype=np.int64),
        }
    )
    both = named.join(said, "person", join_type="left outer").sort_by("row")
    return _whole(both[f"asked_{how}"])


def _of_all_rows(table: Table, each: pa.Array, demand: str) -> pa.Array:
    how = _STRICTER[demand]
    named = pa.table(
        {
            "person": _text(table.arrow[table.schema.person]),
            "asked": each,
            "row": np.arange(len(table), dtype=np.int64),
        }
    )
    own = named.group_by("person").aggregate([("asked", how), ("row", "list")])
    lists = _whole(own["row_list"])
    asked = _whole(own[f"asked_{how}"]).take(pc.list_parent_indices(lists))
    return asked.take(pc.sort_indices(lists.flatten()))


def _text(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _whole(column.cast(pa.string()))


def _count(table: Table, marked: NDArray[np.bool_], counts: NDArray[np.int64] | None = None) -> int:
    """How many people the marked rows are about."""
    if table.schema.person is None:
        return int(np.count_nonzero(marked) if counts is None else counts[marked].sum())
    return len(pc.unique(_text(table.arrow[table.schema.person]).filter(pa.array(marked))))


def _people(
    table: Table, rows: NDArray[np.int64], ids: NDArray[Any], classes: int
) -> NDArray[np.int64]:
    """How many different people stand in each class."""
    if table.schema.person is None:
        return np.bincount(ids, minlength=classes).astype(np.int64)
    person = _text(table.arrow[table.schema.person]).take(pa.array(rows))
    pairs = pa.table({"class": ids, "person": person}).group_by(["class", "person"]).aggregate([])
    return np.bincount(pairs["class"].to_numpy(), minlength=classes).astype(np.int64)


def _pairs(ids: NDArray[Any], codes: NDArray[np.int32]) -> pa.Table:
    """Class, value and how many rows hold it, once each."""
    pairs = pa.table({"class": ids, "value": codes})
    return pairs.group_by(["class", "value"]).aggregate([([], "count_all")])


def _apart(table: Table, name: str, models: Sequence[Model]) -> str | None:
    """The distance by which t of a column is measured; None where a named model sees to it."""
    named = [getattr(m, "distance", "") for m in models if m.policy == ("t",) and name in m.columns]
    if named and named[0] == "hierarchical":
        return None
    if named:
        return str(named[0])
    column, kind = table.schema.columns[name], table.encode(name).values.type
    along = column.order is not None or pa.types.is_temporal(kind) or pa.types.is_decimal(kind)
    along = along or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return "ordered" if along else "equal"


def _distances(pairs: pa.Table, classes: int, domain: int, apart: str) -> NDArray[np.float64]:
    """How far the values of each class are from those of all rows that leave."""
    owner, value = pairs["class"].to_numpy(), pairs["value"].to_numpy()
    count = pairs["count_all"].to_numpy().astype(np.float64)
    every = np.bincount(value, weights=count, minlength=domain)
    sizes = np.bincount(owner, weights=count, minlength=classes)
    share = every / every.sum()
    if apart == "equal":
        more = np.maximum(count / sizes[owner] - share[value], 0.0)
        return np.asarray(np.bincount(owner, weights=more, minlength=classes), dtype=np.float64)
    held = np.flatnonzero(every)
    reached = np.cumsum(share[held])
    place = np.searchsorted(held, value)
    order = np.lexsort((place, owner))
    owner, begin = owner[order], place[order]
    starts = np.searchsorted(owner, np.arange(classes))
    own = np.cumsum(count[order] / sizes[owner])
    own -= np.concatenate(([0.0], own))[starts][owner]
    end = np.append(begin[1:], len(held))
    end[np.append(starts[1:], len(owner)) - 1] = len(held)
    # Between two values that a class holds, its running share stays and that of all rows grows.
    sums = np.concatenate(([0.0], np.cumsum(reached)))
    turn = np.clip(np.searchsorted(reached, own), begin, end)
    apart_by = own * (2 * turn - begin - end) + sums[begin] + sums[end] - 2 * sums[turn]
    far = np.bincount(owner, weights=apart_by, minlength=classes) + sums[begin[starts]]
    return np.asarray(far / max(len(held) - 1, 1), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Watch:
    """What the door has an engine count beside a query, to see for itself whose demands are met.

    Attributes:
        states: what is counted, by the demand and a number: ``"k0"`` ... is the largest k among the
            contributors of a group in one source, ``"noise0"`` whether one of them demands noise.
        floors: the demands that hold for everybody.
    """

    states: Mapping[str, State]
    floors: Mapping[str, float]

    def met(self, found: Mapping[str, Any], k: int, l: int) -> bool:  # noqa: E741
        """Whether a row that is published under (k, l) has given its contributors their due."""
        asked = {what: value for what, value in found.items() if value is not None}
        asked |= {f"{demand} of all": value for demand, value in self.floors.items()}
        given = {"k": k, "l": l, "noise": 0}
        for what, value in asked.items():
            demand = next((one for one in ("noise", "k", "l", "t") if what.startswith(one)), "")
            if demand == "t" and float(value) < 1:
                return False
            if demand in given and float(value) > given[demand]:
                return False
        return True


_WATCHES = itertools.count()


def watched(
    request: Request,
    tables: Mapping[str, tuple[Sequence[str], Schema | None]],
    given: Policies | None,
    touched: Sequence[str],
    engine: Engine,
) -> tuple[Request, Watch | None]:
    """The request that also counts what the door looks at; None where nobody states a demand.

    Args:
        request: what is asked of the engine; whom it leaves out is no matter here.
        tables: alias to the columns and the schema of each table of the query.
        given: policies that were given with the query.
        touched: the columns that the query touches.
        engine: takes the demands of single people along.
    """
    from sqlglot import exp

    parts: dict[str, list[exp.Expr]] = {demand: [] for demand in _STRICTER}
    floors: dict[str, float] = {}
    source = request.source
    for entry, people, aliases in _sources(tables, given, touched):
        for demand, where in entry.items():
            if isinstance(where, str):
                parts[demand] += [
                    exp.column(where, table=a, quoted=True)
                    for a in aliases
                    if where in tables[a][0]
                ]
            elif where is not None:
                pick = max if _STRICTER[demand] == "max" else min
                floors[demand] = pick(floors.get(demand, where), where)
        if people is not None and request.person is not None:
            name = f"hm_watched_{next(_WATCHES)}"
            engine.add(name, _one_each(people, touched))
            match = exp.EQ(
                this=exp.cast(request.person.copy(), "text"),
                expression=exp.column("person", table=name),
            )
            source = source.join(exp.to_table(name), on=match, join_type="left")
            for demand in _STRICTER:
                if people[demand].null_count < people.num_rows:
                    parts[demand].append(exp.column(demand, table=name))
    states = {
        f"{demand}{i}": State("max" if _STRICTER[demand] == "max" else "min", part)
        for demand in ("k", "l", "t")
        for i, part in enumerate(dict.fromkeys(parts[demand]))
    }
    exact = [part for demand in ("k", "l", "t") for part in dict.fromkeys(parts[demand])]
    if not {"k", "l", "t"} & set(floors):
        for i, part in enumerate(dict.fromkeys(parts["epsilon"])):
            silent = [one.copy().is_(exp.null()) for one in exact]
            alone = exp.and_(part.copy().is_(exp.null()).not_(), *silent)
            one, none = exp.Literal.number(1), exp.Literal.number(0)
            states[f"noise{i}"] = State("max", exp.Case().when(alone, one).else_(none), "integer")
    if not states and not floors:
        return request, None
    counted = (*request.states, *(s for s in states.values() if s not in request.states))
    return replace(request, source=source, states=counted), Watch(states, floors)


def _sources(
    tables: Mapping[str, tuple[Sequence[str], Schema | None]],
    given: Policies | None,
    touched: Sequence[str],
) -> Iterator[tuple[Mapping[str, Any], pa.Table | None, tuple[str, ...]]]:
    """Every entry of demands that holds, the rows of single people, and where columns stand."""
    for alias, (columns, schema) in tables.items():
        if schema is None:
            continue
        apart = set(schema.policy_names) - set(columns)
        if apart and schema.policy_file is not None:
            for source in file_policies(schema, tuple(columns)):
                yield from _entries(source, touched, (alias,))
            continue
        yield schema.policy, None, (alias,)
        yield from ((schema.policy_columns.get(c, {}), None, (alias,)) for c in touched)
        for source in schema.policies:
            yield from _entries(source, touched, (alias,))
    if given is not None:
        yield from _entries(given, touched, tuple(tables))


def _entries(
    source: Policies, touched: Sequence[str], aliases: tuple[str, ...]
) -> Iterator[tuple[Mapping[str, Any], pa.Table | None, tuple[str, ...]]]:
    yield {name: getattr(source, name) for name in _STRICTER}, source.people, aliases
    yield from ((source.columns.get(c, {}), None, aliases) for c in touched)


def _one_each(people: pa.Table, touched: Sequence[str]) -> pa.Table:
    """One row per person of a policy table: the strictest of what holds, by Arrow."""
    said = people.set_column(0, "person", _text(people["person"]))
    wanted = pc.field("column").is_null()
    if touched:
        wanted = wanted | pc.field("column").isin(pa.array(list(touched), pa.string()))
    said = said.filter(wanted & pc.field("person").is_valid())
    said = said.group_by("person").aggregate(list(_STRICTER.items()))
    names = [f"{demand}_{how}" for demand, how in _STRICTER.items()]
    return said.select(["person", *names]).rename_columns(["person", *_STRICTER])
