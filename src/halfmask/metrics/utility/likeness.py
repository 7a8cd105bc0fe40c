"""Can a classifier or a clustering tell the release from the original?

Definition: pMSE is the mean of (p - c)^2, where p is the estimated propensity of a row to come from
the release and c its share; its ratio to what chance gives is 1 for rows drawn from a right model
of the original, 2 for other people of the same population. Indistinguishability is the area under
the curve of such a classifier on rows it has not seen: 0.5 is perfect, 1 certain. Cluster agreement
is the adjusted Rand index of the partitions of the original's rows by centers found on either side.
Source: Snoke et al., "General and specific utility measures for synthetic data", 2018; Hubert and
Arabie, "Comparing partitions", 1985; Benkhelif, 2018, section 3.5.1.2 (the boosted trees are ours:
naive Bayes sees the margins only).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.estimate import Estimate, failed
from halfmask.metrics.utility.learning import ROWS, features, few_trees, quiet, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides


_FEW = 10  # rows of either side below which no classifier is trained


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike the tables look to a classifier and to a clustering."""

    pmse: Estimate
    pmse_ratio: float | None
    area: Estimate
    clusters: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "pmse": self.pmse.to_dict(),
            "pmse_ratio": self.pmse_ratio,
            "area": self.area.to_dict(),
            "clusters": self.clusters.to_dict(),
        }


def likeness(sides: Sides, *, seed: int = 0) -> Likeness:
    """Train classifiers to tell the tables apart, and cluster both."""
    require()
    random = np.random.default_rng(seed)
    n = min(ROWS, sides.before, sides.after)
    before = sides.original_at(random.choice(sides.before, n, replace=False))
    after = sides.released_at(random.choice(sides.after, n, replace=False))
    columns = list(sides.columns.values())
    left, right = features(columns, before, after, drawn=random)
    if n < _FEW:
        nothing = failed("There are too few rows to train a classifier.", n)
        return Likeness(nothing, None, nothing, _clusters(left, right, seed))
    pmse, ratio = propensity(left, right)
    return Likeness(pmse, ratio, _told_apart(left, right, seed), _clusters(left, right, seed))


def propensity(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[Estimate, float | None]:
    """The pMSE of as many rows of either side, and its ratio to what chance gives."""
    from sklearn.linear_model import LogisticRegression

    x, y = _stacked(left, right)
    with quiet():
        fitted = LogisticRegression(max_iter=100).fit(x, y)
        squares = (fitted.predict_proba(x)[:, 1] - 0.5) ** 2
    value = float(squares.mean())
    spread = 1.96 * float(squares.std(ddof=1)) / math.sqrt(len(squares))
    rank = int(np.linalg.matrix_rank(x - x.mean(axis=0)))
    expected = rank * 0.125 / len(y)  # (k - 1) (1 - c)^2 c / N with c = 1/2
    found = Estimate(value, max(0.0, value - spread), value + spread, len(y))
    return found, value / expected if expected else None


def _stacked(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.vstack([left, right]), np.concatenate([np.zeros(len(left)), np.ones(len(right))])


def _told_apart(left: NDArray[np.float64], right: NDArray[np.float64], seed: int) -> Estimate:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    x, y = _stacked(left, right)
    with quiet():
        order = np.random.default_rng(seed).permutation(len(y))
        chances = np.empty(len(y))
        model = HistGradientBoostingClassifier(random_state=seed, **few_trees(2))
        chances[order] = cross_val_predict(model, x[order], y[order], cv=3, method="predict_proba")[
            :, 1
        ]
    area = float(roc_auc_score(y, chances))
    half = 1.96 * math.sqrt((2 * len(left) + 1) / (12 * len(left) * len(right)))
    return Estimate(area, max(0.0, area - half), min(1.0, area + half), len(y))


def _clusters(left: NDArray[np.float64], right: NDArray[np.float64], seed: int) -> Estimate:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    count = min(5, len(left), len(right))
    if count < 2:
        return failed("There are too few rows to cluster.", len(left))
    scores = []
    with quiet():
        for turn in range(3):
            one = KMeans(count, n_init=3, random_state=seed + turn).fit(left)
            two = KMeans(count, n_init=3, random_state=seed + turn).fit(right)
            scores.append(adjusted_rand_score(one.labels_, two.predict(left)))
    value = float(np.mean(scores))
    return Estimate(value, min(scores), max(scores), len(left), reason="Three random starts.")
