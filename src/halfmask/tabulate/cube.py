"""Rows counted and summed for every cell of a table of figures, totals and levels among them.

People with several rows count once as people. Missing values are a category of their own. What is
kept of each cell is what rules ask about: people, their largest contributions, their demands.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.release.tabulation.cells import MISSING, TOTAL, Axis, CellGrid
from halfmask.table.columns import quote_names
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table

    Counts = NDArray[np.int64]
    Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """One column's axis, and where each of its values stands on every level of it.

    Attributes:
        axis: categories and sums.
        levels: per level that is shown (the total last), the category of each distinct value.
        leaf: the level of the hierarchy that is the finest shown.
    """

    axis: Axis
    levels: tuple[Counts, ...]
    leaf: int


@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """What is known of every cell, for the controller.

    Attributes:
        grid: the cells.
        values: what would be published: people, rows or a sum.
        people: how many people contribute.
        rows: how many rows.
        largest: (n, cells) the n largest contributions of single people, largest first.
        owner: the number of the one person who contributes alone; -1 where there is none.
        k: the k that people of the cell are owed; 0: none.
        whole: whether values are counts.
        negative: whether any contribution is below 0.
    """

    grid: CellGrid
    values: Numbers
    people: Counts
    rows: Counts
    largest: Numbers
    owner: Counts
    k: Counts
    whole: bool
    negative: bool = False


def ladders(
    table: Table, by: Sequence[str], levels: Mapping[str, object], *, margins: bool
) -> tuple[Ladder, ...]:
    """The axes of the columns ``by``.

    Args:
        table: the rows.
        by: the columns that span the table of figures.
        levels: column to the level (or levels, the finest first) of its hierarchy that is shown;
            ``"all"``: all of them. Default: level 0.
        margins: whether totals are shown.

    Raises:
        ParameterError: a level is asked of another column, or is none of the hierarchy's.
    """
    for name in levels:
        if name not in by:
            raise ParameterError("levels", name, f"one of the columns {quote_names(by)}")
    return tuple(_ladder(table, name, levels.get(name, 0), margins=margins) for name in by)


def require_tabulable(table: Table, by: Sequence[str]) -> None:
    """Refuse columns that no table of figures can show; no value is looked at.

    Raises:
        SchemaError: columns are not there, or hold identifiers or demands.
    """
    names, schema = table.column_names, table.schema
    if not by:
        raise SchemaError("Name at least one column to tabulate by.")
    faults = [
        f"Column '{name}' is not there: there are {quote_names(names)}."
        for name in by
        if name not in names
    ]
    if len(set(by)) != len(by):
        faults.append("A column is named twice: name each once.")
    faults += [
        f"Column '{name}' identifies people or holds their demands: it cannot leave."
        for name in by
        if name in names and name in schema.private
    ]
    faults += [
        f"Column '{name}' is not declared, so nobody decided whether it may leave: give it a role "
        "(quasi, sensitive or other) in the schema."
        for name in by
        if name in names and name not in schema.private and name not in schema.columns
    ]
    if faults:
        raise SchemaError(*faults)


def _ladder(table: Table, name: str, asked: object, *, margins: bool) -> Ladder:
    hierarchy = table.hierarchy(name)
    top = hierarchy.height
    if asked == "all":
        chosen = list(range(top + 1))
    elif isinstance(asked, int) and not isinstance(asked, bool):
        chosen = [asked]
    elif isinstance(asked, list | tuple) and all(isinstance(one, int) for one in asked):
        chosen = sorted(asked)
    else:
        raise ParameterError("levels", name, "a level, a list of levels or 'all'")
    if not chosen or not 0 <= chosen[0] <= chosen[-1] <= top or len(set(chosen)) != len(chosen):
        raise ParameterError("levels", chosen, f"levels of '{name}' from 0 to {top}, each once")
    maps = [hierarchy.maps[level].astype(np.int64) for level in chosen]
    texts = [[_label(x) for x in hierarchy.labels[level]] for level in chosen]
    if margins:
        maps.append(np.zeros(len(hierarchy.maps[0]), np.int64))
        texts.append([TOTAL])
    return _stack_levels(name, maps, texts, chosen[0])


def _label(value: object) -> str:
    return MISSING if value is None else canonical(value)


def _stack_levels(name: str, maps: list[Counts], texts: list[list[str]], leaf: int) -> Ladder:
    """One axis of all levels; a category that only repeats a finer one is the same."""
    labels: list[str] = []
    sums: list[tuple[int, tuple[int, ...]]] = []
    places: list[Counts] = []
    for number, (codes, words) in enumerate(zip(maps, texts, strict=True)):
        last = number == len(maps) - 1 and words == [TOTAL]
        nodes = np.empty(len(words), np.int64)
        for code, word in enumerate(words):
            inside = codes == code
            parts = tuple(np.unique(places[-1][inside]).tolist()) if places else ()
            if len(parts) == 1 and not last:
                nodes[code] = parts[0]
                continue
            nodes[code] = len(labels)
            labels.append(word)
            if places:
                sums.append((len(labels) - 1, parts))
        places.append(nodes[codes])
    if len(set(labels)) != len(labels):
        raise InputError(
            f"Column '{name}' has categories that are spelled alike (or like '{TOTAL}' or "
            f"'{MISSING}'): rename them, or show fewer levels."
        )
    return Ladder(Axis(name, tuple(labels), tuple(sums)), tuple(places), leaf)


def count_cube(
    table: Table,
    steps: Sequence[Ladder],
    *,
    amount: str | None = None,
    of: str = "people",
    k: Numbers | None = None,
    most: int = 2,
) -> Cube:
    """Count, or sum ``amount``, in every cell.

    Args:
        table: the rows.
        steps: the axes.
        amount: the numeric column to sum; rows without a value contribute nothing.
        of: what is counted without it: ``"people"`` or ``"rows"``.
        k: per row, what its person demands; NaN: nothing.
        most: how many of the largest contributions are kept.

    Raises:
        InputError: people stand in several cells, so that their counts do not add up.
    """
    if of not in ("people", "rows"):
        raise ParameterError("count", of, "'people' or 'rows'")
    grid = CellGrid(tuple(step.axis for step in steps))
    given = np.ones(len(table)) if amount is None else amounts_in(table, amount)
    kept = np.flatnonzero(~np.isnan(given))
    person = _persons(table)[kept]
    demand = np.zeros(len(kept)) if k is None else np.nan_to_num(k[kept])
    codes = [table.encode(step.axis.column).codes[kept] for step in steps]
    out = _Totals.empty(grid.size, most)
    for chosen in product(*(range(len(step.levels)) for step in steps)):
        cell = np.zeros(len(kept), np.int64)
        for step, level, code in zip(steps, chosen, codes, strict=True):
            cell = cell * len(step.axis) + step.levels[level][code]
        out.add(cell, person, given[kept], demand)
    if of == "people" and amount is None:
        _require_one_cell(grid, out, person)
    values = out.sums if amount is not None or of == "rows" else out.people.astype(np.float64)
    return Cube(
        grid,
        values,
        out.people,
        out.rows,
        out.largest,
        out.owner,
        out.k,
        whole=amount is None,
        negative=bool((given[kept] < 0).any()),
    )


@dataclass(slots=True, eq=False)
class _Totals:
    sums: Numbers
    people: Counts
    rows: Counts
    largest: Numbers
    owner: Counts
    k: Counts

    @classmethod
    def empty(cls, size: int, most: int) -> _Totals:
        return cls(
            np.zeros(size),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros((most, size)),
            np.full(size, -1),
            np.zeros(size, np.int64),
        )

    def add(self, cell: Counts, person: Counts, given: Numbers, demand: Numbers) -> None:
        """The cells of one level of each column; several levels may share a cell."""
        size = len(self.sums)
        # One entry per person and cell: rules speak of what a person contributes, in however many
        # rows.
        order = np.lexsort((person, cell))
        first = np.ones(len(order), dtype=bool)
        first[1:] = (np.diff(cell[order]) != 0) | (np.diff(person[order]) != 0)
        starts = np.flatnonzero(first)
        if not len(starts):
            return
        own = np.add.reduceat(given[order], starts)
        owner, where = person[order][starts], cell[order][starts]
        held = np.unique(where)
        self.rows[held] = np.bincount(cell, minlength=size)[held]
        self.people[held] = np.bincount(where, minlength=size)[held]
        self.sums[held] = np.bincount(where, weights=own, minlength=size)[held]
        asked = np.maximum.reduceat(demand[order], starts)
        highest = np.zeros(size)
        np.maximum.at(highest, where, asked)
        self.k[held] = np.minimum(highest, float(1 << 53)).astype(np.int64)[held]
        # Who is alone in a cell knows its figure, and attacks the others with it.
        alone = self.people[where] == 1
        self.owner[where[alone]] = owner[alone]
        ranked = np.lexsort((-own, where))
        heads = np.searchsorted(where[ranked], held)
        rank = np.arange(len(ranked)) - np.repeat(heads, np.diff(np.append(heads, len(ranked))))
        for place in range(len(self.largest)):
            at = ranked[rank == place]
            self.largest[place, where[at]] = own[at]


def _require_one_cell(grid: CellGrid, out: _Totals, person: Counts) -> None:
    if not len(grid.relations.indptr) - 1:
        return
    if np.abs(grid.relations @ out.people.astype(np.float64)).any():
        from numpy import unique

        several = int((np.bincount(person) > 1).sum()) if len(person) else 0
        raise InputError(
            f"Some of the {several:,} people with several rows (of {len(unique(person)):,}) stand "
            "in several cells, so that counts of people do not add up to their totals: count rows "
            "(count='rows', --count rows), or leave margins out."
        )


def _persons(table: Table) -> Counts:
    person = table.schema.person
    if person is None:
        return np.arange(len(table), dtype=np.int64)
    encoded = table.encode(person)
    codes = encoded.codes.astype(np.int64)
    if encoded.values.null_count:  # rows of nobody in particular: each its own person
        nobody = codes == len(encoded.values) - 1
        codes[nobody] = len(encoded.values) + np.arange(int(nobody.sum()))
    return codes


def amounts_in(table: Table, name: str) -> Numbers:
    """The values of a numeric column; NaN where one is missing.

    Raises:
        SchemaError: it is not there, is private, or holds no finite numbers.
    """
    if name not in table.arrow.column_names:
        raise SchemaError(
            f"Column '{name}' is not there: there are {quote_names(table.arrow.column_names)}."
        )
    if name in table.schema.private:
        raise SchemaError(f"Column '{name}' identifies people or holds their demands: not summed.")
    if name not in table.schema.columns:
        raise SchemaError(f"Column '{name}' is not declared: give it a role in the schema.")
    encoded = table.encode(name)
    kind = encoded.values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise SchemaError(f"Column '{name}' holds no numbers: sum a numeric column.")
    plain = encoded.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    found: Numbers = np.asarray(plain, dtype=np.float64)[encoded.codes]
    endless = int(np.isinf(found).sum())
    if endless:
        raise SchemaError(f"Column '{name}' has {endless} infinite value(s): correct them first.")
    return found
