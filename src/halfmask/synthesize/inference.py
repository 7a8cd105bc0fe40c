"""A junction tree: overlapping groups of columns that carry exact inference.

Source: Lauritzen, Spiegelhalter, "Local computations with probabilities on graphical structures",
1988.

A distribution over all columns, held as tables of a junction tree that agree with each other.

Every update multiplies clique tables by factors and makes them agree again (Hugin propagation), so
the distribution is always exact and always the product of cliques over separators.

Rows drawn from it without inventing dependence. Columns are drawn clique by clique; within each
group of rows that agree on the columns already drawn, values are dealt in the right shares
(systematic sampling: each value gets its share, up to one row) to the rows in *random order*, since
dealing in a fixed order would tie columns that the model holds independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques of columns and the edges between them, each with the columns that both share.

    Attributes:
        cliques: columns of each clique, in the order of the table.
        edges: (child, parent, shared columns), children first, so that one pass up and one pass
            down make all cliques agree.
        cells: how many cells all cliques have together.
    """

    cliques: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int, tuple[str, ...]], ...]
    cells: int

    def holder(self, columns: Iterable[str]) -> int | None:
        """The smallest clique that holds all ``columns``."""
        wanted = set(columns)
        fitting = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(fitting, key=lambda i: len(self.cliques[i]), default=None)


def junction_tree(sizes: Mapping[str, int], groups: Iterable[Sequence[str]]) -> JunctionTree:
    """The tree in which each of ``groups`` lies inside one clique.

    Example:
        >>> junction_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")]).cliques
        (('a', 'b'), ('b', 'c'))
    """
    cliques = _eliminate(sizes, groups)
    order = {name: i for i, name in enumerate(sizes)}
    listed = sorted(tuple(sorted(clique, key=order.__getitem__)) for clique in cliques)
    edges = _spanning(listed, sizes)
    cells = sum(prod(sizes[name] for name in clique) for clique in listed)
    return JunctionTree(tuple(listed), edges, cells)


def count_cells(sizes: Mapping[str, int], groups: Iterable[Sequence[str]]) -> int:
    """How many cells the junction tree of ``groups`` has, without making it.

    Example:
        >>> count_cells({"a": 2, "b": 2, "c": 3}, [("a", "b"), ("b", "c")])
        10
    """
    return sum(prod(sizes[name] for name in clique) for clique in _eliminate(sizes, groups))


def _eliminate(sizes: Mapping[str, int], groups: Iterable[Sequence[str]]) -> list[set[str]]:
    """Take columns out one by one, cheapest table first, joining what each leaves behind."""
    left: dict[str, set[str]] = {name: set() for name in sizes}
    for group in groups:
        for name in group:
            left[name].update(group)
    for name, near in left.items():
        near.discard(name)
    costs = {n: (prod(sizes[m] for m in near) * sizes[n], n) for n, near in left.items()}
    cliques: list[set[str]] = []
    homes: dict[str, list[set[str]]] = {name: [] for name in sizes}
    while left:
        name = min(costs.values())[1]
        near = left.pop(name)
        del costs[name]
        for other in near:  # only their tables change
            left[other] |= near
            left[other] -= {name, other}
            costs[other] = (prod(sizes[m] for m in left[other]) * sizes[other], other)
        clique = near | {name}
        if not any(clique <= known for known in homes[name]):
            cliques.append(clique)
            for one in clique:
                homes[one].append(clique)
    return cliques


