"""One column of an original and of its release, on common ground."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.metrics.space import finite
from halfmask.metrics.weighted import quantiles, runs
from halfmask.table import labels as ranges
from halfmask.table.hierarchy import TOP, canonical
from halfmask.table.labels import SIGN, LabelReader
from halfmask.table.table import encode_column
from halfmask.table.tuples import tally
from halfmask.table.values import is_moment, is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table
    from halfmask.table.tuples import Counts, Tuples

    LabelPlaces = dict[str | None, tuple[int, int]]


_CELLS = 1 << 22  # up to so many pairs of label and leaf, leaves are put in another order


@dataclass(frozen=True, slots=True, eq=False)
class LeafOrder:
    """Leaves by numbers.

    Attributes:
        number: per leaf, its number; ``count`` how many numbers there are.
        starts: where the numbers of each label begin in ``covered``.
        covered: the numbers under each label, ascending.
    """

    number: NDArray[np.int32]
    count: int
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Per label, how many numbers it covers."""
        return np.diff(self.starts)

    @property
    def gaps(self) -> int:
        """How many labels do not cover all numbers between their first and their last."""
        spans = self.covered[self.starts[1:] - 1] - self.covered[self.starts[:-1]] + 1
        return int((spans > self.sizes).sum())


def order_leaves(leaves: int, starts: NDArray[np.int64], covered: NDArray[np.int64]) -> LeafOrder:
    """Number leaves so that fewer labels have gaps, none where labels are nested.

    What covers a tuple of leaves is found by walking over ranges; where labels are nested, an order
    exists in which each is one. Leaves that stand under the same labels are covered alike.
    """
    kept = LeafOrder(np.arange(leaves, dtype=np.int32), leaves, starts, covered)
    labels = len(starts) - 1
    if not kept.gaps or labels * leaves > _CELLS:
        return kept
    owner = np.repeat(np.arange(labels), kept.sizes)
    under = np.zeros((labels, leaves), dtype=bool)
    under[owner, covered] = True
    number = np.empty(leaves, dtype=np.int32)
    # By the widest label first, then by those inside it.
    number[np.lexsort(under[np.argsort(kept.sizes, kind="stable")])] = np.arange(leaves)
    moved = number[covered].astype(np.int64)
    tried = LeafOrder(number, leaves, starts, moved[np.lexsort((moved, owner))])
    return tried if tried.gaps < kept.gaps else kept


def merge_leaves(given: LeafOrder) -> LeafOrder:
    """One number for neighbors that stand under the same labels; as given where few do."""
    # Runs of neighboring numbers, label by label: what stands under a label changes only where a
    # run begins, and behind its end.
    begins = np.diff(given.covered, prepend=-2) != 1
    begins[given.starts[:-1]] = True
    edges = np.zeros(given.count + 1, dtype=bool)
    edges[given.covered[begins]] = True
    edges[given.covered[np.roll(begins, -1)] + 1] = True
    edges[0] = False
    group = np.cumsum(edges[:-1])
    if 2 * (int(group[-1]) + 1) > given.count:  # a second numbering would not pay
        return given
    held = group[given.covered]
    kept = np.diff(held, prepend=-1) != 0
    kept[given.starts[:-1]] = True
    upto = np.concatenate(([0], np.cumsum(kept)))
    number = group[given.number].astype(np.int32)
    return LeafOrder(number, int(group[-1]) + 1, upto[given.starts], held[kept])


