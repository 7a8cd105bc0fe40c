"""Record linkage: how many released rows can be matched to the person they were made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.metrics.estimate import Estimate, failed_estimate, proportion
from halfmask.metrics.risk.attack import WORK
from halfmask.metrics.risk.distances import row_distances
from halfmask.metrics.sides import (
    ReleasedTuples,
    finding_chance,
    pairs_in_classes,
    pairs_in_order,
    tightest_class,
)
from halfmask.metrics.weighted import deviation, entries_of, runs
from halfmask.table.document import Result, document_field
from halfmask.table.tuples import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.risk.distances import RowDistances
    from halfmask.metrics.sides import Pairing, Sides
    from halfmask.table.tuples import Counts

    PersonCodes = NDArray[np.int32]


AgreementWeights = tuple[tuple[str, float, float], ...]
_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Bands(Result):
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


def fellegi_sunter(
    columns: list[SharedColumn],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    random: np.random.Generator,
    among: str = "",
    *,
    false: float = 0.001,
    missed: float = 0.05,
) -> tuple[Estimate, Bands, AgreementWeights]:
    """Link entries ``left`` of the original with ``right`` of the release, true ones in order.

    Definition: R = P(agreement | match) / P(agreement | non-match), columns independent, fitted by
    expectation maximization. R above the upper threshold is a link, below the lower a non-link,
    between them a possible link that somebody would look at; the thresholds are set so that at most
    ``false`` of the non-matches become links and ``missed`` of the matches non-links, as fitted,
    and no link has R below 1, no non-link above.
    Source: Fellegi and Sunter, "A theory for record linkage", 1969; Winkler, "Using the EM
    algorithm for weight computation in the Fellegi-Sunter model of record linkage", 1988.

    The estimate says ``among`` whom.
    """
    size = len(left)
    flat = np.stack([_agreement(c, left, right).ravel() for c in columns])
    # Which columns agree, as bits: a few patterns stand for all pairs.
    pattern = (flat << np.arange(len(columns))[:, None]).sum(axis=0)
    kinds, places, counts = np.unique(pattern, return_inverse=True, return_counts=True)
    bits = (kinds[:, None] >> np.arange(len(columns)) & 1).astype(np.float64)
    match, other = fit_mixture(bits, counts.astype(np.float64), size)
    ratio = bits @ np.log2(match / other) + (1 - bits) @ np.log2((1 - match) / (1 - other))
    scores = ratio[places].reshape(size, size)
    jitter = random.random(scores.shape) * 1e-9  # equal odds: any of them
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


def fit_mixture(
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


def released_people(
    sides: Sides, people: PersonCodes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per released class, its rows and its people; rows count where nobody is known to be in it.

    Definition: a row of the original stands in the released class that covers it most tightly; a
    class holds the people of these rows, and at most as many as it has rows. Whoever has several
    rows in a class is found by each of them.
    Source: as for re-identification.

    Args:
        sides: the original and the release.
        people: per entry of the original, whose it is.
    """
    rows = ReleasedTuples(sides.quasi).rows.astype(np.int64)
    owner = tightest_class(sides.quasi)
    inside = owner >= 0
    pairs = np.unique(_pairs(owner, people)[inside])
    known = np.bincount(pairs // _many(people), minlength=len(rows))
    return rows, np.where(known > 0, np.minimum(known, rows), rows)


def chance_of_people(sides: Sides, people: PersonCodes | None) -> NDArray[np.float64]:
    """Per entry of the original, the chance that its person is found among the rows that fit."""
    chance = finding_chance(sides.quasi)
    if people is None:
        return chance
    pairs = np.unique(_pairs(tightest_class(sides.quasi), people), return_inverse=True)[1]
    pairs = pairs.reshape(-1)
    own = tally(pairs, int(pairs.max()) + 1, sides.original_counts)[pairs]
    return np.minimum(chance * own, 1.0)


def rows_per_person(people: PersonCodes, counts: Counts) -> float:
    """How many rows the person of a random row has."""
    rows = tally(people, _many(people), counts)
    return float(rows @ rows) / int(rows.sum())


def links_of_people(
    sides: Sides,
    paired: Pairing,
    people: PersonCodes,
    entries: NDArray[np.int64],
    own: NDArray[np.bool_],
    found: NDArray[np.int64],
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """Whether the rows that were found stand for the person that was looked for.

    Args:
        sides: the original and the release.
        paired: who may stand for whom.
        people: per entry of the original, whose it is.
        entries: who was looked for.
        own: whether a row that was found is the one paired with the entry itself.
        found: the released rows that were found, some for each entry.
        random: draws for whom the rows of a class stand.
    """
    if paired.in_order:
        return np.equal(people[found], people[entries][:, None])
    classes = ReleasedTuples(sides.quasi).ids[entries_of(found, sides.released_counts)]
    held, rows = np.unique(_pairs(paired.owner, people), return_inverse=True)
    rows = tally(rows.reshape(-1), len(held), sides.original_counts)
    wanted = _pairs(classes, people[entries][:, None])
    place = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    there = np.where(held[place] == wanted, rows[place], 0)
    # Rows of a class stand for its people at random, but the entry's own row is spoken for.
    same = classes == paired.owner[entries][:, None]
    among = np.maximum(np.diff(paired.people.starts), np.diff(paired.rows.starts))[classes] - same
    drawn = np.less(random.random(found.shape) * np.maximum(among, 1), there - same)
    return np.logical_or(own, drawn)


def _pairs(owner: NDArray[np.int64], people: PersonCodes) -> NDArray[np.int64]:
    """Class and person as one number."""
    return owner * _many(people) + people


def _many(people: PersonCodes) -> int:
    return int(people.max(initial=0)) + 1


ATTACKER = (
    "The attacker has a file with names and the original quasi-identifiers of these people, and "
    "matches it row by row with the release."
)
_NOBODY = (
    "The released rows stand for nobody: there is no true match to find. If both tables hold the "
    "same people in the same order (perturbed rows), say same_order=True (--same-order)."
)


@dataclass(frozen=True, slots=True)
class Linkage(Result):
    """Shares of released rows that are linked to their own original.

    Attributes:
        distance: by the nearest row; ``second`` by the second nearest.
        assignment: in the cheapest matching.
        interval: true values near the released ones, over all numeric cells.
        probabilistic: by the highest likelihood ratio.
        bands: the pairs that Fellegi and Sunter call links, possible links and non-links.
        weights: per column, P(agree | match) and P(agree | non-match) as fitted.
        baseline: what guessing links.
        paired_share: of released rows, or of people where these are fewer, those that were paired.
    """

    derived: ClassVar[tuple[str, ...]] = ("risk",)

    attacker: str = field(default=ATTACKER, kw_only=True)
    distance: Estimate
    second: Estimate
    assignment: Estimate
    interval: Estimate
    probabilistic: Estimate
    bands: Bands | None
    weights: AgreementWeights = field(metadata=document_field(parts=("column", "match", "other")))
    baseline: float
    paired_share: float = field(default=0.0, metadata=document_field(hidden=True))

    @property
    def risk(self) -> float | None:
        """The disclosure risk of Domingo-Ferrer and Torra: linked rows and intervals, half each."""
        linked, near = self.distance.value, self.interval.value
        if linked is None or self.assignment.value is None:
            return None
        found = (linked + self.assignment.value) / 2
        return found if near is None else (found + near) / 2


def linkage(
    sides: Sides,
    people: PersonCodes | None = None,
    *,
    same_order: bool = False,
    sample: int = 300,
    width: float = 0.1,
    seed: int = 0,
) -> Linkage:
    """Link a random ``sample`` of people to released rows by the quasi-identifiers.

    Definition: distance-based: the nearest released row is the true one (or the second nearest), or
    another of the same person; assignment: the same in the matching of all rows that costs least;
    interval: the true value lies within a band around the released one (over all pairs of a class
    and its rows; where a class has more people than rows, on average); probabilistic: the pair with
    the highest likelihood ratio P(agreement | match) / P(agreement | non-match), fitted by
    expectation maximization, is the true one.
    Source: Domingo-Ferrer and Torra, "A quantitative comparison of disclosure control methods for
    microdata", 2001; Fellegi and Sunter, "A theory for record linkage", 1969.

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
        nothing = failed_estimate(_NOBODY)
        return Linkage(nothing, nothing, nothing, nothing, nothing, None, (), 0.0)
    columns = sides.quasi
    count = min(sample, paired.pairs, max(50, WORK // sides.rows.num_rows))
    compared = row_distances(columns)
    own = _own_among_nearest(sides, paired, people, compared, count, random, seed)
    rows_each = 1.0 if people is None else rows_per_person(people, sides.original_counts)
    left, right, whom = _whole_classes(paired, sample, random)
    # Random ties: a row that is as near as others is found with the chance it has among them.
    distances = compared.matrix(left, right)
    distances = distances + random.random(distances.shape) * 1e-9
    probabilistic, bands, weights = fellegi_sunter(columns, left, right, random, whom)
    among = f"Among {sides.after:,} released rows."
    return Linkage(
        proportion(int(own[:, 0].sum()), count, among),
        proportion(int(own[:, 1].sum()), count, among),
        _assign(distances, whom),
        _interval(sides, paired, width),
        probabilistic,
        bands,
        weights,
        rows_each / sides.after,
        paired.pairs / min(sides.after, sides.before),
    )


def _own_among_nearest(
    sides: Sides,
    paired: Pairing,
    people: PersonCodes | None,
    compared: RowDistances,
    count: int,
    random: np.random.Generator,
    seed: int,
) -> NDArray[np.bool_]:
    """(people looked for, nearest and second) whether that row is theirs."""
    entries, rows = paired.some(count, random)
    found, _ = compared.nearest(entries, k=2, seed=seed)
    own: NDArray[np.bool_] = found == rows[:, None]
    if people is None:
        return own
    return links_of_people(sides, paired, people, entries, own, found, random)


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


def _assign(distances: NDArray[np.float64], among: str) -> Estimate:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(distances)
    return proportion(int((rows == columns).sum()), len(rows), among)


def _interval(sides: Sides, paired: Pairing, width: float) -> Estimate:
    """The share of cells near the truth; where a class has fewer rows than people, on average."""
    held = np.flatnonzero(paired.owner >= 0)
    owner = paired.owner[held]
    weights = sides.original_counts[held] * paired.share[owner]
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
        return failed_estimate("No quasi-identifier is numeric.")
    return proportion(inside, cells)
