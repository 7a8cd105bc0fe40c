"""People's own epsilon: public levels that demands are rounded down to, kept by sampling.

Which levels there are is public, from the schema or halfmask's own list; who stands at which, and
how many do, is not. A person's demand is a total over all answers: the ledger accounts for each
level, and whoever stands there has spent at most what the level has. Cautious people are kept less
often, then any private method runs once.

Definition: with threshold t, keep person i, with all own rows, with chance
(e^eps_i - 1) / (e^t - 1) if eps_i < t, else always; run a t-private method on the kept rows.
Person i then has eps_i. With a delta of the method, person i has at most it.
Source: Jorgensen, Yu, Cormode, "Conservative or liberal? Personalized differential privacy", 2015,
Theorem 3, which holds for every t-private method and not for counts alone.

The threshold follows from public numbers only: from the declared shares of people at each level,
or from a noisy count of each level, for which a tenth of its epsilon is paid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, expm1
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.accountant import Allowance, ViewCost
from halfmask.dp.budget import Approximate, Number, Pure, exact_number
from halfmask.dp.figures import attacker
from halfmask.dp.mechanisms import DiscreteLaplace
from halfmask.dp.views import as_pure
from halfmask.errors import ParameterError, PrivacyError
from halfmask.table.demands import per_person, person_texts, sources, states
from halfmask.table.policies import EXACT, LARGEST
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import Budget, DisjointPart
    from halfmask.dp.sampling import Sampler
    from halfmask.table.schema import Schema


# Where the schema declares none: known to everybody, whatever the rows say.
USUAL = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20")
QUIET = 1  # beyond it figures of a few people are as good as exact
OUT = -1  # below the least level, or no number: no noise keeps this person but being left out
BY_PERSON = "hm_epsilon_by_person"  # the column in which policies keyed by person are looked up
MOST = float(LARGEST)  # what is above is no demand: too large, infinite, or no number


@dataclass(frozen=True, slots=True)
class EpsilonLevels:
    """The public levels of a table.

    Attributes:
        epsilons: ascending.
        sources: the columns (or the numbers) that hold people's demands; the smallest counts.
            ``BY_PERSON`` stands for what policies keyed by person say.
        shares: the public share of people at each level, of those who state one; may be empty.
        exact: whether people can state k, l or t as well.

    Example:
        >>> levels = EpsilonLevels((Fraction(1, 2), Fraction(2)), ("own",))
        >>> levels.codes(np.array([0.1, 0.7, 9, np.nan]))
        array([-1,  0,  1,  2])
    """

    epsilons: tuple[Fraction, ...]
    sources: tuple[str | float, ...]
    shares: tuple[float, ...] = ()
    exact: bool = False

    def reads_silent(self, epsilon: Fraction) -> bool:
        """Whether one epsilon for all may read people who state none, but perhaps k, l or t."""
        return not self.exact or epsilon <= QUIET

    @property
    def silent(self) -> int:
        """The code of people who state nothing."""
        return len(self.epsilons)

    def codes(self, stated: NDArray[np.float64]) -> NDArray[np.int64]:
        """The level of each demand; what is missing (no number) is silent here."""
        cuts = np.array([float(level) for level in self.epsilons])
        found = np.searchsorted(cuts, np.nan_to_num(stated, nan=np.inf), side="right") - 1
        found[stated > MOST] = OUT
        found[np.isnan(stated)] = self.silent
        return found.astype(np.int64)

    def code(self, stated: float) -> int:
        """The level of one demand."""
        return int(self.codes(np.array([float(stated)]))[0])

    def of_people(self, table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per row the number of its person, and per person the level: the least of all rows."""
        person = np.arange(len(table))
        if table.schema.person is not None:
            person = table.encode(table.schema.person).codes.astype(np.int64)
        least = np.full(int(person.max(initial=-1)) + 1, self.silent)
        for source in self.sources:
            if not isinstance(source, str):
                least = np.minimum(least, self.code(source))
                continue
            stands = keyed_demands(table) if source == BY_PERSON else table.arrow[source]
            column = stands.cast(pa.float64(), safe=False)  # beyond 2**53 too
            odd = pc.fill_null(pc.is_nan(column), fill_value=False)
            stated = pc.if_else(odd, np.inf, column).to_numpy(zero_copy_only=False)
            np.minimum.at(least, person, self.codes(stated))
        return person, least

    def left(
        self, accountant: Accountant | None, part: DisjointPart = None
    ) -> tuple[Fraction, ...]:
        """What people at each level have left; all of it where nobody keeps count."""
        return self.epsilons if accountant is None else accountant.left(self.epsilons, part)

    def costs(
        self, epsilon: Fraction, accountant: Accountant | None, part: DisjointPart = None
    ) -> tuple[Fraction, ...]:
        """What one epsilon for everybody costs each level; 0 where less is left than that."""
        left = self.left(accountant, part)
        return tuple(epsilon if epsilon <= rest else Fraction(0) for rest in left)

    def require_somebody(self, costs: Sequence[Fraction]) -> None:
        """Refuse what no level allows; this depends on public levels and spendings only.

        Raises:
            PrivacyError: all people who state an epsilon would be left out.
        """
        # A number that holds for everybody is public, unlike a column.
        stated = [self.code(place) for place in self.sources if not isinstance(place, str)]
        if not any(costs[: min([*stated, len(costs)]) + 1]):
            raise PrivacyError(
                "No public level of epsilon allows this (the largest is "
                f"{float(self.epsilons[-1]):g}, less what was spent): everybody who states one "
                "would be left out. Ask for less; a controller can set demands aside "
                "(demands='ignore', --ignore-demands)."
            )

    def notes(self, costs: Sequence[Fraction]) -> tuple[str, ...]:
        """Who was left out, by public levels and not by number."""
        out = self.left_out(costs)
        if not out:
            least = f"{float(self.epsilons[0]):g}"
            return (f"People who allow less than the least public level, {least}, are left out.",)
        named = ", ".join(out[:-1]) + (" and " if len(out) > 1 else "") + out[-1]
        return (
            f"People who allow less in all than this answer would bring them to are left out: "
            f"those at the level{'s' * (len(out) > 1)} {named}, and below all levels.",
        )

    def describe(self, costs: Sequence[Fraction], delta: Number = 0) -> dict[str, Any]:
        """Levels, what each pays, and how well membership of its people can be guessed then."""
        return {
            "levels": [float(level) for level in self.epsilons],
            "costs": [float(cost) for cost in costs],
            "membership": [attacker(cost, 2, delta=delta if cost else 0) for cost in costs],
        }

    def left_out(self, costs: Sequence[Fraction]) -> tuple[str, ...]:
        """The levels whose people are left out, as a reader sees them."""
        return tuple(
            f"{float(level):g}"
            for level, cost in zip(self.epsilons, costs, strict=True)
            if not cost
        )


