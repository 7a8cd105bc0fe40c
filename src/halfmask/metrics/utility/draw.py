"""Values of the original's types for released rows: each label becomes one that it covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn


def drawn_leaves(
    column: SharedColumn, entries: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Per entry of the release, a leaf under its label, each with the same chance."""
    labels = column.after[entries]
    sizes = column.sizes[labels]
    pick = np.minimum((random.random(len(sizes)) * sizes).astype(np.int64), sizes - 1)
    return np.asarray(column.covered[column.starts[labels] + pick])
