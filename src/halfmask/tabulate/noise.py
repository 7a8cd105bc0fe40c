"""Counts under differential privacy: noisy views, and one table in which all margins agree.

Definition: the finest cells, each single column and the number of rows are counted with noise that
shares the budget; the table whose sums are nearest to all of them (weighted least squares) is
rounded in its finest cells, and every margin is the sum of these.
Source: Hay and others, "Boosting the accuracy of differentially private histograms through
consistency", 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.dp.accountant import Accountant, SpendingScope, unit, whose_rows
from halfmask.dp.budget import Approximate, Concentrated, Pure, budget, require_modest
from halfmask.dp.continual import ContinualCount, CountSeries
from halfmask.dp.domain import (
    Bins,
    Values,
    declared_domains,
    given_domains,
    public_domains,
    require_fitting,
)
from halfmask.dp.ledger import table_identity
from halfmask.dp.personal import levels_in_force, require_quiet
from halfmask.dp.views import guarded_rows, noise
from halfmask.errors import InputError, ParameterError, PrivacyError, SchemaError
from halfmask.release.candidate import NoiseCandidate
from halfmask.release.demands import SET_ASIDE
from halfmask.release.seal import seal
from halfmask.release.tabulation.cells import MISSING, TOTAL, Axis, CellGrid
from halfmask.table.demands import ignored_words
from halfmask.table.hierarchy import canonical
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance
    from halfmask.dp.domain import Domain
    from halfmask.dp.views import GuardedRows, NoisyCounts
    from halfmask.release.release import PrivateRelease

    Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseOptions:
    """How much is spent, and on what; see ``tabulate``."""

    epsilon: Any
    delta: Any = 0
    domains: Any = None
    rows_per_person: int = 1
    accountant: Accountant | None = None
    insist: bool = False
    period: str | None = None
    through: Any = None


def tabulate_privately(
    table: Table, by: Sequence[str], options: NoiseOptions, *, margins: bool, demands: str
) -> PrivateRelease:
    """A table of noisy counts by public categories.

    Raises:
        SchemaError: a column has no public domain.
        BudgetExceededError: the accountant has less than ``epsilon`` left.
    """
    if options.epsilon == "personal":
        raise ParameterError(
            "epsilon", "personal", "one number; people who state less are left out"
        )
    columns = [*by, *_period_column(table, by, options)]
    stated = {n: d for n, d in declared_domains(table.schema).items() if n in columns}
    given = given_domains(options.domains, columns)  # perhaps of columns that are not shown, too
    shown = {n: d for n, d in given.items() if n in columns or n not in table.column_names}
    known = public_domains(columns, {**stated, **shown})
    periods = None if options.period is None else known.pop(options.period)
    require_fitting(known)
    grid = CellGrid(tuple(_axis(name, known[name], margins=margins) for name in by))
    facts: dict[str, Any] = {}
    if periods is not None:
        leaves, allowance, notes, facts = _over_time(table, known, periods, options, demands)
    else:
        parts = 2 * (len(by) + 1) if len(by) > 1 else 1  # as ``_consistent`` spends it
        read, allowance, notes = _paid_rows(table, options, demands, parts)
        leaves = _consistent(guarded_rows(read, known, allowance), tuple(by))
    values = _with_margins(leaves, grid) if margins else leaves.ravel()
    arrow = pa.table({**grid.labels(), _name(by): pa.array(values.astype(np.int64))})
    return seal(
        NoiseCandidate(
            arrow,
            allowance.receipt(),
            {column: len(domain) for column, domain in known.items()},
            "tabulate",
            {
                "by": list(by),
                "rows_per_person": options.rows_per_person,
                "margins": margins,
                **facts,
                **({"demands": "ignore"} if demands == "ignore" else {}),
            },
            notes,
            table.origin,
            table.schema,
        )
    )


def _over_time(
    table: Table, known: dict[str, Domain], listed: Domain, options: NoiseOptions, demands: str
) -> tuple[NDArray[np.int64], Allowance, tuple[str, ...], dict[str, Any]]:
    """What came up to a period, from the tree of counts that the ledger keeps."""
    period = str(options.period)
    periods, through = _periods(period, listed, options.through)
    promise = budget(options.epsilon, options.delta)
    # Paid for the whole horizon at once: later periods cannot be refused for want of budget.
    accountant = _horizon_payer(table, promise, options, demands)
    tree = ContinualCount.of(len(periods), concentrated=isinstance(unit(promise), Concentrated))
    noise(unit(promise) / tree.levels, options.rows_per_person)  # refuses too little, as above
    # The same terms are the same series, which is paid for once; any other is paid anew.
    terms = {
        "by": {name: [str(label) for label in _labels(one)] for name, one in known.items()},
        "period": {period: [str(one) for one in periods]},
        "rows_per_person": options.rows_per_person,
        "promise": promise.to_dict(),
        "branching": tree.branching,
        "person": table.schema.person or "",
    }
    series = CountSeries(accountant, terms)
    identity = table_identity(table.arrow.column_names, table.schema)
    allowance, begun = series.allow(
        promise,
        rows_per_person=options.rows_per_person,
        scope=SpendingScope(table=identity, by_person=table.schema.person is not None),
    )
    # Rows of no listed period get a number behind the last, which no node covers.
    domains: dict[str, Domain] = {**known, period: Values((*periods, None))}
    people = _known_people(table, series)
    views = guarded_rows(table, domains, allowance, first_by=period, people=people)
    by = tuple(known)
    shape = tuple(views.sizes[name] for name in by)
    nodes = tree.nodes(through)
    held = series.counts(
        nodes, shape, lambda some, counted: views.count_nodes(period, by, tree, some, counted)
    )
    variance = float(allowance.entries[0].variance or 0) * len(nodes)
    notes = _series_notes(table, options, demands, begun=begun)
    facts = {
        "period": period,
        "through": str(periods[through - 1]),
        "periods": len(periods),
        "levels": tree.levels,
        "deviation": round(variance**0.5, 2),
    }
    return _whole(np.sum(held, axis=0).astype(np.float64)), allowance, notes, facts


def _horizon_payer(
    table: Table, promise: Pure | Approximate, options: NoiseOptions, demands: str
) -> Accountant:
    """Who keeps the budget of the whole horizon; refuses promises that no series can keep."""
    if levels_in_force(table.schema, demands) is not None:
        raise PrivacyError(
            "People state an epsilon of their own, which counts over time cannot keep: one budget "
            f"is spent for the whole horizon. {SET_ASIDE[0].upper()}{SET_ASIDE[1:]}, or tabulate "
            "without period."
        )
    require_quiet(table.schema, promise.epsilon, demands)
    require_modest(promise, insist=options.insist)
    if options.accountant is None:
        raise ParameterError(
            "accountant", None, "one with a ledger (--ledger), which keeps the counts so far"
        )
    accountant: Accountant = options.accountant
    return accountant


def _known_people(table: Table, series: CountSeries) -> NDArray[np.uint64] | None:
    """Per row what its person is known by from release to release; None: nobody is named."""
    if table.schema.person is None:
        return None
    person = table.encode(table.schema.person)
    texts = ["" if one is None else canonical(one) for one in person.values.to_pylist()]
    return series.hashes(texts)[person.codes]


def _series_notes(
    table: Table, options: NoiseOptions, demands: str, *, begun: bool
) -> tuple[str, ...]:
    """Whose rows the promise is about, and when it was paid."""
    notes = [ignored_words(table.schema)] if demands == "ignore" else []
    if table.schema.person is None:
        notes += whose_rows(table.schema, options.rows_per_person)[:1]
        notes.append(
            "It is promised as long as rows keep their period: nothing says whose rows they are."
        )
    else:
        notes.append(
            f"Of each person the {options.rows_per_person:,} first rows count, over all periods "
            "and releases, also where rows move to another period or come late."
        )
    notes.append(
        "The budget was spent now, for all periods that are listed."
        if begun
        else "Nothing was spent: the first release of this series paid for all its periods."
    )
    return tuple(notes)


def _period_column(table: Table, by: Sequence[str], options: NoiseOptions) -> list[str]:
    """The column of periods, where counts over time are asked for."""
    if options.period is None:
        if options.through is not None:
            raise ParameterError("through", "(given)", "none without period, a column of periods")
        return []
    if options.period not in table.schema.columns:
        raise SchemaError(f"The table has no column {options.period!r} that could say the period.")
    if options.period in by:
        raise ParameterError("period", options.period, "a column that does not span the table")
    return [options.period]


def _periods(name: str, listed: Domain, through: object) -> tuple[tuple[object, ...], int]:
    """The public periods in the order of time, and how many are over."""
    if not isinstance(listed, Values) or None in listed.values or listed.other is not None:
        raise ParameterError(
            "period", name, "a column whose domain lists all periods of the horizon in their order"
        )
    texts = [str(one) for one in listed.values]
    if str(through) not in texts:
        raise ParameterError(
            "through", through, f"the last period that is over, as the domain of {name!r} lists it"
        )
    return listed.values, texts.index(str(through)) + 1


def _labels(domain: Domain) -> list[object]:
    return list(domain.labels) if isinstance(domain, Bins) else list(domain.values)


def _paid_rows(
    table: Table, options: NoiseOptions, demands: str, parts: int
) -> tuple[Table, Allowance, tuple[str, ...]]:
    """The rows that may be read, what was spent for them, and what to say of it."""
    promise = budget(options.epsilon, options.delta)
    noise(unit(promise) / parts, options.rows_per_person)  # refuses too little before it is paid
    levels = levels_in_force(table.schema, demands)
    require_quiet(table.schema, promise.epsilon, demands)
    require_modest(promise, insist=options.insist)
    costs: tuple[Fraction, ...] = ()
    if levels is not None:
        costs = levels.costs(promise.epsilon, options.accountant)
        levels.require_somebody(costs)
    paid = None if levels is None else dict(zip(levels.epsilons, costs, strict=True))
    name = table_identity(table.arrow.column_names, table.schema)
    allowance = (options.accountant or Accountant(promise)).allow(
        promise,
        "tabulate",
        rows_per_person=options.rows_per_person,
        scope=SpendingScope(paid, table=name, by_person=table.schema.person is not None),
    )
    notes = [ignored_words(table.schema)] if demands == "ignore" else []
    notes += whose_rows(table.schema, options.rows_per_person)
    if options.accountant is None:
        notes.append("No ledger was given: other releases of this table add to its epsilon.")
    if levels is None:
        return table, allowance, tuple(notes)
    person, codes = levels.of_people(table)
    silent = levels.reads_silent(promise.epsilon)
    reads = np.array([*(bool(cost) for cost in costs), silent, False])
    chosen = np.flatnonzero(reads[codes][person])
    read = Table(table.arrow.take(pa.array(chosen)), table.schema, table.origin)
    return read, allowance, (*notes, *levels.notes(costs))


def _name(by: Sequence[str]) -> str:
    name = "count"
    while name in by:
        name += " (figure)"
    return name


def _axis(name: str, domain: Domain, *, margins: bool) -> Axis:
    labels = [MISSING if one is None else str(one) for one in _labels(domain)]
    sums: tuple[tuple[int, tuple[int, ...]], ...] = ()
    if margins:
        labels.append(TOTAL)
        sums = ((len(labels) - 1, tuple(range(len(labels) - 1))),)
    if len(set(labels)) != len(labels):
        raise InputError(f"Categories of column '{name}' are spelled alike: rename them.")
    return Axis(name, tuple(labels), sums)


def _consistent(views: GuardedRows, by: tuple[str, ...]) -> NDArray[np.int64]:
    """The finest cells, of which all margins are sums; nothing is read but noisy views."""
    shape = tuple(views.sizes[name] for name in by)
    if len(by) == 1:
        noisy = views.count(by, views.limit).counts
        return _whole(noisy.astype(np.float64))
    share = views.limit * Fraction(1, 2)
    finest = views.count(by, share)
    rest = share / (len(by) + 1)
    margins = [views.count((name,), rest) for name in by]
    total = views.count((), rest)
    found = _nearest(shape, by, [finest, *margins, total])
    return _whole(found)


def _whole(found: Numbers) -> NDArray[np.int64]:
    """The nearest counts that are not negative and have the same total, in whole numbers."""
    total = max(0, round(float(found.sum())))
    flat = np.sort(found.ravel())[::-1]
    over = (np.cumsum(flat) - total) / np.arange(1, len(flat) + 1)
    last = int(np.flatnonzero(flat - over >= 0)[-1]) if total else 0
    kept = np.maximum(found - over[last], 0.0) if total else np.zeros_like(found)
    floor = np.floor(kept).astype(np.int64)
    missing = total - int(floor.sum())
    order = np.argsort(-(kept - floor).ravel(), kind="stable")[: max(missing, 0)]
    floor.ravel()[order] += 1
    return floor


def _nearest(
    shape: tuple[int, ...], by: tuple[str, ...], measured: Sequence[NoisyCounts]
) -> Numbers:
    """The table whose sums are nearest to all that was measured, by weighted least squares."""
    from scipy.sparse.linalg import LinearOperator, lsqr

    sides = {name: i for i, name in enumerate(by)}
    kept = [tuple(sides[name] for name in one.columns) for one in measured]
    scale = [1 / np.sqrt(max(one.variance, 1e-12)) for one in measured]
    sizes = [int(np.prod([shape[i] for i in which], dtype=np.int64)) for which in kept]

    def forward(x: Numbers) -> Numbers:
        cube = x.reshape(shape)
        parts = []
        for which, weight in zip(kept, scale, strict=True):
            others = tuple(i for i in range(len(shape)) if i not in which)
            parts.append(cube.sum(axis=others).ravel() * weight)
        return np.concatenate(parts)

    def backward(y: Numbers) -> Numbers:
        out, start = np.zeros(shape), 0
        for which, weight, size in zip(kept, scale, sizes, strict=True):
            part = y[start : start + size].reshape(
                [shape[i] if i in which else 1 for i in range(len(shape))]
            )
            out = out + part * weight
            start += size
        return out.ravel()

    operator = LinearOperator(
        (sum(sizes), int(np.prod(shape))), matvec=forward, rmatvec=backward, dtype=np.float64
    )
    given = np.concatenate(
        [np.asarray(one.counts, float).ravel() * w for one, w in zip(measured, scale, strict=True)]
    )
    found: Numbers = lsqr(operator, given, atol=1e-10, btol=1e-10)[0]
    return found.reshape(shape)


def _with_margins(leaves: NDArray[np.int64], grid: CellGrid) -> NDArray[np.int64]:
    """The finest cells with their sums behind them, as the grid numbers them."""
    full = leaves
    for side in range(len(grid.axes)):
        full = np.concatenate([full, full.sum(axis=side, keepdims=True)], axis=side)
    return full.ravel()
