"""What groups of rows publish, and hierarchies that nobody has to draw.

Both are read from how the columns of a table go together.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.hierarchy import by_appearance, hierarchy, merge_parts
from halfmask.coclustering.independence import dependent_columns
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.prepare import as_numbers, cocluster_parts, column_parts, melt_columns
from halfmask.errors import HierarchyError
from halfmask.table.hierarchies import Auto, Dates, Flat, Intervals, Tree
from halfmask.table.hierarchy import canonical
from halfmask.table.labels import ANY, MISSING, SIGN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.hierarchy import MergeHierarchy
    from halfmask.coclustering.prepare import ColumnParts, IntervalCuts, MeltedTable
    from halfmask.table.hierarchy import HierarchyBuilder
    from halfmask.table.table import Table


LinkRule = Literal["count", "lift"]
LINKS = ("count", "lift")


def meetings(
    groups: NDArray[np.int32], matrix: NDArray[np.int32], part_group: NDArray[np.int32]
) -> NDArray[np.int64]:
    """(groups of rows, groups of parts) how often they meet."""
    width = int(part_group.max()) + 1
    height = int(groups.max()) + 1
    flat = groups[:, None].astype(np.int64) * width + part_group[matrix]
    return np.bincount(flat.ravel(), minlength=height * width).reshape(height, width)


def part_counts(
    groups: NDArray[np.int32], matrix: NDArray[np.int32], parts: int
) -> NDArray[np.int64]:
    """(groups of rows, parts) how often they meet."""
    return meetings(groups, matrix, np.arange(parts, dtype=np.int32))


def chosen_parts(
    met: NDArray[np.int64],
    part_group: NDArray[np.int32],
    melted: MeltedTable,
    *,
    link: LinkRule = "count",
) -> NDArray[np.bool_]:
    """(groups of rows, parts) the parts that each group of rows publishes.

    Definition: take the groups of parts that a group of rows meets most, until every column has a
        part; the parts taken are the column's published set (Algorithm 1, hybrid k-anonymity).
    Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018,
        4.4.

    Args:
        met: (groups of rows, groups of parts) how often they meet.
        part_group: the group of each part.
        melted: the columns and their parts.
        link: what orders the groups of parts: the count, or the count against independence. Ties
            go to the larger count per observation of the part group, then to the first.
    """
    width = met.shape[1]
    totals = np.maximum(met.sum(axis=0), 1)
    lift = met / totals
    keys = (met, lift) if link == "count" else (lift, met)
    places = np.broadcast_to(np.arange(width), met.shape)
    order = np.lexsort((places, -keys[1], -keys[0]), axis=1)
    covers = np.zeros((width, len(melted.columns)), dtype=bool)
    covers[part_group, melted.owner] = True
    taken = np.zeros(met.shape, dtype=bool)
    for start in range(0, len(met), 1024):
        block = order[start : start + 1024]
        seen = np.logical_or.accumulate(covers[block], axis=1).all(axis=2)
        last = seen.argmax(axis=1)
        use = np.arange(width) <= last[:, None]
        np.put_along_axis(taken[start : start + 1024], block, use, axis=1)
    return taken[:, part_group]


def modes(counts: NDArray[np.int64], melted: MeltedTable) -> NDArray[np.bool_]:
    """(groups of rows, parts) the most frequent part of each column in each group of rows."""
    out = np.zeros(counts.shape, dtype=bool)
    for low, high in zip(melted.offsets[:-1], melted.offsets[1:], strict=True):
        best = low + counts[:, low:high].argmax(axis=1)
        out[np.arange(len(counts)), best] = True
    return out


def set_label(column: ColumnParts, parts: NDArray[np.int64]) -> str:
    """A set of parts as text: all of them, one, a run of intervals, or a list."""
    count = len(column.labels)
    if len(parts) == count and count > 1:
        return "*"
    if len(parts) > 1 and column.cuts is not None and int(parts.max()) < len(column.cuts):
        run = bool((np.diff(parts) == 1).all())
        if run:
            return _run_label(column, int(parts[0]), int(parts[-1]))
    return SIGN.join(column.labels[p] for p in parts)


def _run_label(column: ColumnParts, first: int, last: int) -> str:
    """Neighbouring intervals as one."""
    low, high = column.labels[first], column.labels[last]
    if first == 0:
        return f"<={high.rpartition(',')[2].rstrip(']')}" if high[0] == "]" else ANY
    low_bound = low[1:].rpartition(",")[0]
    return f">{low_bound}" if high[0] == ">" else f"]{low_bound},{high.rpartition(',')[2]}"


_NAMED = 4  # a group of up to so many parts is labeled with all of them


@dataclass(frozen=True, slots=True, eq=False)
class ColumnTree:
    """The groups of one column's parts, level by level.

    Attributes:
        column: the parts; they are level 0.
        levels: per level from 0, the group of each part; the last level is one group.
    """

    column: ColumnParts
    levels: tuple[NDArray[np.int32], ...]

    def __repr__(self) -> str:
        return f"ColumnTree({self.column.name!r}, {len(self.levels)} levels)"

    def labels(self, level: int) -> list[str]:
        """The label of each group of one level."""
        groups, counts = self.levels[level], self.column.rows
        out = [
            group_label(self.column, np.flatnonzero(groups == g), counts)
            for g in range(int(groups.max()) + 1)
        ]
        return [
            label if out.index(label) == place else f"{label} ({place})"
            for place, label in enumerate(out)
        ]

    def first(self, parts: int) -> ColumnTree:
        """The tree of the first parts alone."""
        column = replace(self.column, labels=self.column.labels[:parts])
        return ColumnTree(column, tuple(by_appearance(level[:parts]) for level in self.levels))

    def lowest(self, parts: NDArray[np.int64]) -> tuple[int, int]:
        """The finest level and the group there that covers all of ``parts``."""
        for level, groups in enumerate(self.levels):
            if len(np.unique(groups[parts])) == 1:
                return level, int(groups[parts[0]])
        return len(self.levels) - 1, 0

    def to_csv(self, values: pa.Array | None = None) -> str:
        """The tree as ARX reads it: part;level 1;...;root.

        With ``values``, the distinct ones of a column that is cut, each stands for itself before
        its interval: numbers in rows are found by their own text.
        """
        labels = [list(self.column.labels)]
        labels += [self.labels(level) for level in range(1, len(self.levels) - 1)]
        parts = range(len(self.column.labels))
        lines = [[*(names[groups[p]] for names, groups in zip(labels, self.levels, strict=False)),
                  "*"] for p in parts]  # fmt: skip
        if values is not None:
            texts = [MISSING if value is None else str(value) for value in values.to_pylist()]
            part_of = self.column.of_value.tolist()
            lines = [[text, *lines[p]] for text, p in zip(texts, part_of, strict=True)]
        out = io.StringIO()
        csv.writer(out, delimiter=";", lineterminator="\n").writerows(lines)
        return out.getvalue()


def group_label(column: ColumnParts, parts: NDArray[np.int64], counts: NDArray[np.int64]) -> str:
    """A group of parts as text: all of them, their ends, or the most frequent and how many more."""
    names = [column.labels[p] for p in parts.tolist()]
    run = len(parts) > 2 and bool((np.diff(parts) == 1).all())
    if run and column.ordered and column.cuts is None and column.labels[parts[-1]] != MISSING:
        return f"{names[0]} to {names[-1]}"
    if len(names) <= _NAMED:
        return SIGN.join(names)
    known = np.argsort(-counts[parts], kind="stable")[:2]
    return SIGN.join([*(names[p] for p in known.tolist()), f"{len(names) - 2} more"])


def column_trees(levels: MergeHierarchy, melted: MeltedTable) -> dict[str, ColumnTree]:
    """The tree of each column, as the merges of the grid give it.

    Definition: walk the levels from the finest grid to one cell; whenever parts of a column newly
        fall into the same group, one node joins them.
    Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018,
        4.3.
    """
    side = levels.grid.side("part")
    group = levels.grid.partition[side].copy()
    found: dict[str, list[NDArray[np.int32]]] = {}
    places = {
        column.name: slice(melted.offsets[k], melted.offsets[k + 1])
        for k, column in enumerate(melted.columns)
    }
    for name, place in places.items():
        found[name] = [np.arange(place.stop - place.start, dtype=np.int32)]
    merges = [(-1, -1)] + [
        (kept, gone) for merged, kept, gone in levels.path.steps.tolist() if merged == side
    ]
    held = {name: set(group[place].tolist()) for name, place in places.items()}
    for number, (kept, gone) in enumerate(merges):
        group[group == gone] = kept
        for name, place in places.items():
            joins = {kept, gone} <= held[name]
            if gone in held[name]:
                held[name] = held[name] - {gone} | {kept}
            if joins or not number:
                here = by_appearance(group[place])
                if int(here.max()) < int(found[name][-1].max()):
                    found[name].append(here)
    return {c.name: ColumnTree(c, tuple(found[c.name])) for c in melted.columns}


def ordered_tree(column: ColumnParts, groups: NDArray[np.int32]) -> ColumnTree:
    """The tree of a column whose neighbours alone may join, by its law over groups of rows.

    The missing value, the last part where there is one, joins at the root only.
    """
    parts = int(column.codes.max()) + 1
    missing = parts < len(column.labels) or column.labels[-1] == MISSING
    count = len(column.labels) - (1 if missing else 0)
    present = column.codes < count
    observed = observe(
        [
            Variable("part", "numeric", count),
            Variable("group", "categorical", int(groups.max()) + 1),
        ],
        [column.codes[present], groups[present]],
    )
    start = (
        np.arange(count, dtype=np.int32),
        np.arange(int(groups.max()) + 1, dtype=np.int32),
    )
    path = merge_parts(GridCriterion(observed), start, cost=0.0, frozen=[False, True])
    levels = []
    for step in range(len(path.steps) + 1):
        here = path.partition(step)[0]
        levels.append(np.append(here, here.max() + 1).astype(np.int32) if missing else here)
    if missing:
        levels.append(np.zeros(count + 1, dtype=np.int32))
    return ColumnTree(column, tuple(levels))


def flat_tree(column: ColumnParts) -> ColumnTree:
    """The parts of a column below one root."""
    leaves = np.arange(len(column.labels), dtype=np.int32)
    return ColumnTree(column, (leaves, np.zeros_like(leaves)))


def thin(tree: ColumnTree, limit: int) -> ColumnTree:
    """At most ``limit`` levels between the parts and the root, each with about half the groups."""
    middle = [level for level in tree.levels[1:] if int(level.max()) + 1 > 1]
    if len(middle) > limit:
        counts = np.array([int(level.max()) + 1 for level in middle])
        first = int(tree.levels[0].max()) + 1
        wanted = np.geomspace(first, 1, limit + 2)[1:-1]
        picked = sorted({int(np.abs(counts - w).argmin()) for w in wanted})
        middle = [middle[p] for p in picked]
    root = np.zeros_like(tree.levels[0])
    return ColumnTree(tree.column, (tree.levels[0], *middle, root))


MAX_VALUES = 500  # a nominal column with more values gets no groups


def build_automatic(table: Table, seconds: float | None = None) -> Table:
    """The table with every automatic hierarchy replaced by one that can be written down.

    Args:
        table: the rows.
        seconds: what the co-clustering may take.

    Raises:
        HierarchyError: the columns tell nothing of each other, so that no hierarchy can be found.
    """
    wanted = {n: c.hierarchy for n, c in table.schema.columns.items() if _auto(c.hierarchy)}
    builders = find_builders(table, wanted, seconds) if wanted else {}
    columns = {
        name: replace(column, hierarchy=builders[name]) if name in builders else column
        for name, column in table.schema.columns.items()
    }
    schema = replace(table.schema, columns=columns)
    return replace(table.with_schema(schema), found=frozenset(wanted))


def find_builders(
    table: Table, wanted: dict[str, Any], seconds: float | None = None
) -> dict[str, HierarchyBuilder]:
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
        # Skewed columns look like structure to rows x parts even where they are independent.
        bound = dependent_columns({name: parts.codes for name, parts in usable.items()})
        if not bound.intersection(open_columns):
            raise HierarchyError(_no_structure(open_columns, len(table)))
        out.update({name: Flat() for name in open_columns if name not in bound})
        usable = {name: parts for name, parts in usable.items() if name in bound}
        open_columns = [name for name in open_columns if name in bound]
        again = [name for name in open_columns if wanted[name].intervals == "modl"]
        melted, grid = cocluster_parts(
            table, melt_columns(list(usable.values())), again=again, time_limit=seconds
        )
        if not grid.informative:
            raise HierarchyError(_no_structure(open_columns, len(table)))
        trees = column_trees(hierarchy(grid), melted)
        rows = grid.partition[0]
        for name in open_columns:
            parts = trees[name].column
            tree = ordered_tree(parts, rows) if parts.ordered else trees[name]
            out[name] = _builder(table, thin(tree, wanted[name].levels))
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


def _intervals(table: Table, tree: ColumnTree, cuts: IntervalCuts) -> HierarchyBuilder:
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
