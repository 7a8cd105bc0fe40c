"""Public domains: what values a column can have, declared and never taken from the rows.

Values outside a domain are moved by a fixed public rule, since a refusal would itself tell that a
row exists: numbers go to the nearest interval; other values go to the declared ``other``, else to
the missing value where it is declared, else to the first declared value or interval.

The types of what leaves follow from the declaration too. The type that a file's column was read as
depends on its rows: one ``37.5`` or ``unknown`` among whole numbers changes it.
"""

from __future__ import annotations

import datetime
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import ParameterError, SchemaError
from halfmask.table.columns import abbreviate_names
from halfmask.table.files.codebook import read_codebook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

MOST_VALUES = 1 << 20


@dataclass(frozen=True, slots=True)
class Values:
    """A listed domain, such as the categories of a form.

    Attributes:
        values: the possible values; null among them where a value may be missing.
        other: the value that stands for everything not listed.
        ordered: whether neighbors in the list are alike.
    """

    values: tuple[object, ...]
    other: object = None
    ordered: bool = False

    def __post_init__(self) -> None:
        if not self.values or len(set(map(value_key, self.values))) != len(self.values):
            raise ParameterError("values", len(self.values), "at least one value, each once")
        if self.other is not None and value_key(self.other) not in set(map(value_key, self.values)):
            raise ParameterError("other", "(a value)", "one of the listed values")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def fallback(self) -> int:
        """The code that values outside the domain get."""
        keys = [value_key(value) for value in self.values]
        if self.other is not None:
            return keys.index(value_key(self.other))
        return keys.index(None) if None in keys else 0

    def encode(self, column: pa.Array) -> NDArray[np.int32]:
        """Per distinct value of ``column``, its code."""
        place, outside = {value_key(value): i for i, value in enumerate(self.values)}, self.fallback
        found = (place.get(key, outside) for key in _keys(column))
        return np.fromiter(found, np.int32, len(column))

    def decode(
        self, codes: NDArray[np.int64], random: np.random.Generator, kind: pa.DataType | None = None
    ) -> pa.Array:
        """The values of ``codes``, of the type ``kind``; by default of the declared type.

        Raises:
            ArrowInvalid: the declared values are of several types, or not of ``kind``.
        """
        del random
        if kind is None:
            return pa.array(self.values).take(pa.array(codes))
        texts = pa.array([value_key(value) for value in self.values], pa.string())
        found = texts.take(pa.array(codes))
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        return found if pa.types.is_string(kind) else found.cast(kind)


