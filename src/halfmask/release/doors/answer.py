"""The door for answers: rows of a query leave only if each keeps its level's guarantee.

The check reads the groups that the engine counted and recomputes each published row from them
with arithmetic of its own; it shares no code with the filter that chose the rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.duckdb.engine import compute_apart
from halfmask.engines.generalization import generalize_key
from halfmask.engines.request import AggregateState
from halfmask.engines.sql import comparable
from halfmask.errors import InternalError, SchemaError
from halfmask.models.verdict import Verdict
from halfmask.release.demands import STRICTER, as_text
from halfmask.release.release import DOOR, Answer, AnswerLevel, SealedGuarantee
from halfmask.table.demands import file_policies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine, Key, Request
    from halfmask.release.candidate import AnswerCandidate, Promise
    from halfmask.table.policies import Policies
    from halfmask.table.schema import Schema

    Counts = NDArray[np.int64]

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

    def met(self, found: Mapping[str, Any], k: int, l: int) -> bool:
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
    owing = _uncounted_demands(tables, uncounted)
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
            each = _one_each(people, touched, owing)
            name, source = _join_people(request.person, source, each, engine)
            for demand in parts:
                if people["l" if demand == "owed" else demand].null_count < people.num_rows:
                    parts[demand].append(exp.column(demand, table=name))
    source, parts = _of_people(request, source, tables, parts, repeat=repeat)
    states = _watched_states(parts, floors)
    counted = (*request.states, *(s for s in states.values() if s not in request.states))
    return replace(request, source=source, states=counted), DemandWatch(states, floors)


def _join_people(
    person: exp.Expr, source: exp.Select, each: pa.Table, engine: Engine
) -> tuple[str, exp.Select]:
    """The source with the demands of single people joined, and the name that these have there.

    Raises:
        SchemaError: the people of the query are fractions or times, whose texts differ by engine.
    """
    from sqlglot import exp

    own = engine.run(source.copy().select(person.copy(), append=False).limit(0))
    kind = own.schema[0].type
    if pa.types.is_floating(kind) or pa.types.is_timestamp(kind):
        raise SchemaError("People whose keys are fractions or times cannot be told apart.")
    name = f"hm_watched_{next(_WATCHES)}"
    engine.add(name, each)
    match = exp.EQ(
        this=exp.cast(person.copy(), "text"),
        expression=exp.column("person", table=name),
    )
    return name, source.join(exp.to_table(name), on=match, join_type="left")


def _watched_states(
    parts: Mapping[str, Sequence[exp.Expr]], floors: Mapping[str, float]
) -> dict[str, AggregateState]:
    """Per demand and source the strictest among the people of a group; who asks for noise alone."""
    from sqlglot import exp

    states = {
        f"{demand}{i}": AggregateState(
            "min" if STRICTER.get(demand) == "min" else "max", part, "float"
        )
        for demand in ("k", "l", "t", "owed")
        for i, part in enumerate(dict.fromkeys(parts[demand]))
    }
    exact = [part for demand in ("k", "l", "t") for part in dict.fromkeys(parts[demand])]
    # Only noise keeps whoever asks for nothing else; a k, l or t of all is something else.
    if not {"k", "l", "t"} & set(floors):
        for i, part in enumerate(dict.fromkeys(parts["epsilon"])):
            silent = [one.copy().is_(exp.null()) for one in exact]
            alone = exp.and_(part.copy().is_(exp.null()).not_(), *silent)
            one, none = exp.Literal.number(1), exp.Literal.number(0)
            states[f"noise{i}"] = AggregateState(
                "max", exp.Case().when(alone, one).else_(none), "integer"
            )
    return states


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


def _uncounted_demands(
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


def seal_answer(candidate: AnswerCandidate) -> Answer:
    """Recompute every row from the counted groups and release those that were asked for.

    Raises:
        InternalError: a row does not keep what its level promises; nothing leaves.
    """
    _check_promises(candidate)
    placed = _place_groups(candidate)
    found = [_count_per_place(candidate, placed, promise) for promise in candidate.promises]
    people = _sums(candidate, placed, candidate.promises[0].count)
    _check_levels(candidate, placed)
    _check_keys(candidate, placed)
    _check_conditions(candidate, people)
    _check_looked_up(candidate, _sums(candidate, placed, "rows"))
    _check_shares(candidate)
    _check_second_look(candidate)
    verdicts = _verdicts(candidate, found)
    if any(not v.holds for v in verdicts):
        raise InternalError("A row of the answer breaks its guarantee; nothing was released.")
    return _answer(candidate, people, tuple(verdicts))


def _check_promises(candidate: AnswerCandidate) -> None:
    """What is recounted must be what each level's guarantee says, of people and of values."""
    ks, ls = zip(*candidate.request.guarantees, strict=True)
    asked = {"people": ks, "contributors": ks, "diversity": ls}
    stated = {promise.what for promise in candidate.promises}
    if (
        any(p.thresholds != asked.get(p.what) for p in candidate.promises)
        or not ({"people", "diversity"} if max(ls) > 1 else {"people"}) <= stated
    ):
        raise InternalError("What is promised is not what would be checked; nothing was released.")


