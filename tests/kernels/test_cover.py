"""Released tuples that cover tuples of leaves, against looking at each pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfmask.kernels import cover


def looked_at(leaves, labels, tables):
    """(tuples of leaves, released tuples) whether it covers it."""
    return np.array(
        [
            [
                all(held[label, leaf] for held, label, leaf in zip(tables, one, each, strict=True))
                for one in labels.tolist()
            ]
            for each in leaves.tolist()
        ]
    )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from([1, 63, 64, 65, 200]),
    st.sampled_from([1, 1 << 30]),
)
def test_all_pairs_agree_in_one_turn_and_in_several(seed, columns, released, held):
    random = np.random.default_rng(seed)
    widths = random.integers(1, 6, columns)
    tables = [random.random((5, width)) < 0.7 for width in widths]
    labels = random.integers(0, 5, (released, columns))
    leaves = np.column_stack([random.integers(0, width, 9) for width in widths])
    flat = np.concatenate([held.ravel() for held in tables])
    offsets = np.cumsum([0] + [held.size for held in tables[:-1]])
    weights = random.random(released)
    covers = looked_at(leaves, labels, tables)
    mass = cover.covered_mass(leaves, labels, weights, flat, offsets, widths, held)
    assert mass == pytest.approx(covers @ weights)
    first = cover.first_cover(leaves, labels, flat, offsets, widths, held)
    expected = np.where(covers.any(axis=1), covers.argmax(axis=1), -1)
    assert first.tolist() == expected.tolist()
