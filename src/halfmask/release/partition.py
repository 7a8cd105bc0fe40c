"""A found partition: which rows form a class, and the labels that each class publishes.

Unlike a recoding it says nothing of new rows: two rows with the same values may stand in different
classes. Labels are as tight as the class allows: the range of its values or their lowest common
label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.release.labels import as_text, as_type
from halfmask.table.hierarchy import TOP
from halfmask.table.ranges import separator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from halfmask.table.schema import Column
    from halfmask.table.table import Table

Label = str | None


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """One column whose classes publish ranges.

    Attributes:
        low: per class, the code of its smallest value.
        high: per class, the code of its largest value (the missing value comes last).
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]

    def labels(self, table: Table, name: str) -> tuple[NDArray[np.int64], list[Label]]:
        """Per class the number of its label, and the labels as text."""
        texts = as_text(table.encode(name).values).to_pylist()
        sign, size = separator(texts), len(texts)
        pairs, numbers = np.unique(
            self.low.astype(np.int64) * size + self.high, return_inverse=True
        )
        labels = [_range(texts, sign, pair // size, pair % size) for pair in pairs.tolist()]
        return numbers.reshape(-1), labels

    def exact(self, used: NDArray[np.bool_]) -> bool:
        """Whether the classes in ``used`` publish the values themselves."""
        return bool((self.low == self.high)[used].all())

    def leaves(self, table: Table, name: str) -> NDArray[np.int64]:
        """Per class, how many values its label covers."""
        missing = table.encode(name).values.null_count > 0
        covered = (self.high - self.low + 1).astype(np.int64)
        last = len(table.encode(name).values) - 1
        everything = missing & (self.high == last) & (self.low < last)
        return np.where(everything, table.hierarchy(name).size, covered)

    def levels(self, table: Table, name: str) -> None:  # noqa: ARG002 - one signature
        """Ranges have no levels."""
        return


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """One column whose classes publish labels of its hierarchy.

    Attributes:
        level: per class, the level; height + 1 means that the cell is suppressed.
        value: per class, the code of any of its values, which has the label at that level.
    """

    level: NDArray[np.int32]
    value: NDArray[np.int32]

    def labels(self, table: Table, name: str) -> tuple[NDArray[np.int64], list[Label]]:
        """Per class the number of its label, and the labels as text."""
        hierarchy, values = table.hierarchy(name), as_text(table.encode(name).values).to_pylist()
        out: list[Label] = [TOP]
        numbers = np.zeros(len(self.level), dtype=np.int64)
        for level in range(hierarchy.height + 1):
            at = self.level == level
            numbers[at] = len(out) + hierarchy.maps[level][self.value[at]]
            texts = values if level == 0 else hierarchy.labels[level]
            out += [None if text is None else str(text) for text in texts]
        return numbers, out

    def exact(self, used: NDArray[np.bool_]) -> bool:
        """Whether the classes in ``used`` publish the values themselves."""
        return bool((self.level == 0)[used].all())

    def leaves(self, table: Table, name: str) -> NDArray[np.int64]:
        """Per class, how many leaves its label covers."""
        hierarchy = table.hierarchy(name)
        out = np.full(len(self.level), hierarchy.size, dtype=np.int64)
        for level in range(hierarchy.height + 1):
            at = self.level == level
            out[at] = hierarchy.leaves[level][hierarchy.maps[level][self.value[at]]]
        return out

    def levels(self, table: Table, name: str) -> NDArray[np.int32]:  # noqa: ARG002
        """The level of each class."""
        return self.level


Labels = Ranges | Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Classes of rows with a label per column; ``step`` of the candidate is a row's class.

    Attributes:
        columns: the quasi-identifiers with their hierarchies, in order.
        labels: per column, what its classes publish.
    """

    columns: Mapping[str, Column]
    labels: Mapping[str, Labels]

    @classmethod
    def of(cls, table: Table, ids: NDArray[np.int32], ordered: Mapping[str, bool]) -> Partition:
        """The tightest labels of the classes that ``ids`` states; -1 is a suppressed row.

        Args:
            table: the original rows.
            ids: the class of each row.
            ordered: per quasi-identifier, whether it publishes ranges or labels of its hierarchy.
        """
        count = int(ids.max(initial=-1)) + 1
        kept = np.flatnonzero(ids >= 0)
        rows = kept[np.argsort(ids[kept], kind="stable")]
        starts = np.searchsorted(ids[rows], np.arange(count))
        labels = {
            name: _ranges(table, name, rows, starts)
            if on_line
            else _nodes(table, name, rows, starts)
            for name, on_line in ordered.items()
        }
        return cls({name: table.schema.columns[name] for name in ordered}, labels)

    def __repr__(self) -> str:
        return f"Partition({', '.join(self.columns)}; {len(self)} classes)"

    def __len__(self) -> int:
        first = next(iter(self.labels.values()))
        return len(first.low if isinstance(first, Ranges) else first.level)

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


def _ranges(table: Table, name: str, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> Ranges:
    encoded = table.encode(name)
    codes = encoded.codes[rows]
    low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    if encoded.values.null_count:  # a missing value and others have only the whole in common
        last = len(encoded.values) - 1
        low = np.where((high == last) & (low < last), 0, low)
    return Ranges(low.astype(np.int32), high.astype(np.int32))


def _nodes(table: Table, name: str, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> Nodes:
    hierarchy, codes = table.hierarchy(name), table.encode(name).codes[rows]
    value = codes[starts]
    level = np.full(len(starts), hierarchy.height + 1, dtype=np.int32)
    for one in range(hierarchy.height, -1, -1):
        labels = hierarchy.maps[one][codes]
        same = np.minimum.reduceat(labels, starts) == np.maximum.reduceat(labels, starts)
        level[same] = one
    return Nodes(level, value.astype(np.int32))


def _range(texts: list[Label], sign: str, low: int, high: int) -> Label:
    if low == high:
        return texts[low]
    return TOP if texts[high] is None else f"{texts[low]}{sign}{texts[high]}"
