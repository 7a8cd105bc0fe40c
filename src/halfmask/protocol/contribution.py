"""What one cell contributes: one record at the finest level its person accepts, or a dummy.

Definition: the first level i of the chain with k_i >= k and l_i >= l for the person's demands on
the queried columns, at which all rows that meet WHERE stand in one group; no such row or level, no
policy or an objection: a dummy. Several rows leave as one record, in which the person counts once.
Source: Michel 2019, Algorithm 3 (as printed it does not stop after making a dummy).

Where the query adds noise at collection, the group is told by randomized response with the
person's own epsilon, and the record carries the weight that makes the estimate unbiased. Where it
adds noise at filtering, whose own epsilon is less than that noise contributes by chance only.
Where rows are released, the record is the row itself and the person's demands.

What the cell answered before, and why that forbids another answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.dp.mechanisms import RandomizedResponse
from halfmask.dp.personal import STEP, draw_sample
from halfmask.dp.sampling import Sampler
from halfmask.engines.expressions import evaluate_row, joined_rows
from halfmask.engines.reference import generalize
from halfmask.errors import EngineError, ParameterError
from halfmask.protocol.records.layout import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.protocol.cell_plan import CellPlan
    from halfmask.protocol.common_schema import Policy
    from halfmask.protocol.records.layout import RecordLayout, Records


CONTRIBUTED = "contributed"
DAY = 86_400
PEOPLE = "*"  # among what is aggregated, where people are counted
MOST_GROUPS = 1 << 20  # groups that noise can hide one among
# With more, a report is the truth but for once in a hundred million times.
MOST = 20


def categories(layout: RecordLayout) -> int:
    """In how many groups a person can stand; a missing value is a value of its own."""
    return math.prod(1 + len(key.domain) for key in layout.keys if key.domain is not None)


def response(epsilon: float, count: int) -> RandomizedResponse:
    """How somebody with ``epsilon`` tells one of ``count`` groups."""
    if not (math.isfinite(epsilon) and 0 < epsilon <= MOST):
        raise ParameterError("epsilon", epsilon, f"above 0, at most {MOST}")
    return RandomizedResponse(Fraction(epsilon), count)


def randomize_group(
    own: Sequence[object], layout: RecordLayout, mechanism: RandomizedResponse
) -> list[object]:
    """The group that is reported for somebody who stands in ``own``."""
    domains: list[list[object]] = [
        [None, *key.domain.to_pylist()] for key in layout.keys if key.domain is not None
    ]
    index = 0
    for value, domain in zip(own, domains, strict=True):
        index = index * len(domain) + domain.index(value)
    index = int(mechanism.tell(np.array([index]), Sampler())[0])
    found: list[object] = []
    for domain in reversed(domains):
        index, code = divmod(index, len(domain))
        found.insert(0, domain[code])
    return found


def debias(layout: RecordLayout, records: Records) -> Records:
    """Groups with their estimated numbers of people in place of the reported ones."""
    count = categories(layout)
    weights = records["w"]
    shift = (weights.sum() - records["rows"].sum()) / count
    estimate = np.rint(weights - shift).astype(np.int64)
    found: Records = records[estimate > 0].copy()
    found["rows"] = layout.people(found)[:] = estimate[estimate > 0]
    return found


def round_epsilon(asked: float) -> Fraction:
    """The epsilon of noise at filtering, of which samples are drawn exactly: rounded down."""
    return Fraction(asked) // STEP * STEP


def cost_of_count(own: float, threshold: Fraction) -> float:
    """What somebody pays who is counted under noise of ``threshold``: at most the own epsilon."""
    whole = float(threshold)
    whole = whole if Fraction(whole) >= threshold else math.nextafter(whole, math.inf)
    return min(own, whole)


# What a value can raise where it cannot be computed with, or does not fit its field.
_UNFIT = (
    pa.ArrowException,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
_CASTS = ("INT", "BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "TEXT", "VARCHAR")


@dataclass(frozen=True, slots=True)
class Contribution:
    """A record to send, and what the person may read about it."""

    record: bytes
    level: int | None
    reason: str
    epsilon: float = 0.0


def contribution(
    made: CellPlan,
    tables: Mapping[str, pa.Table],
    policy: Policy | None,
    objection: str | None = None,
) -> Contribution:
    """Decide what a cell contributes; real and dummy take the same way and the same length.

    Nothing that a row holds makes it fail: what cannot be evaluated or sent makes a dummy.
    """
    demand = policy.demand(made.touched) if policy is not None else None
    if made.shown is not None and demand is not None and not made.diverse:
        demand = (demand[0], 1)  # an l speaks of sensitive columns, and none is shown
    level = _level(made, demand)
    if policy is not None and policy.owes(made.uncounted, sensitive=made.sensitive):
        level = -1
    rows, fits = _evaluate(made, tables)
    reason = objection or _obstacle(made, rows, policy, demand, level)
    # A dummy takes the same way, so that it takes the same time.
    nobody = [dict.fromkeys(_expressions(made))]
    start = demand or (0, 0), max(level, 0)
    try:
        found = _finest_place(made, rows or nobody, *start)
    except _UNFIT:
        found, fits = _finest_place(made, nobody, *start), False
    if not fits:
        reason = reason or "the rows do not suit the query"
    if reason is not None or found is None:
        reason = reason or "the rows fall into several groups"
        return Contribution(made.layout.empty(1).tobytes(), None, reason)
    level, record = found
    epsilon = 0.0
    if _is_empty(made, record):
        reason = "a value is too long or outside the common values"
        return Contribution(record.tobytes(), None, reason)
    if made.layout.noisy and policy is not None and policy.epsilon is not None:
        epsilon = policy.epsilon
        mechanism = response(epsilon, categories(made.layout))
        noisy = _with_noise(made, _table(made, rows, demand or (0, 0), level), mechanism)
        record = made.layout.encode(noisy)
        record["w"] = mechanism.weight
    if made.terms.epsilon and policy is not None and policy.epsilon is not None:
        threshold = round_epsilon(made.terms.epsilon)
        epsilon = cost_of_count(policy.epsilon, threshold)
        # Who allows less than the noise costs is counted by chance, so seldom that it costs no more
        # than allowed.
        steps = np.array([int(Fraction(policy.epsilon) / STEP)], np.int64)
        if not draw_sample(steps, threshold, Sampler())[0]:
            return Contribution(made.layout.empty(1).tobytes(), None, "left out by chance", epsilon)
    return Contribution(record.tobytes(), level, CONTRIBUTED, epsilon)


def _obstacle(
    made: CellPlan,
    rows: list[dict[str, Any]],
    policy: Policy | None,
    demand: tuple[int, int] | None,
    level: int,
) -> str | None:
    """Why the person does not contribute; None where nothing stands against it."""
    most = made.plan.statement.rows_per_person
    if policy is None or demand is None:
        return "no policy"
    if level < 0:
        return "no level satisfies the policy"
    if not rows:
        return "the condition is not met"
    noise = made.layout.noisy or made.terms.epsilon > 0
    # Noise is made for one person's change of one count.
    if len(rows) > 1 and noise:
        return "several rows match, and noise hides one"
    if len(rows) > 1 and made.shown is not None:
        return "several rows match, and a release shows one of a person"
    if most is not None and len(rows) > most:
        return "more rows match than the query allows"
    return "no epsilon" if noise and policy.epsilon is None else None


def _finest_place(
    made: CellPlan, rows: list[dict[str, Any]], demand: tuple[int, int], level: int
) -> tuple[int, Records] | None:
    """The finest level from ``level`` on at which all rows stand in one group, and their record.

    A value that does not fit makes an empty record.
    """
    layout = made.layout
    for at in range(level, len(made.plan.chain.levels)):
        found = layout.encode(_table(made, rows, demand, at))
        if (layout.tags(found) == EMPTY).any():
            return at, layout.empty(1)
        if len(found) > 1:
            found = layout.of_one_person(found)
        if len(found) == 1:
            return at, found
    return None


def _with_noise(made: CellPlan, row: pa.Table, mechanism: RandomizedResponse) -> pa.Table:
    names = [f"g{i}" for i in range(len(made.layout.keys))]
    reported = randomize_group([row[name][0].as_py() for name in names], made.layout, mechanism)
    for name, value, key in zip(names, reported, made.layout.keys, strict=True):
        at = row.column_names.index(name)
        row = row.set_column(at, name, pa.array([value], key.type))
    return row


def _is_empty(made: CellPlan, record: Records) -> bool:
    return bool(made.layout.tags(record)[0] == EMPTY)


def _level(made: CellPlan, demand: tuple[int, int] | None) -> int:
    if demand is None:
        return -1
    if made.shown is not None:
        return 0  # the demand travels with the row, and its class keeps it
    levels = made.plan.chain.guarantees
    return next((i for i, g in enumerate(levels) if g.covers(*demand)), -1)


def _expressions(made: CellPlan) -> dict[str, Any]:
    request = made.plan.request
    found = {f"r{i}": key.expression for i, key in enumerate(request.keys)}
    found |= {f"v{j}": test.expression for j, test in enumerate(request.tests)}
    found |= made.measured
    return found | {f"a{i}": state.expression for i, state in enumerate(request.states)}


def _evaluate(made: CellPlan, tables: Mapping[str, pa.Table]) -> tuple[list[dict[str, Any]], bool]:
    """The values of the rows that meet WHERE, and whether every expression had one.

    Which engine evaluates is decided by the question alone: by how long it takes, nobody sees
    which branch of a CASE a row took.
    """
    wanted = _expressions(made)
    source = made.plan.request.source
    try:
        if not _is_simple(made):
            return _in_duckdb(made, tables, wanted), True
        rows = joined_rows(tables, source)
    except (EngineError, *_UNFIT):
        return [], False
    fits = True
    found = []
    for row in rows:
        values = {}
        for name, expression in wanted.items():
            try:
                values[name] = evaluate_row(expression, row)
            except (EngineError, *_UNFIT):
                values[name], fits = None, False
        found.append(values)
    return found, fits


@lru_cache(maxsize=32)
def _is_simple(made: CellPlan) -> bool:
    """Whether every part of every expression can be evaluated here, reached by a row or not."""
    from sqlglot import exp

    source = made.plan.request.source
    conditions = [join.args.get("on") for join in source.args.get("joins") or []]
    where = source.args.get("where")
    whole = [*_expressions(made).values(), *conditions, where.this if where else None]
    nothing = {(a, c): None for a, s in made.plan.scope.tables.items() for c in s.columns}
    for node in (node for part in whole if part is not None for node in part.walk()):
        if isinstance(node, exp.Cast) and node.args["to"].this.name not in _CASTS:
            return False
        if isinstance(node, exp.Identifier | exp.DataType):
            continue
        try:
            evaluate_row(node, nothing)
        except (EngineError, *_UNFIT):
            return False
    return True


def _in_duckdb(
    made: CellPlan, tables: Mapping[str, pa.Table], wanted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    from sqlglot import exp

    from halfmask.engines.duckdb.engine import DuckDB

    query = made.plan.request.source.copy()
    for name, expression in (wanted or {"one": exp.Literal.number(1)}).items():
        query = query.select(exp.alias_(expression.copy(), name, quoted=True), copy=False)
    engine = DuckDB(tables)
    try:
        rows: list[dict[str, Any]] = engine.run(query).to_pylist()
    finally:
        engine.close()
    return rows


def _table(
    made: CellPlan, rows: list[dict[str, Any]], demand: tuple[int, int], level: int
) -> pa.Table:
    """The rows as the layout encodes them."""
    request, layout = made.plan.request, made.layout
    n = len(rows)
    columns = {
        "level": pa.array([level] * n, pa.int64()),
        "k": pa.array([demand[0]] * n, pa.int64()),
        "l": pa.array([demand[1]] * n, pa.int64()),
    }
    # A release has the demands in the key too: rows that differ in them stay apart.
    for i, (key, packed) in enumerate(zip(request.keys, layout.keys, strict=False)):
        columns[f"g{i}"] = _array([generalize(key, level, r[f"r{i}"]) for r in rows], packed.type)
    for i in range(len(request.keys), len(layout.keys)):
        columns[f"g{i}"] = columns["kl"[i - len(request.keys)]]
    for j in range(len(layout.caps)):
        columns[f"v{j}"] = pa.array([r[f"v{j}"] for r in rows])
    for i, state in enumerate(layout.states):
        columns[f"a{i}"] = _array([r[f"a{i}"] for r in rows], state.type)
    for i, values in enumerate(layout.histograms):
        columns[f"h{i}"] = _array([r[f"h{i}"] for r in rows], values.type)
    return pa.table(columns)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(values).cast(kind)


@dataclass(frozen=True, slots=True)
class Participation:
    """What the person can read about one query.

    Attributes:
        query: its name.
        asker: who asked.
        text: the question.
        time: when this cell took part.
        aggregated: the columns whose values could enter the answer.
        outcome: contributed, or why not.
        level: the level of the contribution.
        revoked: the person took it back; nothing more is sent but dummies.
        epsilon: what a contribution with noise cost.
        record: what was sent, so that a second try sends the same.
    """

    query: bytes
    asker: str
    text: str
    time: int
    aggregated: frozenset[str]
    outcome: str
    level: int | None = None
    revoked: bool = False
    epsilon: float = 0.0
    record: bytes = field(default=b"", repr=False)


def object_to_repetition(
    log: list[Participation], policy: Policy | None, aggregated: frozenset[str], now: float
) -> str | None:
    """Why an earlier answer forbids this one: somebody could subtract the two.

    Two answers can be subtracted where they aggregate the same values. So a person's value enters
    at most ``answers`` answers within ``days``, however the question is worded and whoever asks.
    """
    if policy is None:
        return None
    earlier = [
        entry
        for entry in log
        if entry.outcome == CONTRIBUTED
        and entry.aggregated & aggregated
        and now - entry.time < policy.days * DAY
    ]
    return "answered before" if len(earlier) >= policy.answers else None


def object_to_cost(
    log: list[Participation], policy: Policy | None, now: float, asked: float = 0.0
) -> str | None:
    """Why a person's budget of epsilon forbids another answer with noise.

    Args:
        log: what was answered before.
        policy: what the person demands.
        now: the time.
        asked: the epsilon of noise at filtering; 0: the person reports by chance.
    """
    if policy is None or policy.epsilon is None:
        return None
    since = now - policy.days * DAY
    spent = [entry.epsilon for entry in log if entry.time > since]
    # Added up as exact fractions: rounding must not make room for one more.
    cost = cost_of_count(policy.epsilon, round_epsilon(asked)) if asked else policy.epsilon
    total = sum(map(Fraction, spent), Fraction(cost))
    return "the budget is spent" if total > Fraction(policy.budget) else None
