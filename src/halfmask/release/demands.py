"""What the doors know of people's own demands: read again from the table, and held against classes.

Nothing here shares code with the resolver that the searches use; rows are joined and grouped by
Arrow. Whether demands were kept or set aside is written into the release by the door itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InternalError, ParameterError, PrivacyError, SchemaError
from halfmask.release.document import FEW
from halfmask.table.demands import ignored_words, stated_kinds
from halfmask.table.tuples import Tuples, ones, pick_counts, tally
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

DemandsChoice = Literal["keep", "ignore"]
STRICTER = {"k": "max", "l": "max", "t": "min", "epsilon": "min"}
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

    def note_unpromised(self, models: Sequence[Model]) -> tuple[str, ...]:
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
    """Whether noise kept people's own demands; how many state one is never told here.

    Attributes:
        kept: whether they were kept.
        words: what a reader must know first; nothing where demands were kept.
        kinds: the kinds of demands that were set aside.
    """

    kept: bool
    words: str = ""
    kinds: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain values."""
        return {"kept": True} if self.kept else {"kept": False, "of": list(self.kinds)}


def noisy_demands(schema: Schema | None, choice: object) -> NoisyDemands | None:
    """What became of people's own demands under noise; None where nobody can state any."""
    kinds = stated_kinds(schema)
    if choice == "ignore":
        return NoisyDemands(kept=False, words=ignored_words(schema), kinds=kinds)
    return NoisyDemands(kept=True) if kinds else None


def enforce_demands(
    rows: Table | Tuples,
    kept: NDArray[np.int64],
    ids: NDArray[Any],
    models: Sequence[Model],
    choice: DemandsChoice,
    *,
    noisy: bool = False,
) -> DemandsStatement | None:
    """Demand that the class of every row that leaves gives its person what this person demands.

    Args:
        rows: the original rows, or entries that stand for them.
        kept: which of them leave.
        ids: the class of each of these, from 0.
        models: the promises that were named, for the distance of t.
        choice: whether demands are kept or set aside.
        noisy: whether all that leaves is noisy, and ``enforce_noise`` held it against epsilon.

    Returns:
        What became of the demands; None where nobody states any.

    Raises:
        PrivacyError: somebody demands noise, and nothing here is noisy.
        InternalError: a demand is not met; nothing leaves.
    """
    entries = Tuples.of(rows)
    found = state_demands(entries, choice, noisy=noisy)
    if found is None or choice == "ignore":
        return found
    table, classes = entries.table, int(ids.max(initial=-1)) + 1
    counts = pick_counts(entries.counts, kept)
    people = _people(table, kept, ids, classes, counts)[ids]
    short = {"k": people < _numbers(table, "k", rows=kept)}
    for name in table.schema.sensitive:
        pairs = _known_pairs(table, name, kept, ids, counts)
        l_, t = _numbers(table, "l", name, rows=kept), _numbers(table, "t", name, rows=kept)
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
        names = as_text(whole.arrow[whole.schema.person])
        counted = pc.value_counts(names)
        places = pc.index_in(as_text(table.arrow[whole.schema.person]), counted.field("values"))
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
        entries.append({name: getattr(source, name) for name in STRICTER})
        entries += [source.columns[c] for c in counted if c in source.columns]
        if source.people is not None:
            joined.append(_join_policies(table, source.people, demand, counted))
    parts = [_entry(table, entry[demand]) for entry in entries if entry.get(demand) is not None]
    parts += joined
    if not parts:
        return np.full(len(table) if rows is None else len(rows), np.nan)
    pick = pc.max_element_wise if STRICTER[demand] == "max" else pc.min_element_wise
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


def _join_policies(table: Table, people: pa.Table, demand: str, counted: Sequence[str]) -> pa.Array:
    """What a policy table says of each row's person, by a join in Arrow."""
    said = pa.table(
        {
            "person": as_text(people["person"]),
            "general": pc.is_null(people["column"]),
            "column": people["column"],
            "asked": people[demand],
        }
    )
    wanted = pc.field("general")
    if counted:
        wanted = wanted | pc.field("column").isin(pa.array(list(counted), pa.string()))
    said = said.filter(wanted)
    how = STRICTER[demand]
    said = said.group_by("person").aggregate([("asked", how)])
    named = pa.table(
        {
            "person": as_text(table.arrow[table.schema.person]),
            "row": np.arange(len(table), dtype=np.int64),
        }
    )
    both = named.join(said, "person", join_type="left outer").sort_by("row")
    return _whole(both[f"asked_{how}"])


def _of_all_rows(table: Table, each: pa.Array, demand: str) -> pa.Array:
    how = STRICTER[demand]
    named = pa.table(
        {
            "person": as_text(table.arrow[table.schema.person]),
            "asked": each,
            "row": np.arange(len(table), dtype=np.int64),
        }
    )
    own = named.group_by("person").aggregate([("asked", how), ("row", "list")])
    lists = _whole(own["row_list"])
    asked = _whole(own[f"asked_{how}"]).take(pc.list_parent_indices(lists))
    return asked.take(pc.sort_indices(lists.flatten()))


def as_text(column: pa.ChunkedArray) -> pa.Array:
    """The keys of people as texts, by which they are told apart."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _whole(column.cast(pa.string()))


def _count(tuples: Tuples, marked: NDArray[np.bool_]) -> int:
    """How many people the marked entries are about."""
    table = tuples.table
    if table.schema.person is None:
        return int(tuples.counts[marked].sum())
    return len(pc.unique(as_text(table.arrow[table.schema.person]).filter(pa.array(marked))))


def _people(
    table: Table,
    rows: NDArray[np.int64],
    ids: NDArray[Any],
    classes: int,
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """How many different people stand in each class."""
    if table.schema.person is None:
        return tally(ids, classes, counts)
    person = as_text(table.arrow[table.schema.person]).take(pa.array(rows))
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
