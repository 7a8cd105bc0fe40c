"""Attribution: which released rows could be anybody's, and which are copies of a person's row.

Definition: the attacker knows every original row but one and takes away each released row that
these explain; the ratio is the share of released rows left, which the hidden row may have caused,
averaged over the hidden rows. 1/n: a copy of the table; 1: nothing in common.
Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018,
section 3.5.1.4.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.weighted import rows_of, tally

if TYPE_CHECKING:
    from halfmask.metrics.sides import Sides


@dataclass(frozen=True, slots=True)
class Attribution:
    """What released rows have in common with the original ones.

    Attributes:
        ratio: the attribution ratio; small is risky.
        copies: the share of released rows that equal an original row in every shared column.
        unique_copies: the share of people alone in the original whose row was reproduced.
    """

    ratio: float
    copies: float
    unique_copies: float

    def to_dict(self) -> dict[str, float]:
        """Return plain values."""
        return asdict(self)


def attribution(sides: Sides, size: int | None = None) -> Attribution:
    """Compare all rows as multisets; only the first ``size`` entries of the original are people."""
    held = len(sides.original) if size is None else size
    counts = None if sides.original_counts is None else sides.original_counts[:held]
    people = rows_of(held, counts)
    both = []
    for column in sides.columns.values():
        single = np.where(column.sizes == 1, column.covered[column.starts[:-1]], -1)
        # A label that covers several values equals no value: it gets a code of its own.
        codes = np.where(single >= 0, single, column.leaves + np.arange(column.labels))
        rows = np.concatenate([column.before[:held], codes[column.after]])
        both.append((rows.astype(np.int32), column.leaves + column.labels))
    ids, count = joint(both)
    own = tally(ids[:held], count, counts)
    released = tally(ids[held:], count, sides.released_counts)
    left = int(np.maximum(released - own, 0).sum())
    caused = int(own[released >= own].sum())
    alone = own == 1
    return Attribution(
        ratio=(left * people + caused) / (people * sides.after),
        copies=float(released[own > 0].sum()) / sides.after,
        unique_copies=float((alone & (released > 0)).sum()) / max(int(alone.sum()), 1),
    )
