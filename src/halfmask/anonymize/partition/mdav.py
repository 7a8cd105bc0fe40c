"""MDAV for personal demands: classes around the rows farthest from the middle, two at a time.

Source: Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation", 2005; adapted to a demand per person as in Michel, 2019, section 5.4.2.
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

OPTIONS: dict[str, tuple[str, ...]] = {}


def divide(task: Task) -> Division:
    """Divide the rows; nothing is drawn at random."""
    ids, notes = blockwise(task, _grow)
    return Division(mend(task, ids), notes=notes)


def _grow(task: Task) -> NDArray[np.int64]:
    from halfmask.kernels import mdav as kernel

    table = task.table
    categorical = [
        name for name, line in zip(task.space.columns, task.space.ordered, strict=True) if not line
    ]
    ordinal = [table.schema.columns[name].kind == "ordinal" for name in categorical]
    width = task.space.points.codes.shape[1]
    flags = np.array(ordinal[:width] + [False] * (width - len(ordinal)), dtype=np.bool_)
    return np.asarray(kernel.mdav(task.space.points, task.demands, flags))
