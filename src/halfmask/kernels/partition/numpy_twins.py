"""Inner loops of divisions as NumPy runs them on small tables, to the last bit as compiled.

``plain_farthest`` stands for the kernel ``farthest`` (``compiler.interpret``), and so on: what it
adds up, it adds up in the same order, and of equals it takes the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.kernels.distance import plain_distances, plain_distances_from

if TYPE_CHECKING:
    from numpy.typing import NDArray


def plain_farthest(p: Any, alive: Any, count: int, origin: int, scratch: Any) -> int:
    """The free row that is farthest from ``origin``; of equals the first."""
    plain_distances_from(p, origin, alive, count, scratch)
    return _largest(alive[:count], scratch[alive[:count]])


def _largest(rows: NDArray[np.int64], far: NDArray[np.float64]) -> int:
    return int(rows[far == far.max()].min())


def plain_outermost(p: Any, alive: Any, count: int, centroid: Any, ordinal: Any) -> int:
    """The row farthest from the centroid: means of numbers, most frequent categories."""
    sums, there, votes, starts, middle = centroid
    for c in range(len(middle)):
        held = votes[starts[c] : starts[c + 1]]
        if ordinal[c]:
            middle[c] = np.searchsorted(np.cumsum(held), held.sum() // 2, side="right")
        else:
            middle[c] = np.argmax(held)
    at = alive[:count]
    total = np.zeros(count)
    for c in range(p.numbers.shape[1]):
        values = p.numbers[at, c]
        mean = sums[c] / max(there[c], 1)
        total += np.where(np.isnan(values), p.spans[c], np.abs(values - mean))
    for c in range(p.codes.shape[1]):
        total += p.table[p.offsets[c] + p.codes[at, c] * p.sizes[c] + middle[c]]
    return _largest(at, total)


def plain_smallest(near: Any, alive: Any, count: int, wanted: int) -> NDArray[np.int64]:
    """The ``wanted`` rows with the smallest ``near`` in ascending order, ties by number."""
    at = alive[:count]
    found: NDArray[np.int64] = at[np.lexsort((at, near[at]))[:wanted]]
    return found


def plain_best(
    p: Any, d: Any, free: Any, count: int, grown: Any, stage: Any, *_: Any
) -> tuple[int, float]:
    """The row that raises the class's loss least, and the diameter with it.

    The kernel puts off distances that cannot matter, by what else it is given; here all are brought
    up to date.
    """
    members, reach, known, variety = grown
    number, size, need, diameter, full, improved = stage
    at, far = free.rows[:count], np.empty_like(reach)
    for m in range(int(known[at[0]]), size):
        plain_distances_from(p, members[m], free.rows, count, far)
        reach[at] = np.maximum(reach[at], far[at])
    known[at] = size
    rows = at
    if full:
        brings = _new_values(d, at, number, variety)
        rows = at[brings] if brings.any() else at
    final = np.maximum(d.k[rows], max(size + 1, need)) if improved else size + 1
    x = reach[rows]
    score = final * np.maximum(x, diameter)
    rows, x = rows[score == score.min()], x[score == score.min()]
    return int(rows[x == x.min()].min()), max(diameter, float(x.min()))


def _new_values(d: Any, rows: Any, number: int, variety: Any) -> NDArray[np.bool_]:
    """Which rows bring a value that the class lacks where it lacks some."""
    seen, distinct, most = variety
    out = np.zeros(len(rows), dtype=np.bool_)
    for s in range(d.values.shape[1]):
        if distinct[s] < most[s]:
            held = np.flatnonzero(d.values[rows, s] >= 0)
            out[held] |= seen[s, d.values[rows[held], s]] != number
    return out


def plain_reach_others(p: Any, s: Any, a: int, x: int, cross: Any) -> None:
    """Raise what is known of how far row ``x`` of class ``a`` is from each other class."""
    others = np.flatnonzero(s.ids != a)
    np.maximum.at(cross, s.ids[others], plain_distances(p, x, others))


def plain_cheapest(s: Any, a: int, cross: Any) -> int:
    """The class that class ``a`` raises the loss least for; -1 where there is none."""
    known = (cross >= 0) & (s.size > 0)
    known[a] = False
    b = np.flatnonzero(known)
    if not len(b):
        return -1
    size = s.size[a] + s.size[b]
    wide = np.maximum(np.maximum(cross[b], s.diameter[a]), s.diameter[b])
    cost = size * wide - s.size[a] * s.diameter[a] - s.size[b] * s.diameter[b]
    short = size < np.maximum(s.need[a], s.need[b])
    return int(b[np.lexsort((cost, short))[0]])
