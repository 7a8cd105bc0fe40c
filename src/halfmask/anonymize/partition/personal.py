"""Classes that keep demanding people together: form them where rows are dense, then improve them.

The greedy methods let people who demand much absorb people who demand little, and never count what
taking in a demanding person costs or saves. Here every row knows what it would lose in any class:
the distance to the nearest rows that could just fill one. Classes form where that is least; a row
joins by its marginal cost, which is what it adds to the class less what it loses anyway. Then rows
move and change places between near classes, and pairs of classes are cut anew, while that lowers
the loss; a demanding person who leaves a class of others lets it fall apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.division import Division
from halfmask.anonymize.partition.mend import mend, numbered

if TYPE_CHECKING:
    from halfmask.anonymize.partition.task import Task

OPTIONS: dict[str, tuple[str, ...]] = {}

_REGRET = 1.25  # how much of what a row loses anyway is taken off its marginal cost
_SWEEPS = 20
_ENOUGH = 0.001  # stop when a sweep gains less than this share
_NEAREST = 16  # rows that are kept for each row; more cost time and gain nothing


def divide(task: Task) -> Division:
    """Divide the rows; nothing is drawn at random."""
    from halfmask.kernels import exchange, tree
    from halfmask.kernels.form import form
    from halfmask.kernels.linked import lists

    if len(task) == 1:
        return Division(mend(task, np.zeros(1, dtype=np.int64)))
    points, places, demands = task.space.points, task.space.places, task.demands
    wanted = min(_NEAREST, len(task) - 1)
    nodes = tree.build(points, places, 16)
    near, far = tree.neighbors(points, places, nodes, wanted)
    last = np.clip(demands.k - 2, 0, wanted - 1)
    anyway = far[np.arange(len(task)), last].astype(np.float64)
    seeds = np.argsort(anyway, kind="stable")
    ids = form(points, places, nodes, demands, seeds, anyway, _REGRET)
    state = lists(points, demands.k, mend(task, ids, near))
    exchange.improve(points, demands, state, near, _SWEEPS, _ENOUGH)
    return Division(mend(task, numbered(state.ids), near))
