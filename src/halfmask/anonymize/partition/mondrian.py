"""Mondrian for personal demands: cut at the median of the widest column while both sides may stand.

Source: LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", 2006; adapted to
a demand per person as in Michel, 2019, section 5.4.1: each side of a cut must meet the highest
demand on that side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.division import Division
from halfmask.anonymize.partition.mend import mend

if TYPE_CHECKING:
    from halfmask.anonymize.partition.task import Task

OPTIONS = {"cut": ("sides", "whole")}


def divide(task: Task) -> Division:
    """Divide the rows; ``cut="whole"`` stops at twice the highest demand, as the original does."""
    from halfmask.kernels import mondrian

    whole = task.options.get("cut", "sides") == "whole"
    order, starts = mondrian.cut(task.space.points, task.space.places, task.demands, 0, whole)
    ids = np.empty(len(task), dtype=np.int64)
    ids[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return Division(mend(task, ids))
