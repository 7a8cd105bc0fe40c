"""Proven optima for small tables: DBIL, WCSD, diameter or split; larger ones block by block.

The heuristics give a first division. Column generation with HiGHS proves how far it is from the
optimum and closes the gap; see ``docs/personal.md`` for what was tried and how far each goes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.links import (
    PublishedClasses,
    keeps_links,
    linked_codes,
    linked_division,
    require_links,
)
from halfmask.anonymize.partition.methods import (
    LINKS,
    Division,
    divide_k_member,
    divide_mondrian,
    divide_personal,
    repair,
)
from halfmask.anonymize.partition.optimum import (
    Instance,
    Optimum,
    class_diameter,
    largest_split,
    smallest_diameter,
    smallest_sum,
    total_cost,
)
from halfmask.anonymize.partition.task import blocks_of, number_classes
from halfmask.errors import ParameterError, UnsatisfiableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import PartitionTask
    from halfmask.kernels.partition.construction import Demands
    from halfmask.kernels.partition.pricing import Rules

PATIENCE = 60.0  # seconds where no time limit is stated
_WHOLE = {"dbil": 120, "wcsd": 80, "diameter": 300, "split": 400}
_WHOLE_VALUES, _WHOLE_LINKS = 40, 60  # where classes cannot be bounded by their size


def find_optimum(task: PartitionTask) -> Division:
    """The optimum, or the best that the time allows with its proven gap.

    Raises:
        ParameterError: the split is asked for, which knows the number of rows alone.
        UnsatisfiableError: no division was found that keeps the links.
    """
    metric = str(task.options.get("metric", "dbil"))
    linked = require_links(task)
    valued = bool(task.demands.values.shape[1]) or any(m.columns for m in task.models)
    if metric == "split" and (linked or valued):
        raise ParameterError(
            "metric", metric, "dbil, wcsd or diameter where a sensitive column or a link counts"
        )
    _compile(task, metric)
    deadline = time.monotonic() + PATIENCE if task.deadline is None else task.deadline
    usual = _WHOLE_LINKS if linked else _WHOLE_VALUES if valued else _WHOLE[metric]
    largest = int(task.options.get("block", usual))
    if linked and len(task) > largest:
        raise ParameterError(
            linked, "a column", f"none above {largest} rows; block= sets how many are tried at once"
        )
    if metric == "split" or len(task) <= largest:
        return _division_of(task, optimum(task, metric, deadline), metric)
    ids = divide_personal(_with_half(task)).ids
    # Blocks of the second round lie across the borders of the first.
    for share, first in ((0.5, largest), (1.0, largest // 2)):
        until = time.monotonic() + share * (deadline - time.monotonic())
        blocks = _blocks(task, ids, largest, first)
        ids = _improve_blocks(task, ids, blocks, metric, until)
    note = (
        f"The table was cut into {len(blocks)} blocks of near classes; each block is optimal by "
        "itself or the best found in its time, the whole need not be."
    )
    return Division(repair(task, number_classes(ids)), notes=(note,))


def _with_half(task: PartitionTask) -> PartitionTask:
    """The task with half of what is left of its time."""
    if task.deadline is None:
        return task
    now = time.monotonic()
    return replace(task, deadline=now + (task.deadline - now) / 2)


def _blocks(
    task: PartitionTask, ids: NDArray[np.int64], largest: int, first: int
) -> list[NDArray[np.int64]]:
    """Near classes together, whole, up to ``largest`` rows a block and ``first`` in the first."""
    rank = np.empty(len(task), dtype=np.int64)
    rank[np.concatenate(blocks_of(task, largest))] = np.arange(len(task))
    sizes = np.bincount(ids)
    along = np.argsort(np.bincount(ids, weights=rank) / sizes, kind="stable")
    order = np.argsort(np.argsort(along)[ids], kind="stable")
    ends, room = [0], first
    for size in sizes[along].tolist():
        if size > room and ends[-1]:
            ends.append(ends[-1])
            room = largest
        room -= size
        ends[-1] += size
    return [np.asarray(one) for one in np.split(order, ends[:-1])]


def _improve_blocks(
    task: PartitionTask,
    ids: NDArray[np.int64],
    blocks: list[NDArray[np.int64]],
    metric: str,
    deadline: float,
) -> NDArray[np.int64]:
    """Divide blocks anew where that is better than their classes in ``ids``; until ``deadline``."""
    ids = ids.copy()
    for number, rows in enumerate(blocks):
        now = time.monotonic()
        if now >= deadline:
            break
        share = now + (deadline - now) / (len(blocks) - number)
        part = optimum(task.take(rows), metric, share, number_classes(ids[rows]))
        ids[rows] = part.ids + ids.max() + 1
    return number_classes(ids)


def optimum(
    task: PartitionTask, metric: str, deadline: float, known: NDArray[np.int64] | None = None
) -> Optimum:
    """The optimum of one block, never worse than a ``known`` division.

    Raises:
        UnsatisfiableError: no division was found that keeps the links.
    """
    if metric == "split":
        return largest_split(instance_of(task, deadline), int(task.options.get("classes", 2)))
    instance = instance_of(task, deadline)
    if task.options.get("cannot_link") is None:
        return _whole_classes(instance, _search(task, instance, metric, known))
    # Most divisions keep rows apart for a reader too, and are found sooner where all others count.
    half = deadline - max(deadline - time.monotonic(), 0.0) / 2
    first = _search(task, replace(instance, deadline=half), metric, known)
    some = first.value < instance.dearest
    if not some and first.bound >= instance.dearest:
        return _whole_classes(instance, first)
    published = PublishedClasses.of(task)
    if some and published.alike(first.ids) is None:
        return first if first.gap == 0.0 else _search(task, instance, metric, first.ids)
    instance = replace(instance, published=published, rules=_beyond_rows(instance.rules))
    seen = _whole_classes(instance, _search(task, instance, metric, None))
    return replace(seen, bound=max(seen.bound, first.bound)) if some else seen


def _beyond_rows(rules: Rules) -> Rules:
    """The same rules, by which no class is left out because two others would cost less.

    Where looks count, the two may look like others, and the whole does not.
    """
    if not rules.plain:
        return rules
    d = rules.demands
    anything = d._replace(
        values=np.zeros((len(d.k), 1), np.int32),
        l=np.ones((len(d.k), 1), np.int64),
        t=np.ones((len(d.k), 1)),
        shares=np.ones((1, 1)),
    )
    return rules._replace(demands=anything)


def _search(
    task: PartitionTask, instance: Instance, metric: str, known: NDArray[np.int64] | None
) -> Optimum:
    from halfmask.kernels.partition import pricing

    linked = any(task.options.get(name) is not None for name in LINKS)
    if instance.rules.plain and not linked:
        starts = _starts(task) if known is None else [known, *_starts(task)]
    else:  # heuristics on a part would hold it against the distribution of that part
        starts = [known] if known is not None else _starts(task)
        starts = [ids for ids in starts if keeps_links(instance, ids)]
        if not starts:
            built = linked_division(instance, task.seed)
            starts = [] if built is None else [built]
    if metric == "diameter":
        if not starts:
            first = smallest_sum(instance, pricing.DBIL, [])
            if first.value >= instance.dearest:
                return first
            starts = [first.ids]
        return smallest_diameter(instance, starts, task.seed)
    return smallest_sum(instance, {"dbil": pricing.DBIL, "wcsd": pricing.WCSD}[metric], starts)


def _whole_classes(instance: Instance, best: Optimum) -> Optimum:
    """The same, where it gives every row a class.

    Raises:
        UnsatisfiableError: no division keeps every promise and every link, or none was found.
    """
    if best.value < instance.dearest and keeps_links(instance, best.ids):
        return best
    why = ""
    if instance.published is not None:
        why = ": rows to keep apart would publish the same labels, one class to a reader"
    if best.bound >= instance.dearest:
        raise UnsatisfiableError(
            f"No division keeps every promise and every link{why}.",
            advice=["Link fewer rows, keep apart rows that differ more, or promise less."],
        )
    raise UnsatisfiableError(
        f"No division that keeps every promise and every link was found in time{why}.",
        advice=["Give a longer time limit, link fewer rows, or promise less."],
    )


def instance_of(task: PartitionTask, deadline: float) -> Instance:
    """All distances and rules; rows that may not stand together are farther than all."""
    from halfmask.kernels import distance
    from halfmask.kernels.partition.pricing import Rules

    n = len(task)
    far = np.asarray(distance.matrix(task.space.points, np.arange(n)))
    must, cannot = (linked_codes(task, name) for name in LINKS)
    sizes = np.bincount(must[must >= 0]) if (must >= 0).any() else np.zeros(0, dtype=np.int64)
    d = task.demands
    # The models decide at the end, exactly; a little more is allowed here.
    d = d._replace(t=np.where(d.t < 1.0, d.t + 1e-9, d.t))
    rules = Rules(d._replace(k=_least_rows(d)), must, sizes)
    plain = Instance(far, rules, deadline)
    if not (cannot >= 0).any():
        return plain
    apart = 4.0 * (n + 1) * plain.dearest
    same = np.equal.outer(cannot, cannot) & (cannot >= 0)
    np.fill_diagonal(same, val=False)
    return Instance(np.where(same, apart, far), rules, deadline, apart)


def _least_rows(d: Demands) -> NDArray[np.int64]:
    """Per row, how many rows its class has at least for its k, l and t: searches count rows first.

    Of m rows, the shares that come nearest to those of all rows exceed them by what the values
    exceed that get one row more than m times their share; the own value is among those held.
    """
    least = d.k.copy()
    for s in range(d.values.shape[1]):
        least = np.maximum(least, d.l[:, s])
        shares = d.shares[s]
        for value, t in {
            (int(v), float(t)) for v, t in zip(d.values[:, s], d.t[:, s], strict=True)
        }:
            if t >= 1.0:
                continue
            mine = (d.values[:, s] == value) & (d.t[:, s] == t)
            least[mine] = np.maximum(least[mine], _least_near(shares, value, t, len(least)))
    return least


def _least_near(shares: NDArray[np.float64], value: int, t: float, most: int) -> int:
    """The fewest rows, ``value`` among them, whose shares can be within ``t`` of ``shares``."""
    for m in range(1, most):
        room = m * shares
        held = np.floor(room + 1e-9)
        if value >= 0:
            held[value] = max(held[value], 1.0)
        over = np.maximum(held - room, 0.0).sum()
        rest = m - int(held.sum())
        if rest > 0:
            more = np.sort(np.maximum(held + 1.0 - np.maximum(room, held), 0.0))
            over += more[:rest].sum() + max(rest - len(more), 0)
        if over <= t * m + 1e-9:
            return m
    return most


def _compile(task: PartitionTask, metric: str) -> None:
    """Solve a few rows, so that nothing is compiled when the time of the search is up."""
    from halfmask.kernels.partition.pricing import Rules

    part = task.take(np.arange(min(len(task), 4)))
    alone = Rules.of_sizes(np.ones(len(part), dtype=np.int64)).demands
    options = {name: one for name, one in task.options.items() if name not in LINKS}
    optimum(replace(part, models=(), demands=alone, options=options), metric, np.inf)


def _starts(task: PartitionTask) -> list[NDArray[np.int64]]:
    """Valid divisions to begin with; demands for rows alone decide."""
    return [start(task).ids for start in (divide_personal, divide_k_member, divide_mondrian)]


def _division_of(task: PartitionTask, found: Optimum, metric: str) -> Division:
    ids = repair(task, number_classes(found.ids))
    if not np.array_equal(ids, number_classes(found.ids)):  # a model that searches see in part
        found = _measured_again(task, ids, metric, found.bound)
    notes: tuple[str, ...] = ()
    if found.gap:
        side = "higher" if metric == "split" else "lower"
        share = found.gap / abs(found.value) if found.value else 1.0
        notes = (
            "Not proven optimal: the search stopped at its limit, and the optimum may be "
            f"{side} by {found.gap:.6g} ({share:.1%} of what was found).",
        )
    return Division(ids, found.gap, notes, found.value)


def _measured_again(
    task: PartitionTask, ids: NDArray[np.int64], metric: str, bound: float
) -> Optimum:
    """What a repaired division costs, against the bound that was proven.

    Raises:
        UnsatisfiableError: the repair broke a link.
    """
    from halfmask.kernels.partition import pricing

    instance = instance_of(task, np.inf)
    if not keeps_links(instance, ids):
        raise UnsatisfiableError(
            "No division was found that keeps every promise and every link.",
            advice=["Link fewer rows, or promise less."],
        )
    if metric == "diameter":
        return Optimum(ids, class_diameter(instance, ids), bound)
    kind = {"dbil": pricing.DBIL, "wcsd": pricing.WCSD}[metric]
    return Optimum(ids, total_cost(instance, kind, ids), bound)
