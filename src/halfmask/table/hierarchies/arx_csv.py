"""Hierarchies from files in ARX's format: one leaf a line, ``leaf;level 1;level 2;...``."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.errors import HierarchyError, InputError
from halfmask.table.files import text_file
from halfmask.table.hierarchies.tree import (
    Levels,
    assemble,
    check_top,
    options,
    present_values,
    with_top,
)
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy

_KEYS = ("path", "delimiter", "encoding", "top")


@dataclass(frozen=True, slots=True)
class Csv:
    """A file with one line per leaf: the value, then its label at each level. No header.

    The file may know more leaves than the table holds; they count in the loss. A line whose leaf
    is empty says how the missing value is generalized.

    Attributes:
        path: the file; a relative name refers to ``folder``.
        delimiter: what stands between the fields; ``None``: detected.
        encoding: the character encoding; ``None``: detected.
        top: the label of the root that is added where the file has none; False: leave it open.
        folder: the folder that a relative name refers to.
    """

    path: str | os.PathLike[str]
    delimiter: str | None = None
    encoding: str | None = None
    top: str | bool = True
    folder: Path = field(default_factory=Path, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or not os.fspath(self.path):
            raise HierarchyError("hierarchy csv: give the name of a file.")
        check_top("csv", self.top)

    @classmethod
    def parse(cls, value: object, folder: Path) -> Csv:
        """Read what stands behind ``csv =`` in the schema file."""
        if isinstance(value, str):
            return cls(value, folder=folder)
        chosen = options("csv", value, _KEYS)
        if "path" not in chosen:
            raise HierarchyError("hierarchy csv: give path, the name of a file.")
        return cls(**chosen, folder=folder)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        rest: dict[str, object] = {}
        if self.delimiter is not None:
            rest["delimiter"] = self.delimiter
        if self.encoding is not None:
            rest["encoding"] = self.encoding
        rest = with_top(rest, self.top)
        name = Path(self.path).as_posix()
        return {"csv": {"path": name, **rest} if rest else name}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Bind the file to the values of ``column``."""
        rows = self._rows(column)
        leaves = self._leaves(column, rows)
        missing = leaves.pop("", None) if values.null_count else None
        keys = [canonical(value) for value in present_values(values)]
        labels = [leaves.pop(key, None) for key in keys]
        absent = sum(label is None for label in labels)
        if absent:
            raise HierarchyError(
                f"Column '{column}': {absent} distinct value(s) are not in the hierarchy file"
                f" '{Path(self.path).name}'. Add one line for each of them."
            )
        height = len(rows[0]) - 1
        inside = [[row[level] for row in labels if row is not None] for level in range(height)]
        others = list(leaves.values())
        outside = [[row[level] for row in others] for level in range(height)]
        known = None if missing is None else list(missing)
        levels = Levels(inside, outside, len(others), known, rooted=True)
        return assemble(column, values, levels, top=self.top)

    def leaves(self) -> list[str]:
        """The values that the file knows, missing ones left out."""
        return [leaf for leaf in self._leaves("", self._rows("")) if leaf]

    def _rows(self, column: str) -> list[list[str]]:
        name = Path(self.path).name
        try:
            text = text_file.read_text(self.folder / self.path, self.encoding)
        except InputError as error:
            raise HierarchyError(f"Column '{column}': hierarchy file: {error}") from None
        delimiter = self.delimiter or text_file.detect_delimiter(text)
        reader = csv.reader(text_file.lines_of(text), delimiter=delimiter)
        rows = []
        widths: dict[int, list[int]] = {}
        for row in reader:
            if not row:
                continue
            rows.append([cell.strip() for cell in row])
            widths.setdefault(len(row), []).append(reader.line_num)
        if not rows:
            raise HierarchyError(f"Column '{column}': the hierarchy file '{name}' is empty.")
        if len(widths) > 1:
            usual = max(widths, key=lambda width: len(widths[width]))
            odd = sorted(line for width, at in widths.items() if width != usual for line in at)
            raise HierarchyError(
                f"Column '{column}': {len(odd)} line(s) of the hierarchy file '{name}' do not have"
                f" {usual} fields as the others, first at line {odd[0]}. Give each leaf a label at"
                " every level."
            )
        return rows

    def _leaves(self, column: str, rows: list[list[str]]) -> dict[str, tuple[Any, ...]]:
        leaves: dict[str, tuple[Any, ...]] = {}
        twice = 0
        for leaf, *labels in rows:
            key = _leaf_key(leaf)
            known = leaves.setdefault(key, tuple(labels))
            twice += known != tuple(labels)
        if twice:
            raise HierarchyError(
                f"Column '{column}': {twice} line(s) of the hierarchy file"
                f" '{Path(self.path).name}' repeat a leaf with other labels. Keep one line a leaf."
            )
        return leaves


def _leaf_key(leaf: str) -> str:
    """Whole numbers written as decimals match whole numbers; other texts stand as they are."""
    whole, point, rest = leaf.partition(".")
    digits = whole.removeprefix("-")
    return whole if point and digits.isdecimal() and rest.strip("0") == "" else leaf
