"""A recoding for others: as CSV files of values and labels, and as one SQL statement.

The files and the statement name original values: they are for whoever holds the table.
"""

# ruff: noqa: S608 - writing SQL is what this file is for; a dialect quotes names and values
from __future__ import annotations

import datetime
import decimal
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError
from halfmask.release.files import write_table
from halfmask.release.labels import encode_labels
from halfmask.release.partition import label_texts
from halfmask.release.seal import published_columns
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.release.labels import Label
    from halfmask.release.recoding import Recoding, RecodingStep
    from halfmask.table.table import Table

_LONGEST = 160  # bytes; file systems take 255, of which a temporary name needs some


def write_mappings(recoding: Recoding, table: Table, folder: str | PathLike[str]) -> list[str]:
    """Write the mappings into ``folder`` (made if need be) and return the paths.

    Every column gets ``<column>.csv`` with ``value`` and ``label``, or, where rows differ, one
    ``level n`` for each level in use. ``classes.csv`` lists the published classes by step and
    ``steps.csv`` the levels of each step, where there are any.
    """
    bound = recoding.bind(table)
    home = Path(folder)
    try:
        home.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {str(home)!r} cannot be made: {error.strerror}.") from error
    files = {
        name: _values(recoding, bound, column)
        for name, column in zip(_names(recoding), recoding.columns, strict=True)
    }
    if not recoding.full_domain:
        files["steps"] = _steps(recoding)
    if any(step.classes is not None for step in recoding.steps):
        files["classes"] = _classes(recoding)
    paths = []
    for name, rows in files.items():
        path = home / f"{name}.csv"
        write_table(rows, path)
        paths.append(str(path))
    return paths


def _names(recoding: Recoding) -> list[str]:
    """One safe file name per column, none of them taken twice."""
    taken = {"steps", "classes"}
    names = []
    for column in recoding.columns:
        safe = re.sub(r"[^\w.-]+", "_", column).encode()[:_LONGEST].decode(errors="ignore")
        name = base = safe.strip(".") or "column"
        number = 2
        while name.lower() in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names


def _values(recoding: Recoding, table: Table, name: str) -> pa.Table:
    known = reachable_values(recoding, table, name)
    columns = {"value": encode_labels(table.encode(name).values).filter(pa.array(known))}
    for level in sorted({step.levels[name] for step in recoding.steps}):
        level_map, labels = label_texts(table, name, level)
        head = "label" if recoding.full_domain else f"level {level}"
        columns[head] = pa.array(labels, type=pa.string()).take(pa.array(level_map[known]))
    return pa.table(columns)


def _steps(recoding: Recoding) -> pa.Table:
    columns = {name: [step.levels[name] for step in recoding.steps] for name in recoding.columns}
    return pa.table([list(range(len(recoding.steps))), *columns.values()], names=["step", *columns])


def _classes(recoding: Recoding) -> pa.Table:
    listed = [(i, c) for i, step in enumerate(recoding.steps) for c in step.classes or ()]
    labels = [
        pa.array([one[position] for _, one in listed], type=pa.string())
        for position in range(len(recoding.columns))
    ]
    steps = pa.array([index for index, _ in listed], type=pa.int32())
    return pa.table([steps, *labels], names=["step", *recoding.columns])


def reachable_values(recoding: Recoding, table: Table, name: str) -> NDArray[np.bool_]:
    """Which values of a column have a label in some published class."""
    position = list(recoding.columns).index(name)
    found = np.zeros(len(table.encode(name).values), dtype=np.bool_)
    for step in recoding.steps:
        if step.classes is None:
            return np.ones_like(found)
        level_map, labels = label_texts(table, name, step.levels[name])
        listed = {one[position] for one in step.classes}
        found |= np.array([label in listed for label in labels], dtype=np.bool_)[level_map]
    return found


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """One engine's way of quoting.

    Attributes:
        quote: the character around names; doubled inside them.
        escapes: what characters inside a text become.
        double: the type of 64-bit floating-point numbers.
        single: the type of 32-bit ones.
        instant: the type of a moment with a time zone.
    """

    quote: str
    escapes: Mapping[str, str]
    double: str
    single: str
    instant: str

    def name(self, name: str) -> str:
        """A column's or table's name."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def text(self, text: str | None) -> str:
        """A text, or NULL."""
        if text is None:
            return "NULL"
        return "'" + "".join(self.escapes.get(c, c) for c in text) + "'"

    def value(self, value: object, kind: pa.DataType, column: str) -> str:
        """A value of a column as a literal of the column's type."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, float):
            number = "NaN" if value != value else repr(value)
            number = number.replace("inf", "Infinity")
            return (
                f"CAST('{number}' AS {self.single if pa.types.is_float32(kind) else self.double})"
            )
        if isinstance(value, int | decimal.Decimal):
            return str(value)
        if isinstance(value, datetime.datetime):
            word = "TIMESTAMP" if value.tzinfo is None else self.instant
            return f"{word} '{value.isoformat(sep=' ')}'"
        if isinstance(value, datetime.date):
            return f"DATE '{value.isoformat()}'"
        raise InputError(f"Column {column!r}: SQL export knows no literal for {kind}.")


