"""t-closeness: in every class a sensitive column is distributed much as in the whole table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from halfmask.errors import SchemaError
from halfmask.models.exact_comparison import SAFE, at_most, fraction, largest
from halfmask.models.statistics import (
    MISSING_NOTE,
    ORIGINAL,
    ORIGINAL_NOTE,
    MissingValues,
    ReferenceRows,
    occupied_classes,
    pass_empty,
    reduce,
    reference_totals,
    value_histogram,
)
from halfmask.models.verdict import (
    SOUGHT_AGAINST_ALL,
    WHOLE_RELEASE,
    KernelDemand,
    Model,
    Option,
    Verdict,
    Words,
    compared_rows,
    judge,
    missing_values,
    number,
    register_model,
    sensitive_column,
    word,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes, Histogram
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


SORTED = ("ordinal", "date", "numeric")
DISTANCE_WORDS = {
    "equal": "equal distances",
    "ordered": "ordered values",
    "hierarchical": "by the hierarchy",
}


@register_model
@dataclass(frozen=True, slots=True)
class TCloseness(Model):
    """Require the distribution of ``column`` in every class to lie within ``t`` of the table's.

    Definition: EMD(P_E, Q) <= t for every class E, with P_E the distribution of known values in E
    and Q that of all rows; a class of which no value is known is 1 apart. The distance between
    values is 1 (equal), their places apart (ordered), or the height of their lowest common label
    (hierarchical), each divided by its maximum.
    Source: Li, Li and Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and
    l-diversity", 2007.

    Attributes:
        t: the largest distance, 0 to 1.
        column: the sensitive column.
        distance: how far two values are apart; None: ordered where they are numbers, dates or have
            a declared order, else equal.
        missing: ``"unknown"``: missing values protect nobody and are not counted; ``"value"``: they
            count as one more value.
        reference: ``"release"``: all rows are those that leave; ``"original"``: those of the table
            that the search began with, so that suppressed rows count.

    Example:
        >>> TCloseness(0.2, "disease").name
        't-closeness (equal distance)'
    """

    family: ClassVar[str] = "t-closeness"
    monotone: ClassVar[bool] = True  # the distance to a fixed Q is convex
    option: ClassVar[Option] = Option(
        "t",
        "t-closeness; DISTANCE: equal, ordered or hierarchical.",
        "t: distance at most",
        common=True,
    )
    words: ClassVar[Words] = Words(
        "In every class the sensitive column is distributed almost as in the whole release (or, "
        "where the promise names it, in the original table): at most the distance t apart.",
        SOUGHT_AGAINST_ALL,
        WHOLE_RELEASE,
        "at most",
    )

    t: float = field(metadata=number(0, 1, stronger=-1))
    column: str = field(metadata=sensitive_column())
    distance: Literal["equal", "ordered", "hierarchical"] | None = field(
        default=None, metadata=word("How t measures", **DISTANCE_WORDS)
    )
    missing: MissingValues = field(default="unknown", metadata=missing_values())
    reference: ReferenceRows = field(default="release", metadata=compared_rows())

    @property
    def name(self) -> str:
        """The model and its distance."""
        against = f", {ORIGINAL}" if self.original else ""
        return f"{self.family} ({self.distance or 'equal'} distance{against})"

    def settle(self, table: Table) -> TCloseness:
        """With the distance that fits the column, where none is named."""
        if self.distance is not None or self.column not in table.arrow.column_names:
            return self
        return replace(self, distance=usual_distance(table, self.column))

    def _distance(self, values: Histogram) -> Literal["equal", "ordered", "hierarchical"]:
        """The distance; a histogram knows whether its values are numbers."""
        return self.distance or ("equal" if values.numbers is None else "ordered")

    def faults(self, table: Table) -> list[str]:
        """Say where the column lacks what the distance needs."""
        from halfmask.table.weights import is_plain_text

        column = table.schema.columns.get(self.column)
        if self.distance == "hierarchical" and (column is None or column.hierarchy is None):
            return [f"column '{self.column}' has no hierarchy: declare one in the schema."]
        stated = column is not None and (column.order is not None or column.kind in SORTED)
        if (
            self.distance == "ordered"
            and not stated
            and is_plain_text(table.encode(self.column).values.type)
        ):
            return [f"column '{self.column}' holds text: declare its order in the schema."]
        return []

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether its distribution is close enough."""
        moved, full = self._mass_moved(classes)
        return pass_empty(classes, at_most(moved, full, fraction(self.t)))

    def _mass_moved(self, classes: Classes) -> Ratio:
        way = self._distance(value_histogram(classes, self.column, self.missing))
        return distances(classes, self.column, way, self.missing, self.reference)

    def kernel_demand(self, table: Table) -> KernelDemand | None:
        """The equal distance; kernels know no other."""
        equally = self.settle(table).distance == "equal"
        stated = KernelDemand(
            column=self.column, distance=float(self.t), missing=self.missing == "value"
        )
        return stated if equally else None

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:
        """Per class, how many rows any finer grouping must lose, if it may lose ``limit`` in all.

        Losing a share s of all rows moves the table's distribution by at most s, and the rows that
        a class keeps lie within t of it, so a class at distance d loses at least the share
        (d - t - s) / (1 - t - s) of its rows; both of the rows whose value counts. Against the
        original table nothing moves: s = 0.
        """
        values = value_histogram(classes, self.column, self.missing)
        total = reference_totals(values, self.reference)
        nothing = np.zeros(len(classes), dtype=np.int64)
        limit = 0 if self.original else limit
        if self._distance(values) == "ordered" and total[total > 0].min(initial=limit + 1) <= limit:
            return nothing  # a value could vanish, which would change the scale
        moved, full = self._mass_moved(classes)
        slack = float(self.t) + limit / max(int(total.sum()), 1) + 1e-9
        if slack >= 1:
            return nothing
        away = moved.astype(np.float64) / np.maximum(full, 1).astype(np.float64)
        lost = reduce(np.add, values.counts, values.starts) * (away - slack) / (1 - slack)
        return np.asarray(np.maximum(np.ceil(lost - 1e-6), 0), dtype=np.int64)

    def survivors(self, classes: Classes, kept: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The classes of ``kept`` that stay when those that fail leave, again and again."""
        from halfmask.kernels import resemblance

        if self.original:
            return None
        values, t = value_histogram(classes, self.column, self.missing), fraction(self.t)
        way = self._distance(values)
        maps = np.arange(values.domain, dtype=np.int32)[None]
        if way == "hierarchical" and values.hierarchy is not None:
            maps = values.hierarchy.maps[: _levels(values.hierarchy)]
        scale = values.domain if way == "ordered" else len(maps)
        size = int(values.counts.sum())
        if 4 * scale * size * size * t.denominator >= SAFE or scale > _WRITTEN_OUT:
            return None
        left = kept.copy()
        total = values.totals() if kept.all() else values.select(kept).totals()
        totals = np.zeros((len(maps), int(maps.max(initial=0)) + 1), dtype=np.int64)
        for level, labels in enumerate(maps):
            np.add.at(totals[level], labels, total)
        resemblance.stay_close(
            resemblance.ClassHistogram(values.starts, values.values, values.counts),
            np.ascontiguousarray(maps), totals, left, way == "ordered", t.numerator, t.denominator,
        )  # fmt: skip
        return left

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the largest distance."""
        values = value_histogram(classes, self.column, self.missing)
        live = occupied_classes(classes)
        notes = [MISSING_NOTE] * (self.missing == "value") + [ORIGINAL_NOTE] * self.original
        moved, full = self._mass_moved(classes)
        return judge(
            replace(self, distance=self._distance(values)),
            classes,
            pass_empty(classes, at_most(moved, full, fraction(self.t))),
            required=self.t,
            achieved=largest(moved[live], full[live]),
            note=" ".join(notes),
        )


def usual_distance(table: Table, name: str) -> Literal["equal", "ordered"]:
    """Ordered where values are numbers, dates or have a declared order; else equal."""
    import pyarrow as pa

    from halfmask.table.values import is_number

    kind = table.encode(name).values.type
    column = table.schema.columns.get(name)
    along = (column is not None and column.order is not None) or is_number(kind)
    return "ordered" if along or pa.types.is_temporal(kind) else "equal"


# The earth mover's distance between each class and the whole table, as integer ratios. With c the
# counts in a class of n rows and C those in the table of N rows, every distance is a sum of
# |c N - C n| or of its running sums, divided by n N and a constant: all integers, so that the
# comparison with a threshold is exact. Only values that occur count as values of the column.

_WRITTEN_OUT = 256  # up to so many ordered values a class is written out value by value

Ratio = tuple["NDArray[Any]", "NDArray[Any]"]


def equal_distance(values: Histogram, total: NDArray[np.int64], column: str) -> Ratio:  # noqa: ARG001 - one signature for all three
    """The distance where every two values are equally far apart: half the sum of differences."""
    rows, size = _sizes(values, total, factor=4)
    full = 2 * size * rows
    if rows.dtype != object:
        from halfmask.kernels import distance

        moved = distance.equal_distances(
            values.values, values.counts, values.starts, total, rows, size
        )
        return np.asarray(moved), full
    counts = values.counts.astype(object)
    return _differences(values.values, counts, values.starts, total, rows, size), full


def ordered_distance(values: Histogram, total: NDArray[np.int64], column: str) -> Ratio:  # noqa: ARG001
    """The distance over values in their order: the running sums' differences, by (m - 1)."""
    order = np.flatnonzero(total)
    places = (np.cumsum(total > 0) - 1)[values.values]
    reached = np.cumsum(total[order])
    rows, size = _sizes(values, total, factor=4 * max(len(order), 1))
    full = max(len(order) - 1, 1) * size * rows
    if rows.dtype != object:
        from halfmask.kernels import distance

        moved = distance.ordered_distances(
            places, values.counts, values.starts, reached, rows, size
        )
        return np.asarray(moved), full
    moved = np.zeros_like(rows)
    for i in range(len(rows)):
        inside = slice(values.starts[i], values.starts[i + 1])
        dense = np.zeros(len(order), dtype=object)
        dense[places[inside]] = values.counts[inside].astype(object)
        moved[i] = np.abs(np.cumsum(dense) * size - reached.astype(object) * rows[i]).sum()
    return moved, full


def hierarchical(values: Histogram, total: NDArray[np.int64], column: str) -> Ratio:
    """The distance over a hierarchy: the mean over its levels of the equal distance there.

    Li's recursion charges height(N) / H * min(surplus, lack) at each label N; as twice the minimum
    is the difference between what the children and what N itself must move, the charges telescope
    to the sum over the levels below the root.
    """
    tree = values.hierarchy
    if tree is None:
        raise SchemaError(
            f"Column {column!r} has no hierarchy, which the hierarchical distance needs: "
            "declare one in the schema."
        )
    levels = _levels(tree)
    maps = tree.maps[:levels]
    known = max(len(labels) for labels in tree.labels)
    totals = np.zeros((len(maps), known), dtype=np.int64)
    for level, labels in enumerate(maps):
        np.add.at(totals[level], labels, total)
    rows, size = _sizes(values, total, factor=4 * levels)
    full = 2 * levels * size * rows
    if rows.dtype != object:
        from halfmask.kernels import distance

        moved = distance.layered_distances(
            values.values, values.counts, values.starts, maps, totals, rows, size
        )
        return np.asarray(moved), full
    moved = np.zeros_like(rows)
    for level, labels in enumerate(maps):
        codes, counts, starts = _relabel(values, labels, known)
        moved = moved + _differences(
            codes, counts.astype(object), starts, totals[level], rows, size
        )
    return moved, full


def _levels(tree: Hierarchy) -> int:
    """How many levels stand below the root; one above the top where that keeps several labels."""
    return max(tree.height if len(tree.labels[-1]) == 1 else tree.height + 1, 1)


def _relabel(
    values: Histogram, labels: NDArray[np.int32], known: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The histogram with each value replaced by its label."""
    pairs = values.owners * known + labels[values.values]
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    counts = np.add.reduceat(values.counts[order], first) if len(first) else values.counts[:0]
    merged = pairs[first]
    groups = len(values.starts) - 1
    starts = np.searchsorted(merged, np.arange(groups + 1) * known)
    return merged % known, counts, starts


def _differences(
    codes: NDArray[Any],
    counts: NDArray[Any],
    starts: NDArray[np.int64],
    total: NDArray[np.int64],
    rows: NDArray[Any],
    size: int,
) -> NDArray[Any]:
    """The sum of |c N - C n| over all values of the column, in Python's integers."""
    everywhere = total[codes]
    n = np.repeat(rows, np.diff(starts))
    inside = reduce(np.add, np.abs(counts * size - everywhere * n), starts)
    missing = size - reduce(np.add, everywhere.astype(object), starts)
    return np.asarray(inside + missing * rows)


def _sizes(values: Histogram, total: NDArray[np.int64], *, factor: int) -> tuple[NDArray[Any], int]:
    """Rows per class and in all, as Python's integers where machine integers could overflow."""
    rows: NDArray[Any] = reduce(np.add, values.counts, values.starts)
    size = int(total.sum())
    if factor * size * size >= SAFE:
        rows = rows.astype(object)
    return rows, size


def distances(
    classes: Classes,
    column: str,
    distance: str,
    missing: MissingValues,
    reference: ReferenceRows = "release",
) -> Ratio:
    """The distance of each class, where a class of which no value counts is as far as can be."""
    values = value_histogram(classes, column, missing)
    moved, full = DISTANCES[distance](values, reference_totals(values, reference), column)
    silent = np.diff(values.starts) == 0
    return np.where(silent, 1, moved), np.where(silent, 1, full)


DISTANCES = {
    "equal": equal_distance,
    "ordered": ordered_distance,
    "hierarchical": hierarchical,
}
