"""The search for the cheapest grid: several starts, then a variable neighbourhood search.

Plain greedy merging stops early (on Iris at 5707.82 where 5646.82 is reached), so that merges
alternate with moves of single values, moves against the finest partition of the other variables,
and annealing.
"""

from __future__ import annotations

import itertools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering import observations as sample
from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.grid import Grid
from halfmask.coclustering.hierarchy import merge_parts, renumber
from halfmask.coclustering.search import BLOCKS, COLD, MERGE_LIMIT, ROOM, GridSearch
from halfmask.errors import ParameterError
from halfmask.table.hierarchy_finder import ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import CriterionForm, GridPartition
    from halfmask.coclustering.observations import Observations, Variable

    PricedGrid = tuple[float, GridPartition]
    GridMove = Callable[[GridSearch, GridPartition], GridPartition]


MOST = 3000  # grids that are tried one by one


def is_tiny(criterion: GridCriterion) -> bool:
    """Whether there are few enough grids to try all of them."""
    total = 1
    for variable in criterion.observations.variables:
        total *= _count(variable)
        if total > MOST:
            return False
    return True


def best_partition(criterion: GridCriterion) -> GridPartition:
    """The partition of each variable whose grid costs least; among equals the first."""
    sides = [list(_partitions(v)) for v in criterion.observations.variables]
    return min(
        itertools.product(*sides),
        key=criterion.least,
    )


def _count(variable: Variable) -> int:
    """How many partitions there are: intervals, or the Bell number of sets."""
    if variable.size > 12:
        return MOST + 1
    if variable.kind == "numeric":
        return int(2 ** (variable.size - 1))
    bell = [1]
    for n in range(variable.size):
        bell.append(sum(math.comb(n, k) * bell[k] for k in range(n + 1)))
    return bell[variable.size]


def _partitions(variable: Variable) -> Iterator[NDArray[np.int32]]:
    """Every partition, its parts numbered by first occurrence."""
    if variable.kind == "numeric":
        for cuts in itertools.product((0, 1), repeat=variable.size - 1):
            yield np.concatenate([[0], np.cumsum(cuts)]).astype(np.int32)
        return
    names = [0]

    def extend(place: int) -> Iterator[NDArray[np.int32]]:
        if place == variable.size:
            yield np.array(names, dtype=np.int32)
            return
        for name in range(max(names) + 2):
            names.append(name)
            yield from extend(place + 1)
            names.pop()

    yield from extend(1)


SMALL = MERGE_LIMIT // 4  # variables up to this many values start with every value apart
_SWEEPS = 40
_FEW = 17  # parts that values are thrown into anew, fewer than this
_HOT, _STEPS, _STEP_SWEEPS = 2.0, 12, 6  # the first temperature, its steps down, sweeps at each
_FREQUENT = 16  # values at most that are not garbage, to begin with
_CUTS_AFTER = 4  # so many steps of cooling, numeric variables are cut anew
_TUPLES = 40_000  # distinct tuples that a round works through; small tables get more turns for it
_TURNS = 40  # at most, without a gain
_LONGER = 4  # times as many turns at most, where they gain
_BLOCKS_OF_TUPLE = 100  # pairs of ends of an interval that cost as much as a tuple
TARGETS = (0.85, 1.0, 1.0, 1.15)  # parts after a split and merge, against those before


def null_grid(search: GridSearch) -> GridPartition:
    """The grid with one cell."""
    return tuple(np.zeros(size, dtype=np.int32) for size in search.criterion.observations.sizes)


def finest_partition(search: GridSearch, side: int, limit: int) -> NDArray[np.int32]:
    """The finest partition of one variable with at most ``limit`` parts.

    Few values stay single; many are cut into intervals of equal frequency, or, where they have no
    order, thrown together at random.
    """
    observed = search.criterion.observations
    size = observed.sizes[side]
    if size <= limit:
        return np.arange(size, dtype=np.int32)
    if search.numeric(side):
        counts = observed.marginal(side)
        middle = np.cumsum(counts) - counts / 2
        return renumber((middle * limit / counts.sum()).astype(np.int32))
    return (search.random.permutation(size) % limit).astype(np.int32)


