"""How far distributions and associations of a release are from those of its original."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, failed_estimate
from halfmask.metrics.utility.prediction import ROWS, features, quiet, require
from halfmask.metrics.utility.tables import sample_leaves
from halfmask.metrics.weighted import in_range, pairs
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.sides import Sides
    from halfmask.table.tuples import Counts


_ROUNDING = 1e-13  # what adding up leaves of equal distributions


@dataclass(frozen=True, slots=True)
class ColumnDistance:
    """One column before and after; ``ruled_out`` is the share of original rows with q = 0."""

    name: str
    role: str
    hellinger: float
    variation: float
    kl: float
    ruled_out: float


@dataclass(frozen=True, slots=True)
class JointDistance(Result):
    """The joint distribution of some columns before and after."""

    columns: tuple[str, ...]
    hellinger: float
    kl: float
    ruled_out: float


def hellinger(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """The Hellinger distance of two distributions (shares that add up to 1), 0 to 1.

    Example:
        >>> round(hellinger(np.array([0.5, 0.5]), np.array([0.9, 0.1])), 6)
        0.32492
    """
    apart = 1.0 - float(np.sqrt(p * q).sum())
    return 0.0 if apart < _ROUNDING else float(np.sqrt(apart))


def variation(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """The total variation of two distributions, 0 to 1."""
    return float(np.abs(p - q).sum() / 2)


def divergence(p: NDArray[np.float64], q: NDArray[np.float64], rows: int) -> float:
    """The Kullback-Leibler divergence in bits; mass 0 counts as half a row."""
    held = p > 0
    guess = np.maximum(q[held], 0.5 / max(rows, 1))
    return float(max(0.0, (p[held] * np.log2(p[held] / guess)).sum()))


def column_distance(column: SharedColumn, rows: int) -> ColumnDistance:
    """Measure one column.

    Definition: Hellinger sqrt(1 - sum sqrt(p q)); total variation sum |p - q| / 2; Kullback-Leibler
    sum p log2(p / q), where what the release rules out (q = 0) is given the mass of half a row and
    the share of such rows is told. A generalized value lies evenly on the values it covers. Numbers
    with many values are compared in twenty bins of the original's quantiles; a number that half of
    a bin's rows share is a bin of its own.
    Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018.
    """
    p, q = column.shares()
    return ColumnDistance(
        column.name,
        column.role,
        hellinger(p, q),
        variation(p, q),
        divergence(p, q, rows),
        float(p[q == 0].sum()),
    )


def joint_distance(sides: Sides, names: Sequence[str]) -> JointDistance:
    """Measure the joint distribution of ``names`` over the original's own combinations."""
    p, q = sides.tuple_shares(names)
    return JointDistance(
        tuple(names),
        hellinger(p, q),
        divergence(p, q, sides.after),
        float(p[q == 0].sum()),
    )


