"""k-anonymity for many columns by co-clustering rows and the parts of columns.

Definition: rows are grouped by a MODL co-clustering of (row, part of a column); all rows of a
    group publish the same labels: the lowest node of each column's tree (``cocluster``), the set
    of parts (``cocluster-sets``) or the most frequent part (``cocluster-mode``).
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, ch. 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.anonymize.group_labels import Clustered, Published, publish
from halfmask.coclustering.groups import join, split_large
from halfmask.coclustering.optimize import cocluster
from halfmask.coclustering.prepare import melt
from halfmask.coclustering.signatures import meetings
from halfmask.coclustering.simplify import merge_small
from halfmask.errors import PrivacyError, UnsatisfiableError
from halfmask.models.needs import prepare, statistics
from halfmask.release.hybrid import HybridCandidate, seal_hybrid
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.release import Release

METHODS = ("cocluster", "cocluster-sets", "cocluster-mode")
_CLASS = "class"
_ROUNDS = 2


def clustered(
    table: Table,
    *,
    seed: int = 0,
    rounds: int = _ROUNDS,
    time_limit: float | None = None,
    bins: int = 10,
) -> Clustered:
    """Co-cluster the quasi-identifiers of a table.

    Raises:
        UnsatisfiableError: the rows show no structure to group them by.
    """
    melted = melt(table, table.schema.quasi, bins=bins)
    grid = cocluster(melted.observations, seed=seed, rounds=rounds, time_limit=time_limit)
    if not grid.informative:
        raise UnsatisfiableError(
            f"The {len(table):,} rows show no structure in their {len(melted.columns)} "
            "quasi-identifiers: the best co-clustering is one cell, so that every row would carry "
            "the same labels.",
            advice=("use method='optimal' or 'local' with hierarchies", "or give more rows"),
        )
    return Clustered(melted, grid, melted.matrix())


def anonymize(
    table: Table,
    models: Sequence[Model],
    *,
    method: str = "cocluster",
    seed: int | None = None,
    time_limit: float | None = None,
) -> Release:
    """Group rows by co-clustering until every model holds, and release their labels."""
    prepare(table, models)
    if any(model.population is not None for model in models):
        raise PrivacyError(
            "Promises that compare with a population need labels that are true for every row: "
            "use method='optimal' or 'local'."
        )
    found = clustered(table, seed=seed or 0, time_limit=time_limit)
    least = wanted_size(models)
    if least > len(table):
        raise UnsatisfiableError(
            f"A class needs {least:,} rows and the table has {len(table):,}.",
            advice=(f"ask for no more than {len(table):,}",),
        )
    groups = merge_small(found.grid, "row", least).partition[0]
    groups = split_large(groups, found.matrix, least)
    groups, published = satisfied(table, models, found, groups, method)
    return seal_hybrid(candidate(table, models, found, groups, published, method, seed))


def candidate(
    table: Table,
    models: Sequence[Model],
    found: Clustered,
    groups: NDArray[np.int32],
    published: Mapping[str, Published],
    method: str,
    seed: int | None = None,
) -> HybridCandidate:
    """The rows that would leave when each group publishes its labels."""
    quasi = {
        name: pa.DictionaryArray.from_arrays(pa.array(groups), pa.array(column.labels)).cast(
            pa.string()
        )
        for name, column in published.items()
    }
    notes = [
        f"Rows were grouped by co-clustering ({' x '.join(map(str, found.grid.parts))} parts, "
        f"level {found.grid.level:.4f})."
    ]
    if table.schema.sensitive and not any(model.columns for model in models):
        notes.append(
            "Sensitive columns leave as they are and no promise speaks of them: all rows of a "
            "class may hold the same value."
        )
    parameters: dict[str, Any] = {
        "seed": seed,
        "models": [model.to_dict() for model in models],
        "groups": int(groups.max()) + 1,
        "cost": found.grid.cost,
        "null_cost": found.grid.null_cost,
    }
    meaning = {name: column.meaning for name, column in published.items()}
    return HybridCandidate(
        table, models, pa.table(quasi), meaning, method, parameters, tuple(notes)
    )


def wanted_size(models: Sequence[Model]) -> int:
    """The fewest rows that a group needs for the models, as far as they say it."""
    sizes = [2]
    for model in models:
        sizes += [math.ceil(getattr(model, name)) for name in ("k", "l") if hasattr(model, name)]
    return max(sizes)


def satisfied(
    table: Table,
    models: Sequence[Model],
    found: Clustered,
    groups: NDArray[np.int32],
    method: str,
) -> tuple[NDArray[np.int32], dict[str, Published]]:
    """Join groups whose class breaks a promise until none does.

    Raises:
        UnsatisfiableError: not even all rows in one class keep the promises.
    """
    while True:
        published = publish(table, found, groups, method)
        classes = _classes(published)
        passing, verdicts = _passing(table, models, classes[groups])
        if passing.all():
            return groups, published
        failing = np.flatnonzero(~passing[classes])
        count = int(groups.max()) + 1
        if count == 1:
            raise UnsatisfiableError(
                "Not even all rows in one class keep the promises.",
                verdicts=verdicts,
                advice=("ask for less, or remove what breaks the promise from the table",),
            )
        counts = meetings(groups, found.matrix, found.part_group)
        groups = join(groups, counts, failing)[groups]


def _classes(published: Mapping[str, Published]) -> NDArray[np.int64]:
    """The class of each group: groups with the same labels in all columns are one class."""
    names: dict[tuple[str, ...], int] = {}
    tuples = zip(*(column.labels for column in published.values()), strict=True)
    return np.array([names.setdefault(labels, len(names)) for labels in tuples])


def _passing(
    table: Table, models: Sequence[Model], classes: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], list[Verdict]]:
    """Whether each class keeps all promises."""
    schema = table.schema
    hidden = {n: c for n, c in schema.columns.items() if c.role != "quasi"}
    stand_in = Table(
        table.arrow.drop_columns(list(schema.quasi)).append_column(
            _CLASS, pa.array(classes.astype(np.int32))
        ),
        Schema({**hidden, _CLASS: Column("quasi")}, person=schema.person, policy=schema.policy),
    )
    found, ids = statistics(stand_in, models)
    place = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    place[classes] = ids
    passing = np.ones(len(found.rows), dtype=bool)
    for model in models:
        passing &= model.passes(found)
    return passing[place], [model.check(found) for model in models]