_NEW = -1  # the level of values that the original does not know, while labels are being placed


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The distinct labels of a released column.

    Attributes:
        level: the level of the hierarchy that each stands at; 0 is a value, ranges and sets have
            a level of their own each, as they may overlap.
        starts: where the leaves of each begin in ``covered``.
        covered: the leaves under each, ascending; new values come after those of the original.
        fresh: the labels that are new values, in the order of their leaves.
        wide: how many values of the hierarchy each stands for.
    """

    level: NDArray[np.int64]
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]
    fresh: NDArray[np.int64]
    wide: NDArray[np.int64]


def published_labels(
    hierarchy: Hierarchy, values: pa.Array, published: pa.Array, *, blank: bool = False
) -> Labels:
    """Find what the distinct ``published`` labels cover of the original's ``values``.

    ``blank``: a missing one is suppressed, also where the original has missing cells.
    """
    texts, labels = _texts(values), _texts(published)
    places = _places(hierarchy, texts, blank=blank)
    _resolve_levels(places, hierarchy, texts, labels)
    maps = np.vstack([hierarchy.maps, np.zeros((1, len(texts)), dtype=np.int32)])
    # Other types write the same otherwise: 1.5 and 1.50, or a year for its days.
    written = pa.types.is_string(published.type) or published.type != values.type
    reader = LabelReader(texts, values, _groups(hierarchy, labels)) if written else None
    spans = _spans(places, labels, texts, reader, len(maps))
    fresh = np.array([i for i, text in enumerate(labels) if text not in places], dtype=np.int64)
    found = np.array([places.get(text, (_NEW, 0)) for text in labels], dtype=np.int64)
    level, code = found.reshape(-1, 2).T
    code = code.copy()
    code[fresh] = np.arange(len(fresh))
    starts, covered = _label_leaves(level, code, maps, spans)
    wide = np.diff(starts)
    for one in range(len(hierarchy.leaves)):
        at = level == one
        wide[at] = np.asarray(hierarchy.leaves[one])[code[at]]
    wide[level == len(maps) - 1] = hierarchy.size
    return Labels(np.where(level == _NEW, 0, level), starts, covered, fresh, wide)


def _groups(hierarchy: Hierarchy, labels: list[str | None]) -> dict[str, NDArray[np.bool_]]:
    """The values under labels of the hierarchy that stand in published sets."""
    pieces = {piece for text in labels if text and SIGN in text for piece in text.split(SIGN)}
    return {
        str(label): hierarchy.maps[level] == code
        for level in range(hierarchy.height, 0, -1)
        for code, label in enumerate(hierarchy.labels[level])
        if pieces and label is not None and str(label) in pieces
    }


def _texts(values: pa.Array) -> list[str | None]:
    return [None if v is None else canonical(v) for v in values.to_pylist()]


def _places(hierarchy: Hierarchy, texts: list[str | None], *, blank: bool) -> LabelPlaces:
    """The level and code of every label that is known beforehand, the coarsest first."""
    places: LabelPlaces = {TOP: (hierarchy.height + 1, 0)}
    if blank or None not in texts:  # where the original has none, it is a suppressed one
        places[None] = (hierarchy.height + 1, 0)
    for level in range(hierarchy.height, 0, -1):
        for code, label in enumerate(hierarchy.labels[level]):
            places.setdefault(None if label is None else str(label), (level, code))
    for code, text in enumerate(texts):
        places.setdefault(text, (0, code))
    return places


def _resolve_levels(
    places: LabelPlaces, hierarchy: Hierarchy, texts: list[str | None], labels: list[str | None]
) -> None:
    """Where a text names the same values at several levels, take the lowest that all labels share.

    Else a column that was left as it is would seem to be generalized here and there.
    """
    named = [[None if one is None else str(one) for one in held] for held in hierarchy.labels[1:]]
    names = [{text: code for code, text in enumerate(held)} for held in (texts, *named)]
    choices: dict[str | None, dict[int, int]] = {}
    for text in labels:
        level, code = places.get(text, (hierarchy.height + 1, 0))
        if level > hierarchy.height:
            continue
        same = choices[text] = {level: code}
        for lower in range(level):
            under = names[lower].get(text)
            if under is not None and _alike(hierarchy, (level, code), (lower, under)):
                same[lower] = under
    common = set.intersection(*map(set, choices.values())) if choices else set()
    for text, same in choices.items():
        level = min(common or same)
        places[text] = (level, same[level])


def _alike(hierarchy: Hierarchy, one: tuple[int, int], two: tuple[int, int]) -> bool:
    """Whether two labels, each as level and code, cover the same leaves."""
    wide = [int(hierarchy.leaves[level][code]) for level, code in (one, two)]
    held = [hierarchy.maps[level] == code for level, code in (one, two)]
    return wide[0] == wide[1] and bool((held[0] == held[1]).all())


def _spans(
    places: LabelPlaces,
    labels: list[str | None],
    texts: list[str | None],
    reader: LabelReader | None,
    levels: int,
) -> list[NDArray[np.int64]]:
    """The leaves of ranges such as 17-24 and of sets; adds their places.

    A hierarchy may call 41 to 45 by the name 40-44. Where some ranges are none of its labels, the
    release speaks of ranges, and all of them are read as they are written.
    """
    at = ranges.value_places(texts)
    said = {label: ranges.range_ends(label, at) for label in labels if label is not None}
    written = any(ends is not None and label not in places for label, ends in said.items())
    spans: list[NDArray[np.int64]] = []
    for label, ends in said.items():
        if label in places and (not written or ends is None or places[label][0] == 0):
            continue
        if ends is not None:
            inside = np.arange(ends[0], ends[1] + 1)
        else:
            marked = None if reader is None else reader.of(label)
            inside = np.arange(0) if marked is None else np.flatnonzero(marked)
        if len(inside):
            places[label] = (levels + len(spans), len(spans))
            spans.append(inside)
    return spans


def _label_leaves(
    level: NDArray[np.int64],
    code: NDArray[np.int64],
    maps: NDArray[np.int32],
    spans: list[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the leaves of each label begin, and these."""
    sizes = np.ones(len(level), dtype=np.int64)
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for one in np.unique(np.minimum(level, len(maps))).tolist():
        at = np.flatnonzero(np.minimum(level, len(maps)) == one)
        if one == _NEW:
            leaves = maps.shape[1] + code[at]
        elif one == len(maps):
            sizes[at] = [len(spans[i]) for i in code[at].tolist()]
            leaves = np.concatenate([spans[i] for i in code[at].tolist()])
        else:
            order = np.argsort(maps[one], kind="stable")
            begins = np.searchsorted(maps[one][order], np.arange(int(maps[one].max()) + 2))
            sizes[at] = begins[code[at] + 1] - begins[code[at]]
            leaves = order[runs(begins[code[at]], sizes[at])]
        parts.append((at, leaves))
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    covered = np.empty(int(starts[-1]), dtype=np.int64)
    for at, leaves in parts:
        covered[runs(starts[at], sizes[at])] = leaves
    return starts, covered


