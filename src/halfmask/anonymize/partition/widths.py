"""Classes by what their labels will lose: cut top down, then improved, within a time limit.

What is minimized is what is published: ranges with their bounds as they are rounded, common labels
of hierarchies, or sets of values. Kernels work in pieces, between which the clock is looked at.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize import local
from halfmask.anonymize.partition.task import blocks_of, number_classes
from halfmask.anonymize.problem import RecodingProblem
from halfmask.metrics.cost import METRICS
from halfmask.metrics.space import depth_first
from halfmask.models.requirements import statistics
from halfmask.release.labels import Holders, label_atoms, range_bounds, required_sharing
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import PartitionTask
    from halfmask.kernels.partition.label_loss import ClassLists, Widths
    from halfmask.release.labels import Atoms
    from halfmask.table.hierarchy import Hierarchy

_PIECE = 2_000_000  # cells of work between two looks at the clock
_SMALL = 512  # places up to which the widths of all pairs are kept
_WORDS = 16  # words of 64 values up to which sets of a column are kept
_TRIED = 12  # columns, the widest, between which cuts are chosen
_SWEEPS = 8
_GAIN = 0.006  # stop when a sweep gains less than this share
_NEAR = (2, 12)  # neighbors on either side in each order of the rows; more where classes are large
_LISTED = 20_000_000  # neighbors of all rows together, unless that leaves fewer than those two
_ORDERS = 12
_LARGE = 40_000  # rows from which parts are improved side by side
_PART = 7_500  # rows of such a part, about
_WORK = 300_000_000  # cells that an improvement looks at, at most; the clock may end it before


def kinds_of(task: PartitionTask) -> dict[str, str]:
    """Per column, what its classes publish: range, node or set."""
    labels = task.options.get("labels", "tight")
    other = "set" if labels == "sets" else "node"
    lines = zip(task.space.columns, task.space.ordered, strict=True)
    return {name: "range" if line and labels != "levels" else other for name, line in lines}


def widths_of(task: PartitionTask) -> Widths:
    """What the labels of the rows of a task lose, for the kernels."""
    from halfmask.kernels.partition.label_loss import Widths

    table, rows = task.table, task.rows
    need = required_sharing(table, task.models)
    every = np.arange(len(table))
    total = float(task.space.weights.sum()) or 1.0
    build = _ColumnWidths(len(rows))
    weights = task.space.weights / total
    for (name, kind), weight in zip(kinds_of(task).items(), weights.tolist(), strict=True):
        codes = table.encode(name).codes[rows]
        held = Holders.of(table, name, every, need)
        if kind == "range":
            bounds = range_bounds(table, name, held)
            lacks = [
                low is None or high is None
                for low, high in zip(bounds.low, bounds.high, strict=True)
            ]
            begins = np.where(lacks, 0.0, bounds.begins)
            ends = np.where(lacks, 1.0, bounds.ends)
            if table.encode(name).values.null_count:  # together with others: everything
                begins, ends = np.append(begins, 0.0), np.append(ends, 2.0)
            build.line(codes, begins, ends, weight)
            continue
        hierarchy = table.hierarchy(name)
        atoms = label_atoms(table, name, held) if kind == "set" else None
        words = -(-hierarchy.maps.shape[1] // 64)
        if atoms is not None and words <= _WORDS:
            build.sets(codes, (hierarchy, atoms), weight)
        else:
            build.tree(codes, hierarchy, weight)
    return Widths(*build.arrays())


class _ColumnWidths:
    """The arrays of the kernels, column by column."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.places: list[NDArray[np.int32]] = []
        self.low: list[NDArray[np.float64]] = []
        self.high: list[NDArray[np.float64]] = []
        self.pairs: list[NDArray[np.float64]] = []
        self.tables: list[int] = []
        self.sizes: list[int] = []
        self.bits: list[NDArray[np.uint64]] = []
        self.gain: list[float] = []
        self.weights: list[float] = []
        self.alone = 0.0

    def line(
        self, codes: NDArray[np.int32], low: NDArray[np.float64], high: NDArray[np.float64],
        weight: float,
    ) -> None:  # fmt: skip
        """A column of ranges."""
        self._add(codes, len(low), weight)
        self.low.append(low * weight)
        self.high.append(high * weight)
        self.tables.append(-1)

    def tree(self, codes: NDArray[np.int32], hierarchy: Hierarchy, weight: float) -> None:
        """A column of common labels; of many values by the leaves between two of them."""
        order = depth_first(hierarchy)
        size = len(order)
        self._add(order[codes], size, weight)
        spread = np.arange(size) / max(size - 1, 1)
        self.low.append(spread * weight)
        self.high.append(spread * weight)
        if size > _SMALL:
            self.tables.append(-1)
            return
        self.tables.append(sum(len(one) for one in self.pairs))
        inner = np.argsort(order)
        wide = np.full((size, size), hierarchy.size, dtype=np.float64)
        for level in range(hierarchy.height, -1, -1):
            label = hierarchy.maps[level][inner]
            same = label[:, None] == label[None, :]
            wide[same] = np.broadcast_to(hierarchy.leaves[level][label][:, None], same.shape)[same]
        lost = (wide - 1) / max(hierarchy.size - 1, 1)
        self.pairs.append((lost * weight).reshape(-1))

    def sets(self, codes: NDArray[np.int32], found: tuple[Hierarchy, Atoms], weight: float) -> None:
        """A column of sets."""
        hierarchy, atoms = found
        size = hierarchy.maps.shape[1]
        self._add(depth_first(hierarchy)[codes], size, 0.0)
        self.low.append(np.zeros(size))
        self.high.append(np.zeros(size))
        self.tables.append(-1)
        words = -(-size // 64)
        masks = np.zeros((size, words), dtype=np.uint64)
        for code in range(size):
            level = int(atoms.level[code])
            if level == 0:
                under = np.array([code])
            elif level > hierarchy.height:
                under = np.arange(size)
            else:
                under = np.flatnonzero(hierarchy.maps[level] == hierarchy.maps[level][code])
            np.bitwise_or.at(
                masks[code], under // 64, np.uint64(1) << (under % 64).astype(np.uint64)
            )
        each = weight / max(hierarchy.size - 1, 1)
        self.bits.append(masks[codes])
        self.gain += [each] * words
        self.alone += each

    def _add(self, places: NDArray[np.int32], size: int, weight: float) -> None:
        self.places.append(places)
        self.sizes.append(size)
        self.weights.append(weight)

    def arrays(self) -> tuple[Any, ...]:
        """What ``Widths`` takes."""
        begins = np.cumsum([0, *(len(one) for one in self.low[:-1])])
        none = np.zeros((self.rows, 0), dtype=np.uint64)
        return (
            np.ascontiguousarray(np.column_stack(self.places), dtype=np.int32),
            np.concatenate(self.low).astype(np.float32),
            np.concatenate(self.high).astype(np.float32),
            begins.astype(np.int64),
            np.concatenate(self.pairs).astype(np.float32)
            if self.pairs
            else np.zeros(0, np.float32),
            np.array(self.tables, dtype=np.int64),
            np.array(self.sizes, dtype=np.int64),
            np.ascontiguousarray(np.concatenate(self.bits, axis=1)) if self.bits else none,
            np.array(self.gain, dtype=np.float64),
            np.array(self.weights, dtype=np.float64),
            float(self.alone),
        )


def level_classes(task: PartitionTask) -> NDArray[np.int64] | None:
    """The classes of a local recoding of all rows; None where there is none."""
    table = task.table
    tuples, row_tuple = statistics(Tuples.of(table), task.models)
    quasi = table.schema.quasi
    problem = RecodingProblem(
        tuples,
        [table.hierarchy(name) for name in quasi],
        task.models,
        METRICS["loss"],
        weights=[table.schema.columns[name].weight for name in quasi],
    )
    left = None if task.deadline is None else max(task.deadline - time.monotonic(), 0.01) / 2
    solution = local.find_steps(problem, seed=None, time_limit=left)
    if solution.steps is None or (solution.tuple_step < 0).any():
        return None
    step = solution.tuple_step[row_tuple].astype(np.int64)
    levels = np.array(solution.steps, dtype=np.int64)
    ids = step
    for c, name in enumerate(quasi):
        hierarchy = table.hierarchy(name)
        maps = np.vstack([hierarchy.maps, np.zeros((1, hierarchy.maps.shape[1]), dtype=np.int32)])
        label = maps[levels[step, c], table.encode(name).codes]
        ids = np.unique(ids * (int(label.max()) + 1) + label, return_inverse=True)[1].reshape(-1)
    return np.asarray(ids, dtype=np.int64)


def cut_by_labels(task: PartitionTask, widths: Widths) -> NDArray[np.int64]:
    """Cut top down where labels lose least; when time is up, parts that are open stay whole."""
    from halfmask.kernels.partition.label_loss import Parts, cut_classes, room_for

    n = len(task)
    rows, starts = np.arange(n), np.zeros(n + 1, dtype=np.int64)
    stack, state = np.zeros((n + 2, 2), dtype=np.int64), np.array([1, 0, _TRIED, 0])
    stack[0] = (0, n)
    parts = Parts(rows, stack, starts)
    piece = max(_PIECE // (1 + len(task.space.columns)), 1)
    room = room_for(widths, task.demands)
    while state[0] > 0 and not is_late(task):
        cut_classes(widths, task.demands, parts, state, room, piece)
    first = np.sort(np.concatenate((starts[: state[1]], stack[: state[0], 0])))
    ids = np.empty(n, dtype=np.int64)
    ids[rows] = np.repeat(np.arange(len(first)), np.diff(np.append(first, n)))
    return ids


def improve_by_labels(
    task: PartitionTask, widths: Widths, ids: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Let near classes be cut anew together, then rows move between them, while that loses less.

    Cuts follow the order of one column; single rows that widen several labels of a large class are
    what they leave. The classes of large tables fall into parts, the same on any number of cores,
    which are improved side by side before one sweep goes over all.
    """
    if len(task) < _LARGE:
        return _improve(task, widths, ids, _SWEEPS, _WORK)
    parts = _parts(task, ids)

    def one(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        places, bits = widths.places[rows], widths.bits[rows]
        own = widths._replace(places=places, bits=bits)
        work = _WORK // 2 * len(rows) // len(task)
        return _improve(task.take(rows), own, number_classes(ids[rows]), _SWEEPS, work)

    found, known = np.empty(len(ids), dtype=np.int64), 0
    with ThreadPoolExecutor() as pool:
        for rows, part in zip(parts, pool.map(one, parts), strict=True):
            found[rows] = part + known
            known += int(part.max()) + 1
    return _improve(task, widths, found, 1, _WORK // 2)


def _parts(task: PartitionTask, ids: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The rows of parts of about equal size, each of near classes, which stay whole."""
    parts, held = max(len(task) // _PART, 1), int(ids.max()) + 1
    place = np.empty(len(task), dtype=np.int64)
    place[np.concatenate(blocks_of(task, _PART // 4))] = np.arange(len(task))
    size = np.bincount(ids, minlength=held)
    order = np.argsort(np.bincount(ids, place, minlength=held) / size, kind="stable")
    part = np.empty(held, dtype=np.int64)
    part[order] = (np.cumsum(size[order]) - 1) * parts // len(task)
    return [np.flatnonzero(part[ids] == one) for one in np.unique(part).tolist()]


def _improve(
    task: PartitionTask, widths: Widths, ids: NDArray[np.int64], sweeps: int, work: int
) -> NDArray[np.int64]:
    """The classes after so many sweeps of either kind at most, and so many cells looked at."""
    from halfmask.kernels.partition.label_loss import improve_classes, move_rows, room_for

    lists, free = _lists(task, widths, ids)
    room = room_for(widths, task.demands)
    near = _neighbors(widths, _near(task))
    piece = max(_PIECE // (1 + len(task.space.columns)), 1)
    left = work // (1 + len(task.space.columns))
    # What moves rows counts its sweeps backwards.
    for improve, last, sign in ((improve_classes, len(lists.head), 1), (move_rows, len(ids), -1)):
        for sweep in range(1, sweeps + 1):
            state, gained = np.array([0, free, _TRIED, sign * sweep]), 0.0
            while state[0] < last and left > 0 and not is_late(task):
                gained += improve(widths, task.demands, lists, near, state, room, piece)
                left -= piece
            free = int(state[1])
            if gained <= _GAIN * float(lists.size @ np.maximum(lists.width, 0.0)):
                break
    return number_classes(lists.ids)


def is_late(task: PartitionTask) -> bool:
    """Whether time is up."""
    return task.deadline is not None and time.monotonic() >= task.deadline


def _lists(task: PartitionTask, widths: Widths, ids: NDArray[np.int64]) -> tuple[ClassLists, int]:
    """The classes for the kernels, with room for as many as demands allow."""
    from halfmask.kernels.partition.label_loss import ClassLists

    n, held = len(ids), int(ids.max()) + 1
    room = max(n // max(int(task.demands.k.min(initial=1)), 1), held)
    order = np.argsort(ids, kind="stable")
    following = np.append(order[1:], -1)
    ends = np.append(np.diff(ids[order]) != 0, True)
    following[ends] = -1
    next_, head = np.empty(n, dtype=np.int64), np.full(room, -1, dtype=np.int64)
    next_[order] = following
    head[:held] = order[np.searchsorted(ids[order], np.arange(held))]
    lists = ClassLists(
        ids.copy(),
        next_,
        head,
        np.bincount(ids, minlength=room).astype(np.int64),
        np.full(room, -1.0),
        np.ones(room, dtype=np.int64),
        np.zeros((room, 2 * widths.places.shape[1]), dtype=np.int64),
        np.zeros((room, widths.bits.shape[1]), dtype=np.uint64),
    )
    return lists, room - held


def _near(task: PartitionTask) -> int:
    """How many neighbors on a side: a quarter of a class, as far as memory allows."""
    room = _LISTED // (2 * _ORDERS * max(len(task), 1))
    wanted = int(np.median(task.demands.k)) // 4 if len(task) else 0
    return max(min(wanted, room, _NEAR[1]), _NEAR[0])


def _neighbors(widths: Widths, wanted: int) -> NDArray[np.int32]:
    """Rows that stand beside each other in several orders, each of which lets one column vary."""
    n, m = widths.places.shape
    busy = np.argsort(-widths.sizes, kind="stable")
    last = busy[: min(m, _ORDERS)]
    out = np.full((n, 2 * wanted * len(last)), -1, dtype=np.int32)
    for place, c in enumerate(last.tolist()):
        keys = [widths.places[:, (c - i) % m] for i in range(min(m, 24))]
        order = np.lexsort(keys)
        for step in range(1, wanted + 1):
            at = 2 * (place * wanted + step - 1)
            out[order[:-step], at] = order[step:]
            out[order[step:], at + 1] = order[:-step]
    return out
