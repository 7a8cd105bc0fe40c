"""Conditions on public values: combinations that cannot occur, and what rows are drawn given.

A condition names values of one column, or a range of it; a combination is a condition on each of
several columns. Both are declared, never taken from rows: "men are not pregnant" is public.

On the intervals of a domain a condition is exact or refused: a range that cuts an interval would
let values through, or hold back too many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.domain import (
    Bins,
    as_number,
    value_key,
    values_as_days,
    values_as_numbers,
    writes_date,
)
from halfmask.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from halfmask.dp.domain import Domain

    Bools = NDArray[np.bool_]

_SHAPE = "a value, a list of values, or a range such as { from = 18, below = 65 }"


@dataclass(frozen=True, slots=True)
class ColumnCondition:
    """What a column holds: one of some values, or a number or date from one bound to below another.

    Attributes:
        column: whose values they are.
        keys: what the values are known by; None: a range.
        low: the least number of the range, or day since 1970.
        high: what all numbers of the range lie below.
        date: whether the bounds are dates.
    """

    column: str
    keys: frozenset[object] | None
    low: float = -np.inf
    high: float = np.inf
    date: bool = False

    @classmethod
    def of(cls, column: str, given: Any) -> ColumnCondition:
        """A condition as it is written.

        Raises:
            SchemaError: it is none.
        """
        if isinstance(given, Mapping):
            return cls._range(column, given)
        listed = list(given) if isinstance(given, list | tuple | range | set) else [given]
        if not listed or any(isinstance(one, Mapping | Sequence) and not isinstance(one, str)
                             for one in listed):  # fmt: skip
            raise SchemaError(f"The condition on column {column!r} is none: give {_SHAPE}.")
        return cls(column, frozenset(value_key(one) for one in listed))

    @classmethod
    def _range(cls, column: str, given: Mapping[str, Any]) -> ColumnCondition:
        bounds = {name: given[name] for name in ("from", "below") if name in given}
        dated = [writes_date(bound) for bound in bounds.values()]
        try:
            numbers = {name: as_number(bound) for name, bound in bounds.items()}
        except (TypeError, ValueError):
            numbers = {}
        low, high = numbers.get("from", -np.inf), numbers.get("below", np.inf)
        if not numbers or set(given) != set(numbers) or any(dated) != all(dated) or not low < high:
            raise SchemaError(f"The condition on column {column!r} is none: give {_SHAPE}.")
        return cls(column, None, low, high, any(dated))

    def holds(self, values: pa.Array | pa.ChunkedArray) -> Bools:
        """Per value of a column, whether the condition holds of it."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if self.keys is None:
            numbers = values_as_days(values) if self.date else values_as_numbers(values)
            with np.errstate(invalid="ignore"):
                return (numbers >= self.low) & (numbers < self.high)
        known = pc.unique(values)
        fine = np.array([value_key(one.as_py()) in self.keys for one in known], dtype=bool)
        places = pc.index_in(values, value_set=known, skip_nulls=False)
        return fine[np.asarray(places, dtype=np.int64)]

    def codes(self, domain: Domain) -> Bools:
        """Per public code of the column, whether the condition holds of it.

        Raises:
            SchemaError: the domain does not list a value, the range cuts one of its intervals, or
                one is of dates and the other of numbers.
        """
        if not isinstance(domain, Bins):
            return self._match_list(domain.values)
        if self.keys is None:
            inside, alone = self._intervals(domain), self._numbers(domain.special)
        else:
            # As they are drawn: from 2**53 on, a number and a whole number are not written alike.
            kept = [value_key(int(one) if domain.integer else one) for one in domain.special]
            if not self.keys <= {*kept, *([None] if domain.missing else [])}:
                raise SchemaError(
                    f"Column {self.column!r} is cut into intervals, of which single values are a "
                    "part: give a range in the condition on it, or list its values in the domain."
                )
            inside, alone = [False] * (len(domain.edges) - 1), [one in self.keys for one in kept]
        absent = [self.keys is not None and None in self.keys] if domain.missing else []
        codes = [*alone[: domain.below], *inside, *alone[domain.below :], *absent]
        return np.array(codes, dtype=bool)

    def _intervals(self, domain: Bins) -> list[bool]:
        """Per interval, whether it lies in the range."""
        if self.date != domain.date:
            raise self._other_kind()
        edges = np.array(domain.edges, dtype=np.float64)
        starts, ends = edges[:-1], edges[1:].copy()
        ends[-1] = np.nextafter(ends[-1], np.inf)  # the last interval is closed
        inside = (starts >= self.low) & (ends <= self.high)
        if ((ends > self.low) & (starts < self.high) & ~inside).any():
            raise SchemaError(
                f"The range in the condition on column {self.column!r} cuts an interval of its "
                "domain: let its bounds be edges of the domain (the last interval holds its end)."
            )
        return [bool(one) for one in inside]

    def _other_kind(self) -> SchemaError:
        return SchemaError(
            f"The range in the condition on column {self.column!r} is of "
            f"{'dates' if self.date else 'numbers'}, and its domain is not: write the bounds as "
            "the domain does."
        )

    def _numbers(self, numbers: Sequence[float]) -> list[bool]:
        return [self.low <= number < self.high for number in numbers]

    def _match_list(self, values: Sequence[object]) -> Bools:
        keys = [value_key(value) for value in values]
        if self.keys is None:
            numbers = [_place(key, date=self.date) for key in keys]
            if np.isnan(numbers).all():
                raise self._other_kind()
            return np.array(self._numbers(numbers), dtype=bool)
        if not self.keys <= set(keys):
            raise SchemaError(
                f"The condition on column {self.column!r} names a value that its domain does not "
                "list: write it as the domain does."
            )
        return np.array([key in self.keys for key in keys], dtype=bool)


