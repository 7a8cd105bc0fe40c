"""What measures that train models share: features of both tables, and how training is run.

A generalized value enters as its expectation: the mean number, or the share of each value that it
covers.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import EngineUnavailableError
from halfmask.metrics.utility.draw import drawn_leaves
from halfmask.metrics.weighted import deviation, mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn

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

    With ``drawn`` a label enters as one of its values instead of as their expectation.
    """
    left, right = [], []
    for column in columns:
        if column.numbers is not None:
            rows = column.leaf_rows
            scale = deviation(column.numbers, rows) or 1.0
            middle = mean(column.numbers, rows)
            guess = (
                column.label_numbers[column.after[after]]
                if drawn is None
                else column.numbers[drawn_leaves(column, after, drawn)]
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
            leaves = drawn_leaves(column, after, drawn)
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
