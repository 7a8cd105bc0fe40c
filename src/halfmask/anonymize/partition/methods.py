"""Ways to divide rows into classes, and how classes that fail are repaired."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.task import blocks_of, number_classes
from halfmask.anonymize.partition.widths import (
    cut_by_labels,
    improve_by_labels,
    is_late,
    level_classes,
    widths_of,
)
from halfmask.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import PartitionTask


METRIC = "dbil"
LABELS = "loss"
LINKS = ("must_link", "cannot_link")  # columns whose equal values stand in one class, or never do


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """What a method ends with: the class of each row of a task.

    Attributes:
        ids: the classes, numbered from 0 without gaps.
        gap: the proven distance to the optimum; 0.0 is optimal, None is a heuristic.
        notes: what a reader should know, one sentence each.
        value: what the method minimized, where it knows.
    """

    ids: NDArray[np.int64]
    gap: float | None = None
    notes: tuple[str, ...] = ()
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A way to divide rows, and what a caller may ask of it.

    Attributes:
        divide: gives every row of a task a class.
        options: the options that it alone knows, each with the words that it takes; (): a whole
            number; None: the name of a column.
        metrics: what it can minimize, its own first.
        draws: whether anything is drawn at random, from the seed.
    """

    divide: Callable[[PartitionTask], Division]
    options: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    metrics: tuple[str, ...] = (LABELS, METRIC)
    draws: bool = False


_PIECE = 1_000  # rows of a block between two looks at the clock, where there is a time limit
_PAIRS = 20_000_000  # cells of pairs of rows in such a block
BLOCK = 40_000  # rows up to which a quadratic method takes the table as it is


