"""Hierarchies that nobody has to draw: found from how the columns of a table go together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.coclustering.columns import cocluster_melted
from halfmask.coclustering.hierarchy import hierarchy
from halfmask.coclustering.numbers import as_numbers
from halfmask.coclustering.prepare import column_parts, melt_columns
from halfmask.coclustering.trees import column_trees, ordered_tree, thinned
from halfmask.errors import HierarchyError
from halfmask.table.hierarchies import Auto, Dates, Flat, Intervals, Tree
from halfmask.table.hierarchy import canonical
from halfmask.table.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.cuts import Cuts
    from halfmask.coclustering.trees import ColumnTree
    from halfmask.table.hierarchy import HierarchyBuilder

MAX_VALUES = 500  # a nominal column with more values gets no groups
_ROUNDS = 0  # the starts alone: trees change little after them


def settle(table: Table) -> Table:
    """The table with every automatic hierarchy replaced by one that can be written down.

    Raises:
        HierarchyError: the columns tell nothing of each other, so that no hierarchy can be found.
    """
    wanted = {n: c.hierarchy for n, c in table.schema.columns.items() if _auto(c.hierarchy)}
    builders = found_builders(table, wanted) if wanted else {}
    columns = {
        name: replace(column, hierarchy=builders[name]) if name in builders else column
        for name, column in table.schema.columns.items()
    }
    schema = replace(table.schema, columns=columns)
    return Table(table.arrow, schema, table.origin, table.given)


def found_builders(table: Table, wanted: dict[str, Any]) -> dict[str, HierarchyBuilder]:
    """A builder for each wanted column."""
    out: dict[str, HierarchyBuilder] = {}
    known = [n for n, c in table.schema.columns.items() if c.role in ("quasi", "other")]
    usable = {}
    for name in dict.fromkeys([*known, *wanted]):
        values = table.encode(name).values
        if pa.types.is_temporal(values.type):
            out[name] = Dates()
            continue
        auto = wanted.get(name, Auto())
        parts = column_parts(table, name, bins=auto.bins, intervals=auto.intervals)
        if len(parts.labels) > MAX_VALUES or len(parts.labels) < 2:
            out[name] = Flat()
        else:
            usable[name] = parts
    open_columns = [name for name in wanted if name in usable]
    if open_columns:
        _require_two(usable, open_columns)
        again = [name for name in open_columns if wanted[name].intervals == "modl"]
        melted, grid = cocluster_melted(
            table, melt_columns(list(usable.values())), again=again, rounds=_ROUNDS
        )
        if not grid.informative:
            raise HierarchyError(_no_structure(open_columns, len(table)))
        trees = column_trees(hierarchy(grid), melted)
        rows = grid.partition[0]
        for name in open_columns:
            parts = trees[name].column
            tree = ordered_tree(parts, rows) if parts.ordered else trees[name]
            out[name] = _builder(table, thinned(tree, wanted[name].levels))
    return {name: out[name] for name in wanted}


def _auto(builder: object) -> bool:
    return isinstance(builder, Auto)


def _require_two(usable: dict[str, Any], names: list[str]) -> None:
    if len(usable) < 2:
        raise HierarchyError(
            f"Column {names[0]!r}: an automatic hierarchy is found from how columns go together, "
            "and no other column can be used. Declare a hierarchy for it."
        )


def _no_structure(names: list[str], rows: int) -> str:
    words = ", ".join(repr(name) for name in names)
    return (
        f"Column(s) {words}: {rows:,} rows show no structure among the columns (they are as good "
        "as independent, or too few), so no hierarchy can be found. Declare one for each."
    )


def _builder(table: Table, tree: ColumnTree) -> HierarchyBuilder:
    if tree.column.cuts is not None:
        return _intervals(table, tree, tree.column.cuts)
    return _tree(table, tree)


def _intervals(table: Table, tree: ColumnTree, cuts: Cuts) -> HierarchyBuilder:
    """Levels of cut points; an interval that is closed below begins at a short number."""
    values = table.encode(tree.column.name).values
    held = as_numbers(values.drop_null())
    whole = pa.types.is_integer(values.type)
    starts = [_short(held, bound, whole=whole) for bound in cuts.bounds[1:-1]]
    levels: list[list[float]] = []
    for groups in (tree.levels[0], *tree.levels[1:-1]):
        edges = np.flatnonzero(np.diff(groups[: len(starts) + 1]))
        bounds = sorted({starts[e] for e in edges.tolist()})
        if bounds and (not levels or bounds != levels[-1]):
            levels.append(bounds)
    return Intervals(bounds=levels) if levels else Flat()


def _short(held: NDArray[np.float64], bound: float, *, whole: bool) -> float:
    """The shortest number above all values up to ``bound`` and not above the next one."""
    place = int(np.searchsorted(held, bound, side="right"))
    low, high = float(held[place - 1]), float(held[min(place, len(held) - 1)])
    if whole:
        return math.floor(low) + 1
    for digits in range(17):
        step = 10.0**-digits
        near = round(math.floor(high / step) * step, digits)
        if low < near <= high:
            return near
    return high


def _tree(table: Table, tree: ColumnTree) -> HierarchyBuilder:
    """Nested groups; a value alone in its group is not nested deeper.

    The missing value, which the tree leaves to the root, is not listed.
    """
    values = table.encode(tree.column.name).values
    held = len(values) - values.null_count
    if len(tree.levels) < 3:
        return Flat()
    tree = tree.first(held)
    texts = [canonical(value) for value in values.slice(0, held).to_pylist()]
    labels = [tree.labels(level) for level in range(len(tree.levels))]
    sizes = [np.bincount(level) for level in tree.levels]
    groups: dict[str, Any] = {}
    for value in range(held):
        node = groups
        for level in range(len(tree.levels) - 2, 0, -1):
            group = tree.levels[level][value]
            name = labels[level][group]
            if level == 1 or sizes[level][group] == 1:
                node.setdefault(name, []).append(texts[value])
                break
            node = node.setdefault(name, {})
    return Tree(groups)
