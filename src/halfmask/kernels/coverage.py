"""Which released tuples cover which tuples of leaves, and which meet each other.

Tuples of leaves are sorted: those that begin alike are one node, walked down column by column. With
each node goes the list of the released tuples that cover its beginning, so that the work follows
what is covered and not the pairs of tuples.

Boxes, which are tuples of labels, meet where they have values in common. They are sorted and walked
in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    Sparing,
    bare,
    integer_rows,
    integers,
    kernel,
    narrow,
    reals,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LabelColumns(NamedTuple):
    """Labels and the leaves that they cover, column after column.

    Attributes:
        labels: (columns, released tuples).
        leaves: (columns, tuples of leaves) in lexicographic order.
        starts: where the leaves of each label begin in ``covered``.
        covered: the leaves under each label, ascending.
        label_at: where each column begins in ``starts``.
        low: (columns, released tuples) the first leaf; ``high`` the last.
        gaps: (columns, released tuples) whether leaves between them are not covered.
    """

    labels: NDArray[np.int32]
    leaves: NDArray[np.int32]
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]
    label_at: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    gaps: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        labels: list[NDArray[np.int32]],
        leaves: NDArray[np.int32],
        covered: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> LabelColumns:
        """From labels, and per column where the leaves of each label begin, and these."""
        each = list(zip(labels, covered, strict=True))
        low = np.stack([held[starts[label]] for label, (starts, held) in each]).astype(np.int32)
        high = np.stack([held[starts[label + 1] - 1] for label, (starts, held) in each])
        sizes = np.stack([np.diff(starts)[label] for label, (starts, _) in each])
        gaps = high - low + 1 > sizes
        # Ranges are known by their ends; leaves are looked up in columns with gaps alone.
        ragged = [held if gaps[c].any() else held[:0] for c, (_, held) in enumerate(covered)]
        shifts = np.cumsum([0] + [len(held) for held in ragged[:-1]])
        return cls(
            np.stack(labels),
            leaves,
            np.concatenate([at + shift for (at, _), shift in zip(covered, shifts, strict=True)]),
            np.concatenate(ragged),
            np.cumsum([0] + [len(starts) for starts, _ in covered[:-1]], dtype=np.int64),
            low,
            high.astype(np.int32),
            gaps,
        )


class Coverage(NamedTuple):
    """What is wanted of the pairs that cover, and what was found.

    Attributes:
        weights: of the released tuples.
        mass: per tuple of leaves, the weight over it; exactly 0 where nothing covers it.
        ranks: of the released tuples; empty where nobody asks for the lowest.
        best: per tuple of leaves, the lowest rank, -1 for none.
        ends: per released tuple, how many tuples of leaves it covers, or where the next of them
            goes in ``fits``; empty where nobody asks.
        fits: tuples of leaves, released tuple after released tuple; empty to count them.
    """

    weights: NDArray[np.float64]
    mass: NDArray[np.float64]
    ranks: NDArray[np.int64]
    best: NDArray[np.int64]
    ends: NDArray[np.int64]
    fits: NDArray[np.int64]


@bare
def covers(c: Any, column: int, t: int, leaf: int) -> bool:
    """Whether a released tuple covers a leaf in one column."""
    if not c.low[column, t] <= leaf <= c.high[column, t]:
        return False
    if not c.gaps[column, t]:
        return True
    label = c.label_at[column] + c.labels[column, t]
    end = c.starts[label + 1]
    at = first_from(c.covered, c.starts[label], end, leaf)
    return bool(at < end and c.covered[at] == leaf)


@bare
def first_from(values: Any, low: int, high: int, wanted: int) -> int:
    """The first place from ``low`` whose value is not below ``wanted``."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


_LEAST = 1e-300  # rounding must not make nothing of a weight
_FEW = 32  # so many pairs are looked at one by one
_ROOM = 1 << 24  # lists of one node that are held at once; what is longer is taken in halves


