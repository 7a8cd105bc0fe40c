"""A small table to be divided optimally: all distances, all demands, and a deadline.

Classes as columns of a set partitioning program: choose some so that each row is in one.

The optimum of objectives that add up over classes: DBIL and WCSD.

Column generation: a linear program over the classes found so far prices the rows; classes that cost
less than the prices of their rows are added until there are none. Its value then is a lower bound.
All classes that could take part in a better solution are those whose cost exceeds their prices by
less than what separates the best solution from the bound; among these the optimum is chosen.

The optimum of the split: the largest distance that can lie between all classes.

Rows nearer than the split stand together, so classes are unions of the components of the graph of
near rows. Splits are tried from the largest down; whether components can be grouped so that each
group is large enough is a small integer program: each group is led by its most demanding component.

The optimum of the diameter: the tightest limit under which all rows find a class.

The limit is one of the distances. Below the distance of each row to the nearest rows that could
just fill its class nothing works, which is often the answer. Between that and the best division
known, limits are tried by halving: a division under the limit lowers one side; a linear program
over all classes under the limit that cannot cover every row raises the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.partition import class_limit, sorted_classes

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from halfmask.anonymize.partition.links import PublishedClasses
    from halfmask.kernels.partition.pricing import Rules


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """What is to be divided.

    Attributes:
        far: all distances; those of rows that may not stand together are ``apart``.
        rules: what each row demands, and which rows stand together.
        deadline: when to stop, as ``time.monotonic`` counts.
        apart: more than any class may cost.
        published: which classes a reader takes for one; None: that does not count.
    """

    far: NDArray[np.float64]
    rules: Rules
    deadline: float = np.inf
    apart: float = np.inf
    published: PublishedClasses | None = None

    def __len__(self) -> int:
        return len(self.k)

    @property
    def k(self) -> NDArray[np.int64]:
        """How many rows each row demands."""
        return self.rules.demands.k

    @property
    def dearest(self) -> float:
        """What a row that finds no class costs: more than any division."""
        near = self.far[self.far < self.apart].max(initial=0.0)
        return 2.0 * len(self) ** 2 * (float(near) + 1.0)

    def steps(self, usual: int) -> int:
        """How many steps a search may take; they are longer where values and bonds count."""
        return usual if self.rules.plain else usual // 4

    def alone(self) -> NDArray[np.bool_]:
        """Which rows may stand alone."""
        d, bond, bonds = self.rules
        found = d.k <= 1
        for s in range(d.values.shape[1]):
            known, own = d.values[:, s] >= 0, np.maximum(d.values[:, s], 0)
            moved = np.where(known, 1.0 - d.shares[s, own], 1.0)
            found &= (d.l[:, s] <= known) & ((d.t[:, s] >= 1.0) | (moved <= d.t[:, s]))
        free = bond < 0
        return np.asarray(found & (free | (np.append(bonds, 0)[bond] == 1)))

    @property
    def left(self) -> float:
        """Seconds that are left; at least a little."""
        return max(self.deadline - time.monotonic(), 0.05)

    @property
    def over(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.deadline

    def nearest(self) -> NDArray[np.float64]:
        """Per row, how far the rows reach that could just fill its class: no class is tighter."""
        ranked = np.sort(self.far, axis=1)  # the row itself stands first
        return np.asarray(ranked[np.arange(len(self)), np.minimum(self.k, len(self)) - 1])


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best division found and how far the optimum can be from it.

    Attributes:
        ids: the class of each row.
        value: its objective.
        bound: the proven bound of the objective on the other side.
    """

    ids: NDArray[np.int64]
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """The proven distance to the optimum."""
        gap = abs(self.value - self.bound)
        return 0.0 if gap <= 1e-7 * max(1.0, abs(self.value)) else gap


