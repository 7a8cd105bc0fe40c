"""Which model of the population to rely on, and how far the models are apart.

Definition: up to a tenth of the population in the sample Pitman's model, above it the lower of SNB
and Zayatz; where the first gives no figure, SNB and then Zayatz. A figure outside the bounds that
hold under any model is left out. The models agree if two or more give figures that differ by no
more than a factor of two or two percentage points, or if the bounds are within a quarter.
Source: Dankar et al., "Estimating the re-identification risk of clinical data sets", 2012, whose
rule falls back on Zayatz; SNB before it is ours, by simulation (docs/assess.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from halfmask.metrics.estimate import Estimate, failed

if TYPE_CHECKING:
    from collections.abc import Mapping

TITLES = {"pitman": "Pitman", "zayatz": "Zayatz", "snb": "shifted negative binomial"}
SMALL = 0.1  # up to this share of the population the sample is small
LEAST = 0.01  # below it no model has been tried
_FACTOR, _POINTS = 2.0, 0.02  # figures this near agree
_SURE = 1.25  # bounds within this factor leave little to disagree on


@dataclass(frozen=True, slots=True)
class Choice:
    """The model to rely on.

    Attributes:
        model: its name; None where no model gives a figure.
        unique: its figure.
        why: the reason for the choice, in one sentence.
        span: the lowest and the highest figure of the models; None where there is none.
        agree: whether they are near each other.
    """

    model: str | None
    unique: Estimate
    why: str
    span: tuple[float, float] | None
    agree: bool


def choose(
    estimates: Mapping[str, Estimate], fraction: float, bounds: tuple[float, float]
) -> Choice:
    """Apply the rule to the figures of ``pitman``, ``zayatz`` and ``snb``."""
    least, most = bounds
    known = {
        name: one.value
        for name, one in estimates.items()
        if one.value is not None and least <= one.value <= most
    }
    if not known:
        nothing = failed("No model gives a figure that fits the table.")
        return Choice(
            None, nothing, "No model gives a figure that fits the table.", None, agree=False
        )
    low, high = span = min(known.values()), max(known.values())
    near = len(known) > 1 and (high <= _FACTOR * low or high - low <= _POINTS)
    sure = most <= _SURE * least
    model, why = _rule(known, fraction)
    unique = _doubted(estimates[model], fraction, span, agree=near or sure)
    if sure and len(known) == 1:  # resampling one model says less than the bounds
        unique = replace(unique, low=least, high=most)
    return Choice(model, unique, why, span, near or sure)


def _rule(known: Mapping[str, float], fraction: float) -> tuple[str, str]:
    """The model and the reason."""
    if fraction <= SMALL:
        order = ["pitman", "snb", "zayatz"]
        size = "at most a tenth of the population is in the table"
    else:
        order = [*sorted({"snb", "zayatz"} & known.keys(), key=known.__getitem__), "pitman"]
        size = "more than a tenth of the population is in the table, and both tend to say too much"
    model = next(name for name in order if name in known)
    if model == "pitman" and fraction <= SMALL:
        return model, f"Pitman's model: {size}."
    if fraction > SMALL and len(known.keys() & {"snb", "zayatz"}) == 2:
        return model, f"{TITLES[model]}, the lower of this and {TITLES[order[1]]}: {size}."
    failing = "Pitman's model gives" if fraction <= SMALL else "others give"
    return model, f"{TITLES[model]}: {failing} no figure that fits the table."


def _doubted(one: Estimate, fraction: float, span: tuple[float, float], *, agree: bool) -> Estimate:
    """Mark a figure that must not be relied on, with the reason."""
    if fraction < LEAST:
        return replace(
            one, trusted=False, reason="Less than 1 % of the population is in the table."
        )
    if not agree:
        reason = (
            "It is the only model that gives a figure."
            if span[0] == span[1]
            else f"The models say anything between {span[0]:.1%} and {span[1]:.1%}."
        )
        return replace(one, trusted=False, reason=reason)
    return one
