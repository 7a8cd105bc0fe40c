"""Private synthesis: from a table, public domains and a budget to a sealed synthetic table."""

from __future__ import annotations

import inspect
import secrets
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import inf, prod, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.dp.accountant import Accountant, Allowance, SpendingScope, unit, whose_rows
from halfmask.dp.bounds import (
    SHARES,
    bought_facts,
    bought_notes,
    buy_bounds,
    require_public,
    wanted_bounds,
)
from halfmask.dp.budget import Approximate, Number, Pure, budget, exact_number, require_modest
from halfmask.dp.domain import (
    Bins,
    declared_domains,
    given_domains,
    given_impossible,
    public_domains,
    require_fitting,
)
from halfmask.dp.ledger import table_identity
from halfmask.dp.personal import (
    NOBODY,
    EpsilonLevels,
    PersonalPlan,
    PersonalSample,
    levels_in_force,
    require_quiet,
    require_share,
)
from halfmask.dp.sampling import Sampler
from halfmask.dp.views import coding_of, guarded_rows, guarded_tuples, noise
from halfmask.engines.counting.coded_tuples import count_codes
from halfmask.engines.counting.tuples import one_row_each
from halfmask.engines.read import is_typed
from halfmask.errors import ParameterError, SchemaError
from halfmask.models.verdict import require_number, require_whole
from halfmask.release.candidate import NoiseCandidate
from halfmask.release.seal import seal
from halfmask.synthesize import adaptive, dp_cocluster, histogram, marginals, privbayes
from halfmask.synthesize.constraints import (
    condition_notes,
    draw_limits,
    stated_conditions,
    structure_notes,
)
from halfmask.synthesize.fallback import learn_and_draw
from halfmask.synthesize.histories import Histories
from halfmask.synthesize.prior import PublicPrior
from halfmask.table.demands import ignored_words, with_policies
from halfmask.table.table import Table, require_table
from halfmask.table.weights import unweighted_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.dp.bounds import OpenRange
    from halfmask.dp.budget import Budget
    from halfmask.dp.conditions import Combination
    from halfmask.dp.domain import Domain
    from halfmask.dp.views import NoisyViews
    from halfmask.release.release import PrivateRelease
    from halfmask.synthesize.constraints import DrawLimits
    from halfmask.table.schema import Schema


FEW_CELLS = 128  # up to here the histogram is the better method


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """What is spent, who pays it, what is publicly known, and how much is drawn.

    Attributes:
        epsilon: the budget to spend; people who state less, or have less left, are left out.
            ``"personal"`` spends of every person's own, which the schema's policy names: people
            stay in the sample the less often the less they allow.
        delta: 0 for pure differential privacy; a small delta buys accuracy.
        domains: per column its public values, or its bounds and number of intervals; must be known
            without looking at the rows. A path is read as TOML.
        rows: how many rows to draw; by default the noisy number of rows.
        rows_per_person: how many rows one person can have; further ones are left out.
        accountant: who keeps the budget of this table over several releases.
        share: with ``"personal"``, the share of everybody's own epsilon to spend.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's own epsilons aside, by the controller.
        insist: whether an epsilon above 20 or a delta above 0.0001 is meant.
        given: column to what every drawn row holds there: a public value, values, or a range; it
            needs ``rows``.
        bounds: the share of the budget that finds bounds of numbers and dates for which nobody
            declared any, such as 0.1.
        prior: a public table, which is not protected, of some of the columns: where the model of
            ``"marginals"`` or ``"adaptive"`` begins.
        together: ``"person"`` or ``"household"``: rows of one are drawn together, at most
            ``rows_per_person`` of each, and ``rows`` counts people or households.
        order: with ``together``, the column by which the rows of one are sorted: numbers and dates
            as such, other values as their domain lists them.
        constant: with ``together``, the columns that all rows of one share, such as sex; where they
            differ, the value in the first row counts.
    """

    epsilon: Number | Literal["personal"]
    delta: Number = 0
    domains: Mapping[str, object] | str | PathLike[str] | None = None
    rows: int | None = None
    rows_per_person: int = 1
    accountant: Accountant | None = None
    share: Number = 1
    policies: object = None
    demands: str = "keep"
    insist: bool = False
    given: Mapping[str, object] | None = None
    bounds: Number | None = None
    prior: Table | None = None
    together: str | None = None
    order: str | None = None
    constant: Sequence[str] = ()