def blockwise(
    task: PartitionTask, divide: Callable[[PartitionTask], NDArray[np.int64]], largest: int = BLOCK
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Divide each block by ``divide``; ids are -1 where a row is left over. Gives notes too.

    Large tables fall into blocks of near rows that quadratic methods can work on one by one.
    """
    from halfmask.kernels.partition.search_tree import processors

    blocks = blocks_of(task, largest if task.deadline is None else min(largest, _piece(task)))
    if len(blocks) == 1:
        return divide(task), ()

    def one(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        # A block meets the demands of everybody in it: it may stay whole when time is up.
        if is_late(task):
            return np.zeros(len(rows), dtype=np.int64)
        part = task.take(rows)
        if task.deadline is None:
            return divide(part)
        # Rows left over join a class near them: among all classes that takes too long after it.
        return repair(replace(part, models=()), divide(part))

    # No more at a time than there are processors: each goes on when time is up.
    with ThreadPoolExecutor(processors()) as pool:
        parts = list(pool.map(one, blocks))
    ids = np.full(len(task), -1, dtype=np.int64)
    known = 0
    for rows, part in zip(blocks, parts, strict=True):
        ids[rows] = np.where(part >= 0, part + known, -1)
        known += int(part.max(initial=-1)) + 1
    note = f"The table was first cut into {len(blocks)} blocks, which were divided one by one."
    return ids, (note,)


def _piece(task: PartitionTask) -> int:
    """The rows of a block that is divided between two looks at the clock."""
    return max(min(math.isqrt(_PAIRS // len(task.space.columns)), _PIECE), 100)


_FEW = 200  # failing classes up to which all classes are candidates


def repair(
    task: PartitionTask, ids: NDArray[np.int64], near: NDArray[np.int32] | None = None
) -> NDArray[np.int64]:
    """Give every row a class such that all models hold; ids count from 0 without gaps.

    Classes that fail are merged with near ones. This is also the rule for rows left over: such a
    row joins the class that it costs least to widen, among those that are then large enough for
    it; where there is none, near classes merge until one is.
    """
    from halfmask.kernels.partition.improvement import absorb, link_classes

    ids = _alone(ids)
    points, k = task.space.points, task.demands.k
    while True:
        failing = task.failing(ids)
        count = int(np.count_nonzero(failing))
        if not count:
            return ids
        if len(failing) == 1:
            raise InternalError("All rows together break a model that was found to hold.")
        if count > _FEW and near is None:
            near = find_near_rows(task, 16)
        state = link_classes(points, k, ids)
        flags = np.zeros(len(task), dtype=np.bool_)
        flags[: len(failing)] = failing
        candidates = near if count > _FEW and near is not None else np.zeros((0, 0), np.int32)
        absorb(points, k, state, flags, candidates)
        ids = number_classes(state.ids)


def by_labels(task: PartitionTask) -> bool:
    """Whether what labels lose is to be minimized, not the distances of rows."""
    return str(task.options.get("metric", METRIC)) == LABELS


def _finish(task: PartitionTask, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The classes, improved by what their labels lose where that is asked for."""
    if not by_labels(task):
        return ids
    return repair(task, improve_by_labels(task, widths_of(task), ids))


def find_near_rows(task: PartitionTask, wanted: int) -> NDArray[np.int32]:
    """The nearest other rows of every row; -1 where there are fewer."""
    from halfmask.kernels.partition import search_tree

    points, places = task.space.points, task.space.places
    return np.asarray(
        search_tree.nearest_neighbors(
            points, places, search_tree.build_tree(points, places, 16), wanted
        )[0]
    )


def _alone(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give each row left over a class of its own."""
    left = np.flatnonzero(ids < 0)
    out = ids.copy()
    out[left] = ids.max(initial=-1) + 1 + np.arange(len(left))
    return number_classes(out)


def divide_mondrian(task: PartitionTask) -> Division:
    """Cut while both sides may stand, where the labels lose least.

    Each side of a cut must meet the highest demand on that side. ``cut="sides"``, and the metric
    dbil, cut at the median of the widest column as the original does; ``cut="whole"`` stops at
    twice the highest demand as well.

    Source: LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", 2006;
    adapted to a demand per person as in Michel, 2019, section 5.4.1.
    """
    from halfmask.kernels.partition import construction

    if by_labels(task) and task.options.get("cut", "labels") == "labels":
        return Division(_finish(task, repair(task, cut_by_labels(task, widths_of(task)))))
    whole = task.options.get("cut", "sides") == "whole"
    order, starts = construction.cut(task.space.points, task.space.places, task.demands, 0, whole)
    ids = np.empty(len(task), dtype=np.int64)
    ids[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return Division(repair(task, ids))


def divide_mdav(task: PartitionTask) -> Division:
    """Form classes around the rows farthest from the middle, two at a time.

    Source: Domingo-Ferrer and Torra, "Ordinal, continuous and heterogeneous k-anonymity through
    microaggregation", 2005; adapted to a demand per person as in Michel, 2019, section 5.4.2.
    """
    ids, notes = blockwise(task, _mdav)
    return Division(_finish(task, repair(task, ids)), notes=notes)


def _mdav(task: PartitionTask) -> NDArray[np.int64]:
    from halfmask.kernels.partition import construction

    table = task.table
    categorical = [
        name for name, line in zip(task.space.columns, task.space.ordered, strict=True) if not line
    ]
    ordinal = [table.schema.columns[name].kind == "ordinal" for name in categorical]
    width = task.space.points.codes.shape[1]
    flags = np.array(ordinal[:width] + [False] * (width - len(ordinal)), dtype=np.bool_)
    return np.asarray(construction.mdav_classes(task.space.points, task.demands, flags))


def divide_k_member(task: PartitionTask) -> Division:
    """Grow classes from far-off rows by the least loss; ``score="plain"`` is the original score.

    Definition: the improved score is max(|e|+1, k_e, k_r) diam(e+r) - max(|e|, k_e) diam(e).
    Source: Byun, Kamra, Bertino and Li, "Efficient k-anonymization using clustering techniques",
    2007; adapted to a demand per person as in Michel, 2019, sections 5.4.2 and 5.4.3.
    """
    ids, notes = blockwise(task, _k_member)
    return Division(_finish(task, repair(task, ids)), notes=notes)


def _k_member(task: PartitionTask) -> NDArray[np.int64]:
    from halfmask.kernels.partition import construction

    draws = np.random.default_rng(task.seed).random(len(task) + 1)
    improved = task.options.get("score", "improved") == "improved"
    return np.asarray(construction.k_member(task.space.points, task.demands, draws, improved))


def divide_from_levels(task: PartitionTask) -> Division:
    """Begin with the classes of a local recoding, and cut near ones anew while labels lose less.

    Where levels find nothing in time, or the table is too wide for them, rows are cut top down.
    """
    widths = widths_of(task)
    ids = None
    if len(task) == len(task.table) and len(task.space.columns) <= LEVELS and not is_late(task):
        ids = level_classes(task)
    if ids is None:
        ids = cut_by_labels(task, widths)
    return Division(repair(task, improve_by_labels(task, widths, repair(task, ids))))


LEVELS = 64  # columns up to which levels are searched; rows of wider tables are cut top down
_REGRET = 1.25  # how much of what a row loses anyway is taken off its marginal cost
_SWEEPS = 20
_ENOUGH = 0.001  # stop when a sweep gains less than this share
_NEAREST = 16  # rows that are kept for each row; more cost time and gain nothing


def divide_personal(task: PartitionTask) -> Division:
    """Keep demanding people together: form classes where rows are dense, then improve them.

    The greedy methods let people who demand much absorb people who demand little, and never count
    what taking in a demanding person costs or saves. Here every row knows what it would lose in
    any class: the distance to the nearest rows that could just fill one. Classes form where that
    is least; a row joins by its marginal cost, which is what it adds to the class less what it
    loses anyway. Then rows move and change places between near classes, and pairs of classes are
    cut anew, while that lowers the loss; a demanding person who leaves a class of others lets it
    fall apart. So it is for the metric dbil; for the loss of the labels, see
    ``divide_from_levels``.
    """
    if len(task) == 1:
        return Division(repair(task, np.zeros(1, dtype=np.int64)))
    if by_labels(task):
        return divide_from_levels(task)
    if task.deadline is not None and len(task) > _PIECE:
        ids, notes = blockwise(task, _personal)
        return Division(repair(task, ids), notes=notes)
    return Division(repair(task, _personal(task)))


def _personal(task: PartitionTask) -> NDArray[np.int64]:
    from halfmask.kernels.partition import improvement, search_tree
    from halfmask.kernels.partition.growth import Seeds, form
    from halfmask.kernels.partition.improvement import link_classes

    points, places, demands = task.space.points, task.space.places, task.demands
    wanted = min(_NEAREST, len(task) - 1)
    nodes = search_tree.build_tree(points, places, 16)
    near, far = search_tree.nearest_neighbors(points, places, nodes, wanted)
    last = np.clip(demands.k - 2, 0, wanted - 1)
    anyway = far[np.arange(len(task)), last].astype(np.float64)
    seeds = np.argsort(anyway, kind="stable")
    ids = form(points, places, nodes, demands, Seeds(seeds, anyway), _REGRET)
    state = link_classes(points, demands.k, repair(task, ids, near))
    improvement.improve_partition(points, demands, state, near, _SWEEPS, _ENOUGH)
    return repair(task, number_classes(state.ids), near)
