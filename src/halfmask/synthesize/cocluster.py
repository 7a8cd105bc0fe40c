"""From drawn parts back to values of a column: a value, or a number inside its interval.

Rows that are kept out of a model: the control against which its risk is measured.

Draw rows from a distribution without inventing dependence.

Columns are drawn clique by clique. Within each group of rows that agree on the columns already
drawn, values are dealt in the right shares (systematic sampling: each value gets its share, up to
one row) to the rows in *random order*; dealing in a fixed order would tie columns that the model
holds independent.

Synthetic people from a co-clustering of (row, part of a column); no formal guarantee.

Definition: rows are grouped by the co-clustering, groups are merged until each holds k people, and
    rows are drawn from the groups' counts alone (see ``halfmask.coclustering.generate``).
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, ch. 3.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.coclustering.generate import generator
from halfmask.coclustering.hierarchy import merge_small, simplify
from halfmask.coclustering.observations import PartSizes
from halfmask.coclustering.prepare import as_numbers, cocluster_columns, cut_column, is_number
from halfmask.errors import InputError, ParameterError, UnsatisfiableError
from halfmask.models.verdict import require_whole
from halfmask.release.candidate import SyntheticCandidate
from halfmask.release.demands import DRAWN, INSTEAD, SET_ASIDE, refuse_diversity, statement
from halfmask.release.seal import published_columns, seal
from halfmask.table.demands import people_who, resolve, shown, with_policies
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.generate import Mode
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.prepare import ColumnParts, IntervalRule, Melted
    from halfmask.release.demands import DemandsChoice
    from halfmask.release.release import SyntheticRelease
    from halfmask.synthesize.inference import Beliefs

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


_DECIMALS = 9


def values_of(
    table: Table, column: ColumnParts, parts: NDArray[np.int32], random: np.random.Generator
) -> pa.Array:
    """The drawn parts of one column as values of its type."""
    values = table.encode(column.name).values
    if column.cuts is None:
        drawn = values.take(pa.array(parts))
        was = table.given.get(column.name)
        categories = was is not None and pa.types.is_dictionary(was.type)
        return drawn.dictionary_encode() if categories else drawn
    bounds = np.asarray(column.cuts.bounds)
    missing = parts >= len(column.cuts)
    inside = np.where(missing, 0, parts)
    whole = not pa.types.is_floating(values.type) and not pa.types.is_decimal(values.type)
    low, high = bounds[inside], bounds[inside + 1]
    if whole:
        first = np.where(inside == 0, np.ceil(low), np.floor(low) + 1)
        last = np.maximum(np.floor(high), first)
        drawn = first + np.floor(random.random(len(parts)) * (last - first + 1))
        if pa.types.is_uint64(values.type):
            return pa.array(drawn.astype(np.uint64), mask=missing)
        numbers = pa.array(drawn.astype(np.int64), mask=missing)
        if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
            numbers = numbers.cast(pa.int32())
        return numbers.cast(values.type)
    places = _places(as_numbers(values.drop_null()))
    numbers = np.clip(np.round(low + random.random(len(parts)) * (high - low), places), low, high)
    return pa.array(numbers, mask=missing).cast(values.type, safe=False)


def _places(numbers: NDArray[np.float64]) -> int:
    """How many decimals the column's numbers have."""
    for places in range(_DECIMALS):
        if np.array_equal(np.round(numbers, places), numbers):
            return places
    return _DECIMALS


def split(table: Table, share: float, random: np.random.Generator) -> tuple[Table, Table | None]:
    """The rows to learn from and those held out; people with several rows stay together.

    Raises:
        ParameterError: the share is not from 0 to below 1, or leaves one side empty.
    """
    if not 0 <= share < 1:
        raise ParameterError("holdout", share, "from 0 to below 1")
    if share == 0:
        return table, None
    if table.schema.person is None:
        owner, people = np.arange(len(table)), len(table)
    else:
        encoded = table.encode(table.schema.person)
        owner, people = encoded.codes, len(encoded.values)
    out = np.zeros(people, dtype=bool)
    out[random.choice(people, round(share * people), replace=False)] = True
    held = out[owner]
    if held.all() or not held.any():
        raise ParameterError("holdout", share, "a share that leaves rows on both sides")
    return _rows(table, ~held), _rows(table, held)


def held_out_codes(
    columns: Sequence[ColumnParts], learned: Table, held: Table
) -> NDArray[np.int32]:
    """(rows, columns) the parts of held-out rows; values that were not learned are a new part."""
    out = []
    for column in columns:
        if column.cuts is not None:
            out.append(cut_column(held, column.name, column.cuts).codes)
            continue
        known = {value: i for i, value in enumerate(learned.encode(column.name).values.to_pylist())}
        encoded = held.encode(column.name)
        places = [known.get(value, len(known)) for value in encoded.values.to_pylist()]
        out.append(np.array(places, dtype=np.int32)[encoded.codes])
    return np.column_stack(out).astype(np.int32)