NOISE_OPTIONS = tuple(one.name for one in fields(NoiseSettings) if one.name != "epsilon")


def synthesize_privately(
    table: Table, method: str, settings: NoiseSettings, options: Mapping[str, Any]
) -> PrivateRelease:
    """A synthetic table under differential privacy.

    Args:
        table: the rows.
        method: ``"marginals"``, ``"adaptive"``, ``"histogram"``, ``"privbayes"``,
            ``"dp-cocluster"``, ``"dpcocgen"`` or ``"auto"`` (the histogram where all columns
            together have few combinations, else marginals, as with ``together`` or ``prior``).
        settings: what is spent, and on what.
        options: what the method itself takes.

    Raises:
        SchemaError: a column has no public domain.
        BudgetExceededError: the accountant has less than ``epsilon`` left.
    """
    origin = table.origin  # of rows elsewhere the same, whether they are read or not
    if not _stays(table, settings):
        table = with_policies(require_table(table), settings.policies)
    plan = _plan(table, method, settings, options)
    random = np.random.default_rng(secrets.randbits(128))  # draws from models, never noise
    _rehearse(plan)
    plan, views, kept, allowance = _paid_views(plan)
    codes, trouble = learn_and_draw(
        plan.learn,
        views,
        lambda held: settings.rows or max(1, round(held / kept)),
        random,
        limits=plan.limits,
        ordered=plan.ordered,
        **plan.learn_options,
    )
    return seal(
        NoiseCandidate(
            _decode(plan, codes, random),
            allowance.receipt(),
            plan.sizes,
            plan.chosen,
            _parameters(plan, method),
            (*trouble, *_notes(plan)),
            origin,
            plan.table.schema,
            plan.impossible,
            plan.given,
        )
    )


@dataclass(frozen=True, slots=True, eq=False)
class SynthesisPlan:
    """What is decided of a synthesis by public facts alone, before anything is spent.

    Attributes:
        table: the rows, where they are.
        settings: what is spent, and on what.
        chosen: the method.
        options: what the method itself takes.
        people: whose rows are read, and what they pay.
        domains: per column its public values; the widest, until its bounds are bought.
        share: of the budget, for bounds.
        wanted: the columns whose bounds are bought.
        declared: combinations that cannot occur, as they are declared.
        single: what one row may hold.
        impossible: what the door checks that no row holds.
        given: what it checks that every row holds.
        histories: how rows of one are drawn together; None: one by one.
        prior: the public rows where the model begins, as the option of the method.
    """

    table: Table
    settings: NoiseSettings
    chosen: str
    options: Mapping[str, Any]
    people: _PersonalCosts
    domains: Mapping[str, Domain]
    share: Fraction
    wanted: Mapping[str, OpenRange]
    declared: Sequence[Any]
    single: DrawLimits
    impossible: Sequence[Combination]
    given: Combination
    histories: Histories | None
    prior: Mapping[str, PublicPrior]

    @property
    def learn(self) -> Callable[..., Any]:
        """What makes a model of noisy views."""
        return PRIVATE[self.chosen]

    @property
    def sizes(self) -> dict[str, int]:
        """How many public values each column has."""
        return {name: len(domain) for name, domain in self.domains.items()}

    @property
    def ordered(self) -> list[str]:
        """The columns that a method sees whose neighboring codes are alike."""
        found = [n for n, d in self.domains.items() if isinstance(d, Bins) or d.ordered]
        return found if self.histories is None else self.histories.ordered(found)

    @property
    def limits(self) -> DrawLimits:
        """What a row that a method draws may hold."""
        return self.single if self.histories is None else self.histories.limits(self.single)

    @property
    def learn_options(self) -> dict[str, Any]:
        """What the method is told beside the views; what cannot occur where it takes that."""
        told = {**self.options, **self.prior}
        if "zeros" in inspect.signature(self.learn).parameters:
            told["zeros"] = self.limits.impossible
        return told

    def with_bounds(self, bought: Mapping[str, Bins]) -> SynthesisPlan:
        """The same with the bounds that were bought."""
        domains = {**self.domains, **bought}
        sizes = {name: len(domain) for name, domain in domains.items()}
        return replace(
            self,
            domains=domains,
            histories=None if self.histories is None else self.histories.resized(sizes),
            prior=_prior(self.learn, self.chosen, self.settings, self.table, domains),
        )


