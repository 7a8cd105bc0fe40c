"""``hm.suggest``: which guarantees keep most people, given what these people demand.

Too low a promise and nobody takes part; too high a one and groups fall below it. Given a query and
its generalizations, this tries chains of guarantees on the counted groups (rows are read once) and
proposes the one that keeps most people, then the finest levels. None promises less than was asked.

It looks at everybody, also at those whom no answer may show: it is for the controller alone, who
sees the rows anyway, and nothing that askers reach calls it. Shares are rounded to five percent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.engines.request import Key, kind_of, quote
from halfmask.errors import QueryError
from halfmask.query import semantics
from halfmask.query.groups import DROPPED, groups_of
from halfmask.query.run import Session
from halfmask.query.semantics import publish_groups
from halfmask.table.document import Result, document_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.query.groups import Groups
    from halfmask.query.planning.guarantee import GuaranteePlan

GuaranteeNumbers = tuple[tuple[int, int], ...]
MOST_VALUES, MOST_ROUNDS, LARGEST_L = 12, 4, 12
FOR_WHOM = (
    "Estimated from everybody's rows and demands: for the controller alone, not for whoever asks."
)


@dataclass(frozen=True, slots=True)
class GuaranteeEstimate(Result):
    """What one chain of guarantees would keep.

    Attributes:
        guarantees: per level, (k, l).
        contributing: the share of people who would take part at all.
        people: the share of people who would be published.
        groups: the share of published rows at the finest level's grouping.
    """

    guarantees: GuaranteeNumbers = field(metadata=document_field(parts=("k", "l")))
    contributing: float
    people: float
    groups: float


@dataclass(frozen=True, slots=True)
class Suggestion(Result):
    """The query's own chain, some that promise more, and the one that keeps most.

    Attributes:
        asked: what the query's own guarantees would keep.
        tried: some other chains, best first.
        proposed: the best found.
        clause: it, as it would stand in the query.
    """

    asked: GuaranteeEstimate
    tried: tuple[GuaranteeEstimate, ...]
    proposed: GuaranteeEstimate
    clause: str
    note: str = field(default=FOR_WHOM, init=False)


def suggest(
    table: object,
    sql: str,
    policies: object = None,
    engine: Any = None,
    *,
    schema: object = None,
    floor: int | None = None,
    tables: Sequence[str] | None = None,
) -> Suggestion:
    """Estimate chains of guarantees for a query and propose one; takes what ``hm.query`` takes.

    It looks at everybody: for the controller alone. No chain promises less than the query asks.

    Raises:
        QueryError: the query cannot be answered; says where and why.
    """
    with Session(table, engine=engine, schema=schema, floor=floor, tables=tables) as session:
        plan = session.prepare(sql, policies).plan
        return _GuaranteeSearch(plan, session).run()


class _GuaranteeSearch:
    def __init__(self, plan: GuaranteePlan, session: Session) -> None:
        self.plan = plan
        self.groups, self.k, self.l = _count_groups(plan, session)
        if not int(self.groups.people.sum()):
            raise QueryError("no row satisfies the conditions of the query.")
        self.scored: dict[GuaranteeNumbers, tuple[int, int, int, int]] = {}

    def run(self) -> Suggestion:
        asked: GuaranteeNumbers = self.plan.request.guarantees
        self.score(asked)
        ks, ls = _values(self.k, asked, 0), _values(self.l, asked, 1)
        ls = [x for x in ls if x <= max(LARGEST_L, asked[-1][1])]
        if not any(r.what == "diversity" for r in self.plan.requirements):
            ls = [asked[0][1]]
        starts = [asked, *(_raise_chain(asked, k, l) for k in ks for l in {ls[0], ls[-1]})]
        for start in sorted(starts, key=self.score, reverse=True)[:3]:
            self._climb(start, ks, ls)
        ranked = sorted(self.scored, key=self.score, reverse=True)
        return Suggestion(
            self.estimate(asked),
            tuple(self.estimate(c) for c in ranked[1:6]),
            self.estimate(ranked[0]),
            _clause(self.plan, ranked[0]),
        )

    def _climb(self, chain: GuaranteeNumbers, ks: list[int], ls: list[int]) -> None:
        """Change one number of one level at a time while that helps."""
        best, asked = chain, self.plan.request.guarantees
        for _ in range(MOST_ROUNDS):
            before = best
            for level in range(len(best)):
                k_least, l_least = asked[level]
                options = [(k, best[level][1]) for k in ks if k >= k_least]
                options += [(best[level][0], l) for l in ls if l >= l_least]
                for option in options:
                    trial = (*best[:level], option, *best[level + 1 :])
                    if _rises(trial) and self.score(trial) > self.score(best):
                        best = trial
            if best == before:
                return

    def score(self, chain: GuaranteeNumbers) -> tuple[int, int, int, int]:
        """People published, depth, people contributing, rows; computed once per chain."""
        if chain not in self.scored:
            groups, inside = self._under(chain)
            choice = semantics.choose_selective(groups)
            rows = publish_groups(groups, choice)
            self.scored[chain] = (choice.people(groups), choice.depth(groups), inside, len(rows))
        return self.scored[chain]

    def estimate(self, chain: GuaranteeNumbers) -> GuaranteeEstimate:
        """Shares, rounded."""
        people, _, inside, rows = self.score(chain)
        total = int(self.groups.people.sum())
        every, first = self.groups.nodes(0, np.arange(len(self.groups)))
        return GuaranteeEstimate(
            chain,
            _round(inside / total),
            _round(people / total),
            _round(min(1.0, rows / max(1, len(first))) if len(every) else 0.0),
        )

    def _under(self, chain: GuaranteeNumbers) -> tuple[Groups, int]:
        """The groups as they would contribute under ``chain``."""
        level = np.full(len(self.groups), DROPPED, dtype=np.int64)
        for i in range(len(chain) - 1, -1, -1):
            level[(self.k <= chain[i][0]) & (self.l <= chain[i][1])] = i
        kept = np.flatnonzero(level >= 0)
        thresholds = np.array(
            [[r.threshold(k, l) for r in self.plan.requirements] for k, l in chain], dtype=np.int64
        )
        return _pick(self.groups, kept, level[kept], thresholds), int(
            self.groups.people[kept].sum()
        )


def _count_groups(
    plan: GuaranteePlan, session: Session
) -> tuple[Groups, NDArray[np.int64], NDArray[np.int64]]:
    """Groups by the finest keys and by demand, with everybody in them."""
    request = plan.request
    asked = request.guarantees
    keys, planned = list(request.keys), list(plan.keys)
    demands = request.demands
    extra: tuple[Key, ...] = ()
    if demands is not None:
        still = (0,) * len(asked)
        extra = tuple(Key(d, "integer", still) for d in demands)
        planned += [
            replace(planned[0], name=n, generalized=False, hierarchy=None)
            if planned
            else _plain_key(n)
            for n in ("k", "l")
        ]
    tests = tuple(replace(t, cap=max(t.cap, LARGEST_L, 64)) for t in request.tests)
    everybody = replace(
        plan,
        request=replace(request, keys=(*keys, *extra), demands=None, tests=tests),
        keys=tuple(planned),
    )
    groups = groups_of(everybody, session.engine.collect(everybody.request))
    n = len(groups)
    ones = np.ones(n, dtype=np.int64)
    if demands is None:
        return replace(groups, separate=False), ones, ones
    k, l = (_demand(groups.keys[len(keys) + i]) for i in range(2))
    if request.missing == 0:
        k, l = np.where(k < 0, 1, k), np.where(l < 0, 1, l)
    else:
        k = np.where((k < 0) | (l < 0), np.iinfo(np.int64).max, k)
    return replace(groups, keys=groups.keys[: len(keys)], separate=False), k, l


def _plain_key(name: str) -> Any:
    from halfmask.query.planning.plan import PlannedKey

    return PlannedKey(name, generalized=False)


def _demand(key: Any) -> NDArray[np.int64]:
    assert kind_of(key.values.type) != "text"  # noqa: S101 - demands are numbers
    values = [-1 if v is None else int(np.ceil(float(v))) for v in key.values.to_pylist()]
    found: NDArray[np.int64] = np.array(values, dtype=np.int64)[key.codes]
    return found


def _pick(
    groups: Groups,
    kept: NDArray[np.int64],
    level: NDArray[np.int64],
    thresholds: NDArray[np.int64],
) -> Groups:
    from halfmask.query.groups import Distinct

    counts: list[NDArray[np.int64] | Distinct] = []
    for count in groups.counts:
        if not isinstance(count, Distinct):
            counts.append(count[kept])
            continue
        lengths = (count.starts[1:] - count.starts[:-1])[kept]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        offsets = np.repeat(count.starts[kept] - starts[:-1], lengths)
        values = count.values[offsets + np.arange(lengths.sum())]
        counts.append(replace(count, counts=count.counts[kept], starts=starts, values=values))
    keys = tuple(replace(k, codes=k.codes[kept]) for k in groups.keys)
    return replace(
        groups,
        level=level,
        people=groups.people[kept],
        keys=keys,
        counts=tuple(counts),
        thresholds=thresholds,
    )


def _values(demands: NDArray[np.int64], asked: GuaranteeNumbers, at: int) -> list[int]:
    """The numbers worth promising: what is demanded, thinned out, and what was asked."""
    stated = np.unique(demands[(demands > 0) & (demands < 2**31)])
    if len(stated) > MOST_VALUES:
        stated = np.unique(np.quantile(stated, np.linspace(0, 1, MOST_VALUES), method="nearest"))
    return sorted({max(1, int(v)) for v in stated} | {g[at] for g in asked})


def _raise_chain(asked: GuaranteeNumbers, k: int, l: int) -> GuaranteeNumbers:
    """The asked chain with nothing below ``k`` and ``l``."""
    return tuple((max(k, k_asked), max(l, l_asked)) for k_asked, l_asked in asked)


def _rises(chain: GuaranteeNumbers) -> bool:
    return all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(chain))


def _round(share: float) -> float:
    return round(round(share * 20) / 20, 2)


def _clause(plan: GuaranteePlan, chain: GuaranteeNumbers) -> str:
    """The chain as it would stand in the query, names quoted."""
    parts = []
    for level, (k, l) in zip(plan.chain.levels, chain, strict=True):
        step = ""
        if level.step is not None:
            named = replace(level.step, column=quote(level.step.column))
            step = f"THEN {named} "
        parts.append(f"{step}GUARANTEE k = {k}, l = {l}")
    if plan.chain.diverse:
        parts[0] += f" OF ({', '.join(quote(name) for name in plan.chain.diverse)})"
    if plan.semantics != "selective":
        parts.append(f"SEMANTICS {plan.semantics}")
    return " ".join(parts)
