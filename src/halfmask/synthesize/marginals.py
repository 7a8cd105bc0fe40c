"""Select, measure, generate: noisy two-column tables joined in a graphical model.

Definition: measure every column; join columns by the pairs on which the model is (about) farthest
from the rows, a spanning tree first and further pairs after it, as many as the noise bears; draw
rows from the fitted model. All that is read of the rows are the noisy tables and the noisy choices
in the receipt.
Source: McKenna, Miklau, Sheldon, "Winning the NIST contest", 2021 (MST); McKenna et al., "AIM",
2022. Own: values too rare for the noise are merged first, and measured tables are moved towards the
model by empirical Bayes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Budget, Concentrated
from halfmask.dp.noisy_views import Guess
from halfmask.dp.vault import noise
from halfmask.synthesize.beliefs import Beliefs
from halfmask.synthesize.consistent import rows_from, shrunk, simplex
from halfmask.synthesize.draw import dealt, draw
from halfmask.synthesize.fit import Target, fitted
from halfmask.synthesize.grouping import joined, pooled
from halfmask.synthesize.junction import junction_tree

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.noisy_views import Measured, NoisyViews

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Pair = tuple[str, str]

ONES = Fraction(1, 5)  # the share of the budget that goes to single columns
CHOICES = Fraction(1, 20)  # the share that goes to choosing pairs
CELLS = 1 << 18  # how large the model may grow
GROUPS = 12  # how many groups an ordered column has at most
ROUNDS_PER_COLUMN = Fraction(8, 3)
POOR_ONES = Fraction(1, 2)  # what single columns get where the budget is poor
POOR_CHOICES = Fraction(1, 10)  # what choices get there
TOTAL = Fraction(1, 50)  # the share of epsilon that counts the rows
TOTAL_RHO = Fraction(1, 500)  # the same of rho, where noise grows only with its root
POOR = 0.25  # noise in the tables of a tree, as a share of the rows, that makes a budget poor
BEARABLE = 0.6  # noise in a pair's table beyond which no further pair is measured


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A distribution over groups of values, and how values are spread inside each group."""

    beliefs: Beliefs
    groups: Mapping[str, Ints]
    ones: Mapping[str, Floats]
    rows: int
    pairs: tuple[tuple[str, str], ...]

    def draw(self, rows: int, random: np.random.Generator) -> dict[str, Ints]:
        """``rows`` rows as public codes per column."""
        coarse = draw(self.beliefs, rows, random)
        fine = {}
        for name, groups in self.groups.items():
            inside = np.zeros((int(groups.max()) + 1, len(groups)))
            inside[groups, np.arange(len(groups))] = self.ones[name] + 1e-9
            others = _numbered([coarse[other] for other in coarse if other != name], rows)
            fine[name] = dealt(coarse[name], inside, random, beside=others)
        return fine


def _numbered(columns: Sequence[Ints], rows: int) -> Ints:
    """Per row, a number that rows share only if they agree on (most of) ``columns``."""
    number = np.zeros(rows, np.int64)
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if int(number.max(initial=0)) * width >= 1 << 62:
            break
        number = number * width + column
    return number


def learn(
    views: NoisyViews,
    *,
    ordered: Collection[str] = (),
    cells: int = CELLS,
    rounds: int | None = None,
) -> Model:
    """A model of the rows behind ``views``, for the whole of its budget.

    Args:
        views: the rows behind noisy answers.
        ordered: the columns whose neighboring codes are alike.
        cells: how large the model may grow.
        rounds: how many pairs to measure; by default a rule on public and noisy numbers.
    """
    plan = _plan(views)
    measured = _single_columns(views, views.limit * plan.ones)
    rows = rows_from(list(measured.values()))
    ones = {name: simplex(table.counts, rows) for name, table in measured.items()}
    rest = views.limit * (1 - plan.total - plan.ones - plan.choices)
    planned = rounds if rounds is not None else plan.rounds
    if planned < 1:
        return _independent(views.sizes, ones, rows)
    sigma = sqrt(noise(rest / planned, 1).variance)
    groups = {
        name: joined(ones[name], max(rows / GROUPS, 12 * sigma))
        if name in ordered
        else pooled(ones[name], 3 * sigma)
        for name in views.sizes
    }
    search = _Search(views.grouped(groups), rows, rest, planned, cells)
    search.start(
        {n: np.bincount(groups[n], ones[n]).astype(np.float64) for n in groups},
        {n: measured[n].variance * len(groups[n]) / (groups[n].max() + 1) for n in groups},
    )
    while search.step(views.limit * plan.choices / planned):
        pass
    return Model(search.finished(), groups, ones, round(rows), tuple(search.chosen))


def _independent(sizes: Mapping[str, int], ones: Mapping[str, Floats], rows: float) -> Model:
    """Columns that know nothing of each other."""
    kept = {name: np.maximum(table, 1e-9) for name, table in ones.items()}
    same = {name: np.arange(size) for name, size in sizes.items()}
    return Model(Beliefs.independent(sizes, kept), same, kept, round(rows), ())


def _single_columns(views: NoisyViews, whole: Budget) -> dict[str, Measured]:
    """Noisy counts of each column; columns with more values get more of the budget."""
    shares = _shares({name: float(size) for name, size in views.sizes.items()}, whole)
    return {name: views.count((name,), whole * shares[name]) for name in views.sizes}