def _plan(
    table: Table, method: str, settings: NoiseSettings, options: Mapping[str, Any]
) -> SynthesisPlan:
    """Decide everything that hangs on public facts, and refuse what cannot be.

    Nothing of it looks at a row's values: a refusal tells of declarations only.
    """
    if settings.rows is not None:
        require_whole("rows", settings.rows, 1)
        if settings.rows > MOST_ROWS:
            raise ParameterError("rows", settings.rows, f"at most {MOST_ROWS:,}")
    require_whole("rows_per_person", settings.rows_per_person, 1)
    if settings.given is not None and settings.rows is None:
        raise ParameterError("rows", None, "how many rows to draw, which given needs")
    columns = _columns(table)
    stated = {n: d for n, d in declared_domains(table.schema).items() if n in columns}
    stated |= given_domains(settings.domains, columns)
    share, wanted = wanted_bounds(table.schema, columns, stated, settings.bounds)
    public = public_domains(
        [name for name in columns if name not in wanted],
        {name: one for name, one in stated.items() if name not in wanted},
    )
    known = {n: wanted[n].widest if n in wanted else public[n] for n in columns}
    require_fitting(known)
    declared = [*table.schema.impossible, *given_impossible(settings.domains)]
    require_public(wanted, declared, settings.given)
    single, impossible, given = draw_limits(declared, settings.given, known)
    sizes = {name: len(domain) for name, domain in known.items()}
    chosen = _method(method, settings, sizes)
    _require_options(chosen, options)
    people = _people(table, settings)
    require_modest(people.promise, insist=settings.insist)
    histories = _histories(table.schema, settings, sizes)
    _require_servable(people.promise, settings, histories)
    if histories is not None and histories.kind == "household" and people.levels is not None:
        raise SchemaError(HOMES)
    prior = _prior(PRIVATE[chosen], chosen, settings, table, known)
    return SynthesisPlan(
        table, settings, chosen, options, people, known, share, wanted, declared, single,
        impossible, given, histories, prior,
    )  # fmt: skip


def _paid_views(plan: SynthesisPlan) -> tuple[SynthesisPlan, NoisyViews, float, Allowance]:
    """The rows behind noisy views, paid for, and about which share of all rows they are.

    The plan comes back with the bounds that were bought. The budget is spent before a row is read:
    who stops in between has paid, and never the other way round.
    """
    table, settings, people, histories = plan.table, plan.settings, plan.people, plan.histories
    coded = None
    if table.stored is not None:
        # Bounds are bought of the rows themselves, which then come over.
        coded = None if plan.wanted else count_codes(table, coding_of(plan.domains))
        table = table if coded is not None else table.collect()
    keeper = settings.accountant or Accountant(people.promise)
    most, scope = settings.rows_per_person, people.scope(table)
    if histories is not None:
        most = histories.rows_changed  # so many rows serve bounds that are bought
        used = max(histories.rows_used, most if plan.wanted else 1)
        scope = replace(scope, rows_used=used)
    allowance = keeper.allow(
        people.promise, f"synthesize ({plan.chosen})", rows_per_person=most, scope=scope
    )
    plan = replace(plan, table=table)
    if coded is not None:
        return plan, guarded_tuples(coded, plan.domains, allowance), 1.0, allowance
    read, kept = people.rows(table, allowance, sum(plan.sizes.values()))
    if plan.wanted:
        plan = plan.with_bounds(buy_bounds(read, plan.wanted, allowance, plan.share))
    if plan.histories is not None:
        views = plan.histories.guard(read, plan.domains, allowance)
    else:
        views = guarded_rows(read, plan.domains, allowance)
    return plan, views.within(allowance.remaining), kept, allowance


def _decode(
    plan: SynthesisPlan, codes: dict[str, NDArray[np.int64]], random: np.random.Generator
) -> pa.Table:
    """Public codes as values, wide rows taken apart again."""
    owner = None
    if plan.histories is not None:
        codes, owner = plan.histories.unfold(codes)
    arrow = pa.table({n: d.decode(codes[n], random) for n, d in plan.domains.items()})
    if plan.histories is None or owner is None:
        return arrow
    return plan.histories.rows(arrow, owner, codes, plan.domains)


