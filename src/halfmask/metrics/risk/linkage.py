"""Record linkage: how many released rows can be matched to the person they were made from.

Definition: distance-based: the nearest original row is the true one (or the second nearest);
assignment: the same in the matching of all rows that costs least; interval: the true value lies
within a band around the released one; probabilistic: the pair with the highest likelihood ratio
P(agreement | match) / P(agreement | non-match), fitted by expectation maximization, is the true
one.
Source: Domingo-Ferrer and Torra, "A quantitative comparison of disclosure control methods for
microdata", 2001; Fellegi and Sunter, "A theory for record linkage", 1969.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, failed, proportion
from halfmask.metrics.risk.fellegi_sunter import Bands, Weights, fellegi_sunter
from halfmask.metrics.risk.pairing import pairs_in_classes, pairs_in_order
from halfmask.metrics.risk.space import space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides

ATTACKER = (
    "The attacker has a file with names and the original quasi-identifiers of these people, and "
    "matches it row by row with the release."
)


@dataclass(frozen=True, slots=True)
class Linkage:
    """Shares of released rows that are linked to their own original.

    Attributes:
        distance: by the nearest row; ``second`` by the second nearest.
        assignment: in the cheapest matching.
        interval: true values near the released ones, over all numeric cells.
        probabilistic: by the highest likelihood ratio.
        bands: the pairs that Fellegi and Sunter call links, possible links and non-links.
        weights: per column, P(agree | match) and P(agree | non-match) as fitted.
        baseline: what guessing links.
    """

    distance: Estimate
    second: Estimate
    assignment: Estimate
    interval: Estimate
    probabilistic: Estimate
    bands: Bands | None
    weights: Weights
    baseline: float

    @property
    def risk(self) -> float | None:
        """The disclosure risk of Domingo-Ferrer and Torra: linked rows and intervals, half each."""
        linked, near = self.distance.value, self.interval.value
        if linked is None or self.assignment.value is None:
            return None
        found = (linked + self.assignment.value) / 2
        return found if near is None else (found + near) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        names = ("distance", "second", "assignment", "interval", "probabilistic")
        return {
            "attacker": ATTACKER,
            **{name: getattr(self, name).to_dict() for name in names},
            "bands": None if self.bands is None else self.bands.to_dict(),
            "weights": [{"column": name, "match": m, "other": u} for name, m, u in self.weights],
            "baseline": self.baseline,
            "risk": self.risk,
        }


def linkage(
    sides: Sides,
    *,
    same_order: bool = False,
    sample: int = 300,
    width: float = 0.1,
    seed: int = 0,
) -> Linkage:
    """Link a random ``sample`` of released rows back by the quasi-identifiers.

    Args:
        sides: both tables.
        same_order: whether both tables hold the same people in the same order; else a released
            row may stand for anybody of its class, and synthetic rows for nobody.
        sample: how many pairs are tried against each other.
        width: of the band of interval disclosure, in standard deviations.
        seed: repeats the random choices.
    """
    random = np.random.default_rng(seed)
    paired = pairs_in_order(sides) if same_order else pairs_in_classes(sides, random)
    if paired is None:
        nothing = failed("The released rows stand for nobody: there is no true match to find.")
        return Linkage(nothing, nothing, nothing, nothing, nothing, None, (), 0.0)
    columns = sides.quasi
    chosen = np.sort(random.choice(len(paired[0]), min(sample, len(paired[0])), replace=False))
    left, right = paired[0][chosen], paired[1][chosen]
    distances = space(columns).matrix(left, right)
    # Random ties: a row that is as near as others is found with the chance it has among them.
    distances = distances + random.random(distances.shape) * 1e-9
    order = np.argsort(distances, axis=0)
    truth = np.arange(len(chosen))
    probabilistic, bands, weights = fellegi_sunter(columns, left, right, random)
    among = f"Among {len(truth):,} people and their rows."
    second = int((order[1] == truth).sum()) if len(truth) > 1 else 0
    return Linkage(
        proportion(int((order[0] == truth).sum()), len(truth), among),
        proportion(second, len(truth), among),
        _assigned(distances),
        _interval(columns, paired, width),
        probabilistic,
        bands,
        weights,
        1 / len(truth),
    )


def _assigned(distances: NDArray[np.float64]) -> Estimate:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(distances)
    return proportion(int((rows == columns).sum()), len(rows))


def _interval(
    columns: list[SharedColumn], paired: tuple[NDArray[np.int64], NDArray[np.int64]], width: float
) -> Estimate:
    inside = cells = 0
    for column in columns:
        if column.numbers is None:
            continue
        truth = column.numbers[column.before[paired[0]]]
        released = column.label_numbers[column.after[paired[1]]]
        band = width * float(truth.std())
        inside += int((np.abs(truth - released) <= band).sum())
        cells += len(truth)
    return proportion(inside, cells) if cells else failed("No quasi-identifier is numeric.")
