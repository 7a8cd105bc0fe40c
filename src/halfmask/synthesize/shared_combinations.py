"""Combinations that k people share: what the columns of a drawn row may hold together.

Definition: a set of parts, one of each of some columns (names by their value, numbers by their
    interval, or in pairs by a stretch of intervals, see ``halfmask.coclustering.stretches``), is
    drawn only where at least k people hold all of them. A set that nobody holds counts as one that
    few hold. Drawn rows that hold another one exchange values with rows of the same group, which
    its columns' independence inside a group allows, then with any rows, as long as fewer such sets
    are left; what still holds one is drawn anew.

That nobody's and few people's combinations are treated alike is what keeps this from telling: would
only those of 1 to k - 1 real people be left out, then the absence of what the model makes likely
would point at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.stretches import levels_together, stretches
from halfmask.errors import ParameterError, UnsatisfiableError
from halfmask.synthesize.shared_parts import people_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.generate import BlockGenerator
    from halfmask.coclustering.prepare import ColumnParts
    from halfmask.coclustering.stretches import Stretches

    Ints = NDArray[np.int64]

MOST_SETS = 20_000  # sets of columns that are counted
_DENSE = 1 << 20  # combinations of one set up to which each is listed
_WITHIN, _ACROSS = 60, 140  # turns of exchanging values inside groups, then with any row
_TURNS = 60  # of drawing anew, before a row is taken from those that are right
_TABLE = 1 << 22  # rows times parts that are drawn together
_AFRESH = 10  # every so many turns, the whole row


@dataclass(frozen=True, slots=True, eq=False)
class SharedCombinations:
    """Per set of columns, which combinations of parts at least k people hold.

    Attributes:
        sizes: how many parts each column has.
        sets: the places of the columns of each set.
        shared: per set, the numbers of its combinations that are shared, ascending; or, where they
            are few in all, per combination whether it is.
    """

    sizes: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    shared: tuple[Ints | NDArray[np.bool_], ...]

    def __repr__(self) -> str:
        return f"SharedCombinations({len(self.sets)} sets of {len(self.sizes)} columns)"

    def possible(self, drawn: Sequence[NDArray[np.bool_]]) -> tuple[NDArray[np.bool_], ...]:
        """Per column, which parts that are drawn can stand in a row, as far as pairs tell."""
        out = [one.copy() for one in drawn]
        pairs = [
            (places, held.reshape([self.sizes[place] for place in places]))
            for places, held in zip(self.sets, self.shared, strict=True)
            if held.dtype == np.bool_ and len(places) == 2
        ]
        left = -1
        # What goes with nothing that is left goes too, until nothing changes (arc consistency).
        while left != (left := sum(int(one.sum()) for one in out)):
            for (a, b), held in pairs:
                out[a] &= held[:, out[b]].any(axis=1)
                out[b] &= held[out[a]].any(axis=0)
        return tuple(out)

    def rare(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """(rows, columns) in how many combinations that too few hold each part stands."""
        out = np.zeros(rows.shape, np.int32)
        for places, shared in zip(self.sets, self.shared, strict=True):
            bad = np.flatnonzero(~_is_shared(rows, places, self.sizes, shared))
            for place in places:
                out[bad, place] += 1
        return out

    def rare_with(self, place: int, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Per row, in how many combinations that too few hold the part of one column stands."""
        out = np.zeros(len(rows), np.int32)
        for places, shared in zip(self.sets, self.shared, strict=True):
            if place in places:
                out += ~_is_shared(rows, places, self.sizes, shared)
        return out


