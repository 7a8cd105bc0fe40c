"""What models learn from a release: predictions, and coefficients of linear models."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import EngineUnavailableError, InputError
from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate, proportion
from halfmask.metrics.utility.tables import sample_leaves
from halfmask.metrics.weighted import deviation, weighted_mean
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.sides import Sides

    Numbers = NDArray[np.float64]


ROWS = 2000
_WIDE = 30  # values of a column with an indicator of their own
_TREES = 120  # of boosting, over all values of a target


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
    """The same features of the entries ``before`` of the original and ``after`` of the release.

    A generalized value enters as its expectation: the mean number, or the share of each value that
    it covers.

    With ``drawn`` a label enters as one of its values instead of as their expectation.
    """
    left, right = [], []
    for column in columns:
        if column.numbers is not None:
            rows = column.leaf_rows
            scale = deviation(column.numbers, rows) or 1.0
            middle = weighted_mean(column.numbers, rows)
            guess = (
                column.label_numbers[column.after[after]]
                if drawn is None
                else column.numbers[sample_leaves(column, after, drawn)]
            )
            left.append(((column.numbers[column.before[before]] - middle) / scale)[:, None])
            right.append(((guess - middle) / scale)[:, None])
            continue
        frequent = np.argsort(-column.leaf_rows, kind="stable")[:_WIDE]
        place = np.full(column.leaves, len(frequent), dtype=np.int64)
        place[frequent] = np.arange(len(frequent))
        mass = np.zeros((column.labels, len(frequent) + 1))
        owner = np.repeat(np.arange(column.labels), column.sizes)
        np.add.at(mass, (owner, place[column.covered]), 1.0 / column.sizes[owner])
        left.append(np.eye(len(frequent) + 1)[place[column.before[before]]])
        if drawn is None:
            right.append(mass[column.after[after]])
        else:
            leaves = sample_leaves(column, after, drawn)
            right.append(np.eye(len(frequent) + 1)[place[leaves]])
    return np.hstack(left), np.hstack(right)


def few_trees(classes: int) -> dict[str, Any]:
    """Boosting that stays quick: a tree for every value of the target in each round."""
    rounds = max(5, min(30, _TREES // max(classes, 1)))
    return {"max_iter": rounds, "max_leaf_nodes": 15}


@contextmanager
def quiet() -> Iterator[None]:
    """Train in one thread (a busy machine makes threads wait for each other), without warnings.

    Models that do not converge on a few rows are no news to the user.
    """
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        yield


_CLASSES = 20


@dataclass(frozen=True, slots=True)
class Prediction(Result):
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


def predict(
    sides: Sides, target: str, *, inside: int | None = None, seed: int = 0
) -> tuple[Prediction, ...]:
    """Train logistic or ridge regression, a tree and boosting for ``target``.

    Definition: models are trained on the release and tested on original rows, beside the same
    models trained on other original rows (accuracy and area under the curve, or R squared).
    Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018,
    section 2.5.

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
    train, test = _split_rows(sides, inside, random)
    if not len(test):
        raise InputError("There are too few rows to test a model on.")
    drawn = random.choice(sides.after, min(ROWS, sides.after), replace=False)
    released = sides.released_at(drawn)
    known, own = features(others, np.concatenate([train, test]), released)
    leaves = sample_leaves(column, released, random)
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