def _spanning(
    cliques: list[tuple[str, ...]], sizes: Mapping[str, int]
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """A maximum spanning tree by shared columns (Prim), as edges from the leaves to the root."""
    held = [frozenset(clique) for clique in cliques]
    order = {name: i for i, name in enumerate(sizes)}
    # Per clique outside: how many columns it shares with the nearest inside, and which that is.
    nearest = {o: (len(held[o] & held[0]), 0) for o in range(1, len(cliques))}
    edges = []
    while nearest:
        child = max(nearest, key=lambda o: (nearest[o][0], o))
        parent = nearest.pop(child)[1]
        shared = tuple(sorted(held[child] & held[parent], key=order.__getitem__))
        edges.append((child, parent, shared))
        for other, best in nearest.items():
            nearest[other] = max(best, (len(held[other] & held[child]), child))
    return tuple(reversed(edges))


_TINY = 1e-300
_LEAST = 1e-18  # the mass that all cells of a table get beside their own, so that none becomes 0


@dataclass(slots=True, eq=False)
class Beliefs:
    """Clique tables that sum to 1 and agree on shared columns."""

    sizes: Mapping[str, int]
    tree: JunctionTree
    tables: list[Floats]
    separators: list[Floats]

    @classmethod
    def independent(cls, sizes: Mapping[str, int], ones: Mapping[str, Floats]) -> Beliefs:
        """Columns that know nothing of each other."""
        tree = junction_tree(sizes, [])
        tables = [ones[clique[0]] / ones[clique[0]].sum() for clique in tree.cliques]
        return cls(sizes, tree, tables, [np.ones(()) for _ in tree.edges])

    def marginal(self, columns: Sequence[str]) -> Floats:
        """The table over ``columns``, in this order, wherever they lie in the tree."""
        place = self.tree.holder(columns)
        if place is not None:
            return sum_to(self.tables[place], self.tree.cliques[place], columns)
        return self._join(columns)

    def extended(self, groups: Sequence[Sequence[str]]) -> Beliefs:
        """The same distribution on a tree that also holds each of ``groups``."""
        held = [*self.tree.cliques, *groups]
        return self.on(junction_tree(self.sizes, held))

    def on(self, tree: JunctionTree) -> Beliefs:
        """The same distribution on ``tree``, which must hold all cliques of this one."""
        tables = [np.ones(tuple(self.sizes[name] for name in clique)) for clique in tree.cliques]
        above = {child: (e, shared) for e, (child, _, shared) in enumerate(self.tree.edges)}
        for place, (clique, table) in enumerate(zip(self.tree.cliques, self.tables, strict=True)):
            home = tree.holder(clique)
            assert home is not None  # noqa: S101 - the caller asked for these cliques
            given = table
            if place in above:  # the clique given what it shares: shares, which cannot overflow
                e, shared = above[place]
                given = table / np.maximum(align_axes(self.separators[e], shared, clique), _TINY)
            tables[home] *= align_axes(given, clique, tree.cliques[home])
        ones = [np.ones(tuple(self.sizes[n] for n in shared)) for _, _, shared in tree.edges]
        moved = Beliefs(self.sizes, tree, tables, ones)
        moved.calibrate()
        return moved

    @property
    def finite(self) -> bool:
        """Whether every cell is a number."""
        return all(bool(np.isfinite(table).all()) for table in self.tables)

    def copy(self) -> Beliefs:
        """An own copy."""
        return Beliefs(
            self.sizes, self.tree, [t.copy() for t in self.tables], list(self.separators)
        )

    def multiply(self, factors: Mapping[int, Floats]) -> None:
        """Multiply the tables of some cliques and make all cliques agree again."""
        for place, factor in factors.items():
            self.tables[place] *= factor
        self.calibrate()

    def calibrate(self) -> None:
        """One pass up and one down, after which all cliques agree and sum to 1."""
        edges = self.tree.edges
        for e, (child, parent, shared) in enumerate(edges):
            self._send(e, child, parent, shared)
        for e in range(len(edges) - 1, -1, -1):
            child, parent, shared = edges[e]
            self._send(e, parent, child, shared)
        self.tables = [_normalize(table) for table in self.tables]
        for e, (child, _, shared) in enumerate(edges):
            self.separators[e] = sum_to(self.tables[child], self.tree.cliques[child], shared)

    def _send(self, edge: int, source: int, target: int, shared: tuple[str, ...]) -> None:
        new = sum_to(self.tables[source], self.tree.cliques[source], shared)
        top = float(new.max())
        if 0 < top < np.inf:
            new = new / top  # only shares count, and those cannot overflow on a long way
        ratio = new / np.maximum(self.separators[edge], _TINY)
        self.tables[target] *= align_axes(ratio, shared, self.tree.cliques[target])
        self.separators[edge] = new

    def _join(self, columns: Sequence[str]) -> Floats:
        """The table over columns of different cliques: pass messages that keep them open."""
        wanted = set(columns)
        held: list[tuple[Floats, tuple[str, ...]]] = list(
            zip(self.tables, self.tree.cliques, strict=True)
        )
        for e, (child, parent, shared) in enumerate(self.tree.edges):
            table, names = held[child]
            if wanted.isdisjoint(set(names).difference(shared)):
                continue  # cliques agree: it would tell the parent nothing
            keep = tuple(n for n in self.sizes if n in names and (n in shared or n in wanted))
            message = sum_to(table, names, keep)
            message = message / np.maximum(align_axes(self.separators[e], shared, keep), _TINY)
            mine, own = held[parent]
            both = tuple(n for n in self.sizes if n in own or n in keep)
            if set(keep) <= set(own):
                held[parent] = (mine * align_axes(message, keep, own), own)
            else:
                held[parent] = _product(mine, own, message, keep, both, wanted, self._open(e))
            if wanted <= set(held[parent][1]):  # nor would what lies above
                return sum_to(*held[parent], columns)
        table, names = held[self.tree.edges[-1][1] if self.tree.edges else 0]
        return sum_to(table, names, columns)

    def _open(self, edge: int) -> set[str]:
        """The columns that edges after ``edge`` still need of this edge's parent."""
        parent = self.tree.edges[edge][1]
        later = self.tree.edges[edge + 1 :]
        return {name for child, up, shared in later if parent in (child, up) for name in shared}


def allowed_cells(
    columns: Sequence[str], sizes: Mapping[str, int], zeros: Sequence[Mapping[str, Mask]]
) -> Floats:
    """The table over ``columns`` that is 0 where a combination cannot occur, and 1 elsewhere.

    Args:
        columns: whose values span it.
        sizes: how many values each column has.
        zeros: combinations, as per column the codes that are part of one; those on other columns
            do not count.
    """
    found = np.ones(tuple(sizes[name] for name in columns))
    for one in zeros:
        if set(one) <= set(columns):
            held = np.ones_like(found)
            for name, mask in one.items():
                held *= align_axes(mask.astype(np.float64), (name,), columns)
            found *= 1 - held
    return found


def exclude(beliefs: Beliefs, zeros: Sequence[Mapping[str, Mask]], most: int) -> Beliefs:
    """``beliefs`` without what cannot occur, where the tree that holds it has ``most`` cells."""
    for one in zeros:
        columns = tuple(name for name in beliefs.sizes if name in one)
        if count_cells(beliefs.sizes, [*beliefs.tree.cliques, columns]) > most:
            continue  # rows that hold it are drawn again
        beliefs = beliefs.extended([columns])
        home = beliefs.tree.holder(columns)
        assert home is not None  # noqa: S101 - the tree was extended
        beliefs.multiply({home: allowed_cells(beliefs.tree.cliques[home], beliefs.sizes, [one])})
    return beliefs


_REACH = 5.0  # no cell changes by more than a factor of e**5 in one step


@dataclass(frozen=True, slots=True, eq=False)
class MarginalTarget:
    """A table that the distribution should have.

    Attributes:
        columns: whose values span it.
        counts: what it should be.
        variance: of the noise in it.
    """

    columns: tuple[str, ...]
    counts: Floats
    variance: float


def fit_beliefs(
    start: Beliefs,
    targets: Sequence[MarginalTarget],
    rows: float,
    *,
    steps: int,
    enough: float = 1e-4,
) -> Beliefs:
    """``start`` moved towards ``targets``; its tree must hold each of them.

    Args:
        start: where to begin; what no target speaks of stays as it is.
        targets: the tables to meet, weighted by their precision.
        rows: what all cells of a table sum to.
        steps: how many steps to try at most.
        enough: stop when a step improves less than this share.
    """
    homes = [start.tree.holder(target.columns) for target in targets]
    best = start
    # Steps grow while they help and shrink where they overshoot; the loss never rises.
    length = 0.5 * min(target.variance for target in targets)
    loss, slopes = _slopes(best, targets, homes, rows)
    for _ in range(steps):
        moved = best.copy()
        moved.multiply({h: np.exp(np.clip(length * s, -_REACH, _REACH)) for h, s in slopes.items()})
        new_loss, new_slopes = _slopes(moved, targets, homes, rows)
        if not new_loss < loss:
            length *= 0.4
            continue
        done = loss - new_loss < enough * loss
        best, loss, slopes = moved, new_loss, new_slopes
        length *= 1.3
        if done:
            break
    return best


def _slopes(
    beliefs: Beliefs, targets: Sequence[MarginalTarget], homes: Sequence[int | None], rows: float
) -> tuple[float, dict[int, Floats]]:
    """The weighted squared distance and, per clique, where to go."""
    loss = 0.0
    slopes: dict[int, Floats] = {}
    for target, home in zip(targets, homes, strict=True):
        assert home is not None  # noqa: S101 - the caller extended the tree
        clique = beliefs.tree.cliques[home]
        has = rows * sum_to(beliefs.tables[home], clique, target.columns)
        apart = has - target.counts
        # Cells of many rows may differ by more: relative to what stands in them.
        weight = 1 / (target.variance * (has + target.variance**0.5))
        loss += 0.5 * float((apart * apart * weight).sum())
        slope = align_axes(-apart * weight, target.columns, clique)
        slopes[home] = slopes[home] + slope if home in slopes else slope
    return loss, slopes


def _normalize(table: Floats) -> Floats:
    """The table with sum 1 and no cell so small that a quotient of such cells could fail.

    A table of which nothing is left, or that numbers cannot hold, becomes even: what follows it is
    then a worse model, never none.
    """
    top = float(table.max())
    if not 0 < top < np.inf or np.isnan(table.min()):
        return np.full(table.shape, 1 / table.size)
    scaled = table / top  # the sum of large cells could overflow
    found: Floats = scaled / scaled.sum() + _LEAST / table.size
    return found


def _product(
    mine: Floats,
    own: tuple[str, ...],
    message: Floats,
    keep: tuple[str, ...],
    both: tuple[str, ...],
    wanted: set[str],
    needed: set[str],
) -> tuple[Floats, tuple[str, ...]]:
    """``mine`` times ``message`` with the columns summed away that nobody needs any more."""
    out = tuple(n for n in both if n in wanted or n in needed)
    letters = {name: i for i, name in enumerate(both)}
    axes = tuple(chr(97 + letters[n]) for n in own), tuple(chr(97 + letters[n]) for n in keep)
    rule = f"{''.join(axes[0])},{''.join(axes[1])}->{''.join(chr(97 + letters[n]) for n in out)}"
    found: Floats = np.einsum(rule, mine, message, optimize=True)
    return found, out


def sum_to(table: Floats, names: Sequence[str], wanted: Sequence[str]) -> Floats:
    """``table`` over ``names`` summed to ``wanted``, in the order of ``wanted``."""
    gone = tuple(i for i, name in enumerate(names) if name not in wanted)
    found: Floats = table.sum(axis=gone) if gone else table
    left = [name for name in names if name in wanted]
    if left != list(wanted):
        found = found.transpose([left.index(name) for name in wanted])
    return found


def align_axes(table: Floats, names: Sequence[str], onto: Sequence[str]) -> Floats:
    """``table`` with axes of length 1 so that it multiplies a table over ``onto``."""
    order = [names.index(name) for name in onto if name in names]
    shape = []
    moved = table.transpose(order) if order != list(range(len(order))) else table
    lengths = iter(moved.shape)
    shape = [next(lengths) if name in names else 1 for name in onto]
    return moved.reshape(shape)


_GOLDEN = 0.6180339887498949


def draw(beliefs: Beliefs, rows: int, random: np.random.Generator) -> dict[str, Ints]:
    """``rows`` rows as codes per column."""
    tree, sizes = beliefs.tree, beliefs.sizes
    root = tree.edges[-1][1] if tree.edges else 0
    drawn: dict[str, Ints] = {}
    for place in (root, *(child for child, _, _ in reversed(tree.edges))):
        clique = tree.cliques[place]
        known = [name for name in clique if name in drawn]
        new = [name for name in clique if name not in drawn]
        table = beliefs.tables[place].transpose([clique.index(name) for name in known + new])
        groups = np.zeros(rows, np.int64)
        for name in known:
            groups = groups * sizes[name] + drawn[name]
        width = int(np.prod([sizes[name] for name in new], dtype=np.int64))
        cells = draw_values(groups, table.reshape(-1, width), random)
        for name in reversed(new):
            cells, drawn[name] = np.divmod(cells, sizes[name])
    return drawn


def draw_values(
    groups: Ints, weights: Floats, random: np.random.Generator, *, beside: Ints | None = None
) -> Ints:
    """Per row, a value drawn by the weights of its group.

    Args:
        groups: per row, its group.
        weights: (groups, values); a group without any weight deals evenly.
        random: where chance comes from; it holds no secret.
        beside: per row, what the values must stay independent of inside a group: rows that share it
            get values in the same shares, more evenly than chance would.
    """
    count, width = weights.shape
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, weights / np.maximum(totals, 1e-300), 1 / width)
    edges = np.cumsum(shares, axis=1)
    edges /= edges[:, -1:]
    owner, at, order = _dealt(groups, count, random, beside)
    found = np.searchsorted((edges + np.arange(count)[:, None]).ravel(), owner + at, side="right")
    values = np.empty(len(groups), np.int64)
    values[order] = np.clip(found - owner * width, 0, width - 1)
    return values


