"""What is counted of the columns of a table, wherever its rows are, to propose what they are.

A column is entries that stand for rows: the rows themselves, or the distinct values that an engine
counted. All that is said of a column follows from its entries and their counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from halfmask.table.classes import collapse_tuples
from halfmask.table.tuples import ones

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from halfmask.table.classes import JointCodes
    from halfmask.table.proposals.shapes import Facts
    from halfmask.table.table import Table
    from halfmask.table.tuples import Counts


@dataclass(frozen=True, slots=True)
class ManyValues:
    """What was counted of a column that has more values than are looked at one by one.

    Attributes:
        rows: how many rows there are; ``missing`` how many of them have no value.
        distinct: how many values differ; ``single`` how many of them one row alone has.
    """

    rows: int
    missing: int
    distinct: int
    single: int


@dataclass(frozen=True, slots=True, eq=False)
class CountedColumn:
    """One column as entries.

    Attributes:
        entries: the values.
        counts: how many rows each stands for.
        label: what the file says of the column beside its name.
        many: where ``entries`` are some of very many values, what was counted of all.
    """

    entries: pa.ChunkedArray
    counts: Counts
    label: str = ""
    many: ManyValues | None = None


class ColumnCounts(Protocol):
    """The columns of a table as they were counted, and what can be counted of several together."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        ...

    @property
    def columns(self) -> Mapping[str, CountedColumn]:
        """Every column."""
        ...

    def joint(self, facts: Sequence[Facts], most: float) -> JointCodes | None:
        """The distinct tuples of some columns; None where there are more than ``most``."""
        ...

    def pairs(self, first: Facts, second: Facts) -> int:
        """How many combinations of the values of two columns there are."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RowCounts:
    """Rows in memory: each is an entry that stands for itself."""

    table: Table

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.table)

    @property
    def columns(self) -> Mapping[str, CountedColumn]:
        """Every column."""
        labels = {name: given.label for name, given in self.table.given.items()}
        arrow = self.table.arrow
        return {
            name: CountedColumn(arrow[name], ones(arrow.num_rows), labels.get(name, ""))
            for name in arrow.column_names
        }

    def joint(self, facts: Sequence[Facts], most: float) -> JointCodes:  # noqa: ARG002
        """The distinct tuples of some columns, or the rows where these are hardly fewer."""
        return collapse_tuples({one.name: (one.codes, one.size) for one in facts})

    def pairs(self, first: Facts, second: Facts) -> int:
        """How many combinations of the values of two columns there are."""
        return len(np.unique(first.codes.astype(np.int64) * second.size + second.codes))
