"""An original and a release on common ground, whatever was done to the rows.

Each shared column has leaves: the values of the original, then values that only the release holds
(perturbed or synthetic rows). A published label covers leaves: a value itself, a label of the
hierarchy all values under it, ``*`` all of them. A label's mass lies evenly on the leaves it covers
(uniformity assumption), so that generalized, suppressed, perturbed and synthetic rows compare
alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, SchemaError
from halfmask.metrics.codes import joint
from halfmask.table import ranges
from halfmask.table.hierarchy import TOP, canonical
from halfmask.table.normalize import normalize
from halfmask.table.table import Table, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FINE = 50  # numeric columns with more values are compared in bins
_PATTERNS = 500  # more combinations of levels than these are compared tuple by tuple
_BINS = 20
_COARSE = 100  # bins in which pairs of columns are compared


@runtime_checkable
class Published(Protocol):
    """Anything that gives its rows as Arrow, such as a release."""

    def to_arrow(self) -> pa.Table:
        """The rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SharedColumn:
    """One column of both tables.

    Attributes:
        name: its name; ``role`` its role in the original.
        before: per original row, its leaf; ``after``: per released row, its label.
        leaves: how many leaves there are, the first ``known`` of them from the original.
        starts: where the leaves of each label begin in ``covered``.
        covered: the leaves under each label.
        level: per label, the level of the hierarchy it stands at; 0 is a value.
        to_label: (levels, leaves) the label that a leaf has at a level, -1 where none is published.
        numbers: per leaf, its number; None where the column is not numeric.
        foreign: released rows whose label the original and its hierarchy do not know.
        loss: the mean loss of the published cells, 0 to 1; None where labels are foreign.
        bin_of: per leaf, the bin in which distributions are compared; ``bins`` how many.
        coarse_of: the same for pairs of columns: rare values share a bin; ``coarse`` how many.
    """

    name: str
    role: str
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    leaves: int
    known: int
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]
    level: NDArray[np.int64]
    to_label: NDArray[np.int32]
    numbers: NDArray[np.float64] | None
    foreign: int
    loss: float | None
    bin_of: NDArray[np.int64]
    bins: int
    coarse_of: NDArray[np.int64]
    coarse: int

    @property
    def labels(self) -> int:
        """How many different labels the release holds."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Per label, how many leaves it covers."""
        return np.diff(self.starts)

    @property
    def label_numbers(self) -> NDArray[np.float64]:
        """Per label, the mean number of its leaves."""
        assert self.numbers is not None  # noqa: S101 - only asked of numeric columns
        sums = np.add.reduceat(self.numbers[self.covered], self.starts[:-1])
        return np.asarray(sums / self.sizes)

    def spread(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mass on labels as mass on leaves."""
        each = np.repeat(weights / self.sizes, self.sizes)
        return np.asarray(
            np.bincount(self.covered, weights=each, minlength=self.leaves), dtype=np.float64
        )

    def shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The distributions over bins of the original and of the release."""
        p = np.bincount(self.bin_of[self.before], minlength=self.bins)
        counts = np.bincount(self.after, minlength=self.labels).astype(np.float64)
        q = np.bincount(self.bin_of, weights=self.spread(counts), minlength=self.bins)
        return p / max(p.sum(), 1), q / max(q.sum(), 1e-300)

    def weights(self) -> NDArray[np.float64]:
        """(labels, coarse bins) how the mass of each label lies on the bins."""
        out = np.zeros((self.labels, self.coarse))
        owner = np.repeat(np.arange(self.labels), self.sizes)
        np.add.at(out, (owner, self.coarse_of[self.covered]), 1.0 / self.sizes[owner])
        return out

    def inside(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Per label, the share of its leaves that ``chosen`` marks."""
        marks = chosen[self.covered].astype(np.float64)
        return np.asarray(np.add.reduceat(marks, self.starts[:-1]) / self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """An original and a release.

    Attributes:
        original: the original.
        rows: the released rows.
        columns: the shared columns, by name.
        notes: what a reader should know of how they were put on common ground.
    """

    original: Table
    rows: pa.Table
    columns: dict[str, SharedColumn]
    notes: tuple[str, ...] = ()
    _cache: dict[tuple[str, ...], tuple[NDArray[np.float64], NDArray[np.float64]]] = field(
        default_factory=dict, repr=False
    )

    @property
    def before(self) -> int:
        """Rows of the original."""
        return len(self.original)

    @property
    def after(self) -> int:
        """Rows of the release."""
        return int(self.rows.num_rows)

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

        The release may put mass elsewhere: its shares need not add up to 1.
        """
        key = tuple(names)
        if key not in self._cache:
            self._cache[key] = _tuple_shares(self.named(names), self.after)
        return self._cache[key]


def sides(original: Table, release: Published | Table) -> Sides:
    """Put an original and its release on common ground.

    Raises:
        SchemaError: the original declares no quasi-identifier, or the release lacks one.
    """
    rows = release.arrow if isinstance(release, Table) else normalize(release.to_arrow(), ())
    schema = original.schema
    if not schema.quasi:
        raise SchemaError("The original names no quasi-identifier: give roles in its schema.")
    missing = [name for name in schema.quasi if name not in rows.column_names]
    if missing:
        raise SchemaError(
            *(f"The release lacks the column {name!r} of the original." for name in missing)
        )
    if not len(original) or not rows.num_rows:
        raise InputError("One of the tables has no rows: there is nothing to compare.")
    hidden = set(schema.private)
    names = [
        name
        for name in original.arrow.column_names
        if name in rows.column_names and name not in hidden
    ]
    columns = {name: _shared(original, rows, name) for name in names}
    notes = [
        f"Column {column.name!r}: {column.foreign:,} released rows hold values that the original "
        "and its hierarchy do not know; they are taken as new values."
        for column in columns.values()
        if column.foreign
    ]
    return Sides(original, rows, columns, tuple(notes))


def _shared(original: Table, rows: pa.Table, name: str) -> SharedColumn:
    own, published = original.encode(name), encode(rows[name])
    declared = original.schema.columns.get(name)
    hierarchy = original.hierarchy(name)
    known = len(own.values)
    texts = [None if v is None else canonical(v) for v in own.values.to_pylist()]
    # A missing cell where the original has none is a suppressed one.
    places: dict[str | None, tuple[int, int]] = {TOP: (hierarchy.height + 1, 0)}
    if None not in texts:
        places[None] = (hierarchy.height + 1, 0)
    for level in range(hierarchy.height, 0, -1):
        for code, label in enumerate(hierarchy.labels[level]):
            places.setdefault(None if label is None else str(label), (level, code))
    for code, text in enumerate(texts):
        places.setdefault(text, (0, code))
    labels = [None if v is None else canonical(v) for v in published.values.to_pylist()]
    maps = np.vstack([hierarchy.maps, np.zeros((1, known), dtype=np.int32)])
    maps = _with_ranges(maps, places, labels, texts)
    fresh = [text for text in labels if text not in places]
    leaf_of_fresh = {text: known + i for i, text in enumerate(fresh)}
    to_label = np.full((len(maps), known + len(fresh)), -1, dtype=np.int32)
    covers, levels = [], []
    for place, text in enumerate(labels):
        if text in leaf_of_fresh:
            covers.append(np.array([leaf_of_fresh[text]]))
            levels.append(0)
            to_label[0, leaf_of_fresh[text]] = place
            continue
        level, code = places[text]
        under = np.flatnonzero(maps[level] == code)
        covers.append(under)
        levels.append(level)
        to_label[level, under] = place
    foreign = np.array([text in leaf_of_fresh for text in labels])
    numbers = _numbers(original, name, own.values, published.values, fresh, labels)
    lost = (
        None if foreign.any() else _loss(hierarchy, levels, labels, places, covers, published.codes)
    )
    bin_of, bins = _binned(numbers, own.codes, known + len(fresh))
    coarse_of, coarse = _coarse(bin_of, bins, own.codes)
    return SharedColumn(
        name=name,
        role=declared.role if declared else "other",
        before=own.codes,
        after=published.codes,
        leaves=known + len(fresh),
        known=known,
        starts=np.concatenate(([0], np.cumsum([len(c) for c in covers]))).astype(np.int64),
        covered=np.concatenate(covers).astype(np.int64),
        level=np.array(levels, dtype=np.int64),
        to_label=to_label,
        numbers=numbers,
        foreign=int(foreign[published.codes].sum()),
        loss=lost,
        bin_of=bin_of,
        bins=bins,
        coarse_of=coarse_of,
        coarse=coarse,
    )


def _with_ranges(
    maps: NDArray[np.int32],
    places: dict[str | None, tuple[int, int]],
    labels: list[str | None],
    texts: list[str | None],
) -> NDArray[np.int32]:
    """A level of its own for each range such as 17-24, as ranges may overlap."""
    at = ranges.places(texts)
    rows: list[NDArray[np.int32]] = []
    for label in labels:
        found = None if label is None or label in places else ranges.ends(label, at)
        if label is not None and found is not None:
            row = np.full(maps.shape[1], -1, dtype=np.int32)
            row[found[0] : found[1] + 1] = 0
            places[label] = (len(maps) + len(rows), 0)
            rows.append(row)
    return np.vstack([maps, *rows]) if rows else maps


def _numbers(
    original: Table,
    name: str,
    values: pa.Array,
    published: pa.Array,
    fresh: list[str | None],
    labels: list[str | None],
) -> NDArray[np.float64] | None:
    """The number of each leaf, where the column is numeric; a missing value takes the mean."""
    column = original.schema.columns.get(name)
    kind = values.type
    dated = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if column is not None and column.kind in ("nominal", "ordinal"):
        return None
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or dated):
        return None
    whole = values.cast(pa.int32()).cast(pa.float64()) if pa.types.is_date32(kind) else values
    if dated and not pa.types.is_date32(kind):
        whole = values.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64())
    own = whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    if not fresh:
        return _filled(own)
    if dated or not (pa.types.is_integer(published.type) or pa.types.is_floating(published.type)):
        return None
    all_published = published.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    new = [float(all_published[labels.index(text)]) for text in fresh]
    return _filled(np.concatenate([own, np.array(new, dtype=np.float64)]))


