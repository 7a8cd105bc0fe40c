"""Membership: can somebody tell who was in the original from how near the release comes to them?

Definition: the attacker says "in" where the nearest released row is nearer than a threshold; the
figure is the area under the curve of all thresholds (0.5 is guessing), and the advantage its
largest gap between hits and false alarms. The attribution ratio is the share of released rows that
are left for a person after everybody else has been explained away.
Source: Hilprecht et al., "Monte Carlo and reconstruction membership inference attacks", 2019;
Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018 (ratio).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.estimate import Estimate, exact, failed
from halfmask.metrics.risk.space import space

if TYPE_CHECKING:
    from halfmask.metrics.risk.targets import Targets
    from halfmask.metrics.sides import Sides

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
        attribution: the mean share of released rows left for a person; small is risky.
        copies: the share of released rows that equal an original row in every shared column.
    """

    area: Estimate
    advantage: Estimate
    attribution: Estimate
    copies: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "attacker": ATTACKER,
            "area": self.area.to_dict(),
            "advantage": self.advantage.to_dict(),
            "attribution": self.attribution.to_dict(),
            "copies": self.copies.to_dict(),
        }


def membership(targets: Targets) -> Membership:
    """Measure presence against the control; without one only what needs none."""
    ratio, copies = attribution(targets.sides, targets.size)
    if not len(targets.control):
        nothing = failed("It needs people who were not in the original: give control=.")
        return Membership(nothing, nothing, ratio, copies)
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
        ratio,
        copies,
    )  # fmt: skip


def attribution(sides: Sides, size: int) -> tuple[Estimate, Estimate]:
    """The attribution ratio by multisets, and the share of released rows that are copies."""
    columns = list(sides.columns.values())
    both = []
    for column in columns:
        single = np.where(column.sizes == 1, column.covered[column.starts[:-1]], -1)
        # A label that covers several values equals no value: it gets a code of its own.
        codes = np.where(single >= 0, single, column.leaves + np.arange(column.labels))
        both.append(
            (
                np.concatenate([column.before[:size], codes[column.after]]).astype(np.int32),
                column.leaves + column.labels,
            )
        )
    ids, count = joint(both)
    own = np.bincount(ids[:size], minlength=count)
    released = np.bincount(ids[size:], minlength=count)
    left = int(np.maximum(released - own, 0).sum())
    gains = float(own[released >= own].sum()) / size
    n = sides.after
    return (
        exact((left + gains) / n, size),
        exact(float(released[own > 0].sum()) / n, n),
    )
