"""``cocluster``: the grid that explains best how columns go together, and what its parts hold.

A grid describes the original rows and their values: it is no release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.coclustering.generate import heat_map
from halfmask.coclustering.hierarchy import by_appearance, hierarchy, simplify
from halfmask.coclustering.independence import (
    bound_grid,
    dependence_of_columns,
    find_dependence,
)
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.optimize import optimize_grid as search
from halfmask.coclustering.prepare import (
    ColumnParts,
    IntervalCuts,
    as_numbers,
    cocluster_columns,
    column_parts,
    cut_column,
)
from halfmask.coclustering.trees import ColumnTree, column_trees, flat_tree, ordered_tree
from halfmask.engines.counting.tuples import MOST, count_tuples
from halfmask.engines.read import is_typed
from halfmask.errors import InputError, ParameterError
from halfmask.ownership import make_private, private_folder
from halfmask.table.columns import require_known
from halfmask.table.hierarchy_finder import ROUNDS
from halfmask.table.table import Table, require_table
from halfmask.table.tuples import Tuples, contiguous
from halfmask.table.values import is_continuous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import CriterionForm
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.hierarchy import MergeHierarchy
    from halfmask.coclustering.independence import Dependence
    from halfmask.coclustering.prepare import IntervalRule, MeltedTable

_TYPICAL = 5  # values of a part that are named as typical
_LONGEST = 100  # characters of a file's name


@dataclass(frozen=True, slots=True, eq=False)
class CoClustering:
    """A grid that was found, its coarser levels, and the columns that it is made of.

    Attributes:
        grid: the grid, simplified as asked.
        levels: the merges from the best grid down to one cell.
        rounds: the effort of the search.
        columns: per variable that is a column, its parts as they are published.
        melted: the columns, where rows are clustered against parts of columns.
        dependence: which columns go with another one beyond chance; None: not known (of a saved
            grid).
        numbers: the distinct values of each column that is cut.
    """

    grid: Grid
    levels: MergeHierarchy
    rounds: int
    columns: tuple[ColumnParts, ...] = ()
    melted: MeltedTable | None = None
    dependence: Dependence | None = None
    numbers: Mapping[str, pa.Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"CoClustering({' x '.join(map(str, self.grid.parts))} parts)"

    @property
    def information(self) -> float:
        """The share of the best grid's information that the simplified one keeps."""
        best, null = self.levels.grid.cost, self.grid.null_cost
        return (self.grid.cost - null) / (best - null or 1.0)

    def trees(self) -> dict[str, ColumnTree]:
        """Per column, the tree of its values that the merges make."""
        if self.melted is not None:
            found = column_trees(self.levels, self.melted)
            rows = self.levels.grid.partition[0]
            bound = found if self.dependence is None else self.dependence.bound
            return {
                name: flat_tree(tree.column) if name not in bound
                else ordered_tree(tree.column, rows) if tree.column.ordered else tree
                for name, tree in found.items()
            }  # fmt: skip
        return {c.name: self._tree(side, c) for side, c in enumerate(self.columns)}

    def _tree(self, side: int, column: ColumnParts) -> ColumnTree:
        grid = self.levels.grid
        leaves = grid.partition[side]
        if column.cuts is not None:  # level 0 are the intervals, not the numbers
            leaves = np.arange(grid.parts[side], dtype=np.int32)
        found = [np.arange(len(leaves), dtype=np.int32)]
        for level in range(len(self.levels)):
            here = by_appearance(self.levels.names(level)[side][leaves])
            if int(here.max()) < int(found[-1].max()):
                found.append(here)
        return ColumnTree(column, tuple(found))

    def write_hierarchies(self, folder: str | PathLike[str]) -> list[str]:
        """Write one file per column as ARX reads it (``value;level 1;...;*``); their names."""
        place = private_folder(folder)
        out: list[str] = []
        for name, tree in self.trees().items():
            safe = re.sub(r"[^\w.-]+", "_", name)[:_LONGEST].strip(".") or "column"
            path = place / f"{safe}.csv"
            if str(path) in out:
                path = place / f"{safe}_{len(out)}.csv"
            make_private(path)
            path.write_text(tree.to_csv(self.numbers.get(name)), encoding="utf-8")
            out.append(str(path))
        return out

    def interval_ends(self, side: int, grid: Grid) -> list[tuple[str | None, str | None]] | None:
        """Per part of a grid of the hierarchy, between which values it lies; None: of no numbers.

        The texts are of the column's own kind, dates as dates. An end that is open is None.
        """
        column = self.columns[side] if self.columns else None
        if column is None or column.cuts is None:
            return None
        finest, part = self.levels.grid.partition[side], grid.partition[side]
        texts = [
            label.rpartition(",")[2].strip("<=]") for label in column.labels[: len(column.cuts)]
        ]
        low, high = [None, *texts[:-1]], [*texts[:-1], None]
        starts = np.flatnonzero(np.diff(part, prepend=-1))
        stops = np.append(starts[1:], len(part)) - 1
        return [(low[finest[a]], high[finest[b]]) for a, b in zip(starts, stops, strict=True)]

    def _composition(self, side: int) -> list[dict[str, Any]]:
        """What each part holds; intervals with the text of their ends."""
        parts, ends = composition(self.grid, side), self.interval_ends(side, self.grid)
        if ends is not None:
            for part, (low, high) in zip(parts, ends, strict=True):
                part["above"], part["up_to"] = low, high
        return parts

    def picture(self) -> str:
        """The grid of two variables as SVG text."""
        return heat_map(self.grid)

    def to_dict(self) -> dict[str, Any]:
        """What was found, as plain values: sizes, cost, and what each part holds."""
        grid = self.grid
        return {
            "observations": grid.total,
            "variables": [
                {
                    "name": variable.name,
                    "kind": variable.kind,
                    "values": variable.size,
                    "parts": grid.parts[side],
                    "sizes": grid.sizes(side).tolist(),
                    "composition": self._composition(side),
                }
                for side, variable in enumerate(grid.variables)
            ],
            "cost": grid.cost,
            "null_cost": grid.null_cost,
            "level": grid.level,
            "information": self.information,
            "criterion": grid.criterion,
            "rounds": self.rounds,
            "dependence": None if self.dependence is None else self.dependence.to_dict(),
        }


