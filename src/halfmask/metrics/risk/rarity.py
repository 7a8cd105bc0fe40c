"""Rarity: who is unique in the table, in the population, and in both.

Definition: Pr(SU) = n_1 / n and Pr(PU) = N_1 / N, the shares of people who are alone in their class
in the sample and in the population; Pr(PU | SU), the share of those alone in the sample who are
alone in the population too; the chance f / F and the usual 1 / F of a sample class of f people.
Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018,
equations 2.14 and 2.15; Sondeck, 2017, section 3.4.1 (f / F).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InternalError

if TYPE_CHECKING:
    from halfmask.table.classes import Classes


@dataclass(frozen=True, slots=True)
class Rarity:
    """Counted uniqueness in a table and its population.

    Attributes:
        sample: Pr(SU); ``population``: Pr(PU).
        both: Pr(PU | SU); None where nobody is alone in the table.
        mean_share: the mean over the table's people of f / F; ``mean_chance`` of 1 / F.
    """

    sample: float
    population: float
    both: float | None
    mean_share: float
    mean_chance: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def rarity(classes: Classes) -> Rarity:
    """Measure classes that know how many people of a population each of them holds."""
    if classes.population is None:
        raise InternalError("The class statistics lack the population.")
    people, everybody = classes.people, np.maximum(classes.population, classes.people)
    held = people > 0
    alone = held & (people == 1)
    n = int(people.sum())
    share = people[held] / everybody[held]
    return Rarity(
        int(alone.sum()) / n,
        int((everybody == 1).sum()) / int(everybody.sum()),
        int((alone & (everybody == 1)).sum()) / int(alone.sum()) if alone.any() else None,
        float(people[held] @ share) / n,
        float(people[held] @ (1.0 / everybody[held])) / n,
    )
