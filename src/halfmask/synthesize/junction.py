"""A junction tree: overlapping groups of columns that carry exact inference.

Source: Lauritzen, Spiegelhalter, "Local computations with probabilities on graphical structures",
1988.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
    neighbors: dict[str, set[str]] = {name: set() for name in sizes}
    for group in groups:
        for name in group:
            neighbors[name] |= set(group) - {name}
    cliques = _eliminate(sizes, neighbors)
    order = {name: i for i, name in enumerate(sizes)}
    listed = sorted(tuple(sorted(clique, key=order.__getitem__)) for clique in cliques)
    edges = _spanning(listed, sizes)
    cells = sum(prod(sizes[name] for name in clique) for clique in listed)
    return JunctionTree(tuple(listed), edges, cells)


def _eliminate(sizes: Mapping[str, int], neighbors: dict[str, set[str]]) -> list[set[str]]:
    """Take columns out one by one, cheapest table first, joining what each leaves behind."""
    cliques: list[set[str]] = []
    left = dict(neighbors)
    while left:
        name = min(left, key=lambda n: (prod(sizes[m] for m in left[n] | {n}), n))
        clique = left[name] | {name}
        for other in left[name]:
            left[other] |= left[name] - {other}
            left[other].discard(name)
        del left[name]
        if not any(clique <= known for known in cliques):
            cliques.append(clique)
    return cliques


def _spanning(
    cliques: list[tuple[str, ...]], sizes: Mapping[str, int]
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """A maximum spanning tree by shared columns (Prim), as edges from the leaves to the root."""
    inside = [0]
    outside = set(range(1, len(cliques)))
    edges = []
    while outside:
        child, parent = max(
            ((o, i) for o in outside for i in inside),
            key=lambda pair: (len(set(cliques[pair[0]]) & set(cliques[pair[1]])), pair),
        )
        shared = tuple(n for n in sizes if n in cliques[child] and n in cliques[parent])
        edges.append((child, parent, shared))
        inside.append(child)
        outside.remove(child)
    return tuple(reversed(edges))
