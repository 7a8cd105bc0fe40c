"""How engines write names and values in SQL."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's way of quoting.

    Attributes:
        quote: the character around names; doubled inside them.
        escapes: what characters inside a text become.
        double: the type of 64-bit floating-point numbers.
        single: the type of 32-bit ones.
        instant: the type of a moment with a time zone.
    """

    quote: str
    escapes: Mapping[str, str]
    double: str
    single: str
    instant: str

    def name(self, name: str) -> str:
        """A column's or table's name."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def text(self, text: str | None) -> str:
        """A text, or NULL."""
        if text is None:
            return "NULL"
        return "'" + "".join(self.escapes.get(c, c) for c in text) + "'"

    def value(self, value: object, kind: pa.DataType, column: str) -> str:
        """A value of a column as a literal of the column's type."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, float):
            number = "NaN" if value != value else repr(value)
            number = number.replace("inf", "Infinity")
            return (
                f"CAST('{number}' AS {self.single if pa.types.is_float32(kind) else self.double})"
            )
        if isinstance(value, int | decimal.Decimal):
            return str(value)
        if isinstance(value, datetime.datetime):
            word = "TIMESTAMP" if value.tzinfo is None else self.instant
            return f"{word} '{value.isoformat(sep=' ')}'"
        if isinstance(value, datetime.date):
            return f"DATE '{value.isoformat()}'"
        raise InputError(f"Column {column!r}: SQL export knows no literal for {kind}.")


_STANDARD = {"'": "''"}
# Spark reads a backslash as an escape, and 'a''b' as two texts side by side.
_SPARK = {"'": "\\'", "\\": "\\\\"}

DIALECTS: dict[str, Dialect] = {
    "duckdb": Dialect('"', _STANDARD, "DOUBLE", "REAL", "TIMESTAMPTZ"),
    "postgres": Dialect('"', _STANDARD, "DOUBLE PRECISION", "REAL", "TIMESTAMPTZ"),
    "spark": Dialect("`", _SPARK, "DOUBLE", "FLOAT", "TIMESTAMP"),
}