def keyed_demands(table: Table) -> pa.Array:
    """Per row, the least epsilon that policies keyed by person say of its person, or null."""
    people = [
        per_person(one.people, one.spoken_of)
        for one in sources(table.schema)
        if one.people is not None
    ]
    person = table.schema.person
    assert person is not None  # noqa: S101 - policies keyed by person are refused without
    encoded = table.encode(person)
    texts, least = person_texts(encoded.values), pa.nulls(len(encoded.values), pa.float64())
    for own in people:
        place = pc.index_in(texts, value_set=own["person"].combine_chunks())
        stated = own["epsilon"].combine_chunks().take(place)
        least = pc.min_element_wise(least, stated, skip_nulls=True)
    return least.take(pa.array(encoded.codes))


def levels_of(schema: Schema | None) -> EpsilonLevels | None:
    """The levels of a table whose people may state an epsilon; None where nobody can.

    This is the only place that reads where people's own epsilons stand.
    """
    every = () if schema is None else sources(schema)
    found: list[str | float] = []
    for one in every:
        if one.people is not None and one.people["epsilon"].null_count < len(one.people):
            found.append(BY_PERSON)
        entries = (one.general, *one.columns.values())
        found += [place for entry in entries if (place := entry.get("epsilon")) is not None]
    if schema is None or not found:
        return None
    stated: Sequence[float | str] = schema.epsilon_levels or USUAL
    epsilons = tuple(exact_number("epsilon", level) for level in stated)
    both = any(states(schema, demand) for demand in EXACT)
    return EpsilonLevels(epsilons, tuple(dict.fromkeys(found)), schema.epsilon_shares, both)