def _place(key: object, *, date: bool) -> float:
    """The number of a listed value, or NaN."""
    values = pa.array([None if key is None else str(key)], pa.string())
    return float((values_as_days(values) if date else values_as_numbers(values))[0])


Combination = tuple[ColumnCondition, ...]


def conditions_of(given: object, columns: Sequence[str], what: str) -> Combination:
    """A condition on each of some columns, as they are written.

    Args:
        given: column to condition.
        columns: those that leave.
        what: where it is written, for errors.

    Raises:
        SchemaError: it is no such mapping, or names a column that does not leave.
    """
    if not isinstance(given, Mapping) or not given:
        raise SchemaError(f"{what} takes columns with conditions: each is {_SHAPE}.")
    foreign = [str(name) for name in given if name not in columns]
    if foreign:
        words = ", ".join(repr(name) for name in foreign)
        raise SchemaError(f"{what} names {words}, which is no column that leaves.")
    return tuple(ColumnCondition.of(str(name), condition) for name, condition in given.items())


_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<|=)\s*(.*?)\s*", re.DOTALL)


def read_conditions(texts: Sequence[str]) -> dict[str, Any]:
    """Conditions as a command line or form writes them, such as ``age>=18``.

    A column that is named again may hold either value. ``sex=`` is a missing value, ``sex=""`` the
    empty text.

    Raises:
        ParameterError: a text is no condition, or a second one on the same end of a range.
    """
    found: dict[str, Any] = {}
    for text in texts:
        parts = _CONDITION.fullmatch(text)
        if parts is None:
            raise ParameterError("given", text, 'such as sex=f, "age>=18" or "age<65"')
        name, sign, value = parts.groups()
        if sign == "<" and value.startswith("="):
            raise ParameterError("given", text, "what values lie below: age<66, not age<=65")
        kind = list if sign == "=" else dict
        if not isinstance(found.setdefault(name, kind()), kind):
            raise ParameterError("given", text, "values or a range of a column, not both")
        if sign == "=":
            found[name].append({"": None, '""': ""}.get(value, value))
            continue
        end = "from" if sign == ">=" else "below"
        if end in found[name]:
            raise ParameterError("given", text, "one bound of a column from below, one from above")
        found[name][end] = value
    return found


def impossible_of(declared: Iterable[object], columns: Sequence[str]) -> tuple[Combination, ...]:
    """The combinations that are declared not to occur.

    Raises:
        SchemaError: one of them is none, or is on one column only.
    """
    found = tuple(conditions_of(one, columns, "[[impossible]]") for one in declared)
    if any(len(one) < 2 for one in found):
        raise SchemaError(
            "[[impossible]] is about columns together: what one column cannot hold stays out of "
            "its domain."
        )
    return found


def occurs(rows: pa.Table, combination: Combination) -> Bools:
    """Per row, whether it holds the combination."""
    found = np.ones(rows.num_rows, dtype=bool)
    for one in combination:
        found &= one.holds(rows[one.column])
    return found


def condition_words(declared: Mapping[str, Any]) -> str:
    """A combination in words, such as ``sex = male and age below 15``."""
    parts = []
    for name, given in declared.items():
        if isinstance(given, Mapping):
            parts += [f"{name} {word} {given[word]}" for word in ("from", "below") if word in given]
        elif isinstance(given, list | tuple | range | set):
            parts.append(f"{name} = {' or '.join(_word(one) for one in given)}")
        else:
            parts.append(f"{name} = {_word(given)}")
    return " and ".join(parts)


def _word(value: object) -> str:
    """A value as a sentence names it."""
    return "(missing)" if value is None else '""' if value == "" else str(value)
