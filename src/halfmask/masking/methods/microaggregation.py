"""Microaggregation: groups of at least k people share the mean or median of their group.

Definition: minimize the sum of squares inside groups of at least k people. One column: optimal, by
    the shortest path (of all runs of values, where people have several rows). Several: MDAV or
    V-MDAV on standardized columns (or their ranks), then moves and swaps between near groups while
    they lose less. With own demands a group holds as many as anybody in it asks for.
Source: Hansen and Mukherjee, "A polynomial algorithm for optimal univariate microaggregation",
    2003; Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity through
    microaggregation", 2005; Solanas and Martinez-Balleste, "V-MDAV", 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import UnsatisfiableError
from halfmask.masking.numeric_columns import Numbers, numbers_in
from halfmask.masking.step import MaskStep, MaskWords, Outcome, register_mask, some_columns
from halfmask.models.verdict import whole_number, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.step import Rows

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_METHODS = {
    "best": "the groups that lose least",
    "mdav": "MDAV",
    "v-mdav": "V-MDAV, of varying size",
}
_SCALES = {"values": "values", "ranks": "ranks"}
_AGGREGATES = {"mean": "the mean", "median": "the median"}
_GAMMA = 0.2  # V-MDAV's usual factor for data without clear clusters
_WHOLE, _BLOCK = 40_000, 2_000  # rows that MDAV takes at once, and per block where there are more
_NEAR = 12
_PASSES, _FEW = 15, 3
_WIDEST, _OVER = 1024, 16  # rows of a group of one column, and times k, that all are tried up to
_ROOM = 1 << 26  # places that the search may keep


@dataclass(frozen=True, slots=True, eq=False)
class GroupedColumns:
    """Columns as numbers, with the group of each row; -1 where it stands in none."""

    columns: list[Numbers]
    group: Ints
    count: int

    @property
    def notes(self) -> tuple[str, ...]:
        """How many cells are blanked, where some are."""
        blanked = sum(int(np.count_nonzero(c.there & (self.group < 0))) for c in self.columns)
        if not blanked:
            return ()
        return (f"{blanked:,} cells were blanked: too few rows have values in the same columns.",)


@register_mask
@dataclass(frozen=True, slots=True)
class Microaggregate(MaskStep):
    """Replace values by the mean (or median) of groups of at least ``k`` people.

    Several columns are grouped together. People's own k of the schema is kept where it is higher.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [20, 21, 22, 60, 62, 64]}, schema={"age": "quasi"})
        >>> release = hm.mask(people, hm.masks.Microaggregate("age", k=3))
        >>> sorted(release.to_arrow()["age"].to_pylist())
        [21, 21, 21, 62, 62, 62]
    """

    name: ClassVar[str] = "microaggregate"
    words: ClassVar[MaskWords] = MaskWords(
        "Values become the mean or median of a group of people.",
        "Telling people apart by these columns: at least k share what is shown.",
        "Other columns, and what all people of a group have in common.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns("ordered"))
    k: int = field(metadata=whole_number(2))
    method: str = field(default="best", metadata=word("Groups are found by", **_METHODS))
    scale: str = field(default="values", metadata=word("Distances are between", **_SCALES))
    aggregate: str = field(default="mean", metadata=word("A group shows", **_AGGREGATES))

    def apply(self, rows: Rows) -> Outcome:
        """Group the rows and aggregate them."""
        return self._outcome(self.form_groups(rows))

    def form_groups(self, rows: Rows, step: str = "microaggregate") -> GroupedColumns:
        """The columns, and which rows stand in a group; ``step`` is whom a refusal names."""
        columns = [_read(rows, name) for name in self.columns]
        group = np.full(len(rows), -1, np.int64)
        need, (owner, _) = rows.people_needed(self.k), rows.people()
        count = 0
        for members in _patterns(columns):
            people, own = np.unique(owner[members], return_inverse=True)
            if need[members].max(initial=0) > len(people):
                continue
            block = self._scale_columns(columns, members)
            wanted = _SharingNeeds(need[members], own.reshape(-1).astype(np.int64), len(people))
            group[members] = self._groups(block, wanted, step) + count
            count = int(group.max()) + 1
        if not count:
            raise UnsatisfiableError(
                f"{step}: no group of {self.k:,} people can be formed: the rows are too few, or"
                " somebody asks for a k above their number. Lower k, or leave such people out."
            )
        return GroupedColumns(columns, group, count)

    def _outcome(self, grouped: GroupedColumns) -> Outcome:
        columns, group, count = grouped.columns, grouped.group, grouped.count
        out, facts = {}, {"groups": count, "smallest": int(np.bincount(group[group >= 0]).min())}
        lost = total = 0.0
        for one in columns:
            shown_ = _aggregate(one.values, group, count, median=self.aggregate == "median")
            there = one.there & (group >= 0)
            values = np.where(there, shown_[np.maximum(group, 0)], 0.0)
            spread = float(np.var(one.values[there])) if there.any() else 0.0
            if spread:
                lost += float(np.mean((one.values[there] - values[there]) ** 2)) / spread
                total += 1.0
            exact = self.aggregate == "mean"
            out[one.name] = replace(one, there=there).back(values, exact=exact)
        share = lost / total if total else 0.0
        return Outcome(out, facts={**facts, "variance_lost": round(share, 6)}, notes=grouped.notes)

    def _scale_columns(self, columns: list[Numbers], members: Ints) -> Floats:
        """The columns that these rows have, each with variance 1."""
        block = []
        for one in columns:
            if not one.there[members[0]]:
                continue
            values = one.values[members]
            if self.scale == "ranks":
                order = np.sort(values)
                values = (
                    np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right")
                ) / 2.0
            spread = float(values.std())
            block.append((values - values.mean()) / (spread or 1.0))
        return np.ascontiguousarray(np.array(block).T)

    def _groups(self, block: Floats, wanted: _SharingNeeds, step: str) -> Ints:
        need = wanted.need
        if block.shape[1] == 1 and self.method == "best":
            return _line(block[:, 0], wanted, step)
        gammas: tuple[float, ...] = (_GAMMA if self.method == "v-mdav" else 0.0,)
        if self.method == "best" and need.min() < need.max():  # the search takes one k for all
            gammas = (0.0, _GAMMA)
        found = []
        if wanted.most > 1:  # fewer rows often hold enough people
            found = [wanted.join_lacking(block, _space(block, need, one, "mdav")) for one in gammas]
        if not found or len(block) <= _WHOLE:
            found += [_space(block, need * wanted.most, one, self.method) for one in gammas]
        return min(found, key=lambda group: _lost(block, group)) if found[1:] else found[0]


@dataclass(frozen=True, slots=True, eq=False)
class _SharingNeeds:
    """How many people must share what each row shows, and whose the rows are."""

    need: Ints
    owner: Ints
    people: int

    @property
    def most(self) -> int:
        """The most rows of one person: so many times k rows are sure to hold k people."""
        return int(np.bincount(self.owner).max())

    def join_lacking(self, block: Floats, group: Ints) -> Ints:
        """The groups, those that lack people joined to the nearest others."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components
        from scipy.spatial import cKDTree

        while True:
            count = int(group.max()) + 1
            held = np.bincount(np.unique(group * self.people + self.owner) // self.people)
            asked = np.zeros(count, np.int64)
            np.maximum.at(asked, group, self.need)
            short = np.flatnonzero(held < asked)
            if not len(short) or count == 1:
                return group
            sizes = np.bincount(group)
            middle = np.array([np.bincount(group, one) for one in block.T]).T / sizes[:, None]
            near = cKDTree(middle).query(middle[short], k=2)[1]
            other = np.where(near[:, 0] == short, near[:, 1], near[:, 0])
            # All short groups at once: chains of nearest ones join as a whole.
            ties = coo_matrix((np.ones(len(short)), (short, other)), (count, count))
            group = connected_components(ties, directed=False)[1].astype(np.int64)[group]


@dataclass(frozen=True, slots=True, eq=False)
class _Ordinal(Numbers):
    """An ordinal column as the places of its values in their order."""

    order: pa.Array = None

    def back(self, values: Floats, *, exact: bool = False) -> pa.Array:  # noqa: ARG002 - no means
        """The values at these places, the lower of two where it lies between."""
        places = np.where(self.there, np.floor(values), 0).astype(np.int64)
        return self.order.take(pa.array(places, mask=~self.there))


def _read(rows: Rows, name: str) -> Numbers:
    declared = rows.table.schema.columns.get(name)
    if declared is None or declared.order is None:
        return numbers_in(rows.table, name)
    encoded = rows.table.encode(name)
    there = encoded.codes < len(encoded.values.drop_null())
    codes = np.where(there, encoded.codes.astype(np.float64), np.nan)
    return _Ordinal(name, encoded.values.type, codes, there, order=encoded.values)


def _patterns(columns: list[Numbers]) -> list[Ints]:
    """Rows that have the same columns, those with none left out."""
    key = np.zeros(len(columns[0].there), np.int64)
    for one in columns:
        key = key * 2 + one.there
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    return [part for part in np.split(order, cuts) if len(part) and key[part[0]]]


def _aggregate(values: Floats, group: Ints, count: int, *, median: bool) -> Floats:
    """Per group, the mean or the (lower) median; NaN where a column is missing in it."""
    inside = group >= 0
    if not median:
        sizes = np.bincount(group[inside], minlength=count)
        # Sums of differences from the middle: of large numbers near each other a plain sum loses
        # digits.
        middle = float(np.nanmean(values[inside])) if np.isfinite(values[inside]).any() else 0.0
        sums = np.bincount(group[inside], weights=values[inside] - middle, minlength=count)
        means: Floats = sums / np.maximum(sizes, 1) + middle
        return means
    order = np.lexsort((values, group))
    order = order[inside[order]]
    starts = np.searchsorted(group[order], np.arange(count + 1))
    places = starts[:-1] + (np.diff(starts) - 1) // 2
    found: Floats = values[order][np.minimum(places, len(order) - 1)]
    return found


def _lost(block: Floats, group: Ints) -> float:
    """The squares between rows and the means of their groups."""
    sizes = np.bincount(group)
    means = np.array([np.bincount(group, one) for one in block.T]) / sizes
    return float(((block.T - means[:, group]) ** 2).sum())


def _line(values: Floats, wanted: _SharingNeeds, step: str) -> Ints:
    """The optimal groups of one column."""
    from halfmask.kernels.masking.microaggregation import optimal_line

    order = np.argsort(values, kind="stable")
    most = int(wanted.need.max())
    owner = wanted.owner[order]
    widest = max(_WIDEST, _OVER * most)
    starts = optimal_line(values[order], wanted.need[order], owner, most, widest)
    if starts[0] < 0:
        raise UnsatisfiableError(f"{step}: the rows are too few for what people ask for.")
    group = np.empty(len(values), np.int64)
    group[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return group


def _space(block: Floats, need: Ints, gamma: float, method: str) -> Ints:
    """Groups of several columns: MDAV, in blocks where there are many rows, then the search."""
    from halfmask.kernels.masking.microaggregation import mdav_groups

    group = np.full(len(block), -1, np.int64)
    most = int(need.max())
    size = _WHOLE if len(block) <= _WHOLE else max(_BLOCK, 4 * most)
    first = 0
    for part in _blocks(block, np.arange(len(block)), size, most):
        first = mdav_groups(block, need, part, gamma, group, first)
    group = _merge_small(block, need, group)
    if method == "best" and need.min() == most:
        group = _improve(block, most, group)
    return group


def _blocks(block: Floats, rows: Ints, size: int, need: int) -> list[Ints]:
    """The rows cut in halves along their widest column until no part has more than ``size``."""
    waiting, out = [rows], []
    while waiting:
        part = waiting.pop()
        # Whole groups on the first side, so that no remainder grows.
        half = len(part) // 2 // need * need
        if len(part) <= size or half < need:
            out.append(part)
            continue
        widest = int(np.argmax(block[part].var(axis=0)))
        order = np.argpartition(block[part, widest], half)
        waiting += [part[order[half:]], part[order[:half]]]
    return out


def _merge_small(block: Floats, need: Ints, group: Ints) -> Ints:
    """Groups that hold too few for somebody in them, put to the nearest others."""
    while True:
        _, group = np.unique(group, return_inverse=True)
        group = group.reshape(-1)
        sizes = np.bincount(group)
        asked = np.zeros(len(sizes), np.int64)
        np.maximum.at(asked, group, need)
        short = np.flatnonzero(sizes < asked)
        if not len(short) or len(sizes) == 1:
            return group
        middle = np.array([np.bincount(group, block[:, c]) for c in range(block.shape[1])]) / sizes
        worst = short[np.argmax((asked - sizes)[short])]
        apart = ((middle - middle[:, [worst]]) ** 2).sum(axis=0)
        apart[worst] = np.inf
        group[group == worst] = int(np.argmin(apart))


def _improve(block: Floats, k: int, group: Ints) -> Ints:
    """Moves and swaps between near groups while they lose less."""
    from scipy.spatial import cKDTree

    from halfmask.kernels.masking.microaggregation import improve_groups

    count = int(group.max()) + 1
    sizes = np.bincount(group, minlength=count)
    room = int(max(2 * k, sizes.max() + 1))
    if count < 2 or count * room > _ROOM:
        return group
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(sizes) - sizes
    slots = np.full((count, room), -1, np.int64)
    slots[group[order], np.arange(len(group)) - starts[group[order]]] = order
    sums = np.array([np.bincount(group, block[:, c], count) for c in range(block.shape[1])]).T
    sums = np.ascontiguousarray(sums)
    for _ in range(_PASSES if len(block) <= 5 * _WHOLE else _FEW):
        middle = sums / sizes[:, None]
        near = cKDTree(middle).query(middle, k=min(_NEAR, count))[1].reshape(count, -1)
        made = improve_groups(block, k, group, sums, slots, sizes, near.astype(np.int64))
        if made < len(block) / 2000:
            break
    return group
