"""Can a classifier tell synthetic rows from original ones?

Definition: the area under the ROC curve of a classifier trained to tell the two apart, on rows it
    has not seen; 0.5 is a coin, 1 is certain. Naive Bayes sees the margins only, so that a strong
    learner is needed too.
Source: Benkhelif, 2018, 3.5.1.2; the strong learner is our addition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import EngineUnavailableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLE = 8_000


def indistinguishability(
    original: NDArray[np.int32], synthetic: NDArray[np.int32], random: np.random.Generator
) -> dict[str, float]:
    """The area under the curve of naive Bayes and of a random forest, on a held-out half.

    Raises:
        EngineUnavailableError: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.metrics import roc_auc_score
        from sklearn.naive_bayes import CategoricalNB
    except ImportError as error:
        raise EngineUnavailableError("scikit-learn", 'pip install "halfmask[measures]"') from error
    size = min(_SAMPLE, len(original), len(synthetic))
    rows = np.concatenate(
        [
            original[random.choice(len(original), size, replace=False)],
            synthetic[random.choice(len(synthetic), size, replace=False)],
        ]
    )
    origin = np.repeat([0, 1], size)
    order = random.permutation(2 * size)
    train, test = order[:size], order[size:]
    if len(np.unique(origin[train])) < 2 or len(np.unique(origin[test])) < 2:
        return {"naive_bayes": 0.5, "random_forest": 0.5}
    seed = int(random.integers(2**31))
    learners = {
        "naive_bayes": CategoricalNB(min_categories=rows.max(axis=0) + 1),
        "random_forest": RandomForestClassifier(100, min_samples_leaf=3, random_state=seed),
    }
    return {
        name: float(
            roc_auc_score(
                origin[test],
                learner.fit(rows[train], origin[train]).predict_proba(rows[test])[:, 1],
            )
        )
        for name, learner in learners.items()
    }
