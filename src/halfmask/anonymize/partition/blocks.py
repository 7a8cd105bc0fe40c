"""Large tables fall into blocks of near rows that quadratic methods can work on one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import Task

BLOCK = 40_000  # rows up to which a quadratic method takes the table as it is


def blockwise(
    task: Task, divide: Callable[[Task], NDArray[np.int64]], largest: int = BLOCK
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Divide each block by ``divide``; ids are -1 where a row is left over. Gives notes too."""
    blocks = blocks_of(task, largest)
    if len(blocks) == 1:
        return divide(task), ()
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda rows: divide(task.take(rows)), blocks))
    ids = np.full(len(task), -1, dtype=np.int64)
    known = 0
    for rows, part in zip(blocks, parts, strict=True):
        ids[rows] = np.where(part >= 0, part + known, -1)
        known += int(part.max(initial=-1)) + 1
    note = f"The table was first cut into {len(blocks)} blocks, which were divided one by one."
    return ids, (note,)


def blocks_of(task: Task, largest: int) -> list[NDArray[np.int64]]:
    """The rows of each block; a block meets the demands of everybody in it."""
    if len(task) <= largest:
        return [np.arange(len(task))]
    from halfmask.kernels import mondrian

    order, starts = mondrian.cut(
        task.space.points,
        task.space.places,
        task.demands,
        largest,
        False,  # noqa: FBT003
    )
    return [np.asarray(one) for one in np.split(order, starts[1:-1])]
