"""A recoding as CSV files: which label each value gets, and which classes are published."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from halfmask.errors import InputError
from halfmask.release.labels import as_text, label_texts
from halfmask.release.recoding import reachable
from halfmask.release.write import write_table

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.release.recoding import Recoding
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
    known = reachable(recoding, table, name)
    columns = {"value": as_text(table.encode(name).values).filter(pa.array(known))}
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
