"""From a table and models to a candidate whose classes publish tight labels."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.partition.methods import (
    LABELS,
    LINKS,
    METRIC,
    Method,
    by_labels,
    divide_k_member,
    divide_mdav,
    divide_mondrian,
    divide_personal,
    repair,
)
from halfmask.anonymize.partition.task import require_feasible, task_of
from halfmask.anonymize.partition.widths import kinds_of
from halfmask.errors import ParameterError, UnsatisfiableError
from halfmask.metrics.partition import PointClasses, diameter_loss
from halfmask.release.candidate import Candidate
from halfmask.release.labels import required_sharing
from halfmask.release.partition import RowPartition, column_loss, table_loss

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.partition.methods import Division
    from halfmask.anonymize.partition.task import PartitionTask
    from halfmask.models.verdict import Model
    from halfmask.table.table import Table


def divide_exactly(task: PartitionTask) -> Division:
    """The proven optimum, see ``exact``; its solver loads when it is asked for."""
    from halfmask.anonymize.partition import exact

    return exact.find_optimum(task)


DIVISIONS = {
    "personal": Method(divide_personal),
    "mondrian": Method(divide_mondrian, options={"cut": ("labels", "sides", "whole")}),
    "mdav": Method(divide_mdav),
    "k-member": Method(divide_k_member, options={"score": ("improved", "plain")}, draws=True),
    "exact": Method(
        divide_exactly,
        options={"classes": (), "block": (), **dict.fromkeys(LINKS)},
        metrics=(METRIC, "wcsd", "diameter", "split"),
        draws=True,
    ),
}
OPTIONS: dict[str, tuple[str | None, ...]] = {
    "labels": ("tight", "levels", "sets"),
    "fallback": (None, "uniform"),
    "on_infeasible": ("error", "suppress"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How to divide.

    Attributes:
        method: one of ``DIVISIONS``.
        metric: what to minimize: ``"loss"`` (that of the labels) or ``"dbil"``.
        seed: for methods that draw at random.
        time_limit: seconds, for methods that stop at any time.
        options: see ``OPTIONS`` and those of the method.
    """

    method: str
    metric: str = LABELS
    seed: int | None = None
    time_limit: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def divide_rows(table: Table, models: Sequence[Model], settings: Settings) -> Candidate:
    """Divide all rows of a prepared table; the candidate is yet to be sealed.

    Whom nobody can serve is not among them any more where that is wanted (``on_infeasible``).
    """
    options = _check_settings(settings)
    deadline = None if settings.time_limit is None else time.monotonic() + settings.time_limit
    task = task_of(
        table,
        models,
        seed=settings.seed,
        deadline=deadline,
        options={**options, "metric": settings.metric},
    )
    require_feasible(task)
    division, notes = _divide(task, settings.method, options.get("fallback"))
    partition, ids = _label(task, division.ids)
    if not np.array_equal(
        ids[task.rows], division.ids
    ):  # other classes, of which nothing is proven
        division = replace(division, ids=ids[task.rows].astype(np.int64), gap=None, value=None)
    _require_apart(task, partition, division.ids)
    parameters = {
        "seed": settings.seed,
        "time_limit": settings.time_limit,
        "weights": dict(zip(task.space.columns, task.space.weights.tolist(), strict=True)),
        "models": [model.to_dict() for model in models],
        "value": _value(task, division, partition, ids),
        "left_out": 0,
        "suppression": 0.0,
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


def _require_apart(task: PartitionTask, partition: RowPartition, ids: NDArray[np.int64]) -> None:
    """Refuse rows that may not stand together in classes that publish the same labels.

    Raises:
        UnsatisfiableError: a reader would see them in one class.
    """
    name = task.options.get("cannot_link")
    if name is None:
        return
    encoded = task.table.encode(str(name))
    held = encoded.codes[task.rows]
    present = encoded.values.is_valid().to_numpy(zero_copy_only=False)[held]
    pairs = np.stack((partition.same(task.table)[ids], held))[:, present]
    if np.unique(pairs, axis=1).shape[1] < pairs.shape[1]:
        raise UnsatisfiableError(
            f"Rows that {name} keeps apart would publish the same labels: to a reader they stand "
            "in one class.",
            advice=["Keep apart only rows whose quasi-identifiers differ."],
        )


def _label(task: PartitionTask, ids: NDArray[np.int64]) -> tuple[RowPartition, NDArray[np.int32]]:
    """The labels of the classes, and the class of each row of the table.

    Classes that publish the same labels are one class to a reader. Most promises survive that;
    where one may not, such classes are merged and repaired.
    """
    step = np.full(len(task.table), -1, dtype=np.int32)
    step[task.rows] = ids
    kinds = kinds_of(task)
    partition = RowPartition.of(
        task.table,
        step,
        {name: kind == "range" for name, kind in kinds.items()},
        required_sharing(task.table, task.models),
        sets="set" in kinds.values(),
    )
    if all(model.monotone for model in task.models):
        return partition, step
    same = partition.same(task.table)[ids]
    if not task.failing(same).any():
        return partition, step
    return _label(task, repair(task, same))


def _value(
    task: PartitionTask, division: Division, partition: RowPartition, step: NDArray[np.int32]
) -> float:
    """What was minimized."""
    if division.value is not None:
        return division.value
    if not by_labels(task):
        return division_loss(task, division.ids)
    table = task.table
    losses = {name: column_loss(partition, table, step, name) for name in table.schema.quasi}
    return table_loss(losses, {name: table.schema.columns[name].weight for name in losses})


def division_loss(task: PartitionTask, ids: NDArray[np.int64]) -> float:
    """The DBIL of a division: the sum over rows of the diameter of their class."""
    return diameter_loss(PointClasses.of_rows(task.space, ids))


def _score(task: PartitionTask, division: Division) -> float:
    return _value(task, division, *_label(task, division.ids))


def _divide(
    task: PartitionTask, method: str, fallback: str | None
) -> tuple[Division, tuple[str, ...]]:
    divide = DIVISIONS[method].divide
    division = divide(task)
    if fallback != "uniform" or (task.demands.k == task.demands.k.max(initial=1)).all():
        return division, division.notes
    uniform = divide(task.uniform())
    if _score(task, uniform) < _score(task, division):
        note = "One k for everybody, the highest demand, lost less and was taken."
        return uniform, (*uniform.notes, note)
    return division, division.notes


def _check_settings(settings: Settings) -> dict[str, Any]:
    if settings.method not in DIVISIONS:
        raise ParameterError("method", settings.method, "one of " + ", ".join(DIVISIONS))
    method = DIVISIONS[settings.method]
    known: dict[str, tuple[str | None, ...] | None] = {**OPTIONS, **method.options}
    for name, value in settings.options.items():
        if name not in known:
            raise ParameterError(name, value, f"only {', '.join(known)} with {settings.method}")
        words = known[name]
        if words and value not in words:
            raise ParameterError(name, value, "one of " + ", ".join(map(repr, words)))
        if words is None and not isinstance(value, str):
            raise ParameterError(name, value, "the name of a column")
    if settings.metric not in method.metrics:
        raise ParameterError("metric", settings.metric, "one of " + ", ".join(method.metrics))
    return dict(settings.options)
