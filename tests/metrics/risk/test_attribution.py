"""Attribution and nearness on tables small enough to count by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.risk.attack import targets
from halfmask.metrics.risk.disclosure import attribution
from halfmask.metrics.risk.linkability import nearness
from halfmask.metrics.sides import sides


def rows(*values):
    columns = {f"c{i}": list(column) for i, column in enumerate(zip(*values, strict=True))}
    schema = {name: {"role": "quasi", "kind": "nominal"} for name in columns}
    return hm.read(pa.table(columns), schema={"columns": schema})


def test_the_copy_of_a_table_can_be_attributed_to_one_row_each():
    table = rows((0, 0), (0, 1), (1, 0), (1, 1), (1, 1))
    found = attribution(sides(table, table))
    assert found.ratio == 1 / 5
    assert found.copies == 1
    assert found.unique_copies == 1


def test_disjoint_tables_have_nothing_to_attribute():
    found = attribution(sides(rows((0, 0), (0, 1)), rows((2, 2), (2, 3), (2, 4))))
    assert found.ratio == 1
    assert found.copies == 0
    assert found.unique_copies == 0


def test_attribution_by_hand():
    # hidden a: (b, b) known; released a, a, b, c: a, a, c left over = 3 of 4
    # hidden b: a and one b known: a, c left = 2, and b is explained by the b that is known
    found = attribution(sides(rows((0,), (1,), (1,)), rows((0,), (0,), (1,), (2,))))
    assert found.ratio == pytest.approx((3 + 2 + 2) / 3 / 4)


def test_rows_of_the_control_are_nobody():
    table = rows((0,), (1,), (5,), (5,))
    assert attribution(sides(table, rows((5,), (0,))), 2).copies == 1 / 2


def test_a_copy_is_nearer_than_people_are_to_each_other():
    numbers = np.arange(60).reshape(20, 3)
    table = rows(*numbers.tolist())
    found = nearness(targets(table, table))
    assert (found.released.value, found.people.value) == (0, 1)
    assert (found.met.value, found.met_by_people.value) == (1, 0)
    assert found.outside is None


def test_nearness_by_hand():
    # To the nearest released row: 0 and 2/3; to the other person: 1/3 each.
    table, released = rows((0, 0, 0), (0, 0, 1)), rows((0, 0, 0), (0, 2, 2))
    found = nearness(targets(table, released, rows((7, 7, 7), (0, 2, 2))))
    assert found.released.value == pytest.approx((0 + 1 / 3) / 2)
    assert found.people.value == pytest.approx(1 / 3)
    assert found.outside.value == pytest.approx((1 + 0) / 2)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12),
)
def test_attribution_by_hiding_every_row_in_turn(original, released):
    found = attribution(sides(rows(*original), rows(*released)))
    shares = []
    for place in range(len(original)):
        known = Counter(original[:place] + original[place + 1 :])
        shares.append(sum((Counter(released) - known).values()) / len(released))
    assert found.ratio == pytest.approx(sum(shares) / len(shares))
    assert found.copies == pytest.approx(sum(r in original for r in released) / len(released))
    alone = [row for row in original if original.count(row) == 1]
    reproduced = sum(row in released for row in alone) / max(len(alone), 1)
    assert found.unique_copies == pytest.approx(reproduced)