def composition(grid: Grid, side: int) -> list[dict[str, Any]]:
    """Per part of one variable: how many observations, its typical values, and its interest.

    Definition: the interest of a part is its share of what the cells add to the mutual information
    (over two variables; over more, to the total correlation), and 0 where a variable has one part,
    which tells nothing of the others; typical values are the most frequent.
    Source: Boullé, "Data grid models for preparation and modeling in supervised learning", 2011.
    """
    totals = grid.totals(side)
    gain = cell_information(grid)
    interest = np.bincount(grid.cells[:, side], gain, grid.parts[side])
    whole = float(interest.sum())
    told = whole > 0 and grid.parts[side] > 1
    variable, counts = grid.variables[side], grid.marginals[side]
    out = []
    for part in range(grid.parts[side]):
        held = np.flatnonzero(grid.partition[side] == part)
        often = held[np.argsort(-counts[held], kind="stable")][:_TYPICAL]
        one: dict[str, Any] = {
            "observations": int(totals[part]),
            "values": len(held),
            "interest": float(interest[part]) / whole if told else 0.0,
        }
        if variable.values is not None and variable.kind == "numeric":
            one["from"], one["to"] = (variable.values[v] for v in (held[0], held[-1]))
        elif variable.values is not None:
            share = counts[often] / max(int(totals[part]), 1)
            named = (str(variable.values[v]) for v in often)
            one["typical"] = [
                {"value": text, "share": float(s)} for text, s in zip(named, share, strict=True)
            ]
        out.append(one)
    return out


def cell_information(grid: Grid) -> NDArray[np.float64]:
    """What each non-empty cell adds to the mutual information (total correlation) of the parts."""
    share = grid.counts / grid.total
    alone = np.ones(len(share))
    for side in range(len(grid.parts)):
        alone *= (grid.totals(side) / grid.total)[grid.cells[:, side]]
    return np.asarray(share * np.log(share / alone))


