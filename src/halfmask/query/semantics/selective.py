"""Selective: precision first. What meets its guarantee is published where it stands.

Definition: level by level, a group that meets its guarantee is published; any other is merged
into its parent; what still fails at the coarsest level is left out. A published group never helps
a coarser one.
Source: Michel 2019, Algorithm 1 and section 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.query.filter import Choice
from halfmask.query.groups import DROPPED

if TYPE_CHECKING:
    from halfmask.query.groups import Groups


def choose(groups: Groups) -> Choice:
    """Publish bottom-up; this is the optimum of its own rule, so there is no gap."""
    target = np.full(len(groups), DROPPED, dtype=np.int64)
    rising = np.empty(0, dtype=np.int64)
    for level in range(groups.top + 1):
        own = np.flatnonzero(groups.level == level)
        if not len(rising) and groups.separate:
            # Groups of one level have different keys: nothing to merge yet.
            holds = groups.alone(level, own)
            target[own[holds]] = level
            rising = own[~holds]
            continue
        inside = np.concatenate((rising, own))
        ids, first = groups.nodes(level, inside)
        holds = groups.passes(level, inside, ids, len(first))[ids]
        target[inside[holds]] = level
        rising = inside[~holds]
    return Choice(target, 0.0)
