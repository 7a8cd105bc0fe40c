"""What models need of a table, and the class statistics that give it to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from halfmask.errors import ParameterError, SchemaError
from halfmask.models.personal_k_anonymity import PersonalKAnonymity
from halfmask.models.personal_l_diversity import PersonalLDiversity
from halfmask.models.personal_t_closeness import PersonalTCloseness
from halfmask.models.verdict import Model
from halfmask.table.classes import distinct
from halfmask.table.demands import demand_key, states
from halfmask.table.histogram import value_facts
from halfmask.table.numbers import is_number
from halfmask.table.population import widen
from halfmask.table.schema import NO_QUASI
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def demanded(table: Table, models: Sequence[Model]) -> tuple[Model, ...]:
    """``models``, and beside them what keeps every demand that people state.

    Personal k-anonymity, and personal l-diversity and t-closeness of every sensitive column: where
    one of them is named already, that one is taken. People who state nothing have nothing to keep.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30], "k_i": [2, 1]},
        ...     schema={"policy": {"k": "k_i"}, "columns": {"age": "quasi"}})
        >>> demanded(people, [])
        (PersonalKAnonymity(default=1),)
    """
    named = {(type(model), model.columns) for model in models if isinstance(model, Model)}
    own: list[Model] = [PersonalKAnonymity(default=1)]
    for name in table.schema.sensitive:
        if name in table.arrow.column_names:
            own.append(PersonalLDiversity(name, default=1))
            own.append(PersonalTCloseness(name, demanded_distance(table, name), default=1.0))
    wanted = [model for model in own if (type(model), model.columns) not in named]
    return (*models, *(model for model in wanted if _is_stated(table, model)))


def demanded_distance(table: Table, name: str) -> Literal["equal", "ordered"]:
    """How t of a sensitive column is measured where nobody says: along numbers, dates, orders."""
    kind = table.encode(name).values.type
    along = table.schema.columns[name].order is not None or is_number(kind)
    return "ordered" if along or pa.types.is_temporal(kind) else "equal"


def _is_stated(table: Table, model: Model) -> bool:
    """Whether anybody states what ``model`` reads, and for l and t whether it asks for anything."""
    for key in demand_keys(table, model):
        numbers = value_facts(table, key)["numbers"]
        assert numbers is not None  # noqa: S101 - demands are numbers
        if model.policy == ("k",) and not np.isnan(numbers).all():
            return True
        if (numbers < 1 if model.policy == ("t",) else numbers > 1).any():
            return True
    return False


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
    ``demand_key``. With ``counts``, each row of ``table`` stands for so many.
    """
    names = [name for model in models for name in (*model.columns, *demand_keys(table, model))]
    populations = _populations(models)
    return distinct(
        table,
        table.schema.quasi,
        columns=list(dict.fromkeys(names)),
        population=populations[0] if populations else None,
        counts=counts,
    )


def demand_keys(table: Table, model: Model) -> list[str]:
    """What a model reads of people's demands, where anybody can state them."""
    of = model.columns[0] if model.columns else ""
    return [demand_key(demand, of) for demand in model.policy if states(table.schema, demand)]


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
    if getattr(model, "default", None) is None:
        found += [
            f"the schema does not say where people's own {demand} stands: "
            f'add {demand} = "<column>" under [policy], or give default=.'
            for demand in model.policy
            if not states(table.schema, demand)
        ]
    if model.policy:
        found += [
            f"the policy column '{column}' is not in the table."
            for column in table.schema.policy_names
            if column not in known
        ]
    inspect = getattr(model, "faults", None)
    if not found and len(table) and inspect is not None:
        found += inspect(table)
    return found
