"""``hm.query(..., epsilon=...)``: SQL under differential privacy, exact where the rows are.

Everything is decided before the question is paid for: its plan, promise and views. The budget is
spent before anything is read. The engine adds up bounded contributions; the totals get noise;
select list, HAVING, ORDER BY and LIMIT see noisy figures only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.accountant import Accountant, unit, whose_rows
from halfmask.dp.budget import Approximate, Number, Pure, budget, require_modest
from halfmask.dp.domain import Bins, given_domains
from halfmask.dp.figures import Stratum, answer, require_confidence
from halfmask.dp.ledger import BudgetLedger
from halfmask.dp.views import INTERVALS, ExactCounts, GroupRule, View, views_of
from halfmask.errors import ParameterError, QueryError, UnsupportedQueryError
from halfmask.models.verdict import require_whole
from halfmask.query.parse import Statement, parse
from halfmask.query.planning.noise import NoisePlan, plan_noise
from halfmask.query.private.personal import Audience, audience
from halfmask.release.candidate import NoiseCandidate
from halfmask.release.seal import seal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.dp.budget import Budget
    from halfmask.dp.figures import NoisyAnswer
    from halfmask.engines.request import Engine
    from halfmask.query.planning.noise import NoiseKey
    from halfmask.query.run import Session
    from halfmask.release.release import PrivateRelease

    Ints = NDArray[np.int64]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NoisePreparation:
    """A question that is ready to be answered or explained; nothing is spent."""

    plan: NoisePlan
    audience: Audience
    rows_per_person: int
    confidence: float

    @property
    def promise(self) -> Pure | Approximate:
        """What it costs those who pay most."""
        return self.audience.promise

    @property
    def groups(self) -> GroupRule:
        """How groups are found."""
        return "public" if self.plan.public else "threshold"

    def views(self) -> tuple[View, ...]:
        """The noisy views that will be read; of levels that are read apart, those of all."""
        limits = [unit(self.promise) if self.plan.public else self.promise]
        if self.audience.apart:
            limits = [self.audience.limit(code) for code in self.audience.read]
        return tuple(
            view
            for limit in limits
            for view in views_of(
                self.plan.questions,
                self.plan.labels,
                limit,
                self.rows_per_person,
                groups=self.groups,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTerms:
    """What a call states beside the query; the clause behind the query may state some of it.

    Attributes:
        epsilon: what it may cost, where the clause does not say; people who state less, or have
            less left, are left out. ``"personal"``: everybody's own, which the schema's policy
            names.
        delta: the chance that nothing is promised, where the clause does not say.
        domains: public values or bounds by column, besides those of the schema; a path is TOML.
        rows_per_person: how many rows of one person count; 1 where nobody says.
        confidence: of each interval; 0.95 where nobody says.
        share: with personal epsilons, the share of everybody's own to spend.
        demands: ``"ignore"`` sets people's own epsilons aside, by the controller.
        insist: whether an epsilon above 20 or a delta above 0.0001 is meant.
        policies: more demands of people, which may be keyed by person.
    """

    epsilon: Number | Literal["personal"] | None = None
    delta: Number | None = None
    domains: Mapping[str, object] | str | PathLike[str] | None = None
    rows_per_person: int | None = None
    confidence: float | None = None
    share: Number | None = None
    demands: str = "keep"
    insist: bool = False
    policies: object = None


def prepare_noise(
    session: Session, sql: str | Statement, terms: NoiseTerms, accountant: Accountant | None = None
) -> NoisePreparation:
    """Decide everything that can be decided before the budget is spent."""
    epsilon, delta = terms.epsilon, terms.delta
    statement = sql if isinstance(sql, Statement) else parse(sql, noisy=True)
    asked = statement.cost
    most = _setting("rows_per_person", statement.rows_per_person, terms.rows_per_person, 1)
    require_whole("rows_per_person", most, 1)
    sure = _setting("confidence", asked.confidence, terms.confidence, 0.95)
    require_confidence(sure)
    plan = plan_noise(
        statement,
        session.catalog,
        session.engine,
        domains=given_domains(terms.domains),
        rows_per_person=most,
        policies=terms.policies,
    )
    own = epsilon == "personal" or (asked.personal and epsilon is None)
    part = _setting("share", asked.share, terms.share, None)
    if part is not None and not own:
        raise ParameterError("share", str(part), "it with PERSONAL EPSILON only")
    promise = None
    if own:
        chance = asked.delta if delta is None else delta
    else:
        chance = 0
        promise = _promise(statement, epsilon, delta)
        require_modest(promise, insist=terms.insist)
        _require_groups(plan, promise)
    whose = audience(
        plan,
        promise,
        delta=chance,
        share=1 if part is None else part,
        demands=terms.demands,
        accountant=accountant,
    )
    require_modest(whose.promise, insist=terms.insist)
    return NoisePreparation(plan, whose, most, sure)


def _promise(
    statement: Statement, epsilon: Number | None, delta: Number | None
) -> Pure | Approximate:
    """The budget, stated once: in the clause or in the call."""
    asked = statement.cost
    if (asked.epsilon or asked.personal) and (epsilon is not None or delta is not None):
        raise QueryError(
            "the budget is stated twice, here and in the call: keep one.",
            text=statement.text,
            start=asked.start,
            length=12,
        )
    if asked.epsilon:
        return budget(asked.epsilon, asked.delta)
    if epsilon is None:
        raise QueryError(
            "the query states no budget: add WITH EPSILON 1.0 behind it.",
            text=statement.text,
            start=asked.start,
        )
    return budget(epsilon, 0 if delta is None else delta)


def _setting(name: str, written: T | None, given: T | None, default: T) -> T:
    if written is not None and given is not None and written != given:
        raise ParameterError(name, given, "it in the query or in the call, not both")
    return written if written is not None else given if given is not None else default


def _require_groups(plan: NoisePlan, promise: Budget) -> None:
    """Groups that nobody declared need a delta."""
    if plan.public or (isinstance(promise, Approximate) and promise.delta):
        return
    statement = plan.statement
    unknown = next(key.name for key in plan.keys if key.domain is None)
    at = statement.text.lower().rfind(unknown.lower(), 0, statement.cost.start)
    raise UnsupportedQueryError(
        f"the groups of {unknown} are not public: declare domain = [...] for it in the schema (or "
        "domains=...), or add DELTA 1e-6, and only groups far above one person are shown.",
        text=statement.text,
        start=max(at, 0),
        length=len(unknown),
    )


def answer_with_noise(
    session: Session, sql: str | Statement, terms: NoiseTerms, ledger: object = None
) -> PrivateRelease:
    """Answer SQL with noise, for a budget that is spent first.

    Args:
        session: the table and its engine.
        sql: one SELECT, with or without the clause ``WITH EPSILON ...``.
        terms: what the call states beside it.
        ledger: a ``BudgetLedger`` or an ``Accountant`` that keeps the budget of this table.

    Raises:
        QueryError: noise cannot answer this; says where and what to do.
        BudgetExceededError: less than this is left; nothing was read.
    """
    keeper = _keeper(ledger)
    ready = prepare_noise(session, sql, terms, keeper)
    text = ready.plan.statement.text
    if ready.plan.statement.explain:
        raise QueryError(
            "EXPLAIN asks for the plan only: use --explain or hm.explain.", text=text, start=0
        )
    plan, whose, most = ready.plan, ready.audience, ready.rows_per_person
    ready.views()  # what noise cannot serve is refused before it is paid
    keeper = keeper or Accountant(ready.promise)
    source = plan.scope.tables[plan.scope.main]
    allowance = keeper.allow(
        ready.promise,
        "query",
        rows_per_person=most,
        as_promised=not plan.public,
        scope=whose.spender(source, plan.parts.get(keeper.partition)),
    )
    found = collect_totals(plan, session.engine, whose)
    told = answer(
        plan.questions,
        _strata(whose, found),
        allowance,
        groups=ready.groups,
        confidence=ready.confidence,
        mixture=whose.mixture,
    )
    rows = _rows(plan, found, told)
    candidate = NoiseCandidate(
        rows,
        allowance.receipt(),
        plan.sizes,
        "query",
        {
            **whose.parameters(),
            "sql": text,
            "engine": session.engine.name,
            "groups": ready.groups,
            "confidence": ready.confidence,
            "rows_per_person": most,
        },
        (*whose.notes(), *whose_rows(source.schema, most), *_notes(plan, ledger)),
        schema=source.schema,
    )
    return seal(candidate)


def _strata(whose: Audience, found: ExactGroups) -> ExactCounts | list[Stratum]:
    """The exact figures, each level with its weight where levels are read apart."""
    if not whose.apart or whose.levels is None:
        return found.exact[0]
    return [
        Stratum(whose.levels.epsilons[code], exact, weight)
        for code, exact, weight in zip(whose.read, found.exact, whose.weights, strict=True)
    ]


def _keeper(ledger: object) -> Accountant | None:
    if ledger is None:
        return None
    if isinstance(ledger, BudgetLedger):
        return Accountant.of(ledger)
    if isinstance(ledger, Accountant):
        return ledger
    raise ParameterError(
        "ledger", type(ledger).__name__, "a BudgetLedger or an Accountant under EPSILON"
    )


def _rows(plan: NoisePlan, found: ExactGroups, told: NoisyAnswer) -> pa.Table:
    """The asker's columns, each bare aggregate with its interval behind it."""
    from halfmask.engines.duckdb.engine import finish

    shown = np.flatnonzero(told.published)
    columns = {f"k{i}": values.take(pa.array(shown)) for i, values in enumerate(found.keys)}
    whole = [question.kind == "count" for question in plan.questions]
    for i, one in enumerate(told.figures):
        columns[f"a{i}"] = _numbers(one.values[shown], whole=whole[i])
    columns["level"] = pa.array(np.zeros(len(shown), np.int64))
    columns["hm_row"] = columns["hm_order"] = pa.array(np.arange(len(shown)))
    asked = finish(pa.table(columns), plan.final)
    order = shown[asked["hm_row"].to_numpy()]
    out: dict[str, pa.Array] = {}
    taken = {name.lower() for name in plan.names}
    for place, (name, bare) in enumerate(zip(plan.names, plan.bare, strict=True)):
        out[name] = asked.column(place).combine_chunks()
        if bare is None:
            continue
        figure = told.figures[bare]
        for end, values in (("low", figure.low), ("high", figure.high)):
            label = f"{name}_{end}"
            while label.lower() in taken:
                label += "_"
            taken.add(label.lower())
            out[label] = _numbers(values[order], whole=whole[bare])
    return pa.table(out)


