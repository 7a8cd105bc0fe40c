"""What can be learned from a release: prediction, indistinguishability and clusters.

Definition: models are trained on the release and tested on original rows, beside the same models
trained on other original rows (accuracy and area under the curve, or R squared). pMSE is the mean
of (p - c)^2, where p is the estimated propensity of a row to come from the release and c its share;
1 in the ratio is what chance gives. Indistinguishability is the area under the curve of the best
such classifier: 0.5 is perfect. Cluster agreement is the adjusted Rand index of the partitions of
the original's rows by centers found on either side.
Source: Snoke et al., "General and specific utility measures for synthetic data", 2018; Hubert and
Arabie, "Comparing partitions", 1985.

A generalized value enters as its expectation: the mean number, or the share of each value that it
covers.
"""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import EngineUnavailableError, InputError
from halfmask.metrics.estimate import Estimate, failed, proportion
from halfmask.metrics.utility.draw import drawn_leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.sides import SharedColumn, Sides

ROWS = 2000
_WIDE = 30  # values of a column with an indicator of their own
_CLASSES = 20
_TREES = 120  # of boosting, over all values of a target


@dataclass(frozen=True, slots=True)
class Prediction:
    """One model for one target.

    Attributes:
        target: the column; ``model`` the kind of model.
        measure: accuracy or R squared.
        original: the score if trained on original rows; ``release`` if trained on the release.
        area_original: the area under the curve (one against the rest), None for numbers.
        baseline: the score of the most frequent value or the mean.
    """

    target: str
    model: str
    measure: str
    original: Estimate
    release: Estimate
    area_original: float | None
    area_release: float | None
    baseline: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "target": self.target,
            "model": self.model,
            "measure": self.measure,
            "original": self.original.to_dict(),
            "release": self.release.to_dict(),
            "area_original": self.area_original,
            "area_release": self.area_release,
            "baseline": self.baseline,
        }


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


def available() -> bool:
    """Whether scikit-learn is installed."""
    from importlib.util import find_spec

    return find_spec("sklearn") is not None


def require() -> None:
    """Raise where scikit-learn is not installed."""
    if not available():
        raise EngineUnavailableError("scikit-learn", "pip install halfmask[measures]")


