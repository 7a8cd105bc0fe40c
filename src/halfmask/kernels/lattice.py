"""The compiled scan over a lattice of generalization levels.

Nodes are numbered by mixed radix: ``sum(level * stride)``. The scan visits them from the largest
lower bound down, so that everything above a node has been decided before it.

What a class of so many rows can lose at least and at most, given the rows that fit it.

See ``halfmask.metrics.partition`` for what the bounds say.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import (
    Sparing,
    ascend,
    bare,
    integers,
    interpret,
    kernel,
    reals,
    zeros,
)
from halfmask.kernels.distance import distances_from, plain_distances_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


OPEN, HOPELESS = 0, 1


@kernel
def _combine(
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    geometric: bool,  # noqa: FBT001 - numba takes no keyword-only parameters
) -> float:
    """Aggregate column scores: prod (1 + x)^w - 1, or the weighted mean (weights sum to 1)."""
    total = 0.0
    for c in range(len(scores)):
        total += weights[c] * (math.log1p(scores[c]) if geometric else scores[c])
    return math.expm1(total) if geometric else total


def bounds(
    heights: NDArray[np.int64],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    geometric: bool,  # noqa: FBT001
) -> NDArray[np.float64]:
    """The metric of every node if no row were suppressed: a lower bound of what it really costs."""
    total = np.zeros(1)
    for height, row, weight in zip(heights.tolist(), scores, weights.tolist(), strict=True):
        levels = row[: height + 1]
        parts = weight * (np.log1p(levels) if geometric else levels)
        total = (total + parts[:, None]).ravel()
    return np.expm1(total) if geometric else total


class LatticeFacts(NamedTuple):
    """What is known of the nodes of a lattice.

    Attributes:
        floor: per node, a lower bound of what it costs.
        heights: per column, its highest level.
        scores: (columns, levels) what each level of a column costs; ``weights`` of the columns.
        geometric: whether columns are combined by their product.
        state: per node, whether it is marked; changed.
        source: per node, which of the ``penalties`` it pays; -1: none; changed.
        penalties: (sources, columns) what a node that suppresses rows pays in each column.
    """

    floor: NDArray[np.float64]
    heights: NDArray[np.int64]
    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    geometric: bool
    state: NDArray[np.int8]
    source: NDArray[np.int32]
    penalties: NDArray[np.float64]


@kernel
def _node_cost(node: int, facts: Any, which: int) -> float:
    """What ``node`` costs when each column pays the penalty ``which`` beyond its labels."""
    heights = facts.heights
    columns = len(heights)
    picked = reals(columns, 0.0)
    rest = node
    for c in range(columns):
        picked[c] = facts.scores[c, rest % (heights[c] + 1)] + facts.penalties[which, c]
        rest //= heights[c] + 1
    return _combine(picked, facts.weights, facts.geometric)


@kernel
def judge_node(node: int, facts: Any) -> Any:
    """A lower bound of what ``node`` costs; infinite if a node above it is hopeless.

    The rows that a coarser node had to suppress (``penalties[source]``) are suppressed by every
    finer node too; the best such source is handed on.
    """
    heights, state, source = facts.heights, facts.state, facts.source
    columns = len(heights)
    rest, stride = node, 1
    best = facts.floor[node]
    if source[node] >= 0:
        best = max(best, _node_cost(node, facts, source[node]))
    for c in range(columns):
        level = rest % (heights[c] + 1)
        rest //= heights[c] + 1
        if level < heights[c]:
            above = node + stride
            if state[above] == HOPELESS:
                state[node] = HOPELESS
                return np.inf
            origin = source[above]
            if origin >= 0 and origin != source[node]:
                bound = _node_cost(node, facts, origin)
                if bound > best:
                    best = bound
                    source[node] = origin
        stride *= heights[c] + 1
    return best


@kernel
def _advance(order: NDArray[np.int64], position: int, facts: Any, limit: float) -> int:
    """Return the next position in ``order`` that must be evaluated, or ``len(order)``.

    A node is passed over when it is hopeless or costs more than ``limit`` in any case.
    """
    while position < len(order):
        node = order[position]
        if facts.state[node] != HOPELESS and judge_node(node, facts) <= limit:
            return position
        position += 1
    return position


@kernel
def lowest(order: NDArray[np.int64], position: int, facts: Any) -> float:
    """The smallest bound among the nodes from ``position`` on."""
    least = np.inf
    for i in range(position, len(order)):
        node = order[i]
        if facts.state[node] != HOPELESS:
            least = min(least, judge_node(node, facts))
    return least


def by_level(state: NDArray[np.int8], heights: NDArray[np.int64]) -> NDArray[np.int8]:
    """The same marks, one dimension per column."""
    return state.reshape((heights + 1).tolist(), order="F")  # the first column varies fastest


def rule_out(nodes: NDArray[np.int8], low: Sequence[int], high: Sequence[int]) -> None:
    """Mark everything from ``low`` to ``high`` in every column as hopeless."""
    nodes[tuple([slice(a, b + 1) for a, b in zip(low, high, strict=True)])] = HOPELESS


@bare
def next_open(order: NDArray[np.int64], position: int, state: NDArray[np.int8]) -> int:
    """The next position in ``order`` whose node is not marked, or ``len(order)``."""
    while position < len(order) and state[order[position]] != OPEN:
        position += 1
    return position


@kernel
def add_up_labels(
    keys: NDArray[np.uint64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    numbers: NDArray[np.float64],
) -> Any:
    """Per class, the sum over columns of the number ``numbers[offsets[c] + label]``."""
    out = reals(len(keys), 0.0)
    for i in range(len(keys)):
        for c in range(len(words)):
            label = np.int64((keys[i, words[c]] >> shifts[c]) & masks[c])
            out[i] += numbers[offsets[c] + label]
    return out


@kernel
def _penalty(
    keys: NDArray[np.uint64],
    lost: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    extra: NDArray[np.float64],
) -> Any:
    """What the suppressed rows cost beyond their labels, per column.

    ``extra[offsets[c] + label]`` is the cost of suppressing one row with that label in column c.
    """
    columns = len(words)
    out = reals(columns, 0.0)
    for i in range(len(lost)):
        if lost[i]:
            for c in range(columns):
                label = np.int64((keys[i, words[c]] >> shifts[c]) & masks[c])
                out[c] += lost[i] * extra[offsets[c] + label]
    return out


def _plain_penalty(
    keys: NDArray[np.uint64],
    lost: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    extra: NDArray[np.float64],
) -> Any:
    """What ``penalty`` gives, added up in the same order."""
    rows = np.flatnonzero(lost)
    if not len(rows):
        return np.zeros(len(words))
    labels = ((keys[rows][:, words] >> shifts) & masks).astype(np.int64)
    return (lost[rows, None] * extra[offsets + labels]).cumsum(axis=0)[-1]


_STEPS = 10_000  # nodes that Python looks at in one walk, at most
_judge = interpret(judge_node)


def _plain_advance(order: NDArray[np.int64], position: int, facts: Any, limit: float) -> Any:
    """What ``advance`` gives where that is near; what it finds out on the way is true anyway."""
    ahead = order[position : position + _STEPS]
    for step in np.flatnonzero(facts.state[ahead] != HOPELESS).tolist():
        if _judge(int(ahead[step]), facts) <= limit:
            return position + step
    return len(order) if position + _STEPS >= len(order) else NotImplemented


# A small lattice is walked sooner than its kernels are compiled.
combine: Any = Sparing(_combine, lambda *_: 1, 20_000)
advance: Any = Sparing(
    _advance, lambda *_: 1, 20_000, _plain_advance, lambda at, _, position, *__: at - position
)
penalty: Any = Sparing(_penalty, lambda keys, *_: 1_000 + len(keys), 4_000_000, _plain_penalty)


class Fits(NamedTuple):
    """Classes and the distinct rows that fit them.

    Attributes:
        sizes: how many rows each class publishes.
        starts: where the rows of each class begin in ``fits``, the last entry where all end.
        fits: distinct rows.
        rows: how many rows each distinct one stands for.
        points: where each distinct row stands among the points.
        codes: (columns, distinct rows) their values.
    """

    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    fits: NDArray[np.int64]
    rows: NDArray[np.int64]
    points: NDArray[np.int64]
    codes: NDArray[np.int32]


@kernel
def _radii(p: Any, f: Any) -> Any:
    """The sums over published rows of the least radius and of the largest distance."""
    least = most = 0.0
    far = reals(max(p.numbers.shape[0], p.codes.shape[0], p.marks.shape[0]), 0.0)
    for c in range(len(f.sizes)):
        fits = f.fits[f.starts[c] : f.starts[c + 1]]
        places, apart = integers(len(fits)), reals(len(fits), 0.0)
        for a in range(len(fits)):
            places[a] = f.points[fits[a]]
        nearest, widest = np.inf, 0.0
        for origin in range(len(fits)):
            distances_from(p, places[origin], places, len(places), far)
            within = 0
            for a in range(len(places)):
                apart[a] = far[places[a]]
                widest = max(widest, apart[a])
                within += f.rows[fits[a]] if apart[a] < nearest else 0
            if within >= f.sizes[c]:  # only then is its radius below the least: sorting is dear
                nearest = _radius(apart, f.rows, fits, f.sizes[c])
        least += f.sizes[c] * nearest
        most += f.sizes[c] * widest
    return least, most


def _plain_radii(p: Any, f: Any) -> tuple[float, float]:
    """What ``_radii`` does, a row of distances at a time."""
    least = most = 0.0
    far = np.zeros(max(p.numbers.shape[0], p.codes.shape[0], p.marks.shape[0]))
    for c, size in enumerate(f.sizes.tolist()):
        fits = f.fits[f.starts[c] : f.starts[c + 1]]
        places, held = f.points[fits], f.rows[fits]
        nearest, widest = np.inf, 0.0
        for origin in places.tolist():
            plain_distances_from(p, origin, places, len(places), far)
            apart = far[places]
            widest = max(widest, float(apart.max()))
            if held[apart < nearest].sum() >= size:
                order = np.argsort(apart, kind="stable")
                enough = np.flatnonzero(np.cumsum(held[order]) >= size)
                nearest = float(apart[order[enough[0]]])
        least += size * nearest
        most += size * widest
    return least, most


def _pairs_of(_: Any, f: Any) -> int:
    return len(f.fits) * 50 + int((np.diff(f.starts) ** 2).sum())


radii: Any = Sparing(_radii, _pairs_of, 1_500_000, _plain_radii)


@kernel
def _radius(far: Any, rows: Any, fits: Any, size: int) -> float:
    """How far one must go to meet ``size`` rows."""
    held = 0
    order = ascend(far)
    for a in range(len(order)):
        held += rows[fits[order[a]]]
        if held >= size:
            return float(far[order[a]])
    return np.inf


@kernel
def _entropies(f: Any, width: int) -> Any:
    """The sums over classes and columns of the least and the most bits, times rows."""
    least = most = 0.0
    counts = zeros(width)
    for column in range(len(f.codes)):
        codes = f.codes[column]
        for c in range(len(f.sizes)):
            first, last = f.starts[c], f.starts[c + 1]
            for a in range(first, last):
                counts[codes[f.fits[a]]] += f.rows[f.fits[a]]
            held = integers(last - first)
            values = 0
            for a in range(first, last):
                code = codes[f.fits[a]]
                if counts[code]:
                    held[values] = counts[code]
                    counts[code] = 0
                    values += 1
            held = held[:values]
            order, ascending = ascend(held), integers(values)
            for v in range(values):
                ascending[v] = held[order[v]]
            low, high = bit_range(ascending, f.sizes[c])
            least += low
            most += high
    return least, most


@kernel
def bit_range(counts: Any, size: int) -> Any:
    """The least and the most bits, times rows, of the values of ``size`` rows.

    ``counts`` are the rows of each value, ascending. The most frequent values fill a class with the
    least; as even as can be, each value has all its rows or an equal share of what is left.
    """
    least = most = 0.0
    left = size
    for v in range(len(counts) - 1, -1, -1):
        taken = min(counts[v], left)
        least += _bits(taken, size)
        left -= taken
    left = size
    for v in range(len(counts)):
        # What does not divide is left for the last values, which have most rows.
        taken = min(counts[v], left // (len(counts) - v))
        most += _bits(taken, size)
        left -= taken
    return least, most


@kernel
def _bits(rows: int, size: int) -> float:
    return float(rows * math.log2(size / rows)) if rows else 0.0


entropies: Any = Sparing(_entropies, lambda f, _: len(f.fits) * len(f.codes), 300_000)