def _is_shared(
    rows: NDArray[np.int32],
    places: tuple[int, ...],
    sizes: tuple[int, ...],
    shared: Ints | NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Whether enough people share what each row holds in some columns."""
    cell = _cells(rows, places, sizes)
    if shared.dtype == np.bool_:
        return np.asarray(shared[cell], dtype=np.bool_)
    if not len(shared):
        return np.zeros(len(cell), dtype=np.bool_)
    return np.asarray(shared[np.minimum(np.searchsorted(shared, cell), len(shared) - 1)] == cell)


def shared_combinations(
    columns: Sequence[ColumnParts],
    size: int,
    k: int,
    owner: NDArray[np.int32] | None,
    *,
    stretch: bool = False,
) -> SharedCombinations:
    """Count people in all combinations of ``size`` columns.

    Args:
        columns: the parts of each.
        size: how many columns go together.
        k: the fewest people who share a combination.
        owner: whose each row is.
        stretch: whether numbers of pairs are counted by stretches of intervals.

    Raises:
        ParameterError: there are too many sets of so many columns.
    """
    size = min(size, len(columns))
    if comb(len(columns), size) > MOST_SETS:
        raise ParameterError(
            "combinations", size, f"fewer: these columns have more than {MOST_SETS:,} such sets"
        )
    rows = np.column_stack([column.codes for column in columns])
    sizes = tuple(len(column.labels) for column in columns)
    sets = tuple(combinations(range(len(columns)), size))
    if stretch and size == 2:
        wide = [_stretches(column, owner) for column in columns]
        shared = tuple(_shared_pairs(rows, one, wide, k, owner) for one in sets)
    else:
        shared = tuple(_shared(_cells(rows, one, sizes), one, sizes, k, owner) for one in sets)
    return SharedCombinations(sizes, sets, shared)


def _stretches(column: ColumnParts, owner: NDArray[np.int32] | None) -> Stretches:
    people = people_in(column.codes, owner, len(column.labels))
    values = np.bincount(column.of_value, minlength=len(column.labels))
    everybody = len(column.codes) if owner is None else int(owner.max(initial=-1)) + 1
    intervals = 0 if column.cuts is None else len(column.cuts)
    return stretches(people, intervals, values == 1, everybody)


def _shared_pairs(
    rows: NDArray[np.int32],
    places: tuple[int, ...],
    wide: Sequence[Stretches],
    k: int,
    owner: NDArray[np.int32] | None,
) -> Ints | NDArray[np.bool_]:
    """Which pairs of parts at least k people share, numbers by stretches."""
    a, b = places
    sizes = tuple(one.first.shape[1] for one in wide)
    cell = _cells(rows, places, sizes)
    if sizes[a] * sizes[b] > _DENSE:
        return _shared(cell, places, sizes, k, owner)
    everybody = len(rows) if owner is None else int(owner.max(initial=-1)) + 1
    levels = levels_together(wide[a], wide[b], k, everybody)
    out = np.zeros((sizes[a], sizes[b]), dtype=np.bool_)
    counts = np.bincount(cell, minlength=out.size)
    for up, across in {*zip(*(level.ravel().tolist() for level in levels), strict=True)}:
        first = wide[a].first[up] * sizes[b]
        names = first[:, None] + wide[b].first[across][None, :]
        if owner is None:
            held = np.bincount(names.ravel(), counts, out.size)
        else:
            held = people_in(names.ravel()[cell], owner, out.size)
        here = (levels[0] == up) & (levels[1] == across)
        out[here] = held[names[here]] >= k
    return out.ravel()


def _shared(
    cell: Ints,
    places: tuple[int, ...],
    sizes: tuple[int, ...],
    k: int,
    owner: NDArray[np.int32] | None,
) -> Ints | NDArray[np.bool_]:
    count = prod(sizes[place] for place in places)
    if count <= _DENSE:
        return people_in(cell, owner, count) >= k
    held, number = np.unique(cell, return_inverse=True)
    found: Ints = held[people_in(number, owner, len(held)) >= k]
    return found


def _cells(rows: NDArray[np.int32], places: tuple[int, ...], sizes: tuple[int, ...]) -> Ints:
    cell = np.zeros(len(rows), np.int64)
    for place in places:
        cell = cell * sizes[place] + rows[:, place]
    return cell


def exchange_rare(
    rows: NDArray[np.int32],
    groups: NDArray[np.int32],
    shared: SharedCombinations,
    random: np.random.Generator,
) -> None:
    """Exchange values between rows, in place, while combinations that too few share get fewer.

    Every part is then held as often as it was drawn.
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    begins = np.cumsum(sizes) - sizes
    wrong = np.arange(len(rows))
    for turn in range(_WITHIN + _ACROSS):
        faults = shared.rare(rows[wrong])
        bad = faults.any(axis=1)
        wrong, faults = wrong[bad], faults[bad]
        if not len(wrong):
            return
        if turn < _WITHIN:
            group = groups[wrong]
            partner = order[begins[group] + random.integers(0, sizes[group])]
        else:
            partner = random.integers(0, len(rows), len(wrong))
        both = np.r_[wrong, partner]
        once = (np.bincount(both, minlength=len(rows)) == 1)[partner]
        chosen = (faults * random.random(faults.shape)).argmax(axis=1)
        for place in range(rows.shape[1]):
            here = once & (chosen == place)
            if here.any():
                _exchange(rows, wrong[here], partner[here], place, shared)
        wrong = np.unique(np.r_[wrong, partner[once]])


def _exchange(
    rows: NDArray[np.int32], ours: Ints, theirs: Ints, place: int, shared: SharedCombinations
) -> None:
    """Exchange one column of pairs of rows where that leaves no more rare combinations."""
    both = np.r_[ours, theirs]
    before = rows[both]
    after = before.copy()
    after[:, place] = rows[np.r_[theirs, ours], place]
    gain = shared.rare_with(place, before) - shared.rare_with(place, after)
    better = gain[: len(ours)] + gain[len(ours) :] >= 0
    rows[both[np.r_[better, better]]] = after[np.r_[better, better]]


def redraw_rare(
    rows: NDArray[np.int32],
    groups: NDArray[np.int32],
    model: BlockGenerator,
    shared: SharedCombinations,
    random: np.random.Generator,
) -> float:
    """Draw anew, in place, until no row holds a combination that too few share.

    A column that stands in a row's rare combinations is drawn again from the row's group, of the
    parts that go with the row's others; now and then the whole row is. What still fails becomes
    another row that is right, of the same group where there is one.

    Returns:
        The share of rows that were changed.

    Raises:
        UnsatisfiableError: no row that is right was found.
    """
    wrong = np.arange(len(rows))
    changed = 0.0
    for turn in range(_TURNS + 1):
        faults = shared.rare(rows[wrong])
        bad = faults.any(axis=1)
        wrong, faults = wrong[bad], faults[bad]
        if turn == 0:
            changed = len(wrong) / max(len(rows), 1)
        if not len(wrong) or turn == _TURNS:
            break
        chosen = (faults * random.random(faults.shape)).argmax(axis=1)
        for place, chances in enumerate(model.chances):
            if turn % _AFRESH == _AFRESH - 1:
                rows[wrong, place] = _draw(chances[groups[wrong]], random)
            else:
                _redraw(rows, wrong[chosen == place], place, chances, groups, shared, random)
    if len(wrong) == len(rows):
        raise no_row()
    right = np.delete(np.arange(len(rows)), wrong)
    for group in np.unique(groups[wrong]).tolist():
        here = wrong[groups[wrong] == group]
        same = right[groups[right] == group]
        rows[here] = rows[random.choice(same if len(same) else right, len(here))]
    return changed


def no_row(finest: str | None = None) -> UnsatisfiableError:
    """What is said where nothing can be drawn; ``finest`` names the column of most values."""
    first = () if finest is None else (f"generalize {finest!r} first, which has most values",)
    return UnsatisfiableError(
        "No row was found of which enough people share every combination of columns.",
        advice=(*first, "lower k", "give fewer columns or bins", "or combinations=1"),
    )


def _redraw(
    rows: NDArray[np.int32],
    here: Ints,
    place: int,
    chances: NDArray[np.float64],
    groups: NDArray[np.int32],
    shared: SharedCombinations,
    random: np.random.Generator,
) -> None:
    """Draw one column of some rows, of the parts that go with their other columns if there are."""
    parts = chances.shape[1]
    for some in np.array_split(here, len(here) * parts // _TABLE + 1):
        raw = chances[groups[some]]
        held, fits = rows[some], np.zeros_like(raw, dtype=np.bool_)
        for part in np.flatnonzero((raw > 0).any(axis=0)).tolist():
            held[:, place] = part
            fits[:, part] = shared.rare_with(place, held) == 0
        fitting = np.where(fits, raw, 0.0)
        none = fitting.sum(axis=1) == 0
        fitting[none] = raw[none]
        rows[some, place] = _draw(fitting, random)


def _draw(weights: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int32]:
    """A part for each row, by its weights."""
    edges = np.cumsum(weights, axis=1)
    wanted = random.random(len(weights)) * edges[:, -1]
    found = (edges <= wanted[:, None]).sum(axis=1)
    # Rounding may reach beyond the last part that has weight.
    last = weights.shape[1] - 1 - (weights[:, ::-1] > 0).argmax(axis=1)
    return np.asarray(np.minimum(found, last), dtype=np.int32)