def _rows(table: Table, chosen: NDArray[np.bool_]) -> Table:
    return Table(
        table.arrow.filter(pa.array(chosen)), table.schema, origin=table.origin, given=table.given
    )


_GOLDEN = 0.6180339887498949


def draw(beliefs: Beliefs, rows: int, random: np.random.Generator) -> dict[str, Ints]:
    """``rows`` rows as codes per column."""
    tree, sizes = beliefs.tree, beliefs.sizes
    root = tree.edges[-1][1] if tree.edges else 0
    drawn: dict[str, Ints] = {}
    for place in (root, *(child for child, _, _ in reversed(tree.edges))):
        clique = tree.cliques[place]
        known = [name for name in clique if name in drawn]
        new = [name for name in clique if name not in drawn]
        table = beliefs.tables[place].transpose([clique.index(name) for name in known + new])
        groups = np.zeros(rows, np.int64)
        for name in known:
            groups = groups * sizes[name] + drawn[name]
        width = int(np.prod([sizes[name] for name in new], dtype=np.int64))
        cells = draw_values(groups, table.reshape(-1, width), random)
        for name in reversed(new):
            cells, drawn[name] = np.divmod(cells, sizes[name])
    return drawn


def draw_values(
    groups: Ints, weights: Floats, random: np.random.Generator, *, beside: Ints | None = None
) -> Ints:
    """Per row, a value drawn by the weights of its group.

    Args:
        groups: per row, its group.
        weights: (groups, values); a group without any weight deals evenly.
        random: where chance comes from; it holds no secret.
        beside: per row, what the values must stay independent of inside a group: rows that share it
            get values in the same shares, more evenly than chance would.
    """
    count, width = weights.shape
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, weights / np.maximum(totals, 1e-300), 1 / width)
    keys = (random.random(len(groups)), *(() if beside is None else (beside,)), groups)
    order = np.lexsort(keys)
    owner = groups[order]
    sizes = np.bincount(owner, minlength=count)
    first = np.cumsum(sizes) - sizes
    place = np.arange(len(groups)) - first[owner]
    start = random.random(count)[owner]
    # Steps of the golden ratio fill the unit interval evenly over any stretch of rows.
    at = (place + start) / sizes[owner] if beside is None else (place * _GOLDEN + start) % 1.0
    at = np.minimum(at, 1 - 1e-12)
    edges = np.cumsum(shares, axis=1)
    edges /= edges[:, -1:]
    found = np.searchsorted((edges + np.arange(count)[:, None]).ravel(), owner + at, side="right")
    values = np.empty(len(groups), np.int64)
    values[order] = np.clip(found - owner * width, 0, width - 1)
    return values


Strategy = Literal["climb", "targeted"]
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """How to group people, and how to draw rows from their groups.

    Attributes:
        k: the fewest people in a group of the model; it is no k-anonymity of the rows. It is raised
            to what anybody demands.
        rows: how many rows to draw; by default as many as the table has.
        bins: how many intervals numbers are cut into.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``: where it helps the
            co-clustering most.
        strategy: how groups grow: ``"climb"`` the hierarchy of both sides, or ``"targeted"``, which
            merges only groups that are too small and keeps more of them.
        mode: ``"draw"`` at random or ``"quota"``.
        holdout: the share of people kept out of the model, as a control of its risk.
        seed: for repeatable tests; None draws from the system's secure source.
        time_limit: seconds for the co-clustering.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's demands aside; the release says so first.
    """

    k: int | None = None
    rows: int | None = None
    bins: int = 10
    intervals: IntervalRule = "equal-frequency"
    strategy: Strategy = "climb"
    mode: Mode = "draw"
    holdout: float = 0.0
    seed: int | None = None
    time_limit: float | None = None
    policies: object = None
    demands: DemandsChoice = "keep"

    def require(self) -> None:
        """Refuse what cannot be drawn."""
        if self.rows is not None and self.rows < 1:
            raise ParameterError("rows", self.rows, "1 or more")
        if self.strategy not in ("climb", "targeted"):
            raise ParameterError("strategy", self.strategy, "climb or targeted")
        if self.mode not in ("draw", "quota"):
            raise ParameterError("mode", self.mode, "draw or quota")
        if self.seed is not None:
            require_whole("seed", self.seed, 0)


OPTIONS = tuple(one.name for one in fields(DrawSettings))
_STATED = ("rows", "bins", "intervals", "strategy", "mode", "holdout", "seed")


