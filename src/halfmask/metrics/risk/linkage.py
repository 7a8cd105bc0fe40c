"""Record linkage: how many masked rows can be matched to the row they were made from.

Definition: distance-based: the nearest original row is the true one (or the second nearest);
assignment: the same in the matching of all rows that costs least; interval: the true value lies
within a band around the masked one; probabilistic: the pair with the highest likelihood ratio
P(agreement | match) / P(agreement | non-match), fitted by expectation maximization, is the true
one.
Source: Domingo-Ferrer and Torra, "A quantitative comparison of disclosure control methods for
microdata", 2001; Fellegi and Sunter, "A theory for record linkage", 1969.

The assessor knows which rows belong together: both tables stand in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.estimate import Estimate, failed, proportion
from halfmask.metrics.risk.space import space
from halfmask.metrics.sides import sides

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Published, SharedColumn, Sides
    from halfmask.table.table import Table

_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Linkage:
    """Shares of masked rows that are linked to their own original.

    Attributes:
        distance: by the nearest row; ``second`` by the second nearest.
        assignment: in the cheapest matching.
        interval: true values near the masked ones, over all numeric cells; None without numbers.
        probabilistic: by the highest likelihood ratio.
        weights: per column, P(agree | match) and P(agree | non-match) as fitted.
    """

    distance: Estimate
    second: Estimate
    assignment: Estimate
    interval: Estimate
    probabilistic: Estimate
    weights: tuple[tuple[str, float, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        names = ("distance", "second", "assignment", "interval", "probabilistic")
        return {
            **{name: getattr(self, name).to_dict() for name in names},
            "weights": [{"column": name, "match": m, "other": u} for name, m, u in self.weights],
        }


def linkage(
    original: Table,
    masked: Published | Table,
    *,
    sample: int = 300,
    width: float = 0.1,
    seed: int = 0,
) -> Linkage:
    """Link a random ``sample`` of masked rows back; ``width`` is the band's, in deviations.

    Raises:
        InputError: the tables do not hold the same number of rows.
    """
    paired = sides(original, masked)
    if paired.before != paired.after:
        raise InputError(
            f"The tables hold {paired.before:,} and {paired.after:,} rows and cannot be paired by "
            "place: linkage needs both in the same order."
        )
    random = np.random.default_rng(seed)
    picked = np.sort(random.choice(paired.before, min(sample, paired.before), replace=False))
    columns = list(paired.columns.values())
    distances = space(columns).matrix(picked, picked)
    # Random ties: a row that is as near as others is found with the chance it has among them.
    jitter = random.random(distances.shape) * 1e-9
    order = np.argsort(distances + jitter, axis=0)
    truth = np.arange(len(picked))
    probabilistic, weights = _probabilistic(paired, picked, random)
    return Linkage(
        proportion(int((order[0] == truth).sum()), len(picked)),
        proportion(int((order[1] == truth).sum()), len(picked)) if len(picked) > 1 else failed(""),
        _assigned(distances + jitter),
        _interval(columns, width),
        probabilistic,
        weights,
    )


def _assigned(distances: NDArray[np.float64]) -> Estimate:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(distances)
    return proportion(int((rows == columns).sum()), len(rows))


def _interval(columns: list[SharedColumn], width: float) -> Estimate:
    inside = cells = 0
    for column in columns:
        if column.numbers is None:
            continue
        truth = column.numbers[column.before]
        masked = column.label_numbers[column.after]
        band = width * float(truth.std())
        inside += int((np.abs(truth - masked) <= band).sum())
        cells += len(truth)
    return proportion(inside, cells) if cells else failed("No column is numeric.")


def _probabilistic(
    paired: Sides, picked: NDArray[np.int64], random: np.random.Generator
) -> tuple[Estimate, tuple[tuple[str, float, float], ...]]:
    columns = list(paired.columns.values())
    agree = np.stack([_agreement(c, picked) for c in columns])  # columns x originals x masked
    flat = agree.reshape(len(columns), -1)
    pattern = (flat << np.arange(len(columns))[:, None]).sum(axis=0)
    kinds, places, counts = np.unique(pattern, return_inverse=True, return_counts=True)
    bits = (kinds[:, None] >> np.arange(len(columns)) & 1).astype(np.float64)
    match, other = _fit(bits, counts.astype(np.float64), len(picked))
    ratio = bits @ np.log(match / other) + (1 - bits) @ np.log((1 - match) / (1 - other))
    scores = ratio[places].reshape(len(picked), len(picked))
    scores = scores + random.random(scores.shape) * 1e-9
    hits = int((scores.argmax(axis=0) == np.arange(len(picked))).sum())
    weights = tuple(
        (c.name, float(m), float(u)) for c, m, u in zip(columns, match, other, strict=True)
    )
    return proportion(hits, len(picked)), weights


def _agreement(column: SharedColumn, picked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whether each released label covers each original value."""
    under = np.zeros((column.leaves, column.labels), dtype=np.int64)
    under[column.covered, np.repeat(np.arange(column.labels), column.sizes)] = 1
    if column.numbers is not None and column.leaves > column.known:
        band = 0.1 * float(column.numbers[column.before].std())
        near = np.abs(column.numbers[:, None] - column.label_numbers[None, :]) <= band
        under = np.maximum(under, near.astype(np.int64))
    return np.asarray(under[column.before[picked]][:, column.after[picked]])


def _fit(
    bits: NDArray[np.float64], counts: NDArray[np.float64], size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expectation maximization of a mixture of matches and non-matches, columns independent."""
    total = counts.sum()
    share = 1.0 / size
    match = np.full(bits.shape[1], 0.9)
    other = np.clip((counts @ bits) / total, 1e-4, 1 - 1e-4)
    for _ in range(_ROUNDS):
        one = np.log(share) + bits @ np.log(match) + (1 - bits) @ np.log(1 - match)
        two = np.log(1 - share) + bits @ np.log(other) + (1 - bits) @ np.log(1 - other)
        belief = 1 / (1 + np.exp(np.clip(two - one, -700, 700)))
        weight = counts * belief
        rest = counts - weight
        before = match
        match = np.clip((weight @ bits) / max(weight.sum(), 1e-12), 1e-4, 1 - 1e-4)
        other = np.clip((rest @ bits) / max(rest.sum(), 1e-12), 1e-4, 1 - 1e-4)
        share = float(np.clip(weight.sum() / total, 1e-9, 0.5))
        if float(np.abs(match - before).max()) < 1e-9:
            break
    return match, other
