"""What classes of rows publish of a column: ranges with round bounds, labels, or sets of values.

A label shows no value that too few people hold. The bounds of a range stand on a grid of the column
(its step is declared in the schema, or the finest round one whose cells hold enough people), and
move outwards past values that fewer people hold than one of them demands. Such a value stands in a
set inside a label of its hierarchy.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.table.columns import PERIODS
from halfmask.table.hierarchy import TOP
from halfmask.table.labels import MISSING, SIGN, separator
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


Label = str | None


def encode_labels(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Values as they are written in text, dictionary-encoded; the missing value stays missing."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    texts = values.dictionary.cast(pa.string())
    # The places are those of an array that was checked when it was made.
    return pa.DictionaryArray.from_arrays(values.indices, texts, safe=False)


def decode_labels(values: Any) -> Any:
    """Values (an array, chunked or not) without the list of those that there are."""
    return values.cast(decoded_type(values.type)) if is_coded(values.type) else values


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """What the values of a column are, whether or not they are listed once and numbered."""
    return kind.value_type if is_coded(kind) else kind


def is_coded(kind: pa.DataType) -> bool:
    """Whether a column lists its values once and numbers them."""
    return bool(pa.types.is_dictionary(kind))


def required_sharing(table: Table, models: Sequence[Model]) -> NDArray[np.int64]:
    """Per row, how many people its values must be shared with to be shown.

    As many as the models ask for; where nobody states an own demand, at least two.
    """
    stated = [one for model in models if (one := model.kernel_demand(table)) is not None]
    least = 1 if any(model.policy for model in models) else 2
    need = np.full(len(table), least, dtype=np.int64)
    for demand in stated:
        need = np.maximum(need, np.asarray(demand.rows, dtype=np.int64))
        need = np.maximum(need, np.asarray(demand.values, dtype=np.int64))
    return need


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """Who holds each value of a column, among the rows that leave.

    Attributes:
        people: per value, how many people hold it.
        need: per value, the most that one of them demands; 0 where nobody holds it.
    """

    people: NDArray[np.int64]
    need: NDArray[np.int64]

    @classmethod
    def of(
        cls, table: Table, name: str, kept: NDArray[np.int64], need: NDArray[np.int64]
    ) -> Holders:
        """Count the people who hold each value."""
        encoded = table.encode(name)
        codes, size = encoded.codes[kept], len(encoded.values)
        highest = np.zeros(size, dtype=np.int64)
        np.maximum.at(highest, codes, need[kept])
        if table.schema.person is not None:
            person = table.encode(table.schema.person).codes[kept].astype(np.int64)
            codes = np.unique(person * size + codes) % size
        return cls(np.bincount(codes, minlength=size).astype(np.int64), highest)

    @property
    def rare(self) -> NDArray[np.bool_]:
        """The values that somebody holds and too few do."""
        return self.people < self.need


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """How the ranges of a column begin and end.

    Attributes:
        step: the step of the grid, in words; None: bounds are values that enough people hold.
        low: per value, how a range that begins there is written; None: it cannot be.
        high: the same for its end.
        first: per value, the code of the first value that such a range covers.
        last: the code of the last one.
        begins: per value, where such a range begins, between 0 and 1.
        ends: where it ends.
    """

    step: str | None
    low: list[Label]
    high: list[Label]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    begins: NDArray[np.float64]
    ends: NDArray[np.float64]


def range_bounds(table: Table, name: str, held: Holders) -> Bounds:
    """The bounds of a column whose values ``held`` tells."""
    values = table.encode(name).values.drop_null()
    declared = table.schema.columns[name].step if name in table.schema.columns else None
    rare, size = held.rare[: len(values)], len(values)
    kind = values.type
    if is_text(kind) or table.schema.columns[name].kind == "ordinal" or not size:
        return _of_values(encode_labels(values).to_pylist(), held)
    if pa.types.is_date32(kind):
        days = values.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
        return _of_days(days, held, declared)
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        moments = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        micros = moments.to_numpy(zero_copy_only=False)
        days = micros // 86_400_000_000
        return _of_days(days, held, declared, days * 86_400_000_000 != micros)
    numbers, places, write = _numbers(values)
    if numbers is None:
        return _of_values(encode_labels(values).to_pylist(), held)
    step = _declared_step(declared) or _found_step(numbers, held, size)
    whole = places == 0 and bool((numbers == np.floor(numbers)).all()) and step == int(step)
    return _on_grid(numbers, rare, step, write, whole=whole)


def _numbers(values: pa.Array) -> tuple[NDArray[Any] | None, int, Any]:
    """Numbers, scaled to whole ones where they are decimals, and how one is written."""
    kind = values.type
    if pa.types.is_integer(kind):
        numbers = values.to_numpy(zero_copy_only=False)
        if len(numbers) and (numbers.max() >= 2**53 or numbers.min() <= -(2**53)):
            return None, 0, None
        return numbers.astype(np.float64), 0, lambda x: str(int(x))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        scale = kind.scale if pa.types.is_decimal(kind) else None
        if not np.isfinite(numbers).all() or (np.abs(numbers) >= 2**53).any():
            return None, 0, None
        return numbers, 1, lambda x: _number_text(x, scale)
    return None, 0, None


def _number_text(number: float, scale: int | None) -> str:
    if scale is not None:
        return f"{number:.{max(scale, 0)}f}"
    text = f"{number:.12f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _declared_step(declared: float | str | None) -> float | None:
    return None if declared is None or isinstance(declared, str) else float(declared)


_ENOUGH = 0.95  # the share of rows that must stand in cells which hold enough people
_CELLS = 5  # so many cells remain, whatever they hold


def _found_step(numbers: NDArray[np.float64], held: Holders, size: int) -> float:
    """The finest of 1, 2, 5, 10 ... whose cells hold enough people, for almost all rows."""
    people, need = held.people[:size], held.need[:size]
    span = float(numbers[-1] - numbers[0]) if len(numbers) > 1 else 1.0
    fine = float(np.diff(numbers).min()) if len(numbers) > 1 else 1.0
    whole = bool((numbers == np.floor(numbers)).all())
    power = 0 if whole else max(math.floor(math.log10(fine)), math.ceil(math.log10(span)) - 9, -9)
    total = int(people.sum())
    while True:
        for digit in (1, 2, 5):
            step = digit * 10.0**power
            cell = np.floor(numbers / step + 1e-9).astype(np.int64)
            cell -= cell[0]
            _, cell = np.unique(cell, return_inverse=True)
            inside = np.bincount(cell, weights=people)
            asked = np.zeros(len(inside))
            np.maximum.at(asked, cell, need)
            if inside[inside >= asked].sum() >= _ENOUGH * total or 2 * step * _CELLS >= span:
                return step
        power += 1


def _on_grid(
    numbers: NDArray[np.float64],
    rare: NDArray[np.bool_],
    step: float,
    write: Any,
    *,
    whole: bool,
) -> Bounds:
    """Bounds at multiples of ``step``; whole numbers end just before the next one."""
    at = numbers / step
    near = np.round(at)
    on = np.abs(at - near) < 1e-9 * np.maximum(1.0, np.abs(at))
    down = np.where(on, near, np.floor(at)).astype(np.int64)
    up = np.where(on, near, np.ceil(at)).astype(np.int64)
    if whole:
        up = np.floor(at + 1e-12).astype(np.int64)
        tops = (up + 1) * step - 1
        blocked_up = {int(x) for x in up[rare & (numbers == tops)]}
    else:
        blocked_up = {int(x) for x in near[rare & on]}
    blocked_down = {int(x) for x in near[rare & on]}
    lows, low_at = np.unique(down, return_inverse=True)
    highs, high_at = np.unique(up, return_inverse=True)
    begin = np.array([_past(int(x), blocked_down, -1) for x in lows], dtype=np.float64) * step
    end = np.array([_past(int(x), blocked_up, 1) for x in highs], dtype=np.float64)
    end = (end + 1) * step - 1 if whole else end * step
    first = np.searchsorted(numbers, begin - 1e-9 * step, side="left")
    last = np.searchsorted(numbers, end + 1e-9 * step, side="right") - 1
    span = float(numbers[-1] - numbers[0]) or 1.0
    low_text, high_text = [write(x) for x in begin], [write(x) for x in end]
    return Bounds(
        _number_text(step, None),
        [low_text[i] for i in low_at],
        [high_text[i] for i in high_at],
        first[low_at],
        last[high_at],
        np.clip((begin[low_at] - numbers[0]) / span, 0.0, 1.0),
        np.clip((end[high_at] - numbers[0]) / span, 0.0, 1.0),
    )


def _past(place: int, blocked: set[int], way: int) -> int:
    while place in blocked:
        place += way
    return place


def _of_days(
    days: NDArray[np.int64], held: Holders, declared: object, noons: NDArray[np.bool_] | None = None
) -> Bounds:
    """Bounds at the first and the last day of a period of the calendar.

    ``noons`` marks moments that are no whole days: they stand in no bound.
    """
    people, need = held.people[: len(days)], held.need[: len(days)]
    moments = days.astype("datetime64[D]")
    months = moments.astype("datetime64[M]").astype(np.int64)
    years = moments.astype("datetime64[Y]").astype(np.int64) + 1970
    cells = {
        "day": days, "month": months, "quarter": months // 3, "year": years, "decade": years // 10,
    }  # fmt: skip
    chosen = "day"
    for period in PERIODS if declared not in PERIODS else (str(declared),):
        chosen = period
        _, cell = np.unique(cells[period], return_inverse=True)
        inside, asked = np.bincount(cell, weights=people), np.zeros(cell.max() + 1)
        np.maximum.at(asked, cell, need)
        if inside[inside >= asked].sum() >= _ENOUGH * people.sum():
            break
    rare = held.rare[: len(days)] if noons is None else held.rare[: len(days)] & ~noons
    blocked = {int(day) for day in days[rare]}
    places, cell = np.unique(cells[chosen], return_inverse=True)
    lows, highs = [], []
    for place in places.tolist():
        at = place
        while _edge(chosen, at) in blocked:
            at -= 1
        lows.append(_edge(chosen, at))
        at = place + 1
        while _edge(chosen, at) - 1 in blocked:
            at += 1
        highs.append(_edge(chosen, at) - 1)
    begins, ends = np.array(lows)[cell], np.array(highs)[cell]
    span = float(days[-1] - days[0]) or 1.0
    clock = ("", "") if noons is None else (" 00:00:00", " 23:59:59")
    low_text, high_text = [_day(x) + clock[0] for x in lows], [_day(x) + clock[1] for x in highs]
    return Bounds(
        chosen,
        [low_text[i] for i in cell.tolist()],
        [high_text[i] for i in cell.tolist()],
        np.searchsorted(days, begins, side="left"),
        np.searchsorted(days, ends, side="right") - 1,
        np.clip((begins - days[0]) / span, 0.0, 1.0),
        np.clip((ends - days[0]) / span, 0.0, 1.0),
    )


def _edge(period: str, place: int) -> int:
    """The first day of a period, as days since 1970."""
    if period == "day":
        return place
    if period in ("month", "quarter"):
        months = place * (3 if period == "quarter" else 1)
        return int(np.datetime64(months, "M").astype("datetime64[D]").astype(np.int64))
    years = place * (10 if period == "decade" else 1) - 1970
    return int(np.datetime64(years, "Y").astype("datetime64[D]").astype(np.int64))


def _day(days: int) -> str:
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=int(days))).isoformat()


def _of_values(texts: list[Label], held: Holders) -> Bounds:
    """Bounds that are values which enough people hold, of columns without a grid."""
    size = len(texts)
    fine = (held.people[:size] > 0) & ~held.rare[:size]
    places = np.arange(size)
    down = np.maximum.accumulate(np.where(fine, places, -1)) if size else places
    up = np.minimum.accumulate(np.where(fine, places, size)[::-1])[::-1] if size else places
    return Bounds(
        None,
        [None if at < 0 else texts[at] for at in down.tolist()],
        [None if at == size else texts[at] for at in up.tolist()],
        np.maximum(down, 0),
        np.minimum(up, size - 1),
        np.maximum(down, 0) / max(size - 1, 1),
        np.minimum(up, size - 1) / max(size - 1, 1),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """One column whose classes publish ranges.

    Attributes:
        low: per class, the code of its smallest value.
        high: per class, the code of its largest value (the missing value comes last).
        bounds: how ranges begin and end; None: at these values themselves, which the door refuses
            where too few people hold them.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    bounds: Bounds | None = None

    def __len__(self) -> int:
        return len(self.low)

    def labels(self, table: Table, name: str) -> tuple[NDArray[np.int64], list[Label]]:
        """Per class the number of its label, and the labels as text."""
        texts = encode_labels(table.encode(name).values).to_pylist()
        lows, highs = (texts, texts) if self.bounds is None else (self.bounds.low, self.bounds.high)
        sign, size = separator(texts), len(texts)
        pairs, numbers = np.unique(
            self.low.astype(np.int64) * size + self.high, return_inverse=True
        )
        labels = [
            texts[pair // size]
            if pair // size == pair % size
            else _range(texts, lows[pair // size], highs, pair % size, sign)
            for pair in pairs.tolist()
        ]
        return numbers.reshape(-1), labels

    def exact(self, used: NDArray[np.bool_]) -> bool:
        """Whether the classes in ``used`` publish the values themselves."""
        return bool((self.low == self.high)[used].all())

    def covered(self, table: Table, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per class, the codes of the first and the last value that its label covers."""
        low, high = self.low.astype(np.int64), self.high.astype(np.int64)
        values = table.encode(name).values
        last = len(values) - 1
        whole = np.zeros(len(low), dtype=np.bool_)
        if values.null_count:
            whole = (high == last) & (low < last)
        if self.bounds is not None and len(self.bounds.low):
            inside = np.minimum(high, len(self.bounds.low) - 1)
            begin = np.minimum(low, len(self.bounds.low) - 1)
            lacks = np.array([one is None for one in self.bounds.low])[begin]
            lacks |= np.array([one is None for one in self.bounds.high])[inside]
            wide = (low < high) & ~whole
            whole |= wide & lacks
            low = np.where(wide, self.bounds.first[begin], low)
            high = np.where(wide, self.bounds.last[inside], high)
        return np.where(whole, 0, low), np.where(whole, last, high)

    def leaves(self, table: Table, name: str) -> NDArray[np.int64]:
        """Per class, how many values its label covers."""
        low, high = self.covered(table, name)
        whole = (low == 0) & (high == len(table.encode(name).values) - 1) & (self.low < self.high)
        numbers, texts = self.labels(table, name)
        top = np.array([text == TOP for text in texts])[numbers]
        return np.where(whole & top, table.hierarchy(name).size, high - low + 1)

    def levels(self, table: Table, name: str) -> None:  # noqa: ARG002 - one signature
        """Ranges have no levels."""
        return


def _range(texts: list[Label], low: Label, highs: Sequence[Label], high: int, sign: str) -> Label:
    if texts[high] is None or low is None or highs[high] is None:
        return TOP
    return f"{low}{sign if sign != '-' else separator([low, highs[high]])}{highs[high]}"


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """One column whose classes publish labels of its hierarchy.

    Attributes:
        level: per class, the level; height + 1 means that the cell is suppressed.
        value: per class, the code of any of its values, which has the label at that level.
    """

    level: NDArray[np.int32]
    value: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.level)

    def labels(self, table: Table, name: str) -> tuple[NDArray[np.int64], list[Label]]:
        """Per class the number of its label, and the labels as text."""
        hierarchy, values = (
            table.hierarchy(name),
            encode_labels(table.encode(name).values).to_pylist(),
        )
        out: list[Label] = [TOP]
        numbers = np.zeros(len(self.level), dtype=np.int64)
        for level in range(hierarchy.height + 1):
            at = self.level == level
            numbers[at] = len(out) + hierarchy.maps[level][self.value[at]]
            texts = values if level == 0 else hierarchy.labels[level]
            out += [None if text is None else str(text) for text in texts]
        return numbers, out

    def exact(self, used: NDArray[np.bool_]) -> bool:
        """Whether the classes in ``used`` publish the values themselves."""
        return bool((self.level == 0)[used].all())

    def leaves(self, table: Table, name: str) -> NDArray[np.int64]:
        """Per class, how many leaves its label covers."""
        hierarchy = table.hierarchy(name)
        out = np.full(len(self.level), hierarchy.size, dtype=np.int64)
        for level in range(hierarchy.height + 1):
            at = self.level == level
            out[at] = hierarchy.leaves[level][hierarchy.maps[level][self.value[at]]]
        return out

    def levels(self, table: Table, name: str) -> NDArray[np.int32]:  # noqa: ARG002
        """The level of each class."""
        return self.level


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """The finest label under which each value of a column may stand in a set.

    Attributes:
        level: per value, the level of that label; height + 1: none, the cell is suppressed.
        texts: per value, how it is written.
    """

    level: NDArray[np.int32]
    texts: list[str]


def label_atoms(table: Table, name: str, held: Holders) -> Atoms | None:
    """The atoms of a column; None where sets could not be read: a value holds their sign."""
    hierarchy = table.hierarchy(name)
    values = encode_labels(table.encode(name).values).to_pylist()
    own = {text for text in values if text is not None}
    if any(SIGN in text or text == MISSING for text in own):
        return None
    level = np.zeros(len(values), dtype=np.int32)
    texts = [MISSING if text is None else text for text in values]
    open_ = held.rare.copy()
    for one in range(1, hierarchy.height + 1):
        if not open_.any():
            break
        labels = [None if text is None else str(text) for text in hierarchy.labels[one]]
        people = np.bincount(hierarchy.maps[one], weights=held.people, minlength=len(labels))
        need = np.zeros(len(labels))
        np.maximum.at(need, hierarchy.maps[one], held.need)
        read = [text is not None and text not in own and SIGN not in text for text in labels]
        fine = (people >= need) & np.array(read)
        now = open_ & fine[hierarchy.maps[one]]
        level[now] = one
        for code in np.flatnonzero(now).tolist():
            texts[code] = str(labels[hierarchy.maps[one][code]])
        open_ &= ~now
    level[open_] = hierarchy.height + 1
    return Atoms(level, texts)


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """One column whose classes publish the set of their values where that says most.

    Attributes:
        number: per class, the number of its label.
        texts: the labels.
        members: per label, the codes of the values that it covers.
        wide: per label, how many leaves it covers.
        single: per label, whether it is one value.
    """

    number: NDArray[np.int64]
    texts: list[Label]
    members: list[NDArray[np.int64]]
    wide: NDArray[np.int64]
    single: NDArray[np.bool_]

    @classmethod
    def of(
        cls, table: Table, name: str, atoms: Atoms, rows: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> Sets:  # fmt: skip
        """The labels of classes: ``rows`` in their order, and where each begins."""
        codes, size = table.encode(name).codes[rows].astype(np.int64), len(atoms.level)
        owner = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        pairs = np.unique(owner * size + codes)
        owner, codes = pairs // size, pairs % size
        ends = np.searchsorted(owner, np.arange(len(starts) + 1))
        place: dict[bytes, int] = {}
        number = np.empty(len(starts), dtype=np.int64)
        found: list[tuple[Label, NDArray[np.int64], int, bool]] = []
        hierarchy = table.hierarchy(name)
        for c in range(len(starts)):  # classes, not rows
            held = codes[ends[c] : ends[c + 1]]
            key = held.tobytes()
            if key not in place:
                place[key] = len(found)
                found.append(_set_label(table, name, hierarchy, atoms, held))
            number[c] = place[key]
        texts, members, wide, single = zip(*found, strict=True)
        return cls(number, list(texts), list(members), np.array(wide), np.array(single))

    def __len__(self) -> int:
        return len(self.number)

    def labels(self, table: Table, name: str) -> tuple[NDArray[np.int64], list[Label]]:  # noqa: ARG002
        """Per class the number of its label, and the labels as text."""
        return self.number, self.texts

    def exact(self, used: NDArray[np.bool_]) -> bool:
        """Whether the classes in ``used`` publish the values themselves."""
        return bool(self.single[self.number][used].all())

    def leaves(self, table: Table, name: str) -> NDArray[np.int64]:  # noqa: ARG002
        """Per class, how many leaves its label covers."""
        return np.asarray(self.wide[self.number])

    def levels(self, table: Table, name: str) -> None:  # noqa: ARG002 - one signature
        """Sets have no levels."""
        return


def _set_label(
    table: Table, name: str, hierarchy: Hierarchy, atoms: Atoms, held: NDArray[np.int64]
) -> tuple[Label, NDArray[np.int64], int, bool]:
    """The label of a class that holds these values: text, values covered, leaves, whether one."""
    everything = np.arange(hierarchy.maps.shape[1])
    if len(held) == 1:
        text = encode_labels(table.encode(name).values.take(pa.array(held))).to_pylist()[0]
        return text, held, 1, True
    common, covered, leaves = TOP, everything, hierarchy.size
    for level in range(hierarchy.height, 0, -1):
        nodes = np.unique(hierarchy.maps[level][held])
        if len(nodes) > 1 or hierarchy.labels[level][nodes[0]] is None:
            break
        common = str(hierarchy.labels[level][nodes[0]])
        covered = np.flatnonzero(hierarchy.maps[level] == nodes[0])
        leaves = int(hierarchy.leaves[level][nodes[0]])
    levels = atoms.level[held]
    if (levels > hierarchy.height).any():
        return common, covered, leaves, False
    texts: dict[str, None] = {}
    inside = np.zeros(hierarchy.maps.shape[1], dtype=np.bool_)
    wide = 0
    for level in np.unique(levels)[::-1].tolist():  # coarse labels first: finer ones may be inside
        for code in held[levels == level].tolist():
            if inside[code]:
                continue
            node = hierarchy.maps[level][code]
            inside |= hierarchy.maps[level] == node if level else everything == code
            wide += int(hierarchy.leaves[level][node]) if level else 1
            texts[atoms.texts[code]] = None
    if wide >= leaves:
        return common, covered, leaves, False
    return SIGN.join(sorted(texts)), np.flatnonzero(inside), wide, False


ClassLabels = Ranges | Nodes | Sets


def label_classes(
    table: Table,
    ids: NDArray[np.int32],
    kinds: Mapping[str, str],
    need: NDArray[np.int64] | None,
) -> dict[str, ClassLabels]:
    """The tightest labels of classes, by column; ``kinds`` are range, node or set."""
    count = int(ids.max(initial=-1)) + 1
    kept = np.flatnonzero(ids >= 0)
    rows = kept[np.argsort(ids[kept], kind="stable")]
    starts = np.searchsorted(ids[rows], np.arange(count))
    return label_members(table, rows, starts, kinds, need, kept)


def label_members(
    table: Table,
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    kinds: Mapping[str, str],
    need: NDArray[np.int64] | None,
    kept: NDArray[np.int64],
) -> dict[str, ClassLabels]:
    """The same of classes whose rows stand one after the other, each from its start.

    A row may stand in several, as where a search compares them; ``kept`` are the rows that leave.
    """
    out: dict[str, ClassLabels] = {}
    for name, kind in kinds.items():
        held = None if need is None or kind == "node" else Holders.of(table, name, kept, need)
        if kind == "range":
            bounds = None if held is None else range_bounds(table, name, held)
            out[name] = _ranges(table, name, rows, starts, bounds)
            continue
        atoms = None if held is None else label_atoms(table, name, held)
        if kind == "set" and atoms is not None:
            out[name] = Sets.of(table, name, atoms, rows, starts)
        else:
            out[name] = _nodes(table, name, rows, starts)
    return out


def _ranges(
    table: Table,
    name: str,
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    bounds: Bounds | None,
) -> Ranges:
    encoded = table.encode(name)
    codes = encoded.codes[rows]
    low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    if encoded.values.null_count:  # a missing value and others have only the whole in common
        last = len(encoded.values) - 1
        low = np.where((high == last) & (low < last), 0, low)
    return Ranges(low.astype(np.int32), high.astype(np.int32), bounds)


def _nodes(table: Table, name: str, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> Nodes:
    hierarchy, codes = table.hierarchy(name), table.encode(name).codes[rows]
    value = codes[starts]
    level = np.full(len(starts), hierarchy.height + 1, dtype=np.int32)
    for one in range(hierarchy.height, -1, -1):
        labels = hierarchy.maps[one][codes]
        same = np.minimum.reduceat(labels, starts) == np.maximum.reduceat(labels, starts)
        level[same] = one
    return Nodes(level, value.astype(np.int32))
