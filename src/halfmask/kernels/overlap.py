"""Which boxes meet which, and what values are left where they do.

A box is a tuple of labels. Boxes are sorted, so that those that begin alike stand together and are
walked down column by column: the work follows what meets and not the pairs of boxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compiler import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


class Entries(NamedTuple):
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


@kernel
def _from(values: Any, low: int, high: int, wanted: int) -> int:
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _has(m: Any, begin: int, end: int, label: int) -> bool:
    at = _from(m.met, begin, end, label)
    return bool(at < end and m.met[at] == label)


@kernel
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
                first = _from(column, low, high, label)
                spent[0] += 1
                if first < high and column[first] == label:
                    stack[count, 0], stack[count, 1] = depth + 1, first
                    stack[count, 2] = _from(column, first, high, label + 1)
                    count += 1
        else:
            first = low
            while first < high:
                label = column[first]
                last = _from(column, first, high, label + 1)
                spent[0] += 1
                if _has(m, begin, end, label):
                    stack[count, 0], stack[count, 1], stack[count, 2] = depth + 1, first, last
                    count += 1
                first = last
    return found


@kernel
def _room(m: Any) -> int:
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
    stack = np.empty((_room(m), 3), np.int64)
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
            one = held[box] == held[other] and held[box] & (held[box] - np.uint64(1)) == 0
            if one:
                continue
            if number == len(pairs):
                return -1, alike
            pairs[number, 0], pairs[number, 1] = box, other
            number += 1
    return number, alike


@kernel
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


@kernel
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
    stack = np.empty((_room(m), 3), np.int64)
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
