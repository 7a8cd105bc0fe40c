"""Which released row was made from which original row, as far as the assessor can tell.

Rows of one class carry the same labels, so that any of them may stand for any person of the class:
the pairs are drawn at random inside classes, which changes no chance of an attacker who knows the
quasi-identifiers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.covering import Released, tightest_class
from halfmask.metrics.weighted import members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides
    from halfmask.metrics.weighted import Members


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """People and the released rows that stand for them, class by class.

    Attributes:
        owner: per entry of the original, its class; -1 where it was left out.
        sizes: how many pairs each class holds.
        share: per class, the share of its people who have a row.
        people: the people of each class; ``rows`` its released rows.
        in_order: whether the n-th person of a class has its n-th row; else any of them.
    """

    owner: NDArray[np.int64]
    sizes: NDArray[np.int64]
    share: NDArray[np.float64]
    people: Members
    rows: Members
    in_order: bool

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return int(self.sizes.sum())

    def some(
        self, count: int, random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw ``count`` of all pairs: entries of the original, rows of the release."""
        ends = np.cumsum(self.sizes)
        places = random.choice(self.pairs, count, replace=False)
        found = np.searchsorted(ends, places, side="right")
        classes, wanted = np.unique(found, return_counts=True)
        people, _, rows = self.of(classes, wanted, random)
        return people, rows

    def of(
        self, classes: NDArray[np.int64], wanted: NDArray[np.int64], random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Draw some pairs of each of a few classes.

        Returns:
            Entries of the original, entries of the release, and the latter's rows.
        """
        left, right = [], []
        for one, count in zip(classes.tolist(), wanted.tolist(), strict=True):
            start, stop = self.people.starts[one : one + 2].tolist()
            mine = theirs = random.choice(stop - start, count, replace=False)
            left.append(start + mine)
            start, stop = self.rows.starts[one : one + 2].tolist()
            if not self.in_order:
                theirs = random.choice(stop - start, count, replace=False)
            right.append(start + theirs)
        return self.people.at(np.concatenate(left))[0], *self.rows.at(np.concatenate(right))


def pairs_in_order(sides: Sides) -> Pairing:
    """Original and released rows by their place; the caller knows that the order was kept.

    Raises:
        InputError: the tables do not hold the same number of rows, or only tuples are known.
    """
    if sides.original_counts is not None or sides.released_counts is not None:
        raise InputError(
            "Rows that an engine counts have no order: leave same_order out, or read both tables "
            "into memory."
        )
    if sides.before != sides.after:
        raise InputError(
            f"The tables hold {sides.before:,} and {sides.after:,} rows and cannot be paired by "
            "place: rows in the same order need as many on both sides."
        )
    ids = Released(sides.quasi).ids
    members = members_of(ids, int(ids.max()) + 1, None)
    sizes = np.diff(members.starts)
    return Pairing(ids, sizes, np.ones(len(sizes)), members, members, in_order=True)


def pairs_in_classes(sides: Sides) -> Pairing | None:
    """Original and released rows of the same class; None where the rows stand for nobody."""
    owner, ids = tightest_class(sides.quasi), Released(sides.quasi).ids
    count = int(ids.max()) + 1
    people = members_of(owner, count, sides.original_counts)
    rows = members_of(ids, count, sides.released_counts)
    there = np.diff(people.starts)
    sizes = np.minimum(there, np.diff(rows.starts))
    if 2 * int(sizes.sum()) < sides.after:
        return None
    return Pairing(owner, sizes, sizes / np.maximum(there, 1), people, rows, in_order=False)
