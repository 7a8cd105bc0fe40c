"""Which cells must not be shown, by which rule, and how closely they may be found out.

Definition: a cell is sensitive where fewer people contribute than the threshold or anybody in it
demands; by the (n, k) rule where its n largest contributions are above k percent of it; by the p%
rule where what is left without the two largest is below p percent of the largest; by l where a
column that is sensitive has fewer than l values in it.
Source: Hundepool and others, "Statistical Disclosure Control", 2012, sections 4.2 and 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.tabulate.cube import Cube

    Flags = NDArray[np.bool_]
    Numbers = NDArray[np.float64]

_CLOSE = 1e-9  # sums of fractions differ in the last digit: what is close counts as sensitive


@dataclass(frozen=True, slots=True)
class SensitivityRules:
    """What the controller asks of every cell that is shown.

    Attributes:
        threshold: the least number of people who contribute; people's own k add to it.
        dominance: ``(n, percent)`` pairs, all of which must hold.
        p: by how many percent of the largest contribution others must be in doubt of it.
        protection: where no rule says how closely a withheld sum may be found out: the share of
            it by which the reader must be in doubt, upwards and downwards.
        diversity: sensitive column to the least number of its values; people's own l add to it.

    Example:
        >>> SensitivityRules(threshold=3, p=10).asked
        True
    """

    threshold: int | None = None
    dominance: tuple[tuple[int, float], ...] = ()
    p: float | None = None
    protection: float = 0.1
    diversity: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.threshold is not None and (
            isinstance(self.threshold, bool)
            or not isinstance(self.threshold, int)
            or self.threshold < 1
        ):
            raise ParameterError("threshold", self.threshold, "a whole number of at least 1")
        for n, percent in self.dominance:
            if not (isinstance(n, int) and n >= 1 and 0 < percent < 100):
                raise ParameterError("dominance", (n, percent), "(n, percent): n from 1, 0 to 100")
        if self.p is not None and not 0 < self.p <= 100:
            raise ParameterError("p", self.p, "above 0, at most 100")
        if not 0 < self.protection <= 1:
            raise ParameterError("protection", self.protection, "above 0, at most 1")
        for least in self.diversity.values():
            if isinstance(least, bool) or not isinstance(least, int) or least < 1:
                raise ParameterError("l", least, "a whole number of at least 1")

    @property
    def asked(self) -> bool:
        """Whether any rule is asked for."""
        return bool(self.threshold or self.dominance or self.p is not None or self.diversity)

    @property
    def shares(self) -> bool:
        """Whether single contributions matter."""
        return bool(self.dominance) or self.p is not None

    @property
    def most(self) -> int:
        """How many of the largest contributions must be known."""
        return max([2, *(n for n, _ in self.dominance)])


def dominance_pairs(given: object) -> tuple[tuple[int, float], ...]:
    """``(n, percent)`` pairs from one pair or a list of pairs."""
    if given is None:
        return ()
    listed = [given] if isinstance(given, tuple | list) and len(given) == 2 and not isinstance(
        given[0], tuple | list) else given  # fmt: skip
    try:
        return tuple((int(n), float(percent)) for n, percent in listed)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ParameterError("dominance", "(given)", "(n, percent) or a list of them") from None


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveCells:
    """Which cells must be withheld and how far a reader must be in doubt of them.

    Attributes:
        reasons: rule to the cells that break it.
        rise: per cell, how far it must be possible that it is above its figure.
        fall: the same below.
        hollow: cells that are withheld although nobody stands in them.
    """

    reasons: Mapping[str, Flags]
    rise: Numbers
    fall: Numbers
    hollow: Flags

    @property
    def cells(self) -> Flags:
        """The cells that break any rule."""
        found = np.zeros(len(self.rise), dtype=bool)
        for flags in self.reasons.values():
            found |= flags
        return found


def find_sensitive(
    cube: Cube, rules: SensitivityRules, diversity: Sequence[Flags] = ()
) -> SensitiveCells:
    """The cells of ``cube`` that break ``rules``; ``diversity`` are those that break an l.

    Raises:
        InputError: a rule about contributions needs figures that are not negative.
    """
    size = cube.grid.size
    values, rise, fall = cube.values, np.zeros(size), np.zeros(size)
    # Nobody in a cell is no small cell: zeros are shown.
    least = np.maximum(cube.k, rules.threshold or 0)
    few = (cube.people > 0) & (cube.people < least)
    reasons = {"threshold": few}
    if cube.whole:
        rise[few] = (least - values)[few].clip(min=1)
    else:
        doubt = np.maximum(np.abs(values) * rules.protection, _CLOSE)
        rise[few] = fall[few] = doubt[few]
    if rules.shares:
        _require_positive(cube)
    for n, percent in rules.dominance:
        # As much must be in doubt as the whole lacks for n people to make up no more than the
        # share.
        top = cube.largest[:n].sum(axis=0)
        excess = top * (100 / percent) - values
        reasons[f"dominance ({n}, {percent:g})"] = broken = (cube.people > 0) & (
            excess > -_CLOSE * np.maximum(values, 1)
        ) & (values > 0)  # fmt: skip
        _raise(rise, fall, broken, excess, values)
    if rules.p is not None:
        # The second largest estimates the largest, and takes the own contribution off: the rest is
        # the doubt that is left.
        rest = values - cube.largest[0] - cube.largest[1]
        excess = cube.largest[0] * rules.p / 100 - rest
        reasons[f"p% ({rules.p:g})"] = broken = (values > 0) & (
            excess > -_CLOSE * np.maximum(values, 1)
        )
        _raise(rise, fall, broken, excess, values)
    hollow = np.zeros(size, dtype=bool)
    for broken in diversity:
        reasons["diversity"] = reasons.get("diversity", hollow) | broken
        if cube.whole:
            hollow = hollow | (broken & (cube.people == 0))
            rise[broken & (values == 0)] = np.maximum(rise, 1.0)[broken & (values == 0)]
            fall[broken & (values > 0)] = np.maximum(fall, 1.0)[broken & (values > 0)]
        else:
            doubt = np.maximum(np.abs(values) * rules.protection, _CLOSE)
            rise[broken] = np.maximum(rise, doubt)[broken]
            fall[broken] = np.maximum(fall, doubt)[broken]
    return SensitiveCells(
        {name: one for name, one in reasons.items() if one.any()}, rise, fall, hollow
    )


def _raise(rise: Numbers, fall: Numbers, broken: Flags, excess: Numbers, values: Numbers) -> None:
    """At least as much doubt as the rule lacks; downwards no more than there is."""
    need = np.maximum(excess, np.maximum(np.abs(values), 1) * 1e-6)
    rise[broken] = np.maximum(rise, need)[broken]
    fall[broken] = np.maximum(fall, np.minimum(need, values))[broken]


def _require_positive(cube: Cube) -> None:
    if cube.negative:
        raise InputError(
            "Some contributions are negative, and dominance and p% speak of shares of a whole: sum "
            "a column that is not negative, or ask for a threshold only."
        )
