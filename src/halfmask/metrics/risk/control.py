"""Whether the people of a control are others than those of the original.

Definition: rows of other people equal a row of the original in all compared columns about as often
as rows of the original have a double. Where they do so much more often, the control is taken to
hold the same people; attacks then succeed on it as they do on the original, and no leak shows.
Source: none; it guards the use of controls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.metrics.codes import joint
from halfmask.metrics.weighted import mean, tally

if TYPE_CHECKING:
    from halfmask.metrics.risk.targets import Targets

_MORE = 0.1  # by how much the share of equal rows may exceed that of doubles
_SAME = (
    "More rows of the control equal rows of the original than those of other people would: a "
    "control of the same people hides every leak. Give rows of people who are not in the original."
)


def same_people(targets: Targets) -> tuple[str, ...]:
    """What is to be said where the control seems to hold people of the original."""
    if not len(targets.control):
        return ()
    columns = list(targets.sides.columns.values())
    ids, count = joint([(c.before, c.leaves) for c in columns])
    rows, size = columns[0].before_counts, targets.size
    own, theirs = (None, None) if rows is None else (rows[:size], rows[size:])
    held = tally(ids[:size], count, own)
    doubles, equal = mean(held[ids[:size]] > 1, own), mean(held[ids[size:]] > 0, theirs)
    return (_SAME,) if equal > doubles + _MORE else ()
