"""How many people of the population are unique, estimated from a sample of it.

Definition: the share of the population who are alone in their class, by the models of Pitman,
Zayatz and SNB, each on a page of its own, with the model to rely on and the bounds that hold under
any model; of those alone in the sample U / (f_1 / n) are alone in the population, where U is the
share that is relied on.
Source: Dankar et al., "Estimating the re-identification risk of clinical data sets", 2012.

An estimator that fails says why and gives no figure. The sample must be drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.metrics.estimate import Estimate, exact, failed
from halfmask.metrics.risk.model_choice import Choice, choose
from halfmask.metrics.risk.pitman import pitman
from halfmask.metrics.risk.population_map import poisson, poisson_below
from halfmask.metrics.risk.shifted_binomial import snb
from halfmask.metrics.risk.uniqueness_bounds import uniqueness_bounds
from halfmask.metrics.risk.zayatz import zayatz

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Frequencies = NDArray[np.int64]  # [r] is how many classes hold r people; [0] is 0
    Estimator = Callable[[Frequencies, float], Estimate]

_REPEATS = 40
_MODELS: dict[str, Estimator] = {"pitman": pitman, "zayatz": zayatz, "snb": snb}
_FIGURES = ("unique", "pitman", "zayatz", "snb", "poisson", "sample", "unique_if_alone", "below_k")


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """Shares of people who are unique, and who are rare, in the population.

    Attributes:
        fraction: the share of the population that is in the table.
        k: fewer people than this are too few.
        model: the model to rely on: pitman, zayatz or snb; counted where the table is the
            population; None where none gives a figure.
        why: the reason for this model.
        unique: its share of the population who are unique.
        span: the lowest and the highest figure of these models.
        agree: whether they are near each other; where not, ``unique`` is not trusted.
        bounds: the least and the most who can be unique under any model, with 95 % confidence.
        sample: the share of the table's people who are alone in their class.
        pitman: the estimated share of the population who are unique; so ``zayatz``, ``snb``.
        poisson: the same by the Poisson model, which says too little of most tables.
        unique_if_alone: the chance that somebody alone in the table is alone in the population,
            by the model that is relied on.
        below_k: the estimated share of the table's people whose population class is below ``k``,
            by the Poisson model.
    """

    fraction: float
    k: int
    model: str | None
    why: str
    unique: Estimate
    span: tuple[float, float] | None
    agree: bool
    bounds: tuple[float, float]
    sample: Estimate
    pitman: Estimate
    zayatz: Estimate
    snb: Estimate
    poisson: Estimate
    unique_if_alone: Estimate
    below_k: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "fraction": self.fraction,
            "k": self.k,
            "model": self.model,
            "why": self.why,
            "agree": self.agree,
            "span": None if self.span is None else list(self.span),
            "bounds": list(self.bounds),
            **{name: getattr(self, name).to_dict() for name in _FIGURES},
        }


def uniqueness(people: NDArray[np.int64], fraction: float, *, k: int = 5) -> Uniqueness:
    """Estimate from the class sizes of a sample that holds ``fraction`` of the population.

    With a fraction of 1 the table is the population and every figure is counted.
    """
    if not 0 < fraction <= 1:
        raise ParameterError("fraction", fraction, "more than 0 and at most 1")
    sizes = people[people > 0]
    frequencies = np.bincount(sizes, minlength=2)
    if fraction == 1:
        return _counted(frequencies, k)
    n = int(sizes.sum())
    sample = exact(float(frequencies[1]) / n, n)
    bounds = uniqueness_bounds(frequencies, fraction)
    estimates = {name: _estimated(frequencies, fraction, one) for name, one in _MODELS.items()}
    choice = choose(estimates, fraction, bounds)
    return Uniqueness(
        fraction,
        k,
        choice.model,
        choice.why,
        choice.unique,
        choice.span,
        choice.agree,
        bounds,
        sample,
        **estimates,
        poisson=poisson(frequencies, fraction),
        unique_if_alone=_if_alone(choice, sample, int(frequencies[1])),
        below_k=poisson_below(frequencies, fraction, k, unique=bounds[0]),
    )


def _counted(frequencies: Frequencies, k: int) -> Uniqueness:
    """The table is the population."""
    r = np.arange(len(frequencies))
    n, ones = int(r @ frequencies), int(frequencies[1])
    one = exact(ones / n, n)
    alone = exact(1.0, ones) if ones else failed("Nobody is alone.")
    below = exact(float(r[:k] @ frequencies[:k]) / n, n)
    share = ones / n
    why = "The table is the population: everybody was counted."
    models = dict.fromkeys(("sample", "pitman", "zayatz", "snb", "poisson"), one)
    return Uniqueness(
        1.0, k, "counted", why, one, (share, share), agree=True,
        bounds=(share, share), **models, unique_if_alone=alone, below_k=below,
    )  # fmt: skip


def _estimated(frequencies: Frequencies, fraction: float, estimator: Estimator) -> Estimate:
    """The estimate with the interval of resampled class sizes."""
    n = int(np.arange(len(frequencies)) @ frequencies)
    if frequencies[1] == 0:
        return failed("Nobody is alone in the table: there is nothing to estimate from.", n)
    found = estimator(frequencies, fraction)
    if found.value is None:
        return found
    random = np.random.default_rng(0)
    classes = int(frequencies.sum())
    shares = frequencies / classes
    tries = [estimator(random.multinomial(classes, shares), fraction) for _ in range(_REPEATS)]
    values = [one.value for one in tries if one.value is not None]
    if len(values) < _REPEATS // 2:
        reason = "Most resampled tables give no solution."
        return replace(found, trusted=False, reason=reason)
    low, high = (float(end) for end in np.quantile(values, [0.025, 0.975]))
    return replace(found, low=min(low, found.value), high=max(high, found.value))


def _if_alone(choice: Choice, sample: Estimate, alone: int) -> Estimate:
    """The chance that somebody alone in the table is alone in the population."""
    if not sample.value:
        return failed("Nobody is alone in the table.")
    if choice.unique.value is None:
        return failed(choice.unique.reason, alone)
    share = sample.value
    ends = [None if end is None else min(1.0, end / share) for end in
            (choice.unique.value, choice.unique.low, choice.unique.high)]  # fmt: skip
    return replace(choice.unique, value=ends[0], low=ends[1], high=ends[2], n=alone)
