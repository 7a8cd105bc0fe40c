"""``anonymize``: from a table and models to a sealed release, by one of the methods."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from halfmask.anonymize.problem import Problem
from halfmask.anonymize.unsatisfiable import unsatisfiable
from halfmask.errors import ParameterError
from halfmask.metrics.registry import metric_named
from halfmask.models.exact import require_number
from halfmask.models.needs import prepare, statistics
from halfmask.release.candidate import Candidate
from halfmask.release.recoding import Recoding, Step
from halfmask.release.seal import require_declared, seal
from halfmask.table.hierarchies.check import check_hierarchies
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.anonymize.solution import Solution
    from halfmask.metrics.metric import Metric
    from halfmask.models.verdict import Model
    from halfmask.release.release import Release
    from halfmask.table.table import Table

# A method is a module with ``solve(task) -> Solution``; new ones are one line here.
METHODS = {
    "optimal": "halfmask.anonymize.optimal",
    "local": "halfmask.anonymize.local",
}


def anonymize(
    table: Table,
    *models: Model,
    method: str = "optimal",
    suppression: float = 0.0,
    metric: str | Metric = "loss",
    seed: int | None = None,
    time_limit: float | None = None,
) -> Release:
    """Generalize and suppress until every model holds, losing as little as possible.

    Args:
        table: the rows, with quasi-identifiers and hierarchies declared.
        models: the promises to keep, all at once.
        method: ``"optimal"`` (one level per column, proven best) or ``"local"`` (levels differ
            between classes, which loses less).
        suppression: the share of rows that may be left out, 0 to 1.
        metric: what to minimize, by name or as a metric.
        seed: for methods that draw at random; the others ignore it.
        time_limit: seconds; the best found by then is released with its proven gap.

    Raises:
        UnsatisfiableError: nothing satisfies the models; says what comes closest.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [31, 34, 38, 52], "sex": ["f", "m", "f", "m"]},
        ...     schema={"age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
        ...             "sex": "quasi"})  # doctest: +SKIP
        >>> hm.anonymize(people, hm.KAnonymity(2)).levels  # doctest: +SKIP
    """
    require_table(table)
    _require(table, method, suppression, time_limit)
    table = prepare(table, models)
    check_hierarchies(table)
    chosen = metric_named(metric) if isinstance(metric, str) else metric
    name = metric if isinstance(metric, str) else chosen.name
    parameters: dict[str, Any] = {
        "suppression": suppression,
        "seed": seed,
        "time_limit": time_limit,
        "weights": {name: table.schema.columns[name].weight for name in table.schema.quasi},
        "models": [model.to_dict() for model in models],
    }
    solution, step = _solve(table, models, chosen, method, parameters)
    steps = [_step(table.schema.quasi, levels) for levels in solution.steps or ()]
    return seal(
        Candidate(
            table=table,
            models=models,
            recoding=Recoding.of(table, steps),
            step=step,
            loss=solution.value if name == "loss" else None,
            method=method,
            metric=name,
            parameters=parameters | {"value": solution.value},
            gap=solution.gap,
            notes=solution.notes,
        )
    )


def _solve(
    table: Table, models: Sequence[Model], metric: Metric, method: str, parameters: dict[str, Any]
) -> tuple[Solution, NDArray[np.int32]]:
    """Search on the distinct tuples; what that needs is given back before rows are touched."""
    tuples, row_tuple = statistics(table, models)
    problem = Problem(
        tuples,
        [table.hierarchy(name) for name in table.schema.quasi],
        models,
        metric,
        suppression=parameters["suppression"],
        weights=list(parameters["weights"].values()),
    )
    solve = importlib.import_module(METHODS[method]).solve
    solution: Solution = solve(
        problem, seed=parameters["seed"], time_limit=parameters["time_limit"]
    )
    if solution.closest is not None:
        raise unsatisfiable(solution.closest, problem, table.schema.quasi)
    return solution, solution.tuple_step[row_tuple]


def _step(quasi: Sequence[str], levels: Sequence[int]) -> Step:
    return Step({name: int(level) for name, level in zip(quasi, levels, strict=True)})


def _require(table: Table, method: str, suppression: float, time_limit: float | None) -> None:
    if method not in METHODS:
        raise ParameterError("method", method, "one of " + ", ".join(METHODS))
    require_number("suppression", suppression, 0, 1)
    if time_limit is not None:
        require_number("time_limit", time_limit, 0, open_low=True)
    require_declared(table)