def joint_distances(sides: Sides, *, largest: int = 6, each: int = 6) -> tuple[JointDistance, ...]:
    """All pairs, and up to ``each`` sets of every size up to ``largest``, of the columns."""
    names = list(sides.columns)
    chosen: list[tuple[str, ...]] = []
    for size in range(2, min(largest, len(names)) + 1):
        count = comb(len(names), size)
        if size == 2 or count <= each:
            chosen += combinations(names, size)
        else:  # there may be billions: only those that are evenly chosen are made
            places = [i * (count - 1) // (each - 1) for i in range(each)]
            chosen += [_combination(names, size, place) for place in places]
    return tuple(joint_distance(sides, one) for one in chosen)


def _combination(names: Sequence[str], size: int, place: int) -> tuple[str, ...]:
    """The set of ``size`` names at ``place`` in the order of ``itertools.combinations``."""
    out: list[str] = []
    for i, name in enumerate(names):
        with_it = comb(len(names) - i - 1, size - len(out) - 1)
        if place < with_it:
            out.append(name)
            if len(out) == size:
                break
        else:
            place -= with_it
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Pair(Result):
    """Two columns before and after.

    Attributes:
        columns: their names; ``kind`` the measure of association.
        contingency: the distance of the two-way tables, 0 to 1.
        before: the association in the original; ``after`` in the release. A correlation has its
            sign; the others are 0 to 1.
    """

    columns: tuple[str, str]
    kind: str
    contingency: float
    before: float
    after: float


def pairs_of(sides: Sides) -> tuple[Pair, ...]:
    """Measure every pair of shared columns.

    Definition: the contingency difference is the total variation of the two-way tables of shares.
    Association is Pearson's correlation of two numeric columns, Cramer's V of two others, and the
    correlation ratio of a mixed pair, all on the same two-way tables.
    Source: Cramer, "Mathematical methods of statistics", 1946.
    """
    columns = list(sides.columns.values())
    weights = {c.name: c.weights() for c in columns}
    return tuple(
        _pair(one, two, weights[one.name], weights[two.name])
        for one, two in combinations(columns, 2)
    )


def _pair(one: SharedColumn, two: SharedColumn, left: csr_array, right: csr_array) -> Pair:
    before = _table(
        one.coarse_of[one.before], one.coarse, two.coarse_of[two.before], two.coarse,
        one.before_counts,
    ).toarray()  # fmt: skip
    labels = _table(one.after, one.labels, two.after, two.labels, one.after_counts)
    # Pairs of labels, each spread over the bins that it covers: never pairs of leaves.
    after = (left.T @ labels @ right).toarray()
    kind, measure = _measure(one, two)
    return Pair(
        (one.name, two.name),
        kind,
        variation(before, after),
        measure(before, _means(one), _means(two)),
        measure(after, _means(one), _means(two)),
    )


def _table(a: NDArray[Any], rows: int, b: NDArray[Any], columns: int, counts: Counts) -> csr_array:
    """The shares of all pairs of codes that occur."""
    from scipy.sparse import csr_array

    one, two, held = pairs(a.astype(np.int64), b, columns, rows, counts)
    return csr_array((held / held.sum(), (one, two)), shape=(rows, columns))


def _means(column: SharedColumn) -> NDArray[np.float64] | None:
    """The mean number of each bin."""
    if column.numbers is None:
        return None
    sums = np.bincount(column.coarse_of, weights=column.numbers, minlength=column.coarse)
    return np.asarray(sums / np.maximum(np.bincount(column.coarse_of, minlength=column.coarse), 1))


def _measure(one: SharedColumn, two: SharedColumn) -> tuple[str, Any]:
    numeric = (one.numbers is not None, two.numbers is not None)
    if all(numeric):
        return "correlation", _correlation
    if not any(numeric):
        return "Cramer's V", lambda table, _, __: cramer(table)
    if numeric[0]:
        return "correlation ratio", lambda table, a, _: _ratio(table.T, a)
    return "correlation ratio", lambda table, _, b: _ratio(table, b)


def _correlation(
    table: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> float:
    p, q = table.sum(axis=1), table.sum(axis=0)
    a, b = in_range(a), in_range(b)
    x, y = a - p @ a, b - q @ b
    spread = float((p @ x**2) * (q @ y**2))
    return float(x @ table @ y) / np.sqrt(spread) if spread > 0 else 0.0


def cramer(table: NDArray[np.float64]) -> float:
    """Cramer's V of a table of shares."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    chi = float(((table - expected) ** 2 / expected).sum())
    return float(np.sqrt(chi / (min(table.shape) - 1)))


def _ratio(table: NDArray[np.float64], numbers: NDArray[np.float64]) -> float:
    """How much of the variance of the column side the row side explains, as a root."""
    numbers = in_range(numbers)
    rows = table.sum(axis=1)
    held = rows > 0
    inside = (table[held] @ numbers) / rows[held]
    mean = float(table.sum(axis=0) @ numbers)
    total = float(table.sum(axis=0) @ (numbers - mean) ** 2)
    between = float(rows[held] @ (inside - mean) ** 2)
    return float(np.sqrt(between / total)) if total > 0 else 0.0


_FEW = 10  # rows of either side below which no classifier is trained
_TOLD = 8000  # rows of either side to tell apart; with fewer, trees are too kind


@dataclass(frozen=True, slots=True)
class Likeness(Result):
    """How alike the tables look to a classifier and to a clustering."""

    pmse: Estimate
    pmse_ratio: float | None
    area: Estimate
    clusters: Estimate


def likeness(sides: Sides, *, seed: int = 0) -> Likeness:
    """Train classifiers to tell the tables apart, and cluster both.

    Definition: pMSE is the mean of (p - c)^2, where p is the estimated propensity of a row to come
    from the release and c its share; its ratio to what chance gives is 1 for rows drawn from a
    right model of the original, 2 for other people of the same population. Indistinguishability is
    the area under the curve of boosted trees (up to 8,000 rows of either side) on rows they have
    not seen: 0.5 is perfect, 1 certain. Cluster agreement is the adjusted Rand index of the
    partitions of the original's rows by centers found on either side.
    Source: Snoke et al., "General and specific utility measures for synthetic data", 2018; Hubert
    and Arabie, "Comparing partitions", 1985; Benkhelif, 2018, section 3.5.1.2 (the trees are ours:
    naive Bayes sees the margins only).
    """
    require()
    random = np.random.default_rng(seed)
    n = min(ROWS, sides.before, sides.after)
    before = sides.original_at(random.choice(sides.before, n, replace=False))
    after = sides.released_at(random.choice(sides.after, n, replace=False))
    columns = list(sides.columns.values())
    left, right = features(columns, before, after, drawn=random)
    if n < _FEW:
        nothing = failed_estimate("There are too few rows to train a classifier.", n)
        return Likeness(nothing, None, nothing, _clusters(left, right, seed))
    pmse, ratio = propensity(left, right)
    most = min(_TOLD, sides.before, sides.after)
    area = _separability(
        *plain_features(
            columns,
            sides.original_at(random.choice(sides.before, most, replace=False)),
            sides.released_at(random.choice(sides.after, most, replace=False)),
            random,
        ),
        seed,
    )
    return Likeness(pmse, ratio, area, _clusters(left, right, seed))


def plain_features(
    columns: Sequence[SharedColumn],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    random: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One feature for each column: its number, or the rank of its value by frequency."""
    left, right = [], []
    for column in columns:
        rank = np.argsort(np.argsort(-column.leaf_rows, kind="stable")).astype(np.float64)
        values = rank if column.numbers is None else column.numbers
        left.append(values[column.before[before]])
        right.append(values[sample_leaves(column, after, random)])
    return np.column_stack(left), np.column_stack(right)


def propensity(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[Estimate, float | None]:
    """The pMSE of as many rows of either side, and its ratio to what chance gives."""
    from sklearn.linear_model import LogisticRegression

    x, y = _stack(left, right)
    with quiet():
        fitted = LogisticRegression(max_iter=100).fit(x, y)
        squares = (fitted.predict_proba(x)[:, 1] - 0.5) ** 2
        rank = int(np.linalg.matrix_rank(x - x.mean(axis=0)))
    value = float(squares.mean())
    spread = 1.96 * float(squares.std(ddof=1)) / math.sqrt(len(squares))
    expected = rank * 0.125 / len(y)  # (k - 1) (1 - c)^2 c / N with c = 1/2
    found = Estimate(value, max(0.0, value - spread), value + spread, len(y))
    return found, value / expected if expected else None


def _stack(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.vstack([left, right]), np.concatenate([np.zeros(len(left)), np.ones(len(right))])


def _separability(left: NDArray[np.float64], right: NDArray[np.float64], seed: int) -> Estimate:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    x, y = _stack(left, right)
    with quiet():
        order = np.random.default_rng(seed).permutation(len(y))
        model = HistGradientBoostingClassifier(random_state=seed)
        chances = cross_val_predict(model, x[order], y[order], cv=3, method="predict_proba")
    area = float(roc_auc_score(y[order], chances[:, 1]))
    half = 1.96 * math.sqrt((2 * len(left) + 1) / (12 * len(left) * len(right)))
    return Estimate(area, max(0.0, area - half), min(1.0, area + half), len(y))


def _clusters(left: NDArray[np.float64], right: NDArray[np.float64], seed: int) -> Estimate:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    count = min(5, len(left), len(right))
    if count < 2:
        return failed_estimate("There are too few rows to cluster.", len(left))
    scores = []
    with quiet():
        for turn in range(3):
            one = KMeans(count, n_init=3, random_state=seed + turn).fit(left)
            two = KMeans(count, n_init=3, random_state=seed + turn).fit(right)
            scores.append(adjusted_rand_score(one.labels_, two.predict(left)))
    value = float(np.mean(scores))
    return Estimate(value, min(scores), max(scores), len(left), reason="Three random starts.")
