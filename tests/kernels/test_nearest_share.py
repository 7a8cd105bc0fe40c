"""The share of rows that are linked to themselves, against every distance written out."""

from __future__ import annotations

import numpy as np
import pytest

from halfmask.kernels.distance import nearest_share


def by_hand(numbers, sought_numbers, codes, sought_codes, own):
    hits = 0.0
    for s, mine in enumerate(own):
        apart = ((numbers - sought_numbers[s]) ** 2).sum(axis=1)
        apart = apart + (codes != sought_codes[s]).sum(axis=1)
        nearest = apart <= apart.min() + 1e-12
        hits += nearest[mine] / nearest.sum()
    return hits


@pytest.mark.parametrize("seed", range(6))
def test_the_share_is_that_of_all_distances(seed):
    draw = np.random.default_rng(seed)
    numbers = draw.integers(0, 4, (40, 2)) / 4
    codes = draw.integers(0, 3, (40, 2))
    own = draw.permutation(40)[:25]
    sought = numbers[own] + draw.integers(0, 2, (25, 2)) / 4
    told = np.where(draw.random((25, 2)) < 0.2, -1, codes[own])
    wanted = by_hand(numbers, sought, codes, told, own)
    assert 0 < wanted < 25
    assert nearest_share(numbers, sought, codes, told, own) == pytest.approx(wanted)