def _parameters(plan: SynthesisPlan, method: str) -> dict[str, Any]:
    """What a release says of its choices, all of them public."""
    return {
        "method": method,
        "rows": plan.settings.rows,
        "rows_per_person": plan.settings.rows_per_person,
        **plan.people.parameters(),
        **bought_facts(plan.share, {name: plan.domains[name] for name in plan.wanted}),
        **plan.options,
        **(plan.histories.facts() if plan.histories else {}),
        **({"prior": True} if plan.prior else {}),
        **stated_conditions(plan.declared, plan.settings.given),
    }


def _notes(plan: SynthesisPlan) -> tuple[str, ...]:
    """What a reader should know."""
    schema, settings = plan.table.schema, plan.settings
    if plan.histories is None:
        whose = whose_rows(schema, settings.rows_per_person)
    else:
        whose = (*plan.histories.notes(), *(() if plan.chosen in _WIDE else (POORLY,)))
    general = ["Comparisons with the original table are internal: they are not private."]
    if any(isinstance(domain, Bins) for domain in plan.domains.values()):
        general.append("Numbers are drawn evenly inside their public intervals.")
    if settings.accountant is None:
        general.append("No ledger was given: other releases of this table add to its epsilon.")
    return (
        *plan.people.notes(),
        *whose,
        *general,
        *bought_notes(plan.share, plan.wanted, plan.domains),
        *condition_notes(plan.declared, settings.given),
        *((PRIOR,) if plan.prior else ()),
        *(() if plan.histories else structure_notes(schema)),
        *unweighted_notes(schema),
    )


def _stays(table: Table, settings: NoiseSettings) -> bool:
    """Whether rows are coded and counted where they are: none is needed by itself.

    No release says which: it may hang on whether somebody has two rows.
    """
    if table.stored is None or settings.policies is not None or not is_typed(table):
        return False
    if settings.together is not None:
        return False
    if levels_in_force(table.schema, settings.demands) is not None:
        return False
    return table.schema.person is None or one_row_each(table)


def _histories(
    schema: Schema, settings: NoiseSettings, sizes: Mapping[str, int]
) -> Histories | None:
    """How rows that belong together are drawn together, where that is asked for."""
    if settings.together is None:
        for name in ("order", "constant"):
            if getattr(settings, name):
                raise ParameterError(
                    name,
                    getattr(settings, name),
                    "it beside together='person' or together='household', or leave it out",
                )
        return None
    if settings.given is not None:
        raise ParameterError(
            "together", settings.together, "either together or given: rows of one hold several"
        )
    return Histories.of(
        schema,
        settings.together,
        settings.rows_per_person,
        settings.order,
        settings.constant,
        sizes,
    )


_WIDE = ("marginals", "adaptive")  # methods that learn many columns well
POORLY = (
    "Rows drawn together have many columns, of which this method keeps little: take marginals or "
    "adaptive."
)
HOMES = (
    "Some people state an own epsilon and may be left out, and households would lose members: draw "
    "households together with demands='ignore', or people by together='person'."
)
PRIOR = (
    "The model began with a prior table, which is taken to be public: the promise does not cover "
    "its rows."
)


def _prior(
    learn: Callable[..., Any],
    method: str,
    settings: NoiseSettings,
    table: Table,
    domains: Mapping[str, Domain],
) -> dict[str, PublicPrior]:
    """The public rows where a model begins, where they are given."""
    if settings.prior is None:
        return {}
    if "prior" not in inspect.signature(learn).parameters:
        raise ParameterError("method", method, "marginals or adaptive, which begin with a prior")
    if settings.together is not None:
        raise ParameterError(
            "together", settings.together, "either together or prior: public rows are single ones"
        )
    return {"prior": PublicPrior.of(settings.prior, table, domains)}


