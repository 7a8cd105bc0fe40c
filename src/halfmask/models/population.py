"""Promises about a population, and about the risk of all rows together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.errors import InternalError, ParameterError, SchemaError
from halfmask.models.exact_comparison import at_most, fraction, largest
from halfmask.models.statistics import occupied_classes, pass_empty, smallest_classes
from halfmask.models.verdict import (
    Model,
    Option,
    Verdict,
    Words,
    everybody,
    judge,
    number,
    register_model,
    whole_number,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@register_model
@dataclass(frozen=True, slots=True, eq=False)
class KMap(Model):
    """Require every class to match at least ``k`` people of ``population``.

    Definition: |E in the population| >= k for every class E that holds somebody of the table; by
    sampling weights, |E in the population| is their sum over the people of E, each rounded down.
    Source: Sweeney, "Computational disclosure control: a primer on data privacy protection", 2001.

    Attributes:
        k: how many people.
        population: the table of all people whom an attacker may think of; it holds those of the
            table too. Without one, the weights that the schema names say whom rows stand for.
    """

    family: ClassVar[str] = "k-map"
    monotone: ClassVar[bool] = True  # a merged class matches the people of each part
    absorbing: ClassVar[bool] = True  # rows of the table only add to whom they stand for
    option: ClassVar[Option] = Option(
        "k-map",
        "Each class holds at least K people of --population, or by sampling weights.",
        "k-map: people of the population in each class",
    )
    words: ClassVar[Words] = Words(
        "Every published combination of quasi-identifiers fits at least k people of the "
        "population.",
        "The attacker has the population table but does not know who of it is in the release.",
        "An attacker who knows that a person is in the release faces fewer candidates.",
        "at least",
    )

    k: int = field(metadata=whole_number(2, stronger=1))
    population: Table | None = field(default=None, repr=False, metadata=everybody())

    @property
    def weighted(self) -> bool:
        """By weights where no population is given."""
        return self.population is None

    def faults(self, table: Table) -> list[str]:
        """Say where nothing tells of the population."""
        return _weight_faults(table) if self.weighted else []

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it matches ``k`` people."""
        return pass_empty(classes, _counts(classes) >= self.k)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the fewest people that a class matches."""
        sizes = _counts(classes)[occupied_classes(classes)]
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.k,
            achieved=int(sizes.min()) if len(sizes) else 0,
            note=BY_WEIGHTS if self.weighted else "",
        )


BY_WEIGHTS = "The population is the people for whom rows stand by their sampling weights."


def _weight_faults(table: Table) -> list[str]:
    """Where sampling weights are not declared, or are none."""
    from halfmask.table.weights import weights_of

    if table.schema.weight is None:
        return [
            "nothing says whom rows stand for: give a table of the population (--population), or "
            "name the column of sampling weights as weight under [table] of the schema."
        ]
    try:
        weights_of(table, table.schema.weight)
    except SchemaError as error:
        return list(error.faults)
    return []


def _counts(classes: Classes) -> NDArray[np.int64]:
    if classes.population is None:
        raise InternalError("The class statistics lack the population.")
    return classes.population


@register_model
@dataclass(frozen=True, slots=True, eq=False)
class DeltaPresence(Model):
    """Require the share of the population that is in the table to lie within bounds, per class.

    Definition: lower <= |E in the table| / |E in the population| <= upper for every class E of the
    population, where |.| counts people.
    Source: Nergiz, Atzori and Clifton, "Hiding the presence of individuals from shared databases",
    2007.

    Attributes:
        lower: the lowest share, 0 to 1; above 0, classes without anybody of the table fail.
        upper: the highest share, 0 to 1.
        population: the table of all people among whom those of the table hide; it holds them too.

    Example:
        >>> DeltaPresence(0, 0.5, population=None)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        ParameterError: population is missing: give a table.
    """

    family: ClassVar[str] = "delta-presence"
    monotone: ClassVar[bool] = True  # the share in a merged class lies between those of its parts
    option: ClassVar[Option] = Option(
        "delta-presence",
        "Bounds of the share of --population's people who are in the table.",
        "delta-presence: share of the population, from, to",
    )
    words: ClassVar[Words] = Words(
        "From the release nobody can tell too surely whether a person of the population is in it.",
        "The attacker has the population table with everybody's quasi-identifiers.",
        "It says nothing about sensitive values, and stands or falls with the population table.",
        "at most",
    )

    lower: float = field(metadata=number(0, 1))
    upper: float = field(metadata=number(0, 1))
    population: Table = field(repr=False, metadata=everybody())

    def __post_init__(self) -> None:
        Model.__post_init__(self)
        if fraction(self.lower) > fraction(self.upper):
            raise ParameterError("lower", self.lower, "a number that is not above upper")

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether the share lies within the bounds.

        A class that holds more people than the population fails: the population is incomplete.
        """
        inside, outside = classes.people, _counts(classes)
        not_above = at_most(inside, outside, fraction(self.upper))
        if self.lower == 0:
            return not_above
        return not_above & at_most(outside, inside, 1 / fraction(self.lower))

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the highest share."""
        inside, outside = classes.people, _counts(classes)
        known = outside > 0
        full = bool(known.all())
        everywhere = full and bool((inside > 0).all()) and len(inside) > 0
        lowest = 1 / largest(outside, inside) if everywhere else 0
        achieved = largest(inside, outside) if full else math.inf
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.upper,
            achieved=achieved,
            note=f"Lower bound {self.lower} required, {float(lowest):.6g} achieved.",
        )


@register_model
@dataclass(frozen=True, slots=True)
class AverageRisk(Model):
    """Require the average chance of naming the person behind a row to be at most ``limit``.

    Definition: the mean over rows of 1 / |E|, with E the row's class and |E| its people, is at most
    the limit; where every row is another person it is the number of classes divided by that of
    people.
    Source: El Emam, "Guide to the de-identification of personal health information", 2013 (marketer
    risk).

    Example:
        >>> AverageRisk(0.1).whole
        True
    """

    family: ClassVar[str] = "average risk"
    monotone: ClassVar[bool] = True  # in a merged class every row hides among more people
    whole: ClassVar[bool] = True
    relative: ClassVar[bool] = True
    option: ClassVar[Option] = Option(
        "average-risk", "Highest mean risk of re-identification.", "Highest mean risk, in %"
    )
    words: ClassVar[Words] = Words(
        "An attacker who names a person for every row is right for at most this share of them.",
        "The attacker wants to find many people, and has everybody's quasi-identifiers.",
        "A single person may be at higher risk than the average.",
        "at most",
    )

    limit: float = field(metadata=number(0, 1, open_low=True, percent=True, stronger=-1))

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell which classes may stay; see ``excess``."""
        return ~self.excess(classes)

    def excess(self, classes: Classes) -> NDArray[np.bool_]:
        """Mark the smallest classes, as few as possible, without which the promise holds.

        Where every row is another person no other choice takes fewer classes or fewer rows: a
        class of s people lifts the balance (limit * people - classes) by 1 - limit * s, most for
        the smallest, so that any set of j classes that suffices is matched by the j smallest.
        """
        sizes, rows = _by_size(classes, self.sizes(classes))
        limit = fraction(self.limit)
        over = _sum(sizes, rows) - limit * sum(rows)
        out = np.zeros(len(classes), dtype=np.bool_)
        for size, held in zip(sizes, rows, strict=True):
            if over <= 0:
                break
            gain = Fraction(1, size) - limit
            at = np.flatnonzero((self.sizes(classes) == size) & (classes.rows > 0))
            out[at if gain * held <= over else smallest_classes(classes, at, -(-over // gain))] = (
                True
            )
            over -= gain * held
        return out

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the average risk."""
        sizes, rows = _by_size(classes, self.sizes(classes))
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.limit,
            achieved=_sum(sizes, rows) / max(sum(rows), 1),
            note=BY_WEIGHTS if self.weighted else "",
        )

    def sizes(self, classes: Classes) -> NDArray[np.int64]:
        """Per class, among how many people a row hides."""
        return classes.people


@register_model
@dataclass(frozen=True, slots=True)
class PopulationRisk(AverageRisk):
    """Require the average chance of naming the person behind a row in the population to be low.

    Definition: the mean over rows of 1 / |E in the population| is at most the limit, with E the
    row's class, and |E in the population| the sum of its people's sampling weights, each rounded
    down.
    Source: El Emam, "Guide to the de-identification of personal health information", 2013;
    Franconi and Polettini, "Individual risk estimation in mu-Argus: a review", 2004.

    Example:
        >>> PopulationRisk(0.01).weighted
        True
    """

    family: ClassVar[str] = "population risk"
    weighted: ClassVar[bool] = True
    option: ClassVar[Option] = Option(
        "population-risk",
        "Highest mean risk in the population, by sampling weights.",
        "Highest mean risk in the population by weights, in %",
    )
    words: ClassVar[Words] = Words(
        "An attacker who names a person of the population for every row is right for at most this "
        "share of them.",
        "The attacker has everybody's quasi-identifiers, but does not know who is in the table.",
        "Who is known to be in the table is at higher risk, and a single person may be; weights "
        "are estimates.",
        "at most",
    )

    def faults(self, table: Table) -> list[str]:
        """Say where nothing tells of the population."""
        return _weight_faults(table)

    def sizes(self, classes: Classes) -> NDArray[np.int64]:
        """Per class, how many people of the population fit it: those it holds, at least."""
        return np.maximum(_counts(classes), classes.people)


def _by_size(classes: Classes, people: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """The sizes of classes in ``people``, ascending, and the rows in classes of each size."""
    live = classes.rows > 0
    sizes, place = np.unique(people[live], return_inverse=True)
    rows = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(rows, place, classes.rows[live])
    return sizes.tolist(), rows.tolist()


def _sum(sizes: list[int], rows: list[int]) -> Fraction:
    """The expected number of rows that an attacker names rightly."""
    return sum((Fraction(r, s) for s, r in zip(sizes, rows, strict=True)), Fraction(0))


@register_model
@dataclass(frozen=True, slots=True)
class SampleUniques(Model):
    """Require the share of rows that are unique to be at most ``limit``.

    Definition: the share of rows whose class holds a single person is at most the limit.
    Source: Skinner and Elliot, "A measure of disclosure risk for microdata", 2002 (uniques as the
    base of disclosure risk).

    Example:
        >>> SampleUniques(0.05).whole
        True
    """

    family: ClassVar[str] = "sample uniques"
    monotone: ClassVar[bool] = True  # merging makes no row unique
    whole: ClassVar[bool] = True
    relative: ClassVar[bool] = True
    option: ClassVar[Option] = Option(
        "sample-uniques",
        "Highest share of rows alone in a class.",
        "Most rows alone in a class, in %",
    )
    words: ClassVar[Words] = Words(
        "At most this share of rows stands alone with its quasi-identifiers.",
        "The attacker looks for rows that fit one person only.",
        "Rows in small classes are not counted, and some rows may stand alone.",
        "at most",
    )

    limit: float = field(metadata=number(0, 1, percent=True, stronger=-1))

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell which classes may stay; see ``excess``."""
        return ~self.excess(classes)

    def excess(self, classes: Classes) -> NDArray[np.bool_]:
        """Mark the unique rows, as few as possible, without which the promise holds.

        Only a unique row can lower the share, and each takes as much as any other: x of u leave
        (u - x) / (rows - x) <= limit from x >= (u - limit * rows) / (1 - limit) on.
        """
        limit = fraction(self.limit)
        out = np.zeros(len(classes), dtype=np.bool_)
        unique = np.flatnonzero(classes.people == 1)
        over = int(classes.rows[unique].sum()) - limit * int(classes.rows.sum())
        if over <= 0:
            return out
        out[smallest_classes(classes, unique, -(-over // (1 - limit)))] = True
        return out

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the share of unique rows."""
        alone = int(classes.rows[classes.people == 1].sum())
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.limit,
            achieved=Fraction(alone, max(int(classes.rows.sum()), 1)),
        )
