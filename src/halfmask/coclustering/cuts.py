"""Where a numeric column is cut: equal frequency, equal width, or best against other columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.criterion import Criterion
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.search import Search
from halfmask.errors import InputError, ParameterError
from halfmask.table.sets import ANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Partition

_SMALL, _LARGE = Decimal("1e-12"), Decimal("1e17")  # beyond, numbers are written as 1.5E+20
_NOISE = 1e-9  # of the gap between two values
_LOWERED = Decimal(
    "0.001"
)  # the first bound is lowered so that the least value is inside, as printed


@dataclass(frozen=True, slots=True)
class Cuts:
    """Intervals that are open below and closed above; values beyond the ends join the end ones.

    Attributes:
        bounds: the ends of all intervals in ascending order, one more than intervals.
    """

    bounds: tuple[float, ...]

    def __repr__(self) -> str:
        return f"Cuts({len(self)} intervals)"

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def apply(self, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
        """The interval of each number, also of numbers the cuts were not learnt on."""
        inner = np.asarray(self.bounds[1:-1])
        return np.searchsorted(inner, numbers, side="left").astype(np.int32)

    def short(self, values: NDArray[np.float64]) -> Cuts:
        """The same intervals of the ascending ``values``, between bounds that are short to write.

        Bounds of whole numbers are whole; others keep three decimals, or as many more as leave
        every value on its side.
        """
        whole = bool((values == np.floor(values)).all())
        inner = [_short(values, bound, whole=whole) for bound in self.bounds[1:-1]]
        return Cuts((self.bounds[0], *inner, self.bounds[-1]))

    def labels(self) -> list[str]:
        """The intervals as text, with the least value (lowered a little) and the largest."""
        first, *ends = [Decimal(repr(bound)) for bound in self.bounds]
        texts = [plain(end) for end in (first - _LOWERED, *ends)]
        return [f"]{low},{high}]" for low, high in itertools.pairwise(texts)]


def open_labels(ends: Sequence[str]) -> list[str]:
    """Intervals between inner bounds as text; the least and the largest value stay unsaid."""
    if not ends:
        return [ANY]
    middle = [f"]{low},{high}]" for low, high in itertools.pairwise(ends)]
    return [f"<={ends[0]}", *middle, f">{ends[-1]}"]


def plain(number: Decimal) -> str:
    """A number as decimals without zeros at the end; very large and small ones: an exponent."""
    if number and not _SMALL <= abs(number) < _LARGE:
        return str(number)
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _short(values: NDArray[np.float64], bound: float, *, whole: bool) -> float:
    """The bound as short as it can be written with the same values up to it."""
    place = int(np.searchsorted(values, bound, side="right"))
    if whole:
        return float(np.floor(bound))
    low = values[place - 1] if place else -np.inf
    high = values[place] if place < len(values) else np.inf
    for places in range(3, 18):
        near = round(bound, places)
        if low <= near < high:
            return near
    return bound


def equal_frequency(numbers: NDArray[np.float64], parts: int) -> Cuts:
    """Intervals that hold about as many rows each (quantiles, equal bounds joined)."""
    _require(numbers, parts)
    values = np.unique(numbers)
    bounds = np.quantile(numbers, np.linspace(0, 1, parts + 1))
    place = np.minimum(np.searchsorted(values, bounds), len(values) - 1)
    above, below = values[place], values[np.maximum(place - 1, 0)]
    close = above - bounds <= _NOISE * (above - below)  # a value, but for the last digits
    return _cuts(np.unique(np.where(close, above, bounds)))


def equal_width(numbers: NDArray[np.float64], parts: int) -> Cuts:
    """Intervals of the same width."""
    _require(numbers, parts)
    return _cuts(np.unique(np.linspace(numbers.min(), numbers.max(), parts + 1)))


def best_cuts(numbers: NDArray[np.float64], target: NDArray[np.int32], *, seed: int = 0) -> Cuts:
    """The intervals of least MODL cost against a categorical ``target``; bounds lie mid-way."""
    _require(numbers, 1)
    values, codes = np.unique(numbers, return_inverse=True)
    groups = int(target.max()) + 1
    observed = observe(
        [Variable("numbers", "numeric", len(values)), Variable("target", "categorical", groups)],
        [codes.reshape(-1).astype(np.int32), target],
    )
    search = Search.of(Criterion(observed), seed)
    partition: Partition = (
        np.zeros(len(values), dtype=np.int32),
        np.arange(groups, dtype=np.int32),
    )
    for _ in range(3):  # values near the cuts are looked at one by one from the second time on
        partition = search.improve(0, partition)
    ends = np.flatnonzero(np.diff(partition[0]))
    inner = (values[ends] + values[ends + 1]) / 2
    return _cuts(np.concatenate([values[:1], inner, values[-1:]]))


def _cuts(bounds: NDArray[np.float64]) -> Cuts:
    ends = bounds.tolist()
    return Cuts(tuple(ends if len(ends) > 1 else [ends[0], ends[0]]))


def _require(numbers: NDArray[np.float64], parts: int) -> None:
    if parts < 1:
        raise ParameterError("parts", parts, "1 or more")
    if not len(numbers) or not np.isfinite(numbers).all():
        raise InputError("Only finite numbers can be cut into intervals: there is none, or NaN.")
