"""Attacks that guess: a value, whether a match is right, whether somebody is in the table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate, proportion
from halfmask.metrics.risk.attack import LIMIT, AttackOutcome, judge_attack
from halfmask.metrics.risk.disclosure import Attribution, attribution
from halfmask.metrics.risk.distances import row_distances
from halfmask.metrics.risk.reidentification import RiskBin, bins
from halfmask.metrics.utility.tables import sample_leaves
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.risk.attack import Targets
    from halfmask.metrics.risk.distances import RowDistances
    from halfmask.table.classes import Classes


NAME = "inference"
TOLERANCE = 0.05


def inference(
    targets: Targets, secret: str, known: Sequence[str] | None = None, *, limit: float = LIMIT
) -> AttackOutcome:
    """Try to guess ``secret`` from ``known``; None: from the quasi-identifiers.

    Definition: the attacker knows all columns of a person but one, takes the nearest released row
    and guesses its value; right is the same value, or, for numbers, within a tolerance of the true
    one.
    Source: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data",
    2023.
    """
    sides = targets.sides
    names = known if known is not None else sides.original.schema.quasi
    columns = sides.columns_named([name for name in names if name != secret])
    column = sides.columns[secret]
    compared = row_distances(columns)
    attack = proportion(
        _count_right(targets, compared, column, targets.members), len(targets.members)
    )
    control = None
    if len(targets.control):
        hits = _count_right(targets, compared, column, targets.control)
        control = proportion(hits, len(targets.control))
    drawn = targets.random.integers(0, sides.after, len(targets.members))
    guess = sample_leaves(column, sides.released_at(drawn), targets.random)
    blind = _same(column, targets.members, guess)
    baseline = proportion(int(blind.sum()), len(targets.members))
    attacker = (
        f"The attacker knows {', '.join(c.name for c in columns)} of a person and guesses "
        f"{secret} from the released row that is most alike."
    )
    return judge_attack(NAME, attacker, attack, control, baseline, limit=limit, column=secret)


def _count_right(
    targets: Targets, compared: RowDistances, column: SharedColumn, rows: NDArray[np.int64]
) -> int:
    found, _ = compared.nearest(rows)
    guess = sample_leaves(column, targets.sides.released_at(found[:, 0]), targets.random)
    return int(_same(column, rows, guess).sum())


def _same(
    column: SharedColumn, rows: NDArray[np.int64], guess: NDArray[np.int64]
) -> NDArray[np.bool_]:
    truth = column.before[rows]
    if column.numbers is None:
        return np.asarray(truth == guess)
    actual = column.numbers[truth]
    return np.asarray(np.abs(column.numbers[guess] - actual) <= TOLERANCE * np.abs(actual))


_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class Intrusion(Result):
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


def measure_intrusion(
    classes: Classes, scores: NDArray[np.float64], columns: int, fraction: float
) -> Intrusion:
    """Measure classes that have these SUDA ``scores`` over so many ``columns``.

    Definition: of a table that holds the share d of its population, with U people alone in their
    class and P in classes of two, dis = U d / (U d + P (1 - d)). DIS-SUDA spreads this over the
    special uniques by their scores s: 1 / (1 + n (1 / dis - 1) / (s^q sum s^-q)), where n of them
    have a score, q = 1 + (8 - A) / 20 and A is the number of columns; the odds against a right
    match, averaged over them, are those of dis. Rows without a score have 0.
    Source: Skinner and Elliot, "A measure of disclosure risk for microdata", 2002; Elliot and
    Manning, "Using DIS to modify the classification of special uniques", 2003.

    As in sdcMicro's suda2, where d is called DisFraction and n are all people alone: the same where
    column sets of every size are looked at. With more than 28 columns q stays 0.
    """
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
        return failed_estimate("Nobody is alone in the table: no row fits anybody alone.")
    if fraction == 1:
        return exact_estimate(1.0, unique, "The table is the population.")
    right, wrong = unique * fraction, paired * (1 - fraction)
    if not wrong:
        return Estimate(
            1.0, None, None, unique, trusted=False, reason="No class holds just two people."
        )
    return Estimate(right / (right + wrong), None, None, unique + paired)


ATTACKER = (
    "The attacker knows a whole row and asks whether its person was in the original, by how near "
    "the nearest released row is."
)


@dataclass(frozen=True, slots=True)
class Membership(Result):
    """How well presence can be told.

    Attributes:
        area: the area under the curve, 0.5 is guessing.
        advantage: the largest gap between hits and false alarms.
        attribution: which rows could be anybody's, and which are copies; it needs no control.
    """

    attacker: str = field(default=ATTACKER, kw_only=True)
    area: Estimate
    advantage: Estimate
    attribution: Attribution


def membership(targets: Targets) -> Membership:
    """Measure presence against the control; without one only what needs none.

    Definition: the attacker says "in" where the nearest released row is nearer than a threshold;
    the figure is the area under the curve of all thresholds (0.5 is guessing), and the advantage
    its largest gap between hits and false alarms.
    Source: Hilprecht et al., "Monte Carlo and reconstruction membership inference attacks", 2019.
    """
    shared = attribution(targets.sides, targets.size)
    if not len(targets.control):
        nothing = failed_estimate("It needs people who were not in the original: give control=.")
        return Membership(nothing, nothing, shared)
    compared = row_distances(list(targets.sides.columns.values()))
    inside = compared.nearest(targets.members)[1][:, 0]
    outside = compared.nearest(targets.control)[1][:, 0]
    area = float(
        (inside[:, None] < outside[None, :]).mean()
        + (inside[:, None] == outside[None, :]).mean() / 2
    )
    a, b = len(inside), len(outside)
    # Hanley and McNeil's standard error.
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (area * (1 - area) + (a - 1) * (one - area**2) + (b - 1) * (two - area**2)) / (a * b)
    spread = 1.96 * math.sqrt(max(variance, 0.0))
    cuts = np.unique(np.concatenate([inside, outside]))
    hits = np.searchsorted(np.sort(inside), cuts, side="right") / a
    alarms = np.searchsorted(np.sort(outside), cuts, side="right") / b
    gap = float(np.max(hits - alarms, initial=0.0))
    wide = 1.96 * math.sqrt(1 / (4 * a) + 1 / (4 * b))
    return Membership(
        Estimate(area, max(0.0, area - spread), min(1.0, area + spread), a + b),
        Estimate(gap, max(0.0, gap - wide), min(1.0, gap + wide), a + b,
                 reason="The largest gap over all thresholds leans upward."),
        shared,
    )  # fmt: skip
