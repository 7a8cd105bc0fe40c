"""Whom an attack is tried on: people of the release, and people outside it (control)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.errors import SchemaError
from halfmask.metrics.sides import sides
from halfmask.table.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Published, Sides

WORK = 40_000_000  # comparisons of one attack


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """An original, its release, and who is attacked.

    Attributes:
        sides: both tables; the control's rows follow those of the original.
        members: rows of the original that are attacked.
        control: rows of the control that are attacked; empty where there are none.
        size: how many rows the original has.
        random: the source of the attack's choices.
    """

    sides: Sides
    members: NDArray[np.int64]
    control: NDArray[np.int64]
    size: int
    random: np.random.Generator


def targets(
    original: Table,
    release: Published | Table,
    control: Table | None = None,
    *,
    attacks: int = 500,
    seed: int = 0,
) -> Targets:
    """Choose whom to attack; fewer where the tables are large."""
    random = np.random.default_rng(seed)
    both = original
    if control is not None:
        names = original.arrow.column_names
        missing = [name for name in names if name not in control.arrow.column_names]
        if missing:
            raise SchemaError(f"The control lacks columns of the original: {', '.join(missing)}.")
        plain = [_plain(t.arrow.select(names)) for t in (original, control)]
        arrow = pa.concat_tables(plain, promote_options="permissive")
        both = Table(arrow, original.schema)
    paired = sides(both, release)
    rows = paired.after
    count = int(min(attacks, max(100, WORK // max(rows, 1))))
    size = len(original)
    members = random.choice(size, min(count, size), replace=False)
    outside = np.empty(0, dtype=np.int64)
    if control is not None and len(control):
        picked = random.choice(len(control), min(count, len(control)), replace=False)
        outside = picked + size
    return Targets(paired, members.astype(np.int64), outside.astype(np.int64), size, random)


def _plain(rows: pa.Table) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            column = rows.column(place).cast(field.type.value_type)
            rows = rows.set_column(place, field.name, column)
    return rows