def cocluster(
    table: Table,
    variables: Sequence[str] | None = None,
    *,
    dimensions: int | Literal["rows"] | None = None,
    parts: int | Mapping[str, int] | None = None,
    criterion: CriterionForm = "published",
    rounds: int = ROUNDS,
    seed: int = 0,
    time_limit: float | None = None,
    bins: int = 10,
    intervals: IntervalRule = "equal-frequency",
    **limits: Any,
) -> CoClustering:
    """Find the grid over columns, or over rows and parts of columns, that explains the rows best.

    A column that goes with no other one beyond chance has one part (``dependence`` says which).

    Args:
        table: the rows. Where an engine counts them, it counts the distinct tuples of the columns;
            for rows x parts each row is held, by the codes of these columns.
        variables: the columns; by default the quasi-identifiers, as rows x parts of columns.
        dimensions: how many sides the grid has. As many as there are variables: the columns
            themselves (the default where variables are named, up to 10). ``"rows"``, or 2 with
            more variables: rows and the parts of all columns.
        parts: the most parts, of every variable or by name; the grid is simplified to it.
        criterion: ``"published"`` or ``"khiops11"``.
        rounds: how often the best grid is left and searched anew.
        seed: repeats a search.
        time_limit: seconds; what is found then depends on the machine. Comparing with shuffled
            columns may take as long again.
        bins: how many intervals numbers are cut into for rows x parts.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``, for the same.
        limits: ``cells``, ``information``, ``smallest``: see ``docs/coclustering.md``. With
            ``information`` the grid is that of the criterion alone (``information=1``: its
            optimum), whether columns go together beyond chance or not.

    Example:
        >>> import halfmask as hm
        >>> half = ["a"] * 30 + ["b"] * 30
        >>> table = hm.read({"x": half, "y": [v.upper() for v in half]})
        >>> hm.cocluster(table, ["x", "y"]).grid.parts
        (2, 2)
    """
    whole = require_table(table) if _is_read(table) else table
    names = list(whole.schema.quasi if variables is None else variables)
    require_known(names, whole.column_names)
    if len(names) == 1 or len(set(names)) < len(names):
        listed = ", ".join(names)
        raise ParameterError(
            "variables", listed, "two columns or more, each once, to see how they go together"
        )
    sides = dimensions or ("rows" if variables is None else len(names))
    by_columns = sides == len(names) and 2 <= len(names) <= _MOST
    entries = _entries(whole, names, unfolded=not by_columns)
    table = entries.table
    effort: dict[str, Any] = {"criterion": criterion, "seed": seed, "rounds": rounds}
    optimum = "information" in limits  # of the criterion, whether it goes beyond chance or not
    if by_columns:
        found = _over_columns(entries, names, effort, time_limit, optimum=optimum)
    elif sides in ("rows", 2) and len(names) != 1:
        melted, grid = cocluster_columns(
            table, names, bins=bins, intervals=intervals, time_limit=time_limit, **effort
        )
        known = dependence_of_columns(grid, {c.name: c.codes for c in melted.columns})
        if not (known.bound or optimum):
            grid = bound_grid(grid, melted.observations, (), effort)
        cut = _numbers(table, melted.columns)
        found = CoClustering(grid, hierarchy(grid), rounds, (), melted, known, cut)
    else:
        raise ParameterError(
            "dimensions", sides, f"2, or as many as variables ({len(names)}, at most {_MOST})"
        )
    return found if parts is None and not limits else simplify_levels(found, parts, limits)


_MOST = 10


