"""Tables that were made row by row, as points of a frontier: divided, perturbed, private, given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.anonymize.partition.run import Settings, candidate
from halfmask.anonymize.run import PERTURBING
from halfmask.assessment.points import Point
from halfmask.errors import PrivacyError
from halfmask.metrics.covering import Released, covering_rows
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.targets import targets
from halfmask.metrics.utility.classes import class_utility
from halfmask.metrics.utility.distributions import column_distance
from halfmask.models.needs import prepare
from halfmask.release.leaving import leaving
from halfmask.table.hierarchies.auto import settled
from halfmask.table.hierarchies.check import check_hierarchies
from halfmask.table.schema import Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.metrics.sides import Published
    from halfmask.models.verdict import Model

_ATTACKS = 200


def divided_point(
    table: Table, name: str, method: str, models: Sequence[Model], time_limit: float | None
) -> Point | None:
    """Divide the rows into classes; None where nothing satisfies the models. Nothing is sealed."""
    try:
        if method in PERTURBING:
            from halfmask.anonymize.run import anonymize

            made: Any = anonymize(table, *models, method=method, seed=0, time_limit=time_limit)
        else:
            made = _divided(table, method, models, time_limit)
    except PrivacyError:
        return None
    stated = tuple(model.to_dict() for model in models)
    return finished_point(table, name, made, method=method, models=stated)


def _divided(table: Table, method: str, models: Sequence[Model], time_limit: float | None) -> Table:
    ready = prepare(settled(table), models)
    check_hierarchies(ready)
    found = candidate(ready, models, Settings(method, seed=0, time_limit=time_limit))
    kept = ready.arrow.filter(pa.array(found.step >= 0))
    labels = found.recoding.published(ready, found.step)
    columns = {
        name: labels[name] if name in labels.column_names else kept[name] for name in leaving(ready)
    }
    return Table(pa.table(columns), Schema())


def private_point(table: Table, epsilon: float, method: str, domains: Any, **options: Any) -> Point:
    """Draw a private table with ``epsilon``, measure it and forget it."""
    from halfmask.synthesize.run import synthesize

    made: Any = synthesize(table, method, epsilon=epsilon, domains=domains, **options)
    name = f"epsilon = {epsilon:g}; {made.method}"
    return finished_point(table, name, made, method=made.method, epsilon=float(epsilon))


def finished_point(
    table: Table,
    name: str,
    release: Published | Table,
    *,
    method: str = "given",
    models: tuple[dict[str, Any], ...] = (),
    epsilon: float | None = None,
) -> Point:
    """A finished table as a point; loss is not known where its rows stand for nobody."""
    attacked = targets(table, release, attacks=_ATTACKS)
    both = attacked.sides
    sizes = Released(both.quasi).rows
    fits = covering_rows(both.quasi)
    left = max(0.0, 1 - both.after / both.before)
    made_up = epsilon is not None or float((fits == 0).mean()) > left + 1e-9
    divided = bool(models) and not made_up
    chance = np.where(fits > 0, 1.0 / np.maximum(fits, 1), 0.0)
    gains = [inference(attacked, column.name).risk.value for column in both.sensitive]
    distance = [column_distance(column, both.after).hellinger for column in both.quasi]
    return Point(
        name,
        method,
        0.0,
        models,
        len(sizes) / both.before if divided else float(chance.mean()),
        1 / float(sizes.min()) if divided else float(chance.max()),
        max((gain for gain in gains if gain is not None), default=None),
        None if made_up else class_utility(both).loss,
        float(np.mean(distance)),
        left,
        len(sizes),
        epsilon,
    )
