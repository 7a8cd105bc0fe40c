"""Count distinct values in constant space: exact while they are few, else a safe lower bound.

Definition: keep the m smallest of the values' 64-bit digests. With fewer than m there is nothing
to estimate. Else, the m-th smallest being the share u of all digests, (m - 1) / u estimates the
count with a relative error of about 1 / sqrt(m - 2); five such errors are taken off.
Source: Bar-Yossef et al., "Counting distinct elements in a data stream", 2002.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.protocol.layout import Layout, Records

SKETCH = 256


def measure(
    layout: Layout, records: Records, groups: pa.Table, places: pa.Table, count: int
) -> pa.Table:
    """Per place, the distinct values of its groups, as an engine's ``measure`` returns them."""
    from halfmask.engines.side_by_side import row_ids

    names = [name for name in places.column_names if name != "place"]
    ours, theirs = row_ids([groups.select(names), places.select(names)], names)
    at = dict(zip(theirs.tolist(), places["place"].to_pylist(), strict=True))
    owner = np.array([at.get(i, -1) for i in ours.tolist()], dtype=np.int64)
    wanted = sorted(set(at.values()))
    first = len(layout.caps) - layout.sketches
    columns = {"place": pa.array(wanted, pa.int64())}
    for j in range(count):
        sizes, tokens = records[f"t{first + j}_n"], records[f"t{first + j}"]
        found = [_counted(sizes[owner == p], tokens[owner == p]) for p in wanted]
        columns[f"m{j}"] = pa.array(found, pa.int64())
    return pa.table(columns)


def is_estimate(layout: Layout, records: Records) -> bool:
    """Whether any group has so many values that a sketch must do."""
    first = len(layout.caps) - layout.sketches
    return any((records[f"t{j}_n"] >= SKETCH - 1).any() for j in range(first, len(layout.caps)))


def _counted(sizes: NDArray[np.int64], tokens: NDArray[np.int64]) -> int:
    kept = np.unique(tokens[np.arange(SKETCH) < sizes[:, None]])
    if len(kept) < SKETCH:
        return len(kept)
    return lower_bound(int(kept[SKETCH - 1]))


def lower_bound(token: int) -> int:
    """What a full sketch proves, by its largest digest."""
    share = (token + 2**63 + 1) / 2**64
    estimate = (SKETCH - 1) / share
    return max(SKETCH, math.floor(estimate * (1 - 5 / math.sqrt(SKETCH - 2))))
