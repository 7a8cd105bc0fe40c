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


def chained(lists):
    """Lists of lists, one after the other: where each begins, and their values."""
    starts, values = [], []
    for column in lists:
        ends = np.cumsum([0] + [len(one) for one in column]) + len(values)
        starts += ends.tolist()
        values += [value for one in column for value in one]
    return np.array(starts, dtype=np.int64), np.array(values, dtype=np.int64)


def offsets(lengths):
    return np.cumsum([0, *lengths[:-1]], dtype=np.int64)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from([1, 3, 40, 300]),
    st.sampled_from([1, 9, 200]),
    st.sampled_from([0.05, 0.4, 1.0]),
)
def test_walking_both_agrees_with_all_pairs(seed, columns, released, originals, share):
    random = np.random.default_rng(seed)
    widths = random.integers(1, 9, columns)
    tables = [random.random((6, width)) < share for width in widths]
    for held, width in zip(tables, widths, strict=True):
        held[np.arange(6), random.integers(0, width, 6)] = True  # a label covers something
    labels = np.unique(random.integers(0, 6, (released, columns)), axis=0)
    leaves = np.column_stack([random.integers(0, width, originals) for width in widths])
    leaves = np.unique(leaves, axis=0)
    weights = random.random(len(labels))
    ranks = random.permutation(len(labels))
    below = [[np.flatnonzero(row) for row in held] for held in tables]
    above = [[np.flatnonzero(row) for row in held.T] for held in tables]
    walked = cover.Columns(
        np.ascontiguousarray(labels.T.astype(np.int32)),
        np.ascontiguousarray(leaves.T.astype(np.int32)),
        *chained(below),
        *chained(above),
        offsets([7] * columns),
        offsets([width + 1 for width in widths]),
    )
    covers = looked_at(leaves, labels, tables)
    ranked = cover.Found.of(len(leaves), weights, ranks)
    cover.covering(walked, ranked)
    assert ranked.total() == pytest.approx(covers @ weights)
    lowest = np.where(covers, ranks, len(labels)).min(axis=1)
    assert ranked.best.tolist() == np.where(lowest == len(labels), -1, lowest).tolist()
    added = cover.Found.of(len(leaves), weights, ranks[:0])
    cover.covering(walked, added)
    assert added.total() == pytest.approx(covers @ weights)
    assert ((added.total() == 0) == ~covers.any(axis=1)).all()
