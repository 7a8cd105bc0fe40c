"""What a private synthesizer or query sees of the rows: noisy views, and nothing else.

A synthesizer receives ``GuardedRows`` and public domains, and nothing else: every method charges
the allowance before it reads the rows, and what it gives has noise in it. A synthesizer that is
given recorded answers instead must make the same model, which is tested.

Which noisy views a set of questions needs, by which mechanism and at which cost, follows from the
questions and the budget: it is known before anything is spent or read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import isqrt, prod, sqrt
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from halfmask.dp import mechanisms
from halfmask.dp.accountant import ViewCost
from halfmask.dp.budget import Approximate, Budget, Concentrated, Pure
from halfmask.dp.domain import Bins, public_codes
from halfmask.dp.mechanisms import (
    CountTree,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    StableGroups,
)
from halfmask.dp.sampling import Sampler
from halfmask.engines.counting.coded_tuples import CodeIntervals, Coding
from halfmask.errors import InternalError, ParameterError, SchemaError
from halfmask.table.tuples import ones, tally

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance
    from halfmask.dp.budget import Budget
    from halfmask.dp.continual import ContinualCount, Node
    from halfmask.dp.domain import Domain
    from halfmask.engines.counting.coded_tuples import CodedTuples
    from halfmask.table.table import Table

    Mechanism = StableGroups | CountTree | DiscreteLaplace | DiscreteGaussian


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """A noisy table of counts.

    Attributes:
        columns: whose values span it.
        counts: noisy, may be negative.
        variance: of the noise in each cell.
    """

    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """What a model believes of one table of counts, to be compared with the rows.

    Attributes:
        columns: whose values span it.
        counts: the model's counts, whole numbers.
        penalty: what the score loses whatever the rows say.
    """

    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    penalty: int = 0

    @classmethod
    def of(cls, columns: tuple[str, ...], believed: NDArray[np.float64], penalty: int) -> Guess:
        """A guess by counts that are rounded.

        Raises:
            FloatingPointError: some are no numbers, or too large: the model cannot be computed.
        """
        if not (np.abs(believed) <= _MOST_COUNT).all():
            raise FloatingPointError
        return cls(columns, np.rint(believed).astype(np.int64), penalty)

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Whether one row moves the score by one at most: one count per cell, and no overflow."""
        counts = self.counts
        return (
            counts.shape == tuple(sizes[name] for name in self.columns)
            and np.issubdtype(counts.dtype, np.integer)
            and bool(((counts >= -_MOST_COUNT) & (counts <= _MOST_COUNT)).all())
            and float(np.abs(counts).sum(dtype=np.float64)) + abs(self.penalty) <= _MOST_SUM
        )


_MOST_COUNT = 1 << 40  # of one guessed cell
_MOST_SUM = 1 << 60  # of all cells of a guess