def _split_rows(
    sides: Sides, inside: int | None, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries of the original to train on and to test on, drawn as rows."""
    members = int(sides.original_counts[:inside].sum())
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
    first = _fit(model, x, y, test, truth)
    second = _fit(model, released, labels, test, truth)
    common = int(np.bincount(y).argmax())
    return Prediction(
        target, name, "accuracy", first[0], second[0], first[1], second[1],
        float((truth == common).mean()),
    )  # fmt: skip


def _fit(
    model: Any, x: Any, y: Any, test: Any, truth: NDArray[np.int64]
) -> tuple[Estimate, float | None]:
    if len(np.unique(y)) < 2:
        return failed_estimate("The target has one value to learn from."), None
    from sklearn.base import clone

    with quiet():
        fitted = clone(model).fit(x, y)
        chances = fitted.predict_proba(test)
    hits = int((fitted.classes_[chances.argmax(axis=1)] == truth).sum())
    return proportion(hits, len(truth)), _area(fitted.classes_, chances, truth)


def _area(classes: Any, chances: Any, truth: NDArray[np.int64]) -> float | None:
    """The area under the curve, one against the rest, weighted by frequency."""
    parts, weights = [], []
    for place, one in enumerate(classes):
        inside = truth == one
        if inside.any() and not inside.all():
            parts.append(_ranked_area(inside, chances[:, place]))
            weights.append(inside.mean())
    return float(np.average(parts, weights=weights)) if parts else None


def _ranked_area(inside: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    """How often one inside scores above one outside, ties counting half, by mean ranks."""
    # Mann and Whitney: the area is the rank sum of those inside, less what it is at least.
    _, place, held = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(held) - (held - 1) / 2)[place]
    own = int(inside.sum())
    above = float(ranks[inside].sum()) - own * (own + 1) / 2
    return above / (own * (len(inside) - own))


def _regress(target: str, name: str, model: Any, data: Any) -> Prediction:
    from sklearn.base import clone

    x, y, released, numbers, test, truth = data
    scores = []
    for left, right in ((x, y), (released, numbers)):
        with quiet():
            guess = clone(model).fit(left, right).predict(test)
        scores.append(_r_squared(truth, guess))
    return Prediction(target, name, "R squared", scores[0], scores[1], None, None, 0.0)


def _r_squared(truth: NDArray[np.float64], guess: NDArray[np.float64]) -> Estimate:
    """R squared with the normal interval of a ratio of two means, which holds below 0 too."""
    squares = (truth - truth.mean()) ** 2
    spread, rows = float(squares.mean()), len(truth)
    if spread == 0:
        return failed_estimate("The target never varies.", rows)
    errors = (truth - guess) ** 2
    lost = float(errors.mean()) / spread
    # The delta method for a ratio of means.
    half = 1.96 * float((errors - lost * squares).std()) / spread / math.sqrt(rows)
    return Estimate(1 - lost, 1 - lost - half, min(1.0, 1 - lost + half), rows)


_ROWS = 50_000
_CELLS = 10_000_000  # rows times features of either side
_SPARE = 10  # rows beyond the coefficients below which nothing is fitted
_NOTHING = 1e-8  # the share of a spread below which it is rounding


@dataclass(frozen=True, slots=True)
class Regression(Result):
    """How far a linear model of one target agrees.

    Attributes:
        target: the column.
        overlap: the mean overlap of the coefficients' confidence intervals.
        coefficients: how many coefficients both tables can estimate, without the intercept.
        lost: how many more the original can.
        significant: how many differ from 0 on the original with 95 % confidence.
        same_sign: the share of these with the same sign on the release; None where there are none.
        largest: the largest difference of a coefficient, in standard errors of the original's.
    """

    target: str
    overlap: Estimate
    coefficients: int = 0
    lost: int = 0
    significant: int = 0
    same_sign: float | None = None
    largest: float | None = None


@dataclass(frozen=True, slots=True)
class _Side:
    """Sums of products of centered features over so many rows."""

    products: Numbers
    rows: int

    def fit(self, kept: list[int], target: int) -> tuple[Numbers, Numbers, Numbers] | None:
        """Coefficients, standard errors and half intervals; None where nothing is left open."""
        from scipy.special import stdtrit

        inverse = np.linalg.inv(self.products[np.ix_(kept, kept)])
        found = inverse @ self.products[kept, target]
        total, spare = self.products[target, target], self.rows - len(kept) - 1
        error = total - self.products[kept, target] @ found
        if error <= _NOTHING * total:
            return None
        errors = np.sqrt(np.diag(inverse) * error / spare)
        return found, errors, stdtrit(spare, 0.975) * errors


def regress(sides: Sides, targets: Sequence[str], *, seed: int = 0) -> tuple[Regression, ...]:
    """Fit each numeric target on all other columns, on up to 50,000 rows of either side.

    Definition: ordinary least squares of a numeric target on the features of all other columns,
    fitted on either side. The overlap of a coefficient is the mean of o / (length of the original's
    95 % confidence interval) and o / (length of the release's), where o is the length that both
    intervals share, below 0 the gap between them: 1 is the same interval, 0 or below are disjoint
    ones. The mean over coefficients is about 0.80 where the released rows are drawn anew from the
    original's, about 0.71 where they are other people of the same population.
    Source: Karr et al., "A framework for evaluating the utility of data altered to protect
    confidentiality", 2006.

    A generalized value enters as its expectation. Features that the others give, on either side,
    are left out on both; the most frequent value of a column is what the others are held against.
    """
    numeric = [name for name in targets if sides.columns[name].numbers is not None]
    if not numeric:
        return ()
    columns, none = list(sides.columns.values()), np.arange(0)
    widths = [features([column], none, none)[0].shape[1] for column in columns]
    owner = np.repeat(np.arange(len(columns)), widths)
    most = min(_ROWS, _CELLS // len(owner))
    before, original = _sample(sides.before, sides.original_at, most, seed)
    after, released = _sample(sides.after, sides.released_at, most, seed)
    left, right = features(columns, before, after)
    both = _side(left, original), _side(right, released)
    whole = max(sides.before, sides.after) <= most
    reason = "" if whole else f"On {most:,} rows of either table at most."
    names = list(sides.columns)
    return tuple(_regression(name, both, owner == names.index(name), reason) for name in numeric)


def _sample(
    rows: int, entries_at: Callable[[NDArray[np.int64]], NDArray[np.int64]], most: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries and how many of the drawn rows each holds; the same rows of tables of one size."""
    drawn = np.random.default_rng(seed).choice(rows, min(most, rows), replace=False)
    entries, counts = np.unique(entries_at(drawn), return_counts=True)
    return entries, counts


def _side(values: Numbers, counts: NDArray[np.int64]) -> _Side:
    rows = int(counts.sum())
    centered = values - counts @ values / rows
    return _Side(centered.T @ (centered * counts[:, None]), rows)


def _regression(
    name: str, both: tuple[_Side, _Side], own: NDArray[np.bool_], reason: str
) -> Regression:
    rows = min(side.rows for side in both)
    # Backwards, so that of a column's indicators the first, its most frequent value, is left out.
    target, others = int(np.flatnonzero(own)[0]), np.flatnonzero(~own)[::-1]
    if not _independent(both, np.array([target])):
        return Regression(name, failed_estimate("The target does not vary on both sides.", rows))
    kept = _independent(both, others)
    lost = len(_independent(both[:1], others)) - len(kept)
    if not kept:
        nothing = failed_estimate("No other column varies on both sides.", rows)
        return Regression(name, nothing, lost=lost)
    if rows - len(kept) - 1 < _SPARE:
        return Regression(
            name, failed_estimate("There are too few rows for so many columns.", rows)
        )
    first, second = (side.fit(kept, target) for side in both)
    if first is None or second is None:
        return Regression(name, failed_estimate("The other columns give the target in full.", rows))
    (one, errors, half), (two, _, other) = first, second
    sure = np.abs(one) > half
    return Regression(
        name,
        exact_estimate(round(float(overlap(one, half, two, other).mean()), 12), rows, reason),
        len(kept),
        lost,
        int(sure.sum()),
        float((one * two > 0)[sure].mean()) if sure.any() else None,
        float((np.abs(one - two) / errors).max()),
    )


def overlap(one: Numbers, half: Numbers, two: Numbers, other: Numbers) -> Numbers:
    """How far intervals around ``one`` and ``two``, half as wide as given, overlap."""
    shared = np.minimum(one + half, two + other) - np.maximum(one - half, two - other)
    return np.asarray((shared / half + shared / other) / 4)


def _independent(both: Sequence[_Side], places: NDArray[np.int64]) -> list[int]:
    """Those of some features that vary on each side beyond what the ones before them give."""
    # Gaussian elimination: what is left on the diagonal is what the features before do not give.
    rest = [side.products[np.ix_(places, places)] for side in both]
    spreads = [np.diag(one).copy() for one in rest]
    kept = []
    for turn, place in enumerate(places):
        # A spread of one row in all rows is about 1.
        if all(
            one[turn, turn] > max(_NOTHING * spread[turn], _NOTHING)
            for one, spread in zip(rest, spreads, strict=True)
        ):
            kept.append(int(place))
            for one in rest:
                one -= np.outer(one[:, turn], one[turn]) / one[turn, turn]
    return kept
