"""Combinations that k people share: what the columns of a drawn row may hold together.

Definition: a set of parts, one of each of some columns (names by their value, numbers by their
    interval), is drawn only where at least k people hold all of them. A set that nobody holds
    counts as one that few hold.

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

from halfmask.errors import ParameterError, UnsatisfiableError
from halfmask.synthesize.columns import people_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.generate import BlockGenerator
    from halfmask.coclustering.prepare import ColumnParts

    Ints = NDArray[np.int64]

MOST_SETS = 20_000  # sets of columns that are counted
_DENSE = 1 << 20  # combinations of one set up to which each is listed
_TURNS = 200  # of drawing anew, before a row is taken from those that are right
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

    def rare(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """(rows, columns) in how many combinations that too few hold each part stands."""
        out = np.zeros(rows.shape, np.int32)
        for places, shared in zip(self.sets, self.shared, strict=True):
            cell = _cells(rows, places, self.sizes)
            if shared.dtype == np.bool_:
                fine = shared[cell]
            else:
                at = np.minimum(np.searchsorted(shared, cell), max(len(shared) - 1, 0))
                fine = shared[at] == cell if len(shared) else np.zeros(len(cell), bool)
            bad = np.flatnonzero(~fine)
            for place in places:
                out[bad, place] += 1
        return out


def shared_combinations(
    columns: Sequence[ColumnParts], size: int, k: int, owner: NDArray[np.int32] | None
) -> SharedCombinations:
    """Count people in all combinations of ``size`` columns.

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
    shared = tuple(_shared(_cells(rows, one, sizes), one, sizes, k, owner) for one in sets)
    return SharedCombinations(sizes, sets, shared)


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


def redraw_rare(
    rows: NDArray[np.int32],
    groups: NDArray[np.int32],
    model: BlockGenerator,
    shared: SharedCombinations,
    random: np.random.Generator,
) -> float:
    """Draw anew, in place, until no row holds a combination that too few share.

    The column that stands in most of a row's rare combinations is drawn again from the row's group;
    now and then the whole row is. What still fails becomes another row that is right, of the same
    group where there is one.

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
        worst = (faults + random.random(faults.shape)).argmax(axis=1)
        for place, chances in enumerate(model.chances):
            again = wrong if turn % _AFRESH == _AFRESH - 1 else wrong[worst == place]
            rows[again, place] = _draw(chances, groups[again], random)
    if len(wrong) == len(rows):
        raise UnsatisfiableError(
            "No row was found of which enough people share every combination of columns.",
            advice=("lower k", "give fewer columns or bins", "or combinations=1"),
        )
    right = np.delete(np.arange(len(rows)), wrong)
    for group in np.unique(groups[wrong]).tolist():
        here = wrong[groups[wrong] == group]
        same = right[groups[right] == group]
        rows[here] = rows[random.choice(same if len(same) else right, len(here))]
    return changed


def _draw(
    chances: NDArray[np.float64], groups: NDArray[np.int32], random: np.random.Generator
) -> NDArray[np.int32]:
    """A part for each row, by the chances of its group."""
    edges = np.cumsum(chances, axis=1)
    edges /= edges[:, -1:]
    at = np.searchsorted(
        (edges + np.arange(len(edges))[:, None]).ravel(),
        groups + np.minimum(random.random(len(groups)), 1 - 1e-12),
        side="right",
    )
    width = chances.shape[1]
    found = np.clip(at - groups * np.int64(width), 0, width - 1)
    return np.asarray(found, dtype=np.int32)
