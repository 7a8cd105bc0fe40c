"""Noise that is added to numbers; it is not that of differential privacy, and claims nothing.

Definition: additive x + e with sd(e) = level sd(x); correlated e ~ N(0, level^2 S) of the columns
    together; multiplicative x exp(level z - level^2 / 2); outliers: additive, for rows far out.
    With ``keep`` the masked column is moved and scaled to the mean and variance that it had.
Source: Brand, "Microdata protection through noise addition", 2002; Kim, "A method for limiting
    disclosure in microdata based on random noise and transformation", 1986.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.masking.mask import MaskStep, MaskWords, Outcome, register_mask, some_columns
from halfmask.masking.numbers import numbers_in
from halfmask.models.verdict import number, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.mask import Rows
    from halfmask.masking.numbers import Numbers

    Floats = NDArray[np.float64]

_KINDS = {
    "additive": "to each column for itself",
    "correlated": "with the correlations of the columns",
    "multiplicative": "as a factor, larger for larger numbers",
    "outliers": "only to rows that lie far out",
}
_KEEP = {"nothing": "nothing", "moments": "mean and variance"}
_FAR = 3.0  # deviations, by the median and the median deviation, from which a row lies far out


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
            moved = _correlated(numbers, float(self.level), rows.random)
        else:
            moved = [self._moved(one, rows.random) for one in numbers]
        out = {}
        for one, values in zip(numbers, moved, strict=True):
            kept = _with_moments(one, values) if self.keep == "moments" else values
            out[one.name] = one.back(kept)
        return Outcome(out)

    def _moved(self, numbers: Numbers, random: np.random.Generator) -> Floats:
        values, level = numbers.values, float(self.level)
        drawn = random.standard_normal(len(values))
        if self.kind == "multiplicative":
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


def _correlated(numbers: list[Numbers], level: float, random: np.random.Generator) -> list[Floats]:
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