def _filled(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    missing = ~np.isfinite(numbers)
    if missing.all():
        return np.zeros_like(numbers)
    return np.where(missing, numbers[~missing].mean(), numbers)


def _loss(
    hierarchy: object,
    levels: list[int],
    labels: list[str | None],
    places: dict[str | None, tuple[int, int]],
    covers: list[NDArray[np.int64]],
    codes: NDArray[np.int32],
) -> float:
    from halfmask.table.hierarchy import Hierarchy

    assert isinstance(hierarchy, Hierarchy)  # noqa: S101 - narrows the type
    if hierarchy.size <= 1:
        return 0.0
    covered = np.array(
        [
            int(hierarchy.leaves[level][places[label][1]])
            if level <= hierarchy.height
            else (hierarchy.size if level == hierarchy.height + 1 else len(under))
            for level, label, under in zip(levels, labels, covers, strict=True)
        ]
    )
    return float((covered[codes].mean() - 1) / (hierarchy.size - 1))


def _binned(
    numbers: NDArray[np.float64] | None, codes: NDArray[np.int32], leaves: int
) -> tuple[NDArray[np.int64], int]:
    """Leaves themselves, or quantile bins of the original's rows for fine numbers."""
    if numbers is None or leaves <= _FINE:
        return np.arange(leaves), leaves
    edges = np.unique(np.quantile(numbers[codes], np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.searchsorted(edges, numbers, side="right").astype(np.int64), len(edges) + 1


def _coarse(
    bin_of: NDArray[np.int64], bins: int, codes: NDArray[np.int32]
) -> tuple[NDArray[np.int64], int]:
    """The frequent bins by themselves, all others together."""
    if bins <= _COARSE:
        return bin_of, bins
    frequent = np.argsort(-np.bincount(bin_of[codes], minlength=bins), kind="stable")
    place = np.full(bins, _COARSE - 1, dtype=np.int64)
    place[frequent[: _COARSE - 1]] = np.arange(_COARSE - 1)
    return place[bin_of], _COARSE


def _tuple_shares(
    columns: list[SharedColumn], after: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ids, count = joint([(c.before, c.leaves) for c in columns])
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    own = np.bincount(ids, minlength=count) / len(ids)
    leaves = [c.before[first] for c in columns]
    return own, covering_mass(columns, leaves) / after


def covering_mass(
    columns: list[SharedColumn], leaves: Sequence[NDArray[np.int32]], *, evenly: bool = True
) -> NDArray[np.float64]:
    """Per tuple of leaves, the released rows whose labels cover it.

    With ``evenly``, a released row counts for its share of the leaf tuples that it covers.
    """
    ids, count = joint([(c.after, c.labels) for c in columns])
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    rows = np.bincount(ids, minlength=count).astype(np.float64)
    labels = [c.after[first] for c in columns]
    if evenly:
        for column, held in zip(columns, labels, strict=True):
            rows /= column.sizes[held]
    levels = [
        (c.level[held].astype(np.int32), len(c.to_label))
        for c, held in zip(columns, labels, strict=True)
    ]
    pattern, patterns = joint(levels)
    if patterns > _PATTERNS:
        return _one_by_one(columns, leaves, labels, rows)
    mass = np.zeros(len(leaves[0]))
    for p in range(patterns):
        # At fixed levels every leaf has one label: one released tuple at most covers it.
        inside = np.flatnonzero(pattern == p)
        wanted = [
            column.to_label[level[inside[0]]][leaf]
            for column, (level, _), leaf in zip(columns, levels, leaves, strict=True)
        ]
        absent = np.any([w < 0 for w in wanted], axis=0)
        both = [
            (np.concatenate([held[inside], np.maximum(w, 0)]), column.labels)
            for column, held, w in zip(columns, labels, wanted, strict=True)
        ]
        numbers, total = joint(both)
        weight = np.zeros(total)
        weight[numbers[: len(inside)]] = rows[inside]
        mass += np.where(absent, 0.0, weight[numbers[len(inside) :]])
    return mass


def _one_by_one(
    columns: list[SharedColumn],
    leaves: Sequence[NDArray[np.int32]],
    labels: Sequence[NDArray[np.int32]],
    rows: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The same where labels stand at so many levels that tuples are better compared directly."""
    from halfmask.kernels import cover

    tables = []
    for column in columns:
        held = np.zeros((column.labels, column.leaves), dtype=np.bool_)
        held[np.repeat(np.arange(column.labels), column.sizes), column.covered] = True
        tables.append(held)
    widths = np.array([column.leaves for column in columns], dtype=np.int64)
    offsets = np.cumsum([0] + [held.size for held in tables[:-1]], dtype=np.int64)
    return np.asarray(
        cover.covered_mass(
            np.column_stack(leaves).astype(np.int64),
            np.column_stack(labels).astype(np.int64),
            rows,
            np.concatenate([held.ravel() for held in tables]),
            offsets,
            widths,
        )
    )


def covering_rows(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per original row, how many released rows could be its own: whose labels cover it."""
    ids, count = joint([(c.before, c.leaves) for c in columns])
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    leaves = [c.before[first] for c in columns]
    rows = covering_mass(columns, leaves, evenly=False)
    return np.asarray(np.rint(rows), dtype=np.int64)[ids]
