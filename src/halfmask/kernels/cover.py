"""Which released tuples cover which tuples of leaves: both are sorted and walked together.

Tuples that begin alike are one node. A node of released tuples meets a node of leaves, and only
children whose label covers the leaf are followed, so that nothing is compared pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 1e-300  # rounding must not make nothing of a weight


class Columns(NamedTuple):
    """Labels and the leaves that they cover, column after column.

    Attributes:
        labels: (columns, released tuples) in lexicographic order.
        leaves: (columns, tuples of leaves) in lexicographic order.
        starts: where the leaves of each label begin in ``covered``.
        covered: the leaves under each label, ascending.
        held: where the labels of each leaf begin in ``above``.
        above: the labels over each leaf, ascending.
        label_at: where each column begins in ``starts``; ``leaf_at`` in ``held``.
    """

    labels: NDArray[np.int32]
    leaves: NDArray[np.int32]
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]
    held: NDArray[np.int64]
    above: NDArray[np.int64]
    label_at: NDArray[np.int64]
    leaf_at: NDArray[np.int64]


class Found(NamedTuple):
    """What is added up, and whom for.

    Attributes:
        weights: of the released tuples; ``ranks`` theirs, empty where nobody asks for the lowest.
        mass: per tuple of leaves, the weight over it that was added one by one.
        steps: what is added for all tuples from one on; ``covers`` how many released tuples.
        best: per tuple of leaves, the lowest rank, -1 for none.
    """

    weights: NDArray[np.float64]
    ranks: NDArray[np.int64]
    mass: NDArray[np.float64]
    steps: NDArray[np.float64]
    covers: NDArray[np.int64]
    best: NDArray[np.int64]

    @classmethod
    def of(cls, count: int, weights: NDArray[np.float64], ranks: NDArray[np.int64]) -> Found:
        """Nothing yet, for ``count`` tuples of leaves."""
        none = np.full(count, -1, dtype=np.int64)
        steps, covers = np.zeros(count + 1), np.zeros(count + 1, dtype=np.int64)
        return cls(weights, ranks, np.zeros(count), steps, covers, none)

    def total(self) -> NDArray[np.float64]:
        """Per tuple of leaves, the weight over it; exactly 0 where nothing covers it."""
        ranged = np.maximum(np.cumsum(self.steps[:-1]), _LEAST)
        return np.asarray(self.mass + np.where(np.cumsum(self.covers[:-1]) > 0, ranged, 0.0))


@njit(cache=True, nogil=True)
def covering(c: Any, found: Any) -> None:
    """Add to each tuple of leaves the released tuples that cover it."""
    waiting = np.empty((1024, 5), np.int64)
    waiting[0] = (0, 0, c.labels.shape[1], 0, c.leaves.shape[1])
    count = 1
    while count:
        count -= 1
        depth, low, high, first, last = waiting[count]
        if last - first <= high - low:
            waiting, count = _by_leaf(c, found, waiting, count, depth, low, high, first, last)
        else:
            waiting, count = _by_label(c, found, waiting, count, depth, low, high, first, last)


@njit(cache=True, nogil=True)
def _by_leaf(
    c: Any, found: Any, waiting: Any, count: int, depth: int,
    low: int, high: int, first: int, last: int,
) -> Any:  # fmt: skip
    """Follow each leaf of a node to the labels over it."""
    labels, leaves = c.labels[depth], c.leaves[depth]
    at = first
    while at < last:
        leaf = leaves[at]
        after = _after(leaves, at, last, leaf)
        place = c.leaf_at[depth] + leaf
        begin, end = c.held[place], c.held[place + 1]
        if end - begin <= high - low:
            for j in range(begin, end):
                one = _first(labels, low, high, c.above[j])
                if one < high and labels[one] == c.above[j]:
                    two = _after(labels, one, high, labels[one])
                    waiting, count = _met(c, found, waiting, count, depth, one, two, at, after)
        else:
            one = low
            while one < high:
                two = _after(labels, one, high, labels[one])
                if _holds(c.above, begin, end, labels[one]):
                    waiting, count = _met(c, found, waiting, count, depth, one, two, at, after)
                one = two
        at = after
    return waiting, count


@njit(cache=True, nogil=True)
def _by_label(
    c: Any, found: Any, waiting: Any, count: int, depth: int,
    low: int, high: int, first: int, last: int,
) -> Any:  # fmt: skip
    """Follow each label of a node to the leaves under it; the last one at once, if they adjoin."""
    labels, leaves = c.labels[depth], c.leaves[depth]
    ranged = depth + 1 == c.labels.shape[0] and not len(found.ranks)
    one = low
    while one < high:
        label = labels[one]
        two = _after(labels, one, high, label)
        place = c.label_at[depth] + label
        begin, end = c.starts[place], c.starts[place + 1]
        at = _first(leaves, first, last, c.covered[begin])
        if ranged and end - begin == c.covered[end - 1] - c.covered[begin] + 1:
            after = _first(leaves, at, last, c.covered[end - 1] + 1)
            for t in range(one, two):
                found.steps[at] += found.weights[t]
                found.steps[after] -= found.weights[t]
            found.covers[at] += two - one
            found.covers[after] -= two - one
            at = last
        while at < last and leaves[at] <= c.covered[end - 1]:
            after = _after(leaves, at, last, leaves[at])
            if _holds(c.covered, begin, end, leaves[at]):
                waiting, count = _met(c, found, waiting, count, depth, one, two, at, after)
            at = after
        one = two
    return waiting, count


@njit(cache=True, nogil=True)
def _met(
    c: Any, found: Any, waiting: Any, count: int, depth: int,
    low: int, high: int, first: int, last: int,
) -> Any:  # fmt: skip
    """Two nodes that agree in this column: add up after the last one, else let them wait."""
    if depth + 1 == c.labels.shape[0]:
        for i in range(first, last):
            for t in range(low, high):
                found.mass[i] += found.weights[t]
                if len(found.ranks) and (found.best[i] < 0 or found.ranks[t] < found.best[i]):
                    found.best[i] = found.ranks[t]
        return waiting, count
    if count == len(waiting):
        wider = np.empty((2 * count, 5), np.int64)
        wider[:count] = waiting
        waiting = wider
    waiting[count] = (depth + 1, low, high, first, last)
    return waiting, count + 1


@njit(cache=True, nogil=True)
def _first(values: Any, low: int, high: int, wanted: int) -> int:
    """The first place from ``low`` whose value is not below ``wanted``."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _after(values: Any, low: int, high: int, value: int) -> int:
    """Where the run of ``value`` that begins at ``low`` ends; most runs are short."""
    step = 1
    while low + step < high and values[low + step] == value:
        low += step
        step *= 2
    return _first(values, low + 1, min(low + step, high), value + 1)


@njit(cache=True, nogil=True)
def _holds(values: Any, low: int, high: int, wanted: int) -> bool:
    """Whether an ascending run holds a value."""
    if high - low == values[high - 1] - values[low] + 1:  # without gaps
        return bool(values[low] <= wanted <= values[high - 1])
    at = _first(values, low, high, wanted)
    return bool(at < high and values[at] == wanted)
