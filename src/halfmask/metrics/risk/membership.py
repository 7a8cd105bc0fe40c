"""Membership: can somebody tell who was in the original from how near the release comes to them?

Definition: the attacker says "in" where the nearest released row is nearer than a threshold; the
figure is the area under the curve of all thresholds (0.5 is guessing), and the advantage its
largest gap between hits and false alarms.
Source: Hilprecht et al., "Monte Carlo and reconstruction membership inference attacks", 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, failed
from halfmask.metrics.risk.attribution import Attribution, attribution
from halfmask.metrics.risk.space import space

if TYPE_CHECKING:
    from halfmask.metrics.risk.targets import Targets

ATTACKER = (
    "The attacker knows a whole row and asks whether its person was in the original, by how near "
    "the nearest released row is."
)


@dataclass(frozen=True, slots=True)
class Membership:
    """How well presence can be told.

    Attributes:
        area: the area under the curve, 0.5 is guessing.
        advantage: the largest gap between hits and false alarms.
        attribution: which rows could be anybody's, and which are copies; it needs no control.
    """

    area: Estimate
    advantage: Estimate
    attribution: Attribution

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "attacker": ATTACKER,
            "area": self.area.to_dict(),
            "advantage": self.advantage.to_dict(),
            "attribution": self.attribution.to_dict(),
        }


def membership(targets: Targets) -> Membership:
    """Measure presence against the control; without one only what needs none."""
    shared = attribution(targets.sides, targets.size)
    if not len(targets.control):
        nothing = failed("It needs people who were not in the original: give control=.")
        return Membership(nothing, nothing, shared)
    compared = space(list(targets.sides.columns.values()))
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
