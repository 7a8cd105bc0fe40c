"""All partitions of a small table, listed; and checks that share no code with the product."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import pyarrow as pa

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np


def line(xs: list[float], ks: list[int]) -> hm.Table:
    """Numbers whose distance is |a - b|, with demands."""
    weight = float(max(xs) - min(xs))
    schema = hm.Schema({"x": hm.Column("quasi", weight=weight)}, policy={"k": "k_i"})
    return hm.Table(pa.table({"x": xs, "k_i": ks}), schema)


def partitions(n: int) -> Iterator[list[int]]:
    """Every partition once, as class numbers in order of first occurrence."""
    ids = [0] * n

    def extend(i: int, used: int) -> Iterator[list[int]]:
        if i == n:
            yield list(ids)
            return
        for c in range(used + 1):
            ids[i] = c
            yield from extend(i + 1, max(used, c + 1))

    return extend(0, 0)


def valid(ids: list[int], ks: list[int]) -> bool:
    sizes = Counter(ids)
    return all(sizes[c] >= k for c, k in zip(ids, ks, strict=True))


def value(far: np.ndarray, ids: list[int], metric: str) -> float:
    pairs = [(i, j) for i, j in combinations(range(len(ids)), 2)]
    if metric == "split":
        return min((far[i, j] for i, j in pairs if ids[i] != ids[j]), default=0.0)
    inside = [(i, j) for i, j in pairs if ids[i] == ids[j]]
    if metric == "wcsd":
        return sum(far[i, j] for i, j in inside)
    wide = Counter()
    for i, j in inside:
        wide[ids[i]] = max(wide[ids[i]], far[i, j])
    if metric == "diameter":
        return max(wide.values(), default=0.0)
    return sum(wide[c] for c in ids)


def best(far: np.ndarray, ks: list[int], metric: str) -> float:
    """The optimum by looking at everything."""
    listed = (ids for ids in partitions(len(ks)) if valid(ids, ks))
    found = [value(far, ids, metric) for ids in listed]
    return max(found) if metric == "split" else min(found)


def violations(original: hm.Table, release: hm.Release, quasi: list[str], demand: str) -> int:
    """How many people stand among fewer than they ask for, counted on published rows alone.

    The release is shuffled and the demands do not leave, so that a tag column carries them.
    """
    rows = release.to_arrow()
    keys = list(zip(*(rows[name].to_pylist() for name in quasi), strict=True))
    sizes = Counter(keys)
    tags, own = original.arrow["tag"].to_pylist(), original.arrow[demand].to_pylist()
    asked = dict(zip(tags, own, strict=True))
    return sum(
        sizes[key] < asked[tag] for key, tag in zip(keys, rows["tag"].to_pylist(), strict=True)
    )
