"""How far the distributions of a release are from those of its original.

Definition: Hellinger sqrt(1 - sum sqrt(p q)); total variation sum |p - q| / 2; Kullback-Leibler
sum p log2(p / q), where what the release rules out (q = 0) is given the mass of half a row and the
share of such rows is told. A generalized value lies evenly on the values it covers. Numbers with
many values are compared in twenty bins of the original's quantiles.
Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Sides


_ROUNDING = 1e-13  # what adding up leaves of equal distributions


@dataclass(frozen=True, slots=True)
class ColumnDistance:
    """One column before and after; ``ruled_out`` is the share of original rows with q = 0."""

    name: str
    role: str
    hellinger: float
    variation: float
    kl: float
    ruled_out: float


@dataclass(frozen=True, slots=True)
class JointDistance:
    """The joint distribution of some columns before and after."""

    columns: tuple[str, ...]
    hellinger: float
    kl: float
    ruled_out: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"columns": list(self.columns)}


def hellinger(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """The Hellinger distance of two distributions (shares that add up to 1), 0 to 1.

    Example:
        >>> round(hellinger(np.array([0.5, 0.5]), np.array([0.9, 0.1])), 6)
        0.32492
    """
    apart = 1.0 - float(np.sqrt(p * q).sum())
    return 0.0 if apart < _ROUNDING else float(np.sqrt(apart))


def variation(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """The total variation of two distributions, 0 to 1."""
    return float(np.abs(p - q).sum() / 2)


def divergence(p: NDArray[np.float64], q: NDArray[np.float64], rows: int) -> float:
    """The Kullback-Leibler divergence in bits; mass 0 counts as half a row."""
    held = p > 0
    guess = np.maximum(q[held], 0.5 / max(rows, 1))
    return float(max(0.0, (p[held] * np.log2(p[held] / guess)).sum()))


def column_distance(column: SharedColumn, rows: int) -> ColumnDistance:
    """Measure one column."""
    p, q = column.shares()
    return ColumnDistance(
        column.name,
        column.role,
        hellinger(p, q),
        variation(p, q),
        divergence(p, q, rows),
        float(p[q == 0].sum()),
    )


def joint_distance(sides: Sides, names: Sequence[str]) -> JointDistance:
    """Measure the joint distribution of ``names`` over the original's own combinations."""
    p, q = sides.tuple_shares(names)
    return JointDistance(
        tuple(names),
        hellinger(p, q),
        divergence(p, q, sides.after),
        float(p[q == 0].sum()),
    )


def joint_distances(sides: Sides, *, largest: int = 6, each: int = 6) -> tuple[JointDistance, ...]:
    """All pairs, and up to ``each`` sets of every size up to ``largest``, of the columns."""
    names = list(sides.columns)
    chosen: list[tuple[str, ...]] = []
    for size in range(2, min(largest, len(names)) + 1):
        count = comb(len(names), size)
        if size == 2 or count <= each:
            chosen += combinations(names, size)
        else:  # there may be billions: only those that are evenly chosen are made
            places = [i * (count - 1) // (each - 1) for i in range(each)]
            chosen += [_combination(names, size, place) for place in places]
    return tuple(joint_distance(sides, one) for one in chosen)


def _combination(names: Sequence[str], size: int, place: int) -> tuple[str, ...]:
    """The set of ``size`` names at ``place`` in the order of ``itertools.combinations``."""
    out: list[str] = []
    for i, name in enumerate(names):
        with_it = comb(len(names) - i - 1, size - len(out) - 1)
        if place < with_it:
            out.append(name)
            if len(out) == size:
                break
        else:
            place -= with_it
    return tuple(out)
