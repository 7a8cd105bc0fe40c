"""Whose rows the distinct tuples of a table are, for measures that count people and not rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.walk import Units
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """Who holds which tuple, in order of person; rows of a person that agree are one entry.

    Attributes:
        unit: the tuple; ``person`` who holds it; ``rows`` in how many rows.
        people: how many people there are.
    """

    unit: NDArray[np.int32]
    person: NDArray[np.int32]
    rows: NDArray[np.int64]
    people: int


def holders(table: Table, units: Units, counts: NDArray[np.int64] | None = None) -> Holders | None:
    """Who holds the tuples of ``table``; None where every row is another person."""
    if table.schema.person is None:
        return None
    person = table.encode(table.schema.person)
    if len(person.values) == units.total:
        return None
    pairs = person.codes.astype(np.int64) << 32 | units.of_row.astype(np.int64)
    held, place = np.unique(pairs, return_inverse=True)
    rows = np.bincount(place, weights=counts, minlength=len(held)).astype(np.int64)
    return Holders(
        (held & 0xFFFFFFFF).astype(np.int32),
        (held >> 32).astype(np.int32),
        rows,
        len(person.values),
    )


def owners(units: Units, held: Holders | None) -> NDArray[np.int32]:
    """Per tuple, whose it is; -1 where several people hold it."""
    if held is None:  # every row is another person
        own = np.arange(len(units), dtype=np.int32)
        own[units.rows > 1] = -1
        return own
    own = np.full(len(units), -1, dtype=np.int32)
    single = np.bincount(held.unit, minlength=len(units))[held.unit] == 1
    own[held.unit[single]] = held.person[single]
    return own
