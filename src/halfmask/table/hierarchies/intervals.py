"""Numbers merged into intervals: of equal widths that nest, or between explicit bounds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.tree import Levels, assemble, check_top, options, with_top
from halfmask.table.values import numbers_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy

_KEYS = ("widths", "origin", "bounds", "top")
_FAR = 2**53  # beyond this many intervals from the origin a float no longer tells neighbours apart
MOST_WIDTH = 2**62  # sums of whole numbers below this fit a machine word


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of growing width, closed below and open above.

    Whole numbers get labels such as ``20-24``, others ``[20, 25)``; both mean 20 <= x < 25.

    Attributes:
        widths: the width at each level; each a multiple of the one before.
        origin: where one interval of every level begins.
        bounds: instead of widths, the cut points, or one list of cut points per level; a coarser
            level keeps some of the cuts of the finer one.
        top: the label of the root that is added; False: leave it open.
    """

    widths: Sequence[float] = ()
    origin: float = 0
    bounds: Sequence[Any] = ()
    top: str | bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        cuts = tuple(self.bounds)
        if cuts and not isinstance(cuts[0], Sequence):
            cuts = (cuts,)
        object.__setattr__(self, "bounds", tuple(tuple(level) for level in cuts))
        check_top("intervals", self.top)
        faults = self._width_faults() + self._bound_faults()
        if bool(self.widths) == bool(self.bounds):
            faults.append("hierarchy intervals: give widths or bounds (one of them).")
        if faults:
            raise HierarchyError(*faults)

    def _width_faults(self) -> list[str]:
        if not all(_is_number(width) and 0 < width < MOST_WIDTH for width in self.widths):
            return ["hierarchy intervals: widths must be numbers above 0 and below 2**62."]
        if not _is_number(self.origin) or abs(self.origin) >= MOST_WIDTH:
            return ["hierarchy intervals: origin must be a number within 2**62."]
        return [
            f"hierarchy intervals: width {coarse} is not a multiple of width {fine}, so the levels"
            " do not nest."
            for fine, coarse in zip(self.widths, self.widths[1:], strict=False)
            if (_exact(coarse) / _exact(fine)).denominator != 1 or coarse <= fine
        ]

    def _bound_faults(self) -> list[str]:
        faults = []
        for level, cuts in enumerate(self.bounds, start=1):
            if not cuts or not all(_is_number(cut) for cut in cuts):
                return ["hierarchy intervals: bounds must be numbers."]
            if any(low >= high for low, high in itertools.pairwise(cuts)):
                faults.append(f"hierarchy intervals: the bounds of level {level} do not ascend.")
            if level > 1 and not set(cuts) <= set(self.bounds[level - 2]):
                faults.append(
                    f"hierarchy intervals: level {level} cuts where level {level - 1} does not, so"
                    " the levels do not nest."
                )
        return faults

    @classmethod
    def parse(cls, value: object, folder: Path) -> Intervals:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``intervals =`` in the schema file."""
        if isinstance(value, list | tuple):
            return cls(widths=value)
        chosen = options("intervals", value, _KEYS)
        for key in ("widths", "bounds"):
            if not isinstance(chosen.get(key, []), list | tuple):
                raise HierarchyError(f"hierarchy intervals: {key} must be a list of numbers.")
        return cls(**chosen)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        rest: dict[str, object] = {} if self.origin == 0 else {"origin": self.origin}
        rest = with_top(rest, self.top)
        if self.widths:
            widths = list(self.widths)
            return {"intervals": {"widths": widths, **rest} if rest else widths}
        levels = [list(cuts) for cuts in self.bounds]
        return {"intervals": {"bounds": levels[0] if len(levels) == 1 else levels, **rest}}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Put each number into its interval of every level."""
        numbers = numbers_of(column, values.drop_null())
        inside = self._by_width(column, numbers) if self.widths else self._by_bound(numbers)
        return assemble(column, values, Levels(inside), top=self.top)

    def _by_width(self, column: str, numbers: NDArray[Any]) -> list[list[str]]:
        origin, first = _exact(self.origin), _exact(self.widths[0])
        index = _index(column, numbers, origin, first)
        whole = _whole(numbers, [self.origin, *self.widths])
        out = []
        for width in map(_exact, self.widths):
            wide = index // int(width / first)
            codes, inverse = np.unique(wide, return_inverse=True)
            lows = [origin + int(code) * width for code in codes]
            names = [_label(low, low + width, whole=whole) for low in lows]
            out.append([names[code] for code in inverse])
        return out

    def _by_bound(self, numbers: NDArray[Any]) -> list[list[str]]:
        out = []
        for cuts in self.bounds:
            whole = _whole(numbers, cuts)
            exact = [_exact(cut) for cut in cuts]
            names = [
                f"<{_text(exact[0])}",
                *(_label(a, b, whole=whole) for a, b in itertools.pairwise(exact)),
                f">={_text(exact[-1])}",
            ]
            places = np.searchsorted(np.asarray(cuts), numbers, side="right")
            out.append([names[place] for place in places])
        return out


def _index(column: str, numbers: NDArray[Any], origin: Fraction, width: Fraction) -> NDArray[Any]:
    """The number of the interval that holds each value; exact for the bounds as printed."""
    small = bool(np.all((numbers > -MOST_WIDTH) & (numbers < MOST_WIDTH)))
    if small and numbers.dtype.kind == "i" and origin.denominator == 1 and width.denominator == 1:
        return np.asarray((numbers - int(origin)) // int(width))
    place = np.floor((numbers.astype(np.float64) - float(origin)) / float(width))
    if not bool(np.all(np.abs(place) < _FAR)):
        raise HierarchyError(
            f"Column '{column}': the widths are too small for numbers this large; widen them."
        )
    index = place.astype(np.int64)
    codes, inverse = np.unique(index, return_inverse=True)
    low = np.array([float(origin + int(code) * width) for code in codes])[inverse]
    high = np.array([float(origin + (int(code) + 1) * width) for code in codes])[inverse]
    return np.asarray(index - (numbers < low) + (numbers >= high))


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    )


def _exact(number: float) -> Fraction:
    return Fraction(str(number))


def _whole(numbers: NDArray[Any], edges: Sequence[float]) -> bool:
    return numbers.dtype.kind == "i" and all(_exact(e).denominator == 1 for e in edges)


def _label(low: Fraction, high: Fraction, *, whole: bool) -> str:
    if not whole:
        return f"[{_text(low)}, {_text(high)})"
    last = high - 1
    if low == last:
        return _text(low)
    return f"{_text(low)} to {_text(last)}" if low < 0 else f"{_text(low)}-{_text(last)}"


def _text(number: Fraction) -> str:
    """The number as plain decimals; every bound is a sum of decimals, so this ends."""
    if number.denominator == 1:
        return str(number.numerator)
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(number * 10**places))).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"
