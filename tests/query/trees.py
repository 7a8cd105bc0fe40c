"""Groups made directly, without an engine, and the complete semantics by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa

from halfmask.query.groups import Distinct, Groups, KeyColumn


def groups_of(
    parents: list[list[int]],
    thresholds: list[list[int]],
    members: list[tuple[int, int, int]],
    values: list[set[int]] | None = None,
) -> Groups:
    """Groups over a tree of one grouping column.

    Args:
        parents: per level above the leaves, the node of each leaf.
        thresholds: per level, k and (where ``values`` are given) l.
        members: (level, leaf, people) per group; a coarser group names any leaf below its node.
        values: per group, its distinct values.
    """
    leaves = len(parents[0]) if parents else 1 + max((m[1] for m in members), default=0)
    maps = [np.arange(leaves, dtype=np.int64), *(np.array(p, dtype=np.int64) for p in parents)]
    labels = tuple(
        [f"{d}:{i}" for i in range(int(m.max(initial=0)) + 1)] for d, m in enumerate(maps)
    )
    key = KeyColumn(
        np.array([m[1] for m in members], dtype=np.int64),
        pa.array(labels[0]),
        tuple(maps),
        labels,
        tuple(range(len(maps))),
    )
    people = np.array([m[2] for m in members], dtype=np.int64)
    counts: list[np.ndarray | Distinct] = [people]
    if values is not None:
        cap = max(t[1] for t in thresholds)
        listed = [sorted(v) if len(v) < cap else [] for v in values]
        counts.append(
            Distinct(
                np.array([len(v) for v in values], dtype=np.int64),
                np.concatenate(([0], np.cumsum([len(v) for v in listed]))).astype(np.int64),
                np.array([x for v in listed for x in v], dtype=np.int64),
                1 + max((x for v in values for x in v), default=0),
                cap,
            )
        )
    return Groups(
        np.array([m[0] for m in members], dtype=np.int64),
        people,
        (key,),
        tuple(counts),
        np.array([t[: len(counts)] for t in thresholds], dtype=np.int64),
        pa.table({}),
    )


def brute_force(groups: Groups, values: list[set[int]] | None = None) -> tuple[int, int]:
    """The best (F1, F2) over all ways to move every group as a whole."""
    key = groups.keys[0]
    choices = [[-1, *range(int(level), groups.top + 1)] for level in groups.level]
    best = (0, 0)
    for targets in product(*choices):
        nodes: dict[tuple[int, int], list[int]] = {}
        for g, t in enumerate(targets):
            if t >= 0:
                nodes.setdefault((t, int(key.maps[t][key.codes[g]])), []).append(g)
        if all(_meets(groups, values, t, inside) for (t, _), inside in nodes.items()):
            f1 = sum(int(groups.people[g]) for g, t in enumerate(targets) if t >= 0)
            f2 = sum(
                (groups.top - t) * int(groups.people[g]) for g, t in enumerate(targets) if t >= 0
            )
            best = max(best, (f1, f2))
    return best


def _meets(groups: Groups, values: list[set[int]] | None, level: int, inside: list[int]) -> bool:
    if sum(int(groups.people[g]) for g in inside) < groups.thresholds[level][0]:
        return False
    if values is None:
        return True
    return len(set().union(*(values[g] for g in inside))) >= groups.thresholds[level][1]


def whole_program(groups: Groups) -> int:
    """F2 of the optimum that leaves nobody out, by one textbook program (counts only)."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    key, ks = groups.keys[0], groups.thresholds[:, 0]
    places = [(g, t) for g in range(len(groups)) for t in range(groups.level[g], groups.top + 1)]
    names = [(t, int(key.maps[t][key.codes[g]])) for g, t in places]
    nodes = {v: len(places) + i for i, v in enumerate(dict.fromkeys(names))}
    width = len(places) + len(nodes)
    stands = np.zeros((len(groups), width))
    linked = np.zeros((len(places), width))
    enough = np.zeros((len(nodes), width))
    cost = np.zeros(width)
    for column, ((g, t), v) in enumerate(zip(places, names, strict=True)):
        cost[column] = -(groups.top - t) * groups.people[g]
        stands[g, column] = 1
        linked[column, [column, nodes[v]]] = 1, -1
        enough[nodes[v] - len(places), column] = groups.people[g]
        enough[nodes[v] - len(places), nodes[v]] = -ks[t]
    result = milp(
        cost,
        constraints=[
            LinearConstraint(stands, 1, 1),
            LinearConstraint(linked, -np.inf, 0),
            LinearConstraint(enough, 0, np.inf),
        ],
        integrality=np.ones(width),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    return round(-result.fun)


def random_tree(
    seed: int, leaves: int, branching: int, ks: list[int], largest: int, inner: float
) -> Groups:
    """A tree of ``len(ks)`` levels whose inner nodes hold a group with probability ``inner``."""
    rng = np.random.default_rng(seed)
    parents = []
    current = np.arange(leaves)
    for _ in ks[1:-1]:
        current = current // branching
        parents.append(current.tolist())
    parents.append([0] * leaves)
    members = [(0, leaf, int(rng.integers(1, largest))) for leaf in range(leaves)]
    for level, nodes in enumerate(parents, start=1):
        picked = [n for n in sorted(set(nodes)) if rng.random() < inner]
        members += [(level, nodes.index(n), int(rng.integers(1, largest))) for n in picked]
    return groups_of(parents, [[k] for k in ks], members)
