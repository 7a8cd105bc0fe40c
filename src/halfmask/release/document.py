"""What is told of a release: plain values, versions, and what became of each column."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import ParameterError
from halfmask.table.document import Result
from halfmask.table.hierarchy import TOP
from halfmask.table.tuples import all_ones

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from halfmask.metrics.risk.reidentification import Reidentification
    from halfmask.models.verdict import Verdict
    from halfmask.release.partition import PublishedColumns
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples

AS_IT_WAS = "kept as it was"
PSEUDONYMS = "replaced by pseudonyms: not anonymous"


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Released rows as JSON knows them: moments as text, and null for infinite numbers."""
    text = json.dumps([_finite(row) for row in rows.to_pylist()], default=str)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def risk_figures(risk: Reidentification) -> dict[str, Any]:
    """The risk in the classes of a release, under the names that every verb gives it."""
    return {
        "smallest": risk.smallest,
        "highest_risk": risk.prosecutor,
        "mean_risk": risk.marketer,
    }


_ABOUT = ("title", "by", "original", "file", "command")


def certificate_facts(**about: Any) -> dict[str, Any]:
    """What a certificate says of the act of releasing: when, who, which files, by which command.

    Of the released file it tells the hash. The original is named and no more: by its hash whoever
    knows all rows but one could try out the last.
    """
    wrong = sorted(set(about) - set(_ABOUT))
    if wrong:
        raise ParameterError(wrong[0], about[wrong[0]], f"one of {', '.join(_ABOUT)}")
    facts: dict[str, Any] = {"date": datetime.date.today().isoformat(), **about}
    if facts.get("file") is not None:
        path = Path(facts["file"])
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        facts["file"] = {"name": path.name, "sha256": digest}
    return {name: value for name, value in facts.items() if value is not None}


FEW = 10  # people; what fewer demand is not told, and others are counted in steps of as many


def published_verdict(verdict: Verdict, *, personal: bool) -> dict[str, Any]:
    """A verdict as a released document says it.

    A personal one tells nobody's highest demand. By demand it lists what many people ask for, and
    about how many: neither a demand that few state nor one person more or less can be read off.
    """
    found = verdict.to_dict()
    if not personal:
        return found
    levels = [
        {**one, "people": round(one["people"] / FEW) * FEW}
        for one in found["demands"]
        if one["people"] >= FEW
    ]
    return found | {"required": None, "achieved": None, "demands": levels}


def versions() -> dict[str, str]:
    """The programs that a release depends on, without importing them."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("halfmask", "numpy", "pyarrow", "numba"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, slots=True)
class ColumnChange(Result):
    """What became of one column of the original table.

    Attributes:
        name: the column.
        role: its role, or ``"person"`` or ``"policy"``.
        action: what was done, in words.
        published: whether it leaves at all.
        level: the level that all its rows got, else None.
        height: the coarsest level of its hierarchy, for quasi-identifiers.
        before: how many distinct values it had in the rows that leave: one more would tell of a row
            that does not. None where that is not known: tuples were counted at a coarser level.
        after: how many distinct values or labels are published.
        loss: the column's loss, for quasi-identifiers.
        cells: how many rows got each level, for quasi-identifiers; height + 1 is a suppressed cell.
        steps: what values become at each level of the hierarchy, in words.
    """

    name: str
    role: str
    action: str
    published: bool
    level: int | None = None
    height: int | None = None
    before: int | None = None
    after: int | None = None
    loss: float | None = None
    cells: Mapping[int, int] = field(default_factory=dict)
    steps: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain values."""
        cells = [{"level": level, "rows": rows} for level, rows in self.cells.items()]
        return Result.to_dict(self) | {"cells": cells}


def column_changes(
    table: Table, published: pa.Table, found: PublishedColumns
) -> tuple[ColumnChange, ...]:
    """Describe every column of ``table`` in its order."""
    return tuple(
        _quasi_change(table, published, found, name)
        if name in found.cells
        else other_change(table, published, name)
        for name in table.arrow.column_names
    )


def counted_changes(
    source: Table,
    entries: Tuples,
    labels: pa.Table,
    found: PublishedColumns,
    distinct: Mapping[str, int],
) -> tuple[ColumnChange, ...]:
    """Describe every column of a table whose rows stay elsewhere.

    Args:
        source: the table.
        entries: what stands for its rows.
        labels: what the entries publish that leave.
        found: what was counted of them.
        distinct: per other column that leaves, how many values the written rows hold.
    """

    def change(name: str) -> ColumnChange:
        if name not in found.cells:
            return counted_change(source.schema, name, distinct.get(name))
        told = _quasi_change(entries.table, labels, found, name)
        # Of a column that was counted at a coarser level nobody knows how many values it holds.
        return replace(told, before=None) if name in entries.floors else told

    return tuple(change(name) for name in source.column_names)


def _quasi_change(
    table: Table, published: pa.Table, found: PublishedColumns, name: str
) -> ColumnChange:
    cells, loss = found.cells[name], float(found.losses[name])
    if cells.levels:
        labels = _count_labels(published[name], found.counts)
        level = next(iter(cells.levels)) if len(cells.levels) == 1 else None
        action = _action(table, name, cells.levels, labels)
    else:
        labels = _count_labels(published[name])
        level = None if loss else 0
        what = "values" if name in found.sets else "range"
        action = f"the {what} of each class{_example(labels)}" if loss else AS_IT_WAS
    return ColumnChange(
        name=name,
        role="quasi",
        action=action,
        published=True,
        level=level,
        height=table.hierarchy(name).height,
        before=len(cells.values),
        after=len(labels),
        loss=loss,
        cells=cells.levels,
        steps=_steps(table, name),
    )


