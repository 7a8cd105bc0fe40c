"""Trees that put people who are alike into one leaf: what masks draw from.

Definition: a node is cut in two along one column where that explains most of what differs in the
    target (squares of ranks of numbers, Gini's index of categories), while both parts keep as many
    rows as asked for.
Source: Breiman, Friedman, Olshen and Stone, "Classification and regression trees", 1984.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bins = NDArray[np.uint8]

_BINS = 32  # of a column: cuts lie between them
_CLASSES = 12  # categories that cuts tell apart; the others count as one
_DEPTH = 8
_SAMPLE = 50_000  # rows that bins are found from
_GAIN = 0.002  # of what differs in a node, that a cut must explain


def bin_edges(values: Floats) -> Floats:
    """Numbers that cut a column into bins of like size; NaN stands above all of them."""
    held = values[~np.isnan(values)]
    held = held[:: max(1, len(held) // _SAMPLE)]
    if not len(held):
        return np.zeros(0)
    found: Floats = np.unique(np.quantile(held, np.arange(1, _BINS - 1) / (_BINS - 1)))
    return found


def scored_bins(codes: NDArray[Any], score: Floats, size: int) -> Bins:
    """A bin for each category, those with like mean scores side by side."""
    counts = np.bincount(codes, minlength=size)
    means = np.bincount(codes, score, minlength=size) / np.maximum(counts, 1)
    order = np.argsort(means, kind="stable")
    if size <= _BINS:
        place = np.arange(size)
    else:
        before = np.cumsum(counts[order]) - counts[order]
        place = before * _BINS // max(int(counts.sum()) + 1, 1)
    out = np.zeros(max(size, 1), np.uint8)
    out[order] = place
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Cuts level by level.

    Attributes:
        column: per node the column that it is cut along; -1 in a leaf.
        edge: per node the last bin that goes to its first part.
        first: per node its first part, the second being the next one; in a leaf, its number.
        leaves: how many leaves there are.
    """

    column: Ints
    edge: Ints
    first: Ints
    leaves: int

    def leaf_of(self, block: Bins) -> Ints:
        """The leaf of each row, whose bins are a column of ``block``."""
        node = np.zeros(block.shape[1], np.int64)
        places = np.arange(block.shape[1])
        for _ in range(_DEPTH):
            inner = np.flatnonzero(self.column[node] >= 0)
            if not len(inner):
                break
            at = node[inner]
            beyond = block[self.column[at], places[inner]] > self.edge[at]
            node[inner] = self.first[at] + beyond
        return self.first[node]


def grow_tree(block: Bins, target: Floats, classes: int, least: int) -> Tree:
    """Grow a tree whose leaves hold at least ``least`` rows each.

    Args:
        block: the bins of each row, one column a row of it.
        target: what the leaves should agree on: numbers, or codes of ``classes`` categories.
        classes: how many categories there are; 0 where the target is a number.
        least: rows of a leaf.
    """
    labels = _frequent(target.astype(np.int64), classes) if classes else None
    kinds = 0 if labels is None else int(labels.max(initial=0)) + 1
    column, edge, first = [-1], [0], [0]
    node = np.zeros(block.shape[1], np.int64)
    open_ = np.array([0])
    for _ in range(_DEPTH):
        place = np.full(len(column), -1)
        place[open_] = np.arange(len(open_))
        rows = np.flatnonzero(place[node] >= 0)
        if not len(rows):
            break
        inside = place[node[rows]]
        best = np.zeros(len(open_))
        along, at = np.full(len(open_), -1), np.zeros(len(open_), np.int64)
        for c in range(len(block)):
            gain, cut = _best_cut(
                inside, block[c, rows], target[rows],
                None if labels is None else labels[rows], len(open_), kinds, least,
            )  # fmt: skip
            better = gain > best
            best[better], along[better], at[better] = gain[better], c, cut[better]
        opened = []
        for i in np.flatnonzero(along >= 0).tolist():
            mine = int(open_[i])
            column[mine], edge[mine], first[mine] = int(along[i]), int(at[i]), len(column)
            opened += [len(column), len(column) + 1]
            column += [-1, -1]
            edge += [0, 0]
            first += [0, 0]
        cut_at = along[inside] >= 0
        moved = rows[cut_at]
        owner = inside[cut_at]
        beyond = block[along[owner], moved] > at[owner]
        node[moved] = np.array(first)[node[moved]] + beyond
        open_ = np.array(opened, np.int64)
        if not len(open_):
            break
    columns, numbers = np.array(column), np.array(first)
    leaves = np.flatnonzero(columns < 0)
    numbers[leaves] = np.arange(len(leaves))
    return Tree(columns, np.array(edge), numbers, len(leaves))


def _frequent(codes: Ints, classes: int) -> Ints:
    """The most frequent categories numbered, the others together."""
    counts = np.bincount(codes, minlength=classes)
    order = np.argsort(-counts, kind="stable")
    number = np.empty(classes, np.int64)
    number[order] = np.minimum(np.arange(classes), _CLASSES - 1)
    return number[codes]


def _best_cut(
    node: Ints, bins: Bins, target: Floats, labels: Ints | None, nodes: int, kinds: int, least: int
) -> tuple[Floats, Ints]:
    """Per node what the best cut along one column explains, and the last bin before it."""
    wide = int(bins.max(initial=0)) + 1
    key = node * wide + bins
    counts = np.bincount(key, minlength=nodes * wide).reshape(nodes, wide)
    if labels is None:
        sums = np.bincount(key, target, nodes * wide).reshape(nodes, wide, 1)
        spread = np.bincount(node, target**2, nodes)
    else:
        sums = np.bincount(key * kinds + labels, minlength=nodes * wide * kinds)
        sums = sums.reshape(nodes, wide, kinds).astype(np.float64)
        spread = counts.sum(axis=1).astype(np.float64)
    before, left = np.cumsum(counts, axis=1), np.cumsum(sums, axis=1)
    after, right = before[:, -1:] - before, left[:, -1:] - left
    allowed = (before >= least) & (after >= least)
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = (left**2).sum(axis=2) / before + (right**2).sum(axis=2) / after
    whole = (left[:, -1] ** 2).sum(axis=1) / np.maximum(before[:, -1], 1)
    gain = np.where(allowed, explained - whole[:, None], 0.0)
    cut = gain.argmax(axis=1)
    found = gain[np.arange(nodes), cut]
    return np.where(found > _GAIN * np.maximum(spread - whole, 1e-12), found, 0.0), cut