@kernel
def _covering(c: Any, found: Any, room: int = _ROOM) -> None:
    """Find for each tuple of leaves the released tuples that cover it."""
    columns, released = c.low.shape
    summed = not len(found.ranks) and not len(found.ends)
    lists = narrow(max(1024, 4 * released))
    for t in range(released):
        lists[t] = t
    # A node: its column, its tuples of leaves, its list. What stands behind the list of the node
    # that is taken is free, as nodes that came later were taken before.
    waiting = integer_rows(1024, 5, 0)
    _note(waiting, 0, 0, 0, c.leaves.shape[1], 0, released)
    count = 1
    while count:
        count -= 1
        depth, first, last = waiting[count, 0], waiting[count, 1], waiting[count, 2]
        begin, end = waiting[count, 3], waiting[count, 4]
        over = lists[begin:end]
        if last - first == 1 or (last - first) * (end - begin) <= _FEW:
            _each(c, found, depth, first, last, over)
        elif summed and depth + 1 == columns:
            _ranges(c, found, first, last, over)
        else:
            nodes = _nodes(c.leaves[depth], first, last)
            ends = _lengths(c, depth, nodes, over)
            if ends[-1] > room and len(nodes) > 2:
                middle = nodes[len(nodes) // 2]  # both halves share their list
                waiting = _room_for(waiting, count, 2)
                _note(waiting, count, depth, first, middle, begin, end)
                _note(waiting, count + 1, depth, middle, last, begin, end)
                count += 2
                continue
            lists = _room(lists, end, end + ends[-1])
            _share(c, depth, nodes, lists[begin:end], ends, lists[end:])
            waiting = _room_for(waiting, count, len(nodes))
            for n in range(len(nodes) - 1):  # nodes wait over which something stands
                if ends[n + 1] > ends[n]:
                    _note(
                        waiting, count, depth + 1, nodes[n], nodes[n + 1], end + ends[n],
                        end + ends[n + 1],
                    )  # fmt: skip
                    count += 1


@bare
def _each(c: Any, found: Any, depth: int, first: int, last: int, over: Any) -> None:
    """Look at every pair of a node: at the columns that are left."""
    columns = c.low.shape[0]
    for i in range(first, last):
        for t in over:
            column = depth
            while column < columns and covers(c, column, t, c.leaves[column, i]):
                column += 1
            if column == columns:
                _add(found, i, t)


@kernel
def _add(found: Any, i: int, t: int) -> None:
    """Released tuple ``t`` covers the tuple of leaves ``i``."""
    found.mass[i] += found.weights[t]
    if len(found.ranks) and (found.best[i] < 0 or found.ranks[t] < found.best[i]):
        found.best[i] = found.ranks[t]
    if len(found.ends):
        if len(found.fits):
            found.fits[found.ends[t]] = i
        found.ends[t] += 1


@kernel
def _ranges(c: Any, found: Any, first: int, last: int, over: Any) -> None:
    """Add up the last column: a label without gaps counts from its first leaf to its last."""
    depth = c.low.shape[0] - 1
    leaves = c.leaves[depth, first:last]
    # Steps up and down are added up once. Counts are exact where sums of weights are not: where
    # nothing covers, the mass stays exactly 0.
    steps, counts = reals(len(leaves) + 1, 0.0), zeros(len(leaves) + 1)
    for t in over:
        one = first_from(leaves, 0, len(leaves), c.low[depth, t])
        two = first_from(leaves, one, len(leaves), c.high[depth, t] + 1)
        if one == two:
            continue
        if c.gaps[depth, t]:
            for i in range(one, two):
                if covers(c, depth, t, leaves[i]):
                    found.mass[first + i] += found.weights[t]
            continue
        steps[one] += found.weights[t]
        steps[two] -= found.weights[t]
        counts[one] += 1
        counts[two] -= 1
    weight, held = 0.0, 0
    for i in range(len(leaves)):
        held += counts[i]
        weight = weight + steps[i] if held else 0.0
        if held:
            found.mass[first + i] += max(weight, _LEAST)


@kernel
def _nodes(leaves: Any, first: int, last: int) -> Any:
    """Where the tuples of leaves of each value begin; the last entry is where all end."""
    count, at = 0, first
    while at < last:
        at = _after(leaves, at, last, leaves[at])
        count += 1
    nodes = integers(count + 1)
    nodes[0] = first
    for n in range(count):
        nodes[n + 1] = _after(leaves, nodes[n], last, leaves[nodes[n]])
    return nodes


@bare
def _within(c: Any, depth: int, t: int, nodes: Any) -> Any:
    """The nodes from the first leaf of a label to its last."""
    leaves, count = c.leaves[depth], len(nodes) - 1
    one = _first_node(leaves, nodes, 0, count, c.low[depth, t])
    return one, _first_node(leaves, nodes, one, count, c.high[depth, t] + 1)


@kernel
def _lengths(c: Any, depth: int, nodes: Any, over: Any) -> Any:
    """Where the list of each node begins, and where the last one ends."""
    single, steps = zeros(len(nodes)), zeros(len(nodes))
    for t in over:
        one, two = _within(c, depth, t, nodes)
        if not c.gaps[depth, t]:
            steps[one] += 1
            steps[two] -= 1
            continue
        for n in range(one, two):
            if covers(c, depth, t, c.leaves[depth, nodes[n]]):
                single[n] += 1
    ends = zeros(len(nodes))
    ranged = 0
    for n in range(len(nodes) - 1):
        ranged += steps[n]
        ends[n + 1] = ends[n] + single[n] + ranged
    return ends


@kernel
def _share(c: Any, depth: int, nodes: Any, over: Any, ends: Any, out: Any) -> None:
    """Write each released tuple to the lists of the nodes that it covers."""
    places = integers(len(ends))
    for n in range(len(ends)):
        places[n] = ends[n]
    for t in over:
        one, two = _within(c, depth, t, nodes)
        for n in range(one, two):
            if not c.gaps[depth, t] or covers(c, depth, t, c.leaves[depth, nodes[n]]):
                out[places[n]] = t
                places[n] += 1


@kernel
def _room_for(waiting: Any, count: int, more: int) -> Any:
    """The same list of nodes with room for more."""
    if count + more <= len(waiting):
        return waiting
    size = 2 * (count + more)
    wider = integer_rows(size, 5, 0)
    for n in range(count):
        for i in range(5):
            wider[n, i] = waiting[n, i]
    return wider


@bare
def _note(waiting: Any, at: int, depth: int, first: int, last: int, begin: int, end: int) -> None:
    """Let a node wait."""
    waiting[at, 0], waiting[at, 1], waiting[at, 2] = depth, first, last
    waiting[at, 3], waiting[at, 4] = begin, end


@kernel
def _room(lists: Any, used: int, wanted: int) -> Any:
    """The same lists with room for more."""
    if wanted <= len(lists):
        return lists
    wider = narrow(2 * wanted)
    for i in range(used):
        wider[i] = lists[i]
    return wider


@bare
def _first_node(leaves: Any, nodes: Any, low: int, high: int, wanted: int) -> int:
    """The first node from ``low`` whose leaf is not below ``wanted``."""
    while low < high:
        middle = (low + high) // 2
        if leaves[nodes[middle]] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@bare
def _after(values: Any, low: int, high: int, value: int) -> int:
    """Where the run of ``value`` that begins at ``low`` ends; most runs are short."""
    step = 1  # doubled: as many looks as the run's length has digits, not the table's
    while low + step < high and values[low + step] == value:
        low += step
        step *= 2
    return first_from(values, low + 1, min(low + step, high), value + 1)


def _all_pairs(c: LabelColumns, found: Coverage, _: int = 0) -> None:
    """What ``_covering`` does, by looking at all pairs at once."""
    inside = np.ones((c.labels.shape[1], c.leaves.shape[1]), dtype=bool)
    for column, leaves in enumerate(c.leaves):
        inside &= c.low[column][:, None] <= leaves
        inside &= leaves <= c.high[column][:, None]
        for label in np.unique(c.labels[column][c.gaps[column]]):
            at = c.label_at[column] + label
            held = np.isin(leaves, c.covered[c.starts[at] : c.starts[at + 1]])
            inside[c.labels[column] == label] &= held
    _keep(found, *np.nonzero(inside))


def _alone(c: LabelColumns, found: Coverage) -> None:
    """The same where every label covers one leaf: what covers a tuple of leaves equals it."""
    count = c.leaves.shape[1]
    ids = np.zeros(count + c.low.shape[1], dtype=np.int64)
    for leaves, held in zip(c.leaves, c.low, strict=True):
        ids *= max(int(leaves.max(initial=0)), int(held.max(initial=0))) + 1
        ids += np.concatenate([leaves, held])
        ids = np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)
    place = np.full(len(ids), -1)
    place[ids[:count]] = np.arange(count)
    under = place[ids[count:]]
    over = np.flatnonzero(under >= 0)
    _keep(found, over, under[over])