@dataclass(frozen=True, slots=True)
class _PersonalCosts:
    """Whose rows a synthetic table is made of, and what it costs them; all public.

    Attributes:
        promise: what it costs those who pay most.
        levels: the public levels of demand; None where nobody states one, or they are set aside.
        costs: per level what its people pay; 0: they are left out.
        plan: how people are sampled; None where all who are read are read alike.
        ignored: what is said where demands are set aside, else nothing.
    """

    promise: Pure | Approximate
    levels: EpsilonLevels | None
    costs: tuple[Fraction, ...]
    plan: PersonalPlan | None
    ignored: str

    def scope(self, table: Table) -> SpendingScope:
        """What the accountant must know."""
        own = table.schema.person is not None
        name = table_identity(table.column_names, table.schema)
        if self.levels is None:
            return SpendingScope(table=name, by_person=own)
        levels = self.levels.epsilons
        paid = dict(zip(levels, self.costs, strict=True))
        if self.plan is None:
            return SpendingScope(paid, table=name, by_person=own)
        counting = zip(levels, self.plan.counting, strict=True)
        limits = {level: Pure(cost) for level, cost in counting if cost}
        limit = unit(self._at(max(self.plan.sampling)))
        return SpendingScope(paid, limits, limit, table=name, by_person=own)

    def rows(self, table: Table, allowance: Allowance, numbers: int) -> tuple[Table, float]:
        """The rows that a method may read, and about which share of all that is."""
        if self.levels is None:
            return table, 1.0
        if self.plan is None:
            person, codes = self.levels.of_people(table)
            silent = self.levels.reads_silent(self.promise.epsilon)
            reads = np.array([*(bool(cost) for cost in self.costs), silent, False])
            rows = np.flatnonzero(reads[codes][person])
            return Table(table.arrow.take(pa.array(rows)), table.schema, table.origin), 1.0
        sampler, sample = Sampler(), PersonalSample.of(table, self.plan)
        people = sample.people(allowance, sampler)
        threshold = self.plan.threshold(people, numbers)
        allowance.lower(unit(self._at(threshold)))
        return sample.draw(threshold, sampler), self.plan.share(threshold, people)

    def parameters(self) -> dict[str, Any]:
        """What a release says of it, as plain values."""
        found: dict[str, Any] = {"demands": "ignore"} if self.ignored else {}
        if self.plan is not None:
            found["personal"] = {
                **self.plan.levels.describe(self.costs, self._delta),
                "shares": "counted with noise" if self.plan.counted else "declared",
            }
        return found

    def notes(self) -> tuple[str, ...]:
        """The same in words."""
        if self.ignored:
            return (self.ignored,)
        if self.levels is None:
            return ()
        if self.plan is None:
            return self.levels.notes(self.costs)
        return (
            "Every person pays at most the own epsilon, rounded down to a public level: the bounds "
            "are those of the people who pay most. People who state none are left out.",
            *self.levels.notes(self.costs),
        )

    @property
    def _delta(self) -> Fraction | int:
        return self.promise.delta if isinstance(self.promise, Approximate) else 0

    def _at(self, epsilon: Fraction) -> Pure | Approximate:
        return budget(epsilon, self._delta)


def _people(table: Table, settings: NoiseSettings) -> _PersonalCosts:
    """Who can be read at this epsilon, by public levels and what was spent at them."""
    levels = levels_in_force(table.schema, settings.demands)
    ignored = ignored_words(table.schema) if settings.demands == "ignore" else ""
    if settings.epsilon != "personal":
        promise = budget(settings.epsilon, settings.delta)
        require_quiet(table.schema, promise.epsilon, settings.demands)
        costs: tuple[Fraction, ...] = ()
        if levels is not None:
            costs = levels.costs(promise.epsilon, settings.accountant)
            levels.require_somebody(costs)
        return _PersonalCosts(promise, levels, costs, None, ignored)
    if levels is None:
        raise SchemaError(NOBODY)
    plan = PersonalPlan.of(levels, require_share(settings.share), settings.accountant)
    levels.require_somebody(plan.costs)
    return _PersonalCosts(
        budget(max(plan.costs), settings.delta), levels, plan.costs, plan, ignored
    )


def _columns(table: Table) -> list[str]:
    """The columns that a synthetic table has: no identifiers, person or policy columns."""
    schema = table.schema
    hidden = set(schema.private)
    found = [name for name in table.column_names if name not in hidden]
    if not found:
        raise SchemaError("No column is left to synthesize: all are identifiers or policies.")
    return found


_WHOLE = ("blocks", "cells", "degree", "rounds")
_SHARES = ("first", "structure")
MOST_ROWS, MOST_ROUNDS = 10**9, 10**6