_STANDARD = {"'": "''"}
# Spark reads a backslash as an escape, and 'a''b' as two texts side by side.
_SPARK = {"'": "\\'", "\\": "\\\\"}

DIALECTS: dict[str, SqlDialect] = {
    "duckdb": SqlDialect('"', _STANDARD, "DOUBLE", "REAL", "TIMESTAMPTZ"),
    "postgres": SqlDialect('"', _STANDARD, "DOUBLE PRECISION", "REAL", "TIMESTAMPTZ"),
    "spark": SqlDialect("`", _SPARK, "DOUBLE", "FLOAT", "TIMESTAMP"),
}


def sql_statement(recoding: Recoding, table: Table, *, name: str, dialect: str) -> str:
    """The statement for ``dialect``; it publishes what a release of ``table`` publishes.

    It joins each column with its value mapping, finds the first step whose published classes hold
    the row, and gives the labels of that step; other rows do not come out. Labels are compared as
    numbers, so that the missing value matches itself and joins stay hash joins.
    """
    if dialect not in DIALECTS:
        raise ParameterError("dialect", dialect, f"one of {', '.join(sorted(DIALECTS))}")
    writer, steps = DIALECTS[dialect], recoding.steps
    table = require_table(table)
    names = published_columns(table)
    bound = recoding.bind(table)
    mappings = [
        _Mapping.of(recoding, bound, column, position)
        for position, column in enumerate(recoding.columns)
    ]
    parts = [mapping.cte(writer) for mapping in mappings if mapping.present]
    listed = _step_tables(steps, mappings)
    parts += [*listed, _row_codes(mappings, names, name, writer)]
    parts += _first_steps(steps, mappings, listed=bool(listed))
    by_name = {mapping.column: mapping for mapping in mappings}
    rows = ",\n".join(
        f"  {_label_cell(steps, by_name.get(column), position)} AS {writer.name(column)}"
        for position, column in enumerate(names)
    )
    ctes = ",\n".join(parts)
    same = " AND ".join(f"r.v{m.position} = f.v{m.position}" for m in mappings)
    return f"WITH {ctes}\nSELECT\n{rows}\nFROM hm_coded r\nJOIN hm_found f ON {same}"


@dataclass(frozen=True, slots=True)
class _Mapping:
    """One column's values with, per level in use, the number and the text of their labels."""

    table: Table
    column: str
    position: int
    levels: dict[int, tuple[list[Label], dict[Label, int]]]
    known: list[bool]

    @classmethod
    def of(cls, recoding: Recoding, table: Table, column: str, position: int) -> _Mapping:
        levels = {}
        for level in sorted({step.levels[column] for step in recoding.steps}):
            level_map, labels = label_texts(table, column, level)
            numbers: dict[Label, int] = {}
            for label in labels:
                numbers.setdefault(label, len(numbers))
            levels[level] = ([labels[code] for code in level_map], numbers)
        known = reachable_values(recoding, table, column).tolist()
        return cls(table, column, position, levels, known)

    @property
    def present(self) -> bool:
        """Whether published classes hold anything but the missing value."""
        missing = self.table.encode(self.column).values.is_null().to_pylist()
        return any(k and not gone for k, gone in zip(self.known, missing, strict=True))

    @property
    def typed(self) -> bool:
        """Whether the column is published as it is."""
        return list(self.levels) == [0]

    def cte(self, writer: SqlDialect) -> str:
        values = self.table.encode(self.column).values
        rows = [
            [writer.value(value, values.type, self.column), str(i)]
            + [
                cell
                for texts, numbers in self.levels.values()
                for cell in (str(numbers[texts[i]]), writer.text(texts[i]))
            ]
            for i, value in enumerate(values.to_pylist())
            if value is not None and self.known[i]
        ]
        head = ["v", "i", *(f"{kind}{level}" for level in self.levels for kind in "kt")]
        return _sql_values(f"hm_map_{self.position}", head, rows)

    def coded(self, writer: SqlDialect) -> list[str]:
        """A row's value as a number, and its labels; NULL for a value that no class holds."""
        cell = f"hm_rows.{writer.name(self.column)}"
        has_missing = bool(self.table.encode(self.column).values.null_count) and self.known[-1]
        missing = len(self.known) - 1
        found = f"m{self.position}.i" if self.present else "NULL"
        number = str(missing) if has_missing else "NULL"
        out = [f"CASE WHEN {cell} IS NULL THEN {number} ELSE {found} END AS v{self.position}"]
        for level, (texts, numbers) in self.levels.items():
            label = texts[missing] if has_missing else None
            number = str(numbers[label]) if has_missing else "NULL"
            for kind, literal in (("k", number), ("t", writer.text(label))):
                found = f"m{self.position}.{kind}{level}" if self.present else "NULL"
                case = f"CASE WHEN {cell} IS NULL THEN {literal} ELSE {found} END"
                out.append(f"{case} AS {kind}{self.position}_{level}")
        return out

    def join(self, writer: SqlDialect) -> str:
        own = f"hm_rows.{writer.name(self.column)} = m{self.position}.v"
        return f"  LEFT JOIN hm_map_{self.position} m{self.position} ON {own}"


