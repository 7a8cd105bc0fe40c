"""The labels that groups of rows publish in each column, and what they stand for.

k-anonymity for many columns by co-clustering rows and the parts of columns.

Definition: rows are grouped by a MODL co-clustering of (row, part of a column); all rows of a
    group publish the same labels: the lowest node of each column's tree (``cocluster``), the set
    of parts (``cocluster-sets``) or the most frequent part (``cocluster-mode``).
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, ch. 4.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.coclustering.generate import join_failing_groups, split_large
from halfmask.coclustering.hierarchy import hierarchy, merge_small, renumber
from halfmask.coclustering.prepare import cocluster_columns
from halfmask.coclustering.trees import (
    LINKS,
    chosen_parts,
    column_trees,
    meetings,
    modes,
    ordered_tree,
    part_counts,
    set_label,
)
from halfmask.errors import ParameterError, PrivacyError, UnsatisfiableError
from halfmask.models.requirements import demand_keys, prepare, statistics
from halfmask.models.verdict import most_achieved, parameters
from halfmask.release.candidate import Candidate
from halfmask.release.partition import Perturbation
from halfmask.table.columns import Column
from halfmask.table.hierarchies import Auto
from halfmask.table.hierarchy_finder import ROUNDS
from halfmask.table.table import Encoded, Table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.prepare import ColumnParts, IntervalRule, MeltedTable
    from halfmask.coclustering.trees import LinkRule
    from halfmask.models.verdict import Model, Verdict


@dataclass(frozen=True, slots=True, eq=False)
class GroupLabels:
    """The labels of one column per group of rows, and what they stand for.

    Attributes:
        labels: the label of each group of rows.
        meaning: per label, the codes of the values it stands for.
    """

    labels: list[str]
    meaning: dict[str, NDArray[np.int64]]

    def __repr__(self) -> str:
        return f"GroupLabels({len(self.meaning)} labels)"


@dataclass(frozen=True, slots=True, eq=False)
class RowClustering:
    """A co-clustered table: what every method here starts from.

    Attributes:
        melted: the columns' parts.
        grid: the grid over (row, part).
        matrix: (rows, columns) the part of each row in each column.
        row_group: the grid's group of each row.
    """

    melted: MeltedTable
    grid: Grid
    matrix: NDArray[np.int32]
    row_group: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"RowClustering({len(self.matrix):,} rows, {self.grid!r})"

    def of(self, rows: NDArray[np.int64]) -> RowClustering:
        """The same for some of the rows."""
        return replace(self, matrix=self.matrix[rows], row_group=self.row_group[rows])

    @property
    def part_group(self) -> NDArray[np.int32]:
        """The group of each part."""
        return self.grid.partition[1]


def label_groups(
    table: Table,
    found: RowClustering,
    groups: NDArray[np.int32],
    method: str,
    link: LinkRule = "count",
) -> dict[str, GroupLabels]:
    """The labels that each group of rows gets in each column."""
    melted = found.melted
    if method == "cocluster-mode":
        chosen = modes(part_counts(groups, found.matrix, melted.offsets[-1]), melted)
    else:
        chosen = _choose_parts(found, groups, link)
    trees = column_trees(hierarchy(found.grid), melted) if method == "cocluster" else {}
    out = {}
    for k, column in enumerate(melted.columns):
        mine = chosen[:, melted.offsets[k] : melted.offsets[k + 1]]
        sets, place = np.unique(mine, axis=0, return_inverse=True)
        sets |= _names_one_row(column, sets)[:, None]
        given = table.schema.columns[column.name].hierarchy
        supplied = method == "cocluster" and given is not None and not isinstance(given, Auto)
        if method == "cocluster" and not supplied:
            tree = trees[column.name]
            if column.cuts is not None:
                tree = ordered_tree(column, found.grid.partition[0])
            sets = np.array([_cover(tree.lowest(np.flatnonzero(s)), tree.levels) for s in sets])
        pairs = [
            _supplied_label(table, column, s) if supplied else _set_label(column, s) for s in sets
        ]
        labels = [pairs[p][0] for p in place.reshape(-1)]
        out[column.name] = GroupLabels(labels, dict(pairs))
    return out


def _choose_parts(
    found: RowClustering, groups: NDArray[np.int32], link: LinkRule
) -> NDArray[np.bool_]:
    """(groups of rows, parts) what each group publishes.

    A group that is smaller than the grid's own is below the grid's level: there the parts stand
    alone too, else all that were split from one group would publish the same.
    """
    melted = found.melted
    met = meetings(groups, found.matrix, found.part_group)
    chosen = chosen_parts(met, found.part_group, melted, link=link)
    first = np.unique(groups, return_index=True)[1]
    below = np.bincount(groups) < found.grid.sizes(0)[found.row_group[first]]
    if below.any():
        alone = np.arange(melted.offsets[-1], dtype=np.int32)
        met = part_counts(groups, found.matrix, len(alone))[below]
        chosen[below] = chosen_parts(met, alone, melted, link=link)
    return chosen


def _names_one_row(column: ColumnParts, sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The sets of parts that one row each holds: they would name persons, so all is published."""
    several = np.bincount(column.codes, minlength=len(column.labels)) > 1
    return np.asarray(~(sets & several).any(axis=1))


