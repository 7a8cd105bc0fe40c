"""Which columns, taken together, single rows out.

Definition: Q is a quasi-identifier of a table iff ``GROUP BY Q HAVING COUNT(*) = 1`` is not empty.
    It is minimal iff no part of it is one; everything that contains one is one too.
Source: Nguyen and Castelluccia, "Techniques d'anonymisation tabulaire", 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from halfmask.table.dictionary import dictionary_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    Codes = NDArray[np.int32]
    Weights = NDArray[np.float64]

_COUNTERS = 1 << 23  # up to here a plain array of counters is faster than sorting
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search gave.

    Attributes:
        sets: the minimal quasi-identifiers, smallest first.
        size: all sets of up to this many columns were decided.
    """

    sets: tuple[tuple[str, ...], ...]
    size: int


def search(columns: dict[str, tuple[Codes, int]], limit: int, work: float = np.inf) -> Found:
    """Decide sets of growing size, skipping all that contain a known one.

    Args:
        columns: per name, the code of each row and the number of codes.
        limit: the largest size.
        work: stop before a size that would look at more tuples than this, all sets together.
    """
    found: list[tuple[str, ...]] = []
    rows: Weights | None = None
    for size in range(1, min(limit, len(columns)) + 1):
        if size == 2:
            columns = {name: columns[name] for name in columns if (name,) not in found}
            columns, rows = _collapsed(columns)
        open_sets = list(_open_sets(list(columns), found, size))
        if not open_sets:
            continue
        work -= len(columns[open_sets[0][0]][0]) * len(open_sets)
        if work < 0:
            return Found(tuple(found), size - 1)
        found += [names for names in open_sets if _singles_out([columns[n] for n in names], rows)]
    return Found(tuple(found), limit)


def _collapsed(
    columns: dict[str, tuple[Codes, int]],
) -> tuple[dict[str, tuple[Codes, int]], Weights | None]:
    """The distinct tuples and how many rows have each, where that is much less than all rows."""
    if len(columns) < 2:
        return columns, None
    key = _key(list(columns.values()))[0]
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    if 2 * len(first) > len(key):
        return columns, None
    kept = {name: (codes[first], count) for name, (codes, count) in columns.items()}
    return kept, counts.astype(np.float64)


def _open_sets(
    names: list[str], found: list[tuple[str, ...]], size: int
) -> Iterator[tuple[str, ...]]:
    """Sets of one size that contain no quasi-identifier known so far."""
    alone = {known[0] for known in found if len(known) == 1}
    several = [frozenset(known) for known in found if len(known) > 1]
    for chosen in combinations([name for name in names if name not in alone], size):
        members = set(chosen)
        if not any(known <= members for known in several):
            yield chosen


def _key(columns: list[tuple[Codes, int]]) -> tuple[NDArray[np.int64], int]:
    """One number per combination of codes, and how large these numbers can be."""
    key = np.zeros(len(columns[0][0]), dtype=np.int64)
    space = 1
    for codes, count in sorted(columns, key=lambda column: column[1]):
        if space * count >= 2**62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            space = len(key)
        key = key * count + codes
        space *= count
    return key, space


def _singles_out(columns: list[tuple[Codes, int]], rows: Weights | None) -> bool:
    """Whether some combination of codes occurs in exactly one row."""
    key, space = _key(columns)
    if space <= _COUNTERS:
        return bool((np.bincount(key, rows) == 1).any())
    places = (key.view(np.uint64) * _MIX) >> np.uint64(64 - 22)
    if (np.bincount(places.astype(np.int64), rows) == 1).any():
        return True  # a row alone in its place is alone in its class
    classes = np.unique(key, return_inverse=True)[1]
    return bool((np.bincount(classes, rows) == 1).any())


def codes_of(column: pa.ChunkedArray) -> tuple[Codes, int]:
    """The code of each row in any order of values, and how many codes there are (null is one)."""
    array = dictionary_of(column)
    size = len(array.dictionary)
    codes = array.indices.fill_null(size) if array.null_count else array.indices
    return codes.to_numpy(zero_copy_only=False).astype(np.int32), size + 1