@dataclass(frozen=True, slots=True)
class Bins:
    """A numeric range cut at public edges; the last interval is closed.

    Attributes:
        edges: ascending; one more than intervals.
        missing: whether the missing value is possible; it is the last code.
        integer: whether the values are whole numbers, so that drawn ones are too. By default they
            are where every bound is declared as a whole number: ``0`` and not ``0.0``.
        date: whether edges are days since 1970; then dates are drawn.
        special: single numbers that mean something of their own beside the range, such as 0 for
            nothing earned. Those below the range are the first codes, the others follow it.
    """

    edges: tuple[float, ...]
    missing: bool = False
    integer: bool = False
    date: bool = False
    special: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        alone = sorted(set(self.special))
        if len(alone) != len(self.special) or not np.isfinite(alone).all() or (alone and self.date):
            raise ParameterError("special", len(self.special), "different numbers, beside numbers")
        object.__setattr__(self, "special", tuple(alone))
        pairs = zip(self.edges, self.edges[1:], strict=False)
        ascending = all(a < b for a, b in pairs) and np.isfinite(self.edges).all()
        if len(self.edges) < 2 or not ascending:
            raise ParameterError("edges", len(self.edges), "two or more ascending numbers")
        if self.integer and max(map(abs, (*self.edges, *self.special))) > _WHOLE:
            raise ParameterError(
                "edges", len(self.edges), "whole numbers up to 2**62; or declare integer = false"
            )

    @classmethod
    def even(
        cls,
        low: float,
        high: float,
        count: int,
        *,
        missing: bool = False,
        integer: bool = False,
        date: bool = False,
        special: tuple[float, ...] = (),
    ) -> Bins:
        """``count`` intervals of equal width from ``low`` to ``high``.

        Those of whole numbers and dates are of whole width as near as can be, and fewer where some
        would hold no number.
        """
        if count > MOST_VALUES:
            raise ParameterError("bins", count, f"at most {MOST_VALUES:,} parts")
        if not (count >= 1 and np.isfinite(low) and np.isfinite(high) and low < high):
            raise ParameterError("bounds", f"{low} to {high}", "low below high, 1 or more bins")
        edges = (*tuple(low + (high - low) * i / count for i in range(count)), high)
        if date:  # whole days
            edges = tuple(dict.fromkeys(float(round(edge)) for edge in edges))
        elif integer:  # upwards: each interval keeps its whole numbers, and one without any goes
            inner = dict.fromkeys(float(ceil(edge)) for edge in edges[1:-1])
            edges = (low, *(edge for edge in inner if low < edge < high), high)
        return cls(edges, missing, integer, date, special)

    def __len__(self) -> int:
        return len(self.edges) - 1 + len(self.special) + self.missing

    @property
    def below(self) -> int:
        """How many special numbers stand below the range: the code of the first interval."""
        return sum(number < self.edges[0] for number in self.special)

    def special_code(self, place: int) -> int:
        """The code of a special number, by its place among them."""
        return place if place < self.below else place + len(self.edges) - 1

    @property
    def drawable(self) -> bool:
        """Whether every code has a value that may be drawn: whole numbers need not be there."""
        if not self.integer:
            return all(self._free(place) < self.edges[place + 1] for _, place in self._inner())
        whole = all(number.is_integer() for number in map(float, self.special))
        return whole and bool((self._whole()[1] > 0).all())

    def _whole(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per interval its least whole number, and how many it has that do not stand alone."""
        edges = np.asarray(self.edges, dtype=np.float64)
        first = np.ceil(edges[:-1]).astype(np.int64)
        many = np.ceil(edges[1:]).astype(np.int64) - first
        many[-1] = np.int64(np.floor(edges[-1])) + 1 - first[-1]
        for number, place in self._inner():
            many[place] -= number.is_integer()
        return first, many

    def _free(self, place: int) -> float:
        """The first number of an interval that does not stand alone, or its end."""
        found = float(self.edges[place])
        for number, home in self._inner():
            if home == place and found == number:
                found = float(np.nextafter(number, np.inf))
        return found

    def _decimals(self, at: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float64]:
        """Numbers drawn evenly from intervals: rounding leads neither out nor to one that is alone.

        Near 1e15 two neighboring numbers are 0.125 apart, and many draws are rounded to an end.
        """
        edges = np.asarray(self.edges, dtype=np.float64)
        low, high = edges[at], edges[at + 1]
        share = random.uniform(size=len(at))
        drawn: NDArray[np.float64] = low * (1 - share) + high * share
        drawn = np.clip(drawn, low, np.nextafter(high, low))
        for number, place in self._inner():
            drawn[(at == place) & (drawn == number)] = np.nextafter(number, np.inf)
        for place in dict.fromkeys(place for _, place in self._inner()):
            drawn[(at == place) & (drawn >= high)] = self._free(place)
        return drawn

    def _inner(self) -> list[tuple[float, int]]:
        """The special numbers within the range, ascending, each with the place of its interval."""
        last = len(self.edges) - 2
        return [
            (float(number), min(bisect_right(self.edges, number) - 1, last))
            for number in self.special
            if self.edges[0] <= number <= self.edges[-1]
        ]

    @property
    def labels(self) -> list[str | None]:
        """The intervals as text, such as ``[20, 40)``."""
        edges = [_day(edge) if self.date else f"{edge:g}" for edge in self.edges]
        pairs = list(pairwise(edges))
        found: list[str | None] = [f"[{low}, {high})" for low, high in pairs[:-1]]
        found.append("[{}, {}]".format(*pairs[-1]))
        alone = [f"{number:g}" for number in self.special]
        found = [*alone[: self.below], *found, *alone[self.below :]]
        return [*found, None] if self.missing else found

    def encode(self, column: pa.Array) -> NDArray[np.int32]:
        """Per distinct value of ``column``, its code; what is no number counts as missing."""
        numbers = values_as_days(column) if self.date else values_as_numbers(column)
        last = len(self.edges) - 2
        codes = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, last)
        codes += self.below
        for place, number in enumerate(self.special):
            codes[numbers == number] = self.special_code(place)
        absent = len(self) - 1 if self.missing else self.below
        return np.where(np.isnan(numbers), absent, codes).astype(np.int32)

    def ranks(self, column: pa.Array) -> NDArray[np.float64]:
        """Per distinct value of ``column``, what sorts it as drawn numbers are; missing last."""
        numbers = values_as_days(column) if self.date else values_as_numbers(column)
        near = np.clip(numbers, self.edges[0], self.edges[-1])
        near[np.isin(numbers, self.special)] = numbers[np.isin(numbers, self.special)]
        near[np.isnan(numbers)] = np.inf if self.missing else self.edges[0]
        return near

    def decode(
        self, codes: NDArray[np.int64], random: np.random.Generator, kind: pa.DataType | None = None
    ) -> pa.Array:
        """A number drawn evenly from each code's interval; whole where declared, or of ``kind``.

        No whole number is drawn that stands alone: it has a code of its own.
        """
        absent = (codes >= len(self) - 1) & self.missing
        edges = np.asarray(self.edges)
        at = np.clip(codes - self.below, 0, len(edges) - 2)
        low, high = edges[at], edges[at + 1]
        if self.date:
            days = random.integers(low.astype(np.int64), np.maximum(high, low + 1).astype(np.int64))
            drawn_days = pa.array(days.astype(np.int32), mask=absent).cast(pa.date32())
            return drawn_days if kind is None else drawn_days.cast(kind)
        drawn: NDArray[Any]
        if self.integer or (kind is not None and pa.types.is_integer(kind)):
            first, many = self._whole()
            drawn = random.integers(first[at], first[at] + np.maximum(many[at], 1))
            for number, place in self._inner():
                if number.is_integer() and many[place] > 0:
                    drawn[(at == place) & (drawn >= number)] += 1
        else:
            drawn = self._decimals(at, random)
        for place, number in enumerate(self.special):
            drawn[codes == self.special_code(place)] = number
        return pa.array(drawn, mask=absent)


Domain = Values | Bins


def domain_of(name: str, declared: object) -> Domain:
    """The domain that ``declared`` describes: a list of values, or bounds and a number of bins.

    Example:
        >>> len(domain_of("age", {"low": 17, "high": 90, "bins": 10}))
        10
    """
    if isinstance(declared, Values | Bins):
        return declared
    if isinstance(declared, range):
        return Values(tuple(declared), ordered=True)
    if isinstance(declared, list | tuple):
        return _from_dict(name, {"values": declared})
    if isinstance(declared, Mapping):
        return _from_dict(name, dict(declared))
    raise SchemaError(
        f"The domain of column {name!r} is neither a list of values nor bounds: give "
        '["a", "b"], or {"low": 0, "high": 100, "bins": 20}.'
    )


def _from_dict(name: str, parts: dict[str, Any]) -> Domain:
    try:
        if "special" in parts:
            parts["special"] = tuple(float(number) for number in parts["special"])
            if not all(number.is_integer() for number in parts["special"]):
                parts.setdefault("integer", False)
        if "values" in parts:
            extra = (None,) if parts.pop("missing", False) else ()
            parts["values"] = (*parts["values"], *extra)
            return Values(**parts)
        if "edges" in parts:
            dated = any(writes_date(edge) for edge in parts["edges"])
            parts.setdefault("integer", all(isinstance(edge, int) for edge in parts["edges"]))
            parts["edges"] = tuple(as_number(edge) for edge in parts["edges"])
            return Bins(date=dated, **parts)
        count, low, high = parts.pop("bins"), parts.pop("low"), parts.pop("high")
        if writes_date(low) or writes_date(high):
            return Bins.even(as_number(low), as_number(high), count, date=True, **parts)
        parts.setdefault("integer", isinstance(low, int) and isinstance(high, int))
        return Bins.even(low, high, count, **parts)
    except ParameterError as error:
        where = f"{error.name} of the domain of column {name!r}"
        raise ParameterError(where, error.value, error.allowed) from None
    except (KeyError, TypeError, ValueError):
        raise SchemaError(
            f"The domain of column {name!r} lacks something: give values, or edges, or low, high "
            "and bins, all of them numbers, or dates such as 2000-12-31; special = [0] beside a "
            "range lists numbers that stand alone."
        ) from None


def writes_date(bound: object) -> bool:
    """Whether a bound is a date, or a text that writes one."""
    if isinstance(bound, str):
        try:
            datetime.date.fromisoformat(bound)
        except ValueError:
            return False
        return True
    return isinstance(bound, datetime.date)


def as_number(bound: Any) -> float:
    """A bound as a number; a date as days since 1970."""
    if not writes_date(bound):
        return float(bound)
    day = datetime.date.fromisoformat(bound) if isinstance(bound, str) else bound
    if isinstance(day, datetime.datetime):
        day = day.date()
    return float((day - _FIRST_DAY).days)


def _day(days: float) -> str:
    return str(_FIRST_DAY + datetime.timedelta(days))


_FIRST_DAY = datetime.date(1970, 1, 1)
_BINS = 20  # of a range for which nobody says how many


def _with_bins(declared: object) -> object:
    """The same, where a range without a number of intervals has the usual one."""
    if not isinstance(declared, Mapping) or not {"low", "high"} <= set(declared):
        return declared
    return {"bins": _BINS, **declared}


def public_domains(columns: Sequence[str], declared: Mapping[str, object]) -> dict[str, Domain]:
    """The domain of each column; a missing one is an error that says how to give it."""
    silent = [name for name in columns if name not in declared]
    faults = []
    if silent:
        one = len(silent) == 1
        faults.append(
            f"Column{'' if one else 's'} {abbreviate_names([repr(name) for name in silent])} "
            f"{'has' if one else 'have'} no public domain, that is values or bounds known without "
            "looking at the rows. Give a codebook (--domains codebook.csv or .toml; domains= in "
            "Python), or domain in the schema: `halfmask describe FILE --public` writes one that "
            "asks for what it cannot know. Bounds of numbers and dates can be bought with a share "
            "of epsilon (--bounds 0.1; bounds=0.1); categories cannot without delta."
        )
    faults += [
        f"Domain {name!r} is no column of the table." for name in declared if name not in columns
    ]
    if faults:
        raise SchemaError(*faults)
    return {name: domain_of(name, _with_bins(declared[name])) for name in columns}


def require_fitting(domains: Mapping[str, Domain]) -> None:
    """Refuse domains of which no column can be made; neither rows nor their types are looked at."""
    faults = []
    for name, domain in domains.items():
        try:
            held = pa.array(domain.values if isinstance(domain, Values) else domain.edges)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            held = None
        if held is None or pa.types.is_nested(held.type):
            faults.append(
                f"The domain of column {name!r} lists values of several types, or lists of them: "
                "write all of them as numbers, all as dates or all as text."
            )
    if faults:
        raise SchemaError(*faults)


def public_codes(table: Table, name: str, domain: Domain) -> NDArray[np.int32]:
    """Per row, the public code of its value."""
    column = table.encode(name)
    return domain.encode(column.values)[column.codes]


def declared_type(domain: Domain) -> pa.DataType:
    """The type of a column in questions, whatever its rows were read as: numbers are doubles."""
    if isinstance(domain, Bins):
        return pa.date32() if domain.date else pa.float64()
    kind = pa.array(domain.values).type
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_floating(kind) else kind


def declared_column(table: Table, name: str, domain: Domain) -> pa.Array:
    """The column as ``declared_type`` says; what cannot be of that type is missing."""
    column, kind = table.encode(name), declared_type(domain)
    values = column.values
    if isinstance(domain, Bins) and domain.date:
        days = values_as_days(values)
        found = pa.array(days, mask=np.isnan(days)).cast(pa.int32()).cast(kind)
    elif isinstance(domain, Bins) or pa.types.is_floating(kind):
        numbers = values_as_numbers(values)
        found = pa.array(numbers, mask=np.isnan(numbers))
    else:
        text = pa.types.is_string(kind)
        place = {value_key(value): value for value in domain.values if value is not None}
        keys = (key if isinstance(key, str) else None for key in _keys(values))
        found = pa.array([place.get(key, key if text else None) for key in keys], kind)
    return found.take(pa.array(column.codes))


def _keys(column: pa.Array) -> Iterator[object]:
    """What each value is known by; one that Python has no value for by itself."""
    for value in column:
        try:
            yield value_key(value.as_py())
        except (ValueError, OverflowError):
            yield value


_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d+)?", re.ASCII)


def value_key(value: object) -> object:
    """Values that mean the same are the same, so that 1, 1.0 and "1" meet.

    Whether a file's column was read as numbers, times, truth values or text depends on its other
    rows; what a value is known by must not.
    """
    if value is None or (isinstance(value, float) and value != value):
        return None
    text = str(value)
    if text in ("True", "False"):
        return text.lower()
    if _NUMBER.fullmatch(text):
        number = float(text)
        whole = abs(number) < _EXACT and number.is_integer()
        return str(int(number)) if whole else (text if abs(number) >= _EXACT else repr(number))
    moment = _MOMENT.fullmatch(text)
    if moment is None:
        return text
    day, minute, second, rest = moment.groups()
    digits = (rest or "").rstrip("0").rstrip(".")
    clock = f"{minute}{second or ':00'}{digits}"
    return day if clock == "00:00:00" else f"{day} {clock}"


_EXACT = 2.0**53
_WHOLE = 2.0**62  # beyond it whole numbers may not fit, which must show before anything is spent


def values_as_numbers(column: pa.Array) -> NDArray[np.float64]:
    """The values as numbers; NaN where one is none, whatever type the column was read as."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        # Not safe: a whole number beyond 2**53 would fail, and so tell that such a row exists.
        plain = pc.cast(column, pa.float64(), safe=False)
        return np.asarray(pc.fill_null(plain, float("nan")).to_numpy(zero_copy_only=False))
    texts = [str(key) if key is not None else "" for key in _keys(column)]
    found = [float(text) if _NUMBER.fullmatch(text) else np.nan for text in texts]
    return np.array(found, dtype=np.float64)


def values_as_days(column: pa.Array) -> NDArray[np.float64]:
    """The values as days since 1970; NaN where one is no date, whatever the column was read as."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        days = pc.cast(pc.cast(column, pa.date32(), safe=False), pa.int32())
        plain = pc.cast(days, pa.float64())
        return np.asarray(pc.fill_null(plain, float("nan")).to_numpy(zero_copy_only=False))
    texts = [str(key)[:10] if key is not None else "" for key in _keys(column)]
    days = [as_number(text) if writes_date(text) else np.nan for text in texts]
    return np.array(days, np.float64)


_FARTHEST = 1e100  # sums and squares of what lies within stay far within a double


def bounds_of(declared: object) -> tuple[float, float] | None:
    """The public bounds that a declaration holds; bounds alone need no number of bins.

    None where there are none to compute with: what is no number, infinite, or beyond 1e100.

    Example:
        >>> bounds_of({"low": 0, "high": 110})
        (0.0, 110.0)
    """
    try:
        low, high = _ends(declared)
    except (TypeError, ValueError, OverflowError):
        return None
    return (low, high) if max(abs(low), abs(high)) <= _FARTHEST else None


def _ends(declared: object) -> tuple[float, float]:
    if isinstance(declared, Mapping) and "low" in declared and "high" in declared:
        alone = [float(number) for number in declared.get("special", ())]
        low, high = float(declared["low"]), float(declared["high"])
        return min([low, *alone]), max([high, *alone])
    if isinstance(declared, Bins):
        ends = (declared.edges[0], declared.edges[-1], *declared.special)
        return min(ends), max(ends)
    if isinstance(declared, Mapping):
        declared = declared.get("edges", declared.get("values", ()))
    values = declared.values if isinstance(declared, Values) else declared
    if isinstance(values, list | tuple | range):
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) > 1 and len(numbers) == sum(v is not None for v in values):
            return float(min(numbers)), float(max(numbers))
    raise ValueError


def declared_domains(schema: Schema) -> dict[str, object]:
    """Domains that the schema states, by column: ``domain``, or the order of an ordinal column."""
    found: dict[str, object] = {}
    for name, column in schema.columns.items():
        if column.domain is not None:
            found[name] = column.domain
        elif column.order is not None:
            found[name] = Values(tuple(column.order), ordered=True)
    return found


def given_domains(
    domains: Mapping[str, object] | str | PathLike[str] | None, columns: Sequence[str] = ()
) -> dict[str, object]:
    """Domains as given, or as a codebook states them, of which only ``columns`` matter."""
    if domains is None or isinstance(domains, Mapping):
        return _without_rules(domains or {})
    found = _without_rules(read_codebook(Path(domains)))
    listed = Path(domains).suffix.lower() != ".toml"
    return {n: d for n, d in found.items() if n in columns or not (listed and columns)}


def given_impossible(
    domains: Mapping[str, object] | str | PathLike[str] | None,
) -> list[object]:
    """The combinations that a codebook says cannot occur."""
    if domains is None:
        return []
    known = domains if isinstance(domains, Mapping) else read_codebook(Path(domains))
    found = known.get("impossible")
    return list(found) if isinstance(found, list | tuple) and _are_rules(found) else []


def _without_rules(domains: Mapping[str, object]) -> dict[str, object]:
    """The same without ``[[impossible]]``; a column of that name lists values, not tables."""
    return {n: d for n, d in domains.items() if n != "impossible" or not _are_rules(d)}


def _are_rules(found: object) -> bool:
    if not isinstance(found, list | tuple) or not found:
        return False
    return all(isinstance(one, Mapping) for one in found)
