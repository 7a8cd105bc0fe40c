"""What models need of a table, and the class statistics that give it to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.errors import ParameterError, SchemaError
from halfmask.models.statistics import POLICY
from halfmask.models.verdict import Model
from halfmask.table.classes import distinct
from halfmask.table.population import widen
from halfmask.table.schema import NO_QUASI
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


def prepare(table: Table, models: Sequence[Model]) -> Table:
    """The table made ready for ``models``: everything they need is there.

    Where a model compares with a population, the table that comes back also knows the
    population's values; its codes and hierarchies are the ones to go on with.

    Raises:
        ParameterError: there are no models, or something that is none.
        SchemaError: with all that the table lacks.
    """
    require_table(table)
    require_models(models)
    found = _table_faults(table)
    for model in models:
        found += [f"{model.name}: {fault}" for fault in _model_faults(table, model)]
    populations = _populations(models)
    if len(populations) > 1:
        found.append("The models compare with different populations: give all the same table.")
    if found:
        raise SchemaError(*dict.fromkeys(found))
    return widen(table, populations[0], table.schema.quasi) if populations else table


def require_models(models: Sequence[Model]) -> None:
    """Refuse what is no model; a class such as ``KAnonymity`` wants its parameters first."""
    if not models:
        raise ParameterError("models", (), "at least one model, such as KAnonymity(5)")
    for model in models:
        if isinstance(model, type):
            raise ParameterError("models", model.__name__, "it its parameters, as KAnonymity(5)")
        if not isinstance(model, Model):
            raise ParameterError("models", type(model).__name__, "models, such as KAnonymity(5)")


def statistics(
    table: Table, models: Sequence[Model], counts: NDArray[np.int64] | None = None
) -> tuple[Classes, NDArray[np.int32]]:
    """The distinct tuples of a prepared table with what ``models`` read, and the tuple of each row.

    Histograms of sensitive columns are keyed by the column's name, those of personal demands by
    ``"policy."`` and the demand. With ``counts``, each row of ``table`` stands for so many.
    """
    sensitive = list(dict.fromkeys(name for model in models for name in model.columns))
    demands = {
        POLICY + demand: table.schema.policy[demand]
        for model in models
        for demand in model.policy
        if demand in table.schema.policy
    }
    populations = _populations(models)
    classes, ids = distinct(
        table,
        table.schema.quasi,
        columns=list(dict.fromkeys([*sensitive, *demands.values()])),
        population=populations[0] if populations else None,
        counts=counts,
    )
    histograms = {name: classes.histograms[name] for name in sensitive}
    histograms |= {key: classes.histograms[name] for key, name in demands.items()}
    return replace(classes, histograms=histograms), ids


def _populations(models: Sequence[Model]) -> list[Table]:
    """The different population tables of ``models``."""
    tables = [model.population for model in models if model.population is not None]
    return list({id(table): table for table in tables}.values())


def _table_faults(table: Table) -> list[str]:
    known = table.arrow.column_names
    found = [
        f"The quasi-identifier '{name}' is not in the table, which has: {', '.join(known)}."
        for name in table.schema.quasi
        if name not in known
    ]
    if not table.schema.quasi:
        found.append(NO_QUASI)
    if len(table) == 0:
        found.append("The table has no rows: there is nobody to protect.")
    return found


def _model_faults(table: Table, model: Model) -> list[str]:
    known = table.arrow.column_names
    found = []
    for name in model.columns:
        if name not in known:
            found.append(f"column '{name}' is not in the table, which has: {', '.join(known)}.")
        elif name in table.schema.quasi:
            found.append(f"column '{name}' is a quasi-identifier: name a sensitive column.")
    for demand in model.policy:
        column = table.schema.policy.get(demand)
        if column is None and getattr(model, "default", None) is None:
            found.append(
                f"the schema does not say where people's own {demand} stands: "
                f'add {demand} = "<column>" under [policy], or give default=.'
            )
        elif column is None:
            continue
        elif column not in known:
            found.append(f"the policy column '{column}' is not in the table.")
    inspect = getattr(model, "faults", None)
    if not found and len(table) and inspect is not None:
        found += inspect(table)
    return found
