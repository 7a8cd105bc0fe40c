"""All measures of a partition of rows into classes, for a release or for classes of one's own.

Definition: those of ``halfmask.metrics.partition``, over the quasi-identifiers. A deleted row is
charged the whole of every column: its weight in DBIL and SBIL, 1 per hierarchy in TBIL, the entropy
of the table in EBIL, one cell per contingency table in CTBIL, n in discernibility; WCSS, WCSD,
diameter and split look at the rows that stay.
Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, sections 3.4 and 5.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError, ParameterError
from halfmask.metrics import partition
from halfmask.metrics.sides import ReleasedRows, Sides, sides
from halfmask.metrics.space import space_of
from halfmask.metrics.weighted import joint
from halfmask.table.document import Result
from halfmask.table.table import Table, require_table
from halfmask.table.tuples import Tuples, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

_PAIRS = 4_000_000_000  # more pairs of rows than these are not looked at


@dataclass(frozen=True, slots=True)
class PartitionMeasures(Result):
    """What a partition costs; lower is better but for the split.

    Attributes:
        rows: rows that stay.
        deleted: rows that do not.
        classes: how many classes there are.
        k: the k that C_AVG and discernibility refer to.
        sbil: the widths of the columns of each row's class, added up.
        tbil: the height of each row's labels in hierarchies, as shares, added up.
        ctbil: changes of the cells of the contingency tables of all columns and pairs of columns.
        discernibility: the size of each row's class, added up; n where it is below k.
        average_class: C_AVG, the mean size of classes over k.
        dbil: the diameter of each row's class, added up.
        ebil: the entropy (bits) of each row's values given its class, added up.
        wcss: squared distances to the middle of the class.
        wcsd: distances of all pairs inside classes.
        diameter: that of the widest class.
        split: the smallest distance between classes; None too where there is one class.
        dbil_low: where DBIL is not known, the least that it can be, and ``dbil_high`` the most; so
            ``ebil_low`` and ``ebil_high``. None where rows stand for nobody.

    From ``dbil`` to ``split`` they are None where it is not known which row stands in which class;
    those of distances and the bounds also where there are too many pairs of rows.
    """

    rows: int
    deleted: int
    classes: int
    k: int
    sbil: float
    tbil: float
    ctbil: int
    discernibility: int
    average_class: float
    dbil: float | None = None
    ebil: float | None = None
    wcss: float | None = None
    wcsd: float | None = None
    diameter: float | None = None
    split: float | None = None
    dbil_low: float | None = None
    dbil_high: float | None = None
    ebil_low: float | None = None
    ebil_high: float | None = None


def partition_measures(
    table: Table, release: ReleasedRows | Table | ArrayLike, *, k: int | None = None
) -> PartitionMeasures:
    """Measure what it costs to publish ``table`` in classes.

    A release does not tell which row became which. Where every value has one published label, as
    after a full-domain recoding, rows are known by their values; where classes overlap, what needs
    more than the labels is None.

    Args:
        table: the original rows.
        release: the published rows; or the class of each original row as a whole number, where -1
            is a deleted row.
        k: what C_AVG and discernibility refer to; None: the size of the smallest class.

    Raises:
        SchemaError: the table names no quasi-identifier, or the release lacks one.

    Example:
        >>> import halfmask as hm
        >>> import pyarrow as pa
        >>> people = hm.read(pa.table({"age": [20, 30, 40, 60]}), schema={"age": "quasi"})
        >>> hm.partition_measures(people, [0, 0, 1, 1]).dbil
        1.5
    """
    table = require_table(table)
    table.schema.require_quasi()
    if k is not None and k < 1:
        raise ParameterError("k", k, "at least 1")
    if isinstance(release, Table | ReleasedRows):
        return published_measures(sides(table, release), k)
    return measure_classes(Tuples.of(table), _require_classes(table, release), k)


def published_measures(
    both: Sides, k: int | None = None, *, pairs: int | None = None
) -> PartitionMeasures:
    """The same for an original and a release on common ground, looking at so many pairs of rows."""
    from halfmask.metrics import partition

    ids = partition.classes_of_entries(both)
    if ids is not None:
        return measure_classes(both.original_tuples, ids, k, pairs=pairs)
    sizes = partition.released_class_sizes(both)
    k = int(sizes.min()) if k is None else k
    gone = max(both.before - both.after, 0)
    whole = float(sum(partition.column_weight(both, name) for name in both.original.schema.quasi))
    return PartitionMeasures(
        **_bounds(both, gone * whole, _PAIRS if pairs is None else pairs),
        rows=both.after,
        deleted=gone,
        classes=len(sizes),
        k=k,
        sbil=partition.released_span_loss(both) + gone * whole,
        tbil=partition.released_tree_loss(both) + gone * partition.tree_weight(both),
        ctbil=partition.contingency_loss(both),
        discernibility=partition.discernibility(sizes, k) + gone * both.before,
        average_class=partition.average_class(sizes, k),
    )


def _bounds(both: Sides, deleted: float, pairs: int) -> dict[str, Any]:
    """The bounds of DBIL and EBIL; ``deleted`` is what DBIL charges for rows that do not stay."""
    from halfmask.metrics.partition import class_bounds

    found = class_bounds(both, pairs)
    if found is None:
        return {}
    gone = max(both.before - both.after, 0)
    names = [column.name for column in both.quasi]
    lost = 0.0
    if gone:
        one = np.zeros(len(both.original), dtype=np.int64)
        every = partition.entropy_loss(both.original, one, names, both.original_counts)
        lost = gone / both.before * every
    return {
        "dbil_low": found.dbil[0] + deleted,
        "dbil_high": found.dbil[1] + deleted,
        "ebil_low": found.ebil[0] + lost,
        "ebil_high": found.ebil[1] + lost,
    }


def measure_classes(
    tuples: Tuples, ids: NDArray[np.int64], k: int | None, *, pairs: int | None = None
) -> PartitionMeasures:
    """The measures of known classes; -1 is deleted. Equal rows of a class are looked at once."""
    pairs = _PAIRS if pairs is None else pairs
    table = tuples.table
    first, held = _distinct(tuples, ids)
    ids = ids[first]
    stay = np.flatnonzero(ids >= 0)
    if not len(stay):
        raise InputError("No row stays: there is no class to measure.")
    whole, own, rows = space_of(table, rows=first), ids[stay], held[stay]
    deleted = int(held.sum() - rows.sum())
    classes = partition.PointClasses(whole.take(stay), own, rows)
    sizes = classes.sizes
    k = int(sizes.min()) if k is None else k
    columns = len(whole.columns)
    trees = sum(w for w, line in zip(whole.weights, whole.ordered, strict=True) if not line)
    gone = deleted * float(whole.weights.sum())
    # Measures of pairs take time that grows with the squares of classes.
    few = int((np.unique(own, return_counts=True)[1] ** 2).sum()) <= pairs
    return PartitionMeasures(
        rows=int(rows.sum()),
        deleted=deleted,
        classes=len(sizes),
        k=k,
        dbil=partition.diameter_loss(classes) + gone if few else None,
        sbil=partition.span_loss(classes, whole) + gone,
        ebil=_entropy(table, ids, whole.columns, first, held),
        tbil=partition.tree_loss(classes) + deleted * float(trees),
        ctbil=partition.generalized_cells(classes) + deleted * columns * (columns + 1) // 2,
        discernibility=partition.discernibility(sizes, k) + deleted * int(held.sum()),
        average_class=partition.average_class(sizes, k),
        wcss=partition.squared_distances(classes),
        wcsd=partition.pair_distances(classes) if few else None,
        diameter=partition.largest_diameter(classes) if few else None,
        split=_separation(classes, pairs),
    )


def _distinct(
    tuples: Tuples, ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One row of every distinct tuple of a class, and how many rows it stands for."""
    table = tuples.table
    columns = [(e.codes, len(e.values)) for e in map(table.encode, table.schema.quasi)]
    classes = (ids - ids.min()).astype(np.int64)
    keys, count = joint([(classes, int(classes.max()) + 1), *columns])
    first = np.empty(count, dtype=np.int64)
    first[keys[::-1]] = np.arange(len(keys))[::-1]
    return first, tally(keys, count, tuples.counts)


def _require_classes(table: Table, ids: ArrayLike) -> NDArray[np.int64]:
    found = np.asarray(ids)
    if found.shape != (len(table),) or not np.issubdtype(found.dtype, np.integer):
        raise ParameterError("release", "an array", "a whole number per row of the table")
    return found.astype(np.int64)


def _entropy(
    table: Table,
    ids: NDArray[np.int64],
    columns: Sequence[str],
    rows: NDArray[np.int64],
    held: NDArray[np.int64],
) -> float:
    """EBIL, where a deleted row could be any row of the table."""
    stay = ids >= 0
    inside = partition.entropy_loss(table, ids[stay], columns, held[stay], rows[stay])
    gone = int(held[~stay].sum())
    if not gone:
        return inside
    one = np.zeros(len(ids), dtype=np.int64)
    every = partition.entropy_loss(table, one, columns, held, rows)
    return inside + gone / int(held.sum()) * every


def _separation(classes: partition.PointClasses, pairs: int) -> float | None:
    if len(classes.sizes) == 1 or len(partition.distinct_rows(classes.space)[0]) ** 2 > pairs:
        return None
    return partition.class_separation(classes)
