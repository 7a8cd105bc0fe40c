"""What each published label covers: a value, all under a node of the hierarchy, a range, a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.metrics.codes import runs
from halfmask.table import ranges
from halfmask.table.hierarchy import TOP, canonical
from halfmask.table.sets import Members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy

    Places = dict[str | None, tuple[int, int]]

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


def published_labels(hierarchy: Hierarchy, values: pa.Array, published: pa.Array) -> Labels:
    """Find what the distinct ``published`` labels cover of the original's ``values``."""
    texts, labels = _texts(values), _texts(published)
    places = _places(hierarchy, texts)
    _settle(places, hierarchy, texts, labels)
    maps = np.vstack([hierarchy.maps, np.zeros((1, len(texts)), dtype=np.int32)])
    # Other types write the same otherwise: 1.5 and 1.50, or a year for its days.
    written = pa.types.is_string(published.type) or published.type != values.type
    spans = _spans(places, labels, texts, Members(texts, values) if written else None, len(maps))
    fresh = np.array([i for i, text in enumerate(labels) if text not in places], dtype=np.int64)
    found = np.array([places.get(text, (_NEW, 0)) for text in labels], dtype=np.int64)
    level, code = found.reshape(-1, 2).T
    code = code.copy()
    code[fresh] = np.arange(len(fresh))
    starts, covered = _covered(level, code, maps, spans)
    wide = np.diff(starts)
    for one in range(len(hierarchy.leaves)):
        at = level == one
        wide[at] = np.asarray(hierarchy.leaves[one])[code[at]]
    wide[level == len(maps) - 1] = hierarchy.size
    return Labels(np.where(level == _NEW, 0, level), starts, covered, fresh, wide)


def _texts(values: pa.Array) -> list[str | None]:
    return [None if v is None else canonical(v) for v in values.to_pylist()]


def _places(hierarchy: Hierarchy, texts: list[str | None]) -> Places:
    """The level and code of every label that is known beforehand, the coarsest first."""
    places: Places = {TOP: (hierarchy.height + 1, 0)}
    if None not in texts:  # a missing cell where the original has none is a suppressed one
        places[None] = (hierarchy.height + 1, 0)
    for level in range(hierarchy.height, 0, -1):
        for code, label in enumerate(hierarchy.labels[level]):
            places.setdefault(None if label is None else str(label), (level, code))
    for code, text in enumerate(texts):
        places.setdefault(text, (0, code))
    return places


def _settle(
    places: Places, hierarchy: Hierarchy, texts: list[str | None], labels: list[str | None]
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
    places: Places,
    labels: list[str | None],
    texts: list[str | None],
    members: Members | None,
    levels: int,
) -> list[NDArray[np.int64]]:
    """The leaves of ranges such as 17-24 and of sets; adds their places.

    A hierarchy may call 41 to 45 by the name 40-44. Where some ranges are none of its labels, the
    release speaks of ranges, and all of them are read as they are written.
    """
    at = ranges.places(texts)
    said = {label: ranges.ends(label, at) for label in labels if label is not None}
    written = any(ends is not None and label not in places for label, ends in said.items())
    spans: list[NDArray[np.int64]] = []
    for label, ends in said.items():
        if label in places and (not written or ends is None or places[label][0] == 0):
            continue
        if ends is not None:
            inside = np.arange(ends[0], ends[1] + 1)
        else:
            marked = None if members is None else members.of(label)
            inside = np.arange(0) if marked is None else np.flatnonzero(marked)
        if len(inside):
            places[label] = (levels + len(spans), len(spans))
            spans.append(inside)
    return spans


def _covered(
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
