"""Released tuples that cover tuples of leaves, against looking at each pair."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from halfmask.kernels.coverage import Coverage, LabelColumns, _ranged, covering


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
    """Lists, one after the other: where each begins, and their values."""
    starts = np.cumsum([0] + [len(one) for one in lists])
    return starts.astype(np.int64), np.concatenate(lists).astype(np.int64)


NONE = np.empty(0, dtype=np.int64)


def found(walked, weights, ranks=NONE, ends=NONE, fits=NONE, room=1000):
    """What the kernel finds, and NumPy in its place."""
    count = walked.leaves.shape[1]
    best = np.full(count, -1, dtype=np.int64)
    out = Coverage(weights, np.zeros(count), ranks, best, ends, fits)
    others = {way: Coverage(*(held.copy() for held in out)) for way in (_ranged.plain, covering)}
    _ranged.compiled(walked, out, room)
    for way, other in others.items():
        way(walked, other)
        assert other.mass == pytest.approx(out.mass)
        assert ((other.mass == 0) == (out.mass == 0)).all()
        assert other.best.tolist() == out.best.tolist()
        assert other.ends.tolist() == out.ends.tolist()
        for first, end in pairwise([0, *out.ends.tolist()] if len(fits) else []):
            assert sorted(other.fits[first:end]) == sorted(out.fits[first:end])
    return out


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from([1, 3, 40, 300]),
    st.sampled_from([1, 9, 200]),
    st.sampled_from([0.0, 0.05, 0.4, 1.0]),
    st.booleans(),
)
def test_walking_down_agrees_with_all_pairs(seed, columns, released, originals, share, ranges):
    random = np.random.default_rng(seed)
    widths = random.integers(1, 9, columns)
    tables = [random.random((6, width)) < share for width in widths]  # 0: each covers one leaf
    for held, width in zip(tables, widths, strict=True):
        held[np.arange(6), random.integers(0, width, 6)] = True  # a label covers something
    if ranges:  # from the first leaf of a label to its last
        tables = [
            np.maximum.accumulate(held, 1) & np.maximum.accumulate(held[:, ::-1], 1)[:, ::-1]
            for held in tables
        ]
    labels = np.unique(random.integers(0, 6, (released, columns)), axis=0)
    leaves = np.column_stack([random.integers(0, width, originals) for width in widths])
    leaves = np.unique(leaves, axis=0)
    weights = random.random(len(labels))
    ranks = random.permutation(len(labels))
    under = [chained([np.flatnonzero(row) for row in held]) for held in tables]
    walked = LabelColumns.of(
        list(np.ascontiguousarray(labels.T.astype(np.int32))),
        np.ascontiguousarray(leaves.T.astype(np.int32)),
        under,
    )
    covers = looked_at(leaves, labels, tables)
    ranked = found(walked, weights, ranks)
    assert ranked.mass == pytest.approx(covers @ weights)
    lowest = np.where(covers, ranks, len(labels)).min(axis=1)
    assert ranked.best.tolist() == np.where(lowest == len(labels), -1, lowest).tolist()
    added = found(walked, weights).mass
    assert added == pytest.approx(covers @ weights)
    assert ((added == 0) == ~covers.any(axis=1)).all()
    assert found(walked, weights, room=5).mass == pytest.approx(added)  # in halves
    sizes = found(walked, weights, ends=np.zeros(len(labels), dtype=np.int64)).ends
    assert sizes.tolist() == covers.sum(axis=0).tolist()
    starts = np.concatenate(([0], np.cumsum(sizes)))
    fits = np.full(starts[-1] + 1, -1)
    found(walked, weights, ends=starts[:-1].copy(), fits=fits)
    each = [sorted(fits[one:two]) for one, two in pairwise(starts)]
    assert each == [np.flatnonzero(column).tolist() for column in covers.T]
