"""How figures are written for people: few digits, and never 0 % or 100 % that is not quite so."""

from __future__ import annotations


def count(value: float) -> str:
    """A count with its thousands apart."""
    return f"{value:,}"


def rows(value: int) -> str:
    """A count of rows."""
    return f"{value:,} row" if value == 1 else f"{value:,} rows"


def percent(value: float) -> str:
    """A share as percent."""
    if 0 < value < 0.001:
        return "under 0.1%"
    return "over 99.9%" if 0.999 < value < 1 else f"{value:.1%}"


def score(value: float) -> str:
    """A figure between about 0 and 1, or a small ratio, in three digits."""
    if abs(value) < 1e-12:  # what rounding leaves
        return "0"
    if abs(value) < 0.0005:
        return "under 0.001"
    if 0.9995 < value < 1:
        return "over 0.999"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def figure(value: float | None) -> str:
    """A required or achieved figure, in few digits."""
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < 1e-12:  # what rounding leaves
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return "over 0.9999" if 0.9999 < value < 1 else f"{value:.4g}"
