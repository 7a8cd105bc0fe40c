"""Proven optima for small tables: DBIL, WCSD, diameter or split; larger ones block by block.

The heuristics give a first division. Column generation with HiGHS proves how far it is from the
optimum and closes the gap; see ``docs/personal.md`` for what was tried and how far each goes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.methods import (
    Division,
    blocks_of,
    divide_k_member,
    divide_mondrian,
    divide_personal,
    number_classes,
    repair,
)
from halfmask.anonymize.partition.optimum import (
    Instance,
    Optimum,
    largest_split,
    smallest_diameter,
    smallest_sum,
)
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import PartitionTask

PATIENCE = 60.0  # seconds where no time limit is stated
_WHOLE = {"dbil": 120, "wcsd": 80, "diameter": 300, "split": 400}


def find_optimum(task: PartitionTask) -> Division:
    """The optimum, or the best that the time allows with its proven gap."""
    if task.demands.values.shape[1] or any(m.columns for m in task.models):
        raise ParameterError(
            "method",
            "exact",
            "'personal', 'k-member', 'mdav' or 'mondrian' where a model looks at a "
            "sensitive column; 'exact' proves demands for k only",
        )
    metric = str(task.options.get("metric", "dbil"))
    deadline = task.deadline
    if deadline is None:
        _compile(task, metric)
        deadline = time.monotonic() + PATIENCE
    largest = int(task.options.get("block", _WHOLE[metric]))
    if metric == "split" or len(task) <= largest:
        return _proven(task, optimum(task, metric, deadline), metric)
    ids = divide_personal(task).ids
    # Blocks of the second round lie across the borders of the first.
    for share, first in ((0.5, largest), (1.0, largest // 2)):
        until = time.monotonic() + share * (deadline - time.monotonic())
        blocks = _blocks(task, ids, largest, first)
        ids = _improved(task, ids, blocks, metric, until)
    note = (
        f"The table was cut into {len(blocks)} blocks of near classes; each block is optimal by "
        "itself or the best found in its time, the whole need not be."
    )
    return Division(repair(task, number_classes(ids)), notes=(note,))


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


def _improved(
    task: PartitionTask,
    ids: NDArray[np.int64],
    blocks: list[NDArray[np.int64]],
    metric: str,
    deadline: float,
) -> NDArray[np.int64]:
    """Divide each block anew where that is better than its classes in ``ids``."""
    ids = ids.copy()
    for number, rows in enumerate(blocks):
        share = time.monotonic() + (deadline - time.monotonic()) / (len(blocks) - number)
        part = optimum(task.take(rows), metric, share, number_classes(ids[rows]))
        ids[rows] = part.ids + ids.max() + 1
    return number_classes(ids)


def optimum(
    task: PartitionTask, metric: str, deadline: float, known: NDArray[np.int64] | None = None
) -> Optimum:
    """The optimum of one block, never worse than a ``known`` division."""
    from halfmask.kernels import distance, price

    rows = np.arange(len(task))
    far = np.asarray(distance.matrix(task.space.points, rows))
    instance = Instance(far, task.demands.k, deadline)
    if metric == "split":
        return largest_split(instance, int(task.options.get("classes", 2)))
    starts = _starts(task) if known is None else [known, *_starts(task)]
    if metric == "diameter":
        return smallest_diameter(instance, starts, task.seed)
    return smallest_sum(instance, {"dbil": price.DBIL, "wcsd": price.WCSD}[metric], starts)


def _compile(task: PartitionTask, metric: str) -> None:
    """Solve a few rows, so that compiling does not count as time of the search."""
    part = task.take(np.arange(min(len(task), 4)))
    alone = part.demands._replace(k=np.ones(len(part), dtype=np.int64))
    optimum(replace(part, models=(), demands=alone), metric, np.inf)


def _starts(task: PartitionTask) -> list[NDArray[np.int64]]:
    """Valid divisions to begin with; demands for rows alone decide."""
    return [start(task).ids for start in (divide_personal, divide_k_member, divide_mondrian)]


def _proven(task: PartitionTask, found: Optimum, metric: str) -> Division:
    ids = repair(task, number_classes(found.ids))
    notes: tuple[str, ...] = ()
    if found.gap:
        side = "higher" if metric == "split" else "lower"
        notes = (f"The search stopped: the optimum may be {side} by {found.gap:.6g}.",)
    return Division(ids, found.gap, notes, found.value)