NOBODY = (
    "Nobody's own epsilon is declared: name its column in the schema, [policy] epsilon = ..., or "
    "give one epsilon for everybody."
)


def levels_in_force(schema: Schema | None, demands: str) -> EpsilonLevels | None:
    """The levels that a verb must keep; None where there are none, or they are set aside."""
    if demands not in ("keep", "ignore"):
        raise ParameterError("demands", demands, "'keep' or 'ignore'")
    return levels_of(schema) if demands == "keep" else None


def require_quiet(schema: Schema | None, epsilon: Fraction, demands: str) -> None:
    """Refuse noise so small that it is nearly exact where people ask for k, l or t alone.

    Raises:
        PrivacyError: they state no epsilon, and this one is above ``QUIET``.
    """
    if schema is None or demands == "ignore" or epsilon <= QUIET or states(schema, "epsilon"):
        return
    if any(states(schema, demand) for demand in EXACT):
        raise PrivacyError(
            f"People state k, l or t and no epsilon: noise keeps them up to epsilon {QUIET}. Ask "
            "for less, declare their epsilon under [policy], or set demands aside "
            "(demands='ignore', --ignore-demands)."
        )


def require_share(share: Number) -> Fraction:
    """The share of everybody's own epsilon that one use spends."""
    found = exact_number("share", share)
    if not 0 < found <= 1:
        raise ParameterError("share", str(share), "above 0, at most 1")
    return found


STEP = Fraction(1, 10**6)  # costs are rounded down to millionths: never less private
_PEOPLE = 1000  # where only shares are public, for weighing sampling against noise
_COUNTING = Fraction(1, 10)  # of each level's cost, where its people must be counted


@dataclass(frozen=True, slots=True)
class PersonalPlan:
    """What people at each level may be charged in one use of the table; all public.

    Attributes:
        levels: the public levels.
        costs: per level what this use may cost its people; 0: they are left out.
        counted: whether a part of it pays for counting the people of each level.
    """

    levels: EpsilonLevels
    costs: tuple[Fraction, ...]
    counted: bool

    @classmethod
    def of(
        cls, levels: EpsilonLevels, share: Fraction, accountant: Accountant | None
    ) -> PersonalPlan:
        """Each level pays ``share`` of its demand, where as much is left of it."""
        return cls(levels, personal_costs(levels, share, accountant), not levels.shares)

    @property
    def counting(self) -> tuple[Fraction, ...]:
        """Per level what counting its people costs."""
        part = _COUNTING if self.counted else Fraction(0)
        return tuple(_floor(cost * part) for cost in self.costs)

    @property
    def sampling(self) -> tuple[Fraction, ...]:
        """Per level what is left for the method."""
        return tuple(a - b for a, b in zip(self.costs, self.counting, strict=True))

    def threshold(self, people: Sequence[float], numbers: int) -> Fraction:
        """The level at which ``numbers`` noisy numbers have the smallest stated error."""
        return min(
            sorted({cost for cost in self.sampling if cost}),
            key=lambda level: self.variance(level, people, numbers=numbers),
        )

    def variance(self, threshold: Fraction, people: Sequence[float], *, numbers: int = 1) -> float:
        """The mean squared error of ``numbers`` counts at its worst, before anything is drawn.

        Sampling at its largest (everybody has the property), noise, and a mixture in which people
        with the property are kept somewhat more often than the average.
        """
        chances, counts = self._chances(threshold), np.asarray(people, dtype=np.float64)
        share = max(float((chances * counts).sum() / max(counts.sum(), 1e-9)), 1e-9)
        sampled = float((chances * (1 - chances) * counts).sum())
        bias = float((np.maximum(chances - share, 0) * counts).sum()) * _TYPICAL_SKEW
        noise = numbers * DiscreteLaplace(threshold).variance
        return (sampled + noise + bias**2) / share**2

    def share(self, threshold: Fraction, people: Sequence[float]) -> float:
        """The share of these people that a sample keeps, as expected."""
        counts = np.asarray(people, dtype=np.float64)
        return float((self._chances(threshold) * counts).sum() / counts.sum())

    def _chances(self, threshold: Fraction) -> NDArray[np.float64]:
        return np.array([_chance(cost, threshold) for cost in self.sampling])


