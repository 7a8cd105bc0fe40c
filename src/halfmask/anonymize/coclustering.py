"""k-anonymity for many columns by co-clustering rows and the parts of columns.

Definition: rows are grouped by a MODL co-clustering of (row, part of a column); all rows of a
    group publish the same labels: the lowest node of each column's tree (``cocluster``), the set
    of parts (``cocluster-sets``) or the most frequent part (``cocluster-mode``).
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, ch. 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.anonymize.group_labels import Clustered, Published, publish
from halfmask.coclustering.columns import cocluster_columns
from halfmask.coclustering.groups import join, split_large
from halfmask.coclustering.merges import compact
from halfmask.coclustering.signatures import LINKS, meetings
from halfmask.coclustering.simplify import merge_small
from halfmask.errors import ParameterError, PrivacyError, UnsatisfiableError
from halfmask.models.needs import demand_keys, prepare, statistics
from halfmask.release.seal_hybrid import HybridCandidate, seal_hybrid
from halfmask.table.schema import Column
from halfmask.table.table import Encoded, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.prepare import Intervals
    from halfmask.coclustering.signatures import Link
    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.demands import Choice
    from halfmask.release.release import Release

OPTIONS = ("bins", "intervals", "link")
_CLASS = "class"
_ROUNDS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """Rows in groups, and what each group publishes.

    Attributes:
        kept: the rows that leave.
        groups: their groups.
        published: per column, the labels of each group.
    """

    kept: NDArray[np.int64]
    groups: NDArray[np.int32]
    published: Mapping[str, Published]

    def __repr__(self) -> str:
        return f"Division({len(self.kept):,} rows)"


def clustered(
    table: Table,
    *,
    seed: int = 0,
    rounds: int = _ROUNDS,
    time_limit: float | None = None,
    bins: int = 10,
    intervals: Intervals = "equal-frequency",
) -> Clustered:
    """Co-cluster the quasi-identifiers of a table.

    Raises:
        UnsatisfiableError: the rows show no structure to group them by.
    """
    melted, grid = cocluster_columns(
        table,
        table.schema.quasi,
        bins=bins,
        intervals=intervals,
        seed=seed,
        rounds=rounds,
        time_limit=time_limit,
    )
    if not grid.informative:
        raise UnsatisfiableError(
            f"The {len(table):,} rows show no structure in their {len(melted.columns)} "
            "quasi-identifiers: the best co-clustering is one cell, so that every row would carry "
            "the same labels.",
            advice=("use method='optimal' or 'local' with hierarchies", "or give more rows"),
        )
    return Clustered(melted, grid, melted.matrix(), grid.partition[0])


def anonymize(
    table: Table,
    models: Sequence[Model],
    *,
    method: str = "cocluster",
    suppression: float = 0.0,
    seed: int | None = None,
    time_limit: float | None = None,
    bins: int = 10,
    intervals: Intervals = "equal-frequency",
    link: Link = "count",
    demands: Choice = "keep",
) -> Release:
    """Group rows by co-clustering until every model holds, and release their labels.

    Args:
        table: the rows.
        models: the promises.
        method: one of ``METHODS``.
        suppression: the share of rows that may be left out, in classes that break a promise.
        seed: of the co-clustering.
        time_limit: seconds for the co-clustering.
        bins: how many intervals numbers are cut into.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``.
        link: which groups of parts a class publishes first: those it meets most (``"count"``), or
            most against independence (``"lift"``).
        demands: ``"ignore"`` where the controller sets people's own demands aside.
    """
    prepare(table, models)
    if link not in LINKS:
        raise ParameterError("link", link, "one of " + ", ".join(LINKS))
    if any(model.population is not None for model in models):
        raise PrivacyError(
            "Promises that compare with a population need labels that are true for every row: "
            "use method='optimal' or 'local'."
        )
    least = wanted_size(models)
    if least > len(table):
        raise UnsatisfiableError(
            f"A class needs {least:,} rows and the table has {len(table):,}.",
            advice=(f"ask for no more than {len(table):,}",),
        )
    found = clustered(table, seed=seed or 0, time_limit=time_limit, bins=bins, intervals=intervals)
    room = int(Fraction(str(suppression)) * len(table))
    division = satisfied(table, models, found, close_to(found, least), method, link, room)
    chosen = {"suppression": suppression, "bins": bins, "intervals": intervals, "link": link}
    made = candidate(table, models, found, division, method, {"seed": seed, **chosen})
    return seal_hybrid(replace(made, demands=demands))


def close_to(found: Clustered, least: int) -> NDArray[np.int32]:
    """Groups of at least ``least`` rows, as few more as can be."""
    groups = merge_small(found.grid, "row", least).partition[0]
    return split_large(groups, found.matrix, least)


def candidate(
    table: Table,
    models: Sequence[Model],
    found: Clustered,
    division: Division,
    method: str,
    chosen: Mapping[str, Any],
) -> HybridCandidate:
    """The rows that would leave when each group publishes its labels."""
    groups = pa.array(division.groups)
    quasi = {
        name: pa.DictionaryArray.from_arrays(groups, pa.array(column.labels)).cast(pa.string())
        for name, column in division.published.items()
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
        **chosen,
        "models": [model.to_dict() for model in models],
        "groups": int(division.groups.max()) + 1,
        "cost": found.grid.cost,
        "null_cost": found.grid.null_cost,
    }
    meaning = {name: column.meaning for name, column in division.published.items()}
    return HybridCandidate(
        table, models, division.kept, pa.table(quasi), meaning, method, parameters, tuple(notes)
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
    link: Link = "count",
    room: int = 0,
) -> Division:
    """Leave out up to ``room`` rows of classes that break a promise, and join the others.

    Raises:
        UnsatisfiableError: not even all rows in one class keep the promises.
    """
    kept = np.arange(len(table))
    while True:
        here = found.of(kept)
        published = publish(table, here, groups, method, link)
        classes = _classes(published)
        passing, verdicts = _passing(table, models, kept, classes[groups])
        if passing.all():
            return Division(kept, groups, published)
        leaving = _left_out(classes[groups], passing, room - (len(table) - len(kept)))
        if leaving.any():
            kept, groups = kept[~leaving], compact(groups[~leaving])
            continue
        if int(groups.max()) == 0:
            raise _unsatisfiable(verdicts)
        counts = meetings(groups, here.matrix, here.part_group)
        groups = join(groups, counts, np.flatnonzero(~passing[classes]))[groups]


def _left_out(
    classes: NDArray[np.int64], passing: NDArray[np.bool_], room: int
) -> NDArray[np.bool_]:
    """The rows of the smallest failing classes, as many as there is room for, but never all."""
    sizes = np.bincount(classes, minlength=len(passing))
    failing = np.flatnonzero(~passing)
    failing = failing[np.argsort(sizes[failing], kind="stable")]
    fits = failing[np.cumsum(sizes[failing]) <= min(room, len(classes) - 1)]
    return np.isin(classes, fits)


def _unsatisfiable(verdicts: Sequence[Verdict]) -> UnsatisfiableError:
    advice = [
        f"{v.model}{f' of column {v.column!r}' if v.column else ''}: {v.required} is required, all "
        f"rows in one class achieve {v.achieved}; ask for no more than that"
        for v in verdicts
        if not v.holds
    ]
    return UnsatisfiableError(
        "Not even all rows in one class keep the promises.", verdicts=verdicts, advice=advice
    )


def _classes(published: Mapping[str, Published]) -> NDArray[np.int64]:
    """The class of each group: groups with the same labels in all columns are one class."""
    names: dict[tuple[str, ...], int] = {}
    tuples = zip(*(column.labels for column in published.values()), strict=True)
    return np.array([names.setdefault(labels, len(names)) for labels in tuples])


def _passing(
    table: Table, models: Sequence[Model], kept: NDArray[np.int64], classes: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], list[Verdict]]:
    """Whether each class of the kept rows keeps all promises."""
    schema = table.schema
    hidden = {n: c for n, c in schema.columns.items() if c.role != "quasi"}
    rows = table.arrow.drop_columns(list(schema.quasi))
    rows = rows if len(kept) == len(table) else rows.take(pa.array(kept))
    demands = {key: table.encode(key) for model in models for key in demand_keys(table, model)}
    stand_in = Table(
        rows.append_column(_CLASS, pa.array(classes.astype(np.int32))),
        replace(schema, columns={**hidden, _CLASS: Column("quasi")}),
        _encoded={key: Encoded(one.values, one.codes[kept]) for key, one in demands.items()},
    )
    found, ids = statistics(stand_in, models)
    place = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    place[classes] = ids
    passing = np.ones(len(found.rows), dtype=bool)
    for model in models:
        passing &= model.passes(found)
    return passing[place], [model.check(found) for model in models]
