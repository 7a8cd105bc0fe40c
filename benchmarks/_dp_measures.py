"""How far synthetic codes are from those that they were learned from.

All measures run on the rows drawn. Models are scikit-learn's, so that no code of halfmask judges
itself.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from _dp_tables import CodedTable, Codes

SETS = 300  # sets of three columns that are looked at, and queries that are asked
TARGETS = 3  # columns that are predicted
TREES = 40
LEAST = 0.01  # of the rows: answers below it are as far off as if they were this


def measure(coded: CodedTable, test: Codes, made: Codes) -> dict[str, float]:
    """All measures of the rows ``made``.

    Args:
        coded: what they were learned from.
        test: other rows of the same kind.
        made: the synthetic rows.
    """
    sizes, ordered, codes = coded
    return {
        "pairs": total_variation(sizes, codes, made, 2),
        "triples": total_variation(sizes, codes, made, 3),
        "queries": query_error(sizes, ordered, codes, made),
        "tstr": mean_auc(sizes, made, test),
        "pmse": propensity(sizes, codes, made),
    }


def total_variation(sizes: dict[str, int], a: Codes, b: Codes, degree: int) -> float:
    """The mean total variation over sets of ``degree`` columns."""
    sets = list(combinations(sizes, degree))
    if len(sets) > SETS and degree > 2:
        sets = [sets[i] for i in np.random.default_rng(0).permutation(len(sets))[:SETS]]
    found = []
    for names in sets:
        cells = []
        for side in (a, b):
            cell = np.zeros(len(side[names[0]]), np.int64)
            for name in names:
                cell = cell * sizes[name] + side[name]
            cells.append(np.bincount(cell, minlength=int(np.prod([sizes[n] for n in names]))))
        p, q = (cell / cell.sum() for cell in cells)
        found.append(np.abs(p - q).sum() / 2)
    return float(np.mean(found))


def query_error(sizes: dict[str, int], ordered: list[str], a: Codes, b: Codes) -> float:
    """The mean relative error of random counts over three columns: spans, or halves of values."""
    found = []
    for i in range(SETS):
        random = np.random.default_rng(i)
        shares = np.ones(2)
        held = [np.ones(len(next(iter(side.values()))), bool) for side in (a, b)]
        for name in random.choice(list(sizes), min(3, len(sizes)), replace=False):
            if name in ordered:
                low, high = sorted(random.integers(0, sizes[name], 2))
                wanted = (np.arange(sizes[name]) >= low) & (np.arange(sizes[name]) <= high)
            else:
                wanted = random.permutation(sizes[name]) < max(1, sizes[name] // 2)
            held = [one & wanted[side[name]] for one, side in zip(held, (a, b), strict=True)]
        shares = [one.mean() for one in held]
        found.append(abs(shares[0] - shares[1]) / max(shares[0], LEAST))
    return float(np.mean(found))


def mean_auc(sizes: dict[str, int], made: Codes, test: Codes) -> float:
    """Trained on synthetic, judged on real rows: whether a column has its most frequent value."""
    from sklearn.metrics import roc_auc_score

    found = []
    for name in sorted(sizes, key=lambda n: (sizes[n], n))[:TARGETS]:
        top = int(np.bincount(test[name]).argmax())
        others = [other for other in sizes if other != name]
        wanted = made[name] == top
        if wanted.all() or not wanted.any():
            found.append(0.5)
            continue
        model = _trees().fit(_wide(made, others), wanted)
        chances = model.predict_proba(_wide(test, others))[:, 1]
        found.append(float(roc_auc_score(test[name] == top, chances)))
    return float(np.mean(found))


def propensity(sizes: dict[str, int], a: Codes, b: Codes) -> float:
    """How well trees tell rows drawn from rows learned from (pMSE; 0: not, 0.25: always)."""
    rows = np.r_[_wide(a, list(sizes)), _wide(b, list(sizes))]
    drawn = np.r_[np.zeros(len(next(iter(a.values())))), np.ones(len(next(iter(b.values()))))]
    half = np.random.default_rng(0).permutation(len(rows)) % 2 == 0
    found = np.empty(len(rows))
    for one in (half, ~half):
        found[~one] = _trees().fit(rows[one], drawn[one]).predict_proba(rows[~one])[:, 1]
    return float(((found - drawn.mean()) ** 2).mean())


def _trees() -> object:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=TREES, early_stopping=False, min_samples_leaf=20, random_state=0
    )


def _wide(codes: Codes, names: list[str]) -> np.ndarray:
    return np.stack([codes[name] for name in names], axis=1)
