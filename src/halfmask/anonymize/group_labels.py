"""The labels that groups of rows publish in each column, and what they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.hierarchy import hierarchy
from halfmask.coclustering.signatures import chosen_parts, meetings, modes, part_counts, set_label
from halfmask.coclustering.trees import column_trees, ordered_tree
from halfmask.table.hierarchies import Auto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.prepare import ColumnParts, Melted
    from halfmask.coclustering.signatures import Link
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The labels of one column per group of rows, and what they stand for.

    Attributes:
        labels: the label of each group of rows.
        meaning: per label, the codes of the values it stands for.
    """

    labels: list[str]
    meaning: dict[str, NDArray[np.int64]]

    def __repr__(self) -> str:
        return f"Published({len(self.meaning)} labels)"


@dataclass(frozen=True, slots=True, eq=False)
class Clustered:
    """A co-clustered table: what every method here starts from.

    Attributes:
        melted: the columns' parts.
        grid: the grid over (row, part).
        matrix: (rows, columns) the part of each row in each column.
        row_group: the grid's group of each row.
    """

    melted: Melted
    grid: Grid
    matrix: NDArray[np.int32]
    row_group: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Clustered({len(self.matrix):,} rows, {self.grid!r})"

    def of(self, rows: NDArray[np.int64]) -> Clustered:
        """The same for some of the rows."""
        return replace(self, matrix=self.matrix[rows], row_group=self.row_group[rows])

    @property
    def part_group(self) -> NDArray[np.int32]:
        """The group of each part."""
        return self.grid.partition[1]


def publish(
    table: Table, found: Clustered, groups: NDArray[np.int32], method: str, link: Link = "count"
) -> dict[str, Published]:
    """The labels that each group of rows gets in each column."""
    melted = found.melted
    if method == "cocluster-mode":
        chosen = modes(part_counts(groups, found.matrix, melted.offsets[-1]), melted)
    else:
        chosen = _chosen(found, groups, link)
    trees = column_trees(hierarchy(found.grid), melted) if method == "cocluster" else {}
    out = {}
    for k, column in enumerate(melted.columns):
        mine = chosen[:, melted.offsets[k] : melted.offsets[k + 1]]
        sets, place = np.unique(mine, axis=0, return_inverse=True)
        sets |= _held_by_one(column, sets)[:, None]
        given = table.schema.columns[column.name].hierarchy
        supplied = method == "cocluster" and given is not None and not isinstance(given, Auto)
        if method == "cocluster" and not supplied:
            tree = trees[column.name]
            if column.cuts is not None:
                tree = ordered_tree(column, found.grid.partition[0])
            sets = np.array([_covering(tree.lowest(np.flatnonzero(s)), tree.levels) for s in sets])
        pairs = [
            _supplied_label(table, column, s) if supplied else _set_label(column, s) for s in sets
        ]
        labels = [pairs[p][0] for p in place.reshape(-1)]
        out[column.name] = Published(labels, dict(pairs))
    return out


def _chosen(found: Clustered, groups: NDArray[np.int32], link: Link) -> NDArray[np.bool_]:
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


def _held_by_one(column: ColumnParts, sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The sets of parts that one row each holds: they would name persons, so all is published."""
    several = np.bincount(column.codes, minlength=len(column.labels)) > 1
    return np.asarray(~(sets & several).any(axis=1))


def _covering(node: tuple[int, int], levels: Sequence[NDArray[np.int32]]) -> NDArray[np.bool_]:
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
        if len(values) and len(np.unique(codes[values])) == 1:
            covered = np.flatnonzero(codes == codes[values[0]])
            label = given.labels[level][codes[values[0]]]
            return column_text(table, column.name, values[0]) if level == 0 else str(label), covered
    return "*", np.arange(len(column.of_value))


def column_text(table: Table, name: str, value: np.int64) -> str:
    """One value as text; the missing value has a text of its own."""
    text = table.encode(name).values[int(value)].as_py()
    return "missing" if text is None else str(text)