def _sql_values(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ",\n".join("  (" + ", ".join(row) + ")" for row in rows)
    return f"{name}({', '.join(head)}) AS (VALUES\n{lines}\n)"


def _step_tables(steps: Sequence[RecodingStep], mappings: Sequence[_Mapping]) -> list[str]:
    """The levels and the published classes of all steps that list their classes."""
    levels, classes = [], []
    for index, step in enumerate(steps):
        used = [m.levels[step.levels[m.column]][1] for m in mappings]
        if step.classes:
            levels.append([str(index), *(str(step.levels[m.column]) for m in mappings)])
        for one in step.classes or ():
            numbers = [places.get(label) for places, label in zip(used, one, strict=True)]
            if None not in numbers:  # else a label that no value of this table has
                classes.append([str(index), *map(str, numbers)])
    if not classes:
        return []
    return [
        _sql_values("hm_levels", ["step", *(f"l{m.position}" for m in mappings)], levels),
        _sql_values("hm_classes", ["step", *(f"k{m.position}" for m in mappings)], classes),
    ]


def _row_codes(
    mappings: Sequence[_Mapping], names: Sequence[str], table_name: str, writer: SqlDialect
) -> str:
    source = ".".join(writer.name(part) for part in table_name.split("."))
    cells = [f"hm_rows.{writer.name(name)} AS c{i}" for i, name in enumerate(names)]
    cells += [cell for mapping in mappings for cell in mapping.coded(writer)]
    joins = [mapping.join(writer) for mapping in mappings if mapping.present]
    select = ",\n    ".join(cells)
    return "\n".join(
        [f"hm_coded AS (\n  SELECT\n    {select}", f"  FROM {source} hm_rows", *joins, ")"]
    )


def _first_steps(
    steps: Sequence[RecodingStep], mappings: Sequence[_Mapping], *, listed: bool
) -> list[str]:
    """The first step of each combination of values; combinations without one do not come out."""
    values = ", ".join(f"t.v{m.position}" for m in mappings)
    labels = [f"t.k{m.position}_{level}" for m in mappings for level in m.levels]
    known = " AND ".join(f"t.v{m.position} IS NOT NULL" for m in mappings)
    parts = [
        f"hm_tuples AS (\n  SELECT DISTINCT {values}, {', '.join(labels)}\n"
        f"  FROM hm_coded t\n  WHERE {known}\n)"
    ]
    ways = []
    if listed:
        keys = ",\n    ".join(_key(mapping) for mapping in mappings)
        parts.append(
            f"hm_tried AS (\n  SELECT {values}, l.step,\n    {keys}\n"
            "  FROM hm_tuples t CROSS JOIN hm_levels l\n)"
        )
        same = " AND ".join(f"t.k{m.position} = s.k{m.position}" for m in mappings)
        ways.append(
            f"  SELECT {values}, t.step FROM hm_tried t\n"
            f"  JOIN hm_classes s ON t.step = s.step AND {same}"
        )
    anything = next((i for i, step in enumerate(steps) if step.classes is None), len(steps))
    if anything < len(steps) or not listed:
        only = f" WHERE {anything} < {len(steps)}"
        ways.append(f"  SELECT {values}, {anything} AS step FROM hm_tuples t{only}")
    ways_text = "\n  UNION ALL\n".join(ways)
    parts.append(
        f"hm_found AS (\n  SELECT {values}, MIN(t.step) AS step FROM (\n{ways_text}\n  ) t\n"
        f"  GROUP BY {values}\n)"
    )
    return parts


def _key(mapping: _Mapping) -> str:
    """The number of a label at the level that a step wants."""
    position = mapping.position
    cases = " ".join(f"WHEN {level} THEN t.k{position}_{level}" for level in mapping.levels)
    return f"CASE l.l{position} {cases} END AS k{position}"


def _label_cell(steps: Sequence[RecodingStep], mapping: _Mapping | None, position: int) -> str:
    if mapping is None or mapping.typed:
        return f"r.c{position}"
    cases = []
    for level in mapping.levels:
        which = [str(i) for i, step in enumerate(steps) if step.levels[mapping.column] == level]
        cases.append(f"WHEN f.step IN ({', '.join(which)}) THEN r.t{mapping.position}_{level}")
    return f"CASE {' '.join(cases)} END"
