"""What mechanisms are given: how much privacy may be spent, and how far one person reaches."""

from __future__ import annotations

from fractions import Fraction

from halfmask.errors import ParameterError


def require_positive(name: str, amount: Fraction, sensitivity: int) -> None:
    """Refuse a mechanism that would spend nothing, or that nobody could touch."""
    if amount <= 0:
        raise ParameterError(name, str(amount), "above 0")
    if sensitivity < 1:
        raise ParameterError("sensitivity", sensitivity, "at least 1")


def score_rate(epsilon: Fraction, sensitivity: int) -> Fraction:
    """The exponent of one point of a score, when one of several candidates is chosen."""
    rate = epsilon / (2 * sensitivity)
    if rate.denominator >= 1 << 30 or rate.numerator >= 1 << 30:
        return Fraction(int(rate * (1 << 24)), 1 << 24)  # rounded down: less to tell, no more
    return rate