def draw_members(
    groups: Ints, homes: Ints, weights: Floats, random: np.random.Generator, *, beside: Ints
) -> Ints:
    """Per row, a value of its group; as ``draw_values`` where a value lies in one group only.

    Args:
        groups: per row, its group.
        homes: per value, its group; none is without values.
        weights: per value, above 0.
        random: where chance comes from; it holds no secret.
        beside: per row, what the values must stay independent of inside a group.
    """
    count = int(homes.max()) + 1
    if count == len(homes):  # nothing to draw
        alone = np.empty(count, np.int64)
        alone[homes] = np.arange(count)
        return alone[groups]
    listed = np.argsort(homes, kind="stable")  # values, group after group
    first = np.searchsorted(homes[listed], np.arange(count + 1))
    totals = np.bincount(homes, weights, minlength=count)
    # The shares of a group sum to 1: those of group g end at g + 1.
    edges = np.cumsum((weights / totals[homes])[listed])
    owner, at, order = _dealt(groups, count, random, beside)
    found = np.searchsorted(edges, owner + at, side="right")
    values = np.empty(len(groups), np.int64)
    values[order] = listed[np.clip(found, first[owner], first[owner + 1] - 1)]
    return values


def _dealt(
    groups: Ints, count: int, random: np.random.Generator, beside: Ints | None
) -> tuple[Ints, Floats, Ints]:
    """Rows group by group in random order: the group of each, where in [0, 1) it lies, and which.

    Args:
        groups: per row, its group.
        count: how many groups there are.
        random: where chance comes from.
        beside: per row, what places must stay independent of inside a group.
    """
    order = random.permutation(len(groups))
    if beside is not None:
        order = _sorted_by(order, beside)
    order = _sorted_by(order, groups)
    owner = groups[order]
    sizes = np.bincount(owner, minlength=count)
    first = np.cumsum(sizes) - sizes
    place = np.arange(len(groups)) - first[owner]
    start = random.random(count)[owner]
    # Steps of the golden ratio fill the unit interval evenly over any stretch of rows.
    at = (place + start) / sizes[owner] if beside is None else (place * _GOLDEN + start) % 1.0
    return owner, np.minimum(at, 1 - 1e-12), order


def _sorted_by(order: Ints, keys: Ints) -> Ints:
    """The rows of ``order`` by their keys, none below 0; rows of one key stay as they are."""
    most, shift = int(keys.max(initial=0)), 0
    while shift == 0 or most >> shift:
        # Sixteen bits at a time: of those NumPy sorts by counting.
        part = ((keys[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(part, kind="stable")]
        shift += 16
    return order
