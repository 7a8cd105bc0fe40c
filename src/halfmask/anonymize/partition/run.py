"""From a table and models to a candidate whose classes publish tight labels."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.partition.feasible import feasible
from halfmask.anonymize.partition.mend import mend
from halfmask.anonymize.partition.task import task_of
from halfmask.errors import ParameterError
from halfmask.metrics.partition import diameter_loss
from halfmask.release.candidate import Candidate
from halfmask.release.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.partition.division import Division
    from halfmask.anonymize.partition.task import Task
    from halfmask.models.verdict import Model
    from halfmask.table.table import Table

# A method is a module with ``divide(task) -> Division`` and the OPTIONS that it knows.
METHODS = {
    "personal": "halfmask.anonymize.partition.personal",
    "mondrian": "halfmask.anonymize.partition.mondrian",
    "mdav": "halfmask.anonymize.partition.mdav",
    "k-member": "halfmask.anonymize.partition.k_member",
    "exact": "halfmask.anonymize.partition.exact",
}
OPTIONS: dict[str, tuple[str | None, ...]] = {
    "labels": ("tight", "levels"),
    "fallback": (None, "uniform"),
    "on_infeasible": ("error", "suppress"),
}
METRIC = "dbil"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to divide.

    Attributes:
        method: one of ``METHODS``.
        metric: what to minimize; the heuristics know ``"dbil"`` only.
        seed: for methods that draw at random.
        time_limit: seconds, for methods that stop at any time.
        options: see ``OPTIONS`` and those of the method.
    """

    method: str
    metric: str = METRIC
    seed: int | None = None
    time_limit: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def candidate(table: Table, models: Sequence[Model], settings: Settings) -> Candidate:
    """Divide the rows of a prepared table; the candidate is yet to be sealed."""
    options = _checked(settings)
    deadline = None if settings.time_limit is None else time.monotonic() + settings.time_limit
    whole = task_of(
        table,
        models,
        seed=settings.seed,
        deadline=deadline,
        options={**options, "metric": settings.metric},
    )
    task = feasible(whole, options.get("on_infeasible", "error"))
    division, notes = _divide(task, settings.method, options.get("fallback"))
    left_out = len(table) - len(task)
    if left_out:
        notes += (
            f"{left_out:,} rows were left out knowingly: they demand more than all can give.",
        )
    tight = options.get("labels", "tight") == "tight"
    lines = zip(whole.space.columns, whole.space.ordered, strict=True)
    partition, ids = _labeled(task, division.ids, {name: tight and line for name, line in lines})
    parameters = {
        "seed": settings.seed,
        "time_limit": settings.time_limit,
        "weights": dict(zip(whole.space.columns, whole.space.weights.tolist(), strict=True)),
        "models": [model.to_dict() for model in models],
        "value": division.value if division.value is not None else loss(task, division.ids),
        "left_out": left_out,
        **({"suppression": 0.0} if not left_out else {}),
        **options,
    }
    return Candidate(
        table=table,
        models=models,
        recoding=partition,
        step=ids,
        method=settings.method,
        metric=settings.metric,
        parameters=parameters,
        gap=division.gap,
        notes=notes,
    )


def _labeled(
    task: Task, ids: NDArray[np.int64], ordered: Mapping[str, bool]
) -> tuple[Partition, NDArray[np.int32]]:
    """The labels of the classes, and the class of each row of the table.

    Classes that publish the same labels are one class to a reader. Most promises survive that;
    where one may not, such classes are merged and mended.
    """
    step = np.full(len(task.table), -1, dtype=np.int32)
    step[task.rows] = ids
    partition = Partition.of(task.table, step, ordered)
    if all(model.monotone for model in task.models):
        return partition, step
    same = partition.same(task.table)[ids]
    if not task.failing(same).any():
        return partition, step
    return _labeled(task, mend(task, same), ordered)


def loss(task: Task, ids: NDArray[np.int64]) -> float:
    """The DBIL of a division: the sum over rows of the diameter of their class."""
    return diameter_loss(task.space, ids)


def _divide(task: Task, method: str, fallback: str | None) -> tuple[Division, tuple[str, ...]]:
    divide = importlib.import_module(METHODS[method]).divide
    division: Division = divide(task)
    if fallback != "uniform" or (task.demands.k == task.demands.k.max(initial=1)).all():
        return division, division.notes
    uniform: Division = divide(task.uniform())
    if loss(task, uniform.ids) < loss(task, division.ids):
        note = "One k for everybody, the highest demand, lost less and was taken."
        return uniform, (*uniform.notes, note)
    return division, division.notes


def _checked(settings: Settings) -> dict[str, Any]:
    if settings.method not in METHODS:
        raise ParameterError("method", settings.method, "one of " + ", ".join(METHODS))
    module = importlib.import_module(METHODS[settings.method])
    known = {**OPTIONS, **module.OPTIONS}
    for name, value in settings.options.items():
        if name not in known:
            raise ParameterError(name, value, f"only {', '.join(known)} with {settings.method}")
        if known[name] and value not in known[name]:
            raise ParameterError(name, value, "one of " + ", ".join(map(repr, known[name])))
    metrics = getattr(module, "METRICS", (METRIC,))
    if settings.metric not in metrics:
        raise ParameterError("metric", settings.metric, "one of " + ", ".join(metrics))
    return dict(settings.options)
