"""Tables that were made row by row, as points of a frontier: divided, perturbed, given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.run import Settings, candidate
from halfmask.anonymize.run import PERTURBING, anonymize
from halfmask.assessment.figures import Figures
from halfmask.assessment.points import Point
from halfmask.errors import UnsatisfiableError
from halfmask.metrics.codes import pairs
from halfmask.metrics.covering import Released, finding_chance, tightest_class
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.classes import class_utility
from halfmask.metrics.utility.distributions import column_distance
from halfmask.release.loss import table_loss
from halfmask.release.partition import Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.assessment.figures import Measure
    from halfmask.assessment.settings import Setting
    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Published, Sides
    from halfmask.release.demands import Choice
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class Effort:
    """How every setting is tried.

    Attributes:
        seed: for methods that draw at random.
        time_limit: seconds for each search.
        demands: whether people's own demands are kept; the models of the settings hold them then.
    """

    seed: int = 0
    time_limit: float | None = None
    demands: Choice = "keep"


def divided_point(measure: Measure, setting: Setting, effort: Effort) -> Point | None:
    """Divide the rows into classes; None where nothing satisfies the models. Nothing is sealed."""
    table = measure.table
    try:
        if setting.method in PERTURBING:
            made = anonymize(
                table,
                *setting.models,
                method=setting.method,
                suppression=setting.suppression,
                seed=effort.seed,
                time_limit=effort.time_limit,
                demands=effort.demands,
            )
            return Point.of(setting, finished_figures(table, made), made.gap)
        how = Settings(setting.method, seed=effort.seed, time_limit=effort.time_limit)
        found = candidate(table, setting.models, how)
    except UnsatisfiableError:
        return None
    assert isinstance(found.recoding, Partition)  # noqa: S101 - divisions make nothing else
    return Point.of(setting, measure.divided(found.recoding, found.step), found.gap)


def given_point(table: Table, name: str, release: Published | Table) -> Point:
    """A finished table as a point."""
    figures = finished_figures(table, release)
    stated = {key: getattr(figures, key) for key in figures.__slots__}
    return Point(name=name, method="given", suppression=0.0, models=(), **stated)


def finished_figures(
    table: Table, release: Published | Table, *, made_up: bool | None = None
) -> Figures:
    """The figures of released rows.

    Where some people fit no released row although nobody was left out, rows are made up or
    perturbed: then people are looked for among the rows that fit their original values, guesses
    are held against their true values, and loss is not known.
    """
    both = sides(table, release)
    released = Released(both.quasi)
    chance = finding_chance(both.quasi)
    left = 0.0 if made_up else max(0.0, 1 - both.after / both.before)
    if made_up is None:
        made_up = float((chance == 0).mean()) > left + 1e-9
    distance = [column_distance(column, both.after).hellinger for column in both.quasi]
    gains = [_gain(both, column, released, made_up=made_up) for column in both.sensitive]
    known = [gain for gain in gains if gain is not None]
    return Figures(
        risk=float(chance.mean()) if made_up else len(released) / both.before,
        highest_risk=float(chance.max()) if made_up else 1 / float(released.rows.min()),
        inference=max(known) if known else None,
        loss=None if made_up else _loss(both),
        distance=float(np.mean(distance)),
        suppressed=left,
        classes=len(released),
    )


def _loss(both: Sides) -> float | None:
    columns = class_utility(both).columns
    losses = {column.name: column.loss for column in columns if column.loss is not None}
    if len(losses) < len(columns):
        return None
    weights = {name: both.original.schema.columns[name].weight for name in losses}
    return table_loss(losses, weights)


def _gain(both: Sides, column: SharedColumn, released: Released, *, made_up: bool) -> float | None:
    """How much better than guessing one sensitive column can be told; None: all are equal."""
    owner, labels, counts = pairs(released.ids, column.after, column.labels, len(released))
    totals = np.bincount(column.after, minlength=column.labels)
    if made_up:
        return _true_gain(both, column, _likeliest(owner, labels, counts, len(released)), totals)
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    right, prior = int(np.maximum.reduceat(counts, starts).sum()), int(totals.max())
    return None if prior == both.after else (right - prior) / (both.after - prior)


def _likeliest(
    owner: NDArray[np.int64], labels: NDArray[np.int64], counts: NDArray[np.int64], classes: int
) -> NDArray[np.int64]:
    """The most frequent label of each class, the first of several."""
    order = np.lexsort((labels, -counts, owner))
    first = np.searchsorted(owner[order], np.arange(classes))
    return np.asarray(labels[order][first])


def _true_gain(
    both: Sides,
    column: SharedColumn,
    likeliest: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> float | None:
    """The same, held against people's true values; who fits no row is guessed as everybody."""
    home = tightest_class(both.quasi)
    usual = int(totals.argmax())
    guess = np.where(home >= 0, likeliest[home], usual)
    right, prior = _covers(column, guess), _covers(column, np.full(len(home), usual))
    if prior == len(home):
        return None
    return (right - prior) / (len(home) - prior)


def _covers(column: SharedColumn, labels: NDArray[np.int64]) -> int:
    """How many original rows hold a value that is under the label guessed for them."""
    return int(column.covers(labels, column.before).sum())