def _place_groups(candidate: AnswerCandidate) -> pa.Table:
    """The groups that would leave, each with its place and the level ``at`` which it is shown."""
    place = candidate.groups["place"].to_numpy()
    if place.max(initial=-1) >= len(candidate.places):
        raise InternalError("Rows of the answer do not match the groups they are made of.")
    placed = candidate.groups.filter(pa.array(place >= 0))
    return placed.append_column("at", pa.array(candidate.places[placed["place"].to_numpy()]))


def _count_per_place(candidate: AnswerCandidate, placed: pa.Table, promise: Promise) -> Counts:
    """Per place, how many; values that are not all listed count as those of the largest group."""
    if promise.values is None:
        return _sums(candidate, placed, promise.count)
    place, counts = placed["place"].to_numpy(), _whole(placed[promise.count])
    found = np.zeros(len(candidate.places), dtype=np.int64)
    np.maximum.at(found, place, counts)
    listed = placed[promise.values].filter(pa.array(counts < promise.cap))
    few = pa.concat_arrays(listed.chunks) if listed.num_chunks else None
    if few is None or not len(few):
        return found
    rows = pc.list_parent_indices(few).to_numpy()
    known = pc.list_flatten(few)
    some = known.is_valid().to_numpy(zero_copy_only=False)
    codes = comparable(known).dictionary_encode().indices.fill_null(0).to_numpy()
    places = place[counts < promise.cap][rows[some]]
    return np.maximum(found, _different(places, codes[some], len(found)))


def _different(place: Counts, codes: Counts, places: int) -> Counts:
    """Per place, how many different codes stand in it."""
    width = int(codes.max(initial=0)) + 1
    found: Counts = np.bincount(
        np.unique(place.astype(np.int64) * width + codes) // width, minlength=places
    )
    return found


def _sums(candidate: AnswerCandidate, placed: pa.Table, count: str) -> Counts:
    """Per place, a count of its groups; somebody who stands in several groups counts in each."""
    found = np.zeros(len(candidate.places), dtype=np.int64)
    np.add.at(found, placed["place"].to_numpy(), _whole(placed[count]))
    return found


def _whole(column: pa.ChunkedArray) -> Counts:
    found: Counts = column.cast(pa.int64()).to_numpy()
    return found


def _check_levels(candidate: AnswerCandidate, placed: pa.Table) -> None:
    """Hold levels and demands, and what the door itself had counted of them, against each row."""
    watch, states = candidate.watch, candidate.request.states
    level, at = placed["level"].to_numpy(), placed["at"].to_numpy()
    depths = [np.array(key.depths) for key in candidate.request.keys]
    finer = (level < 0) | (level > at)
    for depth in depths:  # in any column: levels need not stand on one chain
        finer |= depth[level] > depth[at]
    if finer.any():
        raise InternalError("A group would leave finer than its people accept.")
    if candidate.request.demands is not None:
        worst = {name: _worst(placed[name], at) for name in ("k", "l")}
        _require_met(candidate, pa.table({"at": list(worst["k"]), **_columns(worst)}))
    if watch is None:
        return
    if any(state not in states for state in watch.states.values()):
        raise InternalError("What the door looks at was not counted.")
    watched = {
        what: _worst(placed[f"s{states.index(state)}"], at, least=what.startswith("t"))
        for what, state in watch.states.items()
    }
    for shown in np.unique(at).tolist():
        k, l = candidate.request.guarantees[shown]
        if not watch.met({what: found[shown] for what, found in watched.items()}, k, l):
            raise InternalError("A contributor's own demand is not met; nothing was released.")


def _worst(column: pa.ChunkedArray, at: Counts, *, least: bool = False) -> dict[int, float | None]:
    """Per level, the largest (or least) of the demands; what is no number counts as unmeetable."""
    sign = -1.0 if least else 1.0
    known = column.is_valid().to_numpy()
    numbers = sign * column.cast(pa.float64(), safe=False).fill_null(0).to_numpy()
    numbers[np.isnan(numbers)] = np.inf
    found: dict[int, float | None] = dict.fromkeys(np.unique(at).tolist())
    for shown in np.unique(at[known]).tolist():
        found[shown] = sign * float(numbers[known & (at == shown)].max())
    return found


