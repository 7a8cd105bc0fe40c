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
