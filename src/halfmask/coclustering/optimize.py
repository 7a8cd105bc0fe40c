"""The search for the cheapest grid: several starts, then a variable neighbourhood search.

Plain greedy merging stops early (on Iris at 5707.82 where 5646.82 is reached), so that merges
alternate with moves of single values, moves against the finest partition of the other variables,
and annealing.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from halfmask.coclustering import exhaustive, sample, starts
from halfmask.coclustering.criterion import Criterion
from halfmask.coclustering.grid import Grid
from halfmask.coclustering.search import Search
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from halfmask.coclustering.criterion import Form, Partition
    from halfmask.coclustering.observations import Observations

    Found = tuple[float, Partition]
    Move = Callable[[Search, Partition], Partition]

# how many parts a large variable is first thrown into, in pairs that run side by side
START_PARTS = ((8, 16), (24, 40), (64, 96), (160, 256), (400, 640))
# how the best grid is left, two ways side by side: where all variables are small, and where not
_SMALL: tuple[tuple[Move, Move], ...] = (
    (starts.resplit, starts.reheated),
    (starts.shaken, starts.reset),
)
_LARGE: tuple[tuple[Move, Move], ...] = (
    (starts.resplit, starts.reheated),
    (starts.resplit, starts.resplit),
)
_GAIN = 1e-9


def cocluster(
    observations: Observations,
    *,
    criterion: Form = "published",
    seed: int = 0,
    rounds: int = 8,
    time_limit: float | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Grid:
    """Find the grid of least cost; the same seed and rounds give the same grid.

    Args:
        observations: counted tuples of at least two variables.
        criterion: the form of the cost, ``"published"`` or ``"khiops11"``.
        seed: the source of all random choices.
        rounds: how often the best grid is left and searched anew.
        time_limit: seconds after which the best grid so far is returned; what is found then
            depends on the machine's speed.
        progress: called with the round and the best cost after each round, the starts being 0.

    Returns the best grid found (the proven best where so few grids are possible that all can be
    tried); the null grid where the variables tell nothing of each other.
    """
    if rounds < 0:
        raise ParameterError("rounds", rounds, "0 or more")
    if time_limit is not None and time_limit <= 0:
        raise ParameterError("time_limit", time_limit, "seconds above 0, or None")
    deadline = time.monotonic() + (math.inf if time_limit is None else time_limit)
    judge = Criterion(observations, criterion)
    if exhaustive.tiny(judge):
        return Grid.of(judge, exhaustive.best(judge))
    search = Search.of(judge, seed, deadline)
    sampled = sample.side_to_sample(observations)
    if sampled is None:
        best = _searched(search, rounds, progress)[1]
    else:
        side, wanted = sampled
        part, chosen = sample.drawn(observations, side, wanted, search.random)
        smaller = Search.of(Criterion(part, criterion), seed, deadline)
        found = _searched(smaller, rounds, progress)[1]
        whole = sample.extended(search, side, chosen, found)
        whole = starts.merged_anew(search, side, whole)
        best = _better((judge.null(), starts.null(search)), [search.settle(whole)])[1]
    return Grid.of(judge, best)


def _searched(search: Search, rounds: int, progress: Callable[[int, float], None] | None) -> Found:
    """The starts and then the rounds, two searches side by side."""
    large = max(search.criterion.observations.sizes) > starts.SMALL
    kinds = _LARGE if large else _SMALL
    with ThreadPoolExecutor(2) as pool:
        best = _started(search, pool)
        for number in range(rounds + 1):
            if progress is not None:
                progress(number, best[0])
            if number == rounds or search.late:
                break
            moves = kinds[number % len(kinds)]
            found = pool.map(_round, search.fork(len(moves)), moves, [best[1]] * len(moves))
            best = _better(best, found)
    return best


def _round(search: Search, move: Move, partition: Partition) -> Found:
    return search.settle(move(search, partition))


def _started(search: Search, pool: ThreadPoolExecutor) -> Found:
    """The best of the null grid and of searches from several fine grids, until more do not help."""
    best: Found = (search.criterion.null(), starts.null(search))
    largest = max(search.criterion.observations.sizes)
    for number, pair in enumerate(START_PARTS):
        wanted = [parts for parts in pair if number == 0 or parts < largest]
        if not wanted or search.late:
            break
        tasks = zip(search.fork(len(wanted)), wanted, strict=True)
        found = pool.map(lambda task: task[0].settle(starts.first(*task)), tasks)
        before = best[0]
        best = _better(best, found)
        if number > 0 and best[0] >= before:
            break
    return best


def _better(best: Found, found: Iterable[Found]) -> Found:
    """The cheapest; among equals the first."""
    for candidate in found:
        if candidate[0] < best[0] - _GAIN:
            best = candidate
    return best
