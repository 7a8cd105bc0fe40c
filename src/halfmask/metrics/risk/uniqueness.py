"""How many people of the population are unique, estimated from a sample of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError
from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate
from halfmask.metrics.risk.individual import poisson, poisson_below
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Equations = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]]
    Cost = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
    Frequencies = NDArray[np.int64]
    Estimator = Callable[[Frequencies, float], Estimate]


def zayatz(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique; ``frequencies[r]`` classes hold r people.

    Definition: P(alone in the population | alone here) = f_1 h_1 / sum f_r h_r, where f_r classes
    of the sample hold r people and h_r = r C(N - r, n - 1) / C(N, n) is the chance to draw one of
    r.
    Source: Zayatz, "Estimation of the percent of unique population elements on a microdata file",
    1991.

    It takes the population's class sizes to be spread as the sample's, which are smaller: the
    figure is too high in small samples.
    """
    from scipy.special import gammaln

    sizes = np.flatnonzero(frequencies)
    n = float(sizes @ frequencies[sizes])
    size = n / fraction
    fits = sizes <= size - n + 1  # else n - 1 others could not be drawn beside one of a class
    if not fits.any() or sizes[0] != 1:
        return failed_estimate("No class of the table can come from a unique person.", int(n))
    logs = np.full(len(sizes), -np.inf)
    r = sizes[fits].astype(np.float64)
    logs[fits] = np.log(r) + gammaln(size - r + 1) - gammaln(size - r - n + 2)
    # C(N, n) cancels in the ratio, and so does the largest term, which exp could not hold.
    weights = frequencies[sizes] * np.exp(logs - logs.max())
    chance = float(weights[0] / weights.sum())
    return Estimate(float(frequencies[1]) * chance / n, None, None, int(n))


_BORDER = 8.0  # beyond this log a the sizes are as good as Poisson
_CHANCE = 3.0  # standard deviations that chance may explain