def first_partition(search: GridSearch, parts: int) -> GridPartition:
    """A start: small variables at their finest, large ones annealed against these."""
    observed = search.criterion.observations
    limits = []
    for side, size in enumerate(observed.sizes):
        if search.numeric(side):
            limits.append(min(size, int(observed.total**0.5) + 1, parts))
        else:
            limits.append(size if size <= SMALL else parts)
    partition = tuple(finest_partition(search, side, limits[side]) for side in range(len(limits)))
    large = [s for s in range(len(limits)) if not search.numeric(s) and observed.sizes[s] > SMALL]
    for _ in range(2 if len(large) > 1 else 1):
        for side in large:
            apart = _others_finest(search, side, partition)
            weight = observed.total / observed.sizes[side]
            found = search.anneal(side, apart, max(1.0, weight / 3), _SWEEPS)[side]
            partition = _with(partition, side, found)
    return partition


def against_finest(search: GridSearch, partition: GridPartition) -> GridPartition:
    """Move values of each variable while the others stand at their finest."""
    for side, size in enumerate(search.criterion.observations.sizes):
        if not search.numeric(side) and size > 64:
            moved = search.improve(side, _others_finest(search, side, partition), sweeps=8)
            partition = _with(partition, side, moved[side])
    return partition


def reheat(search: GridSearch, partition: GridPartition) -> GridPartition:
    """Let all values wander a little around the best grid found."""
    heat = float(search.random.choice([0.7, 1.0, 1.5]))
    for side in _movable(search, partition):
        partition = search.anneal(side, partition, heat, _SWEEPS)
    return partition


def resplit(search: GridSearch, partition: GridPartition) -> GridPartition:
    """Cut every part in two at random, let values wander, merge back, let them wander again."""
    for side in _movable(search, partition):
        assigned = partition[side]
        parts = int(assigned.max()) + 1
        if 2 * parts > len(assigned):
            continue
        half = search.random.random(len(assigned)) < 0.5
        split = renumber(np.where(half, assigned + parts, assigned).astype(np.int32))
        partition = search.anneal(side, _with(partition, side, split), 1.0, _SWEEPS)
        target = max(2, round(parts * float(search.random.choice(TARGETS))))
        frozen = [k != side for k in range(len(partition))]
        stop = [target if k == side else 1 for k in range(len(partition))]
        path = merge_parts(search.criterion, partition, cost=0.0, frozen=frozen, stop_at=stop)
        partition = search.anneal(side, path.partition(len(path.steps)), 1.0, _SWEEPS)
    return partition


def reset(search: GridSearch, partition: GridPartition) -> GridPartition:
    """Take some variables to their finest partition and merge each back, the others held fixed."""
    sides = search.random.permutation(len(partition)).tolist()
    for side in sides[: int(search.random.integers(1, len(partition) + 1))]:
        size = len(partition[side])
        limit = size if size <= SMALL else int(search.random.choice([8, 32, 128]))
        if size > SMALL and not search.numeric(side):
            continue
        partition = _with(partition, side, finest_partition(search, side, limit))
        frozen = [k != side for k in range(len(partition))]
        partition = merge_parts(search.criterion, partition, cost=0.0, frozen=frozen).best()[1]
        partition = search.improve(side, partition)
    return partition


def restart(search: GridSearch, partition: GridPartition) -> GridPartition:
    """Throw values into few parts at random and cool all variables together.

    Sparse tables need it: merged from single values, parts that share no cell are never found.
    """
    random = search.random
    few = tuple(
        finest_partition(search, side, int(random.integers(2, _FEW)))
        if search.numeric(side)
        else random.integers(0, int(random.integers(2, _FEW)), len(assigned)).astype(np.int32)
        for side, assigned in enumerate(partition)
    )
    found: GridPartition = tuple(renumber(side) for side in few)
    heats = np.geomspace(_HOT, COLD, _STEPS + 1)
    for step, (heat, cooler) in enumerate(itertools.pairwise(heats.tolist())):
        for side in _movable(search, found):
            found = search.anneal(side, found, heat, _STEP_SWEEPS, cooler)
        if step % _CUTS_AFTER == _CUTS_AFTER - 1:
            for side in range(len(found)):
                found = search.improve(side, found) if search.numeric(side) else found
    return found