def _numbers(values: NDArray[np.float64], *, whole: bool) -> pa.Array:
    return pa.array(np.rint(values).astype(np.int64) if whole else values)


def _notes(plan: NoisePlan, ledger: object) -> tuple[str, ...]:
    notes = [
        *plan.notes,
        "Noise is in every figure, also in those of empty groups: small counts may fall below 0.",
    ]
    if not plan.public:
        notes.append("Groups are not public: those near or below the threshold are not shown.")
    if ledger is None:
        notes.append("No ledger was given: other releases of this table add to its epsilon.")
    return tuple(notes)


@dataclass(frozen=True, eq=False)
class ExactGroups:
    """The groups of a question: their keys as the answer shows them, and exact figures.

    Attributes:
        keys: per grouping column, the value of each group.
        exact: figures that get noise before anything leaves; one for each level that is read apart.
    """

    keys: tuple[pa.Array, ...]
    exact: tuple[ExactCounts, ...]

    def __repr__(self) -> str:
        return f"Grouped({len(self.exact[0].counts)} groups)"


def collect_totals(plan: NoisePlan, engine: Engine, whose: Audience | None = None) -> ExactGroups:
    """Ask the engine for the totals of the people who are read, and put them at their groups."""
    source, alias = plan.scope.tables[plan.scope.main], plan.scope.main
    bounded = plan.tally if whose is None else whose.tally(plan.tally, source, alias)
    totals = engine.tally(bounded)
    trees = {
        label: engine.tally(replace(bounded, keys=(*bounded.keys, place), parts=()))
        for label, place in plan.trees.items()
    }
    _, keys = _cells(plan.keys, totals)
    size = len(keys[0]) if keys else 1
    found = []
    for level in bounded.kept if bounded.apart else (None,):
        some = _of_level(totals, level)
        histograms = {
            label: _histogram(plan.keys, keys, _of_level(tree, level), size)
            for label, tree in trees.items()
        }
        exact = _sum_totals(plan.labels, _cells(plan.keys, some)[0], some, size)
        found.append(replace(exact, histograms=histograms))
    return ExactGroups(tuple(keys), tuple(found))


