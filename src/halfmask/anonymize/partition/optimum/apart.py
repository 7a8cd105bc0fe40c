"""The optimum of the split: the largest distance that can lie between all classes.

Rows nearer than the split stand together, so classes are unions of the components of the graph of
near rows. Splits are tried from the largest down; whether components can be grouped so that each
group is large enough is a small integer program: each group is led by its most demanding component.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.optimum.instance import Instance, Optimum

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EPS = 1e-9


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
        grouped = _grouped(instance, _components(n, edges, split), least)
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


def _grouped(
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
