"""Figures are written so that a little is not nothing and almost all is not all."""

from __future__ import annotations

import pytest

from halfmask.report.figures import figure, percent


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
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (1234, "1,234"),
        (0.12345, "0.1235"),
        (0.99996, "over 0.9999"),
        (1.0, "1"),
        (7e-16, "0"),
    ],
)
def test_few_digits(value, text):
    assert figure(value) == text