def _over_columns(
    entries: Tuples,
    names: Sequence[str],
    effort: dict[str, Any],
    time_limit: float | None,
    *,
    optimum: bool,
) -> CoClustering:
    """The grid over the columns; those that go with no other one beyond chance have one part."""
    built = [_variable(entries, name) for name in names]
    observed = observe(
        [one[0] for one in built], [one[1] for one in built], contiguous(entries.counts)
    )
    grid = search(observed, time_limit=time_limit, **effort)
    known = find_dependence(grid, observed, effort, time_limit)
    if known.alone and not optimum:
        limited = effort | {"time_limit": time_limit}
        grid = bound_grid(grid, observed, known.bound, limited)
    sides = zip(grid.variables, grid.partition, strict=True)
    columns = tuple(_publish_parts(entries, variable, side) for variable, side in sides)
    cut = _numbers(entries.table, columns)
    return CoClustering(grid, hierarchy(grid), effort["rounds"], columns, None, known, cut)


def _numbers(table: Table, columns: Sequence[ColumnParts]) -> dict[str, pa.Array]:
    """The distinct values of the columns that are cut."""
    return {c.name: table.encode(c.name).values for c in columns if c.cuts is not None}


def _is_read(table: object) -> bool:
    """Whether rows are taken into memory whole: they are there, or are texts that become values."""
    return not isinstance(table, Table) or table.stored is None or not is_typed(table)


def _entries(table: Table, names: Sequence[str], *, unfolded: bool) -> Tuples:
    """The rows, or the distinct tuples of some columns that an engine counts.

    Raises:
        InputError: there are more rows than can be held where each is looked at.
    """
    if table.stored is None:
        return Tuples.of(table)
    if not names:
        raise ParameterError("variables", None, "two columns or more, or quasi-identifiers")
    if unfolded and len(table) > MOST:
        raise InputError(
            f"Rows are clustered one by one, and there are more than {MOST:,} of them: name the "
            f"columns to cluster, at most {_MOST}, or draw some of the rows first."
        )
    if unfolded:
        table.stored.require_room(4 * len(names))  # bytes of a code
    found = count_tuples(table, lambda _: names)
    return found.unfold() if unfolded else found


def simplify_levels(
    found: CoClustering, parts: int | Mapping[str, int] | None, limits: Mapping[str, Any]
) -> CoClustering:
    """The same at the finest level that meets the limits."""
    known = [variable.name for variable in found.grid.variables]
    if isinstance(parts, int):
        parts = dict.fromkeys(known, parts)
    unknown = [name for name in limits if name not in ("cells", "information", "smallest")]
    if unknown:
        raise ParameterError("option", unknown[0], "one of cells, information, smallest")
    for name, most in (parts or {}).items():
        if not isinstance(most, int) or most < 1:
            raise ParameterError("parts", f"{name}={most}", "whole numbers of 1 or more")
    return replace(found, grid=simplify(found.levels, parts=parts, **limits))


def _variable(entries: Tuples, name: str) -> tuple[Variable, NDArray[np.int32]]:
    """A column as a side of the grid; numbers without gaps are cut, all else is grouped."""
    table = entries.table
    encoded = table.encode(name)
    column = table.schema.columns.get(name)
    kind = column.kind if column is not None else None
    values = encoded.values
    if is_continuous(values.type) and kind in (None, "numeric", "date") and not values.null_count:
        numbers = as_numbers(values)
        return (
            Variable(name, "numeric", len(values), tuple(numbers.tolist())),
            encoded.codes.astype(np.int32),
        )
    parts = column_parts(table, name, counts=_counts(entries))
    return Variable(name, "categorical", len(parts.labels), parts.labels), parts.codes


def _counts(entries: Tuples) -> NDArray[np.int64] | None:
    """How many rows each entry stands for; None: they are rows."""
    return entries.counts if entries.engine else None


def _publish_parts(entries: Tuples, variable: Variable, side: NDArray[np.int32]) -> ColumnParts:
    """The column's parts: its intervals where it is cut, else its values."""
    table, counts = entries.table, _counts(entries)
    if variable.kind != "numeric" or variable.values is None:
        return column_parts(table, variable.name, counts=counts)
    numbers = np.array(variable.values, dtype=np.float64)
    at = np.flatnonzero(np.diff(side))
    inner = (numbers[at] + numbers[at + 1]) / 2
    cuts = IntervalCuts((float(numbers[0]), *inner.tolist(), float(numbers[-1]))).short(numbers)
    return cut_column(table, variable.name, cuts, counts)
