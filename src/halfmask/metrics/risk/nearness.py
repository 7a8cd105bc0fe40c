"""Nearness: does the release come nearer to people than other people do?

Definition: the distance of a person to the nearest released row, beside the distance to the nearest
other person of the original (and of people outside to the nearest released row, where a control is
given), each as a mean over columns, 0 to 1. A release that is much nearer than other people, or
than it is to people outside, repeats its original.
Source: the distance to the closest record, as in Zhao et al., "CTAB-GAN: effective table data
synthesizing", 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, mean, proportion
from halfmask.metrics.risk.space import space
from halfmask.metrics.sides import sides

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.risk.targets import Targets


@dataclass(frozen=True, slots=True)
class Nearness:
    """Distances from people to the nearest row.

    Attributes:
        released: from people of the original to the nearest released row.
        people: from the same people to the nearest other person.
        outside: from people of the control to the nearest released row; None without a control.
        met: the share of people whom a released row meets at distance 0; ``met_by_people`` whom
            another person meets.
    """

    released: Estimate
    people: Estimate
    outside: Estimate | None
    met: Estimate
    met_by_people: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "released": self.released.to_dict(),
            "people": self.people.to_dict(),
            "outside": None if self.outside is None else self.outside.to_dict(),
            "met": self.met.to_dict(),
            "met_by_people": self.met_by_people.to_dict(),
        }


def nearness(targets: Targets) -> Nearness:
    """Measure the attacked people against the release and against each other."""
    columns = list(targets.sides.columns.values())
    compared = space(columns)
    width = len(columns)
    near = compared.nearest(targets.members)[1][:, 0] / width
    itself = sides(targets.sides.original, targets.sides.original)
    own = space(itself.named([c.name for c in columns]))
    # The nearest row of a person in the same table is the person: the second one counts.
    other = own.nearest(targets.members, np.arange(targets.size), k=2)[1][:, 1] / width
    other = np.where(np.isfinite(other), other, 1.0)
    outside = None
    if len(targets.control):
        outside = mean((compared.nearest(targets.control)[1][:, 0] / width).tolist())
    return Nearness(mean(near.tolist()), mean(other.tolist()), outside, _met(near), _met(other))


def _met(distances: NDArray[np.float64]) -> Estimate:
    return proportion(int((distances == 0).sum()), len(distances))
