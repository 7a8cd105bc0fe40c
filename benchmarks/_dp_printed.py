"""AIM and MST by their printed rules on our own inference: hours become seconds; to evaluate only.

Source: McKenna, Mullins, Sheldon, Miklau, "AIM", 2022, with the constants of private-pgm: 16 rounds
for each column, a tenth of the budget for choices, 80 MB of model, tables of two columns with at
most 10,000 cells, squared distances; and MST as in ``_dp_mbi.py``. Noise is NumPy's. They stand in
where the peers' own do not end or many runs are asked for, and are told under names of their own.
"""

from __future__ import annotations

from itertools import combinations
from math import pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from _dp_mbi import CELLS, MEGABYTES, ROUNDS, rho_of
from halfmask.synthesize.inference import (
    Beliefs,
    align_axes,
    draw,
    draw_members,
    junction_tree,
    sum_to,
)
from halfmask.synthesize.marginals import pool_small

if TYPE_CHECKING:
    from _dp_tables import CodedTable, Codes

    Measured = list[tuple[tuple[str, ...], np.ndarray, float | np.ndarray]]  # with the variance


class Descent:
    """Mirror descent on the squared distance; it remembers how long its steps were."""

    def __init__(self, rows: float) -> None:
        self.rows, self.length = rows, 1 / rows

    def run(self, beliefs: Beliefs, measured: Measured, steps: int, enough: float) -> Beliefs:
        """Go on until five steps in a row gain little."""
        homes = [beliefs.tree.holder(columns) for columns, _, _ in measured]
        loss, slopes = _slopes(beliefs, measured, homes, self.rows)
        little = 0
        for _ in range(steps):
            moved = beliefs.copy()
            moved.multiply({h: np.exp(np.clip(self.length * s, -5, 5)) for h, s in slopes.items()})
            new, after = _slopes(moved, measured, homes, self.rows)
            if not new < loss:
                self.length *= 0.4
                continue
            little = little + 1 if loss - new < enough * loss else 0
            beliefs, loss, slopes = moved, new, after
            self.length *= 1.3
            if little == 5:
                break
        return beliefs


def _slopes(beliefs: Beliefs, measured: Measured, homes: list, rows: float) -> tuple[float, dict]:
    loss, slopes = 0.0, {}
    for (columns, counts, variance), home in zip(measured, homes, strict=True):
        clique = beliefs.tree.cliques[home]
        apart = rows * sum_to(beliefs.tables[home], clique, columns) - counts
        loss += 0.5 * float((apart * apart / variance).sum())
        slope = align_axes(-apart / variance, columns, clique)
        slopes[home] = slopes[home] + slope if home in slopes else slope
    return loss, slopes


def aim(coded: CodedTable, epsilon: float, delta: float) -> Codes:
    """As many rows as the table has."""
    sizes, _, codes = coded
    random, rho = np.random.default_rng(), rho_of(epsilon, delta)
    pairs = [p for p in combinations(sizes, 2) if sizes[p[0]] * sizes[p[1]] <= CELLS]
    sets: list[tuple[str, ...]] = [*((name,) for name in sizes), *pairs]
    weights = {one: sum(len(set(one) & set(pair)) for pair in pairs) for one in sets}
    exact = {one: _count(codes, sizes, one) for one in sets}
    sigma, choice = sqrt(ROUNDS * len(sizes) / (1.8 * rho)), sqrt(0.8 * rho / ROUNDS / len(sizes))
    measured: Measured = [
        ((n,), exact[n,] + random.normal(0, sigma, sizes[n]), sigma**2) for n in sizes
    ]
    used = len(sizes) * 0.5 / sigma**2
    sure = np.array([1 / counts.size for _, counts, _ in measured])
    rows = max(1.0, float(sure @ [counts.sum() for _, counts, _ in measured] / sure.sum()))
    beliefs = Beliefs.independent(sizes, {name: np.ones(size) for name, size in sizes.items()})
    descent, last = Descent(rows), False
    beliefs = descent.run(beliefs, measured, 300, 1e-4)
    while not last:
        if rho - used < 2 * (0.5 / sigma**2 + choice**2 / 8):
            left, last = rho - used, True
            sigma, choice = sqrt(1 / (1.8 * left)), sqrt(0.8 * left)
        used += choice**2 / 8 + 0.5 / sigma**2
        most = MEGABYTES * 2**20 / 8 * used / rho
        held = beliefs.tree
        small = [one for one in sets if held.holder(one) is not None
                 or junction_tree(sizes, [*held.cliques, one]).cells <= most]  # fmt: skip
        scores = np.array([
            weights[one] * (np.abs(exact[one] - rows * beliefs.marginal(one)).sum()
                            - sqrt(2 / pi) * sigma * exact[one].size)
            for one in small
        ])  # fmt: skip
        reach = max(weights[one] for one in small)
        one = small[int((0.5 * choice / reach * scores + random.gumbel(size=len(small))).argmax())]
        measured.append((one, exact[one] + random.normal(0, sigma, exact[one].shape), sigma**2))
        before = rows * beliefs.marginal(one)
        beliefs = descent.run(beliefs.extended([one]), measured, 60, 1e-4)
        learned = np.abs(rows * beliefs.marginal(one) - before).sum()
        if learned <= sqrt(2 / pi) * sigma * exact[one].size:
            sigma, choice = sigma / 2, choice * 2
    beliefs = descent.run(beliefs, measured, 400, 1e-5)
    return draw(beliefs, len(next(iter(codes.values()))), random)


