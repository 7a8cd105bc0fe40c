"""Pairs of columns: do tables of counts and associations survive?

Definition: the contingency difference is the total variation of the two-way tables of shares.
Association is Pearson's correlation of two numeric columns, Cramer's V of two others, and the
correlation ratio of a mixed pair, all on the same two-way tables.
Source: Cramer, "Mathematical methods of statistics", 1946.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.codes import pairs
from halfmask.metrics.utility.distributions import variation
from halfmask.metrics.weighted import in_range

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides
    from halfmask.metrics.weighted import Counts


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns before and after.

    Attributes:
        columns: their names; ``kind`` the measure of association.
        contingency: the distance of the two-way tables, 0 to 1.
        before: the association in the original; ``after`` in the release. A correlation has its
            sign; the others are 0 to 1.
    """

    columns: tuple[str, str]
    kind: str
    contingency: float
    before: float
    after: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"columns": list(self.columns)}


def pairs_of(sides: Sides) -> tuple[Pair, ...]:
    """Measure every pair of shared columns."""
    columns = list(sides.columns.values())
    weights = {c.name: c.weights() for c in columns}
    return tuple(
        _pair(one, two, weights[one.name], weights[two.name])
        for one, two in combinations(columns, 2)
    )


def _pair(one: SharedColumn, two: SharedColumn, left: csr_array, right: csr_array) -> Pair:
    before = _table(
        one.coarse_of[one.before], one.coarse, two.coarse_of[two.before], two.coarse,
        one.before_counts,
    ).toarray()  # fmt: skip
    labels = _table(one.after, one.labels, two.after, two.labels, one.after_counts)
    after = (left.T @ labels @ right).toarray()
    kind, measure = _measure(one, two)
    return Pair(
        (one.name, two.name),
        kind,
        variation(before, after),
        measure(before, _means(one), _means(two)),
        measure(after, _means(one), _means(two)),
    )


def _table(a: NDArray[Any], rows: int, b: NDArray[Any], columns: int, counts: Counts) -> csr_array:
    """The shares of all pairs of codes that occur."""
    from scipy.sparse import csr_array

    one, two, held = pairs(a.astype(np.int64), b, columns, rows, counts)
    return csr_array((held / held.sum(), (one, two)), shape=(rows, columns))


def _means(column: SharedColumn) -> NDArray[np.float64] | None:
    """The mean number of each bin."""
    if column.numbers is None:
        return None
    sums = np.bincount(column.coarse_of, weights=column.numbers, minlength=column.coarse)
    return np.asarray(sums / np.maximum(np.bincount(column.coarse_of, minlength=column.coarse), 1))


def _measure(one: SharedColumn, two: SharedColumn) -> tuple[str, Any]:
    numeric = (one.numbers is not None, two.numbers is not None)
    if all(numeric):
        return "correlation", _correlation
    if not any(numeric):
        return "Cramer's V", lambda table, _, __: cramer(table)
    if numeric[0]:
        return "correlation ratio", lambda table, a, _: _ratio(table.T, a)
    return "correlation ratio", lambda table, _, b: _ratio(table, b)


def _correlation(
    table: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> float:
    p, q = table.sum(axis=1), table.sum(axis=0)
    a, b = in_range(a), in_range(b)
    x, y = a - p @ a, b - q @ b
    spread = float((p @ x**2) * (q @ y**2))
    return float(x @ table @ y) / np.sqrt(spread) if spread > 0 else 0.0


def cramer(table: NDArray[np.float64]) -> float:
    """Cramer's V of a table of shares."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    chi = float(((table - expected) ** 2 / expected).sum())
    return float(np.sqrt(chi / (min(table.shape) - 1)))


def _ratio(table: NDArray[np.float64], numbers: NDArray[np.float64]) -> float:
    """How much of the variance of the column side the row side explains, as a root."""
    numbers = in_range(numbers)
    rows = table.sum(axis=1)
    held = rows > 0
    inside = (table[held] @ numbers) / rows[held]
    mean = float(table.sum(axis=0) @ numbers)
    total = float(table.sum(axis=0) @ (numbers - mean) ** 2)
    between = float(rows[held] @ (inside - mean) ** 2)
    return float(np.sqrt(between / total)) if total > 0 else 0.0
