"""Record linkage: how many released rows can be matched to the person they were made from.

Definition: distance-based: the nearest released row is the true one (or the second nearest), or
another of the same person;
assignment: the same in the matching of all rows that costs least; interval: the true value lies
within a band around the released one (over all pairs of a class and its rows; where a class has
more people than rows, on average); probabilistic: the pair with the highest likelihood ratio
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
from halfmask.metrics.risk.several_rows import links_of_people, rows_per_person
from halfmask.metrics.risk.space import space
from halfmask.metrics.risk.targets import WORK
from halfmask.metrics.weighted import deviation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.risk.pairing import Pairing
    from halfmask.metrics.risk.several_rows import People
    from halfmask.metrics.sides import Sides

ATTACKER = (
    "The attacker has a file with names and the original quasi-identifiers of these people, and "
    "matches it row by row with the release."
)
_NOBODY = (
    "The released rows stand for nobody: there is no true match to find. If both tables hold the "
    "same people in the same order (perturbed rows), say same_order=True (--same-order)."
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
        standing: the share of released rows, or of people where these are fewer, that were paired.
    """

    distance: Estimate
    second: Estimate
    assignment: Estimate
    interval: Estimate
    probabilistic: Estimate
    bands: Bands | None
    weights: Weights
    baseline: float
    standing: float = 0.0

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
    people: People | None = None,
    *,
    same_order: bool = False,
    sample: int = 300,
    width: float = 0.1,
    seed: int = 0,
) -> Linkage:
    """Link a random ``sample`` of people to released rows by the quasi-identifiers.

    Args:
        sides: both tables.
        people: per entry of the original, whose it is, where people have several rows: any row of
            theirs is theirs. Matching and odds count rows.
        same_order: whether both tables hold the same people in the same order; else a released
            row may stand for anybody of its class, and synthetic rows for nobody.
        sample: how many people are looked for among all released rows; matching and odds are tried
            on at most so many people of whole classes and their rows against each other.
        width: of the band of interval disclosure, in standard deviations.
        seed: repeats the random choices.
    """
    random = np.random.default_rng(seed)
    paired = pairs_in_order(sides) if same_order else pairs_in_classes(sides)
    if paired is None:
        nothing = failed(_NOBODY)
        return Linkage(nothing, nothing, nothing, nothing, nothing, None, (), 0.0)
    columns = sides.quasi
    count = min(sample, paired.pairs, max(50, WORK // sides.rows.num_rows))
    entries, rows = paired.some(count, random)
    compared = space(columns)
    found, _ = compared.nearest(entries, k=2, seed=seed)
    own = found == rows[:, None]
    rows_each = 1.0
    if people is not None:
        rows_each = rows_per_person(people, sides.original_counts)
        own = links_of_people(sides, paired, people, entries, own, found, random)
    left, right, whom = _whole_classes(paired, sample, random)
    # Random ties: a row that is as near as others is found with the chance it has among them.
    distances = compared.matrix(left, right)
    distances = distances + random.random(distances.shape) * 1e-9
    probabilistic, bands, weights = fellegi_sunter(columns, left, right, random, whom)
    among = f"Among {sides.after:,} released rows."
    return Linkage(
        proportion(int(own[:, 0].sum()), count, among),
        proportion(int(own[:, 1].sum()), count, among),
        _assigned(distances, whom),
        _interval(sides, paired, width),
        probabilistic,
        bands,
        weights,
        rows_each / sides.after,
        paired.pairs / min(sides.after, sides.before),
    )


def _whole_classes(
    paired: Pairing, sample: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], str]:
    """Pairs of whole classes, so that who hides a person in the release does so in the sample.

    Every class has the same chance to be drawn, and with it every person. Also says who they are.
    """
    turn = random.permutation(np.flatnonzero(paired.sizes))
    sizes = paired.sizes[turn]
    ends = np.cumsum(sizes)
    fitting = int(np.searchsorted(ends, sample, side="right"))
    if not fitting:
        left, right, _ = paired.of(turn[:1], np.array([sample]), random)
        whom = (
            f"{sample:,} people and rows of one class of {int(sizes[0]):,}: among all of it fewer"
        )
        return left, right, f"Among {whom} would be found."
    left, right, _ = paired.of(turn[:fitting], sizes[:fitting], random)
    if fitting == len(turn):
        return left, right, f"Among all {len(left):,} rows that stand for somebody."
    whom = f"{len(left):,} people of {fitting:,} whole classes drawn at random and their rows only"
    why = "people and rows of other classes are not in the way, so it leans upward"
    return left, right, f"Among {whom}: {why}."


def _assigned(distances: NDArray[np.float64], among: str) -> Estimate:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(distances)
    return proportion(int((rows == columns).sum()), len(rows), among)


def _interval(sides: Sides, paired: Pairing, width: float) -> Estimate:
    """The share of cells near the truth; where a class has fewer rows than people, on average."""
    held = np.flatnonzero(paired.owner >= 0)
    owner = paired.owner[held]
    people = np.ones(len(held)) if sides.original_counts is None else sides.original_counts[held]
    weights = people * paired.share[owner]
    first = paired.rows.at(paired.rows.starts[:-1])[0]
    inside, cells = 0.0, 0
    for column in sides.quasi:
        if column.numbers is None:
            continue
        truth = column.numbers[column.before[held]]
        if paired.in_order:
            released = column.label_numbers[column.after[held]]
        else:  # rows of a class have the same labels
            released = column.label_numbers[column.after[first]][owner]
        band = width * deviation(truth, weights)
        inside += float(weights[np.abs(truth - released) <= band].sum())
        cells += paired.pairs
    if not cells:
        return failed("No quasi-identifier is numeric.")
    return proportion(inside, cells)
