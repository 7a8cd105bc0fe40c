"""An asker with personal epsilons: nothing but noise tells whether a cautious person is there.

The attacker knows everybody else, all demands, the schema and the code, and sees one answer.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import halfmask as hm

SCHEMA = {
    "columns": {"pay": {"role": "sensitive", "domain": {"low": 0, "high": 100}}},
    "policy": {"epsilon": "own"},
}
TRIALS = 40


def table(*, there: bool) -> hm.Table:
    """400 people who allow 1 and 200 who allow 0.01; the victim is one more of these."""
    own = [1.0] * 400 + [0.01] * (200 + there)
    pay = np.random.default_rng(1).integers(0, 100, len(own))
    return hm.read(pa.table({"pay": pay, "own": own}), SCHEMA)


def grid_of(share: float) -> float:
    """What one whole step of noise is worth in a published sum that was divided by a share."""
    return 0.1 / share


def share_of(cautious: int, threshold: float) -> float:
    chance = np.expm1(0.01) / np.expm1(threshold)
    return (400 + min(1.0, chance) * cautious) / (400 + cautious)


def guess(answer: hm.PrivateRelease) -> bool:
    """Whether the published sum lies on the grid that the table with the victim would give."""
    found = answer.to_arrow()["s"][0].as_py()
    stated = answer.parameters["personal"]
    if "kept_share" in stated:  # no need to compute anything
        return abs(stated["kept_share"] - share_of(201, stated["threshold"])) < 1e-12
    apart = []
    for cautious in (200, 201):
        fits = []
        for threshold in (0.01, 1.0):
            step = grid_of(share_of(cautious, threshold))
            fits.append(abs(found / step - round(found / step)))
        apart.append(min(fits))
    return apart[1] < apart[0]


def test_one_published_sum_does_not_tell_membership() -> None:
    """Each world is asked as often as the other; a coin is right half the time."""
    right = 0
    for trial in range(TRIALS):
        there = trial % 2 == 0
        answer = hm.query(table(there=there), "SELECT SUM(pay) AS s FROM t WITH PERSONAL EPSILON")
        right += guess(answer) == there
    # Forty coins are right 33 times or more once in some 20,000 runs.
    assert right < 33
