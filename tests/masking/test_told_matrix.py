"""What the report of PRAM tells whoever estimates from changed values."""

from __future__ import annotations

import json

import pytest

import halfmask as hm

M = hm.masks
EVEN = {"a": {"a": 0.7, "b": 0.3}, "b": {"a": 0.3, "b": 0.7}}


def reported(tmp_path, step, jobs):
    """The step as the JSON report has it, and the page."""
    rows = {"job": jobs, "age": list(range(len(jobs)))}
    release = hm.mask(hm.read(rows, schema={"job": "sensitive", "age": "quasi"}), step)
    release.report(tmp_path / "r.json")
    release.report(tmp_path / "r.html")
    (found,) = json.loads((tmp_path / "r.json").read_text())["steps"]
    return found, (tmp_path / "r.html").read_text()


def test_an_even_matrix_is_two_chances(tmp_path):
    found, page = reported(tmp_path, M.Pram("job", keep=0.4, spread="even"), list("abcd") * 10)
    # 0.6 is dealt to the three others.
    assert found["told"]["matrix"] == pytest.approx({"stays": 0.4, "becomes": 0.2})
    assert "Pram(...).correct(counts)" in found["told"]["words"]
    assert found["told"]["words"] in page


def test_a_matrix_of_ones_own_is_told_as_stated(tmp_path):
    found, _ = reported(tmp_path, M.Pram("job", matrix=EVEN), list("ab") * 10)
    assert found["told"]["matrix"] == EVEN


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (M.Pram("job", keep=0.4), "variances(counts)"),
        (M.Pram("job", spread="optimal", certainty=0.9), "cannot be estimated"),
        (M.Pram("job", spread="optimal-invariant", certainty=0.9), "variances(counts)"),
    ],
)
def test_a_matrix_that_would_tell_counts_stays_and_the_report_says_why(tmp_path, step, words):
    found, _ = reported(tmp_path, step, list("aaab") * 10)
    assert found["told"]["matrix"] is None
    assert "counts before the change and would tell them" in found["told"]["words"]
    assert words in found["told"]["words"]


def test_a_shown_value_is_not_called_the_likeliest(tmp_path):
    found, page = reported(tmp_path, M.Pram("job", keep=0.2, spread="even"), list("abcd") * 10)
    assert "still the likeliest" not in found["open"] + page


def test_a_report_repeats_its_step(tmp_path):
    reported(tmp_path, M.Pram("job", keep=0.4, spread="even"), list("abcd") * 10)
    from halfmask.masking.run import read_like

    assert read_like(tmp_path / "r.json") == (M.Pram("job", keep=0.4, spread="even"),)


LISTED = [[0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize("counts", [{">50K": 152, "<=50K": 448}, {"<=50K": 448, ">50K": 152}])
def test_a_listed_matrix_takes_values_in_ascending_order_whatever_that_of_counts(counts):
    # x 0.9 + (600 - x) 0.2 = 448, where "<=50K" comes first as in the table.
    found = M.Pram("pay", matrix=LISTED).correct(counts)
    assert found == pytest.approx({"<=50K": 328 / 0.7, ">50K": 92 / 0.7})
    assert list(found) == list(counts)
    assert M.Pram("pay", matrix=LISTED).correct([448, 152]) == pytest.approx([328 / 0.7, 92 / 0.7])


def test_the_mask_uses_the_order_that_the_correction_takes():
    moved = [[0.0, 1.0], [0.0, 1.0]]  # everything becomes the higher value
    rows = {"pay": [10, 9] * 20, "age": list(range(40))}
    table = hm.read(rows, schema={"pay": "sensitive", "age": "quasi"})
    assert set(hm.mask(table, M.Pram("pay", matrix=moved)).to_arrow()["pay"].to_pylist()) == {10}
    found = M.Pram("pay", matrix=LISTED).correct({10: 152, 9: 448})
    assert found == pytest.approx({9: 328 / 0.7, 10: 92 / 0.7})


@pytest.mark.parametrize(
    ("matrix", "counts", "words"),
    [
        (LISTED, {"10": 152, "9": 448}, "cannot be known"),  # numbers, or texts?
        (LISTED, {"a": 152, None: 448}, "cannot be known"),
        (LISTED, {"a": 152}, "a count, also 0, for each"),
        ({"a": {"b": 1.0}, "b": {"b": 1.0}}, {"b": 152}, "the counts lack 1 values"),
        (EVEN, [152, 448], "give the counts by value"),
    ],
)
def test_counts_that_no_row_of_the_matrix_is_known_for_are_refused(matrix, counts, words):
    step = M.Pram("pay", matrix=matrix)
    with pytest.raises(hm.errors.InputError, match=words):
        step.correct(counts)
    with pytest.raises(hm.errors.InputError, match=words):
        step.variances(counts)


def test_a_listed_matrix_on_a_declared_order_is_refused_and_a_mapping_served():
    schema = {"columns": {"job": {"role": "sensitive", "order": ["b", "a"]}, "age": "quasi"}}
    table = hm.read({"job": list("ab") * 10, "age": list(range(20))}, schema=schema)
    with pytest.raises(hm.errors.InputError, match=r"declared order.*mapping of mappings"):
        hm.mask(table, M.Pram("job", matrix=LISTED))
    assert len(hm.mask(table, M.Pram("job", matrix=EVEN))) == 20
