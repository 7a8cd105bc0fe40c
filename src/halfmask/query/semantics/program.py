"""One part of the complete semantics as a mixed-integer program, solved by HiGHS.

Variables: x[g, t] = group g is published at level t; y[v] = node v is published.
Minimize the people x levels that are lost against each group's finest possible level, such that
every group stands at one level, x[g, t] <= y[v], and every published node reaches its thresholds:
counts add up, and so do distinct values at first, as if no two groups shared one: a relaxation.
Where a solution reaches a threshold only by that, the node is told exactly and the program solved
again: z[v, a] <= the x of the groups that hold value a. A group that reaches a threshold alone
counts as reaching it, so that no list of it is needed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.query.collect import Distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.query.collect import Groups


def feasible(groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64]) -> bool:
    """Tell whether every node that ``target`` uses meets its guarantee."""
    for level in np.unique(target).tolist():
        inside = members[target == level]
        ids, first = groups.nodes(level, inside)
        if not groups.passes(level, inside, ids, len(first)).all():
            return False
    return True


def repaired(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.int64]:
    """A solution that leaves nobody out: who is, goes to the top with the cheapest company.

    The top of a part passes with everybody, so taking enough of the others along always helps.
    """
    left_out = target < 0
    if not left_out.any():
        return target
    target = target.copy()
    top = _top(groups, members)
    target[left_out] = top
    cost = groups.people[members] * (top - target)
    order = np.argsort(cost, kind="stable")
    order = order[target[order] < top]
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        trial = target.copy()
        trial[order[:middle]] = top
        if _top_passes(groups, members, trial, top):
            high = middle
        else:
            low = middle + 1
    target[order[:high]] = top
    return _mended(groups, members, target, top)


def _top(groups: Groups, members: NDArray[np.int64]) -> int:
    """The level of the part's topmost node: the coarsest at which all members share it and pass."""
    for level in range(groups.top, -1, -1):
        if (groups.level[members] > level).any():
            break
        ids, first = groups.nodes(level, members)
        if len(first) == 1 and groups.passes(level, members, ids, 1)[0]:
            return level
    return groups.top


def _top_passes(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64], top: int
) -> bool:
    inside = members[target == top]
    return bool(groups.passes(top, inside, np.zeros(len(inside), dtype=np.int64), 1)[0])


def _mended(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64], top: int
) -> NDArray[np.int64]:
    """Rows that lost too much by that go up as well."""
    for level in range(top):
        inside = np.flatnonzero(target == level)
        if len(inside):
            ids, first = groups.nodes(level, members[inside])
            holds = groups.passes(level, members[inside], ids, len(first))
            target[inside[~holds[ids]]] = top
    return target


def solve(
    groups: Groups,
    members: NDArray[np.int64],
    ideal: NDArray[np.int64],
    best: NDArray[np.int64],
    until: float | None,
) -> tuple[NDArray[np.int64], int]:
    """The best levels for ``members``, and by how much F2 may at most be better.

    ``best`` is a known solution; what costs more than it is left out of the program.
    """
    people = groups.people[members]
    known = int((people * (best - ideal)).sum())
    left = None if until is None else until - time.monotonic()
    if known == 0 or (left is not None and left <= 0):
        return best, known
    exact: set[tuple[int, int]] = set()
    bound = 0
    while True:
        model = _build(groups, members, ideal, known, exact)
        result = _run(model, known, None if until is None else until - time.monotonic())
        bound = max(bound, _bound(result.mip_dual_bound))
        if result.x is None:
            return best, max(0, known - bound)
        target = model.targets(result.x, ideal)
        broken = _broken(groups, members, target, model)
        if not broken:
            break
        if broken <= exact or (until is not None and time.monotonic() >= until):
            return best, max(0, known - bound)
        exact |= broken
    lost = int((people * (target - ideal)).sum())
    return (target, max(0, lost - bound)) if lost < known else (best, max(0, known - bound))


def _broken(
    groups: Groups, members: NDArray[np.int64], target: NDArray[np.int64], model: _Model
) -> set[tuple[int, int]]:
    """The nodes whose groups reach a threshold only if shared values are counted twice."""
    broken = set()
    for level in np.unique(target).tolist():
        inside = np.flatnonzero(target == level)
        ids, first = groups.nodes(level, members[inside])
        holds = groups.passes(level, members[inside], ids, len(first))
        broken |= {model.nodes[level, int(inside[first[i]])] for i in np.flatnonzero(~holds)}
    return broken


def _bound(value: float | None) -> int:
    """Losses are whole numbers, so a lower bound may be rounded up (tolerances aside)."""
    if value is None or not np.isfinite(value):
        return 0
    return max(0, int(np.ceil(value - 1e-4)))


