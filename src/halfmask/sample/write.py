"""Writes the sample as a user would have it: a CSV file, its schema and hierarchy files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.sample import world
from halfmask.sample.world import SEED, people

if TYPE_CHECKING:
    import pyarrow as pa


def sample_schema() -> str:
    """The schema of the sample, as TOML."""
    groups = (
        f"{name} = [{', '.join(f'{chr(34)}{leaf}{chr(34)}' for leaf in leaves)}]"
        for name, leaves in world.SCHOOLING.items()
    )
    return _SCHEMA % {"tree": ", ".join(groups)}


_SCHEMA = """\
# Invented patients of an invented country; see halfmask.sample.
[table]
person = "id"

[policy]                # what each person demands; these columns never leave
k = "k_i"
l = "l_i"

[columns.id]
role = "identifier"

[columns.age]
role = "quasi"
kind = "numeric"
hierarchy = { intervals = [5, 10, 20, 40] }

[columns.sex]
role = "quasi"

[columns.postcode]
role = "quasi"
hierarchy = { mask = 5 }

[columns.visit]
role = "quasi"
kind = "date"
hierarchy = { dates = ["month", "quarter", "year"] }

[columns.education]
role = "quasi"
hierarchy = { tree = { %(tree)s } }

[columns.occupation]
role = "quasi"
hierarchy = { csv = "occupation.csv" }

[columns.disease]
role = "sensitive"
hierarchy = { csv = "disease.csv" }

[columns.salary]
role = "sensitive"
kind = "numeric"
"""


def hierarchies() -> dict[str, str]:
    """The hierarchy files of the sample, in ARX's format, by file name."""
    work = [f"{name};not working;not working;*" for name in world.NO_WORK]
    work += [f"{o.name};{o.branch};{o.sector};*" for o in world.OCCUPATIONS]
    illness = [f"{d.name};{d.chapter};*" for d in world.DISEASES]
    return {"occupation.csv": _lines(work), "disease.csv": _lines(illness)}


def write(folder: str | Path, rows: int = 2000, *, seed: int = SEED) -> Path:
    """Write people.csv, people.toml and the hierarchy files; return the path of people.csv.

    Each file is written under a temporary name and then renamed, so that an interrupted run
    leaves no half file behind.
    """
    table = people(rows, seed=seed)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**hierarchies(), "people.toml": sample_schema()}.items():
        part = folder / f".{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(folder / name)
    path = folder / "people.csv"
    _write_csv(table, path)
    return path


def _write_csv(table: pa.Table, path: Path) -> None:
    from pyarrow import csv

    part = path.with_name(f".{path.name}.part")
    try:
        csv.write_csv(table, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _lines(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"
