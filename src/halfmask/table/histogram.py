"""How often each value of a column occurs in each class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How often each value of one column occurs in each class, as sparse rows.

    The entries of class ``i`` are ``starts[i]`` to ``starts[i + 1]``; no count is zero.

    Attributes:
        starts: (classes + 1) where each class begins.
        values: per entry, the code of the value.
        counts: per entry, how many rows hold it.
        domain: how many distinct values the column has.
        numbers: per value code, the value as a number where the column is numeric, else None.
        hierarchy: the column's hierarchy, where it has one.
        labels: the values themselves, by code; their order is the ascending or the declared one.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    domain: int
    numbers: NDArray[np.float64] | None = None
    hierarchy: Hierarchy | None = None
    labels: pa.Array | None = None

    @property
    def owners(self) -> NDArray[np.int64]:
        """Per entry, the class it belongs to."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def totals(self) -> NDArray[np.int64]:
        """How often each value occurs in all classes together."""
        return np.bincount(self.values, weights=self.counts, minlength=self.domain).astype(np.int64)

    def select(self, mask: NDArray[np.bool_]) -> Histogram:
        """The histograms of the classes in ``mask``."""
        lengths = np.diff(self.starts)
        keep = np.repeat(mask, lengths)
        starts = np.concatenate(([0], np.cumsum(lengths[mask])))
        return replace(self, starts=starts, values=self.values[keep], counts=self.counts[keep])


class ValueFacts(TypedDict):
    """What a histogram knows of the values of its column, whatever the classes."""

    domain: int
    numbers: NDArray[np.float64] | None
    hierarchy: Hierarchy | None
    labels: pa.Array


def value_facts(table: Table, name: str) -> ValueFacts:
    """The part of a histogram of column ``name`` that does not depend on the classes."""
    import pyarrow as pa

    values = table.encode(name).values
    numbers = None
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    column = table.schema.columns.get(name)
    hierarchy = table.hierarchy(name) if column is not None and column.hierarchy else None
    return ValueFacts(domain=len(values), numbers=numbers, hierarchy=hierarchy, labels=values)