def mst(coded: CodedTable, epsilon: float, delta: float) -> Codes:
    """As many rows as the table has."""
    sizes, _, codes = coded
    random, rho, names = np.random.default_rng(), rho_of(epsilon, delta), list(sizes)
    sigma = sqrt(1.5 * len(names) / rho)
    ones = {n: _count(codes, sizes, (n,)) + random.normal(0, sigma, sizes[n]) for n in names}
    sure = np.array([1 / size for size in sizes.values()])
    rows = max(1.0, float(sure @ [counts.sum() for counts in ones.values()] / sure.sum()))
    pools = {n: pool_small(counts, 3 * sigma) for n, counts in ones.items()}
    pooled = {n: pools[n][held] for n, held in codes.items()}
    few = {n: int(pool.max()) + 1 for n, pool in pools.items()}
    measured: Measured = [
        ((n,), np.bincount(pools[n], counts), sigma**2 * np.bincount(pools[n]))
        for n, counts in ones.items()
    ]
    start = {n: np.maximum(counts, 1.0) for (n,), counts, _ in measured}
    beliefs = Beliefs.independent(few, start)
    far = {p: np.abs(_count(pooled, few, p) - rows * beliefs.marginal(p)).sum()
           for p in combinations(names, 2)}  # fmt: skip
    parts, tree = {name: name for name in names}, []
    choice = sqrt(8 * rho / 3 / (len(names) - 1))
    for _ in names[1:]:
        far = {p: score for p, score in far.items() if parts[p[0]] != parts[p[1]]}
        scores = 0.5 * choice * np.array(list(far.values()))
        pair = list(far)[int((scores + random.gumbel(size=len(far))).argmax())]
        tree.append(pair)
        parts = {n: parts[pair[0]] if part == parts[pair[1]] else part for n, part in parts.items()}
    sigma = sqrt(1.5 * len(tree) / rho)
    for pair in tree:
        exact = _count(pooled, few, pair)
        measured.append((pair, exact + random.normal(0, sigma, exact.shape), sigma**2))
    beliefs = Descent(rows).run(beliefs.extended(tree), measured, 1500, 1e-8)
    drawn = draw(beliefs, len(codes[names[0]]), random)
    even = {n: np.ones(size) for n, size in sizes.items()}
    whole = np.zeros(len(codes[names[0]]), np.int64)
    return {n: draw_members(drawn[n], pools[n], even[n], random, beside=whole) for n in names}


def _count(codes: Codes, sizes: dict[str, int], columns: tuple[str, ...]) -> np.ndarray:
    cells = np.zeros(len(codes[columns[0]]), np.int64)
    for name in columns:
        cells = cells * sizes[name] + codes[name]
    shape = tuple(sizes[name] for name in columns)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)
