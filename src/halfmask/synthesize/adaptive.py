"""Adaptive marginals: tables of one, two or three columns, chosen where the model is worst.

Definition: measure every column; then, in rounds, let the exponential mechanism choose the table on
which the model is (about) farthest from the rows beyond the noise it would be measured with, of
those that keep the model small; measure it, fit the model, and where it taught less than its noise,
spend four times as much (twice, under pure epsilon) from then on. What is left at the end goes to
one last table. Tables may be chosen again.
Source: McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism for
differentially private synthetic data", 2022. Own: values too rare for the noise are merged first,
a poor budget goes to columns, tables are moved towards the model by empirical Bayes, and rounds
start larger, so that there are fewer of them.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import pi, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.budget import Concentrated
from halfmask.dp.views import Guess, noise
from halfmask.errors import ParameterError
from halfmask.synthesize.inference import count_cells
from halfmask.synthesize.marginals import (
    CELLS,
    MarginalsModel,
    PairSelection,
    bearable_rounds,
    count_again,
    count_each_column,
    independent_columns,
    merge_values,
    require_few,
    rows_from,
    split_budget,
    usable_counts,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.budget import Budget
    from halfmask.dp.views import NoisyViews
    from halfmask.synthesize.prior import PublicPrior

    Masks = Mapping[str, NDArray[np.bool_]]

ROUNDS_PER_COLUMN = 3  # how many rounds the first round's cost would last, for each column
CHOOSING = Fraction(1, 10)  # the share of a round that chooses its table
MOST_TABLES = 300  # tables that one round looks at
MOST_SET = 20_000  # cells of a table of three columns
SMALL = 1 << 12  # cells that the model may have from the start


def learn(
    views: NoisyViews,
    *,
    ordered: Collection[str] = (),
    degree: int = 2,
    cells: int = CELLS,
    rounds: int | None = None,
    zeros: Sequence[Masks] = (),
    prior: PublicPrior | None = None,
) -> MarginalsModel:
    """A model of the rows behind ``views``, for the whole of its budget.

    Args:
        views: the rows behind noisy answers.
        ordered: the columns whose neighboring codes are alike.
        degree: of how many columns tables are, at most; 3 keeps what three columns have together.
        cells: how large the model may grow.
        rounds: how many rounds the budget would last at the first round's cost.
        zeros: combinations that cannot occur, as per column the codes that are part of one.
        prior: public rows that tell how columns may go together.
    """
    if degree not in (2, 3):
        raise ParameterError("degree", degree, "2 or 3")
    require_few(views.sizes)
    if rounds is not None and rounds < 1:
        raise ParameterError("rounds", rounds, "1 or more")
    plan = split_budget(views, prior)  # a poor budget goes to columns, and to few tables or none
    measured = count_each_column(views, views.limit * plan.ones)
    rows = rows_from(list(measured.values()))
    ones = usable_counts(measured, rows, prior, ordered)
    rest = views.limit * (1 - plan.total - plan.ones)
    fitting = plan.rounds
    if fitting is None:
        fitting = bearable_rounds(ones, rows, rest, ordered, zeros)
    if fitting < 1:
        ones = count_again(views, plan, measured, rows, prior, ordered)
        return independent_columns(views.sizes, ones, rows, zeros, cells, prior)
    many = fitting if plan.poor else ROUNDS_PER_COLUMN * len(views.sizes)
    planned = rounds or many
    sigma = sqrt(noise(rest * (1 - CHOOSING) / planned, 1).variance)
    groups, coarse = merge_values(ones, rows, sigma, ordered, zeros)
    search = TableSelection(views.recode(groups), rows, rest, planned, cells, coarse)
    search.start(groups, ones, measured, prior)
    tables = search.run(degree)
    return MarginalsModel(search.finish(), groups, ones, round(rows), tables)


class TableSelection(PairSelection):
    """The growing model, by rounds whose cost rises where the model has little to learn."""

    def run(self, degree: int) -> tuple[tuple[str, ...], ...]:
        """Choose, measure and fit until the budget is spent; the tables that were chosen."""
        tables = []
        whole = self.left
        sets, alone = self._sets(degree), [(name,) for name in self.views.sizes]
        cost, turn, last = whole / self.planned, 0, False
        while not last:
            # A rest that pays no second round goes into this one.
            last = not cost * 2 <= self.left
            cost = self.left if last else cost
            used = 1 - self.left.parts()[0] / whole.parts()[0]
            limit = max(min(SMALL, self.cells), int(self.cells * float(used)))
            # Columns lie in every model: they are left where no table of this turn is small enough.
            candidates = self._fitting(sets[turn % len(sets)], limit) or alone
            measuring = cost * (1 - CHOOSING)
            guesses = [self._farthest(columns, measuring) for columns in candidates]
            columns = candidates[self.views.worst(guesses, cost * CHOOSING)]
            self.left = self.left - cost * CHOOSING
            believed = self.rows * self.beliefs.marginal(columns)
            variance = self.measure(columns, measuring, believed)
            tables.append(columns)
            learned = np.abs(self.rows * self.beliefs.marginal(columns) - believed).sum()
            # The table taught less than its noise is expected to move cells by (its mean absolute
            # value): the next ones are paid more.
            if learned <= sqrt(2 / pi * variance) * believed.size:
                cost = cost * (4 if isinstance(cost, Concentrated) else 2)
            turn += 1
        return tuple(tables)

    def _sets(self, degree: int) -> list[list[tuple[str, ...]]]:
        """All sets of columns, dealt to turns so that none looks at too many."""
        sizes = self.views.sizes
        found: list[tuple[str, ...]] = [(name,) for name in sizes]
        for count in range(2, degree + 1):
            found += [
                names
                for names in combinations(sizes, count)
                if count == 2 or prod(sizes[name] for name in names) <= MOST_SET
            ]
        # By numbers of columns and values alone, which are public.
        turns = -(-len(found) // MOST_TABLES)
        return [found[turn::turns] for turn in range(turns)]

    def _fitting(self, sets: list[tuple[str, ...]], limit: int) -> list[tuple[str, ...]]:
        """The sets that lie in the model, or with which it stays small enough."""
        tree, sizes = self.beliefs.tree, self.views.sizes
        return [
            columns
            for columns in sets
            if tree.holder(columns) is not None
            or count_cells(sizes, [*tree.cliques, columns]) <= limit
        ]

    def _farthest(self, columns: tuple[str, ...], cost: Budget) -> Guess:
        believed = self.rows * self.beliefs.marginal(columns)
        expected = sqrt(2 / pi * noise(cost, 1).variance) * believed.size
        return Guess.of(columns, believed, penalty=round(expected))