def _of_level(totals: pa.Table, level: int | None) -> pa.Table:
    return totals if level is None else totals.filter(pc.equal(totals["level"], level))


def _sum_totals(labels: Sequence[str], cells: Ints, totals: pa.Table, size: int) -> ExactCounts:
    def vector(name: str) -> Ints:
        found = np.zeros(size, np.int64)
        if totals.num_rows:
            np.add.at(found, cells, totals[name].cast(pa.int64()).to_numpy())
        return found

    have = set(totals.column_names)
    sums, squares, present = (
        {label: vector(f"{kind}{i}") for i, label in enumerate(labels) if f"{kind}{i}" in have}
        for kind in "sqn"
    )
    return ExactCounts(vector("rows"), sums, squares, present)


def _histogram(
    keys: Sequence[NoiseKey], shown: Sequence[pa.Array], totals: pa.Table, size: int
) -> Ints:
    """Rows per group and interval; values that are missing are in none."""
    places = totals[f"g{len(keys)}"].combine_chunks()
    some = totals.filter(places.is_valid())
    found = np.zeros((size, INTERVALS), np.int64)
    if some.num_rows:
        at = np.clip(some[f"g{len(keys)}"].cast(pa.int64()).to_numpy(), 0, INTERVALS - 1)
        cells = _find_places(keys, shown, some)
        rows = some["rows"].cast(pa.int64()).to_numpy()
        # Rows of a person are drawn anew: a group may come up that has no count and stays hidden.
        there = cells >= 0
        np.add.at(found, (cells[there], at[there]), rows[there])
    return found


