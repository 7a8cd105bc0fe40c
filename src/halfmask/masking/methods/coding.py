"""Top and bottom coding, and rounding.

Definition: values beyond a threshold take the threshold's (or their mean, where at least 3 people
    stand behind it, or are blanked); a number takes a multiple of a base near it, at random so that
    its expectation stays, or the nearest.
Source: Hundepool and others, "Statistical Disclosure Control", 2012, sections 3.2 and 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import ParameterError
from halfmask.masking.numeric_columns import bound_as_number, numbers_in
from halfmask.masking.step import (
    MaskStep,
    MaskWords,
    Outcome,
    anything,
    one_column,
    register_mask,
    some_columns,
)
from halfmask.models.verdict import number, whole_number, word
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.masking.step import Rows

_REPLACE = {"threshold": "the threshold", "mean": "the mean of those coded", "missing": "nothing"}


@dataclass(frozen=True, slots=True)
class _Threshold(MaskStep):
    """What lies beyond a threshold takes one common value."""

    sign: ClassVar[float]  # 1: above it, -1: below it

    column: str = field(metadata=one_column("ordered"))
    share: float | None = field(default=None, metadata=number(0, 1, open_low=True))
    value: Any = field(default=None, metadata=anything())
    replace: str = field(default="threshold", metadata=word("Coded values become", **_REPLACE))
    least: int = field(default=3, metadata=whole_number(3))

    def require(self) -> None:
        """Demand one of share and value."""
        if (self.share is None) == (self.value is None):
            raise ParameterError("share", self.share, "either share= or value=, and not both")

    def apply(self, rows: Rows) -> Outcome:
        """Code the values beyond the threshold."""
        return _code(self, rows, sign=self.sign)


@register_mask
@dataclass(frozen=True, slots=True)
class TopCode(_Threshold):
    """Give the highest values one common value.

    With ``share``, so many of the people (0 to 1), counting everybody once, get the value of the
    next below them; with ``value``, everything above it does. ``replace="mean"`` shows the mean of
    what lies above, of at least ``least`` people: of fewer it shows the threshold, since somebody
    could take the own value off.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [20, 30, 40, 90]}, schema={"age": "quasi"})
        >>> release = hm.mask(people, hm.masks.TopCode("age", value=50))
        >>> sorted(release.to_arrow()["age"].to_pylist())
        [20, 30, 40, 50]
    """

    name: ClassVar[str] = "top-code"
    sign: ClassVar[float] = 1.0
    words: ClassVar[MaskWords] = MaskWords(
        "Values above a threshold take one common value.",
        "People who stand out by the highest values.",
        "Everybody below the threshold, and whoever stands out by several columns together.",
    )


@register_mask
@dataclass(frozen=True, slots=True)
class BottomCode(_Threshold):
    """Give the lowest values one common value; as ``TopCode`` from below."""

    name: ClassVar[str] = "bottom-code"
    sign: ClassVar[float] = -1.0
    words: ClassVar[MaskWords] = MaskWords(
        "Values below a threshold take one common value.",
        "People who stand out by the lowest values.",
        "Everybody above the threshold, and whoever stands out by several columns together.",
    )


def _code(mask: _Threshold, rows: Rows, *, sign: float) -> Outcome:
    declared = rows.table.schema.columns.get(mask.column)
    if declared is not None and declared.order is not None:
        return _coded_in_order(mask, rows, declared.order, up=sign > 0)
    numbers = numbers_in(rows.table, mask.column)
    if not numbers.there.any():
        return Outcome(facts={"coded": 0})
    values = sign * numbers.values
    if mask.share is not None:
        bound = _bound(values, numbers.there, rows, mask.share)
    else:
        bound = sign * bound_as_number("value", mask.value, numbers.kind)
    beyond = numbers.there & (np.where(numbers.there, values, -np.inf) > bound)
    out = numbers.values.copy()
    if mask.replace == "mean":
        people = len(np.unique(rows.people()[0][beyond]))
        told = people >= mask.least
        if beyond.any():
            out[beyond] = numbers.values[beyond].mean() if told else sign * bound
        facts = {
            "coded": int(beyond.sum()),
            "people coded": people,
            "replaced by": "mean" if told else f"threshold: a mean needs {mask.least} people",
        }
        return Outcome({mask.column: numbers.back(out)}, facts=facts)
    if mask.replace == "missing":
        blanked = _blank(rows.table.arrow[mask.column], beyond)
        return Outcome({mask.column: blanked}, facts={"coded": int(beyond.sum())})
    out[beyond] = sign * bound
    return Outcome({mask.column: numbers.back(out)}, facts={"coded": int(beyond.sum())})


def _bound(
    values: NDArray[np.float64], there: NDArray[np.bool_], rows: Rows, share: float
) -> float:
    """What a share of the people, at least one of them, lie above, counting everybody once."""
    owner, people = rows.people()
    best = np.full(people, -np.inf)
    np.maximum.at(best, owner[there], values[there])
    best = best[np.isfinite(best)]
    place = max(0, len(best) - 1 - max(1, int(np.floor(share * len(best) + 1e-9))))
    return float(np.partition(best, place)[place])


def _coded_in_order(mask: _Threshold, rows: Rows, order: Sequence[object], *, up: bool) -> Outcome:
    """An ordinal column, by the declared order alone: who holds the threshold plays no part."""
    if mask.replace == "mean":
        raise ParameterError("replace", "mean", "threshold or missing for an ordinal column")
    encoded = rows.table.encode(mask.column)
    held = encoded.values.drop_null()
    places = {canonical(one): place for place, one in enumerate(order)}
    there = encoded.codes < len(held)
    rank = np.array([*(places[canonical(one)] for one in held.to_pylist()), -1])
    sign = 1 if up else -1
    ranks = sign * rank[np.minimum(encoded.codes, len(held))].astype(np.float64)
    if mask.share is not None:
        if not there.any():
            return Outcome(facts={"coded": 0})
        bound = _bound(ranks, there, rows, mask.share)
    elif canonical(mask.value) in places:
        bound = float(sign * places[canonical(mask.value)])
    else:
        raise ParameterError(
            "value", mask.value, f"one that the declared order of '{mask.column}' lists"
        )
    beyond = there & (ranks > bound)
    values = rows.table.arrow[mask.column]
    if mask.replace == "missing":
        return Outcome({mask.column: _blank(values, beyond)}, facts={"coded": int(beyond.sum())})
    threshold = pa.scalar(canonical(order[int(sign * bound)])).cast(encoded.values.type)
    coded = pc.if_else(pa.array(beyond), threshold, _plain(values))
    return Outcome({mask.column: coded}, facts={"coded": int(beyond.sum())})


def _blank(values: pa.ChunkedArray, gone: NDArray[np.bool_]) -> pa.ChunkedArray:
    plain = _plain(values)
    return pc.if_else(pa.array(gone), pa.scalar(None, plain.type), plain)


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


_HOW = {
    "nearest": "the nearest multiple",
    "random": "the next below or above, so that sums stay in expectation",
    "down": "the next below",
    "up": "the next above",
}


@register_mask
@dataclass(frozen=True, slots=True)
class Round(MaskStep):
    """Replace numbers by multiples of ``base``.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"pay": [1234, 5678]}, schema={"pay": "quasi"})
        >>> release = hm.mask(people, hm.masks.Round("pay", base=100))
        >>> sorted(release.to_arrow()["pay"].to_pylist())
        [1200, 5700]
    """

    name: ClassVar[str] = "round"
    words: ClassVar[MaskWords] = MaskWords(
        "Numbers become multiples of a base.",
        "Matching people by exact figures.",
        "High and low values, which stand out however they are rounded.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns("numbers"))
    base: float = field(metadata=number(0, open_low=True))
    how: str = field(default="nearest", metadata=word("A number becomes", **_HOW))

    def apply(self, rows: Rows) -> Outcome:
        """Round each column."""
        out = {}
        for name in self.columns:
            numbers = numbers_in(rows.table, name)
            scaled = numbers.values / float(self.base)
            below = np.floor(scaled)
            if self.how == "nearest":
                steps = np.floor(scaled + 0.5)
            elif self.how == "random":
                steps = below + (rows.random.random(len(scaled)) < scaled - below)
            else:
                steps = below if self.how == "down" else np.ceil(scaled)
            rounded = steps * float(self.base)
            exact = numbers.whole and float(self.base) != int(self.base)
            out[name] = numbers.back(rounded, exact=exact)
        return Outcome(out)
