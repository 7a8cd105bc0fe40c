"""The smallest group of people that two answers tell apart: a smallest cut between their rows.

Rows of one answer share nobody. So take rows of both answers as nodes, and one node for nobody's
row; an edge weighs the people that two rows share. Adding up some rows of one and subtracting some
of the other leaves the people on the edges of a cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_EXACT = 300


def smallest_cut(cells: dict[tuple[int, int], int], k: int) -> int:
    """The weight of the lightest cut, or k where there is none below it."""
    names: dict[tuple[str, int], int] = {}

    def node(side: str, place: int) -> int:
        return names.setdefault(("none", -1) if place < 0 else (side, place), len(names))

    edges = [
        (node("old", a), node("new", b), n) for (a, b), n in cells.items() if (a, b) != (-1, -1)
    ]
    heads = _merged(len(names), [(a, b) for a, b, n in edges if n >= k])
    light = [(heads[a], heads[b], n) for a, b, n in edges if n < k and heads[a] != heads[b]]
    if not light:
        return k
    used = sorted({x for a, b, _ in light for x in (a, b)})
    if len(used) > LARGEST_EXACT:
        return 0
    index = {x: i for i, x in enumerate(used)}
    weights = np.zeros((len(used), len(used)), dtype=np.int64)
    for a, b, n in light:
        weights[index[a], index[b]] += n
        weights[index[b], index[a]] += n
    parts = _merged(len(used), [(int(a), int(b)) for a, b in np.argwhere(weights > 0)])
    return min(
        _global_cut(weights[np.ix_(p, p)], k)
        for head in set(parts)
        for p in [np.flatnonzero(np.array(parts) == head)]
    )


def _merged(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    heads = list(range(n))

    def head(x: int) -> int:
        while heads[x] != x:
            heads[x] = heads[heads[x]]
            x = heads[x]
        return x

    for a, b in pairs:
        heads[head(a)] = head(b)
    return [head(x) for x in range(n)]


def _global_cut(weights: NDArray[np.int64], k: int) -> int:
    """Stoer and Wagner's minimum cut of a connected graph."""
    weights = weights.copy()
    best = k
    nodes = list(range(len(weights)))
    while len(nodes) > 1:
        reached = weights[nodes[0], nodes].copy()
        inside = np.zeros(len(nodes), dtype=bool)
        inside[0] = True
        last = before = 0
        for _ in range(len(nodes) - 1):
            following = int(np.where(inside, -1, reached).argmax())
            before, last = last, following
            cut = int(reached[following])
            inside[following] = True
            reached = reached + weights[nodes[following], nodes]
        best = min(best, cut)
        a, b = nodes[before], nodes[last]
        weights[a] += weights[b]
        weights[:, a] += weights[:, b]
        weights[a, a] = 0
        nodes.remove(b)
    return best
