"""What the doors know of people's own demands: read again from the table, and held against classes.

Nothing here shares code with the resolver that the searches use; rows are joined and grouped by
Arrow. Whether demands were kept or set aside is written into the release by the door itself.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.personal import IGNORED
from halfmask.engines.request import AggregateState
from halfmask.errors import InternalError, ParameterError, PrivacyError, SchemaError
from halfmask.release.document import FEW
from halfmask.table.demands import file_policies, states
from halfmask.table.policies import DEMANDS
from halfmask.table.tuples import Tuples, ones, tally
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine, Request
    from halfmask.models.verdict import Model
    from halfmask.table.policies import Policies
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

DemandsChoice = Literal["keep", "ignore"]
AskedColumns: TypeAlias = "tuple[str, Mapping[str, pa.DataType], Schema | None]"
_STRICTER = {"k": "max", "l": "max", "t": "min", "epsilon": "min"}
_TOLERANCE = 1e-9
_MOST = "9007199254740992"  # from here on, doubles leave whole numbers out
DRAWN, INSTEAD = "rows drawn from groups", "anonymize, or differential privacy (epsilon)"
SET_ASIDE = "only the controller may set demands aside: demands='ignore', or --ignore-demands"


@dataclass(frozen=True, slots=True)
class DemandsStatement:
    """What became of people's own demands.

    Attributes:
        kept: whether every person who leaves has what this person demands.
        people: how many people state a demand.
        noise: how many of them also state an epsilon, which speaks of noise.
        silent: how many state nothing that these rows keep; ``everybody`` how many there are.
    """

    kept: bool
    people: int
    noise: int
    silent: int = 0
    everybody: int = 0

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

    def unpromised(self, models: Sequence[Model]) -> tuple[str, ...]:
        """That nothing is promised to those who demand nothing, where no model speaks for them.

        About how many they are is told in steps of ``FEW``, as demands are. Where few state one or
        few state none no number is told, nor whether there is anybody.
        """
        general = any(
            not model.policy or getattr(model, "default", None) not in (None, 1) for model in models
        )
        if not self.kept or general:
            return ()
        if min(self.silent, self.everybody - self.silent) < FEW:
            who = "Who states no demand is promised nothing."
        else:
            silent, all_ = (round(one / FEW) * FEW for one in (self.silent, self.everybody))
            who = (
                f"About {silent:,} of {all_:,} people state no demand: nothing is promised to them."
            )
        return (f"{who} Name --k to protect everybody.",)

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain values; how many demand something is told where it was broken."""
        return {"kept": True} if self.kept else {"kept": False, "people": self.people}


@dataclass(frozen=True, slots=True)
class NoisyDemands:
    """Whether noise kept people's own demands; how many state one is never told here."""

    kept: bool

    @property
    def words(self) -> str:
        """What a reader must know first; nothing where demands were kept."""
        return "" if self.kept else IGNORED

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain values."""
        return {"kept": self.kept}


def noisy_demands(schema: Schema | None, choice: object) -> NoisyDemands | None:
    """What became of people's own demands under noise; None where nobody can state any."""
    if choice == "ignore":
        return NoisyDemands(kept=False)
    stated = schema is not None and any(states(schema, demand) for demand in DEMANDS)
    return NoisyDemands(kept=True) if stated else None


def enforce_demands(
    table: Table,
    rows: NDArray[np.int64],
    ids: NDArray[Any],
    models: Sequence[Model],
    choice: DemandsChoice,
    counts: NDArray[np.int64] | None = None,
    *,
    noisy: bool = False,
) -> DemandsStatement | None:
    """Demand that the class of every row that leaves gives its person what this person demands.

    Args:
        table: the original rows.
        rows: which of them leave.
        ids: the class of each of these, from 0.
        models: the promises that were named, for the distance of t.
        choice: whether demands are kept or set aside.
        counts: how many rows each row of ``table`` stands for; None: one.
        noisy: whether all that leaves is noisy, and ``enforce_noise`` held it against epsilon.

    Returns:
        What became of the demands; None where nobody states any.

    Raises:
        PrivacyError: somebody demands noise, and nothing here is noisy.
        InternalError: a demand is not met; nothing leaves.
    """
    rows_held = table if counts is None else Tuples(table, counts)
    found = state_demands(rows_held, choice, noisy=noisy)
    if found is None or choice == "ignore":
        return found
    classes = int(ids.max(initial=-1)) + 1
    held_by = ones(len(rows)) if counts is None else counts[rows]
    short = {
        "k": _people(table, rows, ids, classes, held_by)[ids] < _numbers(table, "k", rows=rows)
    }
    for name in table.schema.sensitive:
        pairs = _known_pairs(table, name, rows, ids, held_by)
        l_, t = _numbers(table, "l", name, rows=rows), _numbers(table, "t", name, rows=rows)
        held = np.bincount(pairs["class"].to_numpy(), minlength=classes)[ids]
        short[f"l of {name}"] = (held < l_) & (l_ > 1)
        if not np.isnan(t).all() and (apart := _apart(table, name, models)) is not None:
            far = _known_distances(pairs, classes, len(table.encode(name).values), apart)
            short[f"t of {name}"] = far[ids] > t + _TOLERANCE
    broken = {what: int(np.count_nonzero(one)) for what, one in short.items() if one.any()}
    if broken:
        words = ", ".join(f"{what} ({count} rows)" for what, count in broken.items())
        raise InternalError(f"The rows that would leave break people's own {words}.")
    return found


