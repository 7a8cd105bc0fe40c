"""Whose rows a question with noise reads: people's own epsilons, kept by public levels.

One epsilon for everybody reads the people who still allow as much, and those who state none.
``WITH PERSONAL EPSILON`` measures every level apart, with noise for what its people pay. Levels are
disjoint people, so nobody pays twice (parallel composition), and the sum over levels is post-
processing. Nothing here depends on a row: levels, costs and weights are public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from halfmask.dp.accountant import SpendingScope as Spender
from halfmask.dp.accountant import unit
from halfmask.dp.budget import Approximate, Pure, budget
from halfmask.dp.ledger import table_identity
from halfmask.dp.personal import (
    BY_PERSON,
    NOBODY,
    EpsilonLevels,
    levels_in_force,
    personal_costs,
    require_quiet,
    require_share,
)
from halfmask.engines.request import kind_of
from halfmask.errors import PrivacyError, SchemaError, UnsupportedQueryError
from halfmask.table.demands import ignored_words

if TYPE_CHECKING:
    from fractions import Fraction

    from sqlglot import exp

    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import Budget, Number
    from halfmask.engines.tallies import BoundedTally
    from halfmask.query.catalog import AskedTable
    from halfmask.query.planning.noise import NoisePlan


@dataclass(frozen=True, eq=False)
class Audience:
    """Whose rows an answer reads, and what that costs them; all public.

    Attributes:
        promise: what it costs those who pay most.
        levels: the public levels of demand; None where nobody states one, or they are set aside.
        costs: per level what its people pay; 0: they are left out.
        apart: whether each level is measured with noise of its own.
        ignored: what is said where demands are set aside, else nothing.
    """

    promise: Pure | Approximate
    levels: EpsilonLevels | None = None
    costs: tuple[Fraction, ...] = ()
    apart: bool = False
    ignored: str = ""

    @property
    def read(self) -> tuple[int, ...]:
        """The numbers of the levels whose people are read."""
        found = [code for code, cost in enumerate(self.costs) if cost]
        levels = self.levels
        if levels is not None and not self.apart and levels.reads_silent(self.promise.epsilon):
            found.append(levels.silent)
        return tuple(found)

    @property
    def weights(self) -> tuple[float, ...]:
        """Per level that is read apart, what each of its numbers counts in the answer.

        Where the share of people at each level is public, levels stand for each other, the exact
        ones most: weights as small as noise allows (Gauss-Markov). Else they are added up.
        """
        assert self.levels is not None  # noqa: S101 - only levels are read apart
        if not self.levels.shares:
            return (1.0,) * len(self.read)
        shares = [self.levels.shares[code] for code in self.read]
        plain = [float(self.costs[c]) ** 2 * s for c, s in zip(self.read, shares, strict=True)]
        whole = sum(w * s for w, s in zip(plain, shares, strict=True))
        return tuple(w / whole for w in plain)

    @property
    def mixture(self) -> float:
        """The variance per row of a weighted sum of levels, as people fall to them by chance."""
        if self.levels is None or not self.apart or not self.levels.shares:
            return 0.0
        shares = [self.levels.shares[code] for code in self.read]
        squares = (w * w * s for w, s in zip(self.weights, shares, strict=True))
        return max(sum(squares) - 1, 0.0)

    def limit(self, code: int) -> Budget:
        """What the mechanisms for one level may take."""
        delta = self.promise.delta if isinstance(self.promise, Approximate) else 0
        return unit(budget(self.costs[code], delta))

    def spender(self, source: AskedTable, part: tuple[str, ...] | None) -> Spender:
        """What the accountant must know."""
        own = source.person is not None
        # As it was given: what is asked may have been made ready for the question.
        given = source.columns if source.table is None else source.table.arrow.column_names
        name = table_identity(given, source.schema)
        if self.levels is None:
            return Spender(part=part, table=name, by_person=own)
        paid = dict(zip(self.levels.epsilons, self.costs, strict=True))
        if not self.apart:
            return Spender(paid, part=part, table=name, by_person=own)
        limits = {self.levels.epsilons[code]: self.limit(code) for code in self.read}
        return Spender(paid, limits, part=part, table=name, by_person=own)

    def tally(self, request: BoundedTally, source: AskedTable, alias: str) -> BoundedTally:
        """The request, of the people who are read only."""
        if self.levels is None:
            return request
        return replace(
            request,
            level=_level(self.levels, source, alias),
            kept=tuple(code + 1 for code in self.read),
            apart=self.apart,
        )

    def parameters(self) -> dict[str, Any]:
        """What a release says of it, as plain values."""
        if self.ignored:
            return {"demands": "ignore"}
        if self.levels is None or not self.apart:
            return {}
        delta = self.promise.delta if isinstance(self.promise, Approximate) else 0
        return {"personal": self.levels.describe(self.costs, delta)}

    def notes(self) -> tuple[str, ...]:
        """The same in words."""
        if self.ignored:
            return (self.ignored,)
        if self.levels is None:
            return ()
        if not self.apart:
            return self.levels.notes(self.costs)
        joined = (
            "Figures take the public shares of levels, and that demands do not go together with "
            "what is asked."
            if self.levels.shares
            else "Levels are added up: the noise is that of the most cautious level. Declare "
            "shares beside the levels, where they are public, and it shrinks."
        )
        return (
            "Every person pays at most the own epsilon, rounded down to a public level: the bounds "
            "are those of the people who pay most. People who state none are left out.",
            joined,
            *self.levels.notes(self.costs),
        )


def audience(
    plan: NoisePlan,
    promise: Pure | Approximate | None,
    *,
    delta: Number,
    share: Number,
    demands: str,
    accountant: Accountant | None,
) -> Audience:
    """Who can be read: at ``promise``, or where it is None at everybody's own epsilon."""
    source = plan.scope.tables[plan.scope.main]
    levels = levels_in_force(source.schema, demands)
    ignored = ignored_words(source.schema) if demands == "ignore" else ""
    part = None if accountant is None else plan.parts.get(accountant.partition)
    if promise is not None:
        require_quiet(source.schema, promise.epsilon, demands)
        costs: tuple[Fraction, ...] = ()
        if levels is not None:
            costs = levels.costs(promise.epsilon, accountant, part)
            levels.require_somebody(costs)
        return Audience(promise, levels, costs, ignored=ignored)
    if levels is None:
        _refuse(plan, NOBODY)
    if not plan.public:
        _refuse(plan, "with PERSONAL EPSILON groups are public: declare their domain.")
    costs = personal_costs(levels, require_share(share), accountant, part)
    levels.require_somebody(costs)
    return Audience(budget(max(costs), delta), levels, costs, apart=True)


