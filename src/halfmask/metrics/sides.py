"""An original and a release on common ground, whatever was done to the rows.

A label's mass lies evenly on the values it covers (uniformity assumption), so that generalized,
suppressed, perturbed and synthetic rows compare alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from halfmask.engines.counted import Counted
from halfmask.errors import InputError, SchemaError
from halfmask.metrics.common_ground import shared_column
from halfmask.metrics.covering import Cover
from halfmask.metrics.weighted import entries_of, rows_of, tally
from halfmask.table.normalize import normalize
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn


@runtime_checkable
class Published(Protocol):
    """Anything that gives its rows as Arrow, such as a release."""

    def to_arrow(self) -> pa.Table:
        """The rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """An original and a release.

    Attributes:
        original: the rows of the original, or its distinct tuples.
        rows: those of the release.
        original_counts: how many rows each of the original's stands for; None: one each;
            ``released_counts`` likewise.
        columns: the shared columns, by name.
        notes: what a reader should know of how they were put on common ground.
    """

    original: Table
    rows: pa.Table
    columns: dict[str, SharedColumn]
    notes: tuple[str, ...] = ()
    original_counts: NDArray[np.int64] | None = None
    released_counts: NDArray[np.int64] | None = None
    _cache: dict[tuple[str, ...], tuple[NDArray[np.float64], NDArray[np.float64]]] = field(
        default_factory=dict, repr=False
    )

    @property
    def before(self) -> int:
        """Rows of the original."""
        return rows_of(len(self.original), self.original_counts)

    @property
    def after(self) -> int:
        """Rows of the release."""
        return rows_of(self.rows.num_rows, self.released_counts)

    def original_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entry of each of some rows of the original."""
        return entries_of(rows, self.original_counts)

    def released_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entry of each of some rows of the release."""
        return entries_of(rows, self.released_counts)

    def named(self, names: Sequence[str]) -> list[SharedColumn]:
        """The shared columns among ``names``."""
        return [self.columns[name] for name in names if name in self.columns]

    @property
    def quasi(self) -> list[SharedColumn]:
        """The quasi-identifiers."""
        return self.named(self.original.schema.quasi)

    @property
    def sensitive(self) -> list[SharedColumn]:
        """The sensitive columns."""
        return self.named(self.original.schema.sensitive)

    def tuple_shares(self, names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Over the original's distinct tuples: its own shares, and the mass the release gives them.

        The release may put mass elsewhere: its shares need not add up to 1. Where the release
        holds new numbers, numbers are compared in bins.
        """
        key = tuple(names)
        if key not in self._cache:
            columns = self.named(names)
            if any(column.renumbered for column in columns):
                columns = [column.binned() for column in columns]
            self._cache[key] = _tuple_shares(columns, self.after)
        return self._cache[key]


def sides(original: Table | Counted, release: Published | Table | Counted) -> Sides:
    """Put an original and its release on common ground.

    Args:
        original: its rows, or its distinct tuples with their counts.
        release: likewise, or anything that gives its rows as Arrow.

    Raises:
        SchemaError: the original declares no quasi-identifier, or the release lacks one.
    """
    table, before = _entries(original)
    published, after = _entries(release)
    rows = published.arrow if isinstance(published, Table) else normalize(published.to_arrow(), ())
    schema = table.schema
    schema.require_quasi()
    missing = [name for name in schema.quasi if name not in rows.column_names]
    if missing:
        raise SchemaError(
            *(f"The release lacks the column {name!r} of the original." for name in missing)
        )
    if not len(table) or not rows.num_rows:
        raise InputError("One of the tables has no rows: there is nothing to compare.")
    hidden = set(schema.private)
    names = [
        name
        for name in table.arrow.column_names
        if name in rows.column_names and name not in hidden
    ]
    columns = {name: shared_column(table, rows, name, (before, after)) for name in names}
    notes = [
        f"Column {column.name!r}: {column.foreign:,} released rows hold values that the original "
        "and its hierarchy do not know; they are taken as new values."
        for column in columns.values()
        if column.foreign
    ]
    return Sides(table, rows, columns, tuple(notes), before, after)


def _entries(side: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """What stands for the rows of a table, and how many rows each."""
    return (side.table, side.counts) if isinstance(side, Counted) else (side, None)


def _tuple_shares(
    columns: list[SharedColumn], after: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = Cover(columns)
    own = tally(found.ids, found.count, columns[0].before_counts)
    return own / own.sum(), found.mass() / after
