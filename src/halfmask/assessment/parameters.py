"""What may be asked of an assessment or a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError, ParameterError
from halfmask.models.exact import require_number

if TYPE_CHECKING:
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table
    from halfmask.table.weights import Weights

_MORE = 1.01


def require_limit(limit: float) -> None:
    """Refuse a limit of risk that nothing or everything would keep."""
    allowed = "a number above 0 and below 1"
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1:
        raise ParameterError("limit", limit, allowed)


def require_fraction(fraction: float | None) -> None:
    """Refuse what is no share of a population."""
    if fraction is not None:
        require_number("fraction", fraction, 0, 1, open_low=True)


def require_everybody(classes: Classes, population: int) -> None:
    """Refuse a population that cannot hold the people of the table."""
    people = _people(classes)
    if population < people:
        raise InputError(
            f"The population has {population:,} rows and the table {people:,} people: give a table "
            "of everybody, those of the table among them, or leave it out."
        )


def known_fraction(
    fraction: float | None, classes: Classes, population: Table | None, weights: Weights | None
) -> float | None:
    """The share of the population that a table of these classes holds, as stated or it follows."""
    if fraction is not None:
        return fraction
    if population is not None:
        return min(1.0, _people(classes) / len(population))
    return None if weights is None else weights.fraction


def _people(classes: Classes) -> int:
    """How many people there are, each once, in however many classes."""
    if classes.members is None:
        return int(classes.rows.sum())
    return len(np.unique(classes.members.person))


def require_weights_within(
    weights: Weights, population: Table | None, fraction: float | None
) -> None:
    """Refuse weights that stand for more people than were said to be.

    Weights are estimates and fractions are rounded: 1 % more is taken.
    """
    stated = [] if population is None else [len(population)]
    stated += [] if fraction is None else [round(weights.people / fraction)]
    for people in stated:
        if weights.total > _MORE * people:
            raise InputError(
                f"The weights in column '{weights.column}' add up to more people than the "
                f"population has by what was said ({people:,}): check that they are weights of "
                "people (not of households), or correct the population or the fraction."
            )
