"""Comparators of the thesis's chapter 5 on a table of counts, a page each; for evaluation only.

Each takes exact counts over all columns, a pure epsilon and a source of chance, and gives weights
of all cells. Noise is floating-point noise of NumPy: nothing that is made here may leave.

One-dimensional methods see the cells as a line, column after column. Not here: Privelet+, whose own
rule (transform a column of m values only where m exceeds P(m)**2 H(m): 75 for ten ages, 16 for flat
trees) transforms none of the five columns of Adult, so that it is the printed baseline;
StructureFirst, whose tables of the best bins need cells**2 times bins entries, terabytes for 17,280
cells; DP-MHMD, which takes the grouping of columns for public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = np.ndarray
SPECIALIZATIONS = 20  # of DiffGen
BISECTIONS, PLACES = 8, 64  # of P-HPartition: levels, and places at which a segment may be cut


def noise_first(counts: Floats, epsilon: float, random: np.random.Generator) -> Floats:
    """Xu et al., 2012: noise on every cell, then neighbors are averaged where that helps.

    A bin of m noisy counts with variance v is off by (their squared distances) - m v + 2 v.
    """
    noisy = counts.ravel() + random.laplace(0, 1 / epsilon, counts.size)
    penalty = 2 * 2 / epsilon**2
    sums, squares = (np.r_[0, np.cumsum(noisy**power)] for power in (1, 2))
    best, start = np.zeros(counts.size + 1), np.zeros(counts.size + 1, np.int64)
    for end in range(1, counts.size + 1):
        inside = squares[end] - squares[:end]
        inside -= (sums[end] - sums[:end]) ** 2 / (end - np.arange(end))
        inside += best[:end]
        start[end] = inside.argmin()
        best[end] = inside[start[end]] + penalty
    found, end = np.empty(counts.size), counts.size
    while end:
        found[start[end] : end] = noisy[start[end] : end].mean()
        end = start[end]
    return np.maximum(found, 0).reshape(counts.shape)


def p_hpartition(counts: Floats, epsilon: float, random: np.random.Generator) -> Floats:
    """Acs et al., 2012: bisections chosen by the exponential mechanism, then noisy means.

    Half of epsilon goes to the levels of bisections, where segments of one level are disjoint.
    """
    line = counts.ravel().astype(float)
    segments, each = [(0, line.size)], epsilon / 2 / BISECTIONS
    for _ in range(BISECTIONS):
        cut = []
        for low, high in segments:
            places = np.unique(np.linspace(low, high, PLACES + 2)[1:-1].astype(np.int64))
            places = places[(places > low) & (places < high)]
            whole = [_deviation(line[low:high])]
            scores = -np.array(
                [_deviation(line[low:p]) + _deviation(line[p:high]) for p in places] + whole
            )
            chosen = int((each * scores / 4 + random.gumbel(size=len(scores))).argmax())
            parts = [(low, high)] if chosen == len(places) else [
                (low, int(places[chosen])), (int(places[chosen]), high)
            ]  # fmt: skip
            cut += parts
        segments = cut
    found = np.empty(line.size)
    for low, high in segments:
        total = line[low:high].sum() + random.laplace(0, 2 / epsilon)
        found[low:high] = max(total, 0) / (high - low)
    return found.reshape(counts.shape)


def dp_cube(counts: Floats, epsilon: float, random: np.random.Generator) -> Floats:
    """Xiao et al., 2010: noisy cells, a k-d tree on them, then noisy counts of its parts."""
    noisy = counts + random.laplace(0, 2 / epsilon, counts.shape)
    bearable = 2 / epsilon  # the mean distance that noise alone makes
    found = np.zeros(counts.shape)
    open_parts = [tuple(slice(0, size) for size in counts.shape)]
    while open_parts:
        part = open_parts.pop()
        held = noisy[part]
        mean = held.mean()
        if held.size > 1 and np.abs(held - mean).mean() > bearable:
            axis = int(np.argmax(held.shape))
            sums = held.sum(axis=tuple(a for a in range(held.ndim) if a != axis))
            sizes = np.arange(1, len(sums)) * (held.size // len(sums))
            left, right = np.cumsum(sums)[:-1], np.cumsum(sums[::-1])[::-1][1:]
            gain = left**2 / sizes + right**2 / (held.size - sizes)
            at = part[axis].start + 1 + int(gain.argmax())
            sides = slice(part[axis].start, at), slice(at, part[axis].stop)
            open_parts += [(*part[:axis], side, *part[axis + 1 :]) for side in sides]
            continue
        total = counts[part].sum() + random.laplace(0, 2 / epsilon)
        found[part] = max(total, 0) / held.size
    return found


def diff_gen(counts: Floats, epsilon: float, random: np.random.Generator) -> Floats:
    """Mohammed et al., 2011: from one value a column to finer ones by the exponential mechanism.

    Taxonomies are binary over the order of the values; the class is the last column, and the score
    of a cut is how many people hold the most frequent class of their part (Max).
    """
    cuts = [[(0, size)] for size in counts.shape[:-1]]
    each = epsilon / (2 * SPECIALIZATIONS)
    for _ in range(SPECIALIZATIONS):
        options = [(axis, node) for axis, nodes in enumerate(cuts) for node in nodes
                   if node[1] - node[0] > 1]  # fmt: skip
        if not options:
            break
        scores = np.array([_frequent(counts, _cut(cuts, *option)) for option in options])
        chosen = int((each * scores / 2 + random.gumbel(size=len(scores))).argmax())
        cuts = _cut(cuts, *options[chosen])
    coarse = _summed(counts, cuts)
    coarse = np.maximum(coarse + random.laplace(0, 2 / epsilon, coarse.shape), 0)
    for axis, nodes in enumerate(cuts):
        widths = np.array([high - low for low, high in nodes])
        shape = [1] * coarse.ndim
        shape[axis] = len(widths)
        coarse = np.repeat(coarse / widths.reshape(shape), widths, axis=axis)
    return coarse


def _deviation(values: Floats) -> float:
    return float(np.abs(values - values.mean()).sum())


def _cut(cuts: list[list[tuple[int, int]]], axis: int, node: tuple[int, int]) -> list:
    low, high = node
    middle = (low + high) // 2
    nodes = sorted({*cuts[axis], (low, middle), (middle, high)} - {node})
    return [*cuts[:axis], nodes, *cuts[axis + 1 :]]


def _summed(counts: Floats, cuts: list[list[tuple[int, int]]]) -> Floats:
    found = counts.astype(float)
    for axis, nodes in enumerate(cuts):
        found = np.add.reduceat(found, [low for low, _ in nodes], axis=axis)
    return found


def _frequent(counts: Floats, cuts: list[list[tuple[int, int]]]) -> float:
    return float(_summed(counts, cuts).max(axis=-1).sum())


COMPARATORS: dict[str, Callable[[Floats, float, np.random.Generator], Floats]] = {
    "NoiseFirst": noise_first,
    "P-HPartition": p_hpartition,
    "DPCube": dp_cube,
    "DiffGen": diff_gen,
}
