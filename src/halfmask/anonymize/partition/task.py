"""One partition task: rows as points, what each of them demands, and the models that decide."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.metrics.space import Space, space_of
from halfmask.models import (
    AlphaKAnonymity,
    KAnonymity,
    LDiversity,
    PersonalKAnonymity,
    PersonalLDiversity,
    PersonalTCloseness,
    TCloseness,
)
from halfmask.models.needs import demand_keys
from halfmask.table.classes import grouped
from halfmask.table.demands import demand_key, states
from halfmask.table.histogram import value_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.kernels.demands import Demands
    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be divided.

    Attributes:
        table: all rows.
        models: the promises.
        rows: the rows that are divided; the others are left out.
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

    def take(self, some: NDArray[np.int64]) -> Task:
        """The same task for some of its rows, by their numbers in the task."""
        demands = self.demands._replace(
            k=self.demands.k[some],
            values=np.ascontiguousarray(self.demands.values[some]),
            l=np.ascontiguousarray(self.demands.l[some]),
            t=np.ascontiguousarray(self.demands.t[some]),
        )
        return replace(self, rows=self.rows[some], space=self.space.take(some), demands=demands)

    def uniform(self) -> Task:
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
        columns = {name: name for model in self.models for name in model.columns}
        columns |= {key: key for model in self.models for key in demand_keys(self.table, model)}
        return grouped(self.table, self.rows, ids, columns=columns)


def task_of(table: Table, models: Sequence[Model], **settings: Any) -> Task:
    """The task of dividing all rows of ``table``."""
    refuse(models)
    rows = np.arange(len(table))
    return Task(table, tuple(models), rows, space_of(table), demands_of(table, models), **settings)


def refuse(models: Sequence[Model]) -> None:
    """Refuse models that need more than the rows of one class at a time."""
    for model in models:
        if model.population is not None or model.whole:
            raise ParameterError(
                "models", model.name, "it with method='optimal', which looks at all classes at once"
            )


def demands_of(table: Table, models: Sequence[Model]) -> Demands:
    """What the kernels can see to; the models themselves decide at the end."""
    from halfmask.kernels.demands import Demands

    rows = len(table)
    k = np.ones(rows, dtype=np.int64)
    names: list[str] = []
    l_: list[NDArray[Any]] = []
    t: list[NDArray[Any]] = []
    for model in models:
        if isinstance(model, KAnonymity | AlphaKAnonymity):
            k = np.maximum(k, model.k)
        elif isinstance(model, PersonalKAnonymity):
            k = np.maximum(k, personal(table, "k", model.default).astype(np.int64))
        elif isinstance(model, LDiversity):
            _add(names, l_, t, model.column, np.full(rows, np.ceil(model.l)), np.ones(rows))
        elif isinstance(model, PersonalLDiversity):
            own = personal(table, "l", model.default, model.column)
            _add(names, l_, t, model.column, own, np.ones(rows))
        elif isinstance(model, TCloseness) and model.distance == "equal":
            _add(names, l_, t, model.column, np.zeros(rows), np.full(rows, float(model.t)))
        elif isinstance(model, PersonalTCloseness) and model.distance == "equal":
            own = personal(table, "t", model.default, model.column)
            _add(names, l_, t, model.column, np.zeros(rows), own)
    encoded = [table.encode(name) for name in names]
    domain = max((len(one.values) for one in encoded), default=1)
    shares = np.zeros((len(names), domain))
    for s, one in enumerate(encoded):
        shares[s] = np.bincount(one.codes, minlength=domain) / max(rows, 1)
    return Demands(
        k,
        _matrix([one.codes for one in encoded], rows, np.int32),
        _matrix(l_, rows, np.int64),
        _matrix(t, rows, np.float64),
        shares,
    )


def personal(table: Table, demand: str, default: float | None, of: str = "") -> NDArray[np.float64]:
    """Everybody's own demand, that ``of`` a sensitive column; all are stated or have a default."""
    unstated = np.nan if default is None else float(default)
    if not states(table.schema, demand):  # a default speaks for everybody
        return np.full(len(table), unstated)
    key = demand_key(demand, of)
    numbers = value_facts(table, key)["numbers"]
    assert numbers is not None  # noqa: S101 - demands are numbers
    out: NDArray[np.float64] = np.where(np.isnan(numbers), unstated, numbers)[
        table.encode(key).codes
    ]
    return out


def _add(
    names: list[str],
    l_: list[NDArray[Any]],
    t: list[NDArray[Any]],
    name: str,
    values: NDArray[Any],
    closeness: NDArray[Any],
) -> None:
    names.append(name)
    l_.append(values)
    t.append(closeness)


def _matrix(columns: list[NDArray[Any]], rows: int, kind: type) -> NDArray[Any]:
    if not columns:
        return np.zeros((rows, 0), dtype=kind)
    return np.ascontiguousarray(np.column_stack(columns), dtype=kind)
