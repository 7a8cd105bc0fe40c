"""Two releases of the same people, on tables small enough to count by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.risk.differencing import differencing, singling_out_together
from halfmask.metrics.sides import sides

TREE = {"tree": {"2*": ["21", "22"], "3*": ["31", "32"]}}
SCHEMA = {
    "age": {"role": "quasi", "hierarchy": TREE},
    "sex": "quasi",
    "ill": "sensitive",
}
AGES, SEXES = ["21", "22", "31", "32"], ["f", "m", "f", "m"]


def table(ill=("flu", "gout", "flu", "cold")):
    return hm.read(pa.table({"age": AGES, "sex": SEXES, "ill": list(ill)}), schema=SCHEMA)


def published(age, sex, ill=("flu", "gout", "flu", "cold")):
    return hm.read(pa.table({"age": age, "sex": sex, "ill": list(ill)}), schema={})


def test_two_releases_single_everybody_out_together():
    original = table()
    by_age = published(["2*", "2*", "3*", "3*"], ["*"] * 4)
    by_sex = published(["*"] * 4, SEXES)
    found = differencing(sides(original, by_age), sides(original, by_sex))
    assert (found.smallest, found.together) == (2, 1)
    assert (found.smaller.value, found.alone.value) == (1, 1)
    # 21 f: {flu, gout} and {flu}: certain through the second alone. 22 m: {flu, gout} and
    # {gout, cold}: gout. 31 f: certain alone. 32 m: {flu, cold} and {gout, cold}: cold.
    ((name, share),) = found.disclosed
    assert name == "ill"
    assert share.value == pytest.approx(2 / 4)


def test_the_same_release_twice_tells_nothing_more():
    original = table()
    by_age = published(["2*", "2*", "3*", "3*"], ["*"] * 4)
    found = differencing(sides(original, by_age), sides(original, by_age))
    assert (found.smallest, found.together, found.smaller.value) == (2, 2, 0)
    assert found.disclosed[0][1].value == 0


def test_overlapping_labels_leave_nobody_alone_by_themselves():
    original = table()
    uneven = published(["{21, 22, 31, 32}", "{21, 22, 31, 32}", "{21, 22, 31}", "{21, 22, 31}"],
                       ["*"] * 4)  # fmt: skip
    again = differencing(sides(original, uneven), sides(original, uneven))
    assert again.together == 1  # 32 alone is counted to the wider class, which has two rows
    assert (again.smaller.value, again.alone.value) == (0, 0)


def test_somebody_left_out_of_one_release_stands_apart():
    original = table()
    whole = published(["*"] * 4, ["*"] * 4)
    without = published(["2*", "2*", "31"], ["*"] * 3, ("flu", "gout", "flu"))
    found = differencing(sides(original, whole), sides(original, without))
    assert found.smallest == 1
    assert found.alone.value == pytest.approx(2 / 4)


def test_rows_that_stand_for_nobody_combine_with_nothing():
    original = table()
    made_up = published(["22", "22", "22"], ["f", "f", "f"], ("flu", "flu", "flu"))
    found = differencing(sides(original, original), sides(original, made_up))
    assert found.alone.value is None
    assert not found.alone.trusted


UP = [
    {v: v for v in AGES},
    {"21": "2*", "22": "2*", "31": "3*", "32": "3*"},
    dict.fromkeys(AGES, "*"),
]


@given(st.data())
def test_two_recodings_by_trying_every_row(data):
    n = data.draw(st.integers(4, 20))
    more = st.lists(st.sampled_from(AGES), min_size=n - 4, max_size=n - 4)
    ages = AGES + data.draw(more)
    sexes = ["f", "m", *data.draw(st.lists(st.sampled_from("fm"), min_size=n - 2, max_size=n - 2))]
    ill = data.draw(st.lists(st.sampled_from("pqr"), min_size=n, max_size=n))
    rows = pa.table({"age": ages, "sex": sexes, "ill": ill})
    original = hm.read(rows, schema=SCHEMA)
    labels = []
    for _ in range(2):
        level, hidden = data.draw(st.integers(0, 2)), data.draw(st.booleans())
        labels.append([(UP[level][a], "*" if hidden else s)
                       for a, s in zip(ages, sexes, strict=True)])  # fmt: skip
    both = [
        sides(original, published([a for a, _ in one], [s for _, s in one], ill)) for one in labels
    ]
    found = differencing(*both)
    mine = [[{j for j in range(n) if one[j] == one[i]} for i in range(n)] for one in labels]
    together = [mine[0][i] & mine[1][i] for i in range(n)]
    smallest = min(len(members) for one in mine for members in one)
    assert found.smallest == smallest
    assert found.together == min(map(len, together))
    assert found.smaller.value == pytest.approx(sum(len(t) < smallest for t in together) / n)
    assert found.alone.value == pytest.approx(sum(len(t) == 1 for t in together) / n)
    certain = 0
    for i in range(n):
        possible = [{ill[j] for j in one[i]} for one in mine]
        certain += len(possible[0] & possible[1]) == 1 and all(len(p) > 1 for p in possible)
    assert found.disclosed[0][1].value == pytest.approx(certain / n)


def test_labels_that_cannot_be_read_may_tell_more():
    original = table()
    by_age = published(["2*", "2*", "3*", "3*"], ["*"] * 4)
    strange = published(["2*", "2*", "3*", "thirty"], ["*"] * 4)
    found = differencing(sides(original, by_age), sides(original, strange))
    for share in (found.smaller, found.alone, found.disclosed[0][1]):
        assert share.value == 0
        assert not share.trusted
        assert share.reason == "Labels of age cannot be read: more may be told."
    again = differencing(sides(original, by_age), sides(original, by_age))
    assert again.alone.trusted
    assert again.disclosed[0][1].trusted


def test_two_releases_that_single_out_together_do_not_meet_the_criterion():
    original = table()
    by_age = published(["2*", "2*", "3*", "3*"], ["*"] * 4)
    found = hm.compare(original, by_age, earlier=published(["*"] * 4, SEXES), learn=False)
    outcomes = {one.name: one.outcome for one in found.criteria}
    assert outcomes["singling out, with the earlier release"] == "not met"
    again = hm.compare(original, by_age, earlier=by_age, learn=False)
    outcomes = {one.name: one.outcome for one in again.criteria}
    assert outcomes["singling out, with the earlier release"] == "met"
    assert singling_out_together(None, controlled=False) == ()
