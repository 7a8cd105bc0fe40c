"""Greedy k-member for personal demands: classes grown from far-off rows by the least loss.

Source: Byun, Kamra, Bertino and Li, "Efficient k-anonymization using clustering techniques", 2007;
adapted to a demand per person, with the improved score max(|e|+1, k_e, k_r) diam(e+r) -
max(|e|, k_e) diam(e), as in Michel, 2019, sections 5.4.2 and 5.4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.blocks import blockwise
from halfmask.anonymize.partition.division import Division
from halfmask.anonymize.partition.mend import mend

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import Task

OPTIONS = {"score": ("improved", "plain")}
DRAWS = True  # at random, from the seed


def divide(task: Task) -> Division:
    """Divide the rows; ``score="plain"`` takes the original score."""
    ids, notes = blockwise(task, _grow)
    return Division(mend(task, ids), notes=notes)


def _grow(task: Task) -> NDArray[np.int64]:
    from halfmask.kernels import k_member as kernel

    draws = np.random.default_rng(task.seed).random(len(task) + 1)
    improved = task.options.get("score", "improved") == "improved"
    return np.asarray(kernel.k_member(task.space.points, task.demands, draws, improved))
