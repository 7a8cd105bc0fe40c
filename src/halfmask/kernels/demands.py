"""Whether rows may form a class: as many people, values and nearness as each of them demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numba import njit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Demands(NamedTuple):
    """What each row demands of the class it stands in.

    Attributes:
        k: (rows) how many rows.
        values: (rows, columns) codes of sensitive values.
        l: (rows, columns) how many different values; 0 demands nothing.
        t: (rows, columns) the largest distance to the distribution of all rows; 1 demands nothing.
        shares: (columns, values) the distribution of all rows.
    """

    k: NDArray[np.int64]
    values: NDArray[np.int32]
    l: NDArray[np.int64]  # noqa: E741 - the letter of the definition
    t: NDArray[np.float64]
    shares: NDArray[np.float64]


@njit(cache=True, nogil=True)
def satisfied(
    d: Any, order: NDArray[np.int64], begin: int, end: int, counts: NDArray[np.int64]
) -> bool:
    """Whether ``order[begin:end]`` is a class that meets all demands; ``counts`` is scratch."""
    size = end - begin
    for i in range(begin, end):
        if d.k[order[i]] > size:
            return False
    for s in range(d.values.shape[1]):
        most, close, distinct = 0, 1.0, 0
        for i in range(begin, end):
            row = order[i]
            most, close = max(most, d.l[row, s]), min(close, d.t[row, s])
            counts[d.values[row, s]] += 1
            distinct += counts[d.values[row, s]] == 1
        moved = 0.0
        for i in range(begin, end):
            value = d.values[order[i], s]
            if counts[value] > 0:
                moved += max(counts[value] / size - d.shares[s, value], 0.0)
                counts[value] = 0
        if distinct < most or (close < 1.0 and moved > close):
            return False
    return size > 0
