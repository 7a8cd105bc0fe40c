"""A cell's own ledger: what it answered before, and why that forbids another answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfmask.protocol.commons import Policy

CONTRIBUTED = "contributed"
DAY = 86_400
PEOPLE = "*"  # among what is aggregated, where people are counted


@dataclass(frozen=True, slots=True)
class Participation:
    """What the person can read about one query.

    Attributes:
        query: its name.
        asker: who asked.
        text: the question.
        time: when this cell took part.
        aggregated: the columns whose values could enter the answer.
        outcome: contributed, or why not.
        level: the level of the contribution.
        revoked: the person took it back; nothing more is sent but dummies.
        epsilon: what a contribution with noise cost.
        record: what was sent, so that a second try sends the same.
    """

    query: bytes
    asker: str
    text: str
    time: int
    aggregated: frozenset[str]
    outcome: str
    level: int | None = None
    revoked: bool = False
    epsilon: float = 0.0
    record: bytes = field(default=b"", repr=False)


def object_to_repetition(
    log: list[Participation], policy: Policy | None, aggregated: frozenset[str], now: float
) -> str | None:
    """Why an earlier answer forbids this one: somebody could subtract the two.

    Two answers can be subtracted where they aggregate the same values. So a person's value enters
    at most ``answers`` answers within ``days``, however the question is worded and whoever asks.
    """
    if policy is None:
        return None
    earlier = [
        entry
        for entry in log
        if entry.outcome == CONTRIBUTED
        and entry.aggregated & aggregated
        and now - entry.time < policy.days * DAY
    ]
    return "answered before" if len(earlier) >= policy.answers else None


def object_to_cost(log: list[Participation], policy: Policy | None, now: float) -> str | None:
    """Why a person's budget of epsilon forbids another answer with noise."""
    if policy is None or policy.epsilon is None:
        return None
    since = now - policy.days * DAY
    spent = [entry.epsilon for entry in log if entry.time > since]
    # Added up as exact fractions: rounding must not make room for one more.
    total = sum(map(Fraction, spent), Fraction(policy.epsilon))
    return "the budget is spent" if total > Fraction(policy.budget) else None
