"""Do models that were trained on the release predict original rows?

Definition: models are trained on the release and tested on original rows, beside the same models
trained on other original rows (accuracy and area under the curve, or R squared).
Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018,
section 2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.estimate import Estimate, failed, proportion
from halfmask.metrics.utility.draw import drawn_leaves
from halfmask.metrics.utility.learning import ROWS, features, few_trees, quiet, require
from halfmask.metrics.weighted import rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides

_CLASSES = 20


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


def predict(
    sides: Sides, target: str, *, inside: int | None = None, seed: int = 0
) -> tuple[Prediction, ...]:
    """Train logistic or ridge regression, a tree and boosting for ``target``.

    Args:
        sides: both tables.
        target: the column to predict.
        inside: after so many entries of the original come those of people who are not in the
            release, to test on; None: there are none, and rows of people who are in it are tested
            on, on both sides alike, so that both scores lean upward.
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
    train, test = _divided(sides, inside, random)
    if not len(test):
        raise InputError("There are too few rows to test a model on.")
    drawn = random.choice(sides.after, min(ROWS, sides.after), replace=False)
    released = sides.released_at(drawn)
    known, own = features(others, np.concatenate([train, test]), released)
    leaves = drawn_leaves(column, released, random)
    regression = column.numbers is not None and int((column.leaf_rows > 0).sum()) > _CLASSES
    if regression:
        assert column.numbers is not None  # noqa: S101 - regression needs numbers
        number = column.numbers[column.before]
        data: Any = (known[: len(train)], number[train], own, column.numbers[leaves],
                known[len(train) :], number[test])  # fmt: skip
        return tuple(_regress(target, name, model, data) for name, model in _regressors(seed))
    truth = column.before
    classes = len(np.unique(truth[train]))
    data = (known[: len(train)], truth[train], own, leaves, known[len(train) :], truth[test])
    return tuple(
        _classify(target, name, model, data) for name, model in _classifiers(seed, classes)
    )


def _divided(
    sides: Sides, inside: int | None, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries of the original to train on and to test on, drawn as rows."""
    counts = sides.original_counts
    members = sides.before
    if inside is not None:
        members = rows_of(inside, None if counts is None else counts[:inside])
    train = sides.original_at(random.choice(members, min(ROWS, members), replace=False))
    if inside is None:
        return train, train[: ROWS // 2]
    others = sides.before - members
    drawn = random.choice(others, min(ROWS, others), replace=False) if others else np.arange(0)
    return train, sides.original_at(members + drawn)


def _classifiers(seed: int, classes: int) -> list[tuple[str, Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    return [
        ("logistic regression", LogisticRegression(max_iter=100)),
        ("tree", DecisionTreeClassifier(min_samples_leaf=10, random_state=seed)),
        (
            "boosting",
            HistGradientBoostingClassifier(random_state=seed, **few_trees(classes)),
        ),
    ]


def _regressors(seed: int) -> list[tuple[str, Any]]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    return [
        ("ridge regression", Ridge()),
        ("tree", DecisionTreeRegressor(min_samples_leaf=10, random_state=seed)),
        (
            "boosting",
            HistGradientBoostingRegressor(random_state=seed, **few_trees(2)),
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
    """R squared with the normal interval of a ratio of two means, which holds below 0 too."""
    squares = (truth - truth.mean()) ** 2
    spread, rows = float(squares.mean()), len(truth)
    if spread == 0:
        return failed("The target never varies.", rows)
    errors = (truth - guess) ** 2
    lost = float(errors.mean()) / spread
    half = 1.96 * float((errors - lost * squares).std()) / spread / math.sqrt(rows)
    return Estimate(1 - lost, 1 - lost - half, min(1.0, 1 - lost + half), rows)
