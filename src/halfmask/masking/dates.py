"""Dates of one person are moved by the same number of days, so that what lies between them stays.

Definition: each person's dates move by d days, d drawn evenly from -days ... days without 0; with a
    key, d follows from a keyed hash of the person, so that later tables move alike.
Source: Hripcsak and others, "Preserving temporal relations in clinical data while maintaining
    privacy", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.masking.mask import (
    MaskStep,
    MaskWords,
    Outcome,
    anything,
    register_mask,
    secret,
    some_columns,
)
from halfmask.masking.numbers import moments_in
from halfmask.models.verdict import whole_number
from halfmask.release.pseudonyms import key_bytes, keyed_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.mask import Rows
    from halfmask.table.table import Table

_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@register_mask
@dataclass(frozen=True, slots=True)
class DateShift(MaskStep):
    """Move all dates of a person by the same random number of at most ``days`` days.

    Without a person column every row moves for itself, all its dates together. With ``key`` (or
    ``key_file``) the same person moves by the same days in every table.
    """

    name: ClassVar[str] = "date-shift"
    words: ClassVar[MaskWords] = MaskWords(
        "All dates of a person move by the same random number of days.",
        "Matching people by an exact date.",
        "How much time lies between a person's dates, seasons, and dates that all people share.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns("dates"))
    days: int = field(default=30, metadata=whole_number(1))
    key: Any = field(default=None, metadata=secret(), repr=False)
    key_file: str | None = field(default=None, metadata=anything())

    def faults(self, table: Table) -> list[str]:
        """Refuse a key where nobody can be told apart."""
        if (self.key is not None or self.key_file) and table.schema.person is None:
            return ["a key moves people alike: name the person column under [table] person."]
        return []

    def apply(self, rows: Rows) -> Outcome:
        """Move the dates."""
        owner, people = rows.people()
        if self.key is None and self.key_file is None:
            drawn = rows.random.integers(0, 2 * self.days, people)
        else:
            drawn = self._keyed(rows, people)
        moves = np.where(drawn < self.days, drawn - self.days, drawn - self.days + 1)[owner]
        out = {}
        for name in self.columns:
            numbers = moments_in(rows.table, name)
            out[name] = numbers.back(numbers.values + moves * float(_day(numbers.kind)))
        return Outcome(out)

    def _keyed(self, rows: Rows, people: int) -> NDArray[np.int64]:
        person = rows.table.schema.person
        assert person is not None  # noqa: S101 - faults looked
        values = rows.table.encode(person).values
        texts = keyed_tokens(key_bytes(self.key, self.key_file), "date-shift", values)
        found = np.array([int(text[:15], 16) % (2 * self.days) for text in texts], dtype=np.int64)
        assert len(found) == people  # noqa: S101 - one code a person
        return found


def _day(kind: pa.DataType) -> int:
    """A day in the unit of a type of dates or times."""
    if pa.types.is_date32(kind):
        return 1
    return 86_400_000 if pa.types.is_date64(kind) else _PER_DAY[kind.unit]
