"""One partition task: rows as points, what each demands, the models that decide, whom it serves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InfeasibleDemandsError, ParameterError, UnsatisfiableError
from halfmask.metrics.space import Space, space_of
from halfmask.models.requirements import LEAVE_OUT, group_statistics, largest_feasible
from halfmask.models.verdict import most_achieved
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.kernels.partition.construction import Demands
    from halfmask.models.verdict import KernelDemand, Model
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class PartitionTask:
    """What is to be divided.

    Attributes:
        table: all rows.
        models: the promises.
        rows: the rows that are divided.
        space: these rows as points, normalized by the whole table.
        demands: what each of these rows demands.
        seed: for methods that draw at random.
        deadline: when to stop, as ``time.monotonic`` counts.
        options: what the method was asked for beyond that.
    """

    table: Table
    models: tuple[Model, ...]
    rows: NDArray[np.int64]
    space: Space
    demands: Demands
    seed: int | None = None
    deadline: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, some: NDArray[np.int64]) -> PartitionTask:
        """The same task for some of its rows, by their numbers in the task."""
        demands = self.demands._replace(
            k=self.demands.k[some],
            values=np.ascontiguousarray(self.demands.values[some]),
            l=np.ascontiguousarray(self.demands.l[some]),
            t=np.ascontiguousarray(self.demands.t[some]),
        )
        return replace(self, rows=self.rows[some], space=self.space.take(some), demands=demands)

    def uniform(self) -> PartitionTask:
        """The same task where everybody demands as many rows as anybody does."""
        highest = np.full(len(self), self.demands.k.max(initial=1))
        return replace(self, demands=self.demands._replace(k=highest))

    def failing(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which classes break a model, exactly, or hold fewer rows than one of them demands."""
        classes = self.classes(ids)
        highest = np.zeros(len(classes), dtype=np.int64)
        np.maximum.at(highest, ids, self.demands.k)
        passing = classes.rows >= highest
        for model in self.models:
            passing &= model.passes(classes)
        return ~passing & (classes.rows > 0)

    def classes(self, ids: NDArray[np.int64]) -> Classes:
        """The statistics of the classes that ``ids`` states."""
        return group_statistics(Tuples.of(self.table), self.models, self.rows, ids)


def blocks_of(task: PartitionTask, largest: int) -> list[NDArray[np.int64]]:
    """The rows of each block; a block meets the demands of everybody in it."""
    if len(task) <= largest:
        return [np.arange(len(task))]
    from halfmask.kernels.partition import construction

    order, starts = construction.cut(
        task.space.points,
        task.space.places,
        task.demands,
        largest,
        False,  # noqa: FBT003
    )
    return [np.asarray(one) for one in np.split(order, starts[1:-1])]


def number_classes(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same classes, numbered from 0 without gaps."""
    return np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)


def task_of(table: Table, models: Sequence[Model], **settings: Any) -> PartitionTask:
    """The task of dividing all rows of ``table``."""
    refuse_models(models)
    rows = np.arange(len(table))
    return PartitionTask(
        table, tuple(models), rows, space_of(table), row_demands(table, models), **settings
    )


def refuse_models(models: Sequence[Model]) -> None:
    """Refuse models that need more than the rows of one class at a time."""
    for model in models:
        if model.population is not None or model.whole:
            raise ParameterError(
                "models", model.name, "it with method='optimal', which looks at all classes at once"
            )


def row_demands(table: Table, models: Sequence[Model]) -> Demands:
    """What the kernels can see to; the models themselves decide at the end."""
    from halfmask.kernels.partition.construction import Demands

    rows = len(table)
    stated = [demand for model in models if (demand := model.kernel_demand(table)) is not None]
    k = np.ones(rows, dtype=np.int64)
    for demand in stated:
        k = np.maximum(k, demand.rows)
    of_columns = [demand for demand in stated if demand.column is not None]
    codes = [_value_codes(table, demand) for demand in of_columns]
    domain = max((int(one.max(initial=0)) + 1 for one in codes), default=1)
    shares = np.zeros((len(codes), domain))
    for s, one in enumerate(codes):
        # t is the distance from the shares of the whole table, among values that count.
        known = one[one >= 0]
        shares[s] = np.bincount(known, minlength=domain) / max(len(known), 1)
    return Demands(
        k,
        _matrix(codes, rows, np.int32),
        _matrix([demand.values for demand in of_columns], rows, np.int64),
        _matrix([demand.distance for demand in of_columns], rows, np.float64),
        shares,
    )


def _value_codes(table: Table, demand: KernelDemand) -> NDArray[np.int32]:
    """The codes of the column that a demand speaks of; -1 where a missing value does not count."""
    encoded = table.encode(str(demand.column))
    if demand.missing or not encoded.values.null_count:
        return encoded.codes
    present = encoded.values.is_valid().to_numpy(zero_copy_only=False)
    return np.where(present[encoded.codes], encoded.codes, np.int32(-1))


def _matrix(columns: list[Any], rows: int, kind: type) -> NDArray[Any]:
    """One column each; a number stands for all rows."""
    matrix: NDArray[Any] = np.zeros((rows, len(columns)), dtype=kind)
    for place, column in enumerate(columns):
        matrix[:, place] = column
    return matrix


def require_feasible(task: PartitionTask) -> None:
    """Demand that all rows can be served.

    Raises:
        InfeasibleDemandsError: people demand more than the table can give.
        UnsatisfiableError: all rows in one class would break a model.
    """
    keep = largest_feasible(Tuples.of(task.table), task.models)
    if not keep.all():
        out = np.flatnonzero(~keep)
        names = task.table.schema.policy_names if any(m.policy for m in task.models) else ()
        raise InfeasibleDemandsError(names, out.tolist(), len(task.table), LEAVE_OUT)
    one = np.zeros(len(task), dtype=np.int64)
    if len(task) == 0 or task.failing(one).any():
        classes = task.classes(one)
        verdicts = [model.check(classes) for model in task.models]
        raise UnsatisfiableError(
            "Not even all rows in one class keep the promises.",
            verdicts=verdicts,
            suppressed=0,
            advice=most_achieved(verdicts),
        )
