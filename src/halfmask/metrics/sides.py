"""An original and a release on common ground, whatever was done to the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.metrics.common_ground import shared_column
from halfmask.metrics.weighted import class_rows, entries_of, joint
from halfmask.table.files.rows import normalize
from halfmask.table.hierarchy import TOP, canonical
from halfmask.table.schema import Schema
from halfmask.table.table import Table, encode_column
from halfmask.table.tuples import Tuples, tally
from halfmask.table.values import infer_type, is_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from halfmask.kernels.coverage import Coverage
    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.weighted import ClassRows
    from halfmask.table.tuples import Counts


_NONE: NDArray[np.int64] = np.empty(0, dtype=np.int64)


class ReleasedTuples:
    """The distinct released tuples of some columns, in lexicographic order.

    Attributes:
        columns: the columns.
        labels: per column, the label of each tuple.
        rows: how many released rows hold each tuple.
        ids: per entry of the release, its tuple.
    """

    def __init__(self, columns: list[SharedColumn]) -> None:
        self.columns = columns
        self.ids, count = joint([(c.after, c.labels) for c in columns])
        first = np.empty(count, dtype=np.int64)
        first[self.ids] = np.arange(len(self.ids))
        self.labels = [c.after[first] for c in columns]
        self.rows = tally(self.ids, count, columns[0].after_counts).astype(np.float64)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def leaves(self) -> NDArray[np.float64]:
        """Per tuple, how many tuples of leaves it covers."""
        out = np.ones(len(self))
        for column, held in zip(self.columns, self.labels, strict=True):
            out *= column.sizes[held]
        return out


class Cover:
    """Distinct tuples of the original's leaves, and the released tuples over them.

    A released class covers a tuple of leaves if each of its labels covers the leaf of its column.

    Attributes:
        ids: per entry of the original, its tuple.
        count: how many tuples there are.
        first: per tuple, an entry of the original that holds it.
        released: the released tuples; columns whose labels cover little stand first.
    """

    def __init__(self, columns: list[SharedColumn]) -> None:
        # Few ways down from the top; the widest ranges come last, where they are added at once.
        ordered = sorted(columns, key=lambda column: float(column.merged.sizes.mean()))
        self.released = ReleasedTuples(ordered)
        before = [(c.ordered.number[c.before], c.leaves) for c in ordered]
        self.ids, self.count = joint(before)
        self.first = np.empty(self.count, dtype=np.int64)
        self.first[self.ids] = np.arange(len(self.ids))

    def mass(self) -> NDArray[np.float64]:
        """Per tuple, the released rows over it, each for its share of the tuples it covers."""
        alike, leaves = self._alike()
        return self._find(leaves, self.released.rows / self.released.leaves).mass[alike]

    def tightest(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Per tuple, the released tuple over it that covers least, -1 for none; and its mass."""
        order = np.argsort(self.released.leaves, kind="stable")  # of equals always the same one
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        alike, leaves = self._alike()
        found = self._find(leaves, self.released.rows / self.released.leaves, ranks=ranks)
        best = np.where(found.best >= 0, order[found.best], -1)
        return best[alike], found.mass[alike]

    def covered_tuples(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The tuples that each released tuple covers: where those of each begin, and these.

        None where the squares of their numbers add up to more than ``most``.
        """
        leaves = np.stack([c.ordered.number[c.before[self.first]] for c in self.released.columns])
        rows, ends = self.released.rows, np.zeros(len(self.released), dtype=np.int64)
        # Counted before they are listed: the list may be larger than memory.
        sizes = self._find(leaves, rows, ends=ends, merged=False).ends
        if int((sizes * sizes).sum()) > most:
            return None
        starts = np.concatenate(([0], np.cumsum(sizes)))
        fits = np.empty(starts[-1], dtype=np.int64)
        if len(fits):
            self._find(leaves, rows, ends=starts[:-1].copy(), fits=fits, merged=False)
        return starts, fits

    def _alike(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Tuples that no label tells apart are one: per tuple its number; and their leaves."""
        columns = self.released.columns
        # They are covered alike, so that the kernel looks at one of them.
        leaves = [c.merged.number[c.before[self.first]] for c in columns]
        if all(c.merged is c.ordered for c in columns):
            return np.arange(self.count), np.stack(leaves)
        sizes = [c.merged.count for c in columns]
        ids, count = joint(list(zip(leaves, sizes, strict=True)))
        first = np.empty(count, dtype=np.int64)
        first[ids] = np.arange(len(ids))
        return ids, np.stack([held[first] for held in leaves])

    def _find(
        self,
        leaves: NDArray[np.int32],
        weights: NDArray[np.float64],
        *,
        ranks: NDArray[np.int64] = _NONE,
        ends: NDArray[np.int64] = _NONE,
        fits: NDArray[np.int64] = _NONE,
        merged: bool = True,
    ) -> Coverage:
        from halfmask.kernels.coverage import Coverage, LabelColumns, covering

        count = leaves.shape[1]
        best = np.full(count, -1, dtype=np.int64)
        found = Coverage(weights, np.zeros(count), ranks, best, ends, fits)
        orders = [c.merged if merged else c.ordered for c in self.released.columns]
        under = [(order.starts, order.covered) for order in orders]
        covering(LabelColumns.of(self.released.labels, leaves, under), found)
        return found


def finding_chance(columns: list[SharedColumn]) -> NDArray[np.float64]:
    """Per original row, the chance to find it by guessing a released row of the tightest fit.

    A row whose labels cover many tuples is less likely the one of a person who fits: each fitting
    row counts for its share of the tuples that it covers. 0 where no row fits.
    """
    found = Cover(columns)
    best, mass = found.tightest()
    chance = np.zeros(found.count)
    held = best >= 0
    chance[held] = 1.0 / (found.released.leaves[best[held]] * mass[held])
    return chance[found.ids]


def tightest_class(columns: list[SharedColumn]) -> NDArray[np.int64]:
    """Per entry of the original, the released class that covers it most tightly; -1: none."""
    found = Cover(columns)
    number = np.empty(len(found.released) + 1, dtype=np.int64)
    number[found.released.ids] = ReleasedTuples(columns).ids
    number[-1] = -1
    return np.asarray(number[found.tightest()[0]][found.ids])


@runtime_checkable
class ReleasedRows(Protocol):
    """Anything that gives its rows as Arrow, such as a release."""

    def to_arrow(self) -> pa.Table:
        """The rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """An original and a release.

    A label's mass lies evenly on the values it covers (uniformity assumption), so that generalized,
    suppressed, perturbed and synthetic rows compare alike.

    Attributes:
        original_tuples: the original's rows or distinct tuples; ``released_tuples`` the release's.
        columns: the shared columns, by name.
        notes: what a reader should know of how they were put on common ground.
    """

    original_tuples: Tuples
    released_tuples: Tuples
    columns: dict[str, SharedColumn]
    notes: tuple[str, ...] = ()
    _cache: dict[tuple[str, ...], tuple[NDArray[np.float64], NDArray[np.float64]]] = field(
        default_factory=dict, repr=False
    )

    @property
    def original(self) -> Table:
        """The entries of the original."""
        return self.original_tuples.table

    @property
    def rows(self) -> pa.Table:
        """The entries of the release."""
        return self.released_tuples.table.arrow

    @property
    def original_counts(self) -> Counts:
        """How many rows each entry of the original stands for."""
        return self.original_tuples.counts

    @property
    def released_counts(self) -> Counts:
        """How many rows each entry of the release stands for."""
        return self.released_tuples.counts

    @property
    def before(self) -> int:
        """Rows of the original."""
        return self.original_tuples.rows

    @property
    def after(self) -> int:
        """Rows of the release."""
        return self.released_tuples.rows

    def original_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entry of each of some rows of the original."""
        return entries_of(rows, self.original_counts)

    def released_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entry of each of some rows of the release."""
        return entries_of(rows, self.released_counts)

    def columns_named(self, names: Sequence[str]) -> list[SharedColumn]:
        """The shared columns among ``names``."""
        return [self.columns[name] for name in names if name in self.columns]

    @property
    def quasi(self) -> list[SharedColumn]:
        """The quasi-identifiers."""
        return self.columns_named(self.original.schema.quasi)

    @property
    def sensitive(self) -> list[SharedColumn]:
        """The sensitive columns."""
        return self.columns_named(self.original.schema.sensitive)

    def tuple_shares(self, names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Over the original's distinct tuples: its own shares, and the mass the release gives them.

        The release may put mass elsewhere: its shares need not add up to 1. Where the release
        holds new numbers, numbers are compared in bins.
        """
        key = tuple(names)
        if key not in self._cache:
            columns = self.columns_named(names)
            if any(column.renumbered for column in columns):
                columns = [column.binned() for column in columns]
            self._cache[key] = _tuple_shares(columns, self.after)
        return self._cache[key]


def sides(
    original: Table | Tuples,
    release: ReleasedRows | Table | Tuples,
    *,
    blank: Collection[str] | None = None,
) -> Sides:
    """Put an original and its release on common ground.

    Args:
        original: its rows, or its distinct tuples with their counts.
        release: likewise, or anything that gives its rows as Arrow.
        blank: the quasi-identifiers in which a missing cell is a suppressed one, also where the
            original has missing cells; None: those that a release in memory names. What the record
            of a file says is for the caller to believe.

    Raises:
        SchemaError: the original declares no quasi-identifier, or the release has none of them.
    """
    before, after = Tuples.of(original), _released_tuples(release)
    table = before.table
    schema = table.schema
    schema.require_quasi()
    missing = [name for name in schema.quasi if name not in after.table.arrow.column_names]
    if len(missing) == len(schema.quasi):
        named = ", ".join(map(repr, missing))
        raise SchemaError(
            f"The release has no quasi-identifier of the original ({named}): give the release of "
            "this table."
        )
    after = _with_stars(after, missing)
    rows = after.table.arrow
    if not len(table) or not rows.num_rows:
        raise InputError("One of the tables has no rows: there is nothing to compare.")
    hidden = set(schema.private)
    names = [
        name
        for name in table.arrow.column_names
        if name in rows.column_names and name not in hidden
    ]
    said = getattr(release, "blanked", ()) if blank is None else blank
    stars = [name for name in schema.quasi if name in names and name in said]
    columns = {name: shared_column(before, after, name, blank=name in stars) for name in names}
    notes = [
        f"Column {column.name!r}: {column.foreign:,} released rows hold values that the original "
        "and its hierarchy do not know; they are taken as new values."
        for column in columns.values()
        if column.foreign
    ]
    notes += [
        f"The release lacks the column {name!r}: it is taken as suppressed in every row."
        for name in missing
    ]
    if stars:
        notes.append(
            f"Missing cells of the release are read as suppressed in {', '.join(stars)}, as its "
            "record says. Attacks read them as missing too, and the worse is told."
        )
    return Sides(before, after, columns, tuple(notes))


def _with_stars(after: Tuples, names: Sequence[str]) -> Tuples:
    """The release with columns that it lacks, suppressed in every row."""
    arrow = after.table.arrow
    for name in names:
        stars = pa.DictionaryArray.from_arrays(np.zeros(arrow.num_rows, np.int32), [TOP])
        arrow = arrow.append_column(name, stars)
    table = after.table.with_schema(after.table.schema, arrow)
    return replace(after, table=table) if names else after


def _released_tuples(release: ReleasedRows | Table | Tuples) -> Tuples:
    if isinstance(release, Table | Tuples):
        return Tuples.of(release)
    return Tuples.of(Table(normalize(release.to_arrow(), ()), Schema()))


def _tuple_shares(
    columns: list[SharedColumn], after: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = Cover(columns)
    own = tally(found.ids, found.count, columns[0].before_counts)
    return own / own.sum(), found.mass() / after


MISSING = "missing"


def require_word(suppressed: object) -> None:
    """Refuse what says nothing of how suppressed cells are written."""
    if suppressed is not None and (not isinstance(suppressed, str) or not suppressed):
        allowed = f'"{MISSING}", or the text that suppressed cells hold'
        raise ParameterError("suppressed", suppressed, allowed)


def star_suppressed(rows: pa.Table, names: Sequence[str], suppressed: str) -> pa.Table:
    """The rows with ``*`` in the cells of ``names`` that are suppressed.

    A missing cell, or a text such as NA, stands for a suppressed one only where the reader of the
    release is told so: it may be a value like any other.

    Args:
        rows: the rows of a release, or its distinct tuples.
        names: the columns in which cells may be suppressed.
        suppressed: the text of such a cell, or ``"missing"`` where it is missing.
    """
    for place, name in enumerate(rows.column_names):
        if name in names:
            rows = rows.set_column(place, name, _star_column(rows[name], suppressed))
    return rows


def _star_column(column: pa.ChunkedArray, suppressed: str) -> pa.ChunkedArray:
    own = encode_column(column)
    held = [None if value is None else canonical(value) for value in own.values.to_pylist()]
    wanted = None if suppressed == MISSING else suppressed
    if wanted not in held:
        return column
    texts = [TOP if text == wanted else text for text in _plain(own.values, held, wanted)]
    values = pa.array(texts, pa.string()).take(pa.array(own.codes))
    return pa.chunked_array([values.dictionary_encode()])


def _plain(
    values: pa.Array, held: Sequence[str | None], wanted: str | None
) -> Sequence[str | None]:
    """What the other cells hold, as text: numbers that one word had made texts are numbers."""
    if wanted is None or not is_text(values.type):
        return held
    others = [text for text in held if text is not None and text != wanted]
    if not others:
        return held
    found = infer_type(pa.chunked_array([pa.array(others, pa.string()).dictionary_encode()]))
    plain = dict(zip(others, map(canonical, found.to_pylist()), strict=True))
    return [text if text is None else plain.get(text, text) for text in held]


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """People and the released rows that stand for them, class by class.

    Attributes:
        owner: per entry of the original, its class; -1 where it was left out.
        sizes: how many pairs each class holds.
        share: per class, the share of its people who have a row.
        people: the people of each class; ``rows`` its released rows.
        in_order: whether the n-th person of a class has its n-th row; else any of them.
    """

    owner: NDArray[np.int64]
    sizes: NDArray[np.int64]
    share: NDArray[np.float64]
    people: ClassRows
    rows: ClassRows
    in_order: bool

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return int(self.sizes.sum())

    def some(
        self, count: int, random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw ``count`` of all pairs: entries of the original, rows of the release."""
        ends = np.cumsum(self.sizes)
        places = random.choice(self.pairs, count, replace=False)
        found = np.searchsorted(ends, places, side="right")
        classes, wanted = np.unique(found, return_counts=True)
        people, _, rows = self.of(classes, wanted, random)
        return people, rows

    def of(
        self, classes: NDArray[np.int64], wanted: NDArray[np.int64], random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Draw some pairs of each of a few classes.

        Returns:
            Entries of the original, entries of the release, and the latter's rows.
        """
        left, right = [], []
        for one, count in zip(classes.tolist(), wanted.tolist(), strict=True):
            start, stop = self.people.starts[one : one + 2].tolist()
            # In order the n-th person has the n-th row; else both are drawn alone.
            mine = theirs = random.choice(stop - start, count, replace=False)
            left.append(start + mine)
            start, stop = self.rows.starts[one : one + 2].tolist()
            if not self.in_order:
                theirs = random.choice(stop - start, count, replace=False)
            right.append(start + theirs)
        return self.people.at(np.concatenate(left))[0], *self.rows.at(np.concatenate(right))


def pairs_in_order(sides: Sides) -> Pairing:
    """Original and released rows by their place; the caller knows that the order was kept.

    Raises:
        InputError: the tables do not hold the same number of rows, or only tuples are known.
    """
    if not (sides.original_tuples.in_order and sides.released_tuples.in_order):
        raise InputError(
            "Rows that an engine counts have no order: leave same_order out, or read both tables "
            "into memory."
        )
    if sides.before != sides.after:
        raise InputError(
            f"The tables hold {sides.before:,} and {sides.after:,} rows and cannot be paired by "
            "place: rows in the same order need as many on both sides."
        )
    ids = ReleasedTuples(sides.quasi).ids
    members = class_rows(ids, int(ids.max()) + 1, sides.released_counts)
    sizes = np.diff(members.starts)
    return Pairing(ids, sizes, np.ones(len(sizes)), members, members, in_order=True)


def pairs_in_classes(sides: Sides) -> Pairing | None:
    """Original and released rows of the same class; None where the rows stand for nobody.

    Rows of one class carry the same labels, so that any of them may stand for any person of the
    class: the pairs are drawn at random inside classes, which changes no chance of an attacker who
    knows the quasi-identifiers only.
    """
    owner, ids = tightest_class(sides.quasi), ReleasedTuples(sides.quasi).ids
    count = int(ids.max()) + 1
    people = class_rows(owner, count, sides.original_counts)
    rows = class_rows(ids, count, sides.released_counts)
    there = np.diff(people.starts)
    sizes = np.minimum(there, np.diff(rows.starts))
    if 2 * int(sizes.sum()) < sides.after:  # most rows stand for nobody
        return None
    return Pairing(owner, sizes, sizes / np.maximum(there, 1), people, rows, in_order=False)
