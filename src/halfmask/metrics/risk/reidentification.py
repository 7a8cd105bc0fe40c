"""Re-identification: how likely a person is found through the quasi-identifiers.

Definition: in a class of n people each is found with probability 1/n. Prosecutor: the attacker
knows that the person is in the table; the highest is 1 / smallest class. Marketer: all are guessed
at once; the mean is classes / people. Journalist (population): the person is anyone of a
population; the highest is 1 / the smallest population class among those of the table. Journalist
(any hit): the chance that one guess per class hits at least once, 1 - prod (1 - 1/n).
Source: El Emam, "Guide to the de-identification of personal health information", 2013; the last:
Nguyen and Castelluccia, "Techniques d'anonymisation tabulaire", 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# What people read wherever these figures stand: terminal, page, report, certificate.
SMALLEST = "smallest class, people"
HIGHEST = "highest risk (prosecutor)"
MEAN = "mean risk (marketer)"
CLASSES = "by classes"  # how a criterion is named that is counted by the classes of rows
THRESHOLDS = (0.05, 0.09, 0.2, 0.33, 0.5)
_EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.34, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Threshold:
    """How many rows are at more risk than a limit."""

    limit: float
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class RiskBin:
    """How many rows have a risk above ``low`` and up to ``high``."""

    low: float
    high: float
    rows: int


@dataclass(frozen=True, slots=True)
class Reidentification(Result):
    """The chance to find people.

    Attributes:
        smallest: how many people the smallest class holds.
        prosecutor: the highest chance, if the attacker knows that a person is in the table.
        marketer: the mean chance, which is the expected share of people found.
        journalist_any_hit: the chance that one guess per class hits at least once.
        journalist_population: the highest chance in a population table; None where none is given.
        journalist_sample_share: the same as the most that f / F becomes over classes.
        thresholds: rows above each limit, by the prosecutor's chance.
        distribution: rows by the prosecutor's chance.
    """

    smallest: int
    prosecutor: float
    marketer: float
    journalist_any_hit: float
    journalist_population: float | None
    journalist_sample_share: float | None
    thresholds: tuple[Threshold, ...]
    distribution: tuple[RiskBin, ...]


def reidentification(
    rows: NDArray[np.int64],
    people: NDArray[np.int64],
    population: NDArray[np.int64] | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
) -> Reidentification:
    """Measure the risk in classes of ``people``, whose rows are ``rows``.

    Args:
        rows: per class, how many rows.
        people: per class, how many different people.
        population: per class, how many people of the population.
        thresholds: limits of an acceptable chance.
    """
    held = rows > 0
    rows, people = rows[held], people[held]
    chance = 1.0 / people
    sure = bool((people == 1).any())
    any_hit = 1.0 if sure else float(-np.expm1(np.log1p(-chance).sum()))
    journalist = share = None
    if population is not None:
        others = np.maximum(population[held], people)
        journalist, share = float(1 / others.min()), float((people / others).max())
    return Reidentification(
        int(people.min()),
        float(chance.max()),
        len(people) / int(people.sum()),
        any_hit,
        journalist,
        share,
        tuple(count_at_risk(rows, chance, limit) for limit in thresholds),
        tuple(bins(rows, chance)),
    )


@dataclass(frozen=True, slots=True)
class RecordedRisk:
    """The risk that the door counted by people, who are not told apart in the rows of a file.

    Attributes:
        smallest: people in the smallest class.
        highest_risk: the prosecutor's risk.
        mean_risk: the marketer's risk.
    """

    smallest: int
    highest_risk: float
    mean_risk: float

    @property
    def words(self) -> str:
        """What a reader should know where these figures stand."""
        return (
            "Smallest class, highest and mean risk are those counted by people when this file was "
            "released; other figures count its rows, which do not say whose they are."
        )


def with_recorded_risk(
    found: Reidentification,
    rows: NDArray[np.int64],
    people: NDArray[np.int64],
    recorded: RecordedRisk | None,
) -> Reidentification:
    """``found`` with the figures that were recorded; no class holds fewer than the smallest."""
    if recorded is None:
        return found
    least = reidentification(rows, np.maximum(people, recorded.smallest))
    return replace(
        least,
        smallest=recorded.smallest,
        prosecutor=recorded.highest_risk,
        marketer=recorded.mean_risk,
    )


def prosecutor_risks(people: NDArray[np.int64], of_row: NDArray[np.int32]) -> NDArray[np.float64]:
    """The prosecutor's chance of each row."""
    return np.asarray(1.0 / people[of_row])


def count_at_risk(rows: NDArray[np.int64], chance: NDArray[np.float64], limit: float) -> Threshold:
    """How many rows have a chance above ``limit``."""
    count = int(rows[chance > limit].sum())
    return Threshold(limit, count, count / int(rows.sum()))


def bins(
    rows: NDArray[np.int64], chance: NDArray[np.float64], edges: Sequence[float] = _EDGES
) -> list[RiskBin]:
    """How many rows have which chance, all of them above 0."""
    place = np.searchsorted(edges, chance, side="left") - 1
    counts = np.bincount(place, weights=rows, minlength=len(edges) - 1)
    return [
        RiskBin(low, high, int(count))
        for low, high, count in zip(edges[:-1], edges[1:], counts.tolist(), strict=True)
    ]
