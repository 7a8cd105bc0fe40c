"""What the door counts again of a table of figures, from the rows, by Arrow.

Nothing here shares code with the makers of such tables: labels come from the hierarchies, groups
from Arrow, demands from the schema and the policies as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InternalError
from halfmask.release.labels import decode_labels
from halfmask.release.tabulation.cells import MISSING, TOTAL, CellGrid
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table

    Counts = NDArray[np.int64]
    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TableDesign:
    """What a table of figures shows.

    Attributes:
        by: the columns that span it.
        levels: per column, the levels of its hierarchy that are shown, the finest first.
        margins: whether totals are shown.
        amount: the column that is summed; None: counts.
        count: what is counted: people or rows.
    """

    by: tuple[str, ...]
    levels: Mapping[str, tuple[int, ...]]
    margins: bool
    amount: str | None
    count: str

    @property
    def touched(self) -> tuple[str, ...]:
        """The columns whose demands count."""
        return (*self.by, *(() if self.amount is None else (self.amount,)))


@dataclass(frozen=True, slots=True, eq=False)
class Recount:
    """What the door found in every cell.

    Attributes:
        values: people, rows or the sum, as the design asks.
        people: how many people contribute.
        k: the largest k that anybody of the table demands, or NaN; the same in every cell.
        shares: (cells, people, contributions) one line per cell and person, largest first.
        narrow: cells that break the l of somebody, or the controller's.
        negative: whether any contribution is below 0.
    """

    values: Numbers
    people: Counts
    k: Numbers
    shares: tuple[Counts, Counts, Numbers]
    narrow: Flags
    negative: bool

    def largest(self, n: int) -> Numbers:
        """Per cell, what the n people bring together who bring most."""
        cells, _, amounts = self.shares
        taken = np.arange(len(cells)) - np.searchsorted(cells, cells, side="left") < n
        size = len(self.values)
        return np.bincount(cells[taken], weights=amounts[taken], minlength=size).astype(float)

    def owners(self) -> Counts:
        """The number of the one person who contributes to a cell alone; -1 where there is none."""
        cells, people, _ = self.shares
        found = np.full(len(self.values), -1)
        alone = self.people[cells] == 1
        found[cells[alone]] = people[alone]
        return found


def recount(
    table: Table,
    design: TableDesign,
    grid: CellGrid,
    diversity: Mapping[str, int],
    *,
    demands: bool,
) -> Recount:
    """Count every cell of ``grid`` again.

    Raises:
        InternalError: rows have labels that the grid does not know.
    """
    rows = _rows(table, design, demands=demands)
    size = grid.size
    values, people = np.zeros(size), np.zeros(size, np.int64)
    k, narrow = np.full(size, np.nan), np.zeros(size, dtype=bool)
    lines: list[tuple[Counts, Counts, Numbers]] = []
    for chosen in product(*(_shown_levels(design, name) for name in design.by)):
        named = rows.append_column("cell", pa.array(_cells(table, rows, design, grid, chosen)))
        each = named.group_by(["cell", "person"]).aggregate(
            [("amount", "sum"), ("k", "max"), ([], "count_all")]
        )
        cell = each["cell"].to_numpy()
        own = each["amount_sum"].to_numpy().astype(np.float64)
        if design.amount is None:
            own = each["count_all"].to_numpy().astype(np.float64)
        here = np.unique(cell)
        people[here] = np.bincount(cell, minlength=size)[here]
        total = np.bincount(cell, weights=own, minlength=size)[here]
        values[here] = people[here] if _heads(design) else total
        highest = np.full(size, -np.inf)
        np.maximum.at(highest, cell, pc.fill_null(each["k_max"], -np.inf).to_numpy())
        k[here] = np.where(np.isfinite(highest), highest, np.nan)[here]
        order = np.lexsort((-own, cell))
        lines.append((cell[order], each["person"].to_numpy()[order], own[order]))
        narrow |= _narrow(named, design, grid, diversity, chosen)
    shares = _merge_lines(lines)
    return Recount(values, people, k, shares, narrow, bool((shares[2] < 0).any()))


def _heads(design: TableDesign) -> bool:
    return design.amount is None and design.count == "people"


def _shown_levels(design: TableDesign, name: str) -> tuple[int | None, ...]:
    return (*design.levels[name], *((None,) if design.margins else ()))


def _merge_lines(lines: list[tuple[Counts, Counts, Numbers]]) -> tuple[Counts, Counts, Numbers]:
    """All lines by cell, once each; levels that only repeat a finer one share its cells."""
    cell, person, own = (np.concatenate([one[i] for one in lines]) for i in range(3))
    _, first = np.unique(cell * (person.max(initial=0) + 1) + person, return_index=True)
    cell, person, own = cell[first], person[first], own[first]
    order = np.lexsort((-own, cell))
    return cell[order], person[order], own[order]


def _rows(table: Table, design: TableDesign, *, demands: bool) -> pa.Table:
    """Person, amount and demands of the rows that contribute."""
    person = table.schema.person
    number: Any = np.arange(len(table))
    if person is not None:
        codes = pc.dictionary_encode(decode_labels(table.arrow[person])).combine_chunks()
        found = pc.cast(codes.indices, pa.int64())
        number = pc.if_else(pc.is_null(found), pa.array(np.arange(len(table)) + len(table)), found)
    amount = pa.repeat(pa.scalar(1.0), len(table))
    if design.amount is not None:
        amount = decode_labels(table.arrow[design.amount])
        amount = amount.cast(pa.float64(), safe=False).combine_chunks()
    columns = {"row": np.arange(len(table)), "person": number, "amount": amount}
    for demand in ("k", "l"):
        none = pa.nulls(len(table), pa.float64())
        columns[demand] = none
        if demands:  # the most that anybody asks for, in every cell: where is nobody's business
            most = pc.max(strictest_demand(table, demand, design.touched))
            columns[demand] = pa.repeat(most, len(table)) if most.is_valid else none
    kept = pa.table(columns)
    return kept.filter(pc.is_valid(kept["amount"])) if design.amount is not None else kept


def _cells(
    table: Table, rows: pa.Table, design: TableDesign, grid: CellGrid, chosen: Sequence[int | None]
) -> Counts:
    labels = {
        name: _labels(table, name, level).take(rows["row"])
        for name, level in zip(design.by, chosen, strict=True)
    }
    cells = grid.number(_finest_labels(pa.table(labels), table, design, chosen))
    if (cells < 0).any():
        raise InternalError("Rows have labels that the table of figures does not know.")
    return cells


def _labels(table: Table, name: str, level: int | None) -> pa.Array:
    """Per row, the label of one level; None: the total."""
    if level is None:
        return pa.array([TOTAL] * len(table), pa.string())
    hierarchy, codes = table.hierarchy(name), table.encode(name).codes
    texts = [MISSING if x is None else canonical(x) for x in hierarchy.labels[level]]
    return pa.array(texts, pa.string()).take(pa.array(hierarchy.maps[level][codes]))


def _finest_labels(
    labels: pa.Table, table: Table, design: TableDesign, chosen: Sequence[int | None]
) -> pa.Table:
    """Labels that only repeat a finer one, which the grid names once, as the finer one."""
    for side, (name, level) in enumerate(zip(design.by, chosen, strict=True)):
        if level is None:
            continue
        finer = [one for one in design.levels[name] if one < level]
        if not finer:
            continue
        hierarchy = table.hierarchy(name)
        renamed = {}
        for code, text in enumerate(hierarchy.labels[level]):
            for below in finer:
                inside = np.unique(hierarchy.maps[below][hierarchy.maps[level] == code])
                if len(inside) == 1:
                    fine = hierarchy.labels[below][int(inside[0])]
                    old = MISSING if text is None else canonical(text)
                    renamed[old] = MISSING if fine is None else canonical(fine)
                    break
        if renamed:
            old = pa.array(list(renamed), pa.string())
            new = pa.array(list(renamed.values()), pa.string())
            place = pc.index_in(labels[name], value_set=old)
            mended = pc.if_else(pc.is_valid(place), new.take(place), labels[name])
            labels = labels.set_column(side, name, mended)
    return labels


def _narrow(
    rows: pa.Table,
    design: TableDesign,
    grid: CellGrid,
    diversity: Mapping[str, int],
    chosen: Sequence[int | None],
) -> Flags:
    """Cells that tell too few values of a sensitive column, where somebody asks for more.

    In a sum these are cells of too few different amounts; in counts all cells of a line whose
    people have too few different values of the column that the line runs along.
    """
    found = np.zeros(grid.size, dtype=bool)
    if design.amount is not None:
        least = diversity.get(design.amount, 0)
        told = rows.group_by("cell").aggregate([("amount", "count_distinct"), ("l", "max")])
        asked = np.fmax(pc.fill_null(told["l_max"], np.nan).to_numpy(), least)
        few = told["amount_count_distinct"].to_numpy() < asked
        found[told["cell"].to_numpy()[few]] = True
        return found
    for side, name in enumerate(design.by):
        if name not in diversity or chosen[side] != design.levels[name][0]:
            continue
        inner = int(np.prod(grid.shape[side + 1 :], dtype=np.int64))
        width = grid.shape[side]
        cell = rows["cell"].to_numpy()
        line = cell // (inner * width) * inner + cell % inner
        told = (
            rows.append_column("line", pa.array(line))
            .group_by("line")
            .aggregate([("cell", "count_distinct"), ("l", "max")])
        )
        asked = np.fmax(pc.fill_null(told["l_max"], np.nan).to_numpy(), diversity[name])
        few = told["line"].to_numpy()[told["cell_count_distinct"].to_numpy() < asked]
        starts = few // inner * (inner * width) + few % inner
        parts = width - 1 if design.margins else width
        found[(starts[:, None] + inner * np.arange(parts)[None, :]).ravel()] = True
    return found


def strictest_demand(table: Table, demand: str, touched: Sequence[str]) -> pa.Array:
    """Per row, the strictest that any source says of its person where ``touched`` are shown."""
    parts = list(_stated_demands(table, demand, touched))
    pick = pc.max_element_wise if demand in ("k", "l") else pc.min_element_wise
    if not parts:
        return pa.nulls(len(table), pa.float64())
    each = pick(*parts, skip_nulls=True)
    person = table.schema.person
    if person is None:
        return each
    how = "max" if demand in ("k", "l") else "min"
    named = pa.table({"person": _text(table.arrow[person]), "asked": each})
    own = named.group_by("person").aggregate([("asked", how)])
    place = pc.index_in(named["person"], value_set=own["person"].combine_chunks())
    return own[f"asked_{how}"].combine_chunks().take(place.combine_chunks())


def _stated_demands(table: Table, demand: str, touched: Sequence[str]) -> Iterator[pa.Array]:
    schema = table.schema
    entries: list[Mapping[str, Any]] = [schema.policy]
    entries += [schema.policy_columns[c] for c in touched if c in schema.policy_columns]
    for source in schema.policies:
        entries.append({"k": source.k, "l": source.l, "t": source.t, "epsilon": source.epsilon})
        entries += [source.columns[c] for c in touched if c in source.columns]
    for entry in entries:
        where = entry.get(demand)
        if isinstance(where, str):
            yield table.arrow[where].cast(pa.float64(), safe=False).combine_chunks()
        elif where is not None:
            yield pa.repeat(pa.scalar(float(where)), len(table))
    for source in schema.policies:
        if source.people is None or schema.person is None:
            continue
        listed = pa.array(list(touched), pa.string())
        holds = pc.or_(
            pc.is_null(source.people["column"]),
            pc.is_in(source.people["column"], value_set=listed),
        )
        said = source.people.filter(holds)
        how = "max" if demand in ("k", "l") else "min"
        own = (
            pa.table({"person": _text(said["person"]), "asked": said[demand]})
            .group_by("person")
            .aggregate([("asked", how)])
        )
        place = pc.index_in(
            _text(table.arrow[schema.person]), value_set=own["person"].combine_chunks()
        )
        asked = own[f"asked_{how}"].combine_chunks().cast(pa.float64())
        yield asked.take(place)


def _text(column: pa.ChunkedArray) -> pa.Array:
    text = decode_labels(column).cast(pa.string())
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
