"""A recoding as one SQL statement that a database runs on its own copy of the table.

The statement joins each column with its value mapping, finds the first step whose published
classes hold the row, and gives the labels of that step; other rows do not come out. Labels are
compared as numbers, so that the missing value matches itself and joins stay hash joins.
"""

# ruff: noqa: S608 - writing SQL is what this file is for; dialects.py quotes names and values

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.errors import ParameterError
from halfmask.release.dialects import DIALECTS
from halfmask.release.labels import label_texts
from halfmask.release.leaving import leaving
from halfmask.release.recoding import reachable
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.release.dialects import Dialect
    from halfmask.release.labels import Label
    from halfmask.release.recoding import Recoding, Step
    from halfmask.table.table import Table


def statement(recoding: Recoding, table: Table, *, name: str, dialect: str) -> str:
    """The statement for ``dialect``; it publishes what a release of ``table`` publishes."""
    if dialect not in DIALECTS:
        raise ParameterError("dialect", dialect, f"one of {', '.join(sorted(DIALECTS))}")
    writer = DIALECTS[dialect]
    names = leaving(require_table(table))
    bound = recoding.bind(table)
    mappings = [
        _Mapping.of(recoding, bound, column, position)
        for position, column in enumerate(recoding.columns)
    ]
    parts = [mapping.cte(writer) for mapping in mappings if mapping.present]
    listed = _step_tables(recoding.steps, mappings)
    parts += [*listed, _coded(mappings, names, name, writer)]
    parts += _found(recoding.steps, mappings, listed=bool(listed))
    by_name = {mapping.column: mapping for mapping in mappings}
    rows = ",\n".join(
        f"  {_published(recoding.steps, by_name.get(column), position)} AS {writer.name(column)}"
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
        known = reachable(recoding, table, column).tolist()
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

    def cte(self, writer: Dialect) -> str:
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
        return _values(f"hm_map_{self.position}", head, rows)

    def coded(self, writer: Dialect) -> list[str]:
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

    def join(self, writer: Dialect) -> str:
        own = f"hm_rows.{writer.name(self.column)} = m{self.position}.v"
        return f"  LEFT JOIN hm_map_{self.position} m{self.position} ON {own}"


def _values(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ",\n".join("  (" + ", ".join(row) + ")" for row in rows)
    return f"{name}({', '.join(head)}) AS (VALUES\n{lines}\n)"


def _step_tables(steps: Sequence[Step], mappings: Sequence[_Mapping]) -> list[str]:
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
        _values("hm_levels", ["step", *(f"l{m.position}" for m in mappings)], levels),
        _values("hm_classes", ["step", *(f"k{m.position}" for m in mappings)], classes),
    ]


def _coded(
    mappings: Sequence[_Mapping], names: Sequence[str], table_name: str, writer: Dialect
) -> str:
    source = ".".join(writer.name(part) for part in table_name.split("."))
    cells = [f"hm_rows.{writer.name(name)} AS c{i}" for i, name in enumerate(names)]
    cells += [cell for mapping in mappings for cell in mapping.coded(writer)]
    joins = [mapping.join(writer) for mapping in mappings if mapping.present]
    select = ",\n    ".join(cells)
    return "\n".join(
        [f"hm_coded AS (\n  SELECT\n    {select}", f"  FROM {source} hm_rows", *joins, ")"]
    )


def _found(steps: Sequence[Step], mappings: Sequence[_Mapping], *, listed: bool) -> list[str]:
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


def _published(steps: Sequence[Step], mapping: _Mapping | None, position: int) -> str:
    if mapping is None or mapping.typed:
        return f"r.c{position}"
    cases = []
    for level in mapping.levels:
        which = [str(i) for i, step in enumerate(steps) if step.levels[mapping.column] == level]
        cases.append(f"WHEN f.step IN ({', '.join(which)}) THEN r.t{mapping.position}_{level}")
    return f"CASE {' '.join(cases)} END"
