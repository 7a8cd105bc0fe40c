"""Whether columns go together beyond chance: against the same columns, shuffled.

The criterion does not ask this. A grid also pays where frequent and rare values are told apart, so
that skewed columns get parts even where they are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.grid import Grid
from halfmask.coclustering.observations import Observations, observe
from halfmask.coclustering.optimize import optimize_grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

ROWS = 20_000  # looked at, drawn evenly
SHUFFLES = 20
CHANCE = 1e-3
_NEAR, _MORE = 1e-3, 200  # how near to that more shuffles decide
_FIRST = 4  # shuffles after which it may be clear
_CLEAR = 10.0  # nats beyond all shuffled columns, and as much more as these differ
_EXPANDED = 2_000_000  # rows that are written out to be drawn from
_BINS = 20  # intervals of numbers, for what pairs of columns tell of each other
_DENSE = 1 << 20  # cells that are counted in a table rather than sorted


@dataclass(frozen=True, slots=True)
class Dependence:
    """Which variables of a grid go with another one beyond chance.

    Attributes:
        bound: the variables that do.
        alone: those that the criterion gives parts although they do not.
        parts: how many parts the cheapest grid has per variable.
        gain: by how many nats the cheapest grid is below one cell.
        shuffled: the same on the mean of shuffled columns, where these had to be searched.
    """

    bound: tuple[str, ...]
    alone: tuple[str, ...]
    parts: tuple[int, ...]
    gain: float
    shuffled: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "beyond_chance": list(self.bound),
            "no_more_than_chance": list(self.alone),
            "parts_of_optimum": list(self.parts),
            "gain_of_optimum": self.gain,
            "gain_of_shuffled": self.shuffled,
        }

    def sentences(self) -> list[str]:
        """What a reader should know of variables that go with no other one."""
        if not self.alone:
            return []
        words = f"No more than chance: {', '.join(self.alone)}."
        words += " The criterion alone tells frequent values from rare ones there"
        if self.shuffled is not None:
            words += f": shuffled columns gain {self.shuffled:,.1f} nats, these {self.gain:,.1f}"
        return [f"{words}. With information = 1 the grid is that of the criterion alone."]


def dependence_of_columns(grid: Grid, codes: Mapping[str, NDArray[np.int32]]) -> Dependence:
    """The same of a grid over rows and the parts of columns, by pairs of columns alone."""
    bound = dependent_columns(codes)
    alone = tuple(name for name in codes if name not in bound) if grid.informative else ()
    gain = grid.null_cost - grid.cost
    return Dependence(tuple(name for name in codes if name in bound), alone, grid.parts, gain)


def find_dependence(
    grid: Grid, observed: Observations, effort: Mapping[str, Any], seconds: float | None = None
) -> Dependence:
    """Which variables of a grid over columns go with another one beyond chance.

    Definition: a variable does where a pair with it is dependent (``dependent_columns``), or else
        where the cheapest grid of the table with this variable shuffled, found by the same search,
        gains less: the chance of as much is below one in a thousand.
    Source: own; after Good, "Permutation, parametric and bootstrap tests of hypotheses", 2005.

    Args:
        grid: the cheapest grid.
        observed: what it is of.
        effort: criterion, seed and rounds of the search.
        seconds: what the searches of shuffled columns may take together.
    """
    random = np.random.default_rng(effort.get("seed", 0))
    names = [variable.name for variable in observed.variables]
    gain = grid.null_cost - grid.cost
    cut = [side for side, parts in enumerate(grid.parts) if parts > 1]
    sample = _rows(observed, random)
    bound = dependent_columns(
        {names[side]: _coarse(observed, side)[sample] for side in range(len(names))}
    )
    asked = [side for side in cut if names[side] not in bound]
    shuffled = None
    if asked:
        small, found = observed, gain
        if observed.total > ROWS:
            small = observe(observed.variables, list(observed.codes[sample].T))
            drawn = optimize_grid(small, time_limit=seconds, **effort)
            found = drawn.null_cost - drawn.cost
        judge = _Shuffles(small, found, random, effort, seconds)
        together = judge.gains(asked)
        shuffled = float(np.mean(together))
        if chance_of_gain(found, together) < CHANCE:  # some of them are; shuffling one tells of two
            single = len(asked) == 1 or len(names) == 2
            bound |= {
                names[side]
                for side in asked
                if single or chance_of_gain(found, judge.gains([side])) < CHANCE
            }
    return Dependence(
        tuple(name for name in names if name in bound),
        tuple(names[side] for side in cut if names[side] not in bound),
        grid.parts,
        gain,
        shuffled,
    )


def bound_grid(
    grid: Grid, observed: Observations, bound: Sequence[str], effort: Mapping[str, Any]
) -> Grid:
    """The cheapest grid of the variables that are bound, the others in one part each."""
    names = [variable.name for variable in observed.variables]
    sides = [side for side, name in enumerate(names) if name in bound]
    partition = [np.zeros(size, dtype=np.int32) for size in observed.sizes]
    if len(sides) > 1:
        variables = [observed.variables[side] for side in sides]
        codes = [observed.codes[:, side] for side in sides]
        found = optimize_grid(observe(variables, codes, observed.weights), **effort)
        for side, part in zip(sides, found.partition, strict=True):
            partition[side] = part
    return Grid.of(GridCriterion(observed, grid.criterion), tuple(partition))


def _rows(observed: Observations, random: np.random.Generator) -> NDArray[np.int64]:
    """The tuple of each row, or of so many rows as are looked at."""
    weights, total = observed.weights, observed.total
    if total > _EXPANDED:
        return random.choice(len(weights), ROWS, p=weights / total)
    rows = np.repeat(np.arange(len(weights)), weights)
    return rows if total <= ROWS else random.choice(rows, ROWS, replace=False)


def _coarse(observed: Observations, side: int) -> NDArray[np.int32]:
    """The codes of one variable, numbers in intervals of about as many rows each."""
    codes = observed.codes[:, side]
    if observed.variables[side].kind != "numeric":
        return codes
    counts = observed.marginal(side)
    middle = np.cumsum(counts) - counts / 2
    bins = (middle * _BINS / counts.sum()).astype(np.int32)
    return np.asarray(bins[codes], dtype=np.int32)


@dataclass(frozen=True, slots=True)
class _Shuffles:
    """What grids gain where variables are shuffled, by the search that gained ``found``."""

    observed: Observations
    found: float
    random: np.random.Generator
    effort: Mapping[str, Any]
    seconds: float | None

    def gains(self, sides: Sequence[int]) -> list[float]:
        """The gains with some variables shuffled, until it is clear whether ``found`` is more.

        It is not where two gain as much, and it is where it is far beyond all.
        """
        rows = np.repeat(self.observed.codes, self.observed.weights, axis=0)
        limit = None if self.seconds is None else self.seconds / SHUFFLES
        out: list[float] = []
        while len(out) < SHUFFLES:
            for side in sides:
                rows[:, side] = self.random.permutation(rows[:, side])
            shuffled = observe(self.observed.variables, list(rows.T))
            grid = optimize_grid(shuffled, time_limit=limit, **self.effort)
            out.append(grid.null_cost - grid.cost)
            reached = sum(gain >= self.found for gain in out)
            far = self.found - max(out) > _CLEAR + max(out) - min(out)
            if reached > 1 or (len(out) > _FIRST and far):
                break
        return out


def chance_of_gain(found: float, gains: Sequence[float]) -> float:
    """The chance that shuffled columns gain as much as ``found``.

    A gain is the logarithm of odds: beyond what shuffled columns reach, the chance falls with it at
    the least where these are all alike.
    """
    most = max(gains)
    if found <= most:
        return (sum(gain >= found for gain in gains) + 1) / (len(gains) + 1)
    return max(math.exp(most - found), _tail(found, np.asarray(gains)))


def dependent_columns(codes: Mapping[str, NDArray[np.int32]], *, seed: int = 0) -> set[str]:
    """The columns that depend on at least one of the others.

    Definition: the mutual information of two columns against that of the same columns shuffled.
        That of shuffled columns follows a scaled chi-square law, whose scale and degrees come from
        their mean and variance; columns depend on each other where the chance of as much is below
        one in a thousand, over all pairs that were tried.
    Source: Agresti, "Categorical data analysis", 2013, ch. 3; own: the law fitted to shuffled
        columns, since many values with few rows each have another one than the tables print.

    Example:
        >>> half = np.repeat([0, 1], 200)
        >>> other = np.tile([0, 1], 200)
        >>> sorted(dependent_columns({"a": half, "b": half, "c": other}))
        ['a', 'b']
    """
    random = np.random.default_rng(seed)
    rows = len(next(iter(codes.values()), np.empty(0)))
    chosen = np.arange(rows) if rows <= ROWS else random.choice(rows, ROWS, replace=False)
    known = {n: np.unique(one[chosen], return_inverse=True)[1] for n, one in codes.items()}
    pairs = list(combinations(known, 2))
    out: set[str] = set()
    for one, two in pairs:
        if {one, two} <= out:
            continue
        if _chance(known[one].reshape(-1), known[two].reshape(-1), random) * len(pairs) < CHANCE:
            out |= {one, two}
    return out


def _chance(one: NDArray[np.int64], two: NDArray[np.int64], random: np.random.Generator) -> float:
    """The chance that columns without any dependence tell as much of each other."""
    found = _information(one, two)
    shuffled: list[float] = []
    while len(shuffled) < SHUFFLES:
        shuffled.append(_information(one, random.permutation(two)))
        if len(shuffled) == _FIRST and found <= max(shuffled):
            return 1.0  # far from one in a thousand
    near = _tail(found, np.array(shuffled))
    if CHANCE * _NEAR < near < CHANCE / _NEAR:  # the law of so few shuffles is not known well
        more = [_information(one, random.permutation(two)) for _ in range(_MORE)]
        return _tail(found, np.array(shuffled + more))
    return near


def _tail(found: float, shuffled: NDArray[np.float64]) -> float:
    """The chance of ``found`` or more by the law of a scaled chi-square with these values."""
    from scipy.stats import chi2

    mean, variance = float(shuffled.mean()), float(shuffled.var(ddof=1))
    if mean <= 0 or variance <= 0:
        return 1.0 if found <= mean else 0.0
    # Scale times chi-square of d degrees: mean = scale d, variance = 2 scale^2 d.
    scale = variance / (2 * mean)
    return float(chi2.sf(found / scale, mean / scale))


def _information(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """The sum of n log n over the cells, which the mutual information rises with."""
    width, height = int(two.max(initial=0)) + 1, int(one.max(initial=0)) + 1
    cell = one * width + two
    dense = width * height <= _DENSE
    cells = np.bincount(cell) if dense else np.unique(cell, return_counts=True)[1]
    whole, *sides = [
        float((n[n > 0] * np.log(n[n > 0])).sum())
        for n in (np.asarray(m, np.float64) for m in (cells, np.bincount(one), np.bincount(two)))
    ]
    total = len(one) * float(np.log(max(len(one), 1)))
    return 2 * max(whole + total - sum(sides), 0.0)
