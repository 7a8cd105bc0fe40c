"""Bounds of numbers and dates that nobody knows, bought with a share of the budget.

Definition: the rows are counted, with noise, in the cells of a public grid: powers of two with both
signs for numbers, years for dates. The bounds are those of the outermost cells whose noisy count
reaches a threshold that an empty grid reaches with a chance of 1%, and of decades in which the
years beyond these reach one together; where nothing does, those of the whole grid. Intervals
between them are cut by the same noisy counts. All that follows from these costs nothing more. Rows
beyond the bounds are moved to the nearest interval, as by every domain.
Source: Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson, "Differentially private SQL with
bounded user contribution", 2020 (approximate bounds); here an empty grid has bounds too, since a
refusal would tell of the rows.

Categories cannot be bought so: a value that nobody listed has no empty cell to put noise into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.dp.budget import exact_number
from halfmask.dp.domain import Bins, as_number
from halfmask.dp.views import guarded_rows
from halfmask.errors import ParameterError, SchemaError
from halfmask.table.columns import abbreviate_names

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance
    from halfmask.dp.budget import Number
    from halfmask.dp.domain import Domain
    from halfmask.dp.sampling import Sampler
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

_POWERS = range(-10, 41)  # of two: from a thousandth to a million million
_YEARS = range(1900, 2101)
_DECADE = 10
_CHANCE = 0.01  # that some empty cell of a grid widens the bounds
_INTERVALS = 20
_MOST = 4  # a cell is cut at most as if it held this part of the rows: a heap at 0 has one interval
_OPEN = {"bins", "integer", "missing", "date"}


@dataclass(frozen=True, slots=True)
class OpenRange:
    """A column of numbers or dates whose bounds nobody knows.

    Attributes:
        bins: into how many intervals it is cut at most.
        integer: whether its values are whole numbers.
        missing: whether a value may be missing; None: as the noisy counts say.
        date: whether its values are dates.
    """

    bins: int = _INTERVALS
    integer: bool = False
    missing: bool | None = None
    date: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.bins, int) or self.bins < 1:
            raise ParameterError("bins", self.bins, "1 or more")

    @property
    def grid(self) -> Bins:
        """The public cells in which rows are counted."""
        if self.date:
            days = tuple(as_number(date(year, 1, 1)) for year in _YEARS)
            return Bins(days, missing=True, date=True)
        ends = [2.0**power for power in _POWERS if power >= 0 or not self.integer]
        return Bins((*(-end for end in reversed(ends)), 0.0, *ends), missing=True)

    @property
    def widest(self) -> Bins:
        """What it can become, as far as that is known before anything is spent."""
        edges = self.grid.edges
        missing = self.missing is not False
        return Bins.even(edges[0], edges[-1], self.bins, missing=missing, date=self.date)

    def outermost(self, noisy: NDArray[np.int64], variance: float) -> tuple[int, int]:
        """The first and the last cell of the grid that stand out by their noisy counts.

        All of them, where none does.
        """
        counts = noisy[:-1]  # the last one is of missing values
        large = np.flatnonzero(counts >= _threshold(variance, len(noisy)))
        if self.date:  # people who are spread over many years stand out by decades
            beyond = counts.copy()
            if len(large):
                beyond[large[0] : large[-1] + 1] = 0
            sums = beyond.reshape(-1, _DECADE).sum(axis=1)
            decades = np.flatnonzero(sums >= _sum_threshold(variance, _DECADE, len(sums)))
            ends = (decades * _DECADE, decades * _DECADE + _DECADE - 1)
            large = np.sort(np.concatenate([large, *ends]))
        return (int(large[0]), int(large[-1])) if len(large) else (0, len(counts) - 1)

    def is_whole(self, found: Domain) -> bool:
        """Whether bounds are those of the grid itself."""
        ends = self.grid.edges
        return isinstance(found, Bins) and (found.edges[0], found.edges[-1]) == (ends[0], ends[-1])

    def bounded(self, noisy: NDArray[np.int64], variance: float) -> Bins:
        """The range that noisy counts of the grid give."""
        counts, edges = noisy[:-1], np.array(self.grid.edges)
        first, last = self.outermost(noisy, variance)
        missing = self.missing
        if missing is None:
            missing = bool(noisy[-1] >= _threshold(variance, len(noisy)))
        inside, ends = counts[first : last + 1], edges[first : last + 2]
        weights = np.maximum(inside, 1).astype(np.float64)
        weights = np.minimum(weights, max(weights.sum() / _MOST, 1.0))
        shares = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
        cuts = np.interp(np.arange(1, self.bins) / self.bins, shares, ends)
        if self.integer or self.date:
            cuts = np.rint(cuts)
        else:
            cuts = np.array([float(f"{cut:.3g}") for cut in cuts])
        between = np.unique(cuts[(cuts > ends[0]) & (cuts < ends[-1])])
        found = (float(ends[0]), *map(float, between), float(ends[-1]))
        return Bins(found, missing, self.integer and not self.date, self.date)


def _threshold(variance: float, cells: int) -> float:
    """What noise reaches in some of the empty cells with a chance of ``_CHANCE`` at most.

    Discrete Laplace noise of variance 2 a / (1 - a)**2 is t or more with chance a**t / (1 + a);
    Gaussian noise of the same variance is so more rarely.
    """
    a = max(variance / (1 + variance + sqrt(1 + 2 * variance)), 1e-300)
    return log(cells / (_CHANCE * (1 + a))) / -log(a)


def _sum_threshold(variance: float, cells: int, sums: int) -> float:
    """The same for some of several sums of empty cells, by Chernoff's bound.

    Discrete Laplace noise X has E exp(s X) = 1 / (1 - variance (cosh s - 1)), and Gaussian noise of
    the same variance less; the best s is looked for on a grid, since each gives a bound.
    """
    s = np.arccosh(1 + 1 / max(variance, 1e-300)) * np.linspace(0.01, 0.99, 99)
    moments = -np.log1p(-variance * (np.cosh(s) - 1))
    return float(((cells * moments + log(sums / _CHANCE)) / s).min())


def open_ranges(
    schema: Schema, columns: list[str], declared: Mapping[str, object]
) -> dict[str, OpenRange]:
    """The columns whose bounds can be bought: declared numbers or dates without any.

    That is a domain without ``low`` and ``high``, such as ``{ bins = 20, integer = true }``, or a
    column without a domain that the schema calls numeric or date.
    """
    found = {}
    for name in columns:
        entry, said = schema.columns.get(name), declared.get(name)
        kind = None if entry is None else entry.kind
        if isinstance(said, Mapping) and said and set(said) <= _OPEN:
            parts: dict[str, Any] = {"date": kind == "date", **said}
            found[name] = OpenRange(**parts)
        elif said is None and kind in ("numeric", "date"):
            found[name] = OpenRange(date=kind == "date")
    return found


# Between them noise fits a number, of what is bought and of the rest.
SHARES = (Fraction(1, 1000), Fraction(999, 1000))


def wanted_bounds(
    schema: Schema, columns: list[str], declared: Mapping[str, object], share: Number | None
) -> tuple[Fraction, dict[str, OpenRange]]:
    """Which share of the budget buys bounds, and of which columns; nothing where none is given.

    Raises:
        ParameterError: it is no share, or there is nothing to buy.
        SchemaError: a column has no domain, and its bounds cannot be bought.
    """
    if share is None:
        return Fraction(0), {}
    part = exact_number("bounds", share)
    if not SHARES[0] <= part <= SHARES[1]:
        raise ParameterError("bounds", share, "the share of the budget for bounds, such as 0.1")
    wanted = open_ranges(schema, columns, declared)
    silent = [name for name in columns if name not in wanted and name not in declared]
    if silent:
        raise SchemaError(
            f"Bounds can be bought of numbers and dates only, and {abbreviate_names(silent)} "
            f"{'is' if len(silent) == 1 else 'are'} declared as neither: categories cannot be "
            "bought without delta, so list their values in domains, or say kind = numeric or date, "
            "or the domain { bins = 20 }, where bounds shall be bought."
        )
    if not wanted:
        raise ParameterError("bounds", share, "nothing: every column has a public domain")
    return part, wanted


def require_public(
    wanted: Collection[str], rules: Collection[object], given: Mapping[str, object] | None
) -> None:
    """Refuse conditions on columns whose bounds are not known yet."""
    named = {*(given or {}), *(n for rule in rules if isinstance(rule, Mapping) for n in rule)}
    both = sorted(named & set(wanted))
    if both:
        raise SchemaError(
            f"Conditions on {abbreviate_names(both)} need public bounds, and these would be bought:"
            " declare low and high, or drop the condition."
        )


def buy_bounds(
    table: Table,
    wanted: Mapping[str, OpenRange],
    allowance: Allowance,
    share: Fraction,
    sampler: Sampler | None = None,
) -> dict[str, Bins]:
    """The ranges of columns, each paid with an equal part of a share of the allowance."""
    grids = {name: one.grid for name, one in wanted.items()}
    views = guarded_rows(table, grids, allowance, sampler=sampler)
    cost = allowance.limit * share / len(wanted)
    found = {}
    for name, one in wanted.items():
        noisy = views.count((name,), cost, f"bounds of {name}")
        found[name] = one.bounded(noisy.counts, noisy.variance)
    return found


def bought_facts(share: Fraction, found: Mapping[str, Domain]) -> dict[str, Any]:
    """What a release says of bounds that were bought: all of it noisy, or public."""
    if not found:
        return {}
    ends = {}
    for name, one in found.items():
        cells = [label for label in one.labels if label] if isinstance(one, Bins) else []
        ends[name] = f"{cells[0][1:].split(', ')[0]} to {cells[-1][:-1].split(', ')[1]}"
    return {"bounds": {"share": str(share), "found": ends}}


def bought_notes(
    share: Fraction, wanted: Mapping[str, OpenRange], found: Mapping[str, Domain]
) -> tuple[str, ...]:
    """The same in words."""
    if not wanted:
        return ()
    notes = [
        f"The bounds of {abbreviate_names(list(wanted))} were bought with {float(share):.0%} of "
        "the budget, by noisy counts of powers of two (of years and decades, for dates): values "
        "beyond them count as the nearest interval, and can be many where a small budget hides "
        "how many people a cell holds."
    ]
    whole = [name for name, one in wanted.items() if one.is_whole(found[name])]
    if whole:
        notes.append(
            f"The bounds of {abbreviate_names(whole)} are those of the whole grid: nothing "
            "narrower stood out from the noise. Declare low and high, or spend more on bounds."
        )
    return tuple(notes)
