"""Labels that rows publish: texts, found partitions, perturbed labels; their sizes and loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.release.labels import ClassLabels, Label, Sets, encode_labels, label_classes
from halfmask.table.document import Result
from halfmask.table.hierarchy import TOP
from halfmask.table.tuples import Tuples, distinct_numbers, pick_counts, rows_in, tally

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from halfmask.release.recoding import Recoding
    from halfmask.table.columns import Column
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table
    from halfmask.table.tuples import Counts


def label_texts(table: Table, name: str, level: int) -> tuple[NDArray[np.int32], list[Label]]:
    """Per value the code of its label at ``level``, and the labels as text."""
    hierarchy: Hierarchy = table.hierarchy(name)
    if level > hierarchy.height:
        return np.zeros(len(hierarchy.maps[0]), dtype=np.int32), [TOP]
    if level == 0:
        values = table.encode(name).values
        return np.arange(len(values), dtype=np.int32), encode_labels(values).to_pylist()
    labels: list[Any] = hierarchy.labels[level]
    return hierarchy.maps[level], [None if label is None else str(label) for label in labels]


def as_type(kind: pa.DataType, values: pa.Array, codes: NDArray[np.int32]) -> pa.Array:
    """The values at ``codes`` as ``kind``; a dictionary holds used values only, in order."""
    if not pa.types.is_dictionary(kind):
        return values.take(pa.array(codes))
    gone = values.is_null().to_numpy(zero_copy_only=False)
    used = np.bincount(codes, minlength=len(values)) > 0
    keep = np.flatnonzero(used & ~gone)
    rank = np.zeros(len(values) + 1, dtype=np.int32)
    rank[keep] = np.arange(len(keep), dtype=np.int32)
    numbers = codes if len(keep) == len(values) else rank[codes]
    indices = pa.array(numbers, pa.int32(), mask=gone[codes] if (used & gone).any() else None)
    return pa.DictionaryArray.from_arrays(indices, values.take(pa.array(keep)))


@dataclass(frozen=True, slots=True, eq=False)
class RowPartition:
    """Classes of rows with a label per column; ``step`` of the candidate is a row's class.

    Unlike a recoding it says nothing of new rows: two rows with the same values may stand in
    different classes. Labels are as tight as the class allows: the range of its values, their
    lowest common label, or the set of them.

    Attributes:
        columns: the quasi-identifiers with their hierarchies, in order.
        labels: per column, what its classes publish.
    """

    columns: Mapping[str, Column]
    labels: Mapping[str, ClassLabels]

    @classmethod
    def of(
        cls,
        table: Table,
        ids: NDArray[np.int32],
        ordered: Mapping[str, bool],
        need: NDArray[np.int64] | None = None,
        *,
        sets: bool = False,
    ) -> RowPartition:
        """The tightest labels of the classes that ``ids`` states; -1 is a suppressed row.

        Args:
            table: the original rows.
            ids: the class of each row.
            ordered: per quasi-identifier, whether it publishes ranges or labels of its hierarchy.
            need: per row, how many people must hold a value that is shown (``required_sharing``).
            sets: whether columns that publish no ranges publish sets where these say more.
        """
        other = "set" if sets else "node"
        kinds = {name: "range" if line else other for name, line in ordered.items()}
        labels = label_classes(table, ids, kinds, need)
        return cls({name: table.schema.columns[name] for name in ordered}, labels)

    def __repr__(self) -> str:
        return f"RowPartition({', '.join(self.columns)}; {len(self)} classes)"

    def __len__(self) -> int:
        return len(next(iter(self.labels.values())))

    @property
    def levels(self) -> None:
        """Classes differ, so there is no level per column."""
        return

    @property
    def steps(self) -> range:
        """One step per class."""
        return range(len(self))

    def published(self, table: Table, step: NDArray[np.int32]) -> pa.Table:
        """The labels of the rows whose class is not -1, in their order."""
        kept = np.flatnonzero(step >= 0)
        used = np.zeros(len(self), dtype=np.bool_)
        used[step[kept]] = True
        arrays = {}
        for name, labels in self.labels.items():
            kind = table.arrow.schema.field(name).type
            if labels.exact(used):
                encoded = table.encode(name)
                arrays[name] = as_type(kind, encoded.values, encoded.codes[kept])
                continue
            numbers, texts = labels.labels(table, name)
            text = pa.dictionary(pa.int32(), pa.string())
            published = as_type(
                text, pa.array(texts, pa.string()), numbers[step[kept]].astype(np.int32)
            )
            plain = published.cast(pa.string()) if not pa.types.is_dictionary(kind) else published
            arrays[name] = plain
        return pa.table(arrays)

    def same(self, table: Table) -> NDArray[np.int64]:
        """Per class a number that classes with the same labels share, from 0 without gaps."""
        numbers = []
        for name, labels in self.labels.items():
            number, texts = labels.labels(table, name)
            place: dict[Label, int] = {}
            alike = np.array([place.setdefault(text, len(place)) for text in texts])
            numbers.append(alike[number])
        stacked = np.column_stack(numbers)
        inverse = np.unique(stacked, axis=0, return_inverse=True)[1]
        return np.asarray(inverse.reshape(-1), dtype=np.int64)

    def covered(self, table: Table, step: NDArray[np.int32], name: str) -> int:
        """How many leaves the labels of all published rows cover, added up."""
        rows = np.bincount(step[step >= 0], minlength=len(self))
        return int(rows @ self.labels[name].leaves(table, name))


@dataclass(frozen=True, slots=True, eq=False)
class Perturbation:
    """Labels of classes that may leave out the true value of some of their rows.

    Attributes:
        columns: the quasi-identifiers with their hierarchies, in order.
        labels: the published labels of the rows that leave, in the order of the table.
        meaning: per column and label, the codes of the values that the label stands for.
    """

    columns: Mapping[str, Column]
    labels: pa.Table
    meaning: Mapping[str, Mapping[str, NDArray[np.int64]]]

    def __repr__(self) -> str:
        return f"Perturbation({', '.join(self.columns)}; {self.labels.num_rows:,} rows)"

    @property
    def steps(self) -> range:
        """Every row that leaves takes the one step."""
        return range(1)


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Classes of ``smallest`` to ``largest`` rows: how many, and how many rows they hold."""

    smallest: int
    largest: int
    classes: int
    rows: int


