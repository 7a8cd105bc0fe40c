"""The parts of a column that k people share, and how values are drawn inside a part.

Definition: a value that at least k people hold is drawn as it is. Other numbers are drawn from
    spans that hold at least k people each, so that a span's mean is theirs; a span ends at a short
    number among the values of k neighbors, and the first and the last one end where k people still
    stand beyond. A part draws what of a span lies in it. Digits are drawn as often as people round
    to them. Names that fewer than k people hold are not drawn.

Nothing here depends on one person: a value, an end and a rounding each rest on k people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.coclustering.prepare import IntervalCuts, as_numbers, column_parts, cut_column
from halfmask.errors import UnsatisfiableError
from halfmask.synthesize.inference import draw_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.prepare import ColumnParts, IntervalRule
    from halfmask.table.table import Table

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_SPANS = 64  # for each part, at most
_STEEP = 0.1  # how near to an end the mean of a span may lie
_DECIMALS = 9
_STEPS = 14  # of a ladder: 1, 5, 10, 50, ...
_CLOCK = (1, 60, 3600, 86_400)  # seconds that times are rounded to
RARE = "(rare)"


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """How finely people write the numbers of a column.

    Attributes:
        steps: ascending, each a multiple of the one before; empty where numbers have all digits.
        shares: how often a number is rounded to each step on purpose.
        places: the decimals that numbers have.
    """

    steps: tuple[float, ...]
    shares: tuple[float, ...]
    places: int = _DECIMALS

    def apply(
        self, numbers: Floats, low: Floats, high: Floats, random: np.random.Generator
    ) -> Floats:
        """The numbers rounded; one that would leave its span is rounded to the finest step."""
        if not self.steps:
            return np.asarray(np.clip(numbers, low, high))
        chosen = np.asarray(self.steps)[random.choice(len(self.steps), len(numbers), p=self.shares)]
        found = np.clip(numbers, low, high)
        for step in (np.full(len(numbers), self.unit), chosen):
            first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
            near = np.round(np.clip(np.round(numbers / step), first, last) * step, self.places)
            found = np.where(first <= last, near, found)
        return found

    @property
    def unit(self) -> float:
        """The finest step that numbers are rounded to; 1 where they have all digits."""
        used = [s for s, share in zip(self.steps, self.shares, strict=True) if share > 0]
        return used[0] if used else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class SharedColumnParts:
    """The parts of one column, and what is drawn inside each.

    Attributes:
        column: the parts, as they are co-clustered.
        drawn: per part, which share of its rows can be drawn; 0 where fewer than k people hold it.
        weights: (parts, elements) how often each element is drawn in a part.
        value: per element, the code of the value that it is; -1: a piece of a span.
        low: per element, where the piece begins; ``high``: where it ends.
        begin: per element, which share of its span's rows lies below it; ``end``: up to its end.
        span: per element, the whole span, (begins, ends, power); the rows up to the share u of it
            lie below ``begins + (ends - begins) * u**power``.
        rounding: of numbers drawn from spans.
    """

    column: ColumnParts
    drawn: Floats
    weights: Floats
    value: Ints
    low: Floats
    high: Floats
    begin: Floats
    end: Floats
    span: Floats
    rounding: Rounding

    def __repr__(self) -> str:
        return f"SharedColumnParts({self.column.name!r}, {len(self.drawn)} parts)"

    def draw(self, table: Table, parts: NDArray[np.int32], random: np.random.Generator) -> pa.Array:
        """A value of the column's own type for each part that was drawn."""
        values = table.encode(self.column.name).values
        element = draw_values(parts.astype(np.int64), self.weights, random)
        code, low, high = self.value[element], self.low[element], self.high[element]
        exact = code >= 0
        found = values.take(pa.array(np.where(exact, code, 0)))
        if not exact.all():
            begin, end = self.begin[element], self.end[element]
            share = begin + random.random(len(parts)) * (end - begin)
            first, last, power = self.span[element].T
            numbers = np.clip(first + (last - first) * share**power, low, high)
            numbers = self.rounding.apply(numbers, low, high, random)
            new = _as_type(np.where(exact, 0.0, numbers), values.type)
            found = pc.if_else(pa.array(exact), found, new)
        was = table.given.get(self.column.name)
        categories = was is not None and pa.types.is_dictionary(was.type)
        return found.dictionary_encode() if categories and not self.spanned else found

    @property
    def spanned(self) -> bool:
        """Whether numbers are drawn that need not be anybody's."""
        return bool((self.value < 0).any())