def sift(search: GridSearch, partition: GridPartition) -> GridPartition:
    """Gather the rare values of some variables as garbage, the frequent ones in few parts."""
    random = search.random
    for side in random.permutation(len(partition))[: int(random.integers(1, len(partition) + 1))]:
        size = len(partition[side])
        if search.numeric(side) or size <= _FREQUENT:
            continue
        often = np.argsort(-search.criterion.observations.marginal(side), kind="stable")
        often = often[: int(random.integers(2, max(3, min(size // 2, _FREQUENT))))]
        part = np.zeros(size, dtype=np.int32)
        part[often] = random.integers(1, int(random.integers(2, 6)), len(often)) + 1
        partition = search.sort_garbage(_with(partition, side, renumber(part)))
    return partition


def merge_again(search: GridSearch, side: int, partition: GridPartition) -> GridPartition:
    """Take all variables but ``side`` to fine partitions and merge them back."""
    apart = tuple(
        found if k == side else finest_partition(search, k, MERGE_LIMIT)
        for k, found in enumerate(partition)
    )
    frozen = [k == side for k in range(len(partition))]
    return merge_parts(search.criterion, apart, cost=0.0, frozen=frozen).best()[1]


def shake(search: GridSearch, partition: GridPartition) -> GridPartition:
    """Split parts at random, send some values elsewhere, cut intervals finer."""
    random = search.random
    strength = float(random.choice([1.0, 0.5, 0.25, 0.1]))
    out = list(partition)
    for side, assigned in enumerate(partition):
        size, parts = len(assigned), int(assigned.max()) + 1
        if search.numeric(side):
            out[side] = _finer_intervals(search, assigned)
        elif size <= SMALL and random.random() < 0.5:
            out[side] = np.arange(size, dtype=np.int32)
        else:
            half = (random.random(parts) < strength)[assigned] & (random.random(size) < 0.5)
            moved = np.where(half, assigned + parts, assigned)
            stray = random.random(size) < strength * 0.1
            moved[stray] = random.integers(0, parts, int(stray.sum()))
            out[side] = renumber(moved.astype(np.int32))
    return against_finest(search, tuple(out))


def _movable(search: GridSearch, partition: GridPartition) -> list[int]:
    """The categorical variables with more than one part, in random order."""
    sides = search.random.permutation(len(partition)).tolist()
    return [s for s in sides if not search.numeric(s) and int(partition[s].max()) > 0]


def _with(partition: GridPartition, side: int, assigned: NDArray[np.int32]) -> GridPartition:
    return (*partition[:side], assigned, *partition[side + 1 :])


def _others_finest(search: GridSearch, side: int, partition: GridPartition) -> GridPartition:
    """The grid with the one other variable at its finest, as memory allows."""
    if len(partition) != 2:
        return partition
    limit = max(2, ROOM // (int(partition[side].max()) + 17))  # parts may open, at most 16
    return _with(partition, 1 - side, finest_partition(search, 1 - side, limit))


def _finer_intervals(search: GridSearch, assigned: NDArray[np.int32]) -> NDArray[np.int32]:
    """The given cuts and some more."""
    size = len(assigned)
    new = np.zeros(size, dtype=bool)
    new[1:] = np.diff(assigned) != 0
    new[search.random.integers(0, size, min(size, 16))] = True
    new[0] = False
    return np.asarray(np.cumsum(new), dtype=np.int32)


# how many parts a large variable is first thrown into, in pairs that run side by side
START_PARTS = ((8, 16), (24, 40), (64, 96), (160, 256), (400, 640))
# how the best grid is left, two ways side by side: where all variables are small, and where not
_SMALL: tuple[tuple[GridMove, GridMove], ...] = (
    (resplit, restart),
    (shake, reset),
    (restart, restart),
)
_GARBAGE: tuple[tuple[GridMove, GridMove], ...] = ((sift, sift),)  # where a group may be garbage
_LARGE: tuple[tuple[GridMove, GridMove], ...] = (
    (resplit, reheat),
    (resplit, resplit),
)
_GAIN = 1e-9


def optimize_grid(
    observations: Observations,
    *,
    criterion: CriterionForm = "published",
    seed: int = 0,
    rounds: int = ROUNDS,
    time_limit: float | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Grid:
    """Find the grid of least cost; the same seed and rounds give the same grid.

    Args:
        observations: counted tuples of at least two variables.
        criterion: the form of the cost, ``"published"`` or ``"khiops11"``.
        seed: the source of all random choices.
        rounds: how often the best grid is left and searched anew; small tables up to 24 times as
            often.
        time_limit: seconds after which the best grid so far is returned; what is found then
            depends on the machine's speed.
        progress: called with the round and the best cost after each round, the starts being 0.

    Returns the best grid found (the proven best where so few grids are possible that all can be
    tried); the null grid where the variables tell nothing of each other.
    """
    if criterion not in ("published", "khiops11"):
        raise ParameterError("criterion", criterion, "published or khiops11")
    if rounds < 0:
        raise ParameterError("rounds", rounds, "0 or more")
    if time_limit is not None and time_limit <= 0:
        raise ParameterError("time_limit", time_limit, "seconds above 0, or None")
    deadline = time.monotonic() + (math.inf if time_limit is None else time_limit)
    judge = GridCriterion(observations, criterion)
    if is_tiny(judge):
        return Grid.of(judge, best_partition(judge))
    search = GridSearch.of(judge, seed, deadline)
    sampled = sample.side_to_sample(observations)
    if sampled is None:
        best = _search(search, rounds, progress)[1]
    else:
        side, wanted = sampled
        part, chosen = sample.sample_values(observations, side, wanted, search.random)
        smaller = GridSearch.of(GridCriterion(part, criterion), seed, deadline)
        found = _search(smaller, rounds, progress)[1]
        whole = sample.extend_partition(search, side, chosen, found)
        whole = merge_again(search, side, whole)
        best = _better((judge.null(), null_grid(search)), [search.converge(whole)])[1]
    return Grid.of(judge, best)


def _search(
    search: GridSearch, rounds: int, progress: Callable[[int, float], None] | None
) -> PricedGrid:
    """The starts and then the rounds, two searches side by side."""
    variables = search.criterion.observations.variables
    large = any(v.kind == "categorical" and v.size > SMALL for v in variables)
    garbage = () if search.criterion.form == "published" else _GARBAGE
    kinds = itertools.cycle(_LARGE if large else (*_SMALL, *garbage))
    turns = 1 if large else _turns(search.criterion.observations)
    with ThreadPoolExecutor(2) as pool, search.watched():
        best = _search_starts(search, pool)
        for number in range(rounds + 1):
            if progress is not None:
                progress(number, best[0])
            if number == rounds:
                break
            left, most = turns, turns if large else _LONGER * turns
            while left and most and not search.late:
                moves = next(kinds)
                found = pool.map(_round, search.fork(len(moves)), moves, [best[1]] * len(moves))
                before, best = best[0], _better(best, found)
                left, most = turns if best[0] < before else left - 1, most - 1
    return best


def _turns(observations: Observations) -> int:
    """In how many ways small tables are tried in a round: the more, the less one of them costs."""
    blocks = sum(min(v.size, BLOCKS) ** 2 for v in observations.variables if v.kind == "numeric")
    return max(1, min(_TURNS, _TUPLES // (len(observations.weights) + blocks // _BLOCKS_OF_TUPLE)))


def _round(search: GridSearch, move: GridMove, partition: GridPartition) -> PricedGrid:
    return search.converge(move(search, partition))


def _search_starts(search: GridSearch, pool: ThreadPoolExecutor) -> PricedGrid:
    """The best of the null grid and of searches from several fine grids, until more do not help."""
    best: PricedGrid = (search.criterion.null(), null_grid(search))
    largest = max(search.criterion.observations.sizes)
    for number, pair in enumerate(START_PARTS):
        wanted = [parts for parts in pair if number == 0 or parts < largest]
        if not wanted or search.late:
            break
        tasks = zip(search.fork(len(wanted)), wanted, strict=True)
        found = list(pool.map(lambda task: task[0].converge(first_partition(*task)), tasks))
        before = best[0]
        best = _better(best, found)
        # Where the finer start of a pair ends dearer, still finer ones would too.
        if number > 0 and (best[0] >= before or found[-1][0] > found[0][0]):
            break
    return best


def _better(best: PricedGrid, found: Iterable[PricedGrid]) -> PricedGrid:
    """The cheapest; among equals the first."""
    for candidate in found:
        if candidate[0] < best[0] - _GAIN:
            best = candidate
    return best
