"""Data intrusion simulation (DIS): if one row fits somebody of the population, is it the right one.

Definition: of a table that holds the share d of its population, with U people alone in their class
and P in classes of two, dis = U d / (U d + P (1 - d)). DIS-SUDA spreads this over the special
uniques by their scores s: 1 / (1 + n (1 / dis - 1) / (s^q sum s^-q)), where n of them have a score,
q = 1 + (8 - A) / 20 and A is the number of columns; the odds against a right match, averaged over
them, are those of dis. Rows without a score have 0.
Source: Skinner and Elliot, "A measure of disclosure risk for microdata", 2002; Elliot and Manning,
"Using DIS to modify the classification of special uniques", 2003.

As in sdcMicro's suda2, where d is called DisFraction and n are all people alone: the same where
column sets of every size are looked at. With more than 28 columns q stays 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, exact, failed
from halfmask.metrics.risk.reidentification import RiskBin, bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes

_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class Intrusion:
    """How likely a row that alone fits somebody of the population is the right one.

    Attributes:
        fraction: the share of the population that is in the table.
        unique: people alone in their class; ``paired`` those in classes of two.
        chance: the chance for the whole table (DIS).
        highest: the highest DIS-SUDA score of a row; 0 where none has any.
        rows: how many rows have one.
        distribution: these rows by their score.
    """

    fraction: float
    unique: int
    paired: int
    chance: Estimate
    highest: float
    rows: int
    distribution: tuple[RiskBin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "fraction": self.fraction,
            "unique": self.unique,
            "paired": self.paired,
            "chance": self.chance.to_dict(),
            "highest": self.highest,
            "rows": self.rows,
            "distribution": [
                {"low": one.low, "high": one.high, "rows": one.rows} for one in self.distribution
            ],
        }


def intrusion(
    classes: Classes, scores: NDArray[np.float64], columns: int, fraction: float
) -> Intrusion:
    """Measure classes that have these SUDA ``scores`` over so many ``columns``."""
    unique, paired = _alone_and_paired(classes)
    chances = dis_scores(classes, scores, columns, fraction)
    held = chances > 0
    return Intrusion(
        fraction,
        unique,
        paired,
        _chance(unique, paired, fraction),
        float(chances.max(initial=0.0)),
        int(classes.rows[held].sum()),
        tuple(bins(classes.rows[held], chances[held], _EDGES)),
    )


def dis_scores(
    classes: Classes, scores: NDArray[np.float64], columns: int, fraction: float
) -> NDArray[np.float64]:
    """Per class, the DIS-SUDA score; 0 where the SUDA score is."""
    chance = _chance(*_alone_and_paired(classes), fraction).value
    held = scores > 0
    out = np.zeros(len(scores))
    if chance is None or not held.any():
        return out
    power = scores[held] ** max(0.0, 1 + (8 - columns) / 20)
    # Odds that the match is wrong: a class with a high score has less than its part of them.
    wrong = int(held.sum()) * (1 / chance - 1) / (power * (1 / power).sum())
    out[held] = 1 / (1 + wrong)
    return out


def by_class(
    classes: Classes, scores: NDArray[np.float64], of_row: NDArray[np.int32]
) -> NDArray[np.float64]:
    """The score of each class from those of its rows, which are the same."""
    out = np.zeros(len(classes))
    out[of_row] = scores
    return out


def _alone_and_paired(classes: Classes) -> tuple[int, int]:
    return int((classes.people == 1).sum()), 2 * int((classes.people == 2).sum())


def _chance(unique: int, paired: int, fraction: float) -> Estimate:
    if not unique:
        return failed("Nobody is alone in the table: no row fits anybody alone.")
    if fraction == 1:
        return exact(1.0, unique, "The table is the population.")
    right, wrong = unique * fraction, paired * (1 - fraction)
    if not wrong:
        return Estimate(
            1.0, None, None, unique, trusted=False, reason="No class holds just two people."
        )
    return Estimate(right / (right + wrong), None, None, unique + paired)