def _require_options(method: str, options: Mapping[str, Any]) -> None:
    """Refuse what the method does not take, before anything is spent; no seed is among it."""
    taken = inspect.signature(PRIVATE[method]).parameters
    own = sorted(set(taken) - {"views", "ordered", "zeros", "prior"})
    for name, value in options.items():
        if name not in own:
            held = f"only {', '.join(own)}" if own else "no options of its own"
            raise ParameterError("option", name, f"{held} with {method}")
        if value is None and taken[name].default is None:
            continue
        if name in _WHOLE:
            require_whole(name, value, 1)
            if name == "rounds" and value > MOST_ROUNDS:
                raise ParameterError(name, value, f"at most {MOST_ROUNDS:,}")
        elif isinstance(taken[name].default, str):
            if not isinstance(value, str):
                raise ParameterError(name, value, "a text")
        else:
            least, most = SHARES if name in _SHARES else (0, None)
            require_number(name, value, least, most, open_low=not least)
            if not isinstance(value, int | float | Fraction):  # decimals do not meet floats
                raise ParameterError(name, str(value), "a number as float or Fraction")
            exact_number(name, value)


class _FirstLook(Exception):  # noqa: N818 - no error: the rehearsal is over
    """A method would look at the rows now."""


@dataclass(frozen=True, slots=True)
class NoViews:
    """Views that show nothing: what a method refuses before its first look costs nothing."""

    sizes: Mapping[str, int]
    limit: Budget

    def recode(self, maps: Mapping[str, NDArray[np.int64]]) -> NoViews:
        """The same."""
        del maps
        return self

    def within(self, limit: Budget) -> NoViews:
        """The same."""
        del limit
        return self

    def count(self, *_: object) -> Any:
        """Stop."""
        raise _FirstLook

    heavy = worst = dependent = count


def _rehearse(plan: SynthesisPlan) -> None:
    """Let a method refuse its options and columns before anything is spent."""
    views = NoViews(
        plan.histories.wide if plan.histories else plan.sizes,
        unit(plan.people.promise) * (1 - plan.share),
    )
    with suppress(_FirstLook):
        plan.learn(views, ordered=plan.ordered, **plan.learn_options)


MOST_INVENTED = 100_000  # rows that noise alone makes of nobody


def _require_servable(
    promise: Pure | Approximate, settings: NoiseSettings, histories: Histories | None
) -> None:
    """Refuse an epsilon of which rows would be drawn without bound, whatever the table holds.

    By public numbers: how many rows there are is not one. To state ``rows`` helps no method that
    draws rows of its own on the way.

    Raises:
        ParameterError: epsilon is too small.
    """
    most = settings.rows_per_person if histories is None else histories.rows_changed
    if _invented(promise, most) > MOST_INVENTED:
        delta = promise.delta if isinstance(promise, Approximate) else 0
        tried = (budget(Fraction(1, 10**k), delta) for k in range(6, -1, -1))
        enough = next((one for one in tried if _invented(one, most) <= MOST_INVENTED), None)
        such = f", such as {float(enough.epsilon):g}" if enough else ""
        allowed = f"more{such}: noise alone would be more than {MOST_INVENTED:,} rows"
        raise ParameterError("epsilon", float(promise.epsilon), allowed)


def _invented(promise: Pure | Approximate, most: int) -> float:
    """How many rows noise alone makes, about, where one person changes ``most``."""
    try:
        return sqrt(noise(unit(promise), most).variance)
    except ParameterError:  # more than a number holds
        return inf


def _method(method: str, settings: NoiseSettings, sizes: Mapping[str, int]) -> str:
    if method == "auto":
        alone = settings.together is None and settings.prior is None
        return "histogram" if alone and prod(sizes.values()) <= FEW_CELLS else "marginals"
    if method not in PRIVATE:
        raise ParameterError("method", method, f"auto, {', '.join(sorted(PRIVATE))}")
    return method


# All methods share one interface, ``learn(views, *, ordered, ...)``: a model of noisy views, which
# has ``rows`` and ``draw(rows, random)``. A new one is one line here.
PRIVATE: dict[str, Callable[..., Any]] = {
    "adaptive": adaptive.learn,
    "dp-cocluster": dp_cocluster.learn,
    "dpcocgen": dp_cocluster.learn_as_printed,
    "histogram": histogram.learn,
    "marginals": marginals.learn,
    "privbayes": privbayes.learn,
}
