"""A recoding as one SQL statement that a database runs on its own copy of the table.

The statement joins each column with its value mapping, finds the first step whose published
classes hold the row, and gives the labels of that step; other rows do not come out. Labels are
compared as numbers, so that the missing value matches itself and joins stay hash joins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.errors import ParameterError
from halfmask.release.dialects import DIALECTS
from halfmask.release.leaving import leaving
from halfmask.release.recoding import label_texts, reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.release.dialects import Dialect
    from halfmask.release.recoding import Label, Recoding, Step
    from halfmask.table.table import Table


def statement(recoding: Recoding, table: Table, *, name: str, dialect: str) -> str:
    """The statement for ``dialect``; it publishes what a release of ``table`` publishes."""
    if dialect not in DIALECTS:
        raise ParameterError("dialect", dialect, f"one of {', '.join(sorted(DIALECTS))}")
    writer = DIALECTS[dialect]
    names = leaving(table)
    bound = recoding.bind(table)
    mappings = [
        _Mapping.of(recoding, bound, column, position)
        for position, column in enumerate(recoding.columns)
    ]
    parts = [mapping.cte(writer) for mapping in mappings if mapping.present]
    parts += [_classes(step, i, mappings) for i, step in enumerate(recoding.steps) if step.classes]
    parts.append(_coded(mappings, names, name, writer))
    parts.append(_placed(recoding.steps, mappings))
    by_name = {mapping.column: mapping for mapping in mappings}
    cells = [
        f"  {_published(recoding.steps, by_name.get(column), position)} AS {writer.name(column)}"
        for position, column in enumerate(names)
    ]
    rows = ",\n".join(cells)
    ctes = ",\n".join(parts)
    return f"WITH {ctes}\nSELECT\n{rows}\nFROM hm_placed\nWHERE step IS NOT NULL"


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
            [writer.value(value, values.type, self.column)]
            + [
                cell
                for texts, numbers in self.levels.values()
                for cell in (str(numbers[texts[i]]), writer.text(texts[i]))
            ]
            for i, value in enumerate(values.to_pylist())
            if value is not None and self.known[i]
        ]
        head = ["v", *(f"{kind}{level}" for level in self.levels for kind in "kt")]
        return _values(f"hm_map_{self.position}", head, rows)

    def coded(self, writer: Dialect) -> list[str]:
        """Per level, the number and the text of a row's label; NULL for an unknown value."""
        cell = f"hm_rows.{writer.name(self.column)}"
        missing = len(self.table.encode(self.column).values) - 1
        has_missing = bool(self.table.encode(self.column).values.null_count)
        out = []
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


def _classes(step: Step, index: int, mappings: Sequence[_Mapping]) -> str:
    """The published classes of one step, as label numbers; labels without a value are left out."""
    found = []
    for one in step.classes or ():
        numbers = [
            m.levels[step.levels[m.column]][1].get(label)
            for m, label in zip(mappings, one, strict=True)
        ]
        if None not in numbers:
            found.append([str(number) for number in numbers])
    head = [f"k{m.position}" for m in mappings]
    return _values(f"hm_step_{index}", head, found or [["-1"] * len(head)])


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


def _placed(steps: Sequence[Step], mappings: Sequence[_Mapping]) -> str:
    cases, joins = [], []
    for index, step in enumerate(steps):
        keys = {m.position: f"hm_coded.k{m.position}_{step.levels[m.column]}" for m in mappings}
        if step.classes is None:
            known = " AND ".join(f"{key} IS NOT NULL" for key in keys.values())
            cases.append(f"WHEN {known} THEN {index}")
        elif step.classes:
            same = " AND ".join(f"{key} = s{index}.k{i}" for i, key in keys.items())
            joins.append(f"  LEFT JOIN hm_step_{index} s{index} ON {same}")
            cases.append(f"WHEN s{index}.k0 IS NOT NULL THEN {index}")
    case = " ".join(cases)
    return "\n".join(
        [
            f"hm_placed AS (\n  SELECT hm_coded.*, CASE {case} END AS step",
            "  FROM hm_coded",
            *joins,
            ")",
        ]
    )


def _published(steps: Sequence[Step], mapping: _Mapping | None, position: int) -> str:
    if mapping is None or mapping.typed:
        return f"c{position}"
    cases = " ".join(
        f"WHEN {i} THEN t{mapping.position}_{step.levels[mapping.column]}"
        for i, step in enumerate(steps)
    )
    return f"CASE step {cases} END"
