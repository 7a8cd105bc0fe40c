"""Where a numeric column is cut: equal frequency, equal width, or best against other columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.criterion import Criterion
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.search import Search
from halfmask.errors import InputError, ParameterError
from halfmask.table.sets import ANY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import Partition

_LOWERED = 0.001  # the first bound is lowered so that the least value is inside, as printed


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

    def labels(self, *, closed: bool = True) -> list[str]:
        """The intervals as text; where not ``closed``, the least and largest value stay unsaid."""
        texts = _texts(self.bounds)
        texts[0] = _texts((self.bounds[0] - _LOWERED, *self.bounds[1:]))[0]
        out = [f"]{low},{high}]" for low, high in itertools.pairwise(texts)]
        if closed:
            return out
        return [f"<={texts[1]}", *out[1:-1], f">{texts[-2]}"] if len(out) > 1 else [ANY]


def _texts(bounds: tuple[float, ...]) -> list[str]:
    """The bounds with three decimals, or as many more as keep them apart."""
    for places in range(3, 18):
        texts = [f"{bound:.{places}f}".rstrip("0").rstrip(".") for bound in bounds]
        if len(set(texts)) == len(set(bounds)):
            return texts
    return [repr(bound) for bound in bounds]


def equal_frequency(numbers: NDArray[np.float64], parts: int) -> Cuts:
    """Intervals that hold about as many rows each (quantiles, equal bounds joined)."""
    _require(numbers, parts)
    bounds = np.unique(np.quantile(numbers, np.linspace(0, 1, parts + 1)))
    return _cuts(bounds)


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