@dataclass(slots=True)
class _Model:
    """The program as it is built up: columns with costs, rows as triplets."""

    cost: list[float] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    level: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    nodes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def column(self, cost: float, *, group: int = -1, level: int = -1, whole: bool = True) -> int:
        self.cost.append(cost)
        self.group.append(group)
        self.level.append(level)
        self.whole.append(int(whole))
        return len(self.cost) - 1

    def row(self, entries: list[tuple[int, float]], lower: float, upper: float) -> None:
        at = len(self.lower)
        for column, value in entries:
            self.rows.append(at)
            self.columns.append(column)
            self.values.append(value)
        self.lower.append(lower)
        self.upper.append(upper)

    def targets(self, x: NDArray[np.float64], ideal: NDArray[np.int64]) -> NDArray[np.int64]:
        target = ideal.copy()
        for column in np.flatnonzero(np.array(self.group) >= 0).tolist():
            if x[column] > 0.5:
                target[self.group[column]] = self.level[column]
        return target


def _build(
    groups: Groups,
    members: NDArray[np.int64],
    ideal: NDArray[np.int64],
    known: int,
    exact: set[tuple[int, int]],
) -> _Model:
    model = _Model()
    people = groups.people[members]
    # Moving a group further than this costs more than the whole known solution loses.
    reach = np.minimum(groups.top, ideal + known // np.maximum(people, 1))
    choices: list[list[int]] = [[] for _ in members]
    for level in range(groups.top + 1):
        able = np.flatnonzero((ideal <= level) & (level <= reach))
        if not len(able):
            continue
        ids, first = groups.nodes(level, members[able])
        usable = groups.passes(level, members[able], ids, len(first))
        order = np.argsort(ids, kind="stable")
        for node, inside in enumerate(np.split(able[order], np.cumsum(np.bincount(ids))[:-1])):
            if usable[node]:
                lost = groups.people[members[inside]] * (level - ideal[inside])
                columns = [
                    model.column(float(c), group=int(g), level=level)
                    for g, c in zip(inside.tolist(), lost.tolist(), strict=True)
                ]
                name = (level, int(inside[0]))
                for g, column in zip(inside.tolist(), columns, strict=True):
                    choices[g].append(column)
                    model.nodes[level, g] = name
                _node(model, groups, members[inside], columns, level, exact=name in exact)
    for columns in choices:
        model.row([(c, 1.0) for c in columns], 1.0, 1.0)
    return model


def _node(
    model: _Model,
    groups: Groups,
    own: NDArray[np.int64],
    columns: list[int],
    level: int,
    *,
    exact: bool,
) -> None:
    """The thresholds of one node; shared values are told apart only where that is ``exact``."""
    if groups.alone(level, own).all():
        return
    used = model.column(0.0)
    for column in columns:
        model.row([(column, 1.0), (used, -1.0)], -np.inf, 0.0)
    known: list[tuple[NDArray[np.int64], int]] = []
    for count, threshold in zip(groups.counts, groups.thresholds[level].tolist(), strict=True):
        if isinstance(count, Distinct) and exact:
            entries = _distinct_entries(model, count, own, columns, threshold)
        else:
            every = (count.counts if isinstance(count, Distinct) else count)[own]
            numbers = np.minimum(every, threshold)
            if any(
                t >= threshold and (numbers >= np.minimum(n, threshold)).all() for n, t in known
            ):
                continue  # Implied by an earlier one.
            known.append((every, threshold))
            entries = list(zip(columns, numbers.astype(float).tolist(), strict=True))
        model.row([*entries, (used, -float(threshold))], 0.0, np.inf)


def _distinct_entries(
    model: _Model,
    count: Distinct,
    own: NDArray[np.int64],
    columns: list[int],
    threshold: int,
) -> list[tuple[int, float]]:
    entries: list[tuple[int, float]] = []
    holders: dict[int, list[int]] = {}
    for g, column in zip(own.tolist(), columns, strict=True):
        if count.counts[g] >= threshold:
            entries.append((column, float(threshold)))
        else:
            for value in count.values[count.starts[g] : count.starts[g + 1]].tolist():
                holders.setdefault(value, []).append(column)
    for held in holders.values():
        if len(held) == 1:
            entries.append((held[0], 1.0))
            continue
        counted = model.column(0.0, whole=False)
        model.row([(counted, 1.0), *((c, -1.0) for c in held)], -np.inf, 0.0)
        entries.append((counted, 1.0))
    merged: dict[int, float] = {}
    for column, value in entries:
        merged[column] = min(float(threshold), merged.get(column, 0.0) + value)
    return list(merged.items())


def _run(model: _Model, known: int, left: float | None):  # type: ignore[no-untyped-def]
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    matrix = csr_array(
        (model.values, (model.rows, model.columns)), shape=(len(model.lower), len(model.cost))
    )
    # A gap below one half proves a whole number optimal.
    options: dict[str, float | bool] = {"mip_rel_gap": 0.5 / max(1, known)}
    if left is not None:
        options["time_limit"] = left
    return milp(
        model.cost,
        constraints=LinearConstraint(matrix, model.lower, model.upper),
        integrality=model.whole,
        bounds=Bounds(0, 1),
        options=options,
    )
