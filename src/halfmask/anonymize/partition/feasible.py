"""Whom the table can serve: nobody hides among more people than there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.task import personal
from halfmask.errors import InfeasibleDemandsError, UnsatisfiableError
from halfmask.models import PersonalKAnonymity, PersonalLDiversity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import Task
    from halfmask.models.verdict import Model
    from halfmask.table.table import Table


def feasible(task: Task, on_infeasible: str) -> Task:
    """The task without the rows that nothing can serve, if that is wanted.

    Raises:
        InfeasibleDemandsError: people demand more than the table can give.
        UnsatisfiableError: all rows in one class would break a model.
    """
    keep = largest_feasible(task.table, task.models)
    if not keep.all():
        out = np.flatnonzero(~keep)
        if on_infeasible != "suppress" or not keep.any():
            names = task.table.schema.policy_names if any(m.policy for m in task.models) else ()
            raise InfeasibleDemandsError(names, out.tolist(), len(task.table))
        task = _without(task, keep)
    one = np.zeros(len(task), dtype=np.int64)
    if len(task) == 0 or task.failing(one).any():
        classes = task.classes(one)
        raise UnsatisfiableError(
            "Not even all rows in one class satisfy the models.",
            verdicts=[model.check(classes) for model in task.models],
            suppressed=0,
            advice=["Ask for no more than the verdicts say is achieved."],
        )
    return task


def largest_feasible(table: Table, models: tuple[Model, ...]) -> NDArray[np.bool_]:
    """The largest set of rows whose own demands can all be met, as a mask.

    Whoever demands more than all rows together give must go; then the others have fewer, so this
    repeats. Every set that can be served survives each round, so what remains is the largest.
    """
    keep = np.ones(len(table), dtype=np.bool_)
    while True:
        before = int(keep.sum())
        for model in models:
            if isinstance(model, PersonalKAnonymity):
                keep &= personal(table, "k", model.default) <= _people(table, keep)
            elif isinstance(model, PersonalLDiversity):
                values = len(np.unique(table.encode(model.column).codes[keep]))
                keep &= personal(table, "l", model.default, model.column) <= values
        if int(keep.sum()) == before:
            return keep


def _people(table: Table, keep: NDArray[np.bool_]) -> int:
    if table.schema.person is None:
        return int(keep.sum())
    return len(np.unique(table.encode(table.schema.person).codes[keep]))


def _without(task: Task, keep: NDArray[np.bool_]) -> Task:
    """The task without some rows; distributions are those of the rows that stay."""
    smaller = task.take(np.flatnonzero(keep))
    demands = smaller.demands
    shares = np.zeros_like(demands.shares)
    for s in range(shares.shape[0]):
        counts = np.bincount(demands.values[:, s], minlength=shares.shape[1])
        shares[s] = counts / max(len(smaller), 1)
    from dataclasses import replace

    return replace(smaller, demands=demands._replace(shares=shares))
