"""PrivBayes: a Bayesian network chosen and measured under differential privacy.

Definition: columns join one by one, each with parents chosen by the exponential mechanism on the
distance from independence; each family's table is measured; rows are drawn along the network.
Parents are as many as keep the table useful: cells <= rows * epsilon_2 / (columns * theta).
Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao, "PrivBayes", 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.views import noise
from halfmask.errors import ParameterError
from halfmask.synthesize.inference import draw_values
from halfmask.synthesize.marginals import simplex

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from halfmask.dp.budget import Budget
    from halfmask.dp.views import NoisyViews

THETA = 4.0  # how many times the noise a typical cell must hold, as published
STRUCTURE = Fraction(3, 10)  # the share of the budget that chooses the network, as published
# Searched on invented tables, never on rows to protect: benchmarks/privbayes_tuning.py.
PRESETS = {"published": (THETA, STRUCTURE), "tuned": (4.0, Fraction(1, 10))}
TOTAL = Fraction(1, 50)  # the share that counts the rows
MOST_FAMILIES = 2000
MOST_PARENTS = 4
MOST_SETS = 20_000  # of parents that one round tries, of all open columns together


@dataclass(frozen=True, slots=True)
class Family:
    """A column and the columns that it is drawn by."""

    parents: tuple[str, ...]
    child: str


@dataclass(frozen=True, slots=True, eq=False)
class BayesianNetwork:
    """A network with the weights of each family."""

    sizes: Mapping[str, int]
    families: tuple[Family, ...]
    tables: tuple[NDArray[np.float64], ...]
    rows: int

    def draw(self, rows: int, random: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """``rows`` rows as public codes per column."""
        drawn: dict[str, NDArray[np.int64]] = {}
        for family, table in zip(self.families, self.tables, strict=True):
            groups = np.zeros(rows, np.int64)
            for name in family.parents:
                groups = groups * self.sizes[name] + drawn[name]
            drawn[family.child] = draw_values(groups, table, random)
        return {name: drawn[name] for name in self.sizes}


def learn(
    views: NoisyViews,
    *,
    ordered: Collection[str] = (),
    preset: str = "published",
    theta: float | None = None,
    structure: Fraction | None = None,
) -> BayesianNetwork:
    """A network over all columns, for the whole budget.

    Args:
        views: the rows behind noisy answers.
        ordered: not used.
        preset: ``"published"`` (theta = 4, 30% for the network) or ``"tuned"`` (10% for it).
        theta: how many times the noise a typical cell must hold; over the preset.
        structure: the share of the budget that chooses the network; over the preset.
    """
    del ordered
    if preset not in PRESETS:
        raise ParameterError("preset", preset, f"one of {', '.join(PRESETS)}")
    theta = PRESETS[preset][0] if theta is None else theta
    structure = PRESETS[preset][1] if structure is None else structure
    if not theta > 0:
        raise ParameterError("theta", theta, "above 0")
    if not 0 < structure < 1 - TOTAL:
        raise ParameterError("structure", float(structure), f"a share below {float(1 - TOTAL):g}")
    sizes = views.sizes
    total = views.count((), views.limit * TOTAL)
    # The noisy number: the true one would tell of somebody.
    rows = max(1.0, float(total.counts))
    measuring = views.limit * (1 - TOTAL - structure) / len(sizes)
    # Theta-usefulness: a cell holds theta noise scales of rows on average.
    most = rows / (theta * sqrt(noise(measuring, 1).variance / 2))
    families = _network(views, views.limit * structure, most)
    tables = tuple(_table(views, family, measuring, rows) for family in families)
    return BayesianNetwork(sizes, families, tables, round(rows))


def _network(views: NoisyViews, cost: Budget, most: float) -> tuple[Family, ...]:
    """Columns with their parents; the first is the one with most values, a public choice."""
    names = list(views.sizes)
    # Chosen by public sizes, it costs nothing.
    first = max(names, key=lambda name: (views.sizes[name] <= most, views.sizes[name]))
    families = [Family((), first)]
    left = [name for name in names if name != first]
    each = cost / max(1, len(left))
    while left:
        known = [family.child for family in families]
        candidates = _candidates(known, left, views.sizes, most)
        chosen = candidates[views.dependent([(c.parents, c.child) for c in candidates], each)]
        families.append(chosen)
        left.remove(chosen.child)
    return tuple(families)


def _candidates(
    known: list[str], left: list[str], sizes: Mapping[str, int], most: float
) -> list[Family]:
    """Every open column with every largest set of parents that keeps its table useful.

    Of many columns fewer are parents at once, by their number alone: time has a bound.
    """
    found: list[Family] = []
    tried = (d for d in range(MOST_PARENTS, 1, -1) if comb(len(known), d) * len(left) <= MOST_SETS)
    top = min(len(known), next(tried, 1))
    small = sorted(known, key=lambda name: sizes[name])
    for child in left:
        room = most / sizes[child]
        fitting: list[tuple[str, ...]] = []
        for degree in range(top, -1, -1):
            for parents in combinations(known, degree):
                cells = prod(sizes[name] for name in parents)
                # The largest: with not even the smallest of the others would it fit.
                more = next((sizes[n] for n in small if n not in parents), 1)
                if cells <= room and (degree == top or cells * more > room):
                    fitting.append(parents)
        found += [Family(parents, child) for parents in fitting or [()]]
    return found[:: max(1, -(-len(found) // MOST_FAMILIES))]


def _table(views: NoisyViews, family: Family, cost: Budget, rows: float) -> NDArray[np.float64]:
    """The weights of one family; parents that never occur deal the child by its own share."""
    seen = views.count((*family.parents, family.child), cost)
    weights = simplex(seen.counts, rows).reshape(-1, views.sizes[family.child])
    empty = weights.sum(axis=1) <= 0
    if empty.any():
        weights[empty] = weights.sum(axis=0)
    return weights
