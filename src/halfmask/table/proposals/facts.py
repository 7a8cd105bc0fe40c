"""What can be counted about one column before anything is said about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.table.dictionary import dictionary_of
from halfmask.table.numbers import is_text
from halfmask.table.quasi_identifiers import codes_of

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


@dataclass(frozen=True, eq=False)
class Facts:
    """Counts of one column.

    Attributes:
        name: the column.
        rows: how many rows the table has.
        values: the distinct values in any order, without the missing one.
        codes: per row, a number for its value.
        size: how many such numbers there may be, the missing value's among them.
        missing: how many rows have none.
    """

    name: str
    rows: int
    values: pa.Array
    codes: np.ndarray[tuple[int], np.dtype[np.int32]]
    size: int
    missing: int

    def __repr__(self) -> str:
        return f"Facts({self.name!r}, {self.distinct} values, {self.rows} rows)"

    @property
    def distinct(self) -> int:
        """How many values differ."""
        return len(self.values)

    @property
    def held(self) -> int:
        """How many rows have a value."""
        return self.rows - self.missing

    @cached_property
    def single(self) -> int:
        """How many rows hold a value that nobody else has."""
        return int(np.count_nonzero(np.bincount(self.codes) == 1))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the name: ``patientID`` is patient, id."""
        return tuple(word.lower() for word in _WORDS.findall(self.name))

    @property
    def is_text(self) -> bool:
        """Whether the values are text."""
        return is_text(self.values.type)

    @property
    def is_integer(self) -> bool:
        """Whether the values are whole numbers."""
        return bool(pa.types.is_integer(self.values.type))

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers."""
        kind = self.values.type
        return bool(self.is_integer or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    @property
    def is_date(self) -> bool:
        """Whether the values are dates or times."""
        return bool(pa.types.is_date(self.values.type) or pa.types.is_timestamp(self.values.type))

    @cached_property
    def lengths(self) -> tuple[int, int]:
        """The shortest and the longest text."""
        if not self.distinct:
            return 0, 0
        found = pc.min_max(pc.utf8_length(self.values.cast(pa.string())))
        return int(found["min"].as_py()), int(found["max"].as_py())


def facts_of(name: str, column: pa.ChunkedArray) -> Facts:
    """Count one column."""
    rows, missing = len(column), column.null_count
    array = dictionary_of(column)
    codes, size = codes_of(pa.chunked_array([array]))
    values = array.dictionary
    used = np.zeros(size, dtype=bool)
    used[codes] = True
    if not used[:-1].all():
        values = values.filter(pa.array(used[:-1]))
    return Facts(name, rows, pc.drop_null(values), codes, size, missing)
