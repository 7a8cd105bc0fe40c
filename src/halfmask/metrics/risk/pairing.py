"""Which released row was made from which original row, as far as the assessor can tell.

Rows of one class carry the same labels, so that any of them may stand for any person of the class:
the pairs are drawn at random inside classes, which changes no chance of an attacker who knows the
quasi-identifiers only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.covering import Released, tightest_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides


def pairs_in_order(sides: Sides) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Original and released rows by their place; the caller knows that the order was kept.

    Raises:
        InputError: the tables do not hold the same number of rows.
    """
    if sides.before != sides.after:
        raise InputError(
            f"The tables hold {sides.before:,} and {sides.after:,} rows and cannot be paired by "
            "place: rows in the same order need as many on both sides."
        )
    return np.arange(sides.before), np.arange(sides.after)


def pairs_in_classes(
    sides: Sides, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Original and released rows of the same class; None where the rows stand for nobody."""
    owner = tightest_class(sides.quasi)
    classes = Released(sides.quasi).ids
    left = np.flatnonzero(owner >= 0)
    left = random.permutation(left)
    right = random.permutation(len(classes))
    left = left[np.argsort(owner[left], kind="stable")]
    right = right[np.argsort(classes[right], kind="stable")]
    # The n-th person of a class takes its n-th row.
    one = owner[left] * (sides.before + sides.after) + _turn(owner[left])
    two = classes[right] * (sides.before + sides.after) + _turn(classes[right])
    _, first, second = np.intersect1d(one, two, assume_unique=True, return_indices=True)
    if 2 * len(first) < sides.after:
        return None
    return left[first], right[second]


def _turn(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each entry inside its run; ``ids`` are sorted."""
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    lengths = np.diff(np.append(starts, len(ids)))
    return np.arange(len(ids)) - np.repeat(starts, lengths)
