"""``audit_table``: what readers can work out of tables of figures, whoever protected them.

Several tables of the same people are read as one: each cell of each is a cell of the table by all
columns together, and what no table shows is unknown. So differences between tables are found like
sums inside one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.release.files import private_file, report_kind, write_table
from halfmask.release.tabulation.cells import (
    MISSING,
    TOTAL,
    CellGrid,
    ReaderView,
    find_intervals,
    tree_axis,
)
from halfmask.release.tabulation.door import MARK, TableRelease
from halfmask.table.columns import quote_names
from halfmask.table.document import Result
from halfmask.table.files.rows import raw_rows
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.release.tabulation.cells import Axis

    Numbers = NDArray[np.float64]

MOST = 20_000  # unknown cells that are looked at
_MARKS = ("", MARK, "X", "*", ".", "..", "-", "c", "(c)", ":c", "n/a", "null", "None")


@dataclass(frozen=True, slots=True)
class CellInterval(Result):
    """What readers know of one cell.

    Attributes:
        cell: column to label.
        low: the least that it can be; None: no bound.
        high: the most; None: no bound.
        shown: whether some table has a line for it, with its figure withheld; else it follows
            from several tables.
        finding: ``"exact"``, ``"close"`` (within the protection interval), ``"few"`` (fewer
            people than the threshold), ``"derived"`` (exact, but nobody withheld it and it is not
            small) or ``"safe"``.
        proven: whether a table reaches both ends.
    """

    cell: Mapping[str, str]
    low: float | None
    high: float | None
    shown: bool
    finding: str
    proven: bool = True


@dataclass(frozen=True, eq=False)
class TableAudit:
    """What readers of some tables together can work out.

    Attributes:
        cells: how many cells the tables show or imply.
        withheld: how many of those that are shown have no figure.
        small: published figures from 1 to below the threshold.
        intervals: every cell without a figure.
        tables: how many tables were read.
    """

    cells: int
    withheld: int
    small: tuple[Mapping[str, str], ...]
    intervals: tuple[CellInterval, ...]
    tables: int

    @property
    def disclosed(self) -> tuple[CellInterval, ...]:
        """The cells that are found out exactly, closely, or to be of few people."""
        return tuple(one for one in self.intervals if one.finding in ("exact", "close", "few"))

    @property
    def holds(self) -> bool:
        """Whether nothing is found out."""
        return not self.disclosed and not self.small

    def __repr__(self) -> str:
        return (
            f"TableAudit({self.tables} table(s), {self.cells:,} cells, {self.withheld:,} withheld; "
            f"{len(self.disclosed):,} found out, {len(self.small):,} small figures published)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain values."""
        return {
            "format": "halfmask.table-audit/1",
            "holds": self.holds,
            "tables": self.tables,
            "cells": self.cells,
            "withheld": self.withheld,
            "found_out": {
                kind: sum(one.finding == kind for one in self.intervals)
                for kind in ("exact", "close", "few")
            },
            "small": [dict(cell) for cell in self.small],
            "intervals": [one.to_dict() for one in self.intervals],
        }

    def to_arrow(self) -> pa.Table:
        """One row per cell without a figure."""
        names = list(dict.fromkeys(name for one in self.intervals for name in one.cell))
        columns: dict[str, Any] = {
            name: pa.array([one.cell.get(name) for one in self.intervals], pa.string())
            for name in names
        }
        for field, kind in (("low", pa.float64()), ("high", pa.float64()), ("shown", pa.bool_()),
                            ("finding", pa.string()), ("proven", pa.bool_())):  # fmt: skip
            columns[field] = pa.array([getattr(one, field) for one in self.intervals], kind)
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """One row per cell without a figure."""
        return self.to_arrow().to_pandas()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the intervals as a table, for the controller."""
        write_table(self.to_arrow(), path, private_file)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the audit as ``.json``."""
        if report_kind(path) != ".json":
            raise InputError("An audit is written as .json: end its name so.")
        with private_file(path) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")


