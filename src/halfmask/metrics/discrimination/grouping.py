"""The discrimination rate of a grouping of rows, and what each group adds to it.

Definition: 1 - H(X | Y) / H(X), from counts of pairs; a group's part is its share times H(X | y).
Classes: identifier if every group holds one outcome, zero if H(X | Y) = H(X) within 1e-12, partial
if some group holds one outcome, else sketchy; undefined where H(X) = 0.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, section 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.metrics.codes import pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["identifier", "partial", "sketchy", "zero", "undefined"]
SAME = 1e-12  # bits by which equal entropies may differ


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The rate of a grouping, and what each group adds to it."""

    rate: float
    kind: Kind
    entropy: float
    residual: float
    sizes: NDArray[np.int64]
    inside: NDArray[np.float64]
    pure: NDArray[np.bool_]
    top: NDArray[np.int64]

    @property
    def pure_rows(self) -> int:
        """The rows of groups that hold one outcome."""
        return int(self.sizes[self.pure].sum())


def measure(
    x: NDArray[np.int32], size: int, y: NDArray[np.int64], groups: int,
    undefined: float = float("nan"), weights: NDArray[np.int64] | None = None,
) -> Measured:  # fmt: skip
    """Measure how the groups ``y`` discriminate the outcomes ``x``; both are dense codes.

    With ``weights``, each entry stands for so many rows.
    """
    owner, _, counts = pairs(y, x, size, groups, weights)
    sizes = np.bincount(y, weights, minlength=groups).astype(np.int64)
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    parts = counts / sizes[owner]
    inside = np.add.reduceat(-parts * np.log2(parts), starts) + 0.0
    pure = np.diff(np.append(starts, len(owner))) == 1
    inside[pure] = 0.0
    top = np.maximum.reduceat(counts, starts)
    entropy = entropy_of(np.bincount(x, weights, minlength=size).astype(np.int64))
    residual = float(sizes @ inside) / int(sizes.sum())
    rate, kind = judge(entropy, residual, undefined, all_pure=pure.all(), any_pure=pure.any())
    return Measured(rate, kind, entropy, residual, sizes, inside, pure, top)


def judge(
    entropy: float,
    residual: float,
    undefined: float,
    *,
    all_pure: bool | np.bool_,
    any_pure: bool | np.bool_,
    same: float = SAME,
) -> tuple[float, Kind]:
    """The rate, and its class by structure rather than by comparing floats with 0 and 1."""
    if entropy == 0.0:
        return undefined, "undefined"
    if all_pure:
        return 1.0, "identifier"
    if abs(entropy - residual) < same:
        return 0.0, "zero"
    return 1.0 - residual / entropy, "partial" if any_pure else "sketchy"


def entropy_of(counts: NDArray[np.int64]) -> float:
    """The entropy in bits of a distribution given as counts."""
    filled = counts[counts > 0]
    if len(filled) < 2:
        return 0.0
    parts = filled / filled.sum()
    return float(-(parts @ np.log2(parts)))
