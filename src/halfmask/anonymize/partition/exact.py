"""Proven optima for small tables: DBIL, WCSD, diameter or split; larger ones block by block.

The heuristics give a first division. Column generation with HiGHS proves how far it is from the
optimum and closes the gap; see ``docs/personal.md`` for what was tried and how far each goes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition import k_member, mondrian, personal
from halfmask.anonymize.partition.blocks import blocks_of
from halfmask.anonymize.partition.division import Division
from halfmask.anonymize.partition.mend import mend, numbered
from halfmask.anonymize.partition.optimum.apart import largest_split
from halfmask.anonymize.partition.optimum.instance import Instance, Optimum
from halfmask.anonymize.partition.optimum.sums import smallest_sum
from halfmask.anonymize.partition.optimum.widest import smallest_diameter
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import Task

OPTIONS: dict[str, tuple[str, ...]] = {"classes": (), "block": ()}
DRAWS = True  # at random, from the seed
METRICS = ("dbil", "wcsd", "diameter", "split")
PATIENCE = 60.0  # seconds where no time limit is stated
_WHOLE = {"dbil": 120, "wcsd": 80, "diameter": 300, "split": 400}


def divide(task: Task) -> Division:
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
    ids = personal.divide(task).ids
    # Blocks of the second round lie across the borders of the first.
    for share, first in ((0.5, largest), (1.0, largest // 2)):
        until = time.monotonic() + share * (deadline - time.monotonic())
        blocks = _blocks(task, ids, largest, first)
        ids = _improved(task, ids, blocks, metric, until)
    note = (
        f"The table was cut into {len(blocks)} blocks of near classes; each block is optimal by "
        "itself or the best found in its time, the whole need not be."
    )
    return Division(mend(task, numbered(ids)), notes=(note,))


def _blocks(
    task: Task, ids: NDArray[np.int64], largest: int, first: int
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
    task: Task,
    ids: NDArray[np.int64],
    blocks: list[NDArray[np.int64]],
    metric: str,
    deadline: float,
) -> NDArray[np.int64]:
    """Divide each block anew where that is better than its classes in ``ids``."""
    ids = ids.copy()
    for number, rows in enumerate(blocks):
        share = time.monotonic() + (deadline - time.monotonic()) / (len(blocks) - number)
        part = optimum(task.take(rows), metric, share, numbered(ids[rows]))
        ids[rows] = part.ids + ids.max() + 1
    return numbered(ids)


def optimum(
    task: Task, metric: str, deadline: float, known: NDArray[np.int64] | None = None
) -> Optimum:
    """The optimum of one block, never worse than a ``known`` division."""
    from halfmask.kernels import price
    from halfmask.kernels import space as kernels

    rows = np.arange(len(task))
    far = np.asarray(kernels.matrix(task.space.points, rows))
    instance = Instance(far, task.demands.k, deadline)
    if metric == "split":
        return largest_split(instance, int(task.options.get("classes", 2)))
    starts = _starts(task) if known is None else [known, *_starts(task)]
    if metric == "diameter":
        return smallest_diameter(instance, starts, task.seed)
    return smallest_sum(instance, {"dbil": price.DBIL, "wcsd": price.WCSD}[metric], starts)


def _compile(task: Task, metric: str) -> None:
    """Solve a few rows, so that compiling does not count as time of the search."""
    part = task.take(np.arange(min(len(task), 4)))
    alone = part.demands._replace(k=np.ones(len(part), dtype=np.int64))
    optimum(replace(part, models=(), demands=alone), metric, np.inf)


def _starts(task: Task) -> list[NDArray[np.int64]]:
    """Valid divisions to begin with; demands for rows alone decide."""
    return [method.divide(task).ids for method in (personal, k_member, mondrian)]


def _proven(task: Task, found: Optimum, metric: str) -> Division:
    ids = mend(task, numbered(found.ids))
    notes: tuple[str, ...] = ()
    if found.gap:
        side = "higher" if metric == "split" else "lower"
        notes = (f"The search stopped: the optimum may be {side} by {found.gap:.6g}.",)
    return Division(ids, found.gap, notes, found.value)
