"""Whom a table is a sample of: what is said of the population, checked once for every measure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.engines.read import as_rows
from halfmask.errors import InputError
from halfmask.models.verdict import require_number
from halfmask.table.classes import distinct_classes
from halfmask.table.weights import widen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples
    from halfmask.table.weights import Weights

_MORE = 1.01  # weights are estimates and fractions are rounded: 1 % more people is taken


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """What is said of the population.

    Attributes:
        population: the table of everybody, those of the table among them.
        fraction: the share of the population that the table holds.
    """

    population: Table | None = None
    fraction: float | None = None

    @classmethod
    def of(cls, population: Table | None, fraction: float | None) -> Sampling:
        """As stated.

        Raises:
            ParameterError: the fraction is no share of a population.
        """
        if fraction is not None:
            require_number("fraction", fraction, 0, 1, open_low=True)
        return cls(None if population is None else as_rows(population), fraction)

    def weight_column(self, rows: Table, stated: str | None) -> str | None:
        """The column of weights: as stated, or that of the schema where nothing else is said."""
        unsaid = stated is None and self.population is None and self.fraction is None
        return rows.schema.weight if unsaid else stated

    def widened(self, table: Table) -> Table:
        """The table, with the values of the population among those of its hierarchies."""
        quasi = table.schema.quasi
        return table if self.population is None else widen(table, self.population, quasi)

    def classes_of(
        self, held: Tuples, columns: Sequence[str] = ()
    ) -> tuple[Classes, NDArray[np.int32]]:
        """The classes of the tuples and the population, and the class of each tuple.

        Raises:
            InputError: the population cannot hold the people of the table, or those that their
                weights stand for.
        """
        ready, population = replace(held, table=self.widened(held.table)), self.population
        found = distinct_classes(
            ready, ready.table.schema.quasi, columns=columns, population=population, tied=True
        )
        if population is not None and len(population) < _people(found[0]):
            raise InputError(
                f"The population has {len(population):,} rows and the table "
                f"{_people(found[0]):,} people: give a table of everybody, those of the table "
                "among them, or leave it out."
            )
        if held.weights is not None:
            self._require_within(held.weights)
        return found

    def _require_within(self, weights: Weights) -> None:
        """Refuse weights that stand for more people than were said to be."""
        stated = [] if self.population is None else [len(self.population)]
        stated += [] if self.fraction is None else [round(weights.people / self.fraction)]
        for people in stated:
            if weights.total > _MORE * people:
                raise InputError(
                    f"The weights in column '{weights.column}' add up to more people than the "
                    f"population has by what was said ({people:,}): check that they are weights "
                    "of people (not of households), or correct the population or the fraction."
                )

    def known_fraction(self, classes: Classes, weights: Weights | None) -> float | None:
        """The share of the population that a table of these classes holds, as stated or derived."""
        if self.fraction is not None:
            return self.fraction
        if self.population is not None:
            return min(1.0, _people(classes) / len(self.population))
        return None if weights is None else weights.fraction


def _people(classes: Classes) -> int:
    """How many people there are, each once, in however many classes."""
    if classes.owners is None:
        return int(classes.rows.sum())
    return len(np.unique(classes.owners.person))
