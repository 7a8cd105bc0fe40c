"""Probabilistic record linkage: which pairs of rows belong together, by where they agree.

Definition: R = P(agreement | match) / P(agreement | non-match), columns independent, fitted by
expectation maximization. R above the upper threshold is a link, below the lower a non-link, between
them a possible link that somebody would look at; the thresholds are set so that at most ``false``
of the non-matches become links and ``missed`` of the matches non-links, as fitted, and no link has
R below 1, no non-link above.
Source: Fellegi and Sunter, "A theory for record linkage", 1969; Winkler, "Using the EM algorithm
for weight computation in the Fellegi-Sunter model of record linkage", 1988.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.codes import runs
from halfmask.metrics.estimate import Estimate, proportion
from halfmask.metrics.weighted import deviation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn

Weights = tuple[tuple[str, float, float], ...]
_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Bands:
    """How pairs of rows are divided.

    Attributes:
        upper: log2 of the threshold of links; None where no pattern is a link.
        lower: log2 of the threshold of non-links; None where none is.
        links: pairs called links; ``correct_links`` those of them that are true.
        possible: pairs left to be looked at; ``correct_possible`` the true ones.
        non_links: pairs called non-links; ``missed`` the true ones among them.
    """

    upper: float | None
    lower: float | None
    links: int
    correct_links: int
    possible: int
    correct_possible: int
    non_links: int
    missed: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def fellegi_sunter(
    columns: list[SharedColumn],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    random: np.random.Generator,
    among: str = "",
    *,
    false: float = 0.001,
    missed: float = 0.05,
) -> tuple[Estimate, Bands, Weights]:
    """Link entries ``left`` of the original with ``right`` of the release, true ones in order.

    The estimate says ``among`` whom.
    """
    size = len(left)
    flat = np.stack([_agreement(c, left, right).ravel() for c in columns])
    pattern = (flat << np.arange(len(columns))[:, None]).sum(axis=0)
    kinds, places, counts = np.unique(pattern, return_inverse=True, return_counts=True)
    bits = (kinds[:, None] >> np.arange(len(columns)) & 1).astype(np.float64)
    match, other = fit(bits, counts.astype(np.float64), size)
    ratio = bits @ np.log2(match / other) + (1 - bits) @ np.log2((1 - match) / (1 - other))
    scores = ratio[places].reshape(size, size)
    jitter = random.random(scores.shape) * 1e-9
    hits = int(((scores + jitter).argmax(axis=0) == np.arange(size)).sum())
    true = np.bincount(places.reshape(size, size).diagonal(), minlength=len(kinds))
    bands = _bands(ratio, _chances(bits, match), _chances(bits, other), counts, true, false, missed)
    weights = tuple(
        (c.name, float(m), float(u)) for c, m, u in zip(columns, match, other, strict=True)
    )
    return proportion(hits, size, among), bands, weights


def _agreement(
    column: SharedColumn, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Whether each released label covers each original value, or comes near it where it is new."""
    labels, turn = np.unique(column.after[right], return_inverse=True)
    sizes = column.sizes[labels]
    under = np.zeros((column.leaves, len(labels)), dtype=bool)
    under[
        column.covered[runs(column.starts[labels], sizes)], np.repeat(np.arange(len(labels)), sizes)
    ] = True
    agreed = under[column.before[left]]
    if column.numbers is not None and column.leaves > column.known:
        band = 0.1 * deviation(column.numbers, column.leaf_rows)
        own = column.numbers[column.before[left]]
        agreed |= np.abs(own[:, None] - column.label_numbers[labels][None, :]) <= band
    return np.asarray(agreed[:, turn.reshape(-1)].astype(np.int64))


def _chances(bits: NDArray[np.float64], agree: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each pattern."""
    return np.asarray(np.exp(bits @ np.log(agree) + (1 - bits) @ np.log(1 - agree)))


def _bands(
    ratio: NDArray[np.float64],
    if_match: NDArray[np.float64],
    if_other: NDArray[np.float64],
    counts: NDArray[np.int64],
    true: NDArray[np.int64],
    false: float,
    missed: float,
) -> Bands:
    down = np.argsort(-ratio, kind="stable")
    link = np.zeros(len(ratio), dtype=bool)
    link[down[np.cumsum(if_other[down]) <= false]] = True
    link &= ratio > 0
    up = down[::-1]
    no = np.zeros(len(ratio), dtype=bool)
    no[up[np.cumsum(if_match[up]) <= missed]] = True
    no &= ratio < 0
    maybe = ~link & ~no
    return Bands(
        float(ratio[link].min()) if link.any() else None,
        float(ratio[no].max()) if no.any() else None,
        int(counts[link].sum()),
        int(true[link].sum()),
        int(counts[maybe].sum()),
        int(true[maybe].sum()),
        int(counts[no].sum()),
        int(true[no].sum()),
    )


def fit(
    bits: NDArray[np.float64], counts: NDArray[np.float64], size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expectation maximization of a mixture of matches and non-matches, columns independent."""
    total = counts.sum()
    share = 1.0 / max(size, 2)
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
        match = np.maximum(match, other)  # else the two parts of the mixture may change places
        share = float(np.clip(weight.sum() / total, 1e-9, 0.5))
        if float(np.abs(match - before).max()) < 1e-9:
            break
    return match, other