def _cover(node: tuple[int, int], levels: Sequence[NDArray[np.int32]]) -> NDArray[np.bool_]:
    level, group = node
    return np.asarray(levels[level] == group)


def _set_label(column: ColumnParts, chosen: NDArray[np.bool_]) -> tuple[str, NDArray[np.int64]]:
    """The text of a set of parts and the values it stands for."""
    parts = np.flatnonzero(chosen)
    return set_label(column, parts), np.flatnonzero(chosen[column.of_value])


def _supplied_label(
    table: Table, column: ColumnParts, chosen: NDArray[np.bool_]
) -> tuple[str, NDArray[np.int64]]:
    """The lowest label of the declared hierarchy that covers the parts, and its values."""
    given = table.hierarchy(column.name)
    values = np.flatnonzero(chosen[column.of_value])
    for level in range(given.height + 1):
        codes = given.maps[level]
        if len(values) and (codes[values] == codes[values[0]]).all():
            covered = np.flatnonzero(codes == codes[values[0]])
            label = given.labels[level][codes[values[0]]]
            return column_text(table, column.name, values[0]) if level == 0 else str(label), covered
    return "*", np.arange(len(column.of_value))


def column_text(table: Table, name: str, value: np.int64) -> str:
    """One value as text; the missing value has a text of its own."""
    text = table.encode(name).values[int(value)].as_py()
    return "missing" if text is None else str(text)


_CLASS = "class"


@dataclass(frozen=True, slots=True)
class GroupingSettings:
    """How to group rows, and what their groups publish.

    Attributes:
        method: ``"cocluster"``, ``"cocluster-sets"`` or ``"cocluster-mode"``.
        suppression: the share of rows that may be left out, in classes that break a promise.
        seed: of the co-clustering.
        time_limit: seconds for the co-clustering.
        bins: how many intervals numbers are cut into.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``.
        link: which groups of parts a class publishes first: those it meets most (``"count"``), or
            most against independence (``"lift"``).
    """

    method: str
    suppression: float | Fraction
    seed: int | None
    time_limit: float | None
    bins: int = 10
    intervals: IntervalRule = "equal-frequency"
    link: LinkRule = "count"


OPTIONS = ("bins", "intervals", "link")  # those that only co-clustering knows
_SEARCH = 0.4  # of a time limit for the grid; its groups are split and labeled in the rest
_UNTIL = 0.7  # of it until which groups are split


@dataclass(frozen=True, slots=True, eq=False)
class LabeledGroups:
    """Rows in groups, and what each group publishes.

    Attributes:
        kept: the rows that leave.
        groups: their groups.
        published: per column, the labels of each group.
    """

    kept: NDArray[np.int64]
    groups: NDArray[np.int32]
    published: Mapping[str, GroupLabels]

    def __repr__(self) -> str:
        return f"LabeledGroups({len(self.kept):,} rows)"


def cluster_rows(table: Table, settings: GroupingSettings) -> RowClustering:
    """Co-cluster the quasi-identifiers of a table.

    Raises:
        UnsatisfiableError: the rows show no structure to group them by.
    """
    melted, grid = cocluster_columns(
        table,
        table.schema.quasi,
        bins=settings.bins,
        intervals=settings.intervals,
        seed=settings.seed or 0,
        time_limit=None if settings.time_limit is None else _SEARCH * settings.time_limit,
    )
    if not grid.informative:
        raise UnsatisfiableError(
            f"The {len(table):,} rows show no structure in their {len(melted.columns)} "
            "quasi-identifiers: the best co-clustering is one cell, so that every row would carry "
            "the same labels.",
            advice=("use method='optimal' or 'local' with hierarchies", "or give more rows"),
        )
    return RowClustering(melted, grid, melted.matrix(), grid.partition[0])


