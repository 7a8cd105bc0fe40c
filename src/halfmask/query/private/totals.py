"""From an engine's totals to one exact figure per group, empty public groups included.

What is exact here gets noise before anything leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.domain import Bins
from halfmask.dp.views import INTERVALS, ExactCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.engines.request import Engine
    from halfmask.query.planning.noise import NoiseKey, NoisePlan
    from halfmask.query.private.personal import Audience

    Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ExactGroups:
    """The groups of a question: their keys as the answer shows them, and exact figures.

    Attributes:
        keys: per grouping column, the value of each group.
        exact: figures that get noise before anything leaves; one for each level that is read apart.
    """

    keys: tuple[pa.Array, ...]
    exact: tuple[ExactCounts, ...]

    def __repr__(self) -> str:
        return f"Grouped({len(self.exact[0].counts)} groups)"


def collect_totals(plan: NoisePlan, engine: Engine, whose: Audience | None = None) -> ExactGroups:
    """Ask the engine for the totals of the people who are read, and put them at their groups."""
    source, alias = plan.scope.tables[plan.scope.main], plan.scope.main
    bounded = plan.tally if whose is None else whose.tally(plan.tally, source, alias)
    totals = engine.tally(bounded)
    trees = {
        label: engine.tally(replace(bounded, keys=(*bounded.keys, place), parts=()))
        for label, place in plan.trees.items()
    }
    _, keys = _cells(plan.keys, totals)
    size = len(keys[0]) if keys else 1
    found = []
    for level in bounded.kept if bounded.apart else (None,):
        some = _of_level(totals, level)
        histograms = {
            label: _histogram(plan.keys, keys, _of_level(tree, level), size)
            for label, tree in trees.items()
        }
        exact = _summed(plan.labels, _cells(plan.keys, some)[0], some, size)
        found.append(replace(exact, histograms=histograms))
    return ExactGroups(tuple(keys), tuple(found))


def _of_level(totals: pa.Table, level: int | None) -> pa.Table:
    return totals if level is None else totals.filter(pc.equal(totals["level"], level))


def _summed(labels: Sequence[str], cells: Ints, totals: pa.Table, size: int) -> ExactCounts:
    def vector(name: str) -> Ints:
        found = np.zeros(size, np.int64)
        if totals.num_rows:
            np.add.at(found, cells, totals[name].cast(pa.int64()).to_numpy())
        return found

    have = set(totals.column_names)
    sums, squares, present = (
        {label: vector(f"{kind}{i}") for i, label in enumerate(labels) if f"{kind}{i}" in have}
        for kind in "sqn"
    )
    return ExactCounts(vector("rows"), sums, squares, present)


def _histogram(
    keys: Sequence[NoiseKey], shown: Sequence[pa.Array], totals: pa.Table, size: int
) -> Ints:
    """Rows per group and interval; values that are missing are in none."""
    places = totals[f"g{len(keys)}"].combine_chunks()
    some = totals.filter(places.is_valid())
    found = np.zeros((size, INTERVALS), np.int64)
    if some.num_rows:
        at = np.clip(some[f"g{len(keys)}"].cast(pa.int64()).to_numpy(), 0, INTERVALS - 1)
        cells = _known(keys, shown, some)
        rows = some["rows"].cast(pa.int64()).to_numpy()
        # Rows of a person are drawn anew: a group may come up that has no count and stays hidden.
        there = cells >= 0
        np.add.at(found, (cells[there], at[there]), rows[there])
    return found


def _cells(keys: Sequence[NoiseKey], totals: pa.Table) -> tuple[Ints, list[pa.Array]]:
    """The group of each total, and what the groups are called."""
    codes, sizes, values = [], [], []
    for i, key in enumerate(keys):
        code, names = _coded(key, totals[f"g{i}"])
        codes.append(code)
        sizes.append(len(names))
        values.append(names)
    public = all(key.domain is not None for key in keys)
    flat = np.zeros(totals.num_rows, np.int64)
    for code, count in zip(codes, sizes, strict=True):
        flat = flat * count + code
    if public:
        every = np.arange(prod(sizes))
        cells = flat
    else:
        every, cells = np.unique(flat, return_inverse=True)
    shown = []
    for i in reversed(range(len(keys))):
        every, code = np.divmod(every, sizes[i])
        shown.append(values[i].take(pa.array(code)))
    return cells.astype(np.int64), shown[::-1]


def _known(keys: Sequence[NoiseKey], shown: Sequence[pa.Array], totals: pa.Table) -> Ints:
    """The groups of totals among groups that were found before, by their names; -1 for others."""
    place = {group: i for i, group in enumerate(zip(*(v.to_pylist() for v in shown), strict=True))}
    named = []
    for i, key in enumerate(keys):
        code, names = _coded(key, totals[f"g{i}"])
        named.append(names.take(pa.array(code)).to_pylist())
    if not keys:
        return np.zeros(totals.num_rows, np.int64)
    return np.array([place.get(group, -1) for group in zip(*named, strict=True)], np.int64)


def _coded(key: NoiseKey, column: pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Per total the code of its key, and per code the value that the answer shows."""
    whole = column.combine_chunks()
    if pa.types.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    if isinstance(key.domain, Bins):
        return whole.cast(pa.int64()).to_numpy(), pa.array(key.domain.labels, pa.string())
    if key.domain is not None:
        names = key.domain.decode(np.arange(len(key.domain)), np.random.default_rng(0), key.kind)
        return key.domain.encode(whole).astype(np.int64), names
    # In the order of the values: the engine's own order would tell about groups that stay hidden.
    names = pc.unique(whole)
    names = names.take(pc.array_sort_indices(names))
    return pc.index_in(whole, value_set=names).to_numpy().astype(np.int64), names
