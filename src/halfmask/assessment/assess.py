"""``hm.assess``: who stands out in a table as it stands, through which columns, how much.

All figures but the population estimates are counted on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.assessment.measure import (
    CRITERIA,
    DISCLOSURES,
    Measure,
    MeasureResults,
    require_limit,
)
from halfmask.assessment.sampling import Sampling
from halfmask.engines.counting.tuples import count_tuples
from halfmask.engines.read import as_table
from halfmask.errors import InputError
from halfmask.metrics.discrimination.column_sets import rank_tuples
from halfmask.metrics.discrimination.rate import inflation
from halfmask.metrics.discrimination.release_rates import meaning_of, original_blocks
from halfmask.metrics.risk.attack import LIMIT
from halfmask.metrics.risk.column_sets import (
    ColumnSet,
    affordable_size,
    column_sets,
    special_uniques,
)
from halfmask.metrics.risk.criteria import class_criteria
from halfmask.metrics.risk.disclosure import disclosure
from halfmask.metrics.risk.individual import rarity, survey_risk
from halfmask.metrics.risk.inference import by_class, measure_intrusion
from halfmask.metrics.risk.reidentification import reidentification, with_recorded_risk
from halfmask.metrics.risk.uniqueness import uniqueness
from halfmask.models.verdict import require_whole
from halfmask.release.document import level_words
from halfmask.release.record import recorded_risk, ties_words
from halfmask.table.document import Result
from halfmask.table.values import HINT, are_comma_numbers, is_text

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.metrics.discrimination.column_sets import SetRate
    from halfmask.metrics.risk.attack import AttackOutcome
    from halfmask.metrics.risk.column_sets import ColumnSet, SpecialUniques
    from halfmask.metrics.risk.disclosure import Disclosure
    from halfmask.metrics.risk.individual import SurveyRisk
    from halfmask.metrics.risk.inference import Intrusion
    from halfmask.metrics.risk.reidentification import RecordedRisk, Reidentification
    from halfmask.table.classes import Classes
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples


@dataclass(frozen=True, slots=True)
class ColumnRisk:
    """How much one quasi-identifier tells by itself."""

    name: str
    distinct: int
    missing: int
    unique_rows: int
    unique_share: float
    separation: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assessment(MeasureResults):
    """The risk in one table; the attributes are those of ``ASSESSED``."""

    format: ClassVar[str] = "halfmask.assessment/1"

    def __repr__(self) -> str:
        return (
            f"Assessment({self.rows:,} rows, {self.unique_rows:,} alone; highest risk "
            f"{self.highest_risk:.3f}, mean {self.mean_risk:.3f})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """What is assessed by; the attributes are explained where ``assess`` takes them."""

    sampling: Sampling = field(default_factory=Sampling)
    size: int = 3
    k: int = 5
    limit: float = LIMIT


@dataclass(frozen=True, eq=False)
class AssessmentCase:
    """A table while it is assessed: rows, or distinct tuples with counts."""

    tuples: Tuples
    options: Options

    @cached_property
    def table(self) -> Table:
        """The table, with the values of the population among those of its hierarchies."""
        return self.options.sampling.widened(self.tuples.table)

    @cached_property
    def grouped(self) -> tuple[Classes, NDArray[np.int32]]:
        """The classes of the table and its population, and the class of each row."""
        return self.options.sampling.classes_of(self.tuples, self.tuples.table.schema.sensitive)

    @cached_property
    def classes(self) -> Classes:
        """The classes that hold rows of the table."""
        return self.grouped[0].select(self.grouped[0].rows > 0)

    @cached_property
    def alone(self) -> int:
        """Rows whose class holds nobody else."""
        return _rows_alone(self.classes)

    @cached_property
    def people(self) -> int:
        """How many people there are; rows where nothing says whose they are."""
        owners = self.classes.owners
        return self.tuples.rows if owners is None else len(np.unique(owners.person))

    @cached_property
    def places(self) -> int:
        """People in classes; who is in two counts twice."""
        return int(self.classes.people.sum())

    @cached_property
    def recorded(self) -> RecordedRisk | None:
        """The risk that a release file says was counted by people, if it is about these rows."""
        schema = self.tuples.table.schema
        if schema.person is not None or self.population is not None:
            return None
        mean = len(self.classes) / self.places
        return recorded_risk(schema, schema.quasi, least=self.counted.smallest, mean=mean)

    @cached_property
    def counted(self) -> Reidentification:
        """The risk by the rows or people of the classes as they stand."""
        classes = self.grouped[0]
        return reidentification(classes.rows, classes.people, classes.population)

    @cached_property
    def risk(self) -> Reidentification:
        """The risk by people, as far as they are known."""
        return with_recorded_risk(
            self.counted, self.classes.rows, self.classes.people, self.recorded
        )

    @cached_property
    def population(self) -> Table | None:
        """Everybody, if that is known."""
        return self.options.sampling.population

    @cached_property
    def survey(self) -> SurveyRisk | None:
        """The risk by sampling weights, if there are any."""
        weights = self.tuples.weights
        limits = (self.options.limit,)
        return None if weights is None else survey_risk(weights, *self.grouped, limits)

    @cached_property
    def fraction(self) -> float | None:
        """The share of the population that is in the table, as stated or as it follows."""
        return self.options.sampling.known_fraction(self.grouped[0], self.tuples.weights)

    @cached_property
    def size(self) -> int:
        """The largest column sets that can be looked at."""
        return affordable_size(len(self.table.schema.quasi), self.options.size)

    @cached_property
    def sets(self) -> tuple[ColumnSet, ...]:
        """The column sets that tell people apart, the most telling first."""
        return column_sets(self.tuples, self.tuples.table.schema.quasi, size=self.size)

    @cached_property
    def special(self) -> SpecialUniques:
        """Who stands out through how few columns."""
        return special_uniques(self.tuples, self.tuples.table.schema.quasi, size=self.size)

    @cached_property
    def disclosures(self) -> tuple[Disclosure, ...]:
        """What the classes give away, per sensitive column."""
        return tuple(
            disclosure(self.classes, name, original_blocks(self.table, name, meaning))
            for name in self.table.schema.sensitive
            for meaning in [meaning_of(self.table, name)]
        )


_TUPLES = 100_000
_STEPS = 20


@dataclass(frozen=True, slots=True)
class Advice(Result):
    """What generalizing one column would change.

    Attributes:
        column: the column.
        unique_rows: rows alone in their class as things stand.
        one_level: the same if the column went up one level of its hierarchy.
        removed: the same if the column were removed.
        levels: how many levels its hierarchy has beyond the values; 1 means: all or nothing.
    """

    column: str
    unique_rows: int
    one_level: int
    removed: int
    levels: int


def advice(table: Table, classes: Classes) -> tuple[Advice, ...]:
    """Try each quasi-identifier alone; the most helpful first."""
    tied = bool(table.schema.ties)
    now = _rows_alone(classes, tied=tied)
    out = []
    for place, name in enumerate(table.schema.quasi):
        maps = table.hierarchy(name).maps
        coarser = _rows_alone(classes.coarsen([place], [maps[min(1, len(maps) - 1)]]), tied=tied)
        nothing = maps[-1] * 0
        gone = _rows_alone(classes.coarsen([place], [nothing]), tied=tied)
        out.append(Advice(name, now, coarser, gone, len(maps) - 1))
    return tuple(sorted(out, key=lambda one: (one.one_level, one.removed, one.column)))


@dataclass(frozen=True, slots=True)
class Step(Result):
    """One step of a way to fewer unique people: which column goes up, and who is alone then.

    ``words`` say what the values of the column become.
    """

    column: str
    level: int
    unique_rows: int
    words: str = ""


def generalization_path(table: Table, classes: Classes, *, share: float = 0.05) -> tuple[Step, ...]:
    """Generalize the column that helps most, again and again, until few people are alone.

    A greedy way, not the best: it shows which columns matter. Nothing for very large tables.
    """
    if len(classes) > _TUPLES:
        return ()
    quasi = table.schema.quasi
    maps = [table.hierarchy(name).maps for name in quasi]
    levels, tied = [0] * len(quasi), bool(table.schema.ties)
    now, alone = classes, _rows_alone(classes, tied=tied)
    limit = share * int(classes.rows.sum())
    out: list[Step] = []
    while alone > limit and len(out) < _STEPS:
        tries = []
        for place, levels_of in enumerate(maps):
            if levels[place] + 1 < len(levels_of):
                step = table.hierarchy(quasi[place]).step(levels[place], levels[place] + 1)
                coarser = now.coarsen([place], [step])
                # Among equal counts the step that leaves fewer classes is on its way further.
                tries.append((_rows_alone(coarser, tied=tied), len(coarser), place, coarser))
        if not tries:
            break
        alone, _, place, now = min(tries, key=lambda one: one[:3])
        levels[place] += 1
        words = level_words(table, quasi[place], levels[place])
        out.append(Step(quasi[place], levels[place], alone, words))
    return tuple(out)


def _rows_alone(classes: Classes, *, tied: bool = False) -> int:
    if tied and classes.owners is not None:
        owners = classes.owners
        alike = owners.profiles()[owners.person]
        people = np.bincount(alike[np.unique(owners.person, return_index=True)[1]])
        return int(owners.rows[people[alike] == 1].sum())
    return int(classes.rows[(classes.people == 1)].sum())


def assessment_notes(case: AssessmentCase) -> tuple[str, ...]:
    """What goes with the figures."""
    held, classes = case.tuples, case.classes
    said = [held.note] if held.note else []
    if classes.owners is not None:
        said.append(
            "People have several rows. Who is alone is counted by people: a row is alone where "
            "nobody else shares its values. What is learned of sensitive columns counts rows."
        )
    if held.table.schema.ties:
        said.append(
            f"{ties_words(held.table.schema)} Figures of column sets look at one row at a time."
        )
    said += _record_notes(case)
    commas = [name for name in held.table.schema.quasi if _with_commas(held.table, name)]
    if commas:
        said.append(f"Read as text: {', '.join(commas)}.{HINT}")
    if case.size < len(held.table.schema.quasi):
        said.append(
            f"Column sets of up to {case.size} columns were looked at; larger ones tell more."
        )
    if case.fraction is None:
        said.append(
            "Nothing is said about the population: give the share of it that is in the table "
            "(fraction), a table of it (population), or the column of sampling weights (weights)."
        )
    return (*said, *_strangers(classes), *_unequal_weights(case.survey))


def _record_notes(case: AssessmentCase) -> tuple[str, ...]:
    """What is to be said of a release file whose rows are not told apart by people."""
    schema, counted, found = case.tuples.table.schema, case.counted, case.recorded
    if found is not None:
        same = (found.smallest, found.mean_risk) == (counted.smallest, counted.marketer)
        return () if same else (found.words,)
    if not schema.release or schema.person is not None or case.population is not None:
        return ()
    return (
        "The record of this release is not about its rows as they stand here: rows were counted, "
        "not people, who may have several.",
    )


def _with_commas(table: Table, name: str) -> bool:
    values = table.encode(name).values
    return is_text(values.type) and are_comma_numbers(values.drop_null())


def _strangers(classes: Classes) -> tuple[str, ...]:
    """What is to be said where the population does not hold everybody of the table."""
    if classes.population is None:
        return ()
    few = classes.population < classes.people
    if not few.any():
        return ()
    return (
        f"The population holds fewer people than the table in {int(few.sum()):,} classes of the "
        f"table, with {int(classes.people[few].sum()):,} people: it is not everybody. There, the "
        "journalist's risk is that of the table alone.",
    )


def _unequal_weights(survey: SurveyRisk | None) -> tuple[str, ...]:
    """What is to be said of models beside weights."""
    if survey is None or survey.equal:
        return ()
    return (
        "The weights differ, so that people were not drawn with the same chance. The models of the "
        "population and DIS take them to be; the risks by weights do not.",
    )


def table_criteria(case: AssessmentCase) -> tuple[AttackOutcome, ...]:
    """The three criteria for a table that would be published as it stands."""
    return class_criteria(
        case.classes, case.risk.marketer, case.disclosures, limit=case.options.limit
    )


_BINS = (1, 2, 3, 5, 10, 20, 50, 100, 1000)
_SHUFFLED = 2_000_000  # rows that are shuffled in all to see what chance gives one column set


def assess(
    table: Table | str | PathLike[str],
    *,
    population: Table | None = None,
    fraction: float | None = None,
    weights: str | None = None,
    size: int = 3,
    k: int = 5,
    limit: float = LIMIT,
) -> Assessment:
    """Measure who stands out in ``table`` by its quasi-identifiers.

    Args:
        table: rows with a schema that names the quasi-identifiers, wherever they are (see
            ``read``); or the name of a file with a schema beside it.
        population: the table of everybody, if there is one (for the journalist's risk).
        fraction: the share of the population that the table holds, if it is known.
        weights: a column that says how many people of the population each row stands for; unless a
            population or fraction is given, that of the schema.
        size: the largest column sets that are looked at.
        k: fewer people than this are too few in the population.
        limit: the highest acceptable risk.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41]}, schema={"age": "quasi"})
        >>> hm.assess(people).unique_rows
        1
    """
    require_limit(limit)
    sampling = Sampling.of(population, fraction)
    require_whole("size", size, 1)
    require_whole("k", k, 1)
    rows = as_table(table)
    options = Options(sampling, size, k, limit)
    case = assessment_case(rows, options, sampling.weight_column(rows, weights))
    return Assessment.of("assess", ASSESSED, case, assessment_notes(case))


def assessment_case(
    rows: Table, options: Options | None = None, weights: str | None = None
) -> AssessmentCase:
    """The table, of which nothing is measured before it is asked for."""
    held = count_tuples(rows.name_people(), _read, weights=weights)
    held.table.schema.require_quasi()
    if not len(held.table):
        raise InputError("The table has no rows: there is nothing to assess.")
    return AssessmentCase(held, Options() if options is None else options)


def _read(schema: Schema) -> list[str]:
    """The columns that everything is counted from."""
    names = [*schema.quasi, *schema.sensitive]
    schema.require_quasi()
    return [*names, *([] if schema.person is None else [schema.person]), *schema.ties]


def _rank_sets(case: AssessmentCase, target: str) -> tuple[SetRate, ...]:
    """The column sets that tell most about ``target``, beside what chance would give them."""
    found = rank_tuples(case.tuples, target, case.tuples.table.schema.quasi, size=case.size)[:5]
    times = max(3, min(10, _SHUFFLED // case.tuples.rows))
    return tuple(
        replace(one, inflation=inflation(case.tuples, target, one.columns, permutations=times))
        for one in found
    )


def _sizes(people: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[tuple[str, int, int], ...]:
    """Count classes and their rows by how many people they hold."""
    place = np.digitize(people, _BINS) - 1
    out = []
    for i, low in enumerate(_BINS):
        inside = place == i
        if inside.any():
            high = _BINS[i + 1] - 1 if i + 1 < len(_BINS) else None
            label = f"{low}+" if high is None else str(low) if high == low else f"{low}-{high}"
            out.append((label, int(inside.sum()), int(rows[inside].sum())))
    return tuple(out)


def _columns(case: AssessmentCase) -> tuple[ColumnRisk, ...]:
    """Each quasi-identifier by itself."""
    single = {one.columns[0]: one for one in case.sets if len(one.columns) == 1}
    return tuple(_column(case.tuples, name, single[name]) for name in case.table.schema.quasi)


def _column(held: Tuples, name: str, alone: ColumnSet) -> ColumnRisk:
    encoded = held.table.encode(name)
    distinct, missing = len(encoded.values), 0
    if encoded.values.null_count:  # the missing value is the last
        distinct -= 1
        mine = encoded.codes == distinct
        missing = int(held.counts[mine].sum())
    return ColumnRisk(
        name,
        distinct,
        missing,
        alone.unique_rows,
        alone.unique_rows / held.rows,
        alone.separation,
    )


def _intrusion(case: AssessmentCase) -> Intrusion:
    classes, of_row = case.grouped
    scores = by_class(classes, case.special.scores, of_row)[classes.rows > 0]
    assert case.fraction is not None  # noqa: S101 - the measure needs it
    return measure_intrusion(case.classes, scores, len(case.table.schema.quasi), case.fraction)


ASSESSED: tuple[Measure, ...] = (
    Measure("rows", "How many rows has the table?", lambda case: case.tuples.rows),
    Measure(
        "people", "Of how many people are they (of as many as rows, where nothing says whose)?",
        lambda case: case.people,
    ),
    Measure(
        "classes", "How many classes do its quasi-identifiers form?",
        lambda case: len(case.classes),
    ),
    Measure(
        "smallest", "How many people does the smallest class hold?",
        lambda case: case.risk.smallest,
    ),
    Measure(
        "unique_rows", "How many rows are alone in their class?", lambda case: case.alone,
    ),
    Measure(
        "unique_share", "Which share of all rows is that?",
        lambda case: case.alone / case.tuples.rows,
    ),
    Measure(
        "highest_risk", "What is the prosecutor's risk, 1 / smallest?",
        lambda case: case.risk.prosecutor,
    ),
    Measure(
        "mean_risk", "What is the marketer's risk, the expected share found by guessing?",
        lambda case: case.risk.marketer,
    ),
    Measure(
        "sizes", "How many classes and rows are there by people in the class?",
        lambda case: _sizes(case.classes.people, case.classes.rows),
        parts=("people", "classes", "rows"),
    ),
    Measure("columns", "How much does each quasi-identifier tell by itself?", _columns),
    Measure(
        "reidentification", "How likely do prosecutor, journalist and marketer find people?",
        lambda case: case.risk,
    ),
    Measure(
        "rarity", "Who is unique here and in the population?",
        lambda case: rarity(case.grouped[0]), needs="population",
    ),
    Measure(
        "uniqueness", "How many people of the population are unique?",
        lambda case: uniqueness(case.classes.people, case.fraction, k=case.options.k),
        needs="fraction",
    ),
    Measure(
        "survey", "How likely are people found in the population, by sampling weights?",
        lambda case: case.survey,
    ),
    Measure(
        "special", "Who stands out through how few columns?", lambda case: case.special,
        written="special_uniques",
    ),
    Measure(
        "intrusion", "How likely is a row that alone fits somebody the right one (DIS, DIS-SUDA)?",
        _intrusion, needs="fraction",
    ),
    Measure(
        "sets", "Which column sets tell most people apart?", lambda case: case.sets[:10],
        written="column_sets",
    ),
    Measure(
        "minimal", "Which column sets begin to single people out?",
        lambda case: tuple(sorted((s.columns for s in case.sets if s.minimal), key=len))[:20],
        written="minimal_quasi_identifiers",
    ),
    Measure(
        "disclosures", DISCLOSURES,
        lambda case: case.disclosures,
    ),
    Measure(
        "discrimination", "Which column sets tell most about each sensitive column?",
        lambda case: tuple((n, _rank_sets(case, n)) for n in case.table.schema.sensitive[:5]),
        parts=("target", "sets"),
    ),
    Measure("criteria", CRITERIA, table_criteria),
    Measure(
        "advice", "What would generalizing each column change?",
        lambda case: advice(case.table, case.classes),
    ),
    Measure(
        "way", "Which steps of generalization leave few people alone?",
        lambda case: generalization_path(case.table, case.classes),
    ),
)  # fmt: skip