@dataclass(frozen=True, slots=True)
class ClassSizes(Result):
    """The sizes of the published classes.

    Attributes:
        count: how many classes there are.
        smallest: rows of the smallest class.
        largest: rows of the largest class.
        mean: rows per class on average.
        bins: at most twenty or so ranges, each about a quarter wider than the one before.
    """

    count: int
    smallest: int
    largest: int
    mean: float
    bins: tuple[SizeBin, ...]

    @classmethod
    def of(cls, sizes: NDArray[np.int64]) -> ClassSizes:
        """Summarize the sizes of one or more classes."""
        edges = _edges(int(sizes.min()), int(sizes.max()))
        place = np.searchsorted(edges, sizes, side="right") - 1
        classes = np.bincount(place, minlength=len(edges) - 1)
        rows = np.bincount(place, weights=sizes, minlength=len(edges) - 1)
        bins = tuple(
            SizeBin(int(edges[i]), int(edges[i + 1] - 1), int(classes[i]), int(rows[i]))
            for i in range(len(edges) - 1)
        )
        return cls(len(sizes), int(sizes.min()), int(sizes.max()), float(sizes.mean()), bins)


def _edges(smallest: int, largest: int, bins: int = 20) -> NDArray[np.int64]:
    """Whole-number edges that start at ``smallest`` and end just above ``largest``."""
    if largest - smallest < bins:
        return np.arange(smallest, largest + 2)
    raw = np.geomspace(max(smallest, 1), largest + 1, bins + 1)
    edges = np.unique(np.ceil(raw).astype(np.int64))
    edges[0], edges[-1] = smallest, largest + 1
    distinct: NDArray[np.int64] = np.unique(edges)
    return distinct


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCells:
    """What leaves of one column.

    Attributes:
        loss: over all original rows, exactly.
        values: the codes of the values that rows hold which leave, ascending.
        levels: how many of these rows publish a label of each level; of ranges nothing.
    """

    loss: Fraction
    values: NDArray[np.int64]
    levels: Mapping[int, int]