def _steps(table: Table, name: str) -> tuple[str, ...]:
    """The hierarchy of a column in words, finest first."""
    return tuple(
        level_words(table, name, one) for one in range(1, table.hierarchy(name).height + 1)
    )


def _action(
    table: Table, name: str, cells: Mapping[int, int], labels: pa.Table | pa.StructArray
) -> str:
    """What was done to a column, in words, with a label that is published."""
    height = table.hierarchy(name).height
    if len(cells) > 1:
        shown = sorted(level for level in cells if level <= height)
        ends = dict.fromkeys(level_words(table, name, level) for level in (shown[0], shown[-1]))
        gone = cells.get(height + 1, 0)
        words = f"row by row: {' to '.join(ends)}{_example(labels)}"
        return f"{words}; {gone:,} cells suppressed" if gone else words
    level = next(iter(cells))
    if level == 0:
        return AS_IT_WAS
    if level > height:
        return "suppressed in every row"
    return f"{level_words(table, name, level)}{_example(labels)}"


_IN_YEARS = ("age", "alter", "edad", "âge", "età", "idade", "leeftijd")


def level_words(table: Table, name: str, level: int) -> str:
    """What values become at a level of a column's hierarchy, in words.

    Example:
        >>> import halfmask as hm
        >>> schema = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}}}
        >>> level_words(hm.read({"age": [31, 38]}, schema={"columns": schema}), "age", 2)
        '10-year groups'
    """
    hierarchy = table.hierarchy(name)
    if level == 0:
        return AS_IT_WAS
    if len(hierarchy.labels[level]) == 1 and level == hierarchy.height:
        return "nothing left"
    column = table.schema.columns.get(name)
    builder = None if column is None else column.hierarchy
    stated = builder.to_dict() if builder is not None else {}
    kind, value = next(iter(stated.items())) if isinstance(stated, dict) else ("", None)
    told = _LEVEL_WORDS.get(kind)
    said = "" if told is None else told(value, level, hierarchy.height, name)
    return said or f"groups of step {level} of {hierarchy.height}"


def _interval_words(value: Any, level: int, height: int, name: str) -> str:  # noqa: ARG001
    widths = value.get("widths", ()) if isinstance(value, dict) else value
    if level > len(widths):
        return ""
    width = f"{widths[level - 1]:,g}"
    return f"{width}-year groups" if name.lower() in _IN_YEARS else f"groups of {width}"


def _mask_words(value: Any, level: int, height: int, name: str) -> str:  # noqa: ARG001
    side = "last" if isinstance(value, dict) and value.get("from") == "left" else "first"
    return f"the {side} {height - level} of {height} characters"


def _date_words(value: Any, level: int, height: int, name: str) -> str:  # noqa: ARG001
    names = list(value["levels"] if isinstance(value, dict) else value)
    names = names[len(names) - (height - 1) :] if len(names) >= height else names
    return f"the {names[level - 1]}" if level <= len(names) else ""


def _ordered_words(value: Any, level: int, height: int, name: str) -> str:  # noqa: ARG001
    groups = value.get("groups", ()) if isinstance(value, dict) else ()
    sized = level <= len(groups) and isinstance(groups[level - 1], int)
    return f"groups of {groups[level - 1]} neighbors" if sized else ""


_LEVEL_WORDS: Mapping[str, Callable[[Any, int, int, str], str]] = {
    "intervals": _interval_words,
    "mask": _mask_words,
    "dates": _date_words,
    "ordered": _ordered_words,
}


def _count_labels(
    column: pa.ChunkedArray, held: NDArray[np.int64] | None = None
) -> pa.Table | pa.StructArray:
    """The labels that are published, the missing one among them, and how many rows hold each."""
    if held is None or all_ones(held):
        return pc.value_counts(column)
    plain = column.cast(pa.string()) if _is_texts(column) else column
    rows = pa.table({"values": plain, "rows": held}).group_by("values")
    return rows.aggregate([("rows", "sum")]).rename_columns(["values", "counts"])


def _example(labels: pa.Table | pa.StructArray) -> str:
    """A label that many published rows hold, of those that tell something."""
    told = [
        (-one["counts"], str(one["values"]))
        for one in labels.to_pylist()
        if one["values"] is not None and str(one["values"]) != TOP
    ]
    return f", e.g. {min(told)[1]}" if told else ""


def _is_texts(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def other_change(table: Table, published: pa.Table, name: str) -> ColumnChange:
    """What became of a column that is no quasi-identifier."""
    if name == table.schema.person and name in published.column_names:
        count = len(pc.unique(published[name]))
        return ColumnChange(name, "person", PSEUDONYMS, published=True, before=count, after=count)
    shown = name in published.column_names
    return counted_change(table.schema, name, _distinct(published[name]) if shown else None)


def counted_change(schema: Schema, name: str, values: int | None) -> ColumnChange:
    """The same where rows stay elsewhere, and ``values`` says how many the column holds there."""
    if name in schema.policy_names:
        return ColumnChange(name, "policy", "removed: a person's own demand", published=False)
    if name == schema.person:
        return ColumnChange(name, "person", "removed: it says whose row it is", published=False)
    if name == schema.household:
        said = "removed: it says which rows are of one household"
        return ColumnChange(name, "household", said, published=False)
    if name not in schema.columns:
        return ColumnChange(name, "weight", "removed: a sampling weight", published=False)
    role = schema.columns[name].role
    if role == "identifier":
        return ColumnChange(name, role, "removed: it names a person", published=False)
    if role == "drop":
        return ColumnChange(name, role, "removed, as the schema says", published=False)
    return ColumnChange(name, role, AS_IT_WAS, published=True, before=values, after=values)


def _distinct(column: pa.ChunkedArray) -> int | None:
    if pa.types.is_nested(column.type):
        return None
    return len(pc.unique(column))
