"""Which classes a reader takes for one: those that publish the same labels.

Rows that may not stand together may not stand in two such classes either. A search that keeps only
classes of rows apart finds that out at the end, so where it happens it is made again with this.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.partition.links import linked_codes
from halfmask.anonymize.partition.widths import kinds_of
from halfmask.metrics.partition import sorted_classes
from halfmask.release.labels import label_members, required_sharing
from halfmask.release.partition import RowPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.partition.task import PartitionTask

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """What classes publish, and which rows may not be seen in one.

    Attributes:
        task: what is divided.
        apart: per row of the task, which rows it is kept apart from; -1: none.
        need: per row of the table, how many people its values must be shared with to be shown.
    """

    task: PartitionTask
    apart: Ints
    need: Ints

    @classmethod
    def of(cls, task: PartitionTask) -> Looks:
        """Of the rows that the task keeps apart."""
        need = required_sharing(task.table, task.models)
        return cls(task, linked_codes(task, "cannot_link"), need)

    def alike(self, ids: Ints) -> tuple[int, int] | None:
        """Two classes of a division that look alike and hold rows that are kept apart, or None."""
        order, begins = sorted_classes(ids)
        held = np.flatnonzero(self.apart >= 0)
        seen = np.stack((self._numbers(order, begins[:-1])[ids[held]], self.apart[held]))
        kinds, place, count = np.unique(seen, axis=1, return_inverse=True, return_counts=True)
        if kinds.shape[1] == seen.shape[1]:
            return None
        first, second = held[np.flatnonzero(place.reshape(-1) == np.argmax(count > 1))[:2]]
        return int(ids[first]), int(ids[second])

    def exclusive(self, members: Sequence[tuple[int, ...]]) -> Any:
        """Per look and kind of rows kept apart, the classes of which one may be taken at most.

        None where no two classes exclude each other.
        """
        from scipy.sparse import coo_array

        sizes = np.fromiter((len(one) for one in members), np.int64, len(members))
        flat = np.fromiter(chain.from_iterable(members), np.int64, int(sizes.sum()))
        kinds = self.apart[flat]
        held = kinds >= 0
        column = np.repeat(np.arange(len(members)), sizes)[held]
        look = self._numbers(flat, np.cumsum(sizes) - sizes)[column]
        # A class of two such rows is too dear to be taken, and counts once.
        triples = np.unique(np.stack((look, kinds[held], column)), axis=1)
        _, place, count = np.unique(triples[:2], axis=1, return_inverse=True, return_counts=True)
        several = count > 1
        if not several.any():
            return None
        number = np.cumsum(several) - 1
        place = place.reshape(-1)
        kept = several[place]
        shape = (int(several.sum()), len(members))
        entries = np.ones(int(kept.sum()))
        return coo_array((entries, (number[place[kept]], triples[2][kept])), shape=shape).tocsc()

    def _numbers(self, flat: Ints, starts: Ints) -> Ints:
        """Per class a number that classes with the same labels share."""
        table, rows = self.task.table, self.task.rows
        kinds = kinds_of(self.task)
        labels = label_members(table, rows[flat], starts, kinds, self.need, rows)
        return RowPartition({name: table.schema.columns[name] for name in kinds}, labels).same(
            table
        )