def _shares(weights: Mapping[str, float], cost: Budget) -> dict[str, Fraction]:
    """Shares in proportion to the weights (rho) or their roots (epsilon), rounded down."""
    power = 1.0 if isinstance(cost, Concentrated) else 0.5
    total = sum(weight**power for weight in weights.values())
    return {n: Fraction(int(w**power / total * (1 << 40)), 1 << 40) for n, w in weights.items()}


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the budget is split and how many pairs are measured."""

    total: Fraction
    ones: Fraction
    choices: Fraction
    rounds: int


def _plan(views: NoisyViews) -> _Plan:
    """A rule on public numbers and the noisy number of rows.

    An ample budget buys a tree and more pairs, as many as their noise bears. A poor one goes to
    single columns, and to few pairs or none.
    """
    columns = len(views.sizes)
    total = TOTAL_RHO if isinstance(views.limit, Concentrated) else TOTAL
    rows = max(1.0, float(views.count((), views.limit * total).counts))
    if columns == 1:
        return _Plan(total, 1 - total, Fraction(0), 0)
    tree = columns - 1
    rest = views.limit * (1 - total - ONES - CHOICES)
    if _noise(views.sizes, rows, rest, tree) <= POOR:
        most = min(int(ROUNDS_PER_COLUMN * columns), columns * tree // 2)
        limit = BEARABLE if isinstance(views.limit, Concentrated) else BEARABLE / 3
        fitting = (t for t in range(most, tree, -1) if _noise(views.sizes, rows, rest, t) <= limit)
        return _Plan(total, ONES, CHOICES, next(fitting, tree))
    rest = views.limit * (1 - total - POOR_ONES - POOR_CHOICES)
    fitting = (t for t in range(tree, 0, -1) if _noise(views.sizes, rows, rest, t) <= BEARABLE)
    rounds = next(fitting, 0)
    return (
        _Plan(total, POOR_ONES, POOR_CHOICES, rounds)
        if rounds
        else _Plan(total, 1 - total, Fraction(0), 0)
    )


def _noise(sizes: Mapping[str, int], rows: float, rest: Budget, pairs: int) -> float:
    """The noise in a typical pair's table, as a share of the rows, where ``pairs`` are measured."""
    cells = [min(a, GROUPS) * min(b, GROUPS) for a, b in combinations(sizes.values(), 2)]
    return sqrt(noise(rest / pairs, 1).variance) * float(np.median(cells)) / rows


class _Search:
    """The growing model: which pairs are measured, what they said, and what is left to spend."""

    def __init__(
        self, views: NoisyViews, rows: float, rest: Budget, planned: int, cells: int
    ) -> None:
        self.views, self.rows, self.left, self.planned, self.cells = (
            views,
            rows,
            rest,
            planned,
            cells,
        )
        self.chosen: list[Pair] = []
        self.targets: list[Target] = []
        self.parts = {name: name for name in views.sizes}  # columns joined by pairs so far
        pairs = list(combinations(views.sizes, 2))
        self.sizes = {(a, b): views.sizes[a] * views.sizes[b] for a, b in pairs}
        self.typical = float(np.median(list(self.sizes.values())))

    def start(self, ones: Mapping[str, Floats], variances: Mapping[str, float]) -> None:
        """Begin with independent columns."""
        self.beliefs = Beliefs.independent(
            self.views.sizes, {name: np.maximum(table, 1e-3) for name, table in ones.items()}
        )
        self.targets = [Target((n,), ones[n], variances[n]) for n in ones]

    def step(self, choice: Budget) -> bool:
        """Choose one pair, measure it and fit; False when nothing can be added."""
        candidates = self._candidates()
        if len(self.chosen) == self.planned or not candidates or self.left == self.left * 0:
            return False
        costs = {pair: self._cost(pair) for pair in candidates}
        guesses = [self._guess(pair, costs[pair]) for pair in candidates]
        pair = candidates[self.views.worst(guesses, choice)]
        believed = self.rows * self.beliefs.marginal(pair)
        seen = self.views.count(pair, costs[pair])
        self.left = self.left - costs[pair]
        self._join(pair)
        counts = shrunk(seen.counts.astype(np.float64), believed, seen.variance)
        self.targets.append(Target(pair, counts, seen.variance))
        self.beliefs = fitted(self.beliefs.extended([pair]), self.targets, self.rows, steps=30)
        return True

    def finished(self) -> Beliefs:
        """The model after a longer fit."""
        return fitted(self.beliefs, self.targets, self.rows, steps=100)

    def _candidates(self) -> list[Pair]:
        """Pairs that join columns not yet joined, then all that keep the model small enough."""
        new = [pair for pair in self.sizes if pair not in self.chosen]
        if len(self.chosen) < len(self.parts) - 1:
            return [(a, b) for a, b in new if self.parts[a] != self.parts[b]]
        held = self.beliefs.tree.cliques
        sizes = self.views.sizes
        return [p for p in new if junction_tree(sizes, [*held, p]).cells <= self.cells]

    def _cost(self, pair: Pair) -> Budget:
        """What to spend on a pair: more for larger tables, never more than is left."""
        open_rounds = self.planned - len(self.chosen)
        power = 0.5 if isinstance(self.left, Concentrated) else 0.25
        if open_rounds == 1:
            return self.left
        factor = (self.sizes[pair] / self.typical) ** power / open_rounds
        return self.left * min(Fraction(1), Fraction(int(factor * (1 << 20)) + 1, 1 << 20))

    def _guess(self, pair: Pair, cost: Budget) -> Guess:
        believed = np.rint(self.rows * self.beliefs.marginal(pair)).astype(np.int64)
        expected = sqrt(2 / pi * noise(cost, 1).variance) * believed.size
        return Guess(pair, believed, penalty=round(0.7 * expected))

    def _join(self, pair: Pair) -> None:
        self.chosen.append(pair)
        old, new = self.parts[pair[1]], self.parts[pair[0]]
        self.parts = {n: new if part == old else part for n, part in self.parts.items()}
