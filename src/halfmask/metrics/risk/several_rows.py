"""People with several rows in a release, which does not say whose row is whose.

Definition: a row of the original stands in the released class that covers it most tightly; a class
holds the people of these rows, and at most as many as it has rows. Whoever has several rows in a
class is found by each of them.
Source: as for re-identification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.covering import Released, finding_chance, tightest_class
from halfmask.metrics.weighted import entries_of, tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.risk.pairing import Pairing
    from halfmask.metrics.sides import Sides
    from halfmask.metrics.weighted import Counts

    People = NDArray[np.int32]


def released_people(sides: Sides, people: People) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per released class, its rows and its people; rows count where nobody is known to be in it.

    Args:
        sides: the original and the release.
        people: per entry of the original, whose it is.
    """
    rows = Released(sides.quasi).rows.astype(np.int64)
    owner = tightest_class(sides.quasi)
    inside = owner >= 0
    pairs = np.unique(_pairs(owner, people)[inside])
    known = np.bincount(pairs // _many(people), minlength=len(rows))
    return rows, np.where(known > 0, np.minimum(known, rows), rows)


def chance_of_people(sides: Sides, people: People | None) -> NDArray[np.float64]:
    """Per entry of the original, the chance that its person is found among the rows that fit."""
    chance = finding_chance(sides.quasi)
    if people is None:
        return chance
    pairs = np.unique(_pairs(tightest_class(sides.quasi), people), return_inverse=True)[1]
    pairs = pairs.reshape(-1)
    own = tally(pairs, int(pairs.max()) + 1, sides.original_counts)[pairs]
    return np.minimum(chance * own, 1.0)


def rows_per_person(people: People, counts: Counts = None) -> float:
    """How many rows the person of a random row has."""
    rows = tally(people, _many(people), counts)
    return float(rows @ rows) / int(rows.sum())


def links_of_people(
    sides: Sides,
    paired: Pairing,
    people: People,
    entries: NDArray[np.int64],
    own: NDArray[np.bool_],
    found: NDArray[np.int64],
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """Whether the rows that were found stand for the person that was looked for.

    Args:
        sides: the original and the release.
        paired: who may stand for whom.
        people: per entry of the original, whose it is.
        entries: who was looked for.
        own: whether a row that was found is the one paired with the entry itself.
        found: the released rows that were found, some for each entry.
        random: draws for whom the rows of a class stand.
    """
    if paired.in_order:
        return np.equal(people[found], people[entries][:, None])
    classes = Released(sides.quasi).ids[entries_of(found, sides.released_counts)]
    held, rows = np.unique(_pairs(paired.owner, people), return_inverse=True)
    rows = tally(rows.reshape(-1), len(held), sides.original_counts)
    wanted = _pairs(classes, people[entries][:, None])
    place = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    there = np.where(held[place] == wanted, rows[place], 0)
    # Rows of a class stand for its people at random, but the entry's own row is spoken for.
    same = classes == paired.owner[entries][:, None]
    among = np.maximum(np.diff(paired.people.starts), np.diff(paired.rows.starts))[classes] - same
    drawn = np.less(random.random(found.shape) * np.maximum(among, 1), there - same)
    return np.logical_or(own, drawn)


def _pairs(owner: NDArray[np.int64], people: People) -> NDArray[np.int64]:
    return owner * _many(people) + people


def _many(people: People) -> int:
    return int(people.max(initial=0)) + 1