def enforce_group_demands(
    table: Table, ids: NDArray[Any], choice: DemandsChoice
) -> DemandsStatement | None:
    """Demand that rows were drawn from groups that hold as many people as anybody in them demands.

    Raises:
        PrivacyError: somebody demands an l, a t or noise, which such groups cannot give.
        InternalError: a demand is not met; nothing leaves.
    """
    found = state_demands(table, choice)
    if found is None or choice == "ignore":
        return found
    refuse_diversity(table, DRAWN, INSTEAD)
    every = np.arange(len(table))
    people = _people(table, every, ids, int(ids.max(initial=-1)) + 1, ones(len(table)))[ids]
    broken = int(np.count_nonzero(people < _numbers(table, "k", rows=every)))
    if broken:
        raise InternalError(f"{broken} rows are drawn from groups below their person's own k.")
    return found


def enforce_noise(table: Table, whole: Table, cost: Fraction | None) -> None:
    """Demand that each row's ``cost``, times a person's rows in all, is within the own epsilon.

    Args:
        table: the rows that leave, with what their people demand.
        whole: all rows, of which somebody may have several.
        cost: the epsilon of the noise in a row; None: of noise that promises nothing.

    Raises:
        PrivacyError: somebody demands less.
    """
    own = _numbers(table, "epsilon")
    stated = ~np.isnan(own)
    if not stated.any():
        return
    many = np.ones(len(table))
    if whole.schema.person is not None:
        names = _text(whole.arrow[whole.schema.person])
        counted = pc.value_counts(names)
        places = pc.index_in(_text(table.arrow[whole.schema.person]), counted.field("values"))
        many = counted.field("counts").take(places).to_numpy(zero_copy_only=False).astype(float)
    spent = np.inf if cost is None else many * float(cost)
    over = stated & ~(spent <= own * (1 + _TOLERANCE))
    count = _count(Tuples.of(table), over)
    if count:
        raise PrivacyError(
            f"{count:,} people state an own epsilon below what their randomized answers cost, "
            "row by row and column by column: randomize with less epsilon, or fewer columns; "
            f"{SET_ASIDE}."
        )


def order_notes(found: DemandsStatement | None, notes: Sequence[str]) -> tuple[str, ...]:
    """``notes`` behind what must be said of demands first."""
    if found is None:
        return tuple(notes)
    return (*((found.words,) if found.words else ()), *notes, *found.notes)


def refuse_diversity(table: Table, what: str, instead: str) -> None:
    """Refuse where somebody demands an l or t, which ``what`` cannot give."""
    l_, t = _numbers(table, "l"), _numbers(table, "t")
    count = _count(Tuples.of(table), (l_ > 1) | (t < 1))
    if count:
        raise PrivacyError(
            f"{count:,} people state an own l or t, which {what} cannot keep: use {instead}; "
            f"{SET_ASIDE}."
        )


def require_choice(choice: object) -> None:
    """Refuse what is neither keeping demands nor setting them aside."""
    if choice not in ("keep", "ignore"):
        raise ParameterError("demands", choice, "'keep' or 'ignore'")


def state_demands(
    rows: Table | Tuples, choice: DemandsChoice, *, noisy: bool = False
) -> DemandsStatement | None:
    """How many people state what; ``noisy`` says that all that leaves keeps their epsilon.

    Raises:
        PrivacyError: somebody demands noise alone, which exact rows cannot give, or states
            nothing where the policies refuse that.
    """
    require_choice(choice)
    tuples = Tuples.of(rows)
    table, schema = tuples.table, tuples.table.schema
    if not schema.policy and not schema.policy_columns and not schema.policies:
        return None
    exact = [~np.isnan(_numbers(table, demand)) for demand in ("k", "l", "t")]
    own, noise = exact[0] | exact[1] | exact[2], ~np.isnan(_numbers(table, "epsilon"))
    people = _count(tuples, own | noise)
    unspoken = any(source.missing == "refuse" for source in schema.policies)
    silent = _count(tuples, ~(own | noise)) if unspoken and choice == "keep" else 0
    if silent:
        raise PrivacyError(
            f"{silent:,} people state no demand at all, and the policies refuse that (missing = "
            f"'refuse'): ask them, or leave that line out; {SET_ASIDE}."
        )
    if not people:
        return None
    only = _count(tuples, noise & ~own)
    if only and choice == "keep" and not noisy:
        raise PrivacyError(
            f"{only:,} people state an own epsilon and no k, l or t, which rows without noise "
            f"cannot keep: use differential privacy (epsilon); {SET_ASIDE}."
        )
    silent, everybody = _count(tuples, ~own), _count(tuples, np.ones(len(table), dtype=np.bool_))
    stated = 0 if noisy else _count(tuples, noise)
    return DemandsStatement(choice == "keep", people, stated, silent, everybody)