def _cells(keys: Sequence[NoiseKey], totals: pa.Table) -> tuple[Ints, list[pa.Array]]:
    """The group of each total, and what the groups are called."""
    codes, sizes, values = [], [], []
    for i, key in enumerate(keys):
        code, names = _code_keys(key, totals[f"g{i}"])
        codes.append(code)
        sizes.append(len(names))
        values.append(names)
    public = all(key.domain is not None for key in keys)
    flat = np.zeros(totals.num_rows, np.int64)
    for code, count in zip(codes, sizes, strict=True):
        flat = flat * count + code
    if public:
        every = np.arange(prod(sizes))
        cells = flat
    else:
        every, cells = np.unique(flat, return_inverse=True)
    shown = []
    for i in reversed(range(len(keys))):
        every, code = np.divmod(every, sizes[i])
        shown.append(values[i].take(pa.array(code)))
    return cells.astype(np.int64), shown[::-1]


def _find_places(keys: Sequence[NoiseKey], shown: Sequence[pa.Array], totals: pa.Table) -> Ints:
    """The groups of totals among groups that were found before, by their names; -1 for others."""
    place = {group: i for i, group in enumerate(zip(*(v.to_pylist() for v in shown), strict=True))}
    named = []
    for i, key in enumerate(keys):
        code, names = _code_keys(key, totals[f"g{i}"])
        named.append(names.take(pa.array(code)).to_pylist())
    if not keys:
        return np.zeros(totals.num_rows, np.int64)
    return np.array([place.get(group, -1) for group in zip(*named, strict=True)], np.int64)


def _code_keys(key: NoiseKey, column: pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Per total the code of its key, and per code the value that the answer shows."""
    whole = column.combine_chunks()
    if pa.types.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    if isinstance(key.domain, Bins):
        return whole.cast(pa.int64()).to_numpy(), pa.array(key.domain.labels, pa.string())
    if key.domain is not None:
        names = key.domain.decode(np.arange(len(key.domain)), np.random.default_rng(0), key.kind)
        return key.domain.encode(whole).astype(np.int64), names
    # In the order of the values: the engine's own order would tell about groups that stay hidden.
    names = pc.unique(whole)
    names = names.take(pc.array_sort_indices(names))
    return pc.index_in(whole, value_set=names).to_numpy().astype(np.int64), names
