"""Marginals: select, measure, generate, by noisy two-column tables joined in a graphical model.

Definition: measure every column; join columns by the pairs on which the model is (about) farthest
from the rows, a spanning tree first and further pairs after it, as many as the noise bears; draw
rows from the fitted model. All that is read of the rows are the noisy tables and the noisy choices
in the receipt.
Source: McKenna, Miklau, Sheldon, "Winning the NIST contest", 2021 (MST); McKenna et al., "AIM",
2022; the fit: McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for
differential privacy", 2019, the step of each cell scaled by its size, so that rare cells keep up.
Own: values too rare for the noise are merged first, by noisy counts alone; counts of ordered
columns are smoothed; measured tables are moved towards the model by empirical Bayes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import log, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Budget, Concentrated
from halfmask.dp.views import Guess, NoisyCounts, noise
from halfmask.errors import ParameterError
from halfmask.synthesize.inference import (
    Beliefs,
    MarginalTarget,
    align_axes,
    allowed_cells,
    count_cells,
    draw,
    draw_members,
    exclude,
    fit_beliefs,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.views import NoisyViews
    from halfmask.synthesize.prior import PublicPrior

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Pair = tuple[str, str]
    Masks = Mapping[str, NDArray[np.bool_]]


def simplex(noisy: NDArray[np.int64] | Floats, total: float) -> Floats:
    """The nearest non-negative table whose cells sum to ``total``.

    Setting negative counts to 0 would add half a noise scale per empty cell: with 17,280 cells at
    epsilon 0.01 some 864,000 rows that nobody has.

    Example:
        >>> simplex(np.array([5.0, 1.0, -2.0]), 4.0).tolist()
        [4.0, 0.0, 0.0]
    """
    flat = noisy.astype(np.float64).ravel()
    falling = np.sort(flat)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(flat) + 1)
    kept = np.flatnonzero(falling > excess)
    shift = excess[kept[-1]] if len(kept) else excess[-1]
    moved: Floats = np.maximum(flat - shift, 0.0).reshape(noisy.shape)
    return moved


def rows_from(tables: Sequence[NoisyCounts]) -> float:
    """The number of rows that several noisy tables agree on, weighted by their precision."""
    weights = np.array([1 / (t.counts.size * t.variance + 1e-9) for t in tables])
    sums = np.array([float(t.counts.sum()) for t in tables])
    return max(1.0, float((weights * sums).sum() / weights.sum()))


def shrink(noisy: Floats, believed: Floats, variance: float, power: float = 0.6) -> Floats:
    """``noisy`` moved towards ``believed`` as far as the noise exceeds what differs beyond it.

    Empirical Bayes: a cell is taken to differ from what is believed with a variance proportional to
    ``believed**power``, whose scale is estimated from the noisy table itself.
    """
    spread = np.maximum(believed, 1e-9) ** power
    scale = (((noisy - believed) ** 2 - variance) * spread).sum() / (spread**2).sum()
    signal = max(float(scale), 0.0) * spread
    moved: Floats = believed + (noisy - believed) * signal / (signal + variance)
    return moved


SURE = 2.5  # deviations of noise that a step between neighbors must have to be kept


def smooth_counts(noisy: Floats, variance: float) -> Floats:
    """Counts of an ordered column with the steps between neighbors left out that noise explains.

    Haar wavelets over all shifts (Coifman, Donoho, "Translation-invariant de-noising", 1995): the
    differences of neighboring stretches of 1, 2, 4, ... values stay where they are large, so that a
    value that many share stays alone, and a slope becomes smooth. It sees noisy counts only.

    Example:
        >>> smooth_counts(np.array([5.0, 7.0, 6.0, 90.0, 5.0, 7.0, 6.0, 6.0]), 1.0).round().tolist()
        [6.0, 6.0, 6.0, 90.0, 6.0, 6.0, 6.0, 6.0]
    """
    count = len(noisy)
    found: Floats = np.concatenate([noisy, noisy[::-1]])  # the ends are no neighbors
    steps: list[tuple[int, Floats]] = []
    width = 1
    while width < count:
        other = np.roll(found, -width)
        step = (found - other) / 2
        found = (found + other) / 2
        variance /= 2
        steps.append((width, np.where(np.abs(step) >= SURE * sqrt(variance), step, 0.0)))
        width *= 2
    for width, step in reversed(steps):
        found = (found + step + np.roll(found - step, width)) / 2
    return found[:count]


def pool_small(counts: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """Per value, its group: values below ``least`` share the last one.

    Example:
        >>> pool_small(np.array([50.0, 1.0, 40.0, 2.0]), 10).tolist()
        [0, 2, 1, 2]
    """
    large = counts >= least
    if large.sum() >= len(counts) - 1:  # a group of one rare value is that value
        return np.arange(len(counts))
    return np.where(large, np.cumsum(large) - 1, large.sum()).astype(np.int64)


LEFT_OVER = 1 / 3  # of the least, that the last group of an ordered column needs


def join_small(counts: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """Per value of an ordered column, its group of neighbors with ``least`` rows or more.

    What is left over at the end stays apart with a third of that: where most people share the first
    value, such as 0, the others would else join it, and the column would tell nothing.

    Example:
        >>> join_small(np.array([5.0, 5.0, 1.0, 9.0, 1.0]), 8).tolist()
        [0, 0, 1, 1, 1]
        >>> join_small(np.array([90.0, 2.0, 1.0, 1.0]), 10).tolist()
        [0, 1, 1, 1]
    """
    groups = np.zeros(len(counts), np.int64)
    group, held = 0, 0.0
    for value, count in enumerate(counts):
        if held >= least:
            group, held = group + 1, 0.0
        groups[value] = group
        held += float(count)
    if held < least * LEFT_OVER and group:  # joins the group before
        groups[groups == group] = group - 1
    return groups


ONES = Fraction(1, 5)  # the share of the budget that goes to single columns
CHOICES = Fraction(1, 20)  # the share that goes to choosing pairs, at least
MOST_CHOICES = Fraction(1, 6)  # the same where there are many columns
MISS = 0.04  # of the rows, by which a choice among the pairs of a tree may be off
CELLS = 1 << 18  # how large the model may grow
GROUPS = 12  # how many groups an ordered column has at most, about
ROUNDS_PER_COLUMN = Fraction(8, 3)
POOR_ONES = Fraction(1, 2)  # what single columns get where the budget is poor
POOR_CHOICES = Fraction(1, 10)  # what choices get there
TOTAL = Fraction(1, 50)  # the share of epsilon that counts the rows
TOTAL_RHO = Fraction(1, 500)  # the same of rho, where noise grows only with its root
POOR = 0.25  # noise in the tables of a tree, as a share of the rows, that makes a budget poor
MOST_COLUMNS = 100  # with pairs to choose from, beyond which time would have no bound
MOST_PAIRS = 600  # that one round looks at: all of 35 columns
BEARABLE = 0.6  # noise in a pair's table beyond which no further pair is measured
JOINING = 4  # times as much is spent on choosing a pair of the tree as on one beyond it
QUIET = 0.5  # of the noise, that a pair beyond the tree must teach at least
QUIET_PAIRS = 3  # how many in a row that teach less end the search


@dataclass(frozen=True, slots=True, eq=False)
class MarginalsModel:
    """A distribution over groups of values, and how values are spread inside each group."""

    beliefs: Beliefs
    groups: Mapping[str, Ints]
    ones: Mapping[str, Floats]
    rows: int
    pairs: tuple[tuple[str, ...], ...]

    def draw(self, rows: int, random: np.random.Generator) -> dict[str, Ints]:
        """``rows`` rows as public codes per column."""
        coarse = draw(self.beliefs, rows, random)
        # Rows of one group of a column agree on it: by all columns is then by the others.
        alike = _number_rows(list(coarse.values()), rows)
        fine = {}
        for name, groups in self.groups.items():
            weights = self.ones[name] + 1e-9
            fine[name] = draw_members(coarse[name], groups, weights, random, beside=alike)
        return fine

    def given(self, held: Masks) -> MarginalsModel:
        """The same distribution given that columns hold some of their values."""
        ones = dict(self.ones)
        beliefs = self.beliefs.copy()
        for name, mask in held.items():
            ones[name] = np.where(mask, np.maximum(ones[name], 1e-9), 0.0)
            groups = self.groups[name]
            before = np.bincount(groups, self.ones[name] + 1e-9)
            share = np.bincount(groups, ones[name], minlength=len(before)) / before
            home = beliefs.tree.holder((name,))
            assert home is not None  # noqa: S101 - every column lies in a clique
            beliefs.multiply({home: align_axes(share, (name,), beliefs.tree.cliques[home])})
        return replace(self, beliefs=beliefs, ones=ones)


def _number_rows(columns: Sequence[Ints], rows: int) -> Ints:
    """Per row, a number below theirs that rows share only if they agree on most ``columns``."""
    number = np.zeros(rows, np.int64)
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if int(number.max(initial=0)) * width >= 1 << 62:
            break
        number = number * width + column
    return np.unique(number, return_inverse=True)[1].astype(np.int64)


def learn(
    views: NoisyViews,
    *,
    ordered: Collection[str] = (),
    cells: int = CELLS,
    rounds: int | None = None,
    zeros: Sequence[Masks] = (),
    prior: PublicPrior | None = None,
) -> MarginalsModel:
    """A model of the rows behind ``views``, for the whole of its budget.

    Args:
        views: the rows behind noisy answers.
        ordered: the columns whose neighboring codes are alike.
        cells: how large the model may grow.
        rounds: how many pairs to measure; by default a rule on public and noisy numbers.
        zeros: combinations that cannot occur, as per column the codes that are part of one.
        prior: public rows that tell how columns may go together.

    Raises:
        ParameterError: there are more columns than a model is made of.
    """
    require_few(views.sizes)
    plan = split_budget(views, prior)
    measured = count_each_column(views, views.limit * plan.ones)
    rows = rows_from(list(measured.values()))
    ones = usable_counts(measured, rows, prior, ordered)
    rest = views.limit * (1 - plan.total - plan.ones - plan.choices)
    planned = rounds if rounds is not None else plan.rounds
    if planned is None:
        planned = bearable_rounds(ones, rows, rest, ordered, zeros)
    if planned < 1:
        ones = count_again(views, plan, measured, rows, prior, ordered)
        return independent_columns(views.sizes, ones, rows, zeros, cells, prior)
    sigma = sqrt(noise(rest / planned, 1).variance)
    groups, coarse = merge_values(ones, rows, sigma, ordered, zeros)
    search = PairSelection(views.recode(groups), rows, rest, planned, cells, coarse)
    search.start(groups, ones, measured, prior)
    search.choosing = views.limit * plan.choices
    while search.step():
        pass
    search.spend_rest()
    return MarginalsModel(search.finish(), groups, ones, round(rows), tuple(search.chosen))


def require_few(sizes: Mapping[str, int]) -> None:
    """Refuse more columns than a model is chosen of in bounded time; their number is public.

    Raises:
        ParameterError: there are too many.
    """
    if len(sizes) > MOST_COLUMNS:
        raise ParameterError(
            "columns",
            len(sizes),
            f"at most {MOST_COLUMNS}: leave some out, and where rows are drawn together (each row "
            "of one has its own) take fewer rows_per_person, or name those that are constant",
        )


def usable_counts(
    measured: Mapping[str, NoisyCounts],
    rows: float,
    prior: PublicPrior | None,
    ordered: Collection[str] = (),
) -> dict[str, Floats]:
    """Counts of each column without negatives, nearer to public rows the more noise they have.

    Neighbors in an ordered column are alike where no public row tells otherwise.
    """
    found = {}
    for name, table in measured.items():
        counts = table.counts.astype(np.float64)
        if prior is not None and name in prior.codes:
            believed = rows * prior.shares(name, len(counts))
            counts = shrink(counts, believed, table.variance)
        elif name in ordered:
            counts = smooth_counts(counts, table.variance)
        found[name] = simplex(counts, rows)
    return found


def independent_columns(
    sizes: Mapping[str, int],
    ones: Mapping[str, Floats],
    rows: float,
    zeros: Sequence[Masks],
    cells: int,
    prior: PublicPrior | None = None,
) -> MarginalsModel:
    """Columns that know nothing of each other, but for what cannot occur and public rows say."""
    kept = {name: np.maximum(table, 1e-9) for name, table in ones.items()}
    same = {name: np.arange(size) for name, size in sizes.items()}
    beliefs = exclude(Beliefs.independent(sizes, kept), zeros, cells)
    if prior is not None:
        beliefs = prior.begin(beliefs, cells)
    if zeros or prior is not None:
        aims = [MarginalTarget((name,), table, 1.0) for name, table in kept.items()]
        beliefs = fit_beliefs(beliefs, aims, rows, steps=30)
    return MarginalsModel(beliefs, same, kept, round(rows), ())


def merge_values(
    ones: Mapping[str, Floats],
    rows: float,
    sigma: float,
    ordered: Collection[str],
    zeros: Sequence[Masks],
) -> tuple[dict[str, Ints], list[dict[str, NDArray[np.bool_]]]]:
    """Per column the group of each value, those too rare for the noise merged; ``zeros`` in them.

    Args:
        ones: noisy counts of each column.
        rows: how many rows there are, about.
        sigma: the noise of a cell that will be measured.
        ordered: the columns whose neighboring codes are alike.
        zeros: combinations that cannot occur, as per column the codes that are part of one.
    """
    found = {
        name: join_small(counts, max(_least(counts, rows), 12 * sigma))
        if name in ordered
        else pool_small(counts, 3 * sigma)
        for name, counts in ones.items()
    }
    groups = {name: split_groups(held, name, zeros) for name, held in found.items()}
    return groups, [{n: group_mask(mask, groups[n]) for n, mask in one.items()} for one in zeros]


def _least(counts: Floats, rows: float) -> float:
    """How many rows a group of neighbors should have beside values that are a group alone."""
    # Values that are a group alone use up their rows: the others share the rest.
    large = counts >= rows / GROUPS
    return max(0.0, rows - float(counts[large].sum())) / max(1, GROUPS - int(large.sum()))


def split_groups(groups: Ints, name: str, zeros: Sequence[Masks]) -> Ints:
    """The groups cut so that each lies inside or outside of every impossible combination."""
    for one in zeros:
        if name in one:
            groups = np.unique(2 * groups + one[name], return_inverse=True)[1].astype(np.int64)
    return groups


def group_mask(mask: NDArray[np.bool_], groups: Ints) -> NDArray[np.bool_]:
    """The same codes as groups, of which each lies inside or outside."""
    found = np.zeros(int(groups.max()) + 1, dtype=bool)
    found[groups] = mask
    return found


def count_each_column(views: NoisyViews, whole: Budget) -> dict[str, NoisyCounts]:
    """Noisy counts of each column; columns with more values get more of the budget."""
    shares = _shares({name: float(size) for name, size in views.sizes.items()}, whole)
    return {name: views.count((name,), whole * shares[name]) for name in views.sizes}


def _shares(weights: Mapping[str, float], cost: Budget) -> dict[str, Fraction]:
    """Shares that make the sum of all deviations least, each weighted so; rounded down."""
    # The minimum of sum(w / share**a), by Lagrange: a = 1/2 for rho, 1 for epsilon.
    power = 2 / 3 if isinstance(cost, Concentrated) else 0.5
    total = sum(weight**power for weight in weights.values())
    return {n: Fraction(int(w**power / total * (1 << 40)), 1 << 40) for n, w in weights.items()}


@dataclass(frozen=True, slots=True)
class BudgetSplit:
    """How the budget is split and how many pairs are measured."""

    total: Fraction
    ones: Fraction
    choices: Fraction
    rounds: int | None

    @property
    def poor(self) -> bool:
        """Whether most goes to single columns."""
        return self.ones == POOR_ONES


def split_budget(views: NoisyViews, prior: PublicPrior | None = None) -> BudgetSplit:
    """A rule on public numbers and the noisy number of rows.

    An ample budget buys a tree and more pairs, as many as their noise bears. A poor one goes to
    single columns, and to few pairs or none: of rho as many as the columns' counts bear, which
    ``None`` leaves open.
    """
    columns = len(views.sizes)
    total = TOTAL_RHO if isinstance(views.limit, Concentrated) else TOTAL
    rows = max(1.0, float(views.count((), views.limit * total).counts))
    if columns == 1:
        return BudgetSplit(total, 1 - total, Fraction(0), 0)
    tree = columns - 1
    rest = views.limit * (1 - total - ONES - CHOICES)
    if _noise(views.sizes, rows, rest, tree) <= POOR:
        most = min(int(ROUNDS_PER_COLUMN * columns), columns * tree // 2)
        limit = BEARABLE if isinstance(views.limit, Concentrated) else BEARABLE / 3
        fitting = (t for t in range(most, tree, -1) if _noise(views.sizes, rows, rest, t) <= limit)
        return BudgetSplit(total, ONES, _choices(columns, rows, views.limit), next(fitting, tree))
    if prior is None and isinstance(views.limit, Concentrated):
        return BudgetSplit(total, POOR_ONES, POOR_CHOICES, None)
    # To count columns twice would cost pure epsilon dearly, and merged values lose a prior's.
    rest = views.limit * (1 - total - POOR_ONES - POOR_CHOICES)
    fitting = (t for t in range(tree, 0, -1) if _noise(views.sizes, rows, rest, t) <= BEARABLE)
    rounds = next(fitting, 0)
    return (
        BudgetSplit(total, POOR_ONES, POOR_CHOICES, rounds)
        if rounds
        else BudgetSplit(total, 1 - total, Fraction(0), 0)
    )


def _choices(columns: int, rows: float, whole: Budget) -> Fraction:
    """The share for choices: what finds a tree's pairs where they differ by ``MISS`` of the rows.

    Chosen among many with little, columns of rare values would be joined with just any other.
    """
    epsilon = 2 * log(columns * (columns - 1) / 2) / (MISS * rows)
    cost = epsilon**2 / 8 if isinstance(whole, Concentrated) else epsilon
    needed = Fraction(cost * (columns - 1)).limit_denominator(10**9) / whole.parts()[0]
    return min(max(CHOICES, needed), MOST_CHOICES)


def bearable_rounds(
    ones: Mapping[str, Floats],
    rows: float,
    rest: Budget,
    ordered: Collection[str],
    zeros: Sequence[Masks],
) -> int:
    """How many pairs rho bears, with values merged as the noise of so many demands."""
    for rounds in range(len(ones) - 1, 0, -1):
        sigma = sqrt(noise(rest / rounds, 1).variance)
        groups, _ = merge_values(ones, rows, sigma, ordered, zeros)
        sizes = [int(held.max()) + 1 for held in groups.values()]
        cells = [a * b for a, b in combinations(sizes, 2)]
        if sigma * float(np.median(cells)) / rows <= BEARABLE:
            return rounds
    return 0


def count_again(
    views: NoisyViews,
    plan: BudgetSplit,
    measured: Mapping[str, NoisyCounts],
    rows: float,
    prior: PublicPrior | None,
    ordered: Collection[str],
) -> dict[str, Floats]:
    """Counts of each column for all that is left, where no pair is measured."""
    left = 1 - plan.total - plan.ones
    if left > 0:
        again = count_each_column(views, views.limit * left)
        measured = {name: _both(table, again[name]) for name, table in measured.items()}
    return usable_counts(measured, rows, prior, ordered)


def _both(a: NoisyCounts, b: NoisyCounts) -> NoisyCounts:
    """Two tables of the same columns as one, weighted by their precision."""
    share = b.variance / (a.variance + b.variance + 1e-9)
    joined = np.rint(share * a.counts + (1 - share) * b.counts).astype(np.int64)
    return NoisyCounts(a.columns, joined, share * a.variance)


def _noise(sizes: Mapping[str, int], rows: float, rest: Budget, pairs: int) -> float:
    """The noise in a typical pair's table, as a share of the rows, where ``pairs`` are measured."""
    cells = [min(a, GROUPS) * min(b, GROUPS) for a, b in combinations(sizes.values(), 2)]
    return sqrt(noise(rest / pairs, 1).variance) * float(np.median(cells)) / rows


