"""Noise that is added to numbers and dates; it is not that of differential privacy.

It claims nothing. Dates of one person are moved by the same number of days, so that what lies
between them stays.

Definition: additive x + e with sd(e) = level sd(x); correlated e ~ N(0, level^2 S) of the columns
    together; multiplicative x exp(level z - level^2 / 2); outliers: additive, for rows far out.
    With ``keep`` the masked column is moved and scaled to the mean and variance that it had.
    Each person's dates move by d days, d drawn evenly from -days ... days without 0; with a key, d
    follows from a keyed hash of the person, so that later tables move alike.
Source: Brand, "Microdata protection through noise addition", 2002; Kim, "A method for limiting
    disclosure in microdata based on random noise and transformation", 1986; Hripcsak and others,
    "Preserving temporal relations in clinical data while maintaining privacy", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import ParameterError
from halfmask.masking.numeric_columns import moments_in, numbers_in
from halfmask.masking.step import (
    MaskStep,
    MaskWords,
    Outcome,
    register_mask,
    secret,
    secret_place,
    some_columns,
)
from halfmask.models.verdict import number, whole_number, word
from halfmask.release.pseudonyms import key_bytes, keyed_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.numeric_columns import Numbers
    from halfmask.masking.step import Rows
    from halfmask.table.table import Table

    Floats = NDArray[np.float64]

_KINDS = {
    "additive": "to each column for itself",
    "correlated": "with the correlations of the columns",
    "multiplicative": "as a factor, larger for larger numbers",
    "outliers": "only to rows that lie far out",
}
_KEEP = {"nothing": "nothing", "moments": "mean and variance"}
_FAR = 3.0  # deviations, by the median and the median deviation, from which a row lies far out
_CALENDAR = 3_652_058  # from the first day of the year 1 to the last of 9999
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@register_mask
@dataclass(frozen=True, slots=True)
class Noise(MaskStep):
    """Add noise whose deviation is ``level`` times that of the column.

    Whole numbers stay whole. The noise is statistical, not that of differential privacy.
    """

    name: ClassVar[str] = "noise"
    words: ClassVar[MaskWords] = MaskWords(
        "Numbers are moved by random amounts.",
        "Matching people by exact figures, and reading a figure to the digit.",
        "Rows far out, which stay far out; noise is averaged away where rows repeat.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns("numbers"))
    level: float = field(default=0.1, metadata=number(0, 10, open_low=True))
    kind: str = field(default="additive", metadata=word("Noise is added", **_KINDS))
    keep: str = field(default="nothing", metadata=word("Kept is", **_KEEP))

    def apply(self, rows: Rows) -> Outcome:
        """Add the noise."""
        numbers = [numbers_in(rows.table, name) for name in self.columns]
        if self.kind == "correlated":
            moved = _correlated_noise(numbers, float(self.level), rows.random)
        else:
            moved = [self._add_noise(one, rows.random) for one in numbers]
        out = {}
        for one, values in zip(numbers, moved, strict=True):
            kept = _with_moments(one, values) if self.keep == "moments" else values
            out[one.name] = one.back(kept)
        return Outcome(out)

    def _add_noise(self, numbers: Numbers, random: np.random.Generator) -> Floats:
        values, level = numbers.values, float(self.level)
        drawn = random.standard_normal(len(values))
        if self.kind == "multiplicative":
            # The half square keeps the mean: exp of a normal is larger than 1 on average.
            scaled: Floats = values * np.exp(level * drawn - level**2 / 2)
            return scaled
        noise = level * _deviation(numbers.held) * drawn
        if self.kind == "outliers":
            noise[~_far_out(numbers)] = 0.0
        moved: Floats = values + noise
        return moved


def _deviation(values: Floats) -> float:
    return float(values.std()) if len(values) else 0.0


def _far_out(numbers: Numbers) -> NDArray[np.bool_]:
    """Rows whose value lies far from the middle, measured by what single rows cannot move."""
    held = numbers.held
    if not len(held):
        return np.zeros(len(numbers.values), dtype=bool)
    middle = float(np.median(held))
    spread = float(np.median(np.abs(held - middle))) * 1.4826 or _deviation(held)
    with np.errstate(invalid="ignore"):
        found: NDArray[np.bool_] = np.abs(numbers.values - middle) > _FAR * spread
    return found


def _correlated_noise(
    numbers: list[Numbers], level: float, random: np.random.Generator
) -> list[Floats]:
    """Noise with the covariance of the columns, from the rows that have them all."""
    every = np.logical_and.reduce([one.there for one in numbers])
    block = np.array([one.values[every] for one in numbers])
    size = len(numbers[0].values)
    if block.shape[1] < 2:
        return [one.values for one in numbers]
    spread = np.atleast_2d(np.cov(block, bias=True))
    # A covariance may be singular (a column that is the sum of others): no Cholesky then.
    weights, directions = np.linalg.eigh(spread)
    root = directions * np.sqrt(np.maximum(weights, 0.0))
    noise = level * (root @ random.standard_normal((len(numbers), size)))
    return [one.values + part for one, part in zip(numbers, noise, strict=True)]


def _with_moments(numbers: Numbers, values: Floats) -> Floats:
    """``values`` with the mean and the variance that the column had."""
    had, has = numbers.held, values[numbers.there]
    spread = _deviation(has)
    if not len(had) or spread == 0:
        return values
    found: Floats = had.mean() + (values - has.mean()) * (_deviation(had) / spread)
    return found


@register_mask
@dataclass(frozen=True, slots=True)
class DateShift(MaskStep):
    """Move all dates of a person by the same random number of at most ``days`` days.

    Without a person column every row moves for itself, all its dates together, and so does a row
    that says not whose it is. With ``key`` (or ``key_file``) the same person moves by the same days
    in every table, and every row must say whose it is.
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
    key_file: str | None = field(default=None, metadata=secret_place())

    def require(self) -> None:
        """Demand days that a calendar has."""
        if self.days > _CALENDAR:
            raise ParameterError("days", self.days, f"at most {_CALENDAR:,} days")

    def faults(self, table: Table) -> list[str]:
        """Refuse a key where nobody can be told apart, or some rows are nobody's."""
        person = table.schema.person
        if self.key is None and not self.key_file:
            return []
        if person is None:
            return ["a key moves people alike: name the person column under [table] person."]
        if person in table.arrow.column_names and (gone := table.arrow[person].null_count):
            return [
                f"a key moves people alike, and column '{person}' is missing in {gone:,} "
                f"row{'s' * (gone != 1)}: say whose they are."
            ]
        return []

    def apply(self, rows: Rows) -> Outcome:
        """Move the dates."""
        owner, people = rows.people()
        if self.key is None and self.key_file is None:
            person = rows.table.schema.person
            if person is not None:  # one known date of a row must not undo those of all the others
                nobodys = np.flatnonzero(rows.table.arrow[person].is_null().to_numpy())
                owner[nobodys] = people + np.arange(len(nobodys))
                people += len(nobodys)
            drawn = rows.random.integers(0, 2 * self.days, people)
        else:
            drawn = self._keyed_days(rows, people)
        # Never 0 days: no date stays what it was.
        moves = np.where(drawn < self.days, drawn - self.days, drawn - self.days + 1)[owner]
        out = {}
        for name in self.columns:
            numbers = moments_in(rows.table, name)
            out[name] = numbers.back(numbers.values + moves * float(_day(numbers.kind)))
        return Outcome(out)

    def _keyed_days(self, rows: Rows, people: int) -> NDArray[np.int64]:
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
