"""Leaves in an order in which labels are ranges, and leaves that no label tells apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from halfmask.metrics.common_ground import LeafOrder, merge_leaves, order_leaves


def chained(labels):
    """Sets of leaves, one after the other: where each begins, and its leaves."""
    starts = np.cumsum([0] + [len(one) for one in labels])
    return starts, np.concatenate([sorted(one) for one in labels]).astype(np.int64)


def under(order):
    """The numbers under each label."""
    return [set(one.tolist()) for one in np.split(order.covered, order.starts[1:-1])]


def test_nested_labels_become_ranges():
    labels = [{0, 3}, {1, 4}, {0, 1, 3, 4}, {2}, {0, 1, 2, 3, 4, 5}, {5}]
    found = order_leaves(6, *chained(labels))
    assert sorted(found.number.tolist()) == list(range(6))
    assert under(found) == [{int(found.number[leaf]) for leaf in one} for one in labels]
    assert found.gaps == 0
    # Two wide labels that take turns, with a narrower one in each.
    deep = [{0, 1, 4, 5}, {0, 4}, {2, 3, 6, 7}, {2, 6}]
    assert order_leaves(8, *chained(deep)).gaps == 0
    # 0 and 3 stand under the same labels, and so do 1 and 4.
    one = merge_leaves(order_leaves(5, *chained([{0, 3}, {1, 2, 4}])))
    assert one.count == 2
    assert one.number[0] == one.number[3] != one.number[1] == one.number[2] == one.number[4]
    assert under(one) == [{int(one.number[0])}, {int(one.number[1])}]


def test_an_order_that_makes_more_gaps_is_not_taken():
    found = order_leaves(5, *chained([{2, 3}, {0}, {0, 1, 3, 4}, {1, 2, 3, 4}]))
    assert found.number.tolist() == [0, 1, 2, 3, 4]
    assert found.gaps == 1


@given(st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=5))
def test_numbers_keep_what_labels_cover(labels):
    given_order = order_leaves(12, *chained(labels))
    assert given_order.gaps <= LeafOrder(np.arange(12), 12, *chained(labels)).gaps
    found = merge_leaves(given_order)
    for order in (given_order, found):
        assert set(order.number.tolist()) == set(range(order.count))
        for one, numbers in zip(labels, under(order), strict=True):
            assert [int(number) in numbers for number in order.number] == [
                leaf in one for leaf in range(12)
            ]
        assert (np.diff(order.covered)[np.setdiff1d(np.arange(len(order.covered) - 1),
                order.starts[1:-1] - 1)] > 0).all()  # fmt: skip