def audit_table(
    *published: object,
    by: str | Sequence[str] | None = None,
    value: str | None = None,
    parts: object = None,
    total: str = TOTAL,
    least: float | None = None,
    whole: bool | None = None,
    threshold: int | None = None,
    protection: float = 0.0,
    seconds: float = 600.0,
) -> TableAudit:
    """What readers of published tables can work out of the figures that are withheld.

    Args:
        published: tables of figures of the same people, in long form: releases of ``tabulate``,
            frames, or files. A missing figure (or a mark such as x) is withheld.
        by: the columns of categories; default: all that the tables have but figures.
        value: the column of figures; default: the only numeric one.
        parts: column to labels with their parts, such as ``{"place": {"west": ["a", "b"]}}``, or
            the path of a TOML or JSON file of it. A label may have several lists of parts. Labels
            without a whole are parts of the total.
        total: the label of totals; a table that lacks a column stands at its total.
        least: the least that a withheld figure can be: 0 by default, or 1 where all empty cells
            are published (as releases of ``tabulate`` do); where a published figure is below 0,
            or with ``-inf``, there is no least, of cells that no table shows either.
        whole: whether figures are whole numbers; default: whether all that are published are.
        threshold: also find cells of which readers can tell that they hold fewer people, but some.
        protection: also find cells whose interval is at most this share of its upper end wide.
        seconds: for the whole numbers of all cells; beyond it linear bounds stand.

    Raises:
        InputError: figures do not add up, or tables contradict each other.

    Example:
        >>> import halfmask as hm
        >>> found = hm.audit_table({"sex": ["f", "m", "Total"], "count": [None, 7, 9]})
        >>> found.disclosed[0].low, found.disclosed[0].high
        (2.0, 2.0)
    """
    _require_audit(published, threshold, protection)
    read = [_read(one, by, value, total) for one in published]
    grid = CellGrid(_axes(read, _parts(parts, published), total))
    values, shown = _merge_tables(read, grid, total)
    least = _least_figure(published, values, least)
    known = values[np.isfinite(values)]
    counts = bool((known == np.round(known)).all()) if whole is None else whole
    unknown = int(np.isnan(values).sum())
    if unknown > MOST:
        raise ParameterError(
            "cells", unknown, f"at most {MOST:,} without a figure: audit fewer columns at a time"
        )
    # A cell that no table shows may be empty, or below 0 where others are.
    view = ReaderView.of(grid, values, least=0.0 if least >= 0 else -np.inf, whole=counts)
    low = np.where(shown & np.isnan(values), least, view.low)
    view = ReaderView(grid, low, view.high, counts)
    found = find_intervals(view, seconds=seconds)
    rule = threshold, protection
    intervals = tuple(
        CellInterval(
            cell,
            None if np.isinf(a) else float(a),
            None if np.isinf(b) else float(b),
            bool(seen),
            _finding(float(a), float(b), rule, shown=bool(seen), whole=counts),
            bool(sure),
        )
        for cell, seen, a, b, sure in zip(
            _name_cells(grid, found.cells),
            shown[found.cells],
            found.low,
            found.high,
            found.proven,
            strict=True,
        )
    )
    small: tuple[Mapping[str, str], ...] = ()
    if threshold is not None and counts:
        few = np.flatnonzero(shown & (values > 0) & (values < threshold))
        small = tuple(_name_cells(grid, few))
    withheld = int((shown & np.isnan(values)).sum())
    return TableAudit(grid.size, withheld, small, intervals, len(published))


def _require_audit(published: Sequence[object], threshold: int | None, protection: float) -> None:
    """Refuse what cannot be audited."""
    if not published:
        raise ParameterError("published", 0, "at least one table")
    if not 0 <= protection < 1:
        raise ParameterError("protection", protection, "a share from 0 to below 1")
    if threshold is not None and threshold < 1:
        raise ParameterError("threshold", threshold, "at least 1")


def _least_figure(
    published: Sequence[object], values: NDArray[np.float64], least: float | None
) -> float:
    """The least that a reader takes a withheld figure to be."""
    if least is None:
        # Where all empty cells are published, a withheld one has somebody: readers know that.
        ours = [one for one in published if isinstance(one, TableRelease)]
        least = 1.0 if len(ours) == len(published) and all(_all_shown(one) for one in ours) else 0.0
        least = -np.inf if (values < 0).any() else least
    if np.isnan(least) or least == np.inf:
        raise ParameterError("least", least, "a number, or -inf where there is no least")
    return least