def snb(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique; ``frequencies[r]`` classes hold r people.

    Definition: the sizes of the population's classes are 1 + negative binomial(a, q); a and q are
    such that the expected number of sample classes, and of those of one person, are what they are.
    Sizes more even than that are taken as 1 + Poisson, if that fits.
    Source: Chen and Keller-McNulty, "Estimation of identification disclosure risk in microdata",
    1998.
    """
    n = float(np.arange(len(frequencies)) @ frequencies)
    u, ones, size = float(frequencies.sum()), float(frequencies[1]), n / fraction
    if ones == n:
        return failed_estimate("No class holds two people: the model cannot be fitted.", int(n))

    def equations(point: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        # log a and logit q: every point that a step reaches is allowed.
        a, q = math.exp(point[0]), 1 / (1 + math.exp(-point[1]))
        p = 1 - q
        classes = size / (1 + a * q / p)
        left = 1 - q * (1 - fraction)
        g = math.exp(a * (math.log(p) - math.log(left)))
        none = (1 - fraction) * g
        one = fraction * g * (1 + (1 - fraction) * a * q / left)
        wrong = np.array([classes * (1 - none) / u - 1, classes * one / ones - 1])
        return wrong, classes * math.exp(a * math.log(p)) / size

    for start_a in (0.0, 2.0, -2.0):
        for start_q in (0.0, 2.0, -2.0, 4.0):
            share = _solve(equations, np.array([start_a, start_q]))
            if share is not None:
                return Estimate(share, None, None, int(n))
    even = _border_share(u, ones, size, fraction)
    if even is None:
        return failed_estimate("The equations of the class sizes have no solution.", int(n))
    return Estimate(even, None, None, int(n))


def _border_share(u: float, ones: float, size: float, fraction: float) -> float | None:
    """The share at the border of the model, where sizes are 1 + Poisson; None if it does not fit.

    The mean is that which gives the number of classes; those of one person may be off by chance.
    """

    def classes(mean: float) -> float:
        return size / (1 + mean) * (1 - (1 - fraction) * math.exp(-mean * fraction))

    low, high = 0.0, size  # bisection: the larger the mean, the fewer the classes
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if classes(middle) > u else (low, middle)
    one = fraction * math.exp(-low * fraction) * (1 + (1 - fraction) * low)
    if abs(size / (1 + low) * one - ones) > _CHANCE * math.sqrt(ones):
        return None
    return math.exp(-low) / (1 + low)


def _solve(equations: Equations, point: NDArray[np.float64]) -> float | None:
    """Newton's method with halved steps; the share, or None."""
    for _ in range(80):
        try:
            wrong, share = equations(point)
            slope = np.empty((2, 2))
            for j in range(2):
                moved = point.copy()
                moved[j] += 1e-6
                slope[:, j] = (equations(moved)[0] - wrong) / 1e-6
            step = np.linalg.solve(slope, wrong)
        except (OverflowError, ValueError, ZeroDivisionError, np.linalg.LinAlgError):
            return None
        error = float(np.abs(wrong).max())
        if error < 1e-9:
            return share
        scale = min(1.0, 2.0 / max(1e-300, float(np.abs(step).max())))
        while scale > 1e-4:
            try:
                if float(np.abs(equations(point - scale * step)[0]).max()) < error:
                    break
            except (OverflowError, ValueError, ZeroDivisionError):
                pass
            scale /= 2
        else:
            return None
        point = point - scale * step
        if point[0] > _BORDER:
            return None
    return None


_EDGE = 1e-3  # an alpha below this lies at the border of what the formula allows
_FAR = 12.0  # so has a theta this many powers of e above the people
_STEPS = 200
_NUDGES = 1e-5 * np.eye(2)
_STARTS = ((0.5, 0.0), (0.1, 0.0), (0.9, -2.0))  # alpha, and log theta beside that of the classes


def pitman(frequencies: NDArray[np.int64], fraction: float) -> Estimate:
    """The share of the population who are unique; ``frequencies[r]`` classes hold r people.

    Definition: the class sizes of the population follow Pitman's formula with 0 < alpha < 1 and
    theta > -alpha, fitted by the largest likelihood of the sample's sizes; the share of unique
    people is G(theta + 1) G(N + theta + alpha - 1) / (G(theta + alpha) G(N + theta)) with the gamma
    function G and N people.
    Source: Hoshino, "Applying Pitman's sampling formula to microdata disclosure risk assessment",
    2001.

    Sizes that are more even than the formula allows (alpha = 0) give no figure.
    """
    n = int(np.arange(len(frequencies)) @ frequencies)
    if len(frequencies) < 3 or frequencies[2] == 0:
        return failed_estimate("No class holds two people: the model cannot be fitted.", n)
    found = fit_pitman(frequencies)
    if found is None:
        return failed_estimate("The class sizes are more even than this model allows.", n)
    alpha, theta = found
    size = n / fraction
    logs = (
        math.lgamma(theta + 1)
        - math.lgamma(theta + alpha)
        + math.lgamma(size + theta + alpha - 1)
        - math.lgamma(size + theta)
    )
    return Estimate(min(1.0, math.exp(logs)), None, None, n)


def fit_pitman(frequencies: NDArray[np.int64]) -> tuple[float, float] | None:
    """The most likely alpha and theta; None where they lie at the border."""
    sizes = np.flatnonzero(frequencies).astype(np.float64)
    many = frequencies[frequencies > 0].astype(np.float64)
    u, n = float(many.sum()), float(sizes @ many)

    def cost(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return _cost(point, sizes, many, u, n)

    for alpha, shift in _STARTS:
        start = np.array([math.log(alpha / (1 - alpha)), math.log(u + 1) + shift])
        found = _lowest(cost, start, (math.log(_EDGE), math.log(n) + _FAR))
        if found is not None:
            return _parameters(found)
    return None


def _lowest(
    cost: Cost, point: NDArray[np.float64], border: tuple[float, float]
) -> NDArray[np.float64] | None:
    """Newton's method, damped so that every step goes down; None where it leaves the border."""
    value, slope = cost(point)
    damping = 1e-3
    for _ in range(_STEPS):
        bend = np.column_stack([(cost(point + move)[1] - slope) / 1e-5 for move in _NUDGES])
        # The smaller eigenvalue: where the cost bends down, damping lifts it above 0.
        low = (bend[0, 0] + bend[1, 1]) / 2 - math.hypot(
            (bend[0, 0] - bend[1, 1]) / 2, (bend[0, 1] + bend[1, 0]) / 2
        )
        bend = (bend + bend.T) / 2 + (damping + max(0.0, -low)) * np.eye(2)
        if not np.isfinite(bend).all() or not np.linalg.det(bend) > 0:
            return None
        step = np.linalg.solve(bend, slope)
        step *= min(1.0, 2.0 / float(np.abs(step).max() + 1e-300))  # far steps leave what is known
        tried = point - step
        if tried[0] < border[0] or tried[1] > border[1]:
            return None
        better, new_slope = cost(tried)
        if better <= value:
            point, value, slope, damping = tried, better, new_slope, max(1e-9, damping / 10)
        else:
            damping *= 10
        if float(np.abs(step).max()) < 1e-7:
            return point
    return point if float(np.abs(slope).max()) < 1e-6 else None


def _parameters(point: NDArray[np.float64]) -> tuple[float, float]:
    alpha = 1 / (1 + math.exp(-point[0]))
    return alpha, math.exp(point[1]) - alpha


def _cost(
    point: NDArray[np.float64],
    sizes: NDArray[np.float64],
    many: NDArray[np.float64],
    u: float,
    n: float,
) -> tuple[float, NDArray[np.float64]]:
    """Minus the log-likelihood per class, and its slope, in logit alpha and log (theta + alpha)."""
    from scipy.special import digamma, gammaln

    alpha, theta = _parameters(point)
    x = theta / alpha
    # sum of log(theta + i alpha) for 0 < i < u, of log(theta + i) for 0 < i < n: as gammas,
    # since people may be millions.
    value = (u - 1) * math.log(alpha) + gammaln(x + u) - gammaln(x + 1)
    value -= gammaln(theta + n) - gammaln(theta + 1)
    value += many @ (gammaln(sizes - alpha) - gammaln(1 - alpha))
    inner = digamma(x + u) - digamma(x + 1)
    by_theta = inner / alpha - digamma(theta + n) + digamma(theta + 1)
    by_alpha = (u - 1 - x * inner) / alpha
    by_alpha -= many @ (digamma(sizes - alpha) - digamma(1 - alpha))
    slope = np.array([(by_alpha - by_theta) * alpha * (1 - alpha), by_theta * (theta + alpha)])
    return -float(value) / u, -slope / u


_Z = 1.96
_NONE_SEEN = math.log(40)  # a mean for which seeing none has a chance of 2.5 %


def uniqueness_bounds(frequencies: NDArray[np.int64], fraction: float) -> tuple[float, float]:
    """The least and the most of the population who can be unique.

    Definition: if f_1 of n people are alone in a sample that holds the fraction p of the
    population, drawn at random, the share U of the population who are unique is at least 1 - (1 -
    f_1 / n) / p and at most f_1 / n in expectation; the ends are moved apart by what chance does,
    with 95 % confidence.
    Source: everybody unique is alone in the sample; anybody else meets another of the own class in
    it with a chance of p at least, so that E[n - f_1] >= p^2 N (1 - U), and E[f_1] >= p N U.

    Args:
        frequencies: [r] classes of the sample hold r people.
        fraction: the share of the population that is in the sample.

    Example:
        >>> import numpy as np
        >>> uniqueness_bounds(np.array([0, 900, 50]), 1.0)[1] >= 0.9
        True
    """
    r = np.arange(len(frequencies), dtype=np.float64)
    n, alone = float(r @ frequencies), float(frequencies[1])
    shared = n - alone
    spread = math.sqrt(float(r[2:] ** 2 @ frequencies[2:]))
    most_shared = shared + _Z * spread + 2 * _NONE_SEEN  # who shares a class comes by twos
    most_alone = alone + _Z * math.sqrt(alone) + _NONE_SEEN
    least = 1 - most_shared / n / fraction
    return max(0.0, least), min(1.0, most_alone / n)


TITLES = {"pitman": "Pitman", "zayatz": "Zayatz", "snb": "shifted negative binomial"}
SMALL = 0.1  # up to this share of the population the sample is small
LEAST = 0.01  # below it no model has been tried
_FACTOR, _POINTS = 2.0, 0.02  # figures this near agree
_SURE = 1.25  # bounds within this factor leave little to disagree on


@dataclass(frozen=True, slots=True)
class ModelChoice:
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


def choose_estimate(
    estimates: Mapping[str, Estimate], fraction: float, bounds: tuple[float, float]
) -> ModelChoice:
    """Apply the rule to the figures of ``pitman``, ``zayatz`` and ``snb``.

    Definition: up to a tenth of the population in the sample Pitman's model, above it the lower of
    SNB and Zayatz; where the first gives no figure, SNB and then Zayatz. A figure outside the
    bounds that hold under any model is left out. The models agree if two or more give figures that
    differ by no more than a factor of two or two percentage points, or if the bounds are within a
    quarter.
    Source: Dankar et al., "Estimating the re-identification risk of clinical data sets", 2012,
    whose rule falls back on Zayatz; SNB before it is ours, by simulation (docs/assess.md).
    """
    least, most = bounds
    known = {
        name: one.value
        for name, one in estimates.items()
        if one.value is not None and least <= one.value <= most
    }
    if not known:
        nothing = failed_estimate("No model gives a figure that fits the table.")
        return ModelChoice(
            None, nothing, "No model gives a figure that fits the table.", None, agree=False
        )
    low, high = span = min(known.values()), max(known.values())
    near = len(known) > 1 and (high <= _FACTOR * low or high - low <= _POINTS)
    sure = most <= _SURE * least
    model, why = _rule(known, fraction)
    unique = _doubt(estimates[model], fraction, span, agree=near or sure)
    if sure and len(known) == 1:  # resampling one model says less than the bounds
        unique = replace(unique, low=least, high=most)
    return ModelChoice(model, unique, why, span, near or sure)


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


def _doubt(one: Estimate, fraction: float, span: tuple[float, float], *, agree: bool) -> Estimate:
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


_REPEATS = 40
_MODELS: dict[str, Estimator] = {"pitman": pitman, "zayatz": zayatz, "snb": snb}


@dataclass(frozen=True, slots=True)
class Uniqueness(Result):
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


def uniqueness(people: NDArray[np.int64], fraction: float, *, k: int = 5) -> Uniqueness:
    """Estimate from the class sizes of a sample that holds ``fraction`` of the population.

    Definition: the share of the population who are alone in their class, by the models of Pitman,
    Zayatz and SNB, each on a page of its own, with the model to rely on and the bounds that hold
    under any model; of those alone in the sample U / (f_1 / n) are alone in the population, where U
    is the share that is relied on.
    Source: Dankar et al., "Estimating the re-identification risk of clinical data sets", 2012.

    An estimator that fails says why and gives no figure. The sample must be drawn at random.

    With a fraction of 1 the table is the population and every figure is counted.
    """
    if not 0 < fraction <= 1:
        raise ParameterError("fraction", fraction, "more than 0 and at most 1")
    sizes = people[people > 0]
    frequencies = np.bincount(sizes, minlength=2)
    if fraction == 1:
        return _count(frequencies, k)
    n = int(sizes.sum())
    sample = exact_estimate(float(frequencies[1]) / n, n)
    bounds = uniqueness_bounds(frequencies, fraction)
    estimates = {name: _estimate(frequencies, fraction, one) for name, one in _MODELS.items()}
    choice = choose_estimate(estimates, fraction, bounds)
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


def _count(frequencies: Frequencies, k: int) -> Uniqueness:
    """The table is the population."""
    r = np.arange(len(frequencies))
    n, ones = int(r @ frequencies), int(frequencies[1])
    one = exact_estimate(ones / n, n)
    alone = exact_estimate(1.0, ones) if ones else failed_estimate("Nobody is alone.")
    below = exact_estimate(float(r[:k] @ frequencies[:k]) / n, n)
    share = ones / n
    why = "The table is the population: everybody was counted."
    models = dict.fromkeys(("sample", "pitman", "zayatz", "snb", "poisson"), one)
    return Uniqueness(
        1.0, k, "counted", why, one, (share, share), agree=True,
        bounds=(share, share), **models, unique_if_alone=alone, below_k=below,
    )  # fmt: skip


def _estimate(frequencies: Frequencies, fraction: float, estimator: Estimator) -> Estimate:
    """The estimate with the interval of resampled class sizes."""
    n = int(np.arange(len(frequencies)) @ frequencies)
    if frequencies[1] == 0:
        return failed_estimate(
            "Nobody is alone in the table: there is nothing to estimate from.", n
        )
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


def _if_alone(choice: ModelChoice, sample: Estimate, alone: int) -> Estimate:
    """The chance that somebody alone in the table is alone in the population."""
    if not sample.value:
        return failed_estimate("Nobody is alone in the table.")
    if choice.unique.value is None:
        return failed_estimate(choice.unique.reason, alone)
    share = sample.value
    ends = [None if end is None else min(1.0, end / share) for end in
            (choice.unique.value, choice.unique.low, choice.unique.high)]  # fmt: skip
    return replace(choice.unique, value=ends[0], low=ends[1], high=ends[2], n=alone)
