"""Inference: can a value of a person be guessed from the others through the release?

Definition: the attacker knows all columns of a person but one, takes the nearest released row and
guesses its value; right is the same value, or, for numbers, within a tolerance of the true one.
Source: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", 2023.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import proportion
from halfmask.metrics.risk.criterion import LIMIT, Criterion, judge
from halfmask.metrics.risk.space import space
from halfmask.metrics.utility.draw import drawn_leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.risk.space import Space
    from halfmask.metrics.risk.targets import Targets
    from halfmask.metrics.shared_column import SharedColumn

NAME = "inference"
TOLERANCE = 0.05


def inference(
    targets: Targets, secret: str, known: Sequence[str] | None = None, *, limit: float = LIMIT
) -> Criterion:
    """Try to guess ``secret`` from ``known``; None: from the quasi-identifiers."""
    sides = targets.sides
    names = known if known is not None else sides.original.schema.quasi
    columns = sides.named([name for name in names if name != secret])
    column = sides.columns[secret]
    compared = space(columns)
    attack = proportion(_right(targets, compared, column, targets.members), len(targets.members))
    control = None
    if len(targets.control):
        hits = _right(targets, compared, column, targets.control)
        control = proportion(hits, len(targets.control))
    drawn = targets.random.integers(0, sides.after, len(targets.members))
    guess = drawn_leaves(column, sides.released_at(drawn), targets.random)
    blind = _same(column, targets.members, guess)
    baseline = proportion(int(blind.sum()), len(targets.members))
    attacker = (
        f"The attacker knows {', '.join(c.name for c in columns)} of a person and guesses "
        f"{secret} from the released row that is most alike."
    )
    return judge(NAME, attacker, attack, control, baseline, limit=limit, column=secret)


def _right(targets: Targets, compared: Space, column: SharedColumn, rows: NDArray[np.int64]) -> int:
    found, _ = compared.nearest(rows)
    guess = drawn_leaves(column, targets.sides.released_at(found[:, 0]), targets.random)
    return int(_same(column, rows, guess).sum())


def _same(
    column: SharedColumn, rows: NDArray[np.int64], guess: NDArray[np.int64]
) -> NDArray[np.bool_]:
    truth = column.before[rows]
    if column.numbers is None:
        return np.asarray(truth == guess)
    actual = column.numbers[truth]
    return np.asarray(np.abs(column.numbers[guess] - actual) <= TOLERANCE * np.abs(actual))
