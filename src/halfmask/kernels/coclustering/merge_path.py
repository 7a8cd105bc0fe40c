"""The path of best merges, by NumPy for grids that are done sooner than the kernel is compiled.

Both give the same merges and the same costs, to the last bit: sums are made in the same order, and
what two counts gain together is asked for in the same order of the two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.kernels.coclustering.merges import compositions, merge_compiled
from halfmask.kernels.compilation.compiler import Sparing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halfmask.kernels.coclustering.merges import GridCells, GridVariables

    Integers = NDArray[np.int64]
    Numbers = NDArray[np.float64]


class _CellList:
    """The non-empty cells, in their order, as merges leave them."""

    def __init__(self, cells: GridCells) -> None:
        self.codes, self.counts = cells.codes.astype(np.int64), cells.counts.copy()
        self.mix, self.lf = cells.mix, cells.lf

    def keys(self, inside: Any, *skip: int) -> NDArray[Any]:
        """One number per cell of ``inside`` for its place in all variables but some."""
        others = [k for k in range(self.codes.shape[1]) if k not in skip]
        if self.codes.shape[1] == 2:
            return np.asarray(self.codes[inside, others[0]])
        out: NDArray[Any] = np.zeros(len(self.counts[inside]), np.uint64)
        for k in others:
            out += (self.codes[inside, k] + 1).astype(np.uint64) * self.mix[k]
        return out

    def groups(self, inside: Any, *skip: int) -> Iterator[Integers]:
        """Places in ``inside`` of cells that differ in the skipped variables only."""
        if len(skip) == self.codes.shape[1]:
            yield np.arange(len(inside))
            return
        keys = self.keys(inside, *skip)
        order = np.argsort(keys, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)

    def gains(self, u: Integers, v: Integers) -> Numbers:
        """What counts gain as one; 0 where one of them is 0.

        A cell and itself, which nobody asks for, may be more than there are.
        """
        lf = self.lf
        return np.asarray(lf.take(u + v, mode="clip") - lf[u] - lf[v])

    def join(self, side: int, a: int, b: int) -> None:
        """Give the cells of part ``b`` to ``a``."""
        code, keys = self.codes[:, side], self.keys(slice(None), side)
        own, gone = np.flatnonzero(code == a), np.flatnonzero(code == b)
        own = own[np.argsort(keys[own], kind="stable")]
        at, both = _places(keys[own], keys[gone])
        self.counts[own[at[both]]] += self.counts[gone[both]]
        self.codes[gone[~both], side] = a
        keep = np.ones(len(code), bool)
        keep[gone[both]] = False
        self.codes, self.counts = self.codes[keep], self.counts[keep]


def _places(named: NDArray[Any], keys: NDArray[Any]) -> tuple[Integers, NDArray[np.bool_]]:
    """Where each key stands among those named, which ascend, and whether it does."""
    if not len(named):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(named, keys), len(named) - 1)
    return at, named[at] == keys


def _both_ways(gain: Numbers) -> Numbers:
    """What the earlier of two says of both."""
    upper = np.triu(gain, 1)
    return np.asarray(upper + upper.T)


def _in_turn(first: Any, more: Numbers) -> Any:
    """The sum, one after the other."""
    return np.add.accumulate(np.concatenate([np.asarray(first)[None], more]), axis=0)[-1]


class _MergedGroups:
    """The parts of a categorical variable, any two of which may merge."""

    def __init__(self, cells: _CellList, side: int, total: Integers, held: Integers) -> None:
        self.cells, self.side, self.total, self.held = cells, side, total, held
        parts = len(total)
        self.alive, self.stale = np.ones(parts, bool), True
        self.together = np.zeros((parts, parts))
        self.apart = np.full((parts, parts), np.inf)  # what merging changes but for the cells
        pairs = np.triu_indices(parts, 1)
        self.apart[pairs] = self._apart(*pairs)
        self.value, self.partner = np.full(parts, np.inf), np.full(parts, -1)

    def _apart(self, a: Any, b: Any) -> Numbers:
        lf, total, held = self.cells.lf, self.total, self.held
        m = held[a] + held[b]
        return np.asarray(
            lf[total[a] + total[b] + m - 1]
            - lf[m - 1]
            - lf[total[a] + held[a] - 1]
            + lf[held[a] - 1]
            - lf[total[b] + held[b] - 1]
            + lf[held[b] - 1]
        )

    def fill(self) -> None:
        """Find what any two parts gain, from all cells."""
        cells = self.cells
        for group in cells.groups(slice(None), self.side):
            at, n = cells.codes[group, self.side], cells.counts[group]
            self.together[np.ix_(at, at)] += _both_ways(cells.gains(n[:, None], n))

    def best(self) -> tuple[float, int, int]:
        """The best pair and what it changes."""
        if self.stale:
            self._scan(np.flatnonzero(self.alive))
            self.stale = False
        value = np.where(self.alive, self.value, np.inf)
        x = int(value.argmin())
        return float(value[x]), x, int(self.partner[x])

    def _scan(self, rows: Integers) -> None:
        here = self.apart[rows] - self.together[rows]
        at = here.argmin(axis=1)
        self.value[rows], self.partner[rows] = here[np.arange(len(rows)), at], at

    def follow(self, touched: Integers, left: NDArray[np.bool_], side: int) -> None:
        """Take in that two parts of another variable, which hold these cells, merge."""
        cells, self.stale = self.cells, True
        for group in cells.groups(touched, side, self.side):
            at = cells.codes[touched[group], self.side]
            _, first, place = np.unique(at, return_index=True, return_inverse=True)
            rank = np.empty_like(first)
            rank[np.argsort(first)] = np.arange(len(first))
            n = np.zeros((2, len(first)), np.int64)
            np.add.at(n, (left[group].astype(np.int64), rank[place]), cells.counts[touched[group]])
            right, own = n
            apart = cells.gains(own[:, None], own) + cells.gains(right[:, None], right)
            more = cells.gains((own + right)[:, None], own + right) - apart
            present = at[np.sort(first)]
            self.together[np.ix_(present, present)] += _both_ways(more)

    def merge(self, a: int, b: int) -> None:
        """Take in that ``b`` joins ``a``, whose cells still stand apart."""
        cells, together = self.cells, self.together
        code, keys = cells.codes[:, self.side], cells.keys(slice(None), self.side)
        named = np.sort(keys[code == b])
        at, inside = _places(named, keys)
        n = np.zeros((len(named), len(self.total)), np.int64)
        n[at[inside], code[inside]] = cells.counts[inside]
        own, whole = n[:, [a]], n[:, [a]] + n[:, [b]]
        gain = cells.gains(whole, n) - cells.gains(own, n)
        gain[:, [a, b]] = 0.0
        together[a] = together[:, a] = _in_turn(together[a], gain)
        self.total[a] += self.total[b]
        self.held[a] += self.held[b]
        self.alive[b] = False
        self.apart[b] = self.apart[:, b] = np.inf
        others = np.flatnonzero(self.alive)
        below, above = others[others < a], others[others > a]
        self.apart[below, a], self.apart[a, above] = self._apart(below, a), self._apart(a, above)
        old = (self.partner[others] == a) | (self.partner[others] == b) | (others == a)
        kept = below[~old[: len(below)]]
        here = self.apart[kept, a] - together[kept, a]
        better = kept[here < self.value[kept]]
        self.value[better], self.partner[better] = here[here < self.value[kept]], a
        self._scan(others[old])


class _NeighborParts:
    """The intervals of an ordered variable, of which neighbours may merge."""

    def __init__(self, cells: _CellList, side: int, total: Integers) -> None:
        self.cells, self.side, self.total = cells, side, total
        parts = len(total)
        self.following = np.append(np.arange(1, parts), -1)
        self.preceding = np.arange(-1, parts - 1)
        self.together = np.zeros(parts)
        self.alive = np.ones(parts, bool)

    def fill(self) -> None:
        """Find what neighbours gain, from all cells."""
        cells = self.cells
        for group in cells.groups(slice(None), self.side):
            n = np.zeros(len(self.total) + 1, np.int64)
            n[cells.codes[group, self.side]] = cells.counts[group]
            self.together += cells.gains(n[:-1], n[1:])

    def best(self) -> tuple[float, int, int]:
        """The best neighbours and what they change."""
        at = np.flatnonzero(self.alive & (self.following >= 0))
        if not len(at):
            return math.inf, -1, -1
        after = self.following[at]
        here = self.cells.gains(self.total[at], self.total[after]) - self.together[at]
        x = int(here.argmin())
        return float(here[x]), int(at[x]), int(after[x])

    def follow(self, touched: Integers, left: NDArray[np.bool_], side: int) -> None:
        """Take in that two parts of another variable, which hold these cells, merge."""
        cells = self.cells
        at = np.flatnonzero(self.alive & (self.following >= 0))
        after = self.following[at]
        for group in cells.groups(touched, side, self.side):
            n = np.zeros((2, len(self.total)), np.int64)
            code = cells.codes[touched[group], self.side]
            np.add.at(n, (left[group].astype(np.int64), code), cells.counts[touched[group]])
            right, own = n
            apart = self.cells.gains(own[at], own[after]) + self.cells.gains(
                right[at], right[after]
            )
            self.together[at] += self.cells.gains((own + right)[at], (own + right)[after]) - apart

    def merge(self, a: int, b: int) -> None:
        """Take in that ``b`` joins ``a``, whose cells still stand apart."""
        cells = self.cells
        before, after = int(self.preceding[a]), int(self.following[b])
        code, keys = cells.codes[:, self.side], cells.keys(slice(None), self.side)
        named = np.unique(keys[(code == a) | (code == b)])
        at, inside = _places(named, keys)
        n = np.zeros((len(named), len(self.total) + 1), np.int64)  # the last: no such neighbour
        n[at[inside], code[inside]] = cells.counts[inside]
        whole = n[:, a] + n[:, b]
        self.together[a] = _in_turn(0.0, cells.gains(whole, n[:, after]))
        if before >= 0:
            self.together[before] = _in_turn(0.0, cells.gains(n[:, before], whole))
        self.total[a] += self.total[b]
        self.alive[b] = False
        self.following[a] = after
        if after >= 0:
            self.preceding[after] = a


def plain_merge_path(
    cells: GridCells, sides: GridVariables, informative: Numbers
) -> tuple[Integers, Numbers]:
    """What ``merge_compiled`` gives; nothing that is given is changed."""
    held = _CellList(cells)
    stop_at, left = sides.stop_at.tolist(), sides.parts.tolist()
    variables: dict[int, _MergedGroups | _NeighborParts] = {}
    for k in np.flatnonzero(~sides.frozen).tolist():
        total, inside = sides.totals[k, : left[k]].copy(), sides.helds[k, : left[k]].copy()
        ordered = sides.ordered[k]
        variables[k] = (
            _NeighborParts(held, k, total) if ordered else _MergedGroups(held, k, total, inside)
        )
        variables[k].fill()
    observed = int(held.counts.sum())
    steps, change = [], []
    while True:
        grid = math.prod(map(float, left))
        wide = sum(parts > 1 for parts in left)
        now = compositions(observed, grid)
        best, side, a, b = math.inf, -1, -1, -1
        for k, one in variables.items():
            if left[k] <= stop_at[k]:
                continue
            low, x, y = one.best()
            if low == math.inf:
                continue
            step = compositions(observed, grid / left[k] * (left[k] - 1)) - now
            step += sides.priors[k, left[k] - 1] - sides.priors[k, left[k]] + low
            step += informative[wide - (left[k] == 2)] - informative[wide]
            if step < best:
                best, side, a, b = float(step), k, x, y
        if side < 0:
            break
        code = held.codes[:, side]
        touched = np.flatnonzero((code == a) | (code == b))
        for k, one in variables.items():
            if k != side and left[k] > 1:
                one.follow(touched, code[touched] == a, side)
        variables[side].merge(a, b)
        held.join(side, a, b)
        left[side] -= 1
        steps.append((side, a, b))
        change.append(best)
    return np.array(steps, np.int64).reshape(-1, 3), np.array(change)


def _work(cells: GridCells, sides: GridVariables, informative: Numbers) -> int:
    """About microseconds of NumPy: of each merge, its cells, and what it does to all pairs."""
    del informative
    parts = sides.parts[~sides.frozen]
    pairs = int((parts[None] * parts[:, None] * parts).sum()) // 200
    return int(parts.sum()) * (300 + len(cells.counts) // 20) + pairs


merge_path = Sparing(merge_compiled, _work, 4_000_000, plain_merge_path)
