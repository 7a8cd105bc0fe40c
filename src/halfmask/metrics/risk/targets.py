"""Whom an attack is tried on: people of the release, and people outside it (control)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.engines.counted import Counted
from halfmask.errors import SchemaError
from halfmask.metrics.sides import sides
from halfmask.metrics.weighted import entries_of
from halfmask.table.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Published, Sides

WORK = 40_000_000  # comparisons of one attack


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """An original, its release, and who is attacked.

    Attributes:
        sides: both tables; the control's entries follow those of the original.
        members: entries of the original that are attacked, drawn as rows.
        control: entries of the control that are attacked; empty where there are none.
        size: how many entries the original has.
        random: the source of the attack's choices.
        people: per entry of the original, whose it is; None: every row is another person.
    """

    sides: Sides
    members: NDArray[np.int64]
    control: NDArray[np.int64]
    size: int
    random: np.random.Generator
    people: NDArray[np.int32] | None = None


def targets(
    original: Table | Counted,
    release: Published | Table | Counted,
    control: Table | Counted | None = None,
    *,
    attacks: int = 500,
    seed: int = 0,
    known: Sides | None = None,
) -> Targets:
    """Choose whom to attack; fewer where the tables are large.

    Args:
        original: the rows of the original, or its distinct tuples with their counts.
        release: likewise.
        control: rows of people who are not in the original.
        attacks: how many people at most.
        seed: repeats the choice.
        known: the original and the release on common ground, where that is at hand.
    """
    random = np.random.default_rng(seed)
    own = original if isinstance(original, Counted) else Counted(original)
    others = Counted(control) if isinstance(control, Table) else control
    if others is not None:
        paired = sides(_together(own, others), release)
    else:
        paired = sides(own, release) if known is None else known
    count = int(min(attacks, max(100, WORK // max(paired.rows.num_rows, 1))))
    members = entries_of(_some(own, count, random), own.counts)
    outside = np.empty(0, dtype=np.int64)
    if others is not None and others.rows:
        outside = entries_of(_some(others, count, random), others.counts) + len(own.table)
    return Targets(paired, members, outside, len(own.table), random, _people(own.table))


def _people(table: Table) -> NDArray[np.int32] | None:
    """Whose each row is, as numbers."""
    name = table.schema.person
    if name is None or name not in table.arrow.column_names:
        return None
    return table.encode(name).codes


def _some(side: Counted, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    return random.choice(side.rows, min(count, side.rows), replace=False).astype(np.int64)


def _together(original: Counted, control: Counted) -> Counted:
    """The original and the control as one table."""
    schema = original.table.schema
    names = [name for name in original.table.arrow.column_names if name not in schema.private]
    missing = [name for name in names if name not in control.table.arrow.column_names]
    if missing:
        raise SchemaError(f"The control lacks columns of the original: {', '.join(missing)}.")
    plain = [_plain(one.table.arrow.select(names)) for one in (original, control)]
    arrow = pa.concat_tables(_of_one_kind(*plain), promote_options="permissive")
    counts = None
    if original.counts is not None or control.counts is not None:
        counts = np.concatenate([one.each for one in (original, control)])
    return Counted(Table(arrow, schema), counts)


def _of_one_kind(original: pa.Table, control: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both tables, if their columns hold values of the same kind.

    Raises:
        SchemaError: they do not; says which.
    """
    apart = []
    for name in original.column_names:
        own, theirs = original.schema.field(name), control.schema.field(name)
        try:
            pa.unify_schemas([pa.schema([own]), pa.schema([theirs])], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            apart.append(f"{name} ({own.type}, in the control {theirs.type})")
    if apart:
        raise SchemaError(
            "Columns of the control are written otherwise than in the original: "
            f"{', '.join(apart)}. Write them the same way; digits that begin with 0 are text."
        )
    return original, control


def _plain(rows: pa.Table) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            column = rows.column(place).cast(field.type.value_type)
            rows = rows.set_column(place, field.name, column)
    return rows
