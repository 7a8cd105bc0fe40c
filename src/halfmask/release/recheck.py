"""The second look at a release: classes counted again from the very rows that leave.

Nothing here shares code with the search or its kernels; rows are grouped by Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError
from halfmask.models.needs import demand_keys
from halfmask.release.labels import as_text, label_texts
from halfmask.release.partition import Partition
from halfmask.table.classes import Classes
from halfmask.table.hierarchy import TOP
from halfmask.table.histogram import Histogram, value_facts
from halfmask.table.ranges import ends, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.labels import Label
    from halfmask.release.recoding import Recoding
    from halfmask.table.table import Table

_ID = "id"


def verdicts(
    models: Sequence[Model],
    quasi: pa.Table,
    table: Table,
    kept: NDArray[np.int64],
    recoding: Recoding | Partition | None,
) -> tuple[list[Verdict], NDArray[Any]]:
    """Check every model on published rows; returns the verdicts and the class of each row.

    Args:
        models: what must hold.
        quasi: the published quasi-identifiers, one row per published row.
        table: the original rows.
        kept: which of them leave, in the order of ``quasi``.
        recoding: how a population table is generalized alongside.
    """
    labels = [as_text(column) for column in quasi.columns]
    alone = _ids(labels, len(kept))
    found = []
    for model in models:
        classes, _ = regrouped(labels, table, kept, model, recoding, alone)
        found.append(model.check(classes))
    return found, alone[0]


def regrouped(
    labels: list[pa.Array],
    table: Table,
    kept: NDArray[np.int64],
    model: Model,
    recoding: Recoding | Partition | None,
    alone: tuple[NDArray[Any], int] | None = None,
) -> tuple[Classes, NDArray[Any]]:
    """Group published rows by their labels, with what ``model`` reads; gives each row's class.

    ``alone`` is the grouping of these rows without a population, where it is known already.
    """
    own = len(kept)
    unplaced = 0
    if model.population is not None:
        if recoding is None or isinstance(recoding, Partition):
            raise InternalError("Without a recoding nobody of a population can be placed.")
        alone = None
        population, unplaced = _population(recoding, model.population)
        labels = [pa.concat_arrays(pair) for pair in zip(labels, population, strict=True)]
    ids, count = alone or _ids(labels, len(labels[0]))
    count += unplaced > 0  # people of the population whom no class takes stand in one of their own
    everyone = np.bincount(ids, minlength=count)
    everyone[count - 1] += unplaced
    ids = ids[:own]
    rows = np.bincount(ids, minlength=count).astype(np.int64)
    needed = {name: name for name in model.columns}
    needed |= {key: key for key in demand_keys(table, model)}
    classes = Classes(
        keys=np.arange(count, dtype=np.uint64).reshape(-1, 1),
        rows=rows,
        people=_people(table, kept, ids, rows),
        histograms={key: _histogram(table, kept, name, ids, count) for key, name in needed.items()},
        population=None if model.population is None else (everyone - rows).astype(np.int64),
    )
    return classes, ids


def covers(
    recoding: Recoding | Partition, table: Table, quasi: pa.Table, step: NDArray[np.int32]
) -> None:
    """Demand that every published label covers the value that it stands for.

    With a recoding it is the value's label at the level of its step; with a partition any label of
    the value's hierarchy or a range that holds it.
    """
    if isinstance(recoding, Partition):
        for name in recoding.columns:
            _hold_value(table, name, as_text(quasi[name]), table.encode(name).codes[step >= 0])
        return
    kept = np.flatnonzero(step >= 0)
    for name in recoding.columns:
        levels = np.array([one.levels[name] for one in recoding.steps], dtype=np.int32)
        labels = as_text(quasi[name])
        pairs = pa.table(
            {
                "value": table.encode(name).codes[kept],
                "level": levels[step[kept]],
                "label": labels,
            }
        )
        seen = pairs.group_by(pairs.column_names).aggregate([])
        values = seen["value"].to_numpy()
        found, texts = seen["level"].to_numpy(), seen["label"].to_pylist()
        wrong = 0
        for level in np.unique(found).tolist():
            level_map, right = label_texts(table, name, level)
            at = np.flatnonzero(found == level)
            wrong += sum(texts[i] != right[level_map[values[i]]] for i in at)
        if wrong:
            raise InternalError(
                f"Column {name!r}: {wrong} published labels do not cover their value."
            )


def _hold_value(table: Table, name: str, labels: pa.Array, codes: NDArray[np.int32]) -> None:
    """Demand that each label, as it is written, covers the value behind it."""
    pairs = pa.table({"value": codes, "label": labels})
    seen = pairs.group_by(pairs.column_names).aggregate([])
    values: list[Label] = as_text(table.encode(name).values).to_pylist()
    hierarchy, known = table.hierarchy(name), places(values)
    wrong = 0
    for code, label in zip(seen["value"].to_pylist(), seen["label"].to_pylist(), strict=True):
        if label == values[code] or label == TOP:
            continue
        above = {
            hierarchy.labels[level][hierarchy.maps[level][code]]
            for level in range(1, hierarchy.height + 1)
        }
        if label is not None and label in {str(one) for one in above if one is not None}:
            continue
        range_ = None if label is None or values[code] is None else ends(label, known)
        wrong += range_ is None or not range_[0] <= code <= range_[1]
    if wrong:
        raise InternalError(f"Column {name!r}: {wrong} published labels do not cover their value.")


def _ids(labels: list[pa.Array], rows: int) -> tuple[NDArray[Any], int]:
    """The class of each row, by Arrow's own grouping; the missing value is a group of its own."""
    names = [str(i) for i in range(len(labels))]
    place = np.arange(rows, dtype=np.int32 if rows < 2**31 else np.int64)
    table = pa.table([*labels, place], names=[*names, _ID])
    groups = pa.concat_arrays(table.group_by(names).aggregate([(_ID, "list")])[-1].chunks)
    ids = np.empty(rows, dtype=place.dtype)
    members = groups.flatten().to_numpy(zero_copy_only=False)
    ids[members] = np.repeat(
        np.arange(len(groups), dtype=place.dtype), np.diff(groups.offsets.to_numpy())
    )
    return ids, len(groups)


