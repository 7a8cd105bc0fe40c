"""A tree of median cuts over rows, for the nearest rows that are still free."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import Sparing, bare, integer_rows, kernel, light
from halfmask.kernels.distance import apart, distance

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SearchTree(NamedTuple):
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


def build_tree(p: Any, places: NDArray[np.int32], bucket: int) -> SearchTree:
    """Cut the rows at the median of their widest column until at most ``bucket`` stay together."""
    n, columns = places.shape
    most = max(1, 8 * n // bucket + 64)  # nodes; ties may cut unevenly, and a full tree stops
    spans = np.zeros((4, most), np.int64)  # begin, end, right, parent
    low, high = np.zeros((2, most, columns), np.int64)
    order, leaf = np.arange(n), np.zeros(n, np.int64)
    nodes = _build(p, places, bucket, order, spans, low, high, leaf)
    begin, end, right, parent = np.ascontiguousarray(spans[:, :nodes])
    return SearchTree(
        order, begin, end, right, parent, low[:nodes].copy(), high[:nodes].copy(), leaf
    )


@kernel
def _fill_tree(
    p: Any, places: Any, bucket: int, order: Any, spans: Any, low: Any, high: Any, leaf: Any
) -> int:
    """Fill the arrays of a tree; how many nodes it has."""
    n, columns = places.shape
    scratch = integer_rows(2, n, 0)
    most = spans.shape[1]
    # What waits: begin, end, the node above, and on which side of it.
    stack = integer_rows(256, 4, 0)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n, -1, 0
    depth, nodes = 1, 0
    while depth > 0:
        depth -= 1
        b, e, above = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        node = nodes
        nodes += 1
        spans[0, node], spans[1, node], spans[3, node] = b, e, above
        if above >= 0 and stack[depth, 3] == 1:
            spans[2, above] = node
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
        middle = _around_median(places, column, order, b, e, scratch)
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = middle, e, node, 1
        depth += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = b, middle, node, 0
        depth += 1
    return nodes


@bare
def select_rank(values: Any, size: int, rank: int) -> Any:
    """The value that stands at ``rank`` among the first ``size`` once they are in order."""
    first, last = 0, size - 1
    while first < last:
        pivot = values[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            last = j
        elif rank >= i:
            first = i
        else:
            break
    return values[rank]


@bare
def _around_median(places: Any, c: int, order: Any, b: int, e: int, scratch: Any) -> int:
    """Put rows below the median left; at least one row stays on each side."""
    values, spare = scratch[0], scratch[1]
    least = following = places[order[b], c]
    for i in range(b, e):
        values[i - b] = places[order[i], c]
        least, following = min(least, values[i - b]), max(following, values[i - b])
    limit = select_rank(values, e - b, (e - b) // 2)
    if limit == least:  # the smallest value above it, so that the left side is not empty
        for i in range(e - b):
            if least < values[i] < following:
                following = values[i]
        limit = following
    left, right = 0, 0
    for i in range(b, e):
        if places[order[i], c] < limit:
            order[b + left] = order[i]
            left += 1
        else:
            spare[right] = order[i]
            right += 1
    for i in range(right):
        order[b + left + i] = spare[i]
    return b + left


def _cells(_: Any, places: Any, *__: Any) -> int:
    return int(places.size)


_build: Any = Sparing(_fill_tree, _cells, 120_000)


@bare
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


class Nearest(NamedTuple):
    """The nearest rows of a row, in ascending order, and where the search writes in between.

    Attributes:
        rows: the rows; ``far`` how far each is.
        stack: the nodes that wait; ``gaps`` how far each is at least.
    """

    rows: NDArray[np.int64]
    far: NDArray[np.float64]
    stack: NDArray[np.int64]
    gaps: NDArray[np.float64]


def nearest_room(wanted: int) -> Nearest:
    """Room for so many nearest rows."""
    return Nearest(np.zeros(wanted, int), np.zeros(wanted), np.zeros(512, int), np.zeros(512))


@bare
def nearest_free(p: Any, places: Any, tree: Any, free: Any, q: int, wanted: int, near: Any) -> int:
    """Fill ``near`` with the nearest free rows of ``q``.

    ``free`` holds how many rows of each node are free, and whether a row is, after the nodes. Gives
    how many were found; ``q`` itself does not count.
    """
    rows, far, stack, gaps = near.rows, near.far, near.stack, near.gaps
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
        if a <= b:  # the nearer child is pushed last, and so looked at first: it bounds the other
            left, right, a, b = right, left, b, a
        stack[depth], gaps[depth] = left, a
        stack[depth + 1], gaps[depth + 1] = right, b
        depth += 2
    return found


def all_free(tree: SearchTree) -> NDArray[np.int64]:
    """The count of free rows per node, then 1 per row."""
    return np.concatenate([tree.end - tree.begin, np.ones(len(tree.order), np.int64)])


@bare
def take(tree: Any, free: Any, row: int) -> None:
    """Mark a row as no longer free."""
    node = tree.leaf[row]
    free[len(tree.begin) + row] = 0
    while node >= 0:
        free[node] -= 1
        node = tree.parent[node]


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def nearest_neighbors(
    p: Any, places: NDArray[np.int32], tree: SearchTree, wanted: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The ``wanted`` nearest other rows of every row, and how far they are; on all processors."""
    n = len(places)
    free = all_free(tree)
    rows, far = np.full((n, wanted), -1, np.int32), np.full((n, wanted), np.inf, np.float32)

    def fill(first: int, last: int) -> None:
        near = nearest_room(wanted)
        _neighbors(p, places, tree, free, (first, last), near, (rows, far))

    fill(0, min(n, 1))  # compiled here, once
    edges = np.linspace(0, n, min(n, 16) + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(processors()) as threads:
        list(threads.map(fill, edges[:-1], edges[1:]))
    return rows, far


@light
def _neighbors(
    p: Any, places: Any, tree: Any, free: Any, span: tuple[int, int], near: Any, out: Any
) -> None:
    rows, far = out
    for at in range(span[0], span[1]):
        q = tree.order[at]
        count = nearest_free(p, places, tree, free, q, rows.shape[1], near)
        for j in range(count):
            rows[q, j], far[q, j] = near.rows[j], near.far[j]