def group_by_clusters(
    table: Table, models: Sequence[Model], settings: GroupingSettings
) -> Candidate:
    """Group rows by co-clustering until every model holds; the candidate is yet to be sealed."""
    prepare(table, models)
    if settings.link not in LINKS:
        raise ParameterError("link", settings.link, "one of " + ", ".join(LINKS))
    if any(model.population is not None for model in models):
        raise PrivacyError(
            "Promises that compare with a population need labels that are true for every row: "
            "use method='optimal' or 'local'."
        )
    if any(model.original for model in models):
        raise PrivacyError(
            "Promises against the original table need labels that are true for every row: use "
            "method='optimal' or 'local'."
        )
    least = least_size(models)
    if least > len(table):
        raise UnsatisfiableError(
            f"A class needs {least:,} rows and the table has {len(table):,}.",
            advice=(f"ask for no more than {len(table):,}",),
        )
    began = time.monotonic()
    found = cluster_rows(table, settings)
    deadline = began + _UNTIL * (math.inf if settings.time_limit is None else settings.time_limit)
    groups = form_groups(found, least, deadline)
    division = satisfy(table, models, found, groups, settings)
    return grouping_candidate(table, models, found, division, settings)


def form_groups(found: RowClustering, least: int, deadline: float = math.inf) -> NDArray[np.int32]:
    """Groups of at least ``least`` rows, as few more as can be until ``deadline``."""
    groups = merge_small(found.grid, "row", least).partition[0]
    return split_large(groups, found.matrix, least, deadline)


def grouping_candidate(
    table: Table,
    models: Sequence[Model],
    found: RowClustering,
    division: LabeledGroups,
    settings: GroupingSettings,
) -> Candidate:
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
        "seed": settings.seed,
        "suppression": settings.suppression,
        **{name: getattr(settings, name) for name in OPTIONS},
        "models": [model.to_dict() for model in models],
        "rounds": ROUNDS,
        "groups": int(division.groups.max()) + 1,
        "cost": found.grid.cost,
        "null_cost": found.grid.null_cost,
    }
    meaning = {name: column.meaning for name, column in division.published.items()}
    step = np.full(len(table), -1, dtype=np.int32)
    step[division.kept] = 0
    columns = {name: table.schema.columns[name] for name in table.schema.quasi}
    return Candidate(
        table=table,
        models=models,
        recoding=Perturbation(columns, pa.table(quasi), meaning),
        step=step,
        method=settings.method,
        metric="none",
        parameters=parameters,
        notes=tuple(notes),
    )


def least_size(models: Sequence[Model]) -> int:
    """The fewest rows that a group needs for the models, as far as they say it."""
    sizes = [2]
    for model in models:
        counts = [one.name for one, p in parameters(type(model)) if p.counts and p.stronger > 0]
        sizes += [math.ceil(getattr(model, name)) for name in counts]
    return max(sizes)


def satisfy(
    table: Table,
    models: Sequence[Model],
    found: RowClustering,
    groups: NDArray[np.int32],
    settings: GroupingSettings,
) -> LabeledGroups:
    """Leave out rows of classes that break a promise, as many as may be, and join the others.

    Raises:
        UnsatisfiableError: not even all rows in one class keep the promises.
    """
    room = int(Fraction(str(settings.suppression)) * len(table))
    kept = np.arange(len(table))
    while True:
        here = found.of(kept)
        published = label_groups(table, here, groups, settings.method, settings.link)
        classes = _classes(published)
        passing, verdicts = _passing(table, models, kept, classes[groups])
        if passing.all():
            return LabeledGroups(kept, groups, published)
        leaving = _suppress(classes[groups], passing, room - (len(table) - len(kept)))
        if leaving.any():
            kept, groups = kept[~leaving], renumber(groups[~leaving])
            continue
        if int(groups.max()) == 0:
            raise _unsatisfiable(verdicts)
        counts = meetings(groups, here.matrix, here.part_group)
        groups = join_failing_groups(groups, counts, np.flatnonzero(~passing[classes]))[groups]


def _suppress(
    classes: NDArray[np.int64], passing: NDArray[np.bool_], room: int
) -> NDArray[np.bool_]:
    """The rows of the smallest failing classes, as many as there is room for, but never all."""
    sizes = np.bincount(classes, minlength=len(passing))
    failing = np.flatnonzero(~passing)
    failing = failing[np.argsort(sizes[failing], kind="stable")]
    fits = failing[np.cumsum(sizes[failing]) <= min(room, len(classes) - 1)]
    return np.isin(classes, fits)


def _unsatisfiable(verdicts: Sequence[Verdict]) -> UnsatisfiableError:
    return UnsatisfiableError(
        "Not even all rows in one class keep the promises.",
        verdicts=verdicts,
        advice=most_achieved(verdicts),
    )


def _classes(published: Mapping[str, GroupLabels]) -> NDArray[np.int64]:
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
    found, ids = statistics(Tuples.of(stand_in), models)
    place = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    place[classes] = ids
    passing = np.ones(len(found.rows), dtype=bool)
    for model in models:
        passing &= model.passes(found)
    return passing[place], [model.check(found) for model in models]