class LeavingRows:
    """The rows that leave, whose columns are counted once for all that is said of them."""

    def __init__(
        self, recoding: Recoding | RowPartition, rows: Table | Tuples, step: NDArray[np.int32]
    ) -> None:
        self._recoding, self._entries, self._step = recoding, Tuples.of(rows), step
        # Where all leave, nothing has to be picked.
        self._kept = None if step.min(initial=0) >= 0 else np.flatnonzero(step >= 0)
        self._taken = step if self._kept is None else step[self._kept]
        counts = self._entries.counts
        self.counts = counts if self._kept is None else pick_counts(counts, self._kept)

    def codes(self, name: str) -> NDArray[np.int32]:
        """The values that these rows hold."""
        codes = self._entries.table.encode(name).codes
        return codes if self._kept is None else codes[self._kept]

    def column(self, name: str) -> ColumnCells:
        """The cells of one column.

        Definition: a value's share is (leaves its label covers; a range covers the table's values
        in it) / D, 1 for a suppressed row; L = (mean share - 1/D) / (1 - 1/D).
        """
        recoding, table = self._recoding, self._entries.table
        hierarchy, codes = table.hierarchy(name), self.codes(name)
        size, everybody = hierarchy.size, self._entries.rows
        if isinstance(recoding, RowPartition):
            found = recoding.labels[name].levels(table, name)
            held = {} if found is None else self._by_level(found, codes, name)
            values = distinct_numbers(codes)
        else:
            held = self._by_level(np.array([s.levels[name] for s in recoding.steps]), codes, name)
            values = np.flatnonzero(sum(held.values(), np.zeros(1, np.int64)))
        levels = {level: int(rows.sum()) for level, rows in held.items()}
        if size <= 1 or not len(table):
            return ColumnCells(Fraction(0), values, levels)
        covered = (everybody - rows_in(self.counts)) * size
        if isinstance(recoding, RowPartition):
            covered += recoding.covered(table, self._step, name)
            everybody = len(table)
        else:
            for level, rows in held.items():
                top = level > hierarchy.height
                wide = size if top else hierarchy.leaves[level][hierarchy.maps[level]]
                covered += int((rows * wide).sum())
        return ColumnCells(Fraction(covered - everybody, everybody * (size - 1)), values, levels)

    def _by_level(
        self, levels: NDArray[Any], codes: NDArray[np.int32], name: str
    ) -> dict[int, NDArray[np.int64]]:
        """Per level that rows publish, ascending, how many hold each value of the column."""
        domain = self._entries.table.hierarchy(name).maps.shape[1]
        if not len(self._taken):
            return {}
        if (levels == levels[0]).all():
            return {int(levels[0]): tally(codes, domain, self.counts)}
        published = levels[self._taken]
        found = {}
        for level in distinct_numbers(published).tolist():
            here = published == level
            found[level] = tally(codes[here], domain, pick_counts(self.counts, here))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class PublishedColumns:
    """What was counted of the quasi-identifiers of the rows that leave.

    Attributes:
        cells: per quasi-identifier what leaves of it.
        losses: their losses, as they are stated.
        sets: those of which labels are the values that a class holds.
        counts: how many rows each entry stands for that leaves.
    """

    cells: Mapping[str, ColumnCells]
    losses: Mapping[str, Fraction]
    sets: Collection[str]
    counts: Counts

    @classmethod
    def of(
        cls, recoding: Recoding | RowPartition, rows: Table | Tuples, step: NDArray[np.int32]
    ) -> PublishedColumns:
        """Count what leaves where ``step`` says how each row is recoded, -1 that it stays."""
        leaving = LeavingRows(recoding, rows, step)
        cells = {name: leaving.column(name) for name in recoding.columns}
        labels = recoding.labels if isinstance(recoding, RowPartition) else {}
        sets = [name for name, one in labels.items() if isinstance(one, Sets)]
        return cls(cells, {n: one.loss for n, one in cells.items()}, sets, leaving.counts)


def column_loss(
    recoding: Recoding | RowPartition, rows: Table | Tuples, step: NDArray[np.int32], name: str
) -> Fraction:
    """The loss of one column over all original rows, exactly, counted from the labels that leave.

    ``LeavingRows.column`` defines it.
    """
    return LeavingRows(recoding, rows, step).column(name).loss


def table_loss(
    losses: Mapping[str, Fraction | float],
    weights: Mapping[str, float],
    *,
    aggregate: str = "geometric",
) -> float:
    """All columns together, each by its weight; ``aggregate`` is geometric or arithmetic.

    Definition: prod(1 + L)^w - 1, where L is a column's loss and the weights w sum to 1 (1/columns
    each, unless the schema says otherwise), or the weighted mean of L.
    """
    total = sum(weights[name] for name in losses)
    if not total:
        return 0.0
    pairs = [(float(loss), weights[name] / total) for name, loss in losses.items()]
    if aggregate == "arithmetic":
        return math.fsum(loss * weight for loss, weight in pairs)
    return math.expm1(math.fsum(weight * math.log1p(loss) for loss, weight in pairs))
