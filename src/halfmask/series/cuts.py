"""Cuts: sets of classes that nobody can stand half inside, and what changes inside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.weighted import dense, tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.series.regions import Regions, ValueRows

    # places, people, fewest people in one, fewest values in one, people whose value is certain
    Facts = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnDifferences:
    """What changes in the values of one column.

    Attributes:
        name: the column.
        differences: per earlier and later release, and 0 (more) or 1 (fewer), in how many cuts few
            rows are more or fewer; how many, the fewest in one cut, the fewest values in one, and
            how many of the rows have one value in their cut.
    """

    name: str
    differences: dict[tuple[int, int, int], Facts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class CutFindings:
    """The cuts of all releases together.

    Attributes:
        of_box: per box, its cut.
        count: how many there are.
        proven: per cut, whether nothing further is revealed in it, of any column.
        revealed: per cut, whether something is.
        columns: what changes, per sensitive column.
    """

    of_box: NDArray[np.int64]
    count: int
    proven: NDArray[np.bool_]
    revealed: NDArray[np.bool_]
    columns: tuple[ColumnDifferences, ...]

    def undecided(self, found: Regions) -> int:
        """How many people stand in cuts that are neither, in the release that has most there."""
        open_ = ~self.proven & ~self.revealed
        per = [
            tally(self.of_box[ids], self.count, counts)
            for ids, counts in zip(found.ids, found.counts, strict=True)
        ]
        return int(np.max(per, axis=0)[open_].sum())


def components(count: int, pairs: NDArray[np.int32]) -> tuple[NDArray[np.int64], int]:
    """The connected set of each of ``count`` things, and how many sets there are."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    cells = (np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1]))
    graph = coo_array(cells, shape=(count, count)).tocsr()
    number, of = connected_components(graph, directed=False)
    return of.astype(np.int64), int(number)


def find_cuts(found: Regions, pairs: NDArray[np.int32], classes: Regions) -> CutFindings:
    """The cuts of all releases, what changes between each two of them, and what is proven.

    ``classes`` are those that the releases publish, where ``found`` does not look at some columns.
    """
    of_box, count = components(found.boxes, pairs)
    proven, revealed = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    columns = []
    for values, published in zip(found.values, classes.values, strict=True):
        least = _least(published, len(found.rows))
        one = ColumnDifferences(values.name)
        _compare(found, values, pairs, least, (one, of_box, revealed))
        proven &= _proven(values, of_box, count, least, alone=found.whole is None)
        columns.append(one)
    if found.whole is not None:  # rows are known by all their columns together
        proven &= _proven(found.whole, of_box, count, _least(found.whole, len(found.rows)),
                          alone=False)  # fmt: skip
    if not found.values:
        proven[:] = False
    return CutFindings(of_box, count, proven, revealed, tuple(columns))