_TYPICAL_SKEW = 0.05  # how far demands and properties may go together, for choosing the threshold


@dataclass(frozen=True, slots=True, eq=False)
class PersonalSample:
    """The people of a table at their levels; a secret, but for the plan.

    Attributes:
        plan: what each level may be charged.
    """

    plan: PersonalPlan
    _table: Table = field(repr=False)
    _person: NDArray[np.int64] = field(repr=False)
    _codes: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, table: Table, plan: PersonalPlan) -> PersonalSample:
        """The people of ``table``."""
        person, codes = plan.levels.of_people(table)
        return cls(plan, table, person, codes)

    def people(self, allowance: Allowance, sampler: Sampler) -> list[float]:
        """How many people stand at each level: as declared, or counted with noise and paid for."""
        if not self.plan.counted:
            return [_PEOPLE * share for share in self.plan.levels.shares]
        allowance.secure = allowance.secure and sampler.secure
        found = []
        for code, level in enumerate(self.plan.levels.epsilons):
            cost = self.plan.counting[code]
            if not cost:
                found.append(0.0)
                continue
            mechanism = DiscreteLaplace(cost)
            variance = Fraction(mechanism.variance).limit_denominator(10**6)
            allowance.charge(
                ViewCost("people of a level", "DiscreteLaplace", Pure(cost), variance, level)
            )
            exact = np.array([np.count_nonzero(self._codes == code)])
            found.append(max(float(mechanism.apply(exact, sampler)[0]), 1.0))
        return found

    def draw(self, threshold: Fraction, sampler: Sampler) -> Table:
        """The rows of the people who are kept."""
        paid = [int(cost / STEP) for cost in self.plan.sampling]
        costs = np.array([*paid, 0, 0], np.int64)
        stays = draw_sample(costs[self._codes], threshold, sampler)  # silent and out: the two zeros
        rows = np.flatnonzero(stays[self._person])
        return Table(self._table.arrow.take(pa.array(rows)), self._table.schema, self._table.origin)


def personal_costs(
    levels: EpsilonLevels, share: Fraction, accountant: Accountant | None, part: DisjointPart = None
) -> tuple[Fraction, ...]:
    """What each level pays: a share of its demand, at most what the table has left; else nothing.

    People at a level that has less left than that are left out.
    """
    most = levels.epsilons[-1] if accountant is None else affordable(accountant.remaining)
    costs = [_floor(min(level * share, most)) for level in levels.epsilons]
    left = levels.left(accountant, part)
    return tuple(c if c <= rest else Fraction(0) for c, rest in zip(costs, left, strict=True))


def affordable(remaining: Budget) -> Fraction:
    """The epsilon that a budget can still pay."""
    if isinstance(remaining, Pure | Approximate):
        return remaining.epsilon
    return as_pure(remaining).epsilon


def draw_sample(own: NDArray[np.int64], threshold: Fraction, sampler: Sampler) -> NDArray[np.bool_]:
    """Who stays in the sample, exactly; ``own`` is what each may pay in steps, 0 for nothing.

    (e^a - 1) / (e^t - 1) = e^-(t - a) * (1 - e^-a) / (1 - e^-t): a coin for the first factor, and a
    geometric number below a given that it is below t for the second.
    """
    top = int(threshold / STEP)
    stays = own >= top
    small = np.flatnonzero(~stays & (own > 0))
    first = sampler.bernoulli_exp((top - own[small]) * STEP.numerator, STEP.denominator)
    second = _below(own[small], top, sampler)
    stays[small] = first & second
    return stays


def _below(own: NDArray[np.int64], top: int, sampler: Sampler) -> NDArray[np.bool_]:
    """True with chance (1 - e^-own) / (1 - e^-top), both in steps."""
    out = np.zeros(len(own), np.bool_)
    open_ = np.arange(len(own))
    while len(open_):
        drawn = sampler.geometric(STEP, len(open_))
        inside = drawn < top
        out[open_[inside]] = drawn[inside] < own[open_[inside]]
        open_ = open_[~inside]
    return out


def _chance(cost: Fraction, threshold: Fraction) -> float:
    if cost >= threshold:
        return 1.0
    return expm1(float(cost)) / (exp(float(threshold)) - 1)


def _floor(cost: Fraction) -> Fraction:
    return cost // STEP * STEP