def _columns(worst: Mapping[str, Mapping[int, float | None]]) -> dict[str, list[float | None]]:
    return {name: list(found.values()) for name, found in worst.items()}


def _require_met(candidate: AnswerCandidate, worst: pa.Table) -> None:
    for row in worst.to_pylist():
        k, l = candidate.request.guarantees[row["at"]]
        if (row["k"] or 0) > k or (row["l"] or 0) > l:
            raise InternalError("A contributor's own demand is not met; nothing was released.")


def _check_keys(candidate: AnswerCandidate, placed: pa.Table) -> None:
    """Groups that leave as one row must have one key at its level, and no two rows the same."""
    names = [f"g{i}" for i in range(len(candidate.request.keys))]
    groups = placed.select(["place", "at", *names])
    groups = groups.rename_columns(["place", "level", *(f"r{i}" for i in range(len(names)))])
    found = compute_apart("groups", groups, _shown_keys, candidate.request.keys)
    # Each key in one place only, and as many keys as places: so each place has one key.
    lowest, highest = found["lowest"].to_numpy(), found["highest"].to_numpy()
    places = np.arange(len(candidate.places))
    if not np.array_equal(np.sort(lowest), places) or not np.array_equal(lowest, highest):
        raise InternalError("Rows of the answer do not match the groups they are made of.")


def _shown_keys(keys: tuple[Key, ...]) -> exp.Expr:
    """The lowest and the highest place of each key, as it is at the level where it is shown."""
    from sqlglot import exp

    shown = [exp.alias_(generalize_key(key, i), f"x{i}") for i, key in enumerate(keys)]
    groups = exp.select("place", "level", *shown).from_("groups")
    found = exp.select("MIN(place) AS lowest", "MAX(place) AS highest").from_(groups.subquery("s"))
    return found.group_by("level", *(f"x{i}" for i in range(len(keys))))


def _check_conditions(candidate: AnswerCandidate, people: Counts) -> None:
    """Conditional figures must be null where a part of the people behind them is too small."""
    figures, parts = candidate.figures, candidate.parts
    if figures is None or not candidate.conditional or not len(candidate.places):
        return
    if parts is None:
        raise InternalError("Conditional figures came without the parts of their rows.")
    place, met, inside = (_whole(parts[name]) for name in ("place", "met", "people"))
    k, l = np.array(candidate.request.guarantees, dtype=np.int64)[candidate.places[place]].T
    large = inside >= k
    for name in parts.column_names[3:]:
        values = _whole(parts[name])
        large &= (values == 0) | (values >= l)
    sound = np.ones(len(candidate.places), dtype=bool)
    sound[place[~large]] = False
    # A part that is too small anywhere must be there, and large enough, in every row that shows.
    scarce = np.unique(met[~large])
    there = large & np.isin(met, scarce)
    sound &= _different(place[there], met[there], len(sound)) == len(scarce)
    hidden = ~sound[_whole(figures["hm_row"])]
    for name in figures.column_names[1 : candidate.conditional + 1]:
        if (figures[name].is_valid().to_numpy() & hidden).any():
            raise InternalError(
                "A conditional figure is made of too few people; nothing was released."
            )
    if candidate.below is None:
        whole = np.zeros_like(people)
        np.add.at(whole, place, inside)
        if not np.array_equal(whole, people):
            raise InternalError("The parts of a row are not all its people; nothing was released.")


def _check_looked_up(candidate: AnswerCandidate, rows: Counts) -> None:
    """What was looked up in the rows once more must be made of the very rows that were counted."""
    found = [] if candidate.measured is None else [_whole(candidate.measured)]
    if candidate.shares is not None:
        shares = candidate.shares.rows.sort_by("place")
        found += [_whole(shares[f"rows{i}"]) for i in range(len(candidate.shares.figures))]
    if any(not np.array_equal(one, rows) for one in found):
        raise InternalError("Figures are made of other rows than were counted; nothing left.")


def _check_shares(candidate: AnswerCandidate) -> None:
    """Sums that few people make up must be null."""
    shares = candidate.shares
    if shares is None or candidate.figures is None:
        return
    for row in shares.rows.to_pylist():
        # Both rules anew: LargestShares.dominated is what the maker of the answer went by.
        for i, name in enumerate(shares.figures):
            if candidate.figures[name][row["place"]].as_py() is None or not row[f"t{i}"]:
                continue
            largest = [float(row[f"x{i}_{j + 1}"] or 0) for j in range(shares.most)]
            total = float(row[f"t{i}"])
            for rule in shares.rules:
                p, n, k = (rule.get(x, 0) for x in "pnk")
                rest = total - sum(largest[:2])
                if (p and rest < p / 100 * largest[0]) or (
                    n and sum(largest[: int(n)]) > k / 100 * total
                ):
                    raise InternalError("A sum is made up by few people; nothing was released.")