class ClassPool:
    """A growing set of different classes with their costs."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.members: list[tuple[int, ...]] = []
        self.costs: list[float] = []
        self._known: set[tuple[int, ...]] = set()

    def __len__(self) -> int:
        return len(self.members)

    def add(self, members: NDArray[np.int64], starts: NDArray[np.int64], costs: Any) -> int:
        """Add classes given one after the other; how many were new."""
        before = len(self)
        flat, begins = members.tolist(), starts.tolist()
        for i, cost in enumerate(costs.tolist()):
            key = tuple(sorted(flat[begins[i] : begins[i + 1]]))
            if key not in self._known:
                self._known.add(key)
                self.members.append(key)
                self.costs.append(cost)
        return len(self) - before

    def matrix(self) -> Any:
        """The rows in each column."""
        from scipy.sparse import csc_array

        lengths = np.fromiter((len(m) for m in self.members), dtype=np.int64, count=len(self))
        rows = np.fromiter((r for m in self.members for r in m), np.int64, int(lengths.sum()))
        pointers = np.concatenate(([0], np.cumsum(lengths)))
        ones = np.ones(len(rows))
        return csc_array((ones, rows, pointers), shape=(self.rows, len(self)))

    def below(self, prices: NDArray[np.float64], most: float, count: int) -> tuple[ClassPool, bool]:
        """The classes that cost less than the prices of their rows and ``most``.

        With more than ``count`` of them those that cost least beyond the prices; whether all are
        among them is told too.
        """
        beyond = np.array(self.costs) - self.matrix().T @ prices
        return self._least(beyond, np.flatnonzero(beyond < most), count)

    def smallest(self, count: int) -> tuple[ClassPool, bool]:
        """At most ``count`` classes, those of fewest rows, and whether these are all."""
        lengths = np.fromiter((len(m) for m in self.members), dtype=np.float64, count=len(self))
        return self._least(lengths, np.arange(len(self)), count)

    def _least(
        self, weights: NDArray[np.float64], picked: NDArray[np.int64], count: int
    ) -> tuple[ClassPool, bool]:
        every = len(picked) <= count
        if not every:
            picked = picked[np.argpartition(weights[picked], count)[:count]]
        part = ClassPool(self.rows)
        part.members = [self.members[i] for i in picked.tolist()]
        part.costs = [self.costs[i] for i in picked.tolist()]
        return part, every

    def relax(self, seconds: float) -> tuple[float, NDArray[np.float64]] | None:
        """The optimum if classes could be taken in part, and the price of each row.

        None: it is not known after so many seconds.
        """
        from scipy.optimize import linprog

        result = linprog(
            np.array(self.costs), A_eq=self.matrix(), b_eq=np.ones(self.rows), method="highs",
            options={"time_limit": seconds},
        )  # fmt: skip
        if result.status != 0:
            return None
        return float(result.fun), np.asarray(result.eqlin.marginals)

    def choose(
        self, seconds: float, published: PublishedClasses | None
    ) -> tuple[NDArray[np.int64] | None, float, float]:
        """The best whole classes among these: each row's class, their cost, and a lower bound.

        Of classes that ``published`` takes for one, no two are chosen that hold rows to keep apart.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        constraints = [LinearConstraint(self.matrix(), 1, 1)]
        exclusive = None if published is None else published.exclusive(self.members)
        if exclusive is not None:
            constraints.append(LinearConstraint(exclusive, -np.inf, 1))
        result = milp(
            np.array(self.costs),
            integrality=np.ones(len(self)),
            bounds=Bounds(0, 1),
            constraints=constraints,
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        bound = getattr(result, "mip_dual_bound", None)
        lower = -np.inf if bound is None else float(bound)
        if result.x is None:
            return None, np.inf, np.inf if result.status == 2 else lower
        ids = np.full(self.rows, -1, dtype=np.int64)
        picked = np.flatnonzero(result.x > 0.5)
        for number, column in enumerate(picked.tolist()):
            ids[list(self.members[column])] = number
        return ids, float(sum(self.costs[c] for c in picked)), lower


_EPS = 1e-9
_BATCH = 4_000
_STEPS = 20_000_000  # steps of one search for classes, about ten seconds
_LISTED = 400_000  # classes among which the optimum is chosen at the end
_FEW, _NEAREST = 250, 4_000  # classes among which it is looked for before that


def smallest_sum(instance: Instance, kind: int, starts: list[NDArray[np.int64]]) -> Optimum:
    """The division of least cost; ``starts`` are valid divisions to begin with."""
    columns = ClassPool(len(instance))
    for ids in starts:
        order, begins = sorted_classes(ids)
        costs = np.array([cost_of(instance, kind, one) for one in np.split(order, begins[1:-1])])
        columns.add(order, begins, costs)
    if starts:
        best = min(starts, key=lambda ids: total_cost(instance, kind, ids))
        value = total_cost(instance, kind, best)
    else:
        best, value = _each_alone(instance, columns)
    bound, prices = _generate(instance, kind, columns)
    if value - bound > _EPS and not instance.over:
        best, value, _ = _chosen(instance, columns, (best, value, bound), prices, _NEAREST)
    if value - bound > _EPS and not instance.over:
        best, value, bound = _finish(instance, kind, (best, value, bound), prices)
    return Optimum(best, value, min(bound, value))


def _each_alone(instance: Instance, columns: ClassPool) -> tuple[NDArray[np.int64], float]:
    """A class for each row, dear where the row may not stand alone, all where some look alike."""
    n = len(instance)
    costs = np.where(instance.alone(), 0.0, instance.dearest)
    columns.add(np.arange(n), np.arange(n + 1), costs)
    alike = instance.published is not None and instance.published.alike(np.arange(n)) is not None
    return np.arange(n), float(costs.sum()) + alike * instance.dearest


def total_cost(instance: Instance, kind: int, ids: NDArray[np.int64]) -> float:
    """What a division costs."""
    order, begins = sorted_classes(ids)
    parts = np.split(order, begins[1:-1])
    return float(sum(cost_of(instance, kind, one) for one in parts))


def cost_of(instance: Instance, kind: int, rows: NDArray[np.int64]) -> float:
    """What one class costs."""
    from halfmask.kernels.partition import pricing

    inside = instance.far[np.ix_(rows, rows)]
    if kind == pricing.WCSD:
        return float(np.triu(inside, 1).sum())
    return float(len(rows) * inside.max(initial=0.0)) if kind == pricing.DBIL else 0.0


def _generate(
    instance: Instance, kind: int, columns: ClassPool
) -> tuple[float, NDArray[np.float64]]:
    """Add classes until none improves the linear program; its proven bound, and the prices.

    Where it ends early, some class may still cost less than these prices.
    """
    bound, prices = 0.0, np.zeros(len(instance))
    limit, bar = class_limit(instance.k), -_EPS
    while True:
        solved = columns.relax(instance.left)
        if solved is None:
            return bound, prices
        relaxed, prices = solved
        (rows, starts, costs, lowest, whole), bar = _price_classes(instance, kind, prices, bar)
        if whole:  # no more than ``limit`` classes can each lower the bound by ``lowest``
            bound = max(bound, relaxed + limit * min(lowest, 0.0))
        if columns.add(rows, starts, costs) == 0 or instance.over:
            return bound, prices
        if not whole:  # of so many only those that promise at least half as much as the best
            bar = min(bar, lowest / 2)


def _price_classes(
    instance: Instance, kind: int, prices: NDArray[np.float64], bar: float
) -> tuple[tuple[Any, Any, Any, Any, Any], float]:
    """Classes that cost less than their prices by more than the bar; it falls until there are some.

    By eighths, as one more search costs less than too many classes; from a millionth on, where a
    bound gains nothing, and after a search that was cut short, at once to the least bar. Nothing
    found by a whole search says that no class costs less than its prices.
    """
    from halfmask.kernels.partition import pricing

    while True:
        found = pricing.priced_classes(
            instance.far, instance.rules, prices, pricing.ClassSearch(kind, np.inf, bar), _BATCH,
            instance.steps(_STEPS), instance.deadline,
        )  # fmt: skip
        _, _, costs, _, whole = found
        if len(costs) or bar == -_EPS:
            return found, bar
        bar = bar / 8 if whole and bar < -1e-6 else -_EPS


def _finish(
    instance: Instance,
    kind: int,
    known: tuple[NDArray[np.int64], float, float],
    prices: NDArray[np.float64],
) -> tuple[NDArray[np.int64], float, float]:
    """Choose among all classes that a better solution can hold.

    That these are all is proven only if no class costs less than its prices: else one that costs
    far more can be made up for by others.
    """
    from halfmask.kernels.partition import pricing

    best, value, bound = known
    wanted = pricing.ClassSearch(kind, np.inf, value - float(prices.sum()) + _EPS)
    rows, starts, costs, lowest, whole = pricing.priced_classes(
        instance.far, instance.rules, prices, wanted, _LISTED, instance.steps(20 * _STEPS),
        instance.deadline,
    )  # fmt: skip
    if not whole or instance.over:
        return known
    candidates = ClassPool(len(instance))
    candidates.add(rows, starts, costs)
    if value >= instance.dearest:
        _each_alone(instance, candidates)
    else:
        order, begins = sorted_classes(best)
        own = [cost_of(instance, kind, one) for one in np.split(order, begins[1:-1])]
        candidates.add(order, begins, np.array(own))
    best, value, proven = _chosen(instance, candidates, known, prices, len(candidates))
    return best, value, proven if lowest >= -_EPS else bound


def _chosen(
    instance: Instance,
    columns: ClassPool,
    known: tuple[NDArray[np.int64], float, float],
    prices: NDArray[np.float64],
    most: int,
) -> tuple[NDArray[np.int64], float, float]:
    """Choose among classes, first few that cost least beyond their prices, then up to ``most``.

    Where no class costs less than its prices, a solution that costs less than the best one known
    holds no class that costs as much beyond its prices as that one does, so each better one leaves
    fewer to choose among. Elsewhere the bound is none.
    """
    best, value, bound = known
    paid, count = float(prices.sum()), _FEW
    while value - bound > _EPS and not instance.over:
        some, every = columns.below(prices, value - paid + _EPS, count)
        ids, cost, lower = some.choose(
            instance.left if every else min(instance.left, 10.0), instance.published
        )
        before = value
        if ids is not None and cost < value - _EPS:
            best, value = ids, cost
        if every:
            return best, value, max(bound, min(lower, value))
        if value == before:
            if count >= most:
                break
            count = min(4 * count, most)
    return best, value, bound


def largest_split(instance: Instance, least: int = 2) -> Optimum:
    """The division whose classes are farthest apart, with at least ``least`` classes.

    Where that many classes are not possible all rows form one class, whose split is 0.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    n = len(instance)
    # Zero means no edge to SciPy, so that distances are shifted.
    tree = minimum_spanning_tree(instance.far + 1.0).tocoo()
    edges = sorted(
        (float(w) - 1.0, int(i), int(j))
        for w, i, j in zip(tree.data, tree.row, tree.col, strict=True)
    )
    weights = np.unique([weight for weight, _, _ in edges])
    low, high, best = 0, len(weights), None
    while low < high:  # finer components can only be grouped in more ways
        middle = (low + high) // 2
        split = float(weights[len(weights) - 1 - middle])
        grouped = _group_components(instance, _components(n, edges, split), least)
        if grouped is None:
            low = middle + 1
        else:
            best, high = (grouped, split), middle
        if instance.over and best is not None:
            bound = float(weights[len(weights) - 1 - low])
            return Optimum(best[0], best[1], bound)
    if best is None:
        return Optimum(np.zeros(n, dtype=np.int64), 0.0, 0.0)
    return Optimum(best[0], best[1], best[1])


def _components(n: int, edges: list[tuple[float, int, int]], split: float) -> NDArray[np.int64]:
    """The component of each row when rows nearer than ``split`` are joined."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    near = [(i, j) for weight, i, j in edges if weight < split - _EPS]
    rows, columns = ([i for i, _ in near], [j for _, j in near]) if near else ([], [])
    graph = coo_array((np.ones(len(near)), (rows, columns)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _group_components(
    instance: Instance, components: NDArray[np.int64], least: int
) -> NDArray[np.int64] | None:
    """Components grouped into as many valid classes as possible, if that is at least ``least``."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    count = int(components.max()) + 1
    if count < least:
        return None
    sizes = np.bincount(components, minlength=count)
    needs = np.zeros(count, dtype=np.int64)
    np.maximum.at(needs, components, instance.k)
    rank = np.lexsort((np.arange(count), -needs))  # a group is led by the first of its components
    place = np.empty(count, dtype=np.int64)
    place[rank] = np.arange(count)
    pairs = [(c, lead) for c in range(count) for lead in range(count) if place[lead] <= place[c]]
    own = {lead: i for i, (c, lead) in enumerate(pairs) if c == lead}
    rows, columns, data = [], [], []
    for i, (c, lead) in enumerate(pairs):
        rows += [c, count + lead]
        columns += [i, i]
        data += [1.0, float(sizes[c]) - (float(needs[lead]) if c == lead else 0.0)]
    matrix = coo_array((data, (rows, columns)), shape=(2 * count, len(pairs))).tocsc()
    links = [(i, own[lead]) for i, (c, lead) in enumerate(pairs) if c != lead]
    link = coo_array(
        (
            [1.0, -1.0] * len(links),
            ([r for r in range(len(links)) for _ in (0, 1)], [v for pair in links for v in pair]),
        ),
        shape=(len(links), len(pairs)),
    ).tocsc()
    led = np.zeros(len(pairs))
    led[list(own.values())] = 1.0
    lower = np.concatenate((np.ones(count), np.zeros(count)))
    upper = np.concatenate((np.ones(count), np.full(count, np.inf)))
    constraints = [LinearConstraint(matrix, lower, upper), LinearConstraint(led, least, count)]
    if links:
        constraints.append(LinearConstraint(link, -np.inf, 0.0))
    result = milp(
        -led,
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0, 1),
        constraints=constraints,
        options={"time_limit": instance.left, "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return None
    group = np.empty(count, dtype=np.int64)
    for i in np.flatnonzero(result.x > 0.5).tolist():
        group[pairs[i][0]] = pairs[i][1]
    return np.asarray(group[components])


_UNCOVERED = 1.0
_WIDEST_STEPS = 4_000_000
_WIDEST_LISTED = 200_000  # classes that are listed to decide a limit for good
_TRIES = 60


def smallest_diameter(
    instance: Instance, starts: list[NDArray[np.int64]], seed: int | None
) -> Optimum:
    """The division whose widest class is tightest."""
    best = min(starts, key=lambda ids: class_diameter(instance, ids))
    low = float(instance.nearest().max(initial=0.0))
    rng = np.random.default_rng(seed)
    closed: set[float] = set()
    while True:
        high = class_diameter(instance, best)
        limits = np.unique(
            instance.far[(instance.far >= low - _EPS) & (instance.far < high - _EPS)]
        )
        limits = limits[~np.isin(limits, list(closed))]
        if not len(limits) or instance.over:
            return Optimum(best, high, high if not len(limits) and not closed else low)
        limit = float(limits[0] if len(limits) < 3 else limits[len(limits) // 2])
        ids, impossible = _under(instance, limit, rng)
        if ids is not None:
            best = ids
        elif impossible:
            low = float(instance.far[instance.far > limit + _EPS].min(initial=high))
        else:
            closed.add(limit)  # undecided


def class_diameter(instance: Instance, ids: NDArray[np.int64]) -> float:
    """The largest distance inside a class."""
    return float(instance.far[np.equal.outer(ids, ids)].max(initial=0.0))


def _under(
    instance: Instance, limit: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64] | None, bool]:
    """A division under ``limit``, or None and whether there is none."""
    close = instance.far <= limit + _EPS
    for _ in range(_TRIES if instance.rules.plain else 0):
        ids = _greedy(close, instance.k, rng)
        if ids is not None:
            return ids, False
    return _cover_rows(instance, limit)


def _greedy(
    close: NDArray[np.bool_], k: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Give the row with the fewest choices a class of rows close to all of it, again and again."""
    n = len(k)
    ids = np.full(n, -1, dtype=np.int64)
    noise = rng.random(n)
    number = 0
    while (free := ids < 0).any():
        choices = (close & free).sum(axis=1) - k + noise
        row = int(np.argmin(np.where(free, choices, np.inf)))
        members, shared, need = [row], close[row] & free, int(k[row])
        shared[row] = False
        while len(members) < need and shared.any():
            score = np.maximum(k - need, 0) * n + choices
            following = int(np.argmin(np.where(shared, score, np.inf)))
            members.append(following)
            need = max(need, int(k[following]))
            shared &= close[following]
            shared[following] = False
        if len(members) >= need:
            ids[members] = number
            number += 1
            continue
        joined = [c for c in range(number) if close[row][ids == c].all()]
        joined = [c for c in joined if (ids == c).sum() + 1 >= k[row]]
        if not joined:
            return None
        ids[row] = joined[0]
    return ids


def _cover_rows(instance: Instance, limit: float) -> tuple[NDArray[np.int64] | None, bool]:
    """Cover the rows by classes under ``limit``; a linear program may prove that none do."""
    from halfmask.kernels.partition import pricing

    n = len(instance)
    columns = ClassPool(n)
    alone = np.where(instance.alone(), 0.0, _UNCOVERED)
    columns.add(np.arange(n), np.arange(n + 1), alone)
    while True:
        solved = columns.relax(instance.left)
        if solved is None:
            return None, False
        relaxed, prices = solved
        rows, starts, costs, _, whole = pricing.priced_classes(
            instance.far,
            instance.rules,
            prices,
            pricing.ClassSearch(pricing.CLIQUE, limit + _EPS, -_EPS),
            _BATCH,
            _WIDEST_STEPS,
            instance.deadline,
        )
        if relaxed <= _EPS:
            break
        if whole and not len(costs):
            return None, True
        if columns.add(rows, starts, costs) == 0 or instance.over:
            return None, False
    for count in (_FEW, _NEAREST):  # small classes fit together most easily
        some, every = columns.smallest(count)
        ids, cost, _ = some.choose(min(instance.left, 10.0), instance.published)
        if ids is not None and cost < _EPS:
            return ids, False
        if every or instance.over:
            break
    return _among_all(instance, limit)


def _among_all(instance: Instance, limit: float) -> tuple[NDArray[np.int64] | None, bool]:
    """Decide with all classes under ``limit``, where they can be listed."""
    from halfmask.kernels.partition import pricing

    free = np.zeros(len(instance))
    rows, starts, costs, _, whole = pricing.priced_classes(
        instance.far,
        instance.rules,
        free,
        pricing.ClassSearch(pricing.CLIQUE, limit + _EPS, 1.0),
        _WIDEST_LISTED if instance.rules.plain else _WIDEST_LISTED // 10,
        20 * _WIDEST_STEPS,
        instance.deadline,
    )
    if not whole:
        return None, False
    columns = ClassPool(len(instance))
    columns.add(rows, starts, costs)
    ids, _, bound = columns.choose(instance.left, instance.published)
    return ids, ids is None and bound == np.inf
