"""Finds, for one column, what each published label covers of the original's values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.metrics.shared_column import SharedColumn
from halfmask.metrics.weighted import quantiles, tally
from halfmask.table import ranges
from halfmask.table.hierarchy import TOP, canonical
from halfmask.table.sets import Members
from halfmask.table.table import encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.weighted import Counts
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table

_FINE = 50  # numeric columns with more values are compared in bins
_BINS = 20
_COARSE = 100  # bins in which pairs of columns are compared


def shared_column(
    original: Table, rows: pa.Table, name: str, counts: tuple[Counts, Counts] = (None, None)
) -> SharedColumn:
    """Put the column ``name`` of both tables on common ground.

    With ``counts``, the entries of either table stand for so many rows.
    """
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
    _settle(places, hierarchy, texts, labels)
    maps = np.vstack([hierarchy.maps, np.zeros((1, known), dtype=np.int32)])
    written = pa.types.is_string(published.values.type)
    maps = _with_ranges(
        maps, places, labels, texts, Members(texts, own.values) if written else None
    )
    fresh = [text for text in labels if text not in places]
    leaf_of_fresh = {text: known + i for i, text in enumerate(fresh)}
    to_label = np.full((len(maps), known + len(fresh)), -1, dtype=np.int32)
    under = _Under(maps)
    covers, levels = [], []
    for place, text in enumerate(labels):
        if text in leaf_of_fresh:
            covers.append(np.array([leaf_of_fresh[text]]))
            levels.append(0)
            to_label[0, leaf_of_fresh[text]] = place
            continue
        level, code = places[text]
        covers.append(under.leaves(level, code))
        levels.append(level)
        to_label[level, covers[-1]] = place
    foreign = np.array([text in leaf_of_fresh for text in labels])
    leaf_rows = tally(own.codes, known + len(fresh), counts[0])
    label_rows = tally(published.codes, len(labels), counts[1])
    numbers = _numbers(original, name, own.values, published.values, fresh, labels)
    lost = None if foreign.any() else _loss(hierarchy, levels, labels, places, covers, label_rows)
    bin_of, bins = _binned(numbers, leaf_rows)
    coarse_of, coarse = _coarse(bin_of, bins, leaf_rows)
    return SharedColumn(
        name=name,
        role=declared.role if declared else "other",
        before=own.codes,
        after=published.codes,
        before_counts=counts[0],
        after_counts=counts[1],
        leaves=known + len(fresh),
        known=known,
        starts=np.concatenate(([0], np.cumsum([len(c) for c in covers]))).astype(np.int64),
        covered=np.concatenate(covers).astype(np.int64),
        level=np.array(levels, dtype=np.int64),
        to_label=to_label,
        numbers=numbers,
        foreign=int(label_rows[foreign].sum()),
        loss=lost,
        bin_of=bin_of,
        bins=bins,
        coarse_of=coarse_of,
        coarse=coarse,
    )


def _settle(
    places: dict[str | None, tuple[int, int]],
    hierarchy: Hierarchy,
    texts: list[str | None],
    labels: list[str | None],
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


def _with_ranges(
    maps: NDArray[np.int32],
    places: dict[str | None, tuple[int, int]],
    labels: list[str | None],
    texts: list[str | None],
    members: Members | None,
) -> NDArray[np.int32]:
    """A level of its own for each range such as 17-24 and each set, as they may overlap.

    A hierarchy may call 41 to 45 by the name 40-44. Where some ranges are none of its labels, the
    release speaks of ranges, and all of them are read as they are written.
    """
    at = ranges.places(texts)
    said = {label: ranges.ends(label, at) for label in labels if label is not None}
    written = any(ends is not None and label not in places for label, ends in said.items())
    rows: list[NDArray[np.int32]] = []
    for label, ends in said.items():
        if label in places and (not written or ends is None or places[label][0] == 0):
            continue
        inside = None if members is None or ends is not None else members.of(label)
        if ends is not None:
            inside = np.zeros(maps.shape[1], dtype=bool)
            inside[ends[0] : ends[1] + 1] = True
        if inside is not None and inside.any():
            places[label] = (len(maps) + len(rows), 0)
            rows.append(np.where(inside, 0, -1).astype(np.int32))
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
        whole = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    own = whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    if not fresh:
        return _filled(own)
    if dated or not (pa.types.is_integer(published.type) or pa.types.is_floating(published.type)):
        return None
    all_published = published.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    at = {text: place for place, text in enumerate(labels)}
    new = [float(all_published[at[text]]) for text in fresh]
    return _filled(np.concatenate([own, np.array(new, dtype=np.float64)]))


def _filled(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    missing = ~np.isfinite(numbers)
    if missing.all():
        return np.zeros_like(numbers)
    return np.where(missing, numbers[~missing].mean(), numbers)


def _loss(
    hierarchy: Hierarchy,
    levels: list[int],
    labels: list[str | None],
    places: dict[str | None, tuple[int, int]],
    covers: list[NDArray[np.int64]],
    rows: NDArray[np.int64],
) -> float:
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
    return (int(covered @ rows) / int(rows.sum()) - 1) / (hierarchy.size - 1)


def leaf_bins(
    original: Table, name: str, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """The bin of each value in which distributions are compared, where ``rows`` rows hold it."""
    values = original.encode(name).values
    return _binned(_numbers(original, name, values, values, [], []), rows)


def _binned(
    numbers: NDArray[np.float64] | None, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Leaves themselves, or quantile bins of the original's rows for fine numbers."""
    if numbers is None or len(rows) <= _FINE:
        return np.arange(len(rows)), len(rows)
    edges = np.unique(quantiles(numbers, rows, np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.searchsorted(edges, numbers, side="right").astype(np.int64), len(edges) + 1


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


class _Under:
    """The leaves under each label of each level; a level is sorted once."""

    def __init__(self, maps: NDArray[np.int32]) -> None:
        self._maps = maps
        self._sorted: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def leaves(self, level: int, code: int) -> NDArray[np.int64]:
        """The leaves whose label at ``level`` has ``code``, ascending."""
        if level not in self._sorted:
            order = np.argsort(self._maps[level], kind="stable")
            found = self._maps[level][order]
            starts = np.searchsorted(found, np.arange(int(found[-1]) + 2))
            self._sorted[level] = order, starts
        order, starts = self._sorted[level]
        return order[starts[code] : starts[code + 1]]
