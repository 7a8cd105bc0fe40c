"""People's own demands as models read them from class statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import SchemaError
from halfmask.models.statistics import histogram, reduce
from halfmask.table.demands import demand_key, states
from halfmask.table.histogram import value_facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.histogram import Histogram
    from halfmask.table.table import Table


def demand_faults(table: Table, demand: str, default: float | None, of: str = "") -> list[str]:
    """What hinders reading the demand of everybody, in words; counts, never values."""
    if not states(table.schema, demand):  # a default speaks for everybody
        return []
    where = table.schema.policy.get(demand)
    named = f"the policy column '{where}'" if isinstance(where, str) else f"people's own {demand}"
    try:
        numbers = value_facts(table, demand_key(demand, of))["numbers"]
    except SchemaError as error:
        if "holds text" not in str(error):
            raise
        return [f"{named} holds text: give numbers."]
    assert numbers is not None  # noqa: S101 - demands are numbers
    found = []
    rows = np.bincount(table.encode(demand_key(demand, of)).codes, minlength=len(numbers))
    known = ~np.isnan(numbers)
    unstated = int(rows[~known].sum())
    if unstated and default is None:
        found.append(
            f"{named} is empty in {unstated} rows: fill it in "
            f"({'1' if demand != 't' else '1.0'} demands nothing), or give default=."
        )
    if demand == "t":
        wrong = int(rows[known & ((numbers < 0) | (numbers > 1))].sum())
        if wrong:
            found.append(f"{named}: {wrong} rows are not from 0 to 1.")
        return found
    broken = int(rows[known & (numbers != np.floor(numbers))].sum())
    low = int(rows[known & (numbers < 1)].sum())
    if broken:
        found.append(f"{named}: {broken} rows are not whole numbers.")
    if low:
        found.append(f"{named}: {low} rows are below 1.")
    return found


def stated(demands: Histogram, default: float | None) -> NDArray[np.float64]:
    """The demand behind each code; one that is not stated cannot be met without a default."""
    if demands.numbers is None:
        raise SchemaError("A policy column holds text: give numbers.")
    unknown = np.inf if default is None else float(default)
    return np.where(np.isnan(demands.numbers), unknown, demands.numbers)


def highest(classes: Classes, key: str, default: float | None) -> NDArray[np.float64]:
    """The highest demand in each class; the default where nobody can state one."""
    if default is not None and key not in classes.histograms:
        return np.where(classes.rows > 0, float(default), 0.0)
    demands = histogram(classes, key)
    return reduce(np.maximum, stated(demands, default)[demands.values], demands.starts)


def lowest(classes: Classes, key: str, default: float | None) -> NDArray[np.float64]:
    """The lowest demand in each class; negative, which nothing meets, where one is not stated."""
    if default is not None and key not in classes.histograms:
        return np.full(len(classes), float(default))
    demands = histogram(classes, key)
    asked = stated(demands, default)
    asked = np.where(np.isinf(asked), -1.0, asked)
    return reduce(np.minimum, asked[demands.values], demands.starts)