def _check_second_look(candidate: AnswerCandidate) -> None:
    if candidate.counted is None:
        return
    rows = candidate.counted.sort_by("place")
    if rows.num_rows != len(candidate.places):
        raise InternalError("A second look at the rows finds other groups.")
    for i, promise in enumerate(candidate.promises):
        needed = np.array(promise.thresholds, dtype=np.int64)[candidate.places]
        if (rows[f"m{i}"].to_numpy().astype(np.int64) < needed).any():
            raise InternalError("A second look at the rows finds a row below its guarantee.")
    if candidate.request.demands is not None:
        n = len(candidate.promises)
        worst = pa.table({"at": candidate.places, "k": rows[f"m{n}"], "l": rows[f"m{n + 1}"]})
        _require_met(candidate, worst)


def _verdicts(candidate: AnswerCandidate, found: list[Counts]) -> list[Verdict]:
    verdicts = []
    for level, (at, step) in enumerate(
        zip(candidate.request.guarantees, candidate.steps, strict=True)
    ):
        inside = np.flatnonzero(candidate.places == level)
        if not len(inside):
            continue
        for promise, reached in zip(candidate.promises, found, strict=True):
            required = promise.thresholds[level]
            failing = int(np.count_nonzero(reached[inside] < required))
            verdicts.append(
                Verdict(
                    model={"diversity": "l-diversity"}.get(promise.what, "k-anonymity"),
                    holds=not failing,
                    required=required,
                    # How far a row is above its guarantee is not the asker's to know.
                    achieved=min(required, int(reached[inside].min())),
                    failing_classes=failing,
                    failing_rows=failing,
                    classes=len(inside),
                    rows=len(inside),
                    column=promise.column if promise.what != "people" else None,
                    note=f"level {level + candidate.first} ({step}), k={at[0]} l={at[1]}",
                )
            )
    return verdicts


# Said wherever people state demands, whoever is left out.
PART = (
    "The figures are of a part of the people: of those whose own demands the guarantee of the row "
    "meets. Whoever asks for more is in none of them."
)


def _answer(candidate: AnswerCandidate, people: Counts, verdicts: tuple[Verdict, ...]) -> Answer:
    shown = candidate.rows["hm_row"].to_numpy().astype(np.int64)
    if len(np.unique(shown)) != len(shown) or (
        len(shown) and not 0 <= shown.min() <= shown.max() < len(candidate.places)
    ):
        raise InternalError("The answer has rows that were not checked.")
    at = candidate.places[shown]
    if not np.array_equal(candidate.rows["level"].to_numpy(), at + candidate.first):
        raise InternalError("The answer states other levels than were checked.")
    guarantees = candidate.request.guarantees
    rows = candidate.rows.drop_columns(["hm_row"])
    words = pa.array([f"k>={k}, l>={l}" for k, l in guarantees], pa.string())
    rows = rows.append_column("guarantee", words.take(pa.array(at)))
    top = len(guarantees) - 1
    levels = tuple(
        AnswerLevel(
            i + candidate.first,
            candidate.steps[i],
            *guarantees[i],
            rows=int((at == i).sum()),
        )
        for i in range(top + 1)
    )
    depth = int(((top - candidate.places) * people).sum())
    total = int(people.sum())
    return Answer(
        guarantee=SealedGuarantee(verdicts),
        method="query",
        chain=levels,
        people=total,
        depth=depth,
        withheld=_withheld_totals(candidate, total, total - int(people[shown].sum())),
        semantics=candidate.semantics,
        gap=candidate.gap,
        engine=candidate.engine,
        notes=(*((PART,) if candidate.request.demands is not None else ()), *candidate.notes),
        sql=candidate.sql,
        _arrow=rows,
        door=DOOR,
    )


def _withheld_totals(
    candidate: AnswerCandidate, published: int, unseen: int
) -> dict[str, int | None]:
    """Totals of people left out, each said only where it hides them well enough by itself."""
    first = candidate.promises[0]
    below = candidate.below
    if below is None:
        below = int(np.sum(candidate.groups[first.count].to_numpy())) - published
    k = candidate.request.guarantees[-1][0]
    reasons = {
        "no level satisfies their demands": (candidate.refused[0], max(k, candidate.refused[1])),
        "no policy": (candidate.without_policy, k),
        "below the guarantee": (below, k),
    }
    said = {reason: n if n >= needed else None for reason, (n, needed) in reasons.items()}
    if unseen:
        said["filtered by HAVING or LIMIT"] = unseen
    return said