def _keep(found: Coverage, over: NDArray[np.int64], under: NDArray[np.int64]) -> None:
    """Take in which released tuples stand over which tuples of leaves."""
    np.add.at(found.mass, under, found.weights[over])
    if len(found.ranks):
        none = np.iinfo(np.int64).max
        best = np.where(found.best < 0, none, found.best)
        np.minimum.at(best, under, found.ranks[over])
        found.best[:] = np.where(best == none, -1, best)
    if len(found.ends):
        sizes = np.bincount(over, minlength=len(found.ends))
        if len(found.fits):
            turn = np.arange(len(over)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            found.fits[found.ends[over] + turn] = under
        found.ends[:] += sizes


def _pairs(c: LabelColumns, *_: Any) -> int:
    pairs = c.labels.shape[1] * c.leaves.shape[1]
    return pairs * len(c.labels) if pairs <= _MATRIX else _COMPARED + 1


_MATRIX, _COMPARED = 4_000_000, 600_000_000  # a matrix of pairs; cells before compiling pays
_ranged: Any = Sparing(_covering, _pairs, _COMPARED, _all_pairs)


def covering(c: LabelColumns, found: Coverage) -> None:
    """Find for each tuple of leaves the released tuples that cover it."""
    (_alone if np.array_equal(c.low, c.high) else _ranged)(c, found)


class Meeting(NamedTuple):
    """What meets what, column after column.

    Attributes:
        boxes: (boxes, columns) labels in lexicographic order.
        starts: where the labels that meet a key begin in ``met``; keys of all columns in a row.
        met: the labels that meet each key, ascending.
        key_at: where the keys of each column begin in ``starts``.
    """

    boxes: NDArray[np.int32]
    starts: NDArray[np.int64]
    met: NDArray[np.int32]
    key_at: NDArray[np.int64]


class RegionEntries(NamedTuple):
    """The values of every class of every release.

    Attributes:
        at: (releases, boxes) the class of a box in a release; -1: none.
        starts: where the values of each class begin.
        values: the values of each class, ascending; ``counts`` how often.
        values_known: how many values there are.
    """

    at: NDArray[np.int32]
    starts: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    values_known: int


@bare
def _has(m: Any, begin: int, end: int, label: int) -> bool:
    at = first_from(m.met, begin, end, label)
    return bool(at < end and m.met[at] == label)


@bare
def _walk(m: Any, keys: Any, stack: Any, out: Any, spent: Any) -> int:
    """All boxes that a tuple of keys meets, into ``out``; -1 where there are more than it holds."""
    columns = m.boxes.shape[1]
    found = 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, len(m.boxes)
    count = 1
    while count:
        count -= 1
        depth, low, high = stack[count, 0], stack[count, 1], stack[count, 2]
        if depth == columns:
            if found + high - low > len(out):
                return -1
            for box in range(low, high):
                out[found] = box
                found += 1
            continue
        key = m.key_at[depth] + keys[depth]
        begin, end = m.starts[key], m.starts[key + 1]
        column = m.boxes[:, depth]
        if end - begin < high - low:  # few labels meet the key: look each of them up
            for at in range(begin, end):
                label = m.met[at]
                first = first_from(column, low, high, label)
                spent[0] += 1
                if first < high and column[first] == label:
                    stack[count, 0], stack[count, 1] = depth + 1, first
                    stack[count, 2] = first_from(column, first, high, label + 1)
                    count += 1
        else:
            first = low
            while first < high:
                label = column[first]
                last = first_from(column, first, high, label + 1)
                spent[0] += 1
                if _has(m, begin, end, label):
                    stack[count, 0], stack[count, 1], stack[count, 2] = depth + 1, first, last
                    count += 1
                first = last
    return found


@bare
def _walk_room(m: Any) -> int:
    """How many nodes may wait at once."""
    return int(len(m.boxes) * m.boxes.shape[1] + 2)


@kernel
def meeting_pairs(m: Any, held: Any, pairs: Any, most: int) -> tuple[int, Any]:
    """The pairs of boxes that meet and stand in different releases.

    Args:
        m: the boxes.
        held: per box, the releases that hold it, as bits.
        pairs: where they go, (pairs, 2).
        most: how many steps may be taken.

    Returns:
        How many there are, -1 where they or the steps are more than that; and per box the
        releases in which it meets another box of the same release, as bits.
    """
    count = len(m.boxes)
    alike = np.zeros(count, np.uint64)
    stack = np.empty((_walk_room(m), 3), np.int64)
    out = np.empty(count, np.int64)
    spent = np.zeros(1, np.int64)
    number = 0
    for box in range(count):
        found = _walk(m, m.boxes[box], stack, out, spent)
        if spent[0] > most:
            return -1, alike
        for place in range(found):
            other = out[place]
            if other <= box:
                continue
            same = held[box] & held[other]
            alike[box] |= same
            alike[other] |= same
            # One bit alone is set: both stand in one release, and in the same.
            one = held[box] == held[other] and held[box] & (held[box] - np.uint64(1)) == 0
            if one:
                continue
            if number == len(pairs):
                return -1, alike
            pairs[number, 0], pairs[number, 1] = box, other
            number += 1
    return number, alike


@bare
def shared_values(e: Any, one: int, two: int) -> tuple[int, int]:
    """How many values two classes share, and how many people may stand in both."""
    i, j = e.starts[one], e.starts[two]
    values = people = 0
    while i < e.starts[one + 1] and j < e.starts[two + 1]:
        if e.values[i] < e.values[j]:
            i += 1
        elif e.values[i] > e.values[j]:
            j += 1
        else:
            values += 1
            people += min(e.counts[i], e.counts[j])
            i += 1
            j += 1
    return values, people


@bare
def narrowed_pairs(e: Any, pairs: Any, alike: Any, limits: Any, told: Any, marks: Any) -> None:
    """Where two classes of different releases leave fewer values together than each alone.

    Args:
        e: the values of the classes.
        pairs: boxes that meet; each also meets itself.
        alike: per box, the releases in which it meets another of the same release: skipped there.
        limits: (releases, releases) values below which it counts.
        told: (releases, releases, 5) how often, people at most, fewest people, fewest values, and
            people at most whose value is certain.
        marks: per box, whether it was found so.
    """
    releases, boxes = e.at.shape
    for place in range(len(pairs) + boxes):
        one = pairs[place, 0] if place < len(pairs) else place - len(pairs)
        two = pairs[place, 1] if place < len(pairs) else one
        for s in range(releases):
            first = e.at[s, one]
            if first < 0 or alike[one] >> np.uint64(s) & np.uint64(1):
                continue
            for t in range(s + 1 if one == two else 0, releases):
                second = e.at[t, two]
                if s == t or second < 0 or alike[two] >> np.uint64(t) & np.uint64(1):
                    continue
                values, people = shared_values(e, first, second)
                alone = min(
                    e.starts[first + 1] - e.starts[first], e.starts[second + 1] - e.starts[second]
                )
                if 1 <= values < min(alone, limits[s, t]):
                    cell = told[min(s, t), max(s, t)]
                    cell[0] += 1
                    cell[1] += people
                    cell[2] = min(cell[2], people)
                    cell[3] = min(cell[3], values)
                    cell[4] += people if values == 1 else 0
                    marks[one] = marks[two] = True


@kernel
def narrowed_targets(
    m: Any, e: Any, keys: Any, own: Any, limit: int, most: int, left: Any, lone: Any
) -> bool:
    """How many values all releases together leave for people of known leaves.

    Args:
        m: the boxes and which of them cover which leaf.
        e: the values of their classes.
        keys: (people, columns) their leaves.
        own: the value of each; -1: not known.
        limit: values below which it counts.
        most: how many steps may be taken.
        left: per person, how many values are left, the own among them; 0: none, or nothing new.
        lone: per person, the fewest that one release leaves.

    Returns:
        Whether the steps were enough.
    """
    releases = len(e.at)
    stack = np.empty((_walk_room(m), 3), np.int64)
    out = np.empty(len(m.boxes), np.int64)
    spent = np.zeros(1, np.int64)
    times = np.zeros(e.values_known, np.int32)
    last = np.full(e.values_known, -1, np.int64)
    for person in range(len(keys)):
        found = _walk(m, keys[person], stack, out, spent)
        if spent[0] > most:
            return False
        covered, fewest = 0, e.values_known + 1
        for t in range(releases):
            union = 0
            for place in range(found):
                entry = e.at[t, out[place]]
                if entry < 0:
                    continue
                for at in range(e.starts[entry], e.starts[entry + 1]):
                    value = e.values[at]
                    if last[value] != person * releases + t:
                        last[value] = person * releases + t
                        times[value] += 1
                        union += 1
            if union:
                covered += 1
                fewest = min(fewest, union)
        values, mine = 0, own[person] < 0
        for t in range(releases):
            for place in range(found):
                entry = e.at[t, out[place]]
                if entry < 0:
                    continue
                for at in range(e.starts[entry], e.starts[entry + 1]):
                    value = e.values[at]
                    if covered > 1 and times[value] == covered:
                        values += 1
                        mine = mine or value == own[person]
                    times[value] = 0
        lone[person] = fewest
        left[person] = values if mine and 1 <= values < min(fewest, limit) else 0
    return True
