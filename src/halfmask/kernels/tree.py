"""A tree of median cuts over rows, for the nearest rows that are still free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit, prange

from halfmask.kernels.distance import apart, distance

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Tree(NamedTuple):
    """Nodes in depth-first order; the left child follows its parent.

    Attributes:
        order: the rows, those of a node side by side.
        begin: per node, where its rows begin in ``order``; ``end`` where they end.
        right: per node its right child, 0 for a leaf.
        parent: per node the one above.
        low: (nodes, columns) a row with the smallest place; ``high`` one with the largest.
        leaf: per row, the leaf it stands in.
    """

    order: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    right: NDArray[np.int64]
    parent: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    leaf: NDArray[np.int64]


@njit(cache=True, nogil=True)
def build(p: Any, places: NDArray[np.int32], bucket: int) -> Any:
    """Cut the rows at the median of their widest column until at most ``bucket`` stay together."""
    n, columns = places.shape
    most = max(1, 8 * n // bucket + 64)
    order = np.arange(n)
    begin, end = np.zeros(most, np.int64), np.zeros(most, np.int64)
    right, parent = np.zeros(most, np.int64), np.full(most, -1, np.int64)
    low, high = np.zeros((most, columns), np.int64), np.zeros((most, columns), np.int64)
    leaf = np.zeros(n, np.int64)
    stack = np.empty((256, 4), np.int64)
    stack[0] = np.array([0, n, -1, 0])
    depth, nodes = 1, 0
    spare = np.empty(n, np.int64)
    while depth > 0:
        depth -= 1
        b, e, above, side = stack[depth]
        node = nodes
        nodes += 1
        begin[node], end[node], parent[node] = b, e, above
        if above >= 0 and side == 1:
            right[above] = node
        widest, column = 0.0, -1
        for c in range(columns):
            small = large = order[b]
            for i in range(b + 1, e):
                row = order[i]
                if places[row, c] < places[small, c]:
                    small = row
                if places[row, c] > places[large, c]:
                    large = row
            low[node, c], high[node, c] = small, large
            width = apart(p, c, small, large)
            if width > widest:
                widest, column = width, c
        if e - b <= bucket or column < 0 or nodes + 2 > most - 2:
            for i in range(b, e):
                leaf[order[i]] = node
            continue
        middle = _around_median(places, column, order, b, e, spare)
        stack[depth] = np.array([middle, e, node, 1])
        stack[depth + 1] = np.array([b, middle, node, 0])
        depth += 2
    return Tree(
        order, begin[:nodes].copy(), end[:nodes].copy(), right[:nodes].copy(),
        parent[:nodes].copy(), low[:nodes].copy(), high[:nodes].copy(), leaf,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _around_median(places: Any, c: int, order: Any, b: int, e: int, spare: Any) -> int:
    """Put rows below the median left; at least one row stays on each side."""
    values = np.empty(e - b, np.int32)
    for i in range(b, e):
        values[i - b] = places[order[i], c]
    values.sort()
    limit = values[(e - b) // 2]
    if limit == values[0]:
        for v in values:
            if v > limit:
                limit = v
                break
    left, right = 0, 0
    for i in range(b, e):
        if places[order[i], c] < limit:
            order[b + left] = order[i]
            left += 1
        else:
            spare[right] = order[i]
            right += 1
    order[b + left : e] = spare[:right]
    return b + left


@njit(cache=True, nogil=True)
def _gap(p: Any, places: Any, tree: Any, node: int, q: int) -> float:
    """A lower bound of the distance from row ``q`` to any row of a node."""
    total = 0.0
    for c in range(places.shape[1]):
        small, large = tree.low[node, c], tree.high[node, c]
        if places[q, c] < places[small, c]:
            total += apart(p, c, q, small)
        elif places[q, c] > places[large, c]:
            total += apart(p, c, q, large)
    return total


@njit(cache=True, nogil=True)
def nearest(
    p: Any, places: Any, tree: Any, free: Any, q: int, wanted: int, rows: Any, far: Any, stack: Any,
    gaps: Any,
) -> int:  # fmt: skip
    """Fill ``rows`` and ``far`` with the nearest free rows of ``q`` in ascending order.

    ``free`` holds how many rows of each node are free, and whether a row is, after the nodes. Gives
    how many were found; ``q`` itself does not count.
    """
    nodes = len(tree.begin)
    found, depth = 0, 1
    stack[0], gaps[0] = 0, 0.0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if free[node] == 0 or (found == wanted and gaps[depth] >= far[found - 1]):
            continue
        if tree.right[node] == 0:
            for i in range(tree.begin[node], tree.end[node]):
                row = tree.order[i]
                if free[nodes + row] == 0 or row == q:
                    continue
                x = distance(p, q, row)
                if found == wanted and x >= far[found - 1]:
                    continue
                j = found if found < wanted else wanted - 1
                while j > 0 and far[j - 1] > x:
                    far[j], rows[j] = far[j - 1], rows[j - 1]
                    j -= 1
                far[j], rows[j] = x, row
                found = min(found + 1, wanted)
            continue
        left, right = node + 1, tree.right[node]
        a, b = _gap(p, places, tree, left, q), _gap(p, places, tree, right, q)
        if a <= b:
            left, right, a, b = right, left, b, a
        stack[depth], gaps[depth] = left, a
        stack[depth + 1], gaps[depth + 1] = right, b
        depth += 2
    return found


@njit(cache=True, nogil=True)
def all_free(tree: Any) -> Any:
    """The count of free rows per node, then 1 per row."""
    nodes = len(tree.begin)
    out = np.ones(nodes + len(tree.order), np.int64)
    out[:nodes] = tree.end - tree.begin
    return out


@njit(cache=True, nogil=True)
def take(tree: Any, free: Any, row: int) -> None:
    """Mark a row as no longer free."""
    node = tree.leaf[row]
    free[len(tree.begin) + row] = 0
    while node >= 0:
        free[node] -= 1
        node = tree.parent[node]


@njit(cache=True, nogil=True, parallel=True)
def neighbors(p: Any, places: Any, tree: Any, wanted: int) -> tuple[Any, Any]:
    """The ``wanted`` nearest other rows of every row, and how far they are."""
    n = len(places)
    free = all_free(tree)
    rows = np.full((n, wanted), -1, np.int32)
    far = np.full((n, wanted), np.inf, np.float32)
    blocks = min(n, 256)
    for block in prange(blocks):
        found = np.empty(wanted, np.int64)
        distances = np.empty(wanted, np.float64)
        stack, gaps = np.empty(512, np.int64), np.empty(512, np.float64)
        for at in range(block * n // blocks, (block + 1) * n // blocks):
            q = tree.order[at]
            count = nearest(p, places, tree, free, q, wanted, found, distances, stack, gaps)
            for j in range(count):
                rows[q, j], far[q, j] = found[j], distances[j]
    return rows, far
