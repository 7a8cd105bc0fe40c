"""Classes that fail are merged with near ones until all models hold.

This is also the rule for rows left over: such a row joins the class that it costs least to widen,
among those that are then large enough for it; where there is none, near classes merge until one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InternalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import Task

_FEW = 200  # failing classes up to which all classes are candidates


def mend(
    task: Task, ids: NDArray[np.int64], near: NDArray[np.int32] | None = None
) -> NDArray[np.int64]:
    """Give every row a class such that all models hold; ids count from 0 without gaps."""
    from halfmask.kernels.absorb import absorb
    from halfmask.kernels.linked import lists

    ids = _alone(ids)
    points, k = task.space.points, task.demands.k
    while True:
        failing = task.failing(ids)
        count = int(np.count_nonzero(failing))
        if not count:
            return ids
        if len(failing) == 1:
            raise InternalError("All rows together break a model that was found to hold.")
        if count > _FEW and near is None:
            near = neighbors(task, 16)
        state = lists(points, k, ids)
        flags = np.zeros(len(task), dtype=np.bool_)
        flags[: len(failing)] = failing
        candidates = near if count > _FEW and near is not None else np.zeros((0, 0), np.int32)
        absorb(points, k, state, flags, candidates)
        ids = numbered(state.ids)


def neighbors(task: Task, wanted: int) -> NDArray[np.int32]:
    """The nearest other rows of every row; -1 where there are fewer."""
    from halfmask.kernels import tree

    points, places = task.space.points, task.space.places
    return np.asarray(tree.neighbors(points, places, tree.build(points, places, 16), wanted)[0])


def numbered(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same classes, numbered from 0 without gaps."""
    return np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _alone(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give each row left over a class of its own."""
    left = np.flatnonzero(ids < 0)
    out = ids.copy()
    out[left] = ids.max(initial=-1) + 1 + np.arange(len(left))
    return numbered(out)