class NoisyViews(Protocol):
    """All that a synthesizer may ask about the rows."""

    sizes: Mapping[str, int]
    limit: Budget

    def count(self, columns: Sequence[str], cost: Budget) -> NoisyCounts:
        """A noisy table of counts over ``columns``."""
        ...

    def recode(self, maps: Mapping[str, NDArray[np.int64]]) -> NoisyViews:
        """The same rows after each column's codes went through a public map."""
        ...

    def within(self, limit: Budget) -> NoisyViews:
        """The same rows for a part of the budget."""
        ...

    def heavy(
        self, columns: Sequence[str], cost: Budget
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
        """The cells of a table too large to list whose noisy count is large, and the total."""
        ...

    def worst(self, guesses: Sequence[Guess], cost: Budget) -> int:
        """Which guess is (about) farthest from the rows, by the sum of absolute differences."""
        ...

    def dependent(self, pairs: Sequence[tuple[tuple[str, ...], str]], cost: Budget) -> int:
        """Which (parents, child) is (about) farthest from independence."""
        ...


MOST_CELLS = 1 << 27
_KEEP = 1 << 14  # exact tables up to this size are kept for the next question


@dataclass(slots=True, eq=False)
class GuardedRows:
    """The rows of one table as public codes, and the allowance that pays for each look.

    Attributes:
        sizes: how many public values each column has.
        limit: the budget to use, in the unit that mechanisms charge.
        allowance: who pays and refuses.
    """

    sizes: Mapping[str, int]
    limit: Budget
    allowance: Allowance
    _codes: dict[str, NDArray[np.int32]] = field(repr=False)
    _sampler: Sampler = field(default_factory=Sampler, repr=False)
    _kept: dict[tuple[str, ...], NDArray[np.int64]] = field(default_factory=dict, repr=False)
    _people: NDArray[np.uint64] | None = field(default=None, repr=False)
    _rows: NDArray[np.int64] | None = field(default=None, repr=False)  # of each code; None: one

    def count(self, columns: Sequence[str], cost: Budget, purpose: str = "") -> NoisyCounts:
        """A noisy table of counts over ``columns``; the receipt lists it by its purpose."""
        what = purpose or " x ".join(columns) or "number of rows"
        mechanism = noise(cost, self.allowance.rows_per_person)
        variance = Fraction(mechanism.variance).limit_denominator(10**6)
        self.allowance.charge(ViewCost(what, type(mechanism).__name__, mechanism.cost, variance))
        noisy = mechanism.apply(self._exact(columns), self._sampler)
        return NoisyCounts(tuple(columns), noisy, mechanism.variance)

    def count_nodes(
        self,
        period: str,
        columns: Sequence[str],
        tree: ContinualCount,
        nodes: Sequence[Node],
        counted: Mapping[int, NDArray[np.uint64]],
    ) -> dict[Node, tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Noisy tables of counts over ``columns`` of some nodes of a tree over ``period``.

        Every level is charged whole: a row stands in one node of each, whichever are counted now.
        Each node must be counted once only. ``counted``: per level, whom its nodes hold so far,
        once for each row; nobody gets into more than is paid for, wherever rows moved. Who stands
        in each node comes back beside it.
        """
        mechanism = noise(self.limit / tree.levels, self.allowance.rows_per_person)
        variance = Fraction(mechanism.variance).limit_denominator(10**6)
        what = " x ".join(columns)
        for level in range(tree.levels):
            view = f"{what} by {period}, level {level + 1} of {tree.levels}"
            self.allowance.charge(
                ViewCost(view, type(mechanism).__name__, mechanism.cost, variance)
            )
        shape = tuple(self.sizes[name] for name in columns)
        if prod(shape) > MOST_CELLS:
            raise ParameterError("cells", prod(shape), f"at most {MOST_CELLS:,} in one table")
        time, cells, held = self._codes[period], self._cells(columns), dict(counted)
        found: dict[Node, tuple[NDArray[np.int64], NDArray[np.uint64]]] = {}
        for node in nodes:
            low, high = tree.span(node)
            rows = np.flatnonzero((time >= low) & (time < high))
            before = held.get(node[0], np.empty(0, np.uint64))
            rows, people = self._unspent(rows, before)
            held[node[0]] = np.concatenate([before, people])
            exact = np.bincount(cells[rows], minlength=prod(shape)).reshape(shape)
            found[node] = mechanism.apply(exact.astype(np.int64), self._sampler), people
        return found

    def _unspent(
        self, rows: NDArray[np.int64], before: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Of some rows those of people who were counted less often than is paid for, and these."""
        if self._people is None:
            return rows, np.empty(0, np.uint64)
        rows = rows[np.argsort(self._people[rows], kind="stable")]
        people, earlier = self._people[rows], np.sort(before)
        # The how manieth of its person each row is, after those that earlier nodes counted.
        turn = np.arange(len(people)) - np.searchsorted(people, people)
        turn += np.searchsorted(earlier, people, "right") - np.searchsorted(earlier, people)
        free = turn < self.allowance.rows_per_person
        return rows[free], people[free]

    def recode(self, maps: Mapping[str, NDArray[np.int64]]) -> GuardedRows:
        """The same rows after each column's codes went through a public map."""
        sizes = {name: int(new.max()) + 1 for name, new in maps.items()}
        codes = {n: new.astype(np.int32)[self._codes[n]] for n, new in maps.items()}
        return GuardedRows(
            sizes, self.limit, self.allowance, codes, self._sampler, _rows=self._rows
        )

    def within(self, limit: Budget) -> GuardedRows:
        """The same rows for a part of the budget; the allowance is still the one that refuses."""
        return replace(self, limit=limit)

    def heavy(
        self, columns: Sequence[str], cost: Budget
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
        """The cells of a table too large to list whose noisy count is large, and the total.

        Empty cells are noised too, by ``halfmask.dp.mechanisms``; Laplace noise serves rho as well.
        """
        size = prod(self.sizes[name] for name in columns)
        if size > 1 << 62:
            raise ParameterError("cells", size, "at most 2**62; use method='marginals'")
        total = self.count((), cost / 20)
        rest = as_pure(cost * Fraction(19, 20))
        mechanism = DiscreteLaplace(rest.epsilon, self.allowance.rows_per_person)
        # The number of empty cells is the rows' secret: the threshold knows only the public size.
        least = mechanisms.threshold(mechanism.scale, size)
        variance = Fraction(mechanism.variance).limit_denominator(10**6)
        what = f"{' x '.join(columns)} (noisy counts from {least})"
        self.allowance.charge(ViewCost(what, "DiscreteLaplace", mechanism.cost, variance))
        cells, place = np.unique(self._cells(columns), return_inverse=True)
        counts = self._tally(place, len(cells))
        noisy = mechanism.apply(counts, self._sampler)
        kept = noisy >= least
        extra = mechanisms.binomial(self._sampler, size - len(cells), mechanism.scale, least)
        ghosts = mechanisms.fresh_cells(self._sampler, cells, size, extra)
        tails = least + self._sampler.geometric(1 / mechanism.scale, extra)
        found = np.concatenate([cells[kept], ghosts])
        order = np.argsort(found)
        sums = np.concatenate([noisy[kept], tails])
        return found[order], sums[order], float(total.counts)

    def worst(self, guesses: Sequence[Guess], cost: Budget) -> int:
        """Which guess is (about) farthest from the rows, by the sum of absolute differences."""
        if not guesses or not all(guess.fits(self.sizes) for guess in guesses):
            raise InternalError("A guess is no table of whole counts of its columns.")
        mechanism = choice(cost, self.allowance.rows_per_person)
        self._charge_choice(mechanism, cost, f"worst of {len(guesses)} guessed tables")
        scores = [
            int(np.abs(self._exact(guess.columns) - guess.counts).sum()) - guess.penalty
            for guess in guesses
        ]
        return mechanism.choose(np.array(scores, dtype=np.int64), self._sampler)

    def dependent(self, pairs: Sequence[tuple[tuple[str, ...], str]], cost: Budget) -> int:
        """Which (parents, child) is (about) farthest from independence.

        The score is the sum of |counts - rows * columns / total| in halves, rounded down; one row
        changes it by at most 2 (see the definition page), and rounding adds 1.
        """
        mechanism = choice(cost, 3 * self.allowance.rows_per_person)
        self._charge_choice(mechanism, cost, f"most dependent of {len(pairs)} families")
        scores = []
        for parents, child in pairs:
            flat = self._exact((*parents, child)).reshape(-1, self.sizes[child])
            total = max(int(flat.sum()), 1)
            # In whole numbers: |t c - r k| summed, over 2 t.
            apart = np.abs(total * flat - flat.sum(1, keepdims=True) * flat.sum(0, keepdims=True))
            scores.append(int(apart.sum() // (2 * total)))
        return mechanism.choose(np.array(scores, dtype=np.int64), self._sampler)

    def _charge_choice(self, mechanism: Exponential, cost: Budget, what: str) -> None:
        paid = mechanism.concentrated if isinstance(cost, Concentrated) else mechanism.cost
        self.allowance.charge(ViewCost(what, "Exponential", paid))

    def _exact(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """The counts as they are; never leaves this class without noise."""
        key = tuple(columns)
        if key in self._kept:
            return self._kept[key]
        shape = tuple(self.sizes[name] for name in columns)
        if prod(shape) > MOST_CELLS:
            raise ParameterError("cells", prod(shape), f"at most {MOST_CELLS:,} in one table")
        found = self._tally(self._cells(columns), prod(shape)).reshape(shape)
        if found.size <= _KEEP:
            self._kept[key] = found
        return found

    def _tally(self, cells: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """How many rows each cell holds, exactly."""
        return tally(cells, size, ones(len(cells)) if self._rows is None else self._rows)

    def _cells(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """Per row, or tuple that stands for rows, the number of its cell."""
        cell = np.zeros(len(next(iter(self._codes.values()))), np.int64)
        for name in columns:
            cell *= self.sizes[name]
            cell += self._codes[name]
        return cell


def guarded_rows(
    table: Table,
    domains: Mapping[str, Domain],
    allowance: Allowance,
    *,
    sampler: Sampler | None = None,
    first_by: str | None = None,
    people: NDArray[np.uint64] | None = None,
) -> GuardedRows:
    """Lock the rows of ``table`` behind noisy views; extra rows of one person are left out.

    Which rows of a person stay is drawn, or, with ``first_by``, they are those that come first in
    that column, which are the same whenever the table is read. ``people``: per row, what its person
    is known by from release to release (``count_nodes``).
    """
    drawn = sampler or Sampler()
    allowance.secure = allowance.secure and drawn.secure
    codes = {name: public_codes(table, name, domain) for name, domain in domains.items()}
    first = None if first_by is None else codes[first_by]
    kept = bounded_rows(table, allowance.rows_per_person, drawn, first)
    if kept is not None:
        codes = {name: code[kept] for name, code in codes.items()}
        people = None if people is None else people[kept]
    sizes = {name: len(domain) for name, domain in domains.items()}
    return GuardedRows(sizes, allowance.limit, allowance, codes, drawn, {}, people)


def guarded_tuples(
    coded: CodedTuples, domains: Mapping[str, Domain], allowance: Allowance
) -> GuardedRows:
    """Lock rows that an engine coded and counted behind noisy views; each is another person's."""
    sampler = Sampler()
    allowance.secure = allowance.secure and sampler.secure
    sizes = {name: len(domain) for name, domain in domains.items()}
    codes = dict(coded.codes)
    return GuardedRows(sizes, allowance.limit, allowance, codes, sampler, _rows=coded.counts)


def coding_of(domains: Mapping[str, Domain]) -> dict[str, Coding]:
    """How an engine codes columns by their public domains."""
    found = {}
    for name, domain in domains.items():
        cuts = None
        if isinstance(domain, Bins) and not domain.date:
            alone = {float(n): domain.special_code(i) for i, n in enumerate(domain.special)}
            absent = len(domain) - 1 if domain.missing else domain.below
            cuts = CodeIntervals(tuple(domain.edges[1:-1]), domain.below, alone, absent)
        found[name] = Coding(partial(public_codes, name=name, domain=domain), cuts)
    return found


def bounded_rows(
    table: Table, most: int, sampler: Sampler, first: NDArray[np.int32] | None = None
) -> NDArray[np.int64] | None:
    """At most ``most`` rows of each person, drawn at random; None where no person repeats.

    With ``first`` a person's rows of the lowest numbers stay, and only equal ones are drawn from.
    """
    if table.schema.person is None:
        return None
    person = table.encode(table.schema.person)
    missing = bool(person.values.null_count)
    if len(person.values) == len(person.codes) and not missing:
        return None
    order = sampler.permutation(len(person.codes))
    if first is not None:
        order = order[np.argsort(first[order], kind="stable")]
    order = order[np.argsort(person.codes[order], kind="stable")]
    codes = person.codes[order]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    place = np.arange(len(codes)) - np.repeat(first, np.diff(np.r_[first, len(codes)]))
    return np.sort(order[place < most])


def noise(cost: Budget, sensitivity: int) -> DiscreteLaplace | DiscreteGaussian:
    """The mechanism that spends ``cost`` on counts."""
    if isinstance(cost, Pure):
        return DiscreteLaplace(cost.epsilon, sensitivity)
    if isinstance(cost, Concentrated):
        return DiscreteGaussian(cost.rho, sensitivity)
    raise InternalError("Counts are measured in pure epsilon or in rho.")


def as_pure(cost: Budget) -> Pure:
    """Pure epsilon that costs at most ``cost``: rho pays for epsilon = sqrt(2 rho)."""
    if isinstance(cost, Concentrated):
        step = 1 << 30
        return Pure(Fraction(isqrt(int(2 * cost.rho * step * step)), step))
    if isinstance(cost, Pure):
        return cost
    raise InternalError("Counts are measured in pure epsilon or in rho.")


def choice(cost: Budget, sensitivity: int) -> Exponential:
    """The mechanism that spends ``cost`` on a choice."""
    if isinstance(cost, Pure):
        return Exponential(cost.epsilon, sensitivity)
    if isinstance(cost, Concentrated):
        step = 1 << 30  # the square root rounded down: epsilon**2 / 8 <= rho
        return Exponential(Fraction(isqrt(int(8 * cost.rho * step * step)), step), sensitivity)
    raise InternalError("A choice costs pure epsilon or rho.")


QuestionKind = Literal["count", "sum", "mean", "variance", "deviation", "quantile"]
STEPS = 1_000_000  # whole steps that a bounded value is rounded to on each side of its center
LEVELS = 2  # of the tree that quantiles are read off
INTERVALS = 16**LEVELS  # how finely a bounded value is cut for them


@dataclass(frozen=True, slots=True)
class Scale:
    """How a bounded number becomes a whole one: value = center + step * whole.

    An engine clips a value to the bounds and sums ``floor((value - center) / step + 1/2)``, and for
    a variance its square, rounded in the same way to multiples of ``STEPS``.

    Example:
        >>> Scale.of("age", 0, 130).step
        6.5e-05
    """

    low: float
    high: float

    @classmethod
    def of(cls, column: str, low: float | None, high: float | None) -> Scale:
        """The scale of a column; missing bounds are an error that says how to give them."""
        if low is None or high is None or not low < high:
            raise SchemaError(
                f"Column {column!r} needs public bounds for this question: give low and high, "
                "known without looking at the rows; values beyond them count as the bound."
            )
        return cls(float(low), float(high))

    @property
    def around_zero(self) -> Scale:
        """The scale for sums: a missing value adds nothing, so that no count is needed."""
        most = max(abs(self.low), abs(self.high))
        return Scale(-most, most)

    @property
    def center(self) -> float:
        """The value that becomes 0."""
        return (self.low + self.high) / 2

    @property
    def step(self) -> float:
        """What one whole step is worth."""
        return (self.high - self.low) / 2 / STEPS

    @property
    def edges(self) -> NDArray[np.float64]:
        """The edges of the intervals that quantiles are counted in."""
        return np.linspace(self.low, self.high, INTERVALS + 1)

    def whole(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Clipped and rounded values; what is no number becomes 0."""
        inside = np.clip(np.nan_to_num(values, nan=self.center), self.low, self.high)
        found: NDArray[np.int64] = np.floor((inside - self.center) / self.step + 0.5).astype(
            np.int64
        )
        return found

    @property
    def rounded(self) -> float:
        """How far a value lies from its whole number of steps at most."""
        return self.step / 2

    @staticmethod
    def squares(whole: NDArray[np.int64]) -> NDArray[np.int64]:
        """The squares of whole numbers, in multiples of ``STEPS``."""
        found: NDArray[np.int64] = np.floor(whole.astype(np.float64) ** 2 / STEPS + 0.5).astype(
            np.int64
        )
        return found


@dataclass(frozen=True, slots=True)
class Question:
    """One column of the answer.

    Attributes:
        name: what the answer calls it.
        kind: count, sum, mean, variance, (standard) deviation or quantile.
        column: what is summed or counted; empty where rows are counted.
        scale: how its values become whole numbers; None for a count.
        at: for a quantile its share, such as 0.5 for the median.
        sample: whether a variance is that of a sample (n - 1) rather than of all (n).
    """

    name: str
    kind: QuestionKind
    column: str = ""
    scale: Scale | None = None
    at: float = 0.5
    sample: bool = False

    def __post_init__(self) -> None:
        if self.kind != "count" and self.scale is None:
            raise SchemaError(f"{self.kind} of column {self.column!r} needs public bounds.")
        if not 0 <= self.at <= 1:
            raise ParameterError("at", self.at, "0 to 1")


@dataclass(frozen=True, slots=True, eq=False)
class ExactCounts:
    """What an engine found, per group; all whole numbers.

    Attributes:
        counts: rows of each group.
        sums: per column, the sum of scaled values.
        squares: per column, the sum of squared scaled values; only for a variance.
        present: per column, how many rows have a value; a column that is not here has one in all.
        histograms: per column, groups x ``INTERVALS`` counts of values; only for quantiles.
    """

    counts: NDArray[np.int64]
    sums: Mapping[str, NDArray[np.int64]]
    squares: Mapping[str, NDArray[np.int64]]
    present: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    histograms: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def vector(self, name: str) -> NDArray[np.int64]:
        """One exact vector; leaves only with noise."""
        kind, _, column = name.partition(" ")
        if not column:
            return self.counts
        source = {"count": self.present, "sum": self.sums, "squares": self.squares}
        return source.get(kind, self.histograms)[column]


GroupRule = Literal["public", "threshold"]
# One row moves a count by 1, a scaled sum by STEPS, and so a sum of squares in multiples of it.
_REACH = {"count": 1, "sum": STEPS, "squares": STEPS}


@dataclass(frozen=True, slots=True)
class View:
    """One noisy view.

    Attributes:
        vector: what is measured: ``count``, ``count x``, ``sum x``, ``squares x`` or ``tree x``.
        name: the same for the receipt.
        mechanism: by what.
    """

    vector: str
    name: str
    mechanism: Mechanism

    @property
    def entry(self) -> ViewCost:
        """The line of the receipt."""
        variance = Fraction(self.mechanism.variance).limit_denominator(10**6)
        return ViewCost(self.name, type(self.mechanism).__name__, self.mechanism.cost, variance)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in each number."""
        return sqrt(self.mechanism.variance)

    def half_width(self, confidence: float) -> float:
        """How far each number may be off."""
        used = self.mechanism
        return (used.noise if isinstance(used, StableGroups) else used).half_width(confidence)


def count_of(column: str, present: Collection[str]) -> str:
    """The vector that tells how many values of ``column`` there are."""
    return f"count {column}" if column in present else "count"


def vectors_of(question: Question, present: Collection[str]) -> list[str]:
    """The vectors that one question is answered from."""
    kind, column = question.kind, question.column
    if kind == "quantile":
        return [f"tree {column}"]
    found = []
    if kind != "sum" or (question.scale is not None and question.scale.center):
        found.append(count_of(column, present))
    if kind != "count":
        found.append(f"sum {column}")
    if kind in ("variance", "deviation"):
        found.append(f"squares {column}")
    return found


def views_of(
    questions: Sequence[Question],
    present: Collection[str],
    limit: Budget,
    rows_per_person: int = 1,
    *,
    groups: GroupRule = "public",
) -> tuple[View, ...]:
    """The views that ``questions`` need, each once; they share ``limit`` evenly.

    Args:
        questions: what to answer.
        present: the columns whose values are counted beside the rows.
        limit: the whole budget, in the unit that mechanisms charge.
        rows_per_person: how many rows of one person count.
        groups: whether they are public; else their counts take all of delta.
    """
    if not questions:
        raise ParameterError("questions", 0, "at least one")
    vectors = ["count"] if groups == "threshold" else []
    vectors = list(
        dict.fromkeys([*vectors, *(v for q in questions for v in vectors_of(q, present))])
    )
    share, found = limit / len(vectors), []
    if groups == "threshold":
        if not isinstance(limit, Approximate) or not limit.delta:
            raise ParameterError("delta", 0, "above 0 where groups are not public")
        stable = StableGroups((limit / len(vectors)).epsilon, limit.delta, rows_per_person)
        found.append(View(vectors.pop(0), "groups and counts", stable))
    if isinstance(share, Approximate):
        share = Pure(share.epsilon)
    for vector in vectors:
        kind = vector.partition(" ")[0]
        if kind == "tree":
            tree = CountTree(as_pure(share).epsilon, LEVELS, rows_per_person)
            found.append(View(vector, vector, tree))
            continue
        mechanism = noise(share, _REACH[kind] * rows_per_person)
        found.append(View(vector, f"{vector}{_unit(vector, questions)}", mechanism))
    return tuple(found)


def _unit(vector: str, questions: Sequence[Question]) -> str:
    """What one whole number of a vector is worth, for the receipt."""
    kind, _, column = vector.partition(" ")
    if kind == "count":
        return ""
    step = next(q.scale.step for q in questions if q.column == column and q.scale is not None)
    return f" (in steps of {step * step * STEPS if kind == 'squares' else step:g})"
