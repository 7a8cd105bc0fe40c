"""Attacks by both readings of a missing cell, of which the worse is told.

The record of a masked file says in which columns cells were blanked, and not which cells. There a
missing cell may be a suppressed one or one that the original lacks too, and whoever wrote the
record may be a stranger: what it says must never make a figure better than the rows are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halfmask.metrics.risk.criteria import try_criteria

if TYPE_CHECKING:
    from collections.abc import Iterable

    from halfmask.assessment.comparison import ComparisonCase
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.risk.attack import AttackOutcome
    from halfmask.metrics.risk.differencing import Differencing
    from halfmask.metrics.risk.inference import Membership
    from halfmask.metrics.risk.linkage import Linkage

_OUTCOMES = ("met", "undecided", "not met")
_REVEALED = (None, "nothing", "not known", "revealed")


def worse_criteria(case: ComparisonCase) -> tuple[AttackOutcome, ...]:
    """Each criterion by the reading under which it fares worse."""
    found: dict[tuple[str, str | None], AttackOutcome] = {}
    for one in case.readings:
        judged = try_criteria(
            one.targets, one.doubts, one.linkage, one.differencing, limit=one.options.limit
        )
        for outcome in judged:
            key = outcome.name, outcome.column
            if key not in found or _grave(outcome) > _grave(found[key]):
                found[key] = outcome
    return tuple(found.values())


def _grave(one: AttackOutcome) -> tuple[int, float, float]:
    return _OUTCOMES.index(one.outcome), _value(one.risk), _value(one.attack)


def worse_linkage(found: Iterable[Linkage]) -> Linkage:
    """Each way to link rows by the reading that links more."""
    held = [*found]
    best = max(held, key=lambda one: _value(one.probabilistic))
    names = ("distance", "second", "assignment", "interval", "probabilistic")
    worst: dict[str, Any] = {
        name: worse_estimate(getattr(one, name) for one in held) for name in names
    }
    return replace(best, **worst)


def worse_membership(found: Iterable[Membership]) -> Membership:
    """Presence by the reading that tells it better."""
    held = [*found]
    told = [one.attribution for one in held]
    return replace(
        held[0],
        area=worse_estimate(one.area for one in held),
        advantage=worse_estimate(one.advantage for one in held),
        attribution=replace(
            told[0],
            ratio=min(one.ratio for one in told),
            copies=max(one.copies for one in told),
            unique_copies=max(one.unique_copies for one in told),
        ),
    )


def worse_differencing(found: Iterable[Differencing | None]) -> Differencing | None:
    """What two releases tell together, by the reading under which it is more."""
    held = [one for one in found if one is not None]
    return max(
        held,
        key=lambda one: (_REVEALED.index(one.outcome), _value(one.alone), _value(one.smaller)),
        default=None,
    )


def worse_estimate(found: Iterable[Estimate]) -> Estimate:
    """The highest, one that is known before one that is not."""
    return max(found, key=_value)


def _value(one: Estimate) -> float:
    return -1.0 if one.value is None else one.value
