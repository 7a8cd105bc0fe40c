"""Whom a release can serve: the largest set of rows whose own demands can all be met.

Whoever demands more than all rows together give leaves no trace: such rows are taken out before
anything else is computed, so that nothing which leaves depends on what they hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InfeasibleDemandsError
from halfmask.models.needs import asked_for, demand_keys, prepare
from halfmask.table.classes import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


def group_statistics(
    table: Table, models: Sequence[Model], rows: NDArray[np.int64], ids: NDArray[np.int64]
) -> Classes:
    """The statistics that ``models`` read of ``rows`` in the classes that ``ids`` states."""
    columns = {name: name for model in models for name in model.columns}
    columns |= {key: key for model in models for key in demand_keys(table, model)}
    weighted = any(model.weighted for model in models)
    return grouped(table, rows, ids, columns=columns, weighted=weighted)


def largest_feasible(table: Table, models: Sequence[Model]) -> NDArray[np.bool_]:
    """The largest set of rows whose own demands can all be met, as a mask.

    Whoever demands more than all rows together give must go; then the others have fewer, so this
    repeats. Every set that can be served survives each round, so what remains is the largest. It
    depends on nothing that the others hold, but for the values that some demand to be many.
    """
    keep = np.ones(len(table), dtype=np.bool_)
    asked = [(model, asked_for(table, model)) for model in models if model.policy]
    while True:
        before = int(keep.sum())
        for model, demands in asked:
            here = np.flatnonzero(keep)
            if len(here):
                one = np.zeros(len(here), dtype=np.int64)
                classes = group_statistics(table, (model,), here, one)
                keep[here] = ~model.unmet(classes, one, demands[here])
        if int(keep.sum()) == before:
            return keep


def leave_out_unmet(table: Table, models: Sequence[Model], most: int) -> tuple[Table, int]:
    """The table without the people whose demands nothing can meet, and how many rows that takes.

    Where all of them would have to go, the table stays whole: what comes after refuses it and says
    why.

    Raises:
        InfeasibleDemandsError: more than ``most`` rows would have to go. It is said before anything
            else is looked at, so that no error depends on what these people hold.
    """
    own = [model for model in models if model.policy]
    if not own:
        return table, 0
    keep = largest_feasible(prepare(table, own), own)
    out = np.flatnonzero(~keep)
    if len(out) in (0, len(table)):
        return table, 0
    if len(out) > most:
        raise InfeasibleDemandsError(table.schema.policy_names, out.tolist(), len(table))
    return table.keep(keep), len(out)
