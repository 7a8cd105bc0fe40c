"""What is co-clustered: counted tuples of variables, samples of them, and their code lengths.

Definition: log B(V, J) with B(V, J) = sum of S2(V, i) for i = 1..J, S2 = Stirling numbers of the
    second kind; L(n) = log 2.86511 + log 2 * log2*(n), log2*(n) = log2 n + log2 log2 n + ...
Source: Boullé, "Data grid models for preparation and modeling in supervised learning", 2011;
    Rissanen, "A universal prior for integers", 1983.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import GridPartition
    from halfmask.coclustering.search import GridSearch


HUGE_GRID = 2**30  # above it the count of compositions is approximated, as Khiops does
_TAIL = 20  # the alternating series of 1/e is exact in a double after so many terms


@lru_cache(maxsize=4)
def log_factorials(limit: int) -> NDArray[np.float64]:
    """Log n! for n = 0..limit."""
    table = np.zeros(limit + 1)
    small = min(limit, 255)
    table[1 : small + 1] = [math.lgamma(n + 1.0) for n in range(1, small + 1)]
    if limit > small:  # Stirling's series: the first term left out is below 1e-17 from 256 on
        n = np.arange(small + 1, limit + 1, dtype=np.float64)
        table[small + 1 :] = (
            n * np.log(n) - n + 0.5 * np.log(2 * np.pi * n) + 1 / (12 * n) - 1 / (360 * n**3)
        )
    table.flags.writeable = False
    return table


@lru_cache(maxsize=32)
def log_partitions(values: int, limit: int) -> NDArray[np.float64]:
    """Log B(values, J) for J = 0..limit (J = 0 gives minus infinity).

    B(V, J) = sum over i of i^V / i! * D(J - i), D(m) = sum over j <= m of (-1)^j / j!; all terms
    are at least 0, so that the sum is stable.
    """
    i = np.arange(1, limit + 1, dtype=np.float64)
    terms = values * np.log(i) - log_factorials(limit)[1:]
    signs = np.array([(-1) ** j / math.factorial(j) for j in range(_TAIL + 1)])
    derangements = np.maximum(np.cumsum(signs), 0.0)
    peak = np.maximum.accumulate(terms)  # taken out of every sum: the terms leave every float
    total = np.zeros(limit)
    for lag in range(min(_TAIL, limit)):
        shifted = terms[: limit - lag] - peak[lag:]
        total[lag:] += derangements[lag] * np.exp(shifted)
    if limit > _TAIL:  # D(m) is 1/e there: one running sum serves all
        settled = np.logaddexp.accumulate(terms)[: limit - _TAIL]
        total[_TAIL:] += math.exp(-1.0) * np.exp(settled - peak[_TAIL:])
    out = np.concatenate([[-np.inf], peak + np.log(total)])
    # B(V, J) does not grow beyond J = V: all partitions are counted
    out[values:] = out[min(values, limit)]
    out.flags.writeable = False
    return np.asarray(out)


def log_compositions(total: int, cells: float) -> float:
    """Log C(total + cells - 1, cells - 1): in how many ways counts can be spread over cells."""
    if cells <= 1:
        return 0.0
    if cells > HUGE_GRID:
        return total * math.log(cells) - math.lgamma(total + 1.0)
    return math.lgamma(total + cells) - math.lgamma(cells) - math.lgamma(total + 1.0)


def log_star(n: int) -> float:
    """log2*(n): the iterated binary logarithm, positive terms only."""
    total, term = 0.0, math.log2(n) if n > 1 else 0.0
    while term > 0:
        total += term
        term = math.log2(term)
    return total


def universal(n: int) -> float:
    """The code length of a positive integer without bound."""
    return math.log(2.86511) + math.log(2) * log_star(n)


@lru_cache(maxsize=64)
def _star_mass(bound: int) -> float:
    """Log of the sum of 2^-log2*(i) for i = 1..bound."""
    i = np.arange(1, bound + 1, dtype=np.float64)
    total = np.zeros(bound)
    term = np.log2(i)
    while (positive := term > 0).any():
        total[positive] += term[positive]
        term = np.log2(np.where(positive, term, 1.0))
    return float(np.log(np.exp2(-total).sum()))


def universal_bounded(n: int, bound: int) -> float:
    """The code length of an integer in 1..bound."""
    return _star_mass(max(bound, 1)) + math.log(2) * log_star(n)


VariableKind = Literal["categorical", "numeric"]


@dataclass(frozen=True, slots=True)
class Variable:
    """One side of a grid.

    Attributes:
        name: what it is called in reports.
        kind: categorical values are grouped, numeric ones are cut into intervals.
        size: how many distinct values it has; numeric codes are in ascending order of the values.
        values: the values' texts (categorical) or numbers (numeric), where known.
    """

    name: str
    kind: VariableKind
    size: int
    values: tuple[object, ...] | None = None

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.kind}, {self.size} values)"


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Counted tuples of at least two variables.

    Attributes:
        variables: the sides.
        codes: (tuples, variables) int32, distinct tuples only.
        weights: how often each tuple was observed, at least 1.
    """

    variables: tuple[Variable, ...]
    codes: NDArray[np.int32]
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Observations({len(self.weights):,} tuples of {len(self.variables)} variables)"

    @property
    def total(self) -> int:
        """The number of observations."""
        return int(self.weights.sum())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values per variable."""
        return tuple(variable.size for variable in self.variables)

    def marginal(self, side: int) -> NDArray[np.int64]:
        """How often each value of one variable was observed."""
        counts = np.bincount(self.codes[:, side], self.weights, self.variables[side].size)
        return counts.astype(np.int64)


def observe(
    variables: Sequence[Variable],
    codes: Sequence[NDArray[np.int32]],
    weights: NDArray[np.int64] | None = None,
) -> Observations:
    """Count the distinct tuples of ``codes``; tuples of weight 0 are left out.

    Raises:
        InputError: fewer than two variables, no observation, or weights that are not counts.
    """
    if len(variables) < 2:
        raise InputError("Co-clustering needs at least two variables.")
    matrix = np.column_stack([np.asarray(column, dtype=np.int32) for column in codes])
    if weights is None:
        weights = np.ones(len(matrix), dtype=np.int64)
    if not np.issubdtype(np.asarray(weights).dtype, np.integer) or (weights < 0).any():
        raise InputError("Weights must be counts (integers of at least 0): round them first.")
    keep = weights > 0
    matrix, weights = matrix[keep], np.asarray(weights, dtype=np.int64)[keep]
    if not len(matrix):
        raise InputError("There is no observation to co-cluster.")
    distinct, summed = sum_duplicates(matrix, weights)
    return Observations(tuple(variables), distinct, summed)


_EXACT = 2**53  # sums below are exact as floats


def sum_duplicates(
    codes: NDArray[np.int32], weights: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The distinct rows of ``codes`` in ascending order and the sum of their weights."""
    sizes = tuple(int(side) + 1 for side in codes.max(axis=0, initial=0))
    if math.prod(sizes) <= len(codes) and int(weights.sum()) < _EXACT:  # counted faster than sorted
        held = np.bincount(np.ravel_multi_index(tuple(codes.T), sizes), weights)
        cells = np.flatnonzero(held)
        distinct = np.column_stack(np.unravel_index(cells, sizes))
        return distinct.astype(np.int32), held[cells].astype(np.int64)
    order = np.lexsort(codes.T[::-1])
    sorted_codes = codes[order]
    new = np.ones(len(codes), dtype=bool)
    new[1:] = (sorted_codes[1:] != sorted_codes[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    return (
        np.ascontiguousarray(sorted_codes[starts]),
        np.add.reduceat(weights[order], starts).astype(np.int64),
    )


class PartSizes:
    """The sizes of the parts of one variable; an owner of several values counts once in a part."""

    def __init__(self, part: NDArray[np.int32], owner: NDArray[np.int32] | None = None) -> None:
        self._part = part.astype(np.int64)
        self._owner = owner
        self.alive = np.ones(int(part.max()) + 1, dtype=bool)
        self.sizes = self._count_parts()

    def __repr__(self) -> str:
        return f"PartSizes({int(self.alive.sum())} parts)"

    def fewest(self) -> int:
        """The size of the smallest part."""
        return int(self.sizes[self.alive].min())

    def join(self, kept: int, gone: int) -> None:
        """Let one part take in another."""
        self.alive[gone] = False
        if self._owner is None:
            self.sizes[kept] += self.sizes[gone]
            return
        self._part[self._part == gone] = kept
        self.sizes[kept] = len(np.unique(self._owner[self._part == kept]))

    def _count_parts(self) -> NDArray[np.int64]:
        part, count = self._part, len(self.alive)
        if self._owner is not None:
            pairs = np.unique(part << 32 | self._owner)
            part = pairs >> 32
        return np.bincount(part, minlength=count)


# Very many values: so many of the largest categorical variable are drawn that about ROOM
# observations are about them. The search runs on these; every other value joins the part it fits
# best, and the whole is improved by moves and merges, at the cost of all observations.
ROOM = 300_000
FEWEST, MOST = 3_000, 60_000


def side_to_sample(observations: Observations) -> tuple[int, int] | None:
    """The largest categorical variable and how many values to draw, where it has more."""
    sizes = [v.size if v.kind == "categorical" else 0 for v in observations.variables]
    largest = int(np.argmax(sizes))
    fitting = ROOM * sizes[largest] // len(observations.codes)
    wanted = min(max(fitting, FEWEST), MOST)
    return (largest, wanted) if sizes[largest] > wanted else None


def sample_values(
    observations: Observations, side: int, wanted: int, random: np.random.Generator
) -> tuple[Observations, NDArray[np.int64]]:
    """The observations of ``wanted`` values of one variable, and these values."""
    variable = observations.variables[side]
    chosen = np.sort(random.choice(variable.size, wanted, replace=False))
    place = np.full(variable.size, -1, dtype=np.int32)
    place[chosen] = np.arange(wanted, dtype=np.int32)
    keep = place[observations.codes[:, side]] >= 0
    codes = observations.codes[keep].copy()
    codes[:, side] = place[codes[:, side]]
    variables = list(observations.variables)
    variables[side] = Variable(variable.name, variable.kind, wanted)
    return Observations(tuple(variables), codes, observations.weights[keep]), chosen


def extend_partition(
    search: GridSearch, side: int, chosen: NDArray[np.int64], found: GridPartition
) -> GridPartition:
    """The partition of all values: those not drawn join the part that costs least."""
    from halfmask.kernels.coclustering.one_variable import place_values

    part = np.full(search.criterion.observations.sizes[side], -1, dtype=np.int32)
    part[chosen] = found[side]
    partition = (*found[:side], part, *found[side + 1 :])
    values = search.profile(side, partition)
    parts = int(found[side].max()) + 1
    place_values(values, part, parts, search.factorials)
    return partition