class PairSelection:
    """The growing model: which pairs are measured, what they said, and what is left to spend."""

    def __init__(
        self,
        views: NoisyViews,
        rows: float,
        rest: Budget,
        planned: int,
        cells: int,
        zeros: Sequence[Masks] = (),
    ) -> None:
        self.views, self.rows, self.left, self.planned = views, rows, rest, planned
        self.cells, self.zeros = cells, zeros
        self.prior: PublicPrior | None = None
        self.chosen: list[Pair] = []
        self.targets: list[MarginalTarget] = []
        self.choosing = rest * 0  # what is left for choices
        self.quiet = 0  # pairs in a row that taught less than noise
        self.parts = {name: name for name in views.sizes}  # columns joined by pairs so far
        pairs = list(combinations(views.sizes, 2))
        self.sizes = {(a, b): views.sizes[a] * views.sizes[b] for a, b in pairs}
        self.typical = float(np.median(list(self.sizes.values())))

    def start(
        self,
        groups: Mapping[str, Ints],
        ones: Mapping[str, Floats],
        measured: Mapping[str, NoisyCounts],
        prior: PublicPrior | None,
    ) -> None:
        """Begin with independent columns, whose values stand in ``groups``."""
        self.prior = None if prior is None else prior.recode(groups)
        counts = {n: np.bincount(groups[n], ones[n]).astype(np.float64) for n in groups}
        self.beliefs = Beliefs.independent(
            self.views.sizes, {name: np.maximum(table, 1e-3) for name, table in counts.items()}
        )
        for name, table in counts.items():
            # A group holds the noise of all values in it; those of a column are taken as alike.
            variance = measured[name].variance * len(groups[name]) / len(table)
            self.targets.append(MarginalTarget((name,), table, variance))
        if self.zeros:
            self.beliefs = exclude(self.beliefs, self.zeros, self.cells)
        if self.prior is not None:
            self.beliefs = self.prior.begin(self.beliefs, self.cells)
        if self.zeros or self.prior is not None:
            self.beliefs = fit_beliefs(self.beliefs, self.targets, self.rows, steps=30)
        self.beginning = self.beliefs

    def step(self) -> bool:
        """Choose one pair, measure it and fit; False when nothing can be added, or is to learn."""
        candidates = [] if self.quiet == QUIET_PAIRS else self._candidates()
        if len(self.chosen) == self.planned or not candidates or self.left == self.left * 0:
            return False
        costs = {pair: self._cost(pair) for pair in candidates}
        guesses = [self._guess(pair, costs[pair]) for pair in candidates]
        choice = self._choice()
        pair = candidates[self.views.worst(guesses, choice)]
        self.choosing = self.choosing - choice
        believed = self.rows * self.beliefs.marginal(pair)
        variance = self.measure(pair, costs[pair], believed)
        if self.parts[pair[0]] == self.parts[pair[1]]:
            learned = float(np.abs(self.rows * self.beliefs.marginal(pair) - believed).sum())
            little = learned <= QUIET * sqrt(2 / pi * variance) * believed.size
            self.quiet = self.quiet + 1 if little else 0
        self._join(pair)
        return True

    def _choice(self) -> Budget:
        """What to spend on a choice: more for those that join columns, which loops cannot mend."""
        rounds = self.planned - len(self.chosen)
        joins = min(rounds, len(set(self.parts.values())) - 1)
        weight = JOINING if joins else 1
        return self.choosing * Fraction(weight, JOINING * joins + rounds - joins)

    def spend_rest(self) -> None:
        """Count once more for what no pair could be found for: it is paid already.

        The pairs, where no other one would tell more; else the columns.
        """
        self.left, self.choosing = self.left + self.choosing, self.choosing * 0
        if not self.left > self.left * 0:
            return
        if self.quiet == QUIET_PAIRS:
            self._count_pairs_again()
            return
        rest = self.left / len(self.views.sizes)
        for name in self.views.sizes:
            self.measure((name,), rest, self.rows * self.beliefs.marginal((name,)))

    def _count_pairs_again(self) -> None:
        weights = {str(i): float(self.sizes[pair]) for i, pair in enumerate(self.chosen)}
        whole, shares = self.left, _shares(weights, self.left)
        for i, pair in enumerate(self.chosen):
            cost = self.left if i == len(self.chosen) - 1 else whole * shares[str(i)]
            before = next(target for target in self.targets if target.columns == pair)
            variance = self.measure(pair, cost, self.rows * self.beliefs.marginal(pair))
            # It was moved towards a model that knows the first table: it stands for both.
            again = self.targets.pop()
            self.targets.remove(before)
            joined = 1 / (1 / before.variance + 1 / variance)
            self.targets.append(replace(again, variance=joined))

    def measure(self, columns: tuple[str, ...], cost: Budget, believed: Floats) -> float:
        """Count a table and fit the model to it too; returns the variance of its noise."""
        seen = self.views.count(columns, cost)
        self.left = self.left - cost
        counts = shrink(seen.counts.astype(np.float64), believed, seen.variance)
        counts = counts * allowed_cells(columns, self.views.sizes, self.zeros)
        self.targets.append(MarginalTarget(columns, counts, seen.variance))
        self.beliefs = self.fit(columns)
        return seen.variance

    def finish(self) -> Beliefs:
        """The model after a longer fit; what was paid for is delivered, whatever numbers do."""
        found = fit_beliefs(self.beliefs, self.targets, self.rows, steps=100)
        return found if found.finite else self.beginning

    def fit(self, columns: tuple[str, ...]) -> Beliefs:
        """The model that holds ``columns`` too; one that numbers cannot hold is begun anew."""
        grown = self.beliefs.extended([columns])
        if not grown.finite:
            grown = self.beginning.on(grown.tree)
        return fit_beliefs(grown, self.targets, self.rows, steps=30)

    def _candidates(self) -> list[Pair]:
        """Pairs that join columns not yet joined, else all others; each keeps the model small."""
        new = [pair for pair in self.sizes if pair not in self.chosen]
        apart = [(a, b) for a, b in new if self.parts[a] != self.parts[b]]
        if self.zeros or self.prior is not None:  # some columns lie in one clique already
            return self._small(apart) or self._small(new)
        # A pair that makes no loop adds its own cells, less those of columns that stood alone.
        room = self.cells - self.beliefs.tree.cells
        alone = {held[0]: self.views.sizes[held[0]] for held in self.beliefs.tree.cliques
                 if len(held) == 1}  # fmt: skip
        grown = {(a, b): self.sizes[a, b] - alone.get(a, 0) - alone.get(b, 0) for a, b in apart}
        fitting = [pair for pair in apart if grown[pair] <= room]
        return list(self._turns(fitting)[0]) if fitting else self._small(new)

    def _small(self, pairs: Sequence[Pair]) -> list[Pair]:
        held, sizes = self.beliefs.tree.cliques, self.views.sizes
        for dealt in self._turns(pairs):
            small = [p for p in dealt if count_cells(sizes, [*held, p]) <= self.cells]
            if small:
                return small
        return []

    def _turns(self, pairs: Sequence[Pair]) -> list[Sequence[Pair]]:
        """The pairs dealt out, so that no round looks at too many; this round's come first."""
        turns = -(-len(pairs) // MOST_PAIRS)
        return [pairs[(len(self.chosen) + turn) % turns :: turns] for turn in range(turns)]

    def _cost(self, pair: Pair) -> Budget:
        """What to spend on a pair: more for larger tables, never more than is left."""
        open_rounds = self.planned - len(self.chosen)
        power = 0.5 if isinstance(self.left, Concentrated) else 0.25
        if open_rounds == 1:
            return self.left
        factor = (self.sizes[pair] / self.typical) ** power / open_rounds
        return self.left * min(Fraction(1), Fraction(int(factor * (1 << 20)) + 1, 1 << 20))

    def _guess(self, pair: Pair, cost: Budget) -> Guess:
        believed = self.rows * self.beliefs.marginal(pair)
        expected = sqrt(2 / pi * noise(cost, 1).variance) * believed.size
        return Guess.of(pair, believed, penalty=round(0.7 * expected))

    def _join(self, pair: Pair) -> None:
        self.chosen.append(pair)
        old, new = self.parts[pair[1]], self.parts[pair[0]]
        self.parts = {n: new if part == old else part for n, part in self.parts.items()}
