"""The three attacks that the Article 29 Working Party names, tried on a synthetic table.

Definition: singling out: a rare combination of values in the synthetic table fits exactly one
    original row. Linkability: two halves of an original row have the same nearest synthetic row.
    Inference: the nearest synthetic row, found without a column, tells that column's value. Each
    rate stands beside that of an attacker who guesses without the synthetic table.
Source: Article 29 Working Party, Opinion 05/2014; Giomi et al., "A unified framework for
    quantifying privacy risk in synthetic data", 2023.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.nearest import nearest_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ATTACKS = 500
_Z = 1.96


@dataclass(frozen=True, slots=True)
class Attack:
    """How often an attack was right, with a 95% interval, and how often a guess was.

    Attributes:
        rate: the share of right answers.
        low: the lower end of the interval.
        high: the upper end.
        baseline: the share of right guesses without the synthetic table.
        attacks: how many were tried.
    """

    rate: float
    low: float
    high: float
    baseline: float
    attacks: int

    def to_dict(self) -> dict[str, float]:
        """Return the figures as plain values."""
        return asdict(self)


def attacks(
    original: NDArray[np.int32], synthetic: NDArray[np.int32], random: np.random.Generator
) -> dict[str, Any]:
    """Try the three attacks on rows given as codes, (rows, columns) each."""
    size = min(_ATTACKS, len(original))
    targets = original[random.choice(len(original), size, replace=False)]
    return {
        "singling_out": singling_out(original, synthetic, random).to_dict(),
        "linkability": linkability(targets, synthetic, random).to_dict(),
        "inference": {
            str(column): inference(targets, original, synthetic, column).to_dict()
            for column in range(original.shape[1])
        },
    }


def singling_out(
    original: NDArray[np.int32], synthetic: NDArray[np.int32], random: np.random.Generator
) -> Attack:
    """Look for a person by the values of three columns that are unique in the synthetic table."""
    width = original.shape[1]
    right = tried = guessed = 0
    for _ in range(40):
        columns = random.choice(width, min(3, width), replace=False)
        real, drawn = _ids(original[:, columns], synthetic[:, columns])
        count = int(max(real.max(), drawn.max())) + 1
        in_real = np.bincount(real, minlength=count)
        alone = np.flatnonzero(np.bincount(drawn, minlength=count) == 1)
        right += int((in_real[alone] == 1).sum())
        tried += len(alone)
        guessed += round(len(alone) * _chance(original[:, columns], random))
    return _attack(right, tried, guessed / max(tried, 1))


def _chance(rows: NDArray[np.int32], random: np.random.Generator) -> float:
    """How often values drawn column by column fit exactly one row."""
    size = min(_ATTACKS, len(rows))
    guess = np.column_stack([random.choice(rows[:, k], size) for k in range(rows.shape[1])])
    real, drawn = _ids(rows, guess)
    counts = np.bincount(real, minlength=int(max(real.max(), drawn.max())) + 1)
    return float((counts[drawn] == 1).mean())


def linkability(
    targets: NDArray[np.int32], synthetic: NDArray[np.int32], random: np.random.Generator
) -> Attack:
    """Whether two halves of a row lead to the same synthetic row."""
    columns = random.permutation(targets.shape[1])
    halves = columns[: len(columns) // 2], columns[len(columns) // 2 :]
    if not len(halves[0]):
        return _attack(0, len(targets), 0.0)
    shuffled = random.permutation(len(synthetic))
    found = [nearest_rows(targets[:, h], synthetic[shuffled][:, h])[0] for h in halves]
    return _attack(int((found[0] == found[1]).sum()), len(targets), 1 / len(synthetic))


def inference(
    targets: NDArray[np.int32],
    original: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    column: int,
) -> Attack:
    """Whether the nearest synthetic row, found by the other columns, has the row's value."""
    others = [k for k in range(targets.shape[1]) if k != column]
    mode = np.bincount(original[:, column]).argmax()
    baseline = float((targets[:, column] == mode).mean())
    if not others:
        return _attack(int(baseline * len(targets)), len(targets), baseline)
    place, _ = nearest_rows(targets[:, others], synthetic[:, others])
    right = synthetic[place, column] == targets[:, column]
    return _attack(int(right.sum()), len(targets), baseline)


def _ids(
    first: NDArray[np.int32], second: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    both = np.unique(np.concatenate([first, second]), axis=0, return_inverse=True)[1].reshape(-1)
    return both[: len(first)], both[len(first) :]


def _attack(right: int, tried: int, baseline: float) -> Attack:
    """The rate with Wilson's interval."""
    if not tried:
        return Attack(0.0, 0.0, 1.0, baseline, 0)
    rate, square = right / tried, _Z**2 / tried
    middle = (rate + square / 2) / (1 + square)
    half = _Z * math.sqrt(rate * (1 - rate) / tried + square / (4 * tried)) / (1 + square)
    return Attack(rate, max(0.0, middle - half), min(1.0, middle + half), baseline, tried)
