"""Distinct values and medians in constant space: what an engine would measure on the rows.

Definition: of distinct values, keep the m smallest 64-bit digests. With fewer than m there is
nothing to estimate. Else, the m-th smallest being the share u of all digests, (m - 1) / u estimates
the count with a relative error of about 1 / sqrt(m - 2); five such errors are taken off. The median
is exact: it is read from the numbers of people per value, of a column whose values are listed.
Source: Bar-Yossef et al., "Counting distinct elements in a data stream", 2002.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.engines.request import GroupMeasure
    from halfmask.protocol.records.layout import RecordLayout, Records

SKETCH = 256
# A record holds one number per value, as many bytes as a sketch.
LISTED = 256


def measure_records(
    layout: RecordLayout,
    records: Records,
    groups: pa.Table,
    places: pa.Table,
    measures: Sequence[GroupMeasure],
) -> pa.Table:
    """Per place, the measures of its groups, as an engine's ``measure`` returns them."""
    from halfmask.engines.sql import row_ids

    names = [name for name in places.column_names if name != "place"]
    ours, theirs = row_ids([groups.select(names), places.select(names)], names)
    at = dict(zip(theirs.tolist(), places["place"].to_pylist(), strict=True))
    owner = np.array([at.get(i, -1) for i in ours.tolist()], dtype=np.int64)
    wanted = sorted(set(at.values()))
    sketch, histogram = len(layout.caps) - layout.sketches, 0
    columns = {"place": pa.array(wanted, pa.int64())}
    for j, asked in enumerate(measures):
        if asked.kind == "median":
            counts, values = records[f"h{histogram}"], layout.histograms[histogram]
            middle = [_median(counts[owner == p].sum(axis=0), values) for p in wanted]
            columns[f"m{j}"] = pa.array(middle, pa.float64())
            histogram += 1
            continue
        sizes, tokens = records[f"t{sketch}_n"], records[f"t{sketch}"]
        found = [_count(sizes[owner == p], tokens[owner == p]) for p in wanted]
        columns[f"m{j}"] = pa.array(found, pa.int64())
        sketch += 1
    return pa.table(columns)


def _median(counts: NDArray[np.int64], values: pa.Array) -> float | None:
    """The middle value, or the mean of the two middle ones."""
    total = int(counts.sum())
    if not total:
        return None
    below = np.cumsum(counts)
    low, high = (
        float(values[int(np.searchsorted(below, rank, side="right"))].as_py())
        for rank in ((total - 1) // 2, total // 2)
    )
    return low + (high - low) / 2


def is_estimate(layout: RecordLayout, records: Records) -> bool:
    """Whether any group has so many values that a sketch must do."""
    first = len(layout.caps) - layout.sketches
    return any((records[f"t{j}_n"] >= SKETCH - 1).any() for j in range(first, len(layout.caps)))


def _count(sizes: NDArray[np.int64], tokens: NDArray[np.int64]) -> int:
    kept = np.unique(tokens[np.arange(SKETCH) < sizes[:, None]])
    if len(kept) < SKETCH:
        return len(kept)
    return lower_bound(int(kept[SKETCH - 1]))


def lower_bound(token: int) -> int:
    """What a full sketch proves, by its largest digest."""
    share = (token + 2**63 + 1) / 2**64
    estimate = (SKETCH - 1) / share
    return max(SKETCH, math.floor(estimate * (1 - 5 / math.sqrt(SKETCH - 2))))
