"""Local suppression: by both readings, against independent counts and an independent optimum."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pyarrow.compute as pc
import pytest
from effort import THOROUGH, examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.masking.methods import suppression

M = hm.masks
NAMES = ("a", "b", "c")
tables = st.lists(
    st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 1)),
    min_size=3,
    max_size=30,
)


def people_of(rows):
    columns = {n: [row[i] for row in rows] for i, n in enumerate(NAMES)}
    kinds = {n: {"role": "quasi", "kind": "numeric"} for n in NAMES}
    return hm.read(columns, schema={"columns": kinds})


def released(release):
    return list(zip(*(release.to_arrow()[n].to_pylist() for n in NAMES), strict=True))


def like(one, other):
    return all(x is None or y is None or x == y for x, y in zip(one, other, strict=True))


@given(tables, st.integers(2, 3))
def test_by_their_values_rows_are_shared_by_k(rows, k):
    release = hm.mask(people_of(rows), M.LocalSuppression(k))
    assert min(Counter(released(release)).values()) >= k
    assert "a value of its own" in release.statement["claimed"][0]


@given(tables, st.integers(2, 4))
def test_where_blanks_match_anything_rows_match_k(rows, k):
    if len(rows) < k:
        return
    release = hm.mask(people_of(rows), M.LocalSuppression(k, reading="any"))
    found = released(release)
    assert all(sum(like(one, other) for other in found) >= k for one in found)
    assert "matching any value" in release.statement["claimed"][0]


def fewest(rows, k):
    """The fewest blanks that make rows of two columns k-anonymous, by trying everything."""
    best = len(rows) * 2
    for blanks in product(range(4), repeat=len(rows)):
        total = sum(b.bit_count() for b in blanks)
        if total >= best:
            continue
        shown = [
            tuple(None if b >> i & 1 else v for i, v in enumerate(row))
            for row, b in zip(rows, blanks, strict=True)
        ]
        if min(Counter(shown).values()) >= k:
            best = total
    return best


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=3, max_size=6))
def test_small_tables_are_solved_exactly(rows):
    people = hm.read(
        {"a": [r[0] for r in rows], "b": [r[1] for r in rows]}, schema={"a": "quasi", "b": "quasi"}
    )
    facts = hm.mask(people, M.LocalSuppression(2)).steps[0]["facts"]
    assert facts["suppressed"] == fewest(rows, 2)
    assert facts["gap"] == 0.0


@given(tables)
def test_what_is_proven_lies_below_what_is_found(rows):
    most = suppression._EXACT
    suppression._EXACT = 0
    try:
        facts = hm.mask(people_of(rows), M.LocalSuppression(2)).steps[0]["facts"]
    finally:
        suppression._EXACT = most
    assert facts["fewest_possible"] <= facts["suppressed"]


def test_important_columns_are_blanked_last():
    rows = [(0, 0, i % 2) for i in range(4)] + [(1, 0, 0), (0, 1, 0)]
    by = hm.mask(people_of(rows), M.LocalSuppression(2, importance=("a",))).steps[0]["facts"]
    assert by["suppressed_by_column"]["a"] <= by["suppressed_by_column"]["b"] + 1


def test_several_rows_of_a_person_count_once():
    people = hm.read(
        {"id": ["x", "x", "y", "z"], "a": [1, 1, 2, 2]},
        schema={"table": {"person": "id"}, "columns": {"a": "quasi"}},
    )
    for reading in ("value", "any"):
        found = hm.mask(people, M.LocalSuppression(2, reading=reading)).to_arrow()["a"].to_pylist()
        assert 1 not in found


def test_a_later_step_must_not_undo_it():
    people = people_of([(i % 3, i % 2, 0) for i in range(30)])
    with pytest.raises(hm.errors.PrivacyError, match="Suppress last"):
        hm.mask(people, M.LocalSuppression(5), M.Sample(0.4), seed=1)


def test_too_few_people_are_refused():
    with pytest.raises(hm.errors.UnsatisfiableError, match="fewer than k"):
        hm.mask(people_of([(0, 0, 0)] * 3), M.LocalSuppression(4))


@pytest.mark.slow
def test_fewer_cells_than_sdcmicro_on_adult(adult):
    names = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass",
             "occupation")  # fmt: skip
    schema = {"columns": {**dict.fromkeys(names, "quasi"), "salary-class": "other"}}
    rows = hm.read(adult, schema=schema).arrow
    ages = pc.floor(pc.divide(rows["age"].cast("float64"), 10))
    people = hm.read(rows.set_column(rows.column_names.index("age"), "age", ages), schema=schema)
    # sdcMicro with ages in decades, recorded; of eight columns in the thorough run.
    for columns, theirs in ((names[:5], 2_192), *([(names, 14_735)] if THOROUGH else [])):
        mask = M.LocalSuppression(5, columns=columns, reading="any")
        assert hm.mask(people, mask).steps[0]["facts"]["suppressed"] < theirs


def test_rare_values_are_blanked_by_people():
    people = hm.read(
        {"id": ["x", "x", "y", "z", "w"], "job": ["own", "own", "a", "a", None], "w": [1] * 5},
        schema={"table": {"person": "id"}, "columns": {"job": "quasi", "w": "quasi"}},
    )
    release = hm.mask(people, hm.masks.Suppress("job", rare=2))
    assert sorted(release.to_arrow()["job"].to_pylist(), key=str) == [None] * 3 + ["a"] * 2
    assert release.steps[0]["facts"] == {"suppressed": 2}
    assert hm.mask(people, hm.masks.Suppress("job")).to_arrow().column_names == ["w"]


def test_a_column_that_people_make_demands_of_is_not_just_taken_out():
    people = hm.read(
        {"sex": ["f"] * 4, "ill": ["a", "b", "a", "b"], "l_i": [2] * 4},
        schema={"policy": {"l": "l_i"}, "columns": {"sex": "quasi", "ill": "sensitive"}},
    )
    with pytest.raises(hm.errors.PrivacyError, match="takes out"):
        hm.mask(people, hm.masks.Suppress("ill"))
    blank = hm.read(
        {"sex": ["f"] * 4, "ill": ["a", "a", "a", "b"], "l_i": [3] * 4},
        schema={"policy": {"l": "l_i"}, "columns": {"sex": "quasi", "ill": "sensitive"}},
    )
    with pytest.raises(hm.errors.UnsatisfiableError):
        hm.mask(blank, hm.masks.Suppress("ill", rare=2))