def _level(levels: EpsilonLevels, source: AskedTable, alias: str) -> exp.Expr:
    """A row's level, counted from 1; 0 below all of them and for what is no demand.

    It never fails: what is missing, infinite or no number has a level too.
    """
    import pyarrow as pa
    from sqlglot import exp

    from halfmask.dp.personal import MOST
    from halfmask.query.total_form.conversions import bounded_numeric

    found: list[exp.Expr] = []
    for place in levels.sources:
        if not isinstance(place, str):
            found.append(exp.Literal.number(int(levels.code(place)) + 1))
            continue
        if place == BY_PERSON and place not in source.columns:
            raise PrivacyError(
                "People state an own epsilon in policies keyed by person, which noise cannot look "
                "up where the rows stay in a database: put it in a column of the table, read the "
                "rows first (hm.read), or set demands aside (demands='ignore', --ignore-demands)."
            )
        if kind_of(source.columns[place]) not in ("integer", "decimal", "float"):
            raise SchemaError(f"Policy column {place!r} (epsilon) holds no numbers.")
        own = exp.column(place, table=alias, quoted=True)
        any_digits = pa.types.is_decimal256(source.columns[place])
        stated = bounded_numeric(own) if any_digits else exp.cast(own, "double")
        case = exp.Case().when(stated.is_(exp.null()), exp.Literal.number(levels.silent + 1))
        most = exp.Literal.number(repr(MOST))
        case = case.when(exp.GT(this=stated.copy(), expression=exp.cast(most, "double")), "0")
        for code in reversed(range(len(levels.epsilons))):
            least = exp.cast(exp.Literal.number(repr(float(levels.epsilons[code]))), "double")
            reached = exp.GTE(this=stated.copy(), expression=least)
            case = case.when(reached, exp.Literal.number(code + 1))
        found.append(case.else_("0"))
    # Levels ascend with epsilon: of all that a person states, the most cautious counts.
    return found[0] if len(found) == 1 else exp.Least(this=found[0], expressions=found[1:])


def _refuse(plan: NoisePlan, message: str) -> NoReturn:
    start = plan.statement.cost.start
    raise UnsupportedQueryError(message, text=plan.statement.text, start=start, length=4)