def _finding(
    low: float, high: float, rule: tuple[int | None, float], *, shown: bool, whole: bool
) -> str:
    """What an interval means: of a cell that nobody withheld only that it holds few people."""
    threshold, protection = rule
    few = threshold is not None and whole and low >= 0 and 0 < high < threshold
    near = 0.0 if whole or not np.isfinite(high) else 1e-6 * max(1.0, abs(high))
    if high - low <= near:
        return "exact" if shown else "few" if few else "derived"
    if few:
        return "few"
    if shown and np.isfinite(high) and protection and high - low <= protection * abs(high):
        return "close"
    return "safe"


def _all_shown(release: TableRelease) -> bool:
    """Whether every empty cell of a release of counts is published."""
    counts = release.method == "suppress" and release.parameters["sum"] is None
    return counts and release.statement["empty_cells"] == "published"


def _name_cells(grid: CellGrid, cells: NDArray[np.int64]) -> list[dict[str, str]]:
    columns = {name: labels.to_pylist() for name, labels in grid.labels(cells).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Figures:
    rows: pa.Table
    by: tuple[str, ...]
    values: Numbers


def _read(given: object, by: str | Sequence[str] | None, value: str | None, total: str) -> _Figures:
    """One published table: labels as text, and figures with NaN where one is withheld."""
    if isinstance(given, TableRelease):
        rows, by, value = given.to_arrow(), given.by, given.value
    else:
        rows = _frame(given)
    names = [name for name in rows.column_names if name != "withheld"]
    figure = value or _figure(rows, names, by)
    if figure not in names:
        raise SchemaError(
            f"The column of figures '{figure}' is not there: there are {quote_names(names)}."
        )
    listed = [by] if isinstance(by, str) else list(by) if by is not None else names
    columns = tuple(name for name in listed if name in names and name != figure)
    if by is not None and not columns:
        raise SchemaError(
            f"None of the columns {quote_names(listed)} is there: there are {quote_names(names)}."
        )
    if not columns:
        raise SchemaError("A table of figures needs a column of categories: there is none.")
    labels = {name: _labels(rows[name]) for name in columns}
    table = pa.table(labels)
    twice = table.num_rows - table.group_by(list(columns)).aggregate([]).num_rows
    if twice:
        raise InputError(
            f"{twice} line(s) of a table name a cell that another line names: give long tables "
            "with one line per cell, and name all columns of categories (by)."
        )
    del total
    return _Figures(table, columns, _figures(rows[figure], figure))


def _column(values: Any) -> Any:
    """Values as a column; figures with marks among them as texts, as a file has them."""
    if not isinstance(values, list | tuple):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if one is None else str(one) for one in values])


def _frame(given: object) -> pa.Table:
    if isinstance(given, str | Path):
        return raw_rows(Path(given))[0]
    if isinstance(given, Mapping):
        return pa.table({name: _column(values) for name, values in given.items()})
    return raw_rows(given)[0]


def _figure(rows: pa.Table, names: list[str], by: str | Sequence[str] | None) -> str:
    listed = {by} if isinstance(by, str) else set(by or ())
    numeric = [n for n in names if n not in listed and _mostly_numbers(rows[n])]
    if len(numeric) != 1:
        raise SchemaError(
            f"Which column holds the figures? {quote_names(numeric) if numeric else 'None'} could: "
            "name one (value, --value), or the columns of categories (by, --by)."
        )
    return numeric[0]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _mostly_numbers(column: pa.ChunkedArray) -> bool:
    plain = _plain(column)
    if is_number(plain.type):
        return True
    if not (pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type)):
        return bool(pa.types.is_null(plain.type))
    texts = [text for text in plain.to_pylist() if text is not None and text.strip() not in _MARKS]
    return bool(texts) and all(_number(text) is not None for text in texts)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if np.isfinite(found) else None


def _labels(column: pa.ChunkedArray) -> pa.Array:
    from halfmask.table.hierarchy import canonical

    plain = _plain(column)
    return pa.array(
        [MISSING if x is None else canonical(x) for x in plain.to_pylist()], pa.string()
    )


