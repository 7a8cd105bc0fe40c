"""Figures are written so that a little is not nothing and almost all is not all."""

from __future__ import annotations

import pytest

from halfmask.report.words import figure_text, percent_text, rows_text, score_text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0%"),
        (1e-6, "under 0.1%"),
        (0.001, "0.1%"),
        (0.5, "50.0%"),
        (0.999, "99.9%"),
        (0.99999, "over 99.9%"),
        (1, "100.0%"),
        (-0.02, "-2.0%"),
    ],
)
def test_shares(share, text):
    assert percent_text(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (1234, "1,234"),
        (0.12345, "0.1235"),
        (0.99996, "over 0.9999"),
        (1.0, "1"),
        (7e-16, "0"),
        (78512.3, "78,512"),
    ],
)
def test_few_digits(value, text):
    assert figure_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7e-16, "0"),
        (9.9e-5, "under 0.001"),
        (0.004147, "0.004"),
        (0.99996, "over 0.999"),
        (1.0, "1.000"),
        (96.62, "96.6"),
    ],
)
def test_scores(value, text):
    assert score_text(value) == text


def test_one_row_is_a_row():
    assert (rows_text(1), rows_text(0), rows_text(1234)) == ("1 row", "0 rows", "1,234 rows")