def holders(table: Table, name: str, owner: NDArray[np.int32] | None) -> Ints:
    """How many people hold each distinct value of a column."""
    encoded = table.encode(name)
    return people_in(encoded.codes, owner, len(encoded.values))


def people_in(
    groups: NDArray[np.int32] | Ints, owner: NDArray[np.int32] | None, count: int
) -> Ints:
    """How many people each of ``count`` groups of rows is about."""
    if owner is None:
        return np.bincount(groups, minlength=count).astype(np.int64)
    people = int(owner.max(initial=-1)) + 1
    pairs = np.unique(groups.astype(np.int64) * people + owner)
    return np.bincount(pairs // people, minlength=count).astype(np.int64)


def shared_parts(
    table: Table,
    name: str,
    k: int,
    owner: NDArray[np.int32] | None,
    *,
    bins: int = 10,
    intervals: IntervalRule = "equal-frequency",
    labels: bool = False,
) -> ColumnParts:
    """The parts of one column, each held by k people but one that is not drawn.

    With ``labels`` the ends of intervals are published: they rest on k people too.

    Raises:
        UnsatisfiableError: no value is held by k people.
    """
    column = column_parts(table, name, bins=bins, intervals=intervals)
    if column.cuts is not None:
        return _shared_cuts(table, column, k, owner, labels=labels)
    held = holders(table, name, owner)
    rare = held < k
    if rare.all():
        raise UnsatisfiableError(
            f"Column {name!r}: no value is held by {k:,} people, so that none may be drawn.",
            advice=("generalize the column first", "or declare it an identifier", "or lower k"),
        )
    if not rare.any():
        return column
    kept = np.flatnonzero(~rare)
    part = np.full(len(rare), len(kept), dtype=np.int32)
    part[kept] = np.arange(len(kept))
    texts = (*(column.labels[v] for v in kept), RARE)
    return replace(column, labels=texts, of_value=part, codes=part[table.encode(name).codes])


def _shared_cuts(
    table: Table, column: ColumnParts, k: int, owner: NDArray[np.int32] | None, *, labels: bool
) -> ColumnParts:
    """The same intervals joined until each holds k people."""
    assert column.cuts is not None  # noqa: S101 - asked of columns that are cut
    encoded = table.encode(column.name)
    held = len(encoded.values) - encoded.values.null_count
    present = encoded.codes < held
    numbers = as_numbers(encoded.values.slice(0, held))[encoded.codes[present]]
    ranked = np.sort(numbers)
    inner = list(column.cuts.bounds[1:-1])
    if labels:
        inner = sorted({_end(ranked, bound, k) for bound in inner})
    own = None if owner is None else owner[present]
    bounds = [ranked[0], *[b for b in inner if ranked[0] <= b < ranked[-1]], ranked[-1]]
    while True:
        cuts = IntervalCuts(tuple(float(b) for b in bounds))
        people = people_in(cuts.apply(numbers), own, len(cuts))
        small = int(people.argmin())
        if people[small] >= k or len(cuts) == 1:
            return cut_column(table, column.name, cuts)
        # The smallest joins the smaller neighbor, which costs the least detail.
        left = small > 0 and (small == len(cuts) - 1 or people[small - 1] <= people[small + 1])
        del bounds[small if left else small + 1]


def _end(ranked: Floats, bound: float, k: int) -> float:
    """The shortest number near a bound among the values of k neighbors; one that k hold stays."""
    below = int(np.searchsorted(ranked, bound, side="right"))
    first = int(np.searchsorted(ranked, bound, side="left"))
    if below - first >= k:
        return bound
    low = ranked[max(0, below - (k + 1) // 2)]
    after = min(len(ranked) - 1, below + k // 2)
    heavy = below < len(ranked) and ranked[min(len(ranked) - 1, below + k - 1)] == ranked[below]
    if heavy:  # just below a value that k hold: the bound stays below it
        low, high = ranked[max(0, below - k)], np.nextafter(ranked[below], -np.inf)
        return shortest(low, float(high), float(high), more=1)
    return shortest(low, ranked[after], bound, more=1)


def shortest(low: float, high: float, near: float, *, more: int = 0) -> float:
    """The number from ``low`` to ``high`` that takes the fewest digits, as near as can be.

    Args:
        low: the least that it may be.
        high: the most.
        near: what it should be near to.
        more: how many digits more it may take, so that it comes nearer; whole numbers stay whole.

    Example:
        >>> shortest(1234.5, 1377.0, 1240.0), shortest(1234.5, 1377.0, 1258.0, more=1)
        (1300.0, 1260.0)
    """
    if not low < high:
        return float(low)
    whole = low == round(low) and high == round(high)
    for exponent in range(ceil(log10(high - low)) + 1, -18, -1):
        if floor(high / 10.0**exponent) >= ceil(low / 10.0**exponent):
            more = min(more, max(exponent, 0)) if whole else more
            places = max(0, more - exponent)
            step = 10.0 ** (exponent - more)
            inside = min(max(round(near / step), ceil(low / step)), floor(high / step))
            return float(min(max(round(inside * step, places), low), high))
    return float(near)


def support(
    table: Table, column: ColumnParts, k: int, owner: NDArray[np.int32] | None
) -> SharedColumnParts:
    """What is drawn inside each part of a column, resting on k people everywhere."""
    encoded = table.encode(column.name)
    shared = people_in(column.codes, owner, len(column.labels)) >= k
    by_value = holders(table, column.name, owner)
    rows = np.bincount(encoded.codes, minlength=len(encoded.values))
    # Values that k hold may be drawn as they are; others leave within spans of k people only.
    exact = np.flatnonzero((by_value >= k) & shared[column.of_value])
    elements = [_Element(int(column.of_value[v]), int(v), weight=float(rows[v])) for v in exact]
    rounding = Rounding((), ())
    if column.cuts is not None:
        held = len(encoded.values) - encoded.values.null_count
        numbers = as_numbers(encoded.values.slice(0, held))
        loose = (by_value[encoded.codes] < k) & (encoded.codes < held)
        ends = _ends(numbers, encoded.codes, held, k, owner)
        x = numbers[encoded.codes[loose]]
        rounding = _rounding(x, k, encoded.values.type)
        unit = rounding.unit
        ends = (ends[0] / unit, ends[1] / unit)
        spans, place = _spans(
            x / unit, None if owner is None else owner[loose], k, len(column.cuts), ends
        )
        where = column.codes[loose]
        bounds = np.array([-np.inf, *column.cuts.bounds[1:-1], np.inf])
        spans = spans * [unit, unit, 1]
        coarse = 1 << 30 if pa.types.is_float32(encoded.values.type) else 1
        for part in np.flatnonzero(shared[: len(column.cuts)]):
            here = np.bincount(place[where == part], minlength=len(spans))
            limits = bounds[part : part + 2]
            elements += _pieces(int(part), limits, spans, here, rounding, coarse)
    return _supported(column, elements, rounding)


@dataclass(frozen=True, slots=True)
class _Element:
    """One value, or what of one span lies in a part; see ``SharedColumnParts``."""

    part: int
    value: int = -1
    low: float = 0.0
    high: float = 0.0
    begin: float = 0.0
    end: float = 0.0
    span: tuple[float, float, float] = (0.0, 0.0, 1.0)
    weight: float = 0.0


def _pieces(
    part: int, limits: Floats, spans: Floats, rows: Ints, rounding: Rounding, coarse: int
) -> list[_Element]:
    """What of the spans lies in a part; rows whose span does not reach it join the nearest.

    A part is open below: its numbers begin above the lower limit, also when they are rounded, or
    held as numbers that are ``coarse`` times coarser than doubles.
    """
    unit = rounding.unit if rounding.steps else 0.0
    below = limits[0]
    if np.isfinite(below):
        below += max(1e-6 * unit, float(np.spacing(abs(below))) * coarse)
    found: dict[int, _Element] = {}
    for n, (low, high, power) in enumerate(spans):
        first, last = max(low, below), min(high, limits[1])
        if first > last or (unit and floor(last / unit + 1e-9) < ceil(first / unit - 1e-9)):
            continue
        wide = high - low
        begin, end = (((x - low) / wide) ** (1 / power) if wide > 0 else 0.0 for x in (first, last))
        found[n] = _Element(part, -1, first, last, begin, end, (low, high, power))
    fitting, used = np.array(list(found), np.int64), np.flatnonzero(rows)
    if not len(fitting):
        return []
    nearest = fitting[np.abs(fitting[None, :] - used[:, None]).argmin(axis=1)]
    weight = np.bincount(nearest, rows[used], minlength=len(spans))
    return [replace(found[n], weight=float(weight[n])) for n in np.flatnonzero(weight).tolist()]


def _supported(
    column: ColumnParts, elements: list[_Element], rounding: Rounding
) -> SharedColumnParts:
    weights = np.zeros((len(column.labels), len(elements)))
    for n, one in enumerate(elements):
        weights[one.part, n] = one.weight
    rows = np.bincount(column.codes, minlength=len(column.labels))
    return SharedColumnParts(
        column,
        weights.sum(axis=1) / np.maximum(rows, 1),
        weights,
        np.array([one.value for one in elements], np.int64),
        np.array([one.low for one in elements]),
        np.array([one.high for one in elements]),
        np.array([one.begin for one in elements]),
        np.array([one.end for one in elements]),
        np.array([one.span for one in elements]).reshape(-1, 3),
        rounding,
    )


def _ends(
    numbers: Floats,
    codes: NDArray[np.int32],
    held: int,
    k: int,
    owner: NDArray[np.int32] | None,
) -> tuple[Floats, Floats]:
    """The values (k-th and 2k-th from the end, by people) between which the tails end."""
    present = codes < held
    rows = numbers[codes[present]]
    if owner is None:
        least = most = np.sort(rows)
    else:
        people = int(owner.max(initial=-1)) + 1
        least, most = np.full(people, np.inf), np.full(people, -np.inf)
        np.minimum.at(least, owner[present], rows)
        np.maximum.at(most, owner[present], rows)
        least, most = np.sort(least[np.isfinite(least)]), np.sort(most[np.isfinite(most)])
    n = len(least)
    near, far = min(k, n) - 1, min(2 * k, n) - 1
    return np.array([least[near], least[far]]), np.array([most[n - 1 - far], most[n - 1 - near]])


def _spans(
    x: Floats, owner: NDArray[np.int32] | None, k: int, parts: int, ends: tuple[Floats, Floats]
) -> tuple[Floats, Ints]:
    """(low, high, power) of each span of a column, and the span of each number.

    There is none where fewer than k people are left in the column.
    """
    people = len(x) if owner is None else len(np.unique(owner))
    if people < k or not len(x):
        return np.empty((0, 3)), np.zeros(len(x), np.int64)
    order = np.argsort(x, kind="stable")
    ranked = x[order]
    own = None if owner is None else owner[order]
    count = max(1, min(_SPANS * parts, people // k))
    while True:
        place = (np.arange(len(x)) * count // len(x)).astype(np.int32)
        if people_in(place, own, count).min() >= k or count == 1:
            break
        count = max(1, count // 2)
    at = np.searchsorted(place, np.arange(1, count))
    half = max(1, k // 2)
    cuts = [shortest(ranked[max(0, a - half)], ranked[min(len(x) - 1, a + half - 1)],
                     (ranked[a - 1] + ranked[a]) / 2, more=1) for a in at]  # fmt: skip
    (low_k, low_2k), (high_2k, high_k) = ends
    low, high = min(max(ranked[0], low_k), high_k), max(min(ranked[-1], high_k), low_k)
    if high == high_k:
        high = shortest(max(high_2k, low), high_k, high_k, more=1)
    else:
        high = shortest(max(ranked[max(0, len(x) - k)], low_k), high, high, more=1)
    if low == low_k:
        low = shortest(low_k, min(low_2k, high), low_k, more=1)
    else:
        low = shortest(low, min(ranked[min(k, len(x)) - 1], high), low, more=1)
    bounds = np.concatenate([[low], np.clip(cuts, low, max(low, high)), [max(low, high)]])
    first, wide = bounds[:-1], np.where(np.diff(bounds) > 0, np.diff(bounds), 1.0)
    # The mean of k people or more, none of whom counts beyond the span: it says how even it is.
    inside = np.clip((ranked - first[place]) / wide[place], 0.0, 1.0)
    mean = np.bincount(place, inside, minlength=count) / np.bincount(place, minlength=count)
    power = 1 / np.clip(mean, _STEEP, 1 - _STEEP) - 1
    out = np.empty(len(x), np.int64)
    out[order] = place
    return np.column_stack([first, bounds[1:], power]), out


def _rounding(x: Floats, k: int, kind: pa.DataType) -> Rounding:
    """How finely the numbers are written, by what at least k rows do."""
    if not len(x):
        return Rounding((), ())
    if pa.types.is_temporal(kind):
        ladder, places = _clock(kind), 0
    else:
        fitting = [p for p in range(_DECIMALS) if (np.round(x, p) != x).sum() < k]
        if not fitting:
            return Rounding((), ())
        places = fitting[0]
        unit = 10.0**-places
        ladder = [unit * m for e in range(_STEPS // 2) for m in (10.0**e, 5 * 10.0**e)]
    steps = [s for s in ladder if s <= max(float(np.abs(x).max()), ladder[0])]
    share = np.array([np.mean(np.abs(x / s - np.round(x / s)) < 1e-6) for s in steps])
    chance = np.array([[min(1.0, a / b) for a in steps] for b in steps])
    weight = np.linalg.solve(chance, share)
    weight = np.where((weight > 0.01) & (weight * len(x) >= k), weight, 0.0)
    weight[0] = max(1.0 - weight[1:].sum(), 0.0)
    weight /= weight.sum()
    return Rounding(tuple(steps), tuple(weight), places)


def _clock(kind: pa.DataType) -> list[float]:
    """The steps in which times are rounded, in the units they are stored in."""
    if pa.types.is_date32(kind):
        return [1.0]
    unit = "ms" if pa.types.is_date64(kind) else str(getattr(kind, "unit", "s"))
    second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    fine = [1.0] if second > 1 and not pa.types.is_date64(kind) else []
    steps = [86_400.0] if pa.types.is_date64(kind) else [float(s) for s in _CLOCK]
    return [*fine, *(s * second for s in steps)]


def _as_type(numbers: Floats, kind: pa.DataType) -> pa.Array:
    """Numbers as values of a type; whole ones where the type is."""
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.array(numbers).cast(kind, safe=False)
    whole = np.rint(numbers)
    if pa.types.is_uint64(kind):
        return pa.array(whole.astype(np.uint64))
    found = pa.array(whole.astype(np.int64))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        found = found.cast(pa.int32())
    return found.cast(kind)