def _figures(column: pa.ChunkedArray, name: str) -> Numbers:
    plain = _plain(column)
    if is_number(plain.type):
        found = pc.fill_null(plain.cast(pa.float64(), safe=False), float("nan"))
        return np.asarray(found.to_numpy(), dtype=np.float64).copy()
    texts = [None if x is None else str(x).strip() for x in plain.to_pylist()]
    odd = sum(t is not None and t not in _MARKS and _number(t) is None for t in texts)
    if odd:
        raise SchemaError(
            f"Column '{name}' has {odd} figure(s) that are neither numbers nor marks of withheld "
            f"ones: leave those empty, or write {MARK}."
        )
    return np.array([np.nan if t is None or t in _MARKS else float(t) for t in texts])


def _parts(given: object, published: Sequence[object]) -> dict[str, dict[str, Any]]:
    """Column to labels with their parts, from what was given and from releases themselves."""
    if isinstance(given, str | Path):
        given = _parts_file(Path(given))
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError("parts", "(given)", "a mapping, or the path of a TOML or JSON file")
    found: dict[str, dict[str, Any]] = {}
    for one in published:
        if isinstance(one, TableRelease):
            for axis in one.grid.axes:
                found.setdefault(axis.column, {}).update(axis.to_dict()["parts"])
    for column, wholes in (given or {}).items():
        if not isinstance(wholes, Mapping):
            raise InputError(f"The parts of column '{column}' are no table: label = [parts].")
        found.setdefault(str(column), {}).update(wholes)
    return found


def _parts_file(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeDecodeError, ValueError):
        raise InputError(f"The parts in '{path.name}' cannot be read: give TOML or JSON.") from None
    if isinstance(found, dict) and "axes" in found:  # the report of a release
        return {axis["column"]: axis["parts"] for axis in found["axes"]}
    if not isinstance(found, dict):
        raise InputError(f"The parts in '{path.name}' are no table: column, then label = [parts].")
    return found


def _axes(read: list[_Figures], parts: dict[str, dict[str, Any]], total: str) -> tuple[Axis, ...]:
    """One axis per column of any table; what has no whole is a part of the total."""
    columns = list(dict.fromkeys(name for one in read for name in one.by))
    unknown = [name for name in parts if name not in columns]
    if unknown:
        raise SchemaError(
            f"Parts are given of columns that no table has: {quote_names(unknown)}; there are "
            f"{quote_names(columns)}."
        )
    found = []
    for name in columns:
        seen = dict.fromkeys(
            label for one in read if name in one.by for label in one.rows[name].to_pylist()
        )
        own = dict(parts.get(name, {}))
        everywhere = all(name in one.by for one in read)
        if (total in seen or not everywhere) and total not in own:
            listed = tree_axis(name, list(seen), own)
            below = {listed.labels[i] for _, inside in listed.sums for i in inside}
            tops = [label for label in listed.labels if label not in below and label != total]
            own[total] = tops
        found.append(tree_axis(name, list(seen), own))
    return tuple(found)


def _merge_tables(
    read: list[_Figures], grid: CellGrid, total: str
) -> tuple[Numbers, NDArray[np.bool_]]:
    """The figures of all tables as one, and which cells any of them has a line for."""
    values = np.full(grid.size, np.nan)
    shown = np.zeros(grid.size, dtype=bool)
    apart = 0
    for one in read:
        rows = one.rows
        for axis in grid.axes:
            if axis.column not in one.by:
                rows = rows.append_column(
                    axis.column, pa.array([total] * rows.num_rows, pa.string())
                )
        cells = grid.number(rows)
        known = np.isfinite(one.values)
        here = cells[known]
        both = np.isfinite(values[here])
        gap = np.abs(values[here] - one.values[known])
        apart += int((both & (gap > 1e-6 * np.maximum(1.0, np.abs(one.values[known])))).sum())
        values[here] = one.values[known]
        shown[cells] = True
    if apart:
        raise InputError(
            f"{apart} figure(s) of the same cell differ between the tables: they are not of the "
            "same people, or were rounded or perturbed; audit exact tables together."
        )
    return values, shown