def _people(
    table: Table, kept: NDArray[np.int64], ids: NDArray[Any], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many different people stand in each class."""
    if table.schema.person is None:
        return rows
    person = table.encode(table.schema.person).codes[kept]
    pairs = pa.table({_ID: ids, "person": person})
    distinct = pairs.group_by([_ID, "person"]).aggregate([])
    counts = distinct.group_by(_ID).aggregate([([], "count_all")])
    people = np.zeros(len(rows), dtype=np.int64)
    people[counts[_ID].to_numpy()] = counts["count_all"].to_numpy()
    return people


def _histogram(
    table: Table, kept: NDArray[np.int64], name: str, ids: NDArray[Any], count: int
) -> Histogram:
    pairs = pa.table({_ID: ids, "value": table.encode(name).codes[kept]})
    counted = (
        pairs.group_by([_ID, "value"])
        .aggregate([([], "count_all")])
        .sort_by([(_ID, "ascending"), ("value", "ascending")])
    )
    owners = counted[_ID].to_numpy()
    return Histogram(
        starts=np.searchsorted(owners, np.arange(count + 1)).astype(np.int64),
        values=counted["value"].to_numpy().astype(np.int32),
        counts=counted["count_all"].to_numpy().astype(np.int64),
        **value_facts(table, name),
    )


def _population(recoding: Recoding, population: Table) -> tuple[list[pa.Array], int]:
    """The labels that the people of a population table would get, and how many get none."""
    step = recoding.assign(population)
    if recoding.full_domain:
        step = np.zeros(len(population), dtype=np.int32)
    quasi = recoding.published(population, step)
    return [as_text(column) for column in quasi.columns], int(np.count_nonzero(step < 0))