def _least(values: ValueRows, releases: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per release, the rows of its smallest class and the fewest values of a class."""
    rows, distinct = (np.full(releases, np.iinfo(np.int64).max) for _ in range(2))
    np.minimum.at(rows, values.release, values.rows)
    np.minimum.at(distinct, values.release, values.distinct)
    return rows, distinct


def _compare(
    found: Regions,
    values: ValueRows,
    pairs: NDArray[np.int32],
    least: tuple[NDArray[np.int64], NDArray[np.int64]],
    into: tuple[ColumnDifferences, NDArray[np.int64], NDArray[np.bool_]],
) -> None:
    """Difference the values of each cut of each two releases."""
    one, of_box, revealed = into
    bits = [(found.held >> np.uint64(t)) & np.uint64(1) == 1 for t in range(len(found.rows))]
    first, second = pairs[:, 0], pairs[:, 1]
    owner, release = values.owner, values.release[values.owner]
    for t in range(1, len(found.rows)):
        for s in range(t):
            across = (bits[s][first] & bits[t][second]) | (bits[t][first] & bits[s][second])
            cut, count = components(found.boxes, pairs[across])
            whole = np.empty(count, dtype=np.int64)
            whole[cut] = of_box
            few = tuple(max(2, int(min(held[s], held[t]))) for held in least)
            change = _change(values, (owner, release), cut, (s, t))
            both = _in_both(values, cut, count, (s, t))
            for side, sign in enumerate((1, -1)):
                facts = _few(change, sign, count, both, few)
                if facts is not None:
                    places, told = facts
                    one.differences[s, t, side] = told
                    revealed[whole[places]] = True


def _change(
    values: ValueRows,
    whose: tuple[NDArray[np.int64], NDArray[np.int32]],
    cut: NDArray[np.int64],
    releases: tuple[int, int],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cuts of values that are more or fewer in the later release, and by how many."""
    # Classes stand in the order of their releases.
    owner, release = whose
    ends = [np.searchsorted(release, (t, t + 1)) for t in releases]
    inside = np.concatenate([np.arange(*one) for one in ends])
    sign = np.repeat([-1, 1], [int(b - a) for a, b in ends])
    key = cut[values.box[owner[inside]]] * values.known + values.entries.values[inside]
    place, count = dense(key, int(key.max()) + 1)
    more = sign * values.entries.counts[inside]
    change = np.bincount(place, more, minlength=count).astype(np.int64)
    kept = np.empty(count, dtype=np.int64)
    kept[place] = key
    changed = change != 0
    return kept[changed] // values.known, change[changed]


def _in_both(
    values: ValueRows, cut: NDArray[np.int64], count: int, releases: tuple[int, int]
) -> NDArray[np.bool_]:
    """The cuts that both releases have rows in."""
    there = []
    for one in releases:
        held = np.zeros(count, dtype=bool)
        held[cut[values.box[values.release == one]]] = True
        there.append(held)
    return np.asarray(there[0] & there[1])


def _few(
    change: tuple[NDArray[np.int64], NDArray[np.int64]],
    sign: int,
    count: int,
    both: NDArray[np.bool_],
    least: tuple[int, ...],
) -> tuple[NDArray[np.int64], Facts] | None:
    """The cuts where what came (or left) is less than any class, and how much that is."""
    cut, number = change
    ours = number * sign > 0
    rows = np.bincount(cut[ours], np.abs(number[ours]), minlength=count).astype(np.int64)
    distinct = np.bincount(cut[ours], minlength=count)
    few = np.flatnonzero(both & (rows > 0) & ((rows < least[0]) | (distinct < least[1])))
    if not len(few):
        return None
    facts = (
        len(few),
        int(rows[few].sum()),
        int(rows[few].min()),
        int(distinct[few].min()),
        int(rows[few][distinct[few] == 1].sum()),
    )
    return few, facts


def _proven(
    values: ValueRows,
    of_box: NDArray[np.int64],
    count: int,
    least: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    alone: bool,
) -> NDArray[np.bool_]:
    """The cuts in which no knowledge of who was there when tells a value further.

    Values can be exchanged only where the column stands ``alone`` beside the quasi-identifiers.
    """
    cut = of_box[values.box]
    releases = np.unique(cut * len(least[0]) + values.release) // len(least[0])
    once = np.bincount(releases, minlength=count) <= 1
    few = (max(2, int(least[0].min())), max(2, int(least[1].min())))
    found = once | _grown(values, cut, count, few)
    return found | _exchangeable(values, cut, count, few[1]) if alone else found


def _exchangeable(
    values: ValueRows, cut: NDArray[np.int64], count: int, orbit: int
) -> NDArray[np.bool_]:
    """The cuts whose values each have ``orbit`` - 1 others that all classes hold equally often.

    Exchanging two such values everywhere gives the same releases, so nobody can tell them apart.
    """
    random = np.random.default_rng(0).integers(1, 2**62, (2, len(values.rows)), dtype=np.uint64)
    owner, entries = values.owner, values.entries
    key = cut[owner] * values.known + entries.values
    place, cells = dense(key, int(key.max()) + 1)
    held = np.empty(cells, dtype=np.int64)
    held[place] = key // values.known
    marks = np.zeros((cells, 2), dtype=np.uint64)
    counts = entries.counts.astype(np.uint64)
    for side in range(2):  # sums of products modulo 2**64: alike where the counts are
        np.add.at(marks[:, side], place, counts * random[side][owner])
    rows = np.column_stack([held.astype(np.uint64), marks])
    alike, number = np.unique(rows, axis=0, return_counts=True)
    few = alike[number < orbit, 0].astype(np.int64)
    out = np.ones(count, dtype=bool)
    out[few] = False
    return out


def _grown(
    values: ValueRows, cut: NDArray[np.int64], count: int, least: tuple[int, int]
) -> NDArray[np.bool_]:
    """The cuts that only grow, or only shrink, by whole groups whose place is known exactly.

    Several releases must have one and the same class there. Of two, the one with more rows must
    have one class: those who came (or left) all stand in it, and their values are the difference.
    """
    releases = int(values.release.max()) + 1
    classes = np.zeros((releases, count), dtype=np.int64)
    np.add.at(classes, (values.release, cut), 1)
    present, all_ = classes > 0, np.arange(count)
    lowest = np.full(count, np.iinfo(np.int32).max)
    highest = np.full(count, -1)
    np.minimum.at(lowest, cut, values.box)
    np.maximum.at(highest, cut, values.box)
    first = classes[np.argmax(present, axis=0), all_] == 1
    last = classes[releases - 1 - np.argmax(present[::-1], axis=0), all_] == 1
    grows, shrinks = (_steps(values, cut, count, sign, least) for sign in (1, -1))
    two = (last & grows) | (first & shrinks) | ((first | last) & grows & shrinks)
    same = (lowest == highest) & (grows | shrinks)
    return np.where(present.sum(axis=0) == 2, two, same)


def _steps(
    values: ValueRows, cut: NDArray[np.int64], count: int, sign: int, least: tuple[int, int]
) -> NDArray[np.bool_]:
    """The cuts whose values, from release to release, only become more (or fewer), by groups."""
    owner, entries = values.owner, values.entries
    releases = int(values.release.max()) + 1
    key = cut[owner] * values.known + entries.values
    place, cells = dense(key, int(key.max()) + 1)
    of = np.empty(cells, dtype=np.int64)
    of[place] = key // values.known
    before = np.zeros(cells, dtype=np.int64)
    seen = np.zeros(count, dtype=bool)
    out = np.ones(count, dtype=bool)
    for t in range(releases):
        ours = values.release[owner] == t
        there = np.zeros(count, dtype=bool)
        there[cut[values.release == t]] = True
        now = np.bincount(place[ours], entries.counts[ours], minlength=cells).astype(np.int64)
        change = np.where(there[of], (now - before) * sign, 0)
        rows = np.bincount(of, change, minlength=count)
        distinct = np.bincount(of[change > 0], minlength=count)
        wrong = np.zeros(count, dtype=bool)
        wrong[of[change < 0]] = True
        small = (rows > 0) & ((rows < least[0]) | (distinct < least[1]))
        out[seen & there & (wrong | small)] = False
        before = np.where(there[of], now, before)
        seen |= there
    return out
