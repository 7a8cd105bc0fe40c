"""A recoding as a JSON file: hierarchies, levels and published labels, nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.release.files import private_file
from halfmask.release.recoding import Recoding, Step
from halfmask.table.hierarchies import Csv
from halfmask.table.schema_file import column_to_dict, schema_from_dict

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.schema import Column

FORMAT = "halfmask.recoding/1"


@dataclass(frozen=True, slots=True)
class StoredCsv:
    """A hierarchy file whose content travels with the recoding."""

    rule: Csv
    content: str

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Bind the stored file to the values of ``column``."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / Path(self.rule.path).name
            file.write_text(self.content, encoding="utf-8")
            rule = replace(self.rule, path=file.name, folder=file.parent, encoding="utf-8")
            return rule.build(column, values)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        return self.rule.to_dict()


def save(recoding: Recoding, path: str | PathLike[str]) -> None:
    """Write ``recoding``, whose hierarchies may list original values, to a private file."""
    document = {
        "format": FORMAT,
        "columns": {name: _plain(column) for name, column in recoding.columns.items()},
        "steps": [{"levels": dict(s.levels), "classes": s.classes} for s in recoding.steps],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    with private_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def load(path: str | PathLike[str]) -> Recoding:
    """Read what ``save`` wrote."""
    file = Path(path)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or "no access"
        raise InputError(f"The recoding {str(file)!r} cannot be read: {why}.") from error
    except ValueError as error:
        raise InputError(f"The recoding {str(file)!r} is not a JSON file.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{str(file)!r} is not a recoding that this version reads ({FORMAT}).")
    damaged = InputError(f"The recoding {str(file)!r} is damaged: save it again.")
    try:
        steps = tuple(_step(step) for step in document["steps"])
        columns = _columns(document["columns"])
        sound = bool(steps) and all(_fits(step, columns) for step in steps)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise damaged from error
    if not sound:
        raise damaged
    return Recoding(columns, steps)


def _plain(column: Column) -> dict[str, Any]:
    entry = column_to_dict(column)
    if isinstance(column.hierarchy, StoredCsv):
        entry["content"] = column.hierarchy.content
    elif isinstance(column.hierarchy, Csv):
        from halfmask.table.text_file import read_text

        rule = column.hierarchy
        entry["content"] = read_text(rule.folder / rule.path, rule.encoding)
    return entry


def _columns(entries: dict[str, dict[str, Any]]) -> dict[str, Column]:
    contents = {name: entry.pop("content") for name, entry in entries.items() if "content" in entry}
    columns = dict(schema_from_dict({"columns": entries}, Path()).columns)
    for name, content in contents.items():
        rule = columns[name].hierarchy
        if not isinstance(rule, Csv):
            raise TypeError(name)
        columns[name] = replace(columns[name], hierarchy=StoredCsv(rule, content))
    return columns


def _step(step: dict[str, Any]) -> Step:
    levels = {str(name): int(level) for name, level in step["levels"].items()}
    classes = step["classes"]
    return Step(levels, None if classes is None else tuple(tuple(one) for one in classes))


def _fits(step: Step, columns: dict[str, Column]) -> bool:
    width = all(len(one) == len(columns) for one in step.classes or ())
    return width and set(step.levels) == set(columns) and min(step.levels.values(), default=0) >= 0
