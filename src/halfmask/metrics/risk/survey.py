"""Survey risk: how likely people of a weighted sample are found in its population.

Definition: a class of f people whose sampling weights add up to F^ stands for about F^ people of
the population. The individual risk of its people is E[1 / F | f] with p = f / F^ (see Individual
risk), the plain one 1 / F^. The global risk is their mean over the people of the table, n times
that the expected number of people found. Of somebody alone in the table, p is the chance to be
alone in the population.
Source: Benedetti and Franconi, "Statistical and technological solutions for controlled data
dissemination", 1998; Franconi and Polettini, "Individual risk estimation in mu-Argus: a review",
2004.

Weights say how many people a class stands for on average, not how rare its combination is: in
detailed tables, where most people are alone, the risk may come out too low.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.metrics.risk.individual import individual_risks
from halfmask.metrics.risk.reidentification import THRESHOLDS, RiskBin, Threshold, above, bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.weights import Weights


@dataclass(frozen=True, slots=True)
class Chances:
    """The chances of the people of a table to be found in the population.

    Attributes:
        highest: the highest of them.
        mean: the global risk, the share of people who are expected to be found.
        expected: the same as a number of people.
        thresholds: rows above each limit.
        distribution: rows by their chance.
    """

    highest: float
    mean: float
    expected: float
    thresholds: tuple[Threshold, ...]
    distribution: tuple[RiskBin, ...]


@dataclass(frozen=True, slots=True)
class SurveyRisk:
    """The risk in a population that is known through sampling weights.

    Attributes:
        column: where the weights stand.
        population: how many people they stand for in all.
        fraction: the share of these who are in the table.
        equal: whether all weights are the same.
        individual: the expected chances; ``plain`` those of 1 / F^.
        unique_if_alone: of those alone in the table, the expected share of people who are alone in
            the population; None where nobody is alone.
    """

    column: str
    population: float
    fraction: float
    equal: bool
    individual: Chances
    plain: Chances
    unique_if_alone: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def survey_risk(
    weights: Weights,
    classes: Classes,
    of_row: NDArray[np.int32],
    limits: Sequence[float] = (),
) -> SurveyRisk:
    """Measure the classes of a table whose rows have ``weights``.

    Args:
        weights: how many people of the population the rows stand for.
        classes: the classes of the quasi-identifiers.
        of_row: the class of each entry of the table.
        limits: further limits of an acceptable chance.
    """
    held = classes.rows > 0
    rows, people = classes.rows[held], classes.people[held]
    individual, plain = class_chances(people, weights.by_class(classes, of_row)[held])
    known = tuple(sorted({*THRESHOLDS, *limits}))
    alone = people == 1
    return SurveyRisk(
        weights.column,
        weights.total,
        weights.fraction,
        weights.equal,
        _chances(rows, people, individual, known),
        _chances(rows, people, plain, known),
        float(plain[alone].mean()) if alone.any() else None,
    )


def class_chances(
    people: NDArray[np.int64], represented: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per class, the individual risk and 1 / F^."""
    # Sums of weights round: a class never stands for fewer people than it holds.
    everybody = np.maximum(represented, people)
    return individual_risks(people, people / everybody), 1.0 / everybody


def _chances(
    rows: NDArray[np.int64],
    people: NDArray[np.int64],
    chance: NDArray[np.float64],
    limits: Sequence[float],
) -> Chances:
    expected = float(people @ chance)
    return Chances(
        float(chance.max()),
        expected / int(people.sum()),
        expected,
        tuple(above(rows, chance, limit) for limit in limits),
        tuple(bins(rows, chance)),
    )
