"""Slow, plain answers that the code under test is held to."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from halfmask.release.tabulation.cells import Axis, CellGrid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def flat_axis(name: str, size: int) -> Axis:
    """Categories ``name0`` ... and their total."""
    labels = (*(f"{name}{i}" for i in range(size)), "Total")
    return Axis(name, labels, ((size, tuple(range(size))),))


def with_totals(leaves: np.ndarray, sides: int | None = None) -> np.ndarray:
    """A table of counts with its margins behind it; behind ``sides`` there may be more tables."""
    full = leaves
    for side in range(leaves.ndim if sides is None else sides):
        full = np.concatenate([full, full.sum(axis=side, keepdims=True)], axis=side)
    return full


def grid_of(shape: Sequence[int]) -> CellGrid:
    return CellGrid(tuple(flat_axis("abc"[i], size) for i, size in enumerate(shape)))


def all_tables(published: np.ndarray, least: int) -> Iterator[np.ndarray]:
    """Every table of whole numbers that a reader cannot rule out, by trying all of them.

    ``published`` has margins, and NaN where a figure is withheld; withheld ones are ``least`` or
    more.
    """
    inner = tuple(slice(0, size - 1) for size in published.shape)
    leaves = published[inner]
    free = np.argwhere(np.isnan(leaves))
    top = int(np.nanmax(published)) if np.isfinite(published).any() else 0
    for values in itertools.product(range(least, top + 1), repeat=len(free)):
        tried = leaves.copy()
        for place, value in zip(free, values, strict=True):
            tried[tuple(place)] = value
        full = with_totals(tried)
        known = np.isfinite(published)
        if (full[known] == published[known]).all() and (full[~known] >= least).all():
            yield full


def intervals(published: np.ndarray, least: int = 0) -> dict[int, tuple[int, int]]:
    """Per withheld cell, the least and the most over all tables."""
    tables = np.array([table.ravel() for table in all_tables(published, least)])
    cells = np.flatnonzero(np.isnan(published.ravel()))
    return {int(c): (int(tables[:, c].min()), int(tables[:, c].max())) for c in cells}


def tables_up_to(shape: Sequence[int], most: int) -> np.ndarray:
    """All tables of these many categories whose finest cells hold at most so many, with margins."""
    ranges = np.indices((most + 1,) * int(np.prod(shape))).reshape(*shape, -1)
    full = with_totals(ranges, len(shape))
    return full.reshape(-1, full.shape[-1]).T.copy()


def unprotected(values: np.ndarray, withheld: np.ndarray, k: int, tables: np.ndarray) -> list[int]:
    """Small cells whose figure a reader knows to be below k, where empty cells are shown."""
    flat, hidden = values.ravel(), withheld.ravel()
    small = np.flatnonzero((flat > 0) & (flat < k))
    like = tables[(tables[:, ~hidden] == flat[~hidden]).all(axis=1)]
    like = like[(like[:, hidden] >= 1).all(axis=1)]
    return [int(c) for c in small if not hidden[c] or like[:, c].max() < k]


def cheapest(values: np.ndarray, k: int, tables: np.ndarray) -> float:
    """The least sum of withheld figures over all safe patterns, by trying all of them."""
    flat = values.ravel()
    small = (flat > 0) & (flat < k)
    others = np.flatnonzero(flat >= k)
    picks = [
        list(chosen)
        for count in range(len(others) + 1)
        for chosen in itertools.combinations(others.tolist(), count)
    ]
    for chosen in sorted(picks, key=lambda one: flat[one].sum()):
        withheld = small.copy()
        withheld[chosen] = True
        if not unprotected(values, withheld, k, tables):
            return float(flat[withheld].sum())
    return float("inf")


def long_rows(published: np.ndarray) -> dict[str, list[object]]:
    """A table of figures in long form."""
    grid = grid_of([size - 1 for size in published.shape])
    rows: Mapping[str, object] = grid.labels()
    out: dict[str, list[object]] = {name: labels.to_pylist() for name, labels in rows.items()}
    out["count"] = [None if np.isnan(v) else int(v) for v in published.ravel()]
    return out


def people_of(leaves: np.ndarray) -> dict[str, list[str]]:
    """Rows of people that make these counts."""
    out: dict[str, list[str]] = {"abc"[i]: [] for i in range(leaves.ndim)}
    for place, count in np.ndenumerate(leaves):
        for i, code in enumerate(place):
            out["abc"[i]] += [f"{'abc'[i]}{code}"] * int(count)
    return out
