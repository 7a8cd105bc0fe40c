"""What a comparison of policies found: ratios with intervals, population by population."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from halfmask.release.files import whole_file
from halfmask.release.write import report_kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

FORMAT = "halfmask.policies/1"


@dataclass(frozen=True, slots=True)
class Gain:
    """One ratio over several seeds: above 1 personal demands lose less.

    Attributes:
        mean: the mean over the seeds.
        low: the lower end of the interval that holds the true mean in 95 of 100 cases (normal
            errors assumed), or the mean itself where all runs agree.
        high: the upper end.
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Gain:
        """The mean and its interval, by Student's t."""
        n, mean = len(ratios), math.fsum(ratios) / len(ratios)
        if len(set(ratios)) == 1:
            return cls(ratios[0], ratios[0], ratios[0])
        spread = math.sqrt(math.fsum((r - mean) ** 2 for r in ratios) / (n - 1) / n)
        wide = spread * _STUDENT[min(n - 1, len(_STUDENT)) - 1]
        return cls(mean, mean - wide, mean + wide)


# The 97.5% quantiles of Student's t for 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, slots=True)
class PolicyGain:
    """The gains for one population.

    Attributes:
        concern: the population.
        k: what people with a low, medium and high concern demand.
        people: how many people have each concern.
        personal: the mean loss per row with everybody's own k.
        over_moderate: scenario 1, against k_m for everybody.
        over_uniform: scenario 2, against k_c for everybody.
        over_deleting: scenario 3, against k_m for all but the demanding, who are deleted.
    """

    concern: str
    k: tuple[int, int, int]
    people: tuple[int, int, int]
    personal: float
    over_moderate: Gain
    over_uniform: Gain
    over_deleting: Gain


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """What personal demands gain, population by population.

    Attributes:
        rows: how many rows the table has.
        columns: how many quasi-identifiers it has.
        method: how rows were divided.
        correlated: the columns that demands grow with; none: dealt at random.
        seeds: how many times demands were dealt.
        gains: one entry per population.
    """

    rows: int
    columns: int
    method: str
    correlated: tuple[str, ...]
    seeds: int
    gains: tuple[PolicyGain, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {"format": FORMAT, **asdict(self)}

    def report(self, path: str | PathLike[str]) -> None:
        """Write the comparison as ``.json`` or as an ``.html`` page with a plot."""
        if report_kind(path) == ".json":
            text = json.dumps(self.to_dict(), indent=2) + "\n"
        else:
            from halfmask.report import render_policies

            text = render_policies(self.to_dict())
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