@dataclass(frozen=True, slots=True, eq=False)
class SharedColumn:
    """One column of both tables.

    A column has leaves: the values of the original, then values that only the release holds
    (perturbed or synthetic rows). A published label covers leaves: a value itself, a label of the
    hierarchy all values under it, ``*`` all of them. A label's mass lies evenly on the leaves it
    covers.

    Attributes:
        name: its name; ``role`` its role in the original.
        before: per entry of the original (a row, or a distinct tuple of several), its leaf;
            ``after``: per entry of the release, its label.
        before_counts: per entry of the original, its rows; ``after_counts`` of the release.
        leaves: how many leaves there are, the first ``known`` of them from the original.
        starts: where the leaves of each label begin in ``covered``.
        covered: the leaves under each label, ascending.
        level: per label, the level of the hierarchy it stands at; 0 is a value.
        numbers: per leaf, its number; None where the column is not numeric.
        blank: whether a missing cell of the release is read as a suppressed one.
        foreign: released rows whose label the original and its hierarchy do not know.
        loss: the mean loss of the published cells, 0 to 1; None where labels are foreign.
        bin_of: per leaf, the bin in which distributions are compared; ``bins`` how many.
        coarse_of: the same for pairs of columns: rare values share a bin; ``coarse`` how many.
    """

    name: str
    role: str
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    before_counts: Counts
    after_counts: Counts
    leaves: int
    known: int
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]
    level: NDArray[np.int64]
    numbers: NDArray[np.float64] | None
    foreign: int
    loss: float | None
    bin_of: NDArray[np.int64]
    bins: int
    coarse_of: NDArray[np.int64]
    coarse: int
    blank: bool = False
    _ordered: list[LeafOrder] = field(default_factory=list, init=False, repr=False)

    @property
    def labels(self) -> int:
        """How many different labels the release holds."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Per label, how many leaves it covers."""
        return np.diff(self.starts)

    @property
    def leaf_rows(self) -> NDArray[np.int64]:
        """Per leaf, how many rows of the original hold it."""
        return tally(self.before, self.leaves, self.before_counts)

    @property
    def label_rows(self) -> NDArray[np.int64]:
        """Per label, how many released rows hold it."""
        return tally(self.after, self.labels, self.after_counts)

    @property
    def label_numbers(self) -> NDArray[np.float64]:
        """Per label, the mean number of its leaves."""
        assert self.numbers is not None  # noqa: S101 - only asked of numeric columns
        sums = np.add.reduceat(self.numbers[self.covered], self.starts[:-1])
        return np.asarray(sums / self.sizes)

    @property
    def ordered(self) -> LeafOrder:
        """Leaves in an order in which labels are ranges, if there is one."""
        return self._orders()[0]

    @property
    def merged(self) -> LeafOrder:
        """The same, where leaves that no label tells apart are one."""
        return self._orders()[1]

    def _orders(self) -> list[LeafOrder]:
        if not self._ordered:
            found = order_leaves(self.leaves, self.starts, self.covered)
            self._ordered.extend((found, merge_leaves(found)))
        return self._ordered

    def covers(self, labels: NDArray[np.int64], leaves: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each of some labels covers the leaf beside it."""
        # Label and leaf as one number: ascending, as the leaves of each label are.
        keys = np.repeat(np.arange(self.labels), self.sizes) * self.leaves + self.covered
        wanted = labels * self.leaves + leaves
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray(keys[at] == wanted)

    def only_label(self) -> NDArray[np.int32]:
        """Per leaf, the label that covers it where there is one at most; -1 where none does."""
        out = np.full(self.leaves, -1, dtype=np.int32)
        out[self.covered] = np.repeat(np.arange(self.labels), self.sizes)
        return out

    def spread(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mass on labels as mass on leaves."""
        each = np.repeat(weights / self.sizes, self.sizes)
        return np.asarray(
            np.bincount(self.covered, weights=each, minlength=self.leaves), dtype=np.float64
        )

    def shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The distributions over bins of the original and of the release."""
        p = tally(self.bin_of, self.bins, self.leaf_rows)
        counts = self.label_rows.astype(np.float64)
        q = np.bincount(self.bin_of, weights=self.spread(counts), minlength=self.bins)
        return p / max(p.sum(), 1), q / max(q.sum(), 1e-300)

    def weights(self) -> csr_array:
        """(labels, coarse bins) how the mass of each label lies on the bins."""
        from scipy.sparse import csr_array

        owner = np.repeat(np.arange(self.labels), self.sizes)
        cells = (1.0 / self.sizes[owner], (owner, self.coarse_of[self.covered]))
        return csr_array(cells, shape=(self.labels, self.coarse))

    def inside(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Per label, the share of its leaves that ``chosen`` marks."""
        marks = chosen[self.covered].astype(np.float64)
        return np.asarray(np.add.reduceat(marks, self.starts[:-1]) / self.sizes)

    @property
    def renumbered(self) -> bool:
        """Whether the release holds new numbers, which equal none of the original's."""
        return self.numbers is not None and self.leaves > self.known

    def binned(self) -> SharedColumn:
        """The column in its bins; a label of several values lies evenly on the bins it touches."""
        if self.bins == self.leaves:
            return self
        several = np.flatnonzero(self.sizes > 1)  # each of them stays a label of its own
        label = self.bin_of[self.covered[self.starts[:-1]]]
        label[several] = self.bins + np.arange(len(several))
        wide = [self.bin_of[self.covered[self.starts[i] : self.starts[i + 1]]] for i in several]
        covers = [np.array([place]) for place in range(self.bins)] + [np.unique(w) for w in wide]
        return replace(
            self,
            before=self.bin_of[self.before].astype(np.int32),
            after=label[self.after].astype(np.int32),
            leaves=self.bins,
            known=self.bins,
            starts=np.concatenate(([0], np.cumsum([len(c) for c in covers]))).astype(np.int64),
            covered=np.concatenate(covers).astype(np.int64),
            level=np.concatenate((np.zeros(self.bins), 1 + np.arange(len(several)))).astype(
                np.int64
            ),
            numbers=None,
            bin_of=np.arange(self.bins),
        )


_FINE = 50  # numeric columns with more values are compared in bins
_BINS = 20
_DAY = 86_400_000_000.0  # microseconds
_COARSE = 100  # bins in which pairs of columns are compared


def shared_column(before: Tuples, after: Tuples, name: str, *, blank: bool = False) -> SharedColumn:
    """Put the column ``name`` of both sides on common ground; ``blank``: missing is suppressed."""
    original = before.table
    own, published = original.encode(name), encode_column(after.table.arrow[name])
    declared = original.schema.columns.get(name)
    hierarchy = original.hierarchy(name)
    labels = published_labels(hierarchy, own.values, published.values, blank=blank)
    known, leaves = len(own.values), len(own.values) + len(labels.fresh)
    leaf_rows = tally(own.codes, leaves, before.counts)
    label_rows = tally(published.codes, len(labels.level), after.counts)
    numbers = _numbers(original, name, own.values, published.values, labels.fresh)
    wide = int(labels.wide @ label_rows) / int(label_rows.sum())
    lost = (wide - 1) / (hierarchy.size - 1) if hierarchy.size > 1 else 0.0
    bin_of, bins = _bin_numbers(numbers, leaf_rows)
    coarse_of, coarse = _coarse(bin_of, bins, leaf_rows)
    return SharedColumn(
        name=name,
        role=declared.role if declared else "other",
        before=own.codes,
        after=published.codes,
        before_counts=before.counts,
        after_counts=after.counts,
        leaves=leaves,
        known=known,
        starts=labels.starts,
        covered=labels.covered,
        level=labels.level,
        numbers=numbers,
        foreign=int(label_rows[labels.fresh].sum()),
        loss=None if len(labels.fresh) else lost,
        bin_of=bin_of,
        bins=bins,
        coarse_of=coarse_of,
        coarse=coarse,
        blank=blank,
    )


def _numbers(
    original: Table,
    name: str,
    values: pa.Array,
    published: pa.Array,
    fresh: NDArray[np.int64],
) -> NDArray[np.float64] | None:
    """The number of each leaf, where the column is numeric; a missing value takes the mean."""
    column = original.schema.columns.get(name)
    if column is not None and column.kind in ("nominal", "ordinal"):
        return None
    own = _as_numbers(values)
    if own is None or not len(fresh):
        return None if own is None else _fill_gaps(own)
    theirs = _as_numbers(published)
    if theirs is None or is_moment(values.type) != is_moment(published.type):
        return None
    new = theirs[fresh]
    return _fill_gaps(np.concatenate([own, new]))


def _as_numbers(values: pa.Array) -> NDArray[np.float64] | None:
    """Values as numbers, dates and times as days; None where they are neither."""
    kind = values.type
    if is_moment(kind):
        values = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    elif not is_number(kind):
        return None
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(found / _DAY if is_moment(kind) else found, dtype=np.float64)


def _fill_gaps(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    numbers = finite(numbers)
    missing = ~np.isfinite(numbers)
    if missing.all():
        return np.zeros_like(numbers)
    return np.where(missing, numbers[~missing].mean(), numbers)


def leaf_bins(original: Table, name: str, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The bin of each value in which distributions are compared, where ``rows`` rows hold it."""
    values = original.encode(name).values
    return _bin_numbers(_numbers(original, name, values, values, np.arange(0)), rows)


def _bin_numbers(
    numbers: NDArray[np.float64] | None, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Leaves themselves, or quantile bins of the original's rows for fine numbers.

    A number that half of a bin's rows share is a bin of its own: else a value that many share, such
    as 0, could be spread over its neighbors unseen.
    """
    if numbers is None or len(rows) <= _FINE:
        return np.arange(len(rows)), len(rows)
    edges = np.unique(quantiles(numbers, rows, np.linspace(0, 1, _BINS + 1)[1:-1]))
    place = np.searchsorted(edges, numbers, side="right").astype(np.int64)
    shared = np.unique(numbers[2 * _BINS * rows >= max(int(rows.sum()), 1)])  # whole numbers
    at = np.searchsorted(shared, numbers)
    own = at < len(shared)
    own[own] = shared[at[own]] == numbers[own]
    place = np.where(own, len(edges) + 1 + at, place)
    used, found = np.unique(place, return_inverse=True)
    return found.reshape(-1).astype(np.int64), len(used)


def _coarse(
    bin_of: NDArray[np.int64], bins: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """The frequent bins by themselves, all others together."""
    if bins <= _COARSE:
        return bin_of, bins
    frequent = np.argsort(-tally(bin_of, bins, rows), kind="stable")
    place = np.full(bins, _COARSE - 1, dtype=np.int64)
    place[frequent[: _COARSE - 1]] = np.arange(_COARSE - 1)
    return place[bin_of], _COARSE