def _numbers(
    table: Table, demand: str, of: str | None = None, *, rows: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Per row, the strictest that any source says of its person; NaN where none says anything."""
    schema = table.schema
    counted = [c for c in _columns_named(table) if c not in schema.private]
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


def _columns_named(table: Table) -> list[str]:
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
        return _whole(column.cast(pa.float64(), safe=False))
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


def _count(tuples: Tuples, marked: NDArray[np.bool_]) -> int:
    """How many people the marked entries are about."""
    table = tuples.table
    if table.schema.person is None:
        return int(tuples.counts[marked].sum())
    return len(pc.unique(_text(table.arrow[table.schema.person]).filter(pa.array(marked))))


def _people(
    table: Table,
    rows: NDArray[np.int64],
    ids: NDArray[Any],
    classes: int,
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """How many different people stand in each class."""
    if table.schema.person is None:
        return tally(ids, counts, classes)
    person = _text(table.arrow[table.schema.person]).take(pa.array(rows))
    pairs = pa.table({"class": ids, "person": person}).group_by(["class", "person"]).aggregate([])
    return np.bincount(pairs["class"].to_numpy(), minlength=classes).astype(np.int64)


def _pairs(ids: NDArray[Any], codes: NDArray[np.int32], counts: NDArray[np.int64]) -> pa.Table:
    """Class, value and how many rows hold it, once each."""
    pairs = pa.table({"class": ids, "value": codes, "rows": np.ascontiguousarray(counts)})
    found = pairs.group_by(["class", "value"]).aggregate([("rows", "sum")])
    return found.rename_columns(["class", "value", "count_all"])


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


def _known_pairs(
    table: Table,
    name: str,
    rows: NDArray[np.int64],
    ids: NDArray[Any],
    counts: NDArray[np.int64],
) -> pa.Table:
    """The classes and values that occur together, without rows whose value is missing."""
    known = _whole(table.arrow[name]).take(pa.array(rows)).is_valid().to_numpy(zero_copy_only=False)
    return _pairs(ids[known], table.encode(name).codes[rows[known]], counts[known])


def _known_distances(pairs: pa.Table, classes: int, domain: int, apart: str) -> NDArray[np.float64]:
    """How far each class is from all; as far as can be where nothing is known of it."""
    far = np.ones(classes)
    seen, owner = np.unique(pairs["class"].to_numpy(), return_inverse=True)
    if len(seen):
        dense = pairs.set_column(pairs.column_names.index("class"), "class", pa.array(owner))
        far[seen] = _distances(dense, len(seen), domain, apart)
    return far


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

    parts: dict[str, list[exp.Expr]] = {demand: [] for demand in (*_STRICTER, "owed")}
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
                pick = min if _STRICTER.get(demand) == "min" else max
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
            "min" if _STRICTER.get(demand) == "min" else "max", part, "float"
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
            strictest = exp.Min if _STRICTER.get(demand) == "min" else exp.Max
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
    yield None, {name: getattr(source, name) for name in _STRICTER}, source.people, aliases
    yield from ((c, source.columns.get(c, {}), None, aliases) for c in touched)


def _one_each(people: pa.Table, touched: Sequence[str], owing: set[str | None]) -> pa.Table:
    """One row per person of a policy table: the strictest of what holds, by Arrow."""
    said = people.set_column(0, "person", _text(people["person"]))
    wanted = pc.field("column").is_null()
    if touched:
        wanted = wanted | pc.field("column").isin(pa.array(list(touched), pa.string()))
    said = said.filter(wanted & pc.field("person").is_valid())
    columns = [c for c in owing if c is not None]
    owes = pc.is_in(said["column"], pa.array(columns, pa.string()))
    if None in owing:
        owes = pc.or_(owes, pc.is_null(said["column"]))
    said = said.append_column("owed", pc.if_else(owes, said["l"], None))
    asked = {**_STRICTER, "owed": "max"}
    said = said.group_by("person").aggregate(list(asked.items()))
    names = [f"{demand}_{how}" for demand, how in asked.items()]
    return said.select(["person", *names]).rename_columns(["person", *asked])