def synthesize(table: Table, settings: DrawSettings) -> SyntheticRelease:
    """Draw a synthetic table from a co-clustering whose groups hold at least ``k`` people.

    Identifiers, the person column and policies are left out.

    Raises:
        PrivacyError: people demand an l, a t or noise, which groups of people cannot give.
        UnsatisfiableError: no structure was found, or none is left with groups of k people.
    """
    table = with_policies(table, settings.policies)
    wanted, raised = _least_people(table, settings.k, settings.demands)
    settings.require()
    seed = settings.seed
    names = published_columns(table)
    _require_repeating(table, names)
    random = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    size = settings.rows or len(table)
    table, held = split(table, settings.holdout, random)
    owner = _owners(table)
    melted, finest = cocluster_columns(
        table,
        names,
        bins=settings.bins,
        intervals=settings.intervals,
        seed=seed or 0,
        rounds=_ROUNDS,
        time_limit=settings.time_limit,
    )
    grid = _coarsen(finest, wanted, settings.strategy, owner)
    codes = generator(grid, melted.offsets).draw(size, random, mode=settings.mode)
    drawn = pa.table(
        {c.name: values_of(table, c, codes[:, i], random) for i, c in enumerate(melted.columns)}
    )
    original = np.column_stack([column.codes for column in melted.columns])
    obtained = PartSizes(grid.partition[0], owner).fewest()
    parameters: dict[str, Any] = {
        "k": settings.k,
        "k_obtained": obtained,
        **{name: getattr(settings, name) for name in _STATED},
        "parts": list(grid.parts),
    }
    notes = (*raised, *_notes(grid, melted, obtained))
    if owner is not None:
        notes = (*notes, "Rows are drawn one by one: who several rows are about is not drawn.")
    control = None if held is None else held_out_codes(melted.columns, table, held)
    return seal(
        SyntheticCandidate(
            table=table,
            rows=drawn,
            codes=(original, codes),
            method="cocluster",
            seed=int(random.integers(2**31)),
            parameters=parameters,
            notes=notes,
            control=control,
            groups=grid.partition[0],
            demands=settings.demands,
        )
    )


def _least_people(table: Table, k: object, demands: DemandsChoice) -> tuple[int, tuple[str, ...]]:
    """The least number of people in a group, where it is one that can be met, and what to say."""
    owner = _owners(table)
    people = len(table) if owner is None else int(owner.max(initial=-1)) + 1
    own = np.array([np.nan])
    if statement(table, demands) is not None and demands == "keep":
        refuse_diversity(table, DRAWN, INSTEAD)
        own = resolve(table, "k", shown(table.schema, "k"))
    if k is None and not np.isnan(own).all():
        k = 1
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= max(people, 1):
        raise ParameterError("k", k, f"a whole number from 1 to the {people:,} people there are")
    highest = int(np.fmax.reduce(own, initial=k))
    if highest > people:
        count = people_who(table, own > people)
        raise UnsatisfiableError(
            f"{count:,} people demand a k above the {people:,} people there are: no group can "
            f"keep it; {SET_ASIDE}."
        )
    note = "Groups hold as many people as anybody in the table demands for an own k."
    return highest, (note,) if highest > k else ()


def _require_repeating(table: Table, names: tuple[str, ...]) -> None:
    """Refuse text columns whose values mostly occur once: they would leave as they are."""
    faults = []
    for name in names:
        values = table.encode(name).values
        if not is_number(values.type) and len(values) > max(20, len(table) / 2):
            faults.append(name)
    if faults:
        words = ", ".join(repr(name) for name in faults)
        raise InputError(
            f"Column(s) {words}: most values occur once, so that drawing them would publish real "
            "values. Declare them as identifiers."
        )


def _owners(table: Table) -> NDArray[np.int32] | None:
    """Whose each row is, where a person can have several."""
    person = table.schema.person
    return None if person is None else table.encode(person).codes.astype(np.int32)


def _coarsen(grid: Grid, k: int, strategy: Strategy, owner: NDArray[np.int32] | None) -> Grid:
    """The finest grid whose groups of rows are about at least ``k`` people."""
    if not grid.informative:
        raise UnsatisfiableError(
            "The rows show no structure: the best co-clustering is one cell, so that synthetic "
            "rows would be drawn column by column.",
            advice=("give more rows, or columns that depend on each other",),
        )
    reached = (
        simplify(grid, smallest={"row": k}, owner=owner)
        if strategy == "climb"
        else merge_small(grid, "row", k, owner)
    )
    if reached.parts[0] == 1:
        raise UnsatisfiableError(
            f"With groups of {k:,} people one group is left, and no structure to draw from.",
            advice=(f"ask for k of at most {_largest(grid, owner):,}",),
        )
    return reached


def _largest(grid: Grid, owner: NDArray[np.int32] | None) -> int:
    """The fewest people in a group of the coarsest level with two groups of rows."""
    return PartSizes(simplify(grid, parts={"row": 2}).partition[0], owner).fewest()


def _notes(grid: Grid, melted: Melted, obtained: int) -> tuple[str, ...]:
    notes = [
        f"Rows were drawn from {grid.parts[0]} groups of at least {obtained:,} people, each column "
        "for itself inside a group.",
    ]
    if any(column.cuts is not None for column in melted.columns):
        notes.append("Numbers are drawn evenly inside their intervals.")
    rare = int((grid.marginals[1] < obtained).sum())
    if rare:
        notes.append(
            f"{rare:,} values are held by fewer people than a group has; they may be drawn too."
        )
    return tuple(notes)