def features(
    columns: Sequence[SharedColumn],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    drawn: np.random.Generator | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same features of original rows ``before`` and of released rows ``after``.

    With ``drawn`` a label enters as one of its values instead of as their expectation.
    """
    left, right = [], []
    for column in columns:
        if column.numbers is not None:
            own = column.numbers[column.before]
            scale = float(own.std()) or 1.0
            middle = float(own.mean())
            guess = (
                column.label_numbers[column.after[after]]
                if drawn is None
                else column.numbers[drawn_leaves(column, drawn)[after]]
            )
            left.append(((column.numbers[column.before[before]] - middle) / scale)[:, None])
            right.append(((guess - middle) / scale)[:, None])
            continue
        counts = np.bincount(column.before, minlength=column.leaves)
        frequent = np.argsort(-counts, kind="stable")[:_WIDE]
        place = np.full(column.leaves, len(frequent), dtype=np.int64)
        place[frequent] = np.arange(len(frequent))
        mass = np.zeros((column.labels, len(frequent) + 1))
        owner = np.repeat(np.arange(column.labels), column.sizes)
        np.add.at(mass, (owner, place[column.covered]), 1.0 / column.sizes[owner])
        left.append(np.eye(len(frequent) + 1)[place[column.before[before]]])
        if drawn is None:
            right.append(mass[column.after[after]])
        else:
            leaves = drawn_leaves(column, drawn)[after]
            right.append(np.eye(len(frequent) + 1)[place[leaves]])
    return np.hstack(left), np.hstack(right)


def predict(
    sides: Sides, target: str, *, outside: NDArray[np.int64] | None = None, seed: int = 0
) -> tuple[Prediction, ...]:
    """Train logistic or ridge regression, a tree and boosting for ``target``.

    Args:
        sides: both tables.
        target: the column to predict.
        outside: original rows of people who are not in the release, to test on; None: rows of
            people who are in it, on both sides alike, so that both scores lean upward.
        seed: repeats the random choices.
    """
    require()
    if target not in sides.columns:
        raise InputError(f"The target {target!r} is not in both tables.")
    random = np.random.default_rng(seed)
    column = sides.columns[target]
    others = [c for c in sides.columns.values() if c.name != target]
    if not others:
        raise InputError(f"There is no column but {target!r} to predict it from.")
    inside = sides.before if outside is None else sides.before - len(outside)
    train = random.permutation(inside)[:ROWS]
    test = train[: ROWS // 2] if outside is None else outside[:ROWS]
    if not len(test):
        raise InputError("There are too few rows to test a model on.")
    released = random.permutation(sides.after)[:ROWS]
    known, own = features(others, np.concatenate([train, test]), released)
    leaves = drawn_leaves(column, random)[released]
    regression = column.numbers is not None and len(np.unique(column.before)) > _CLASSES
    if regression:
        assert column.numbers is not None  # noqa: S101 - regression needs numbers
        number = column.numbers[column.before]
        data = (known[: len(train)], number[train], own, column.numbers[leaves],
                known[len(train) :], number[test])  # fmt: skip
        return tuple(_regress(target, name, model, data) for name, model in _regressors(seed))
    truth = column.before
    classes = len(np.unique(truth[train]))
    data = (known[: len(train)], truth[train], own, leaves, known[len(train) :], truth[test])
    return tuple(
        _classify(target, name, model, data) for name, model in _classifiers(seed, classes)
    )


def _classifiers(seed: int, classes: int) -> list[tuple[str, Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    return [
        ("logistic regression", LogisticRegression(max_iter=100)),
        ("tree", DecisionTreeClassifier(min_samples_leaf=10, random_state=seed)),
        (
            "boosting",
            HistGradientBoostingClassifier(random_state=seed, **_small(classes)),
        ),
    ]


def _small(classes: int) -> dict[str, Any]:
    """Boosting that stays quick: a tree for every value of the target in each round."""
    rounds = max(5, min(30, _TREES // max(classes, 1)))
    return {"max_iter": rounds, "max_leaf_nodes": 15}


def _regressors(seed: int) -> list[tuple[str, Any]]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    return [
        ("ridge regression", Ridge()),
        ("tree", DecisionTreeRegressor(min_samples_leaf=10, random_state=seed)),
        (
            "boosting",
            HistGradientBoostingRegressor(random_state=seed, **_small(2)),
        ),
    ]


def _classify(target: str, name: str, model: Any, data: Any) -> Prediction:
    x, y, released, labels, test, truth = data
    first = _fitted(model, x, y, test, truth)
    second = _fitted(model, released, labels, test, truth)
    common = int(np.bincount(y).argmax())
    return Prediction(
        target, name, "accuracy", first[0], second[0], first[1], second[1],
        float((truth == common).mean()),
    )  # fmt: skip


def _fitted(
    model: Any, x: Any, y: Any, test: Any, truth: NDArray[np.int64]
) -> tuple[Estimate, float | None]:
    if len(np.unique(y)) < 2:
        return failed("The target has one value to learn from."), None
    from sklearn.base import clone

    with quiet():
        fitted = clone(model).fit(x, y)
        chances = fitted.predict_proba(test)
    hits = int((fitted.classes_[chances.argmax(axis=1)] == truth).sum())
    return proportion(hits, len(truth)), _area(fitted.classes_, chances, truth)


def _area(classes: Any, chances: Any, truth: NDArray[np.int64]) -> float | None:
    """The area under the curve, one against the rest, weighted by frequency."""
    from sklearn.metrics import roc_auc_score

    parts, weights = [], []
    for place, one in enumerate(classes):
        inside = truth == one
        if inside.any() and not inside.all():
            parts.append(roc_auc_score(inside, chances[:, place]))
            weights.append(inside.mean())
    return float(np.average(parts, weights=weights)) if parts else None


def _regress(target: str, name: str, model: Any, data: Any) -> Prediction:
    from sklearn.base import clone

    x, y, released, numbers, test, truth = data
    scores = []
    for left, right in ((x, y), (released, numbers)):
        with quiet():
            guess = clone(model).fit(left, right).predict(test)
        scores.append(_explained(truth, guess))
    return Prediction(target, name, "R squared", scores[0], scores[1], None, None, 0.0)


def _explained(truth: NDArray[np.float64], guess: NDArray[np.float64]) -> Estimate:
    """R squared with the normal interval of its Fisher-transformed root."""
    spread = float(((truth - truth.mean()) ** 2).sum())
    if spread == 0:
        return failed("The target never varies.", len(truth))
    value = 1 - float(((truth - guess) ** 2).sum()) / spread
    half = 2 * math.sqrt(max(0.0, value)) * max(0.0, 1 - value) / math.sqrt(max(len(truth), 4))
    return Estimate(value, value - 2 * half, min(1.0, value + 2 * half), len(truth))


def likeness(sides: Sides, *, seed: int = 0) -> Likeness:
    """Train classifiers to tell the tables apart, and cluster both."""
    require()
    random = np.random.default_rng(seed)
    n = min(ROWS, sides.before, sides.after)
    before = random.permutation(sides.before)[:n]
    after = random.permutation(sides.after)[:n]
    columns = list(sides.columns.values())
    left, right = features(columns, before, after, drawn=random)
    pmse, ratio, area = _told_apart(left, right, seed)
    return Likeness(pmse, ratio, area, _clusters(left, right, seed))


def _told_apart(
    left: NDArray[np.float64], right: NDArray[np.float64], seed: int
) -> tuple[Estimate, float | None, Estimate]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    x = np.vstack([left, right])
    y = np.concatenate([np.zeros(len(left)), np.ones(len(right))])
    if len(left) < 10:
        nothing = failed("There are too few rows to train a classifier.", len(left))
        return nothing, None, nothing
    with quiet():
        fitted = LogisticRegression(max_iter=100).fit(x, y)
        squares = (fitted.predict_proba(x)[:, 1] - 0.5) ** 2
        order = np.random.default_rng(seed).permutation(len(y))
        chances = np.empty(len(y))
        model = HistGradientBoostingClassifier(random_state=seed, **_small(2))
        chances[order] = cross_val_predict(model, x[order], y[order], cv=3, method="predict_proba")[
            :, 1
        ]
    value = float(squares.mean())
    spread = 1.96 * float(squares.std(ddof=1)) / math.sqrt(len(squares))
    rank = int(np.linalg.matrix_rank(x - x.mean(axis=0)))
    expected = rank * 0.125 / len(y)  # (k - 1) (1 - c)^2 c / N with c = 1/2
    area = float(roc_auc_score(y, chances))
    half = 1.96 * math.sqrt((2 * len(left) + 1) / (12 * len(left) * len(right)))
    return (
        Estimate(value, max(0.0, value - spread), value + spread, len(y)),
        value / expected if expected else None,
        Estimate(area, max(0.0, area - half), min(1.0, area + half), len(y)),
    )


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


@contextmanager
def quiet() -> Iterator[None]:
    """Train in one thread (a busy machine makes threads wait for each other), without warnings.

    Models that do not converge on a few rows are no news to the user.
    """
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        yield
