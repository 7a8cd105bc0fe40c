"""What a comparison finds: the measures of an original and its release, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.assessment import comparison_findings as findings
from halfmask.assessment.measure import CRITERIA, DISCLOSURES, Measure, MeasureResults
from halfmask.metrics.discrimination.need import need_met
from halfmask.metrics.discrimination.release_rates import (
    label_rates,
    meaning_of,
    original_blocks,
    release_rates,
    released_blocks,
)
from halfmask.metrics.partition_measures import published_measures
from halfmask.metrics.risk.attack import OUTCOMES
from halfmask.metrics.risk.attack import targets as whom
from halfmask.metrics.risk.criteria import class_criteria, doubts_about, try_criteria
from halfmask.metrics.risk.disclosure import disclosure, minimality
from halfmask.metrics.risk.inference import membership
from halfmask.metrics.risk.linkage import (
    chance_of_people,
    linkage,
    released_people,
    rows_per_person,
)
from halfmask.metrics.risk.reidentification import (
    reidentification,
    with_recorded_risk,
)
from halfmask.metrics.sides import sides
from halfmask.metrics.utility import prediction
from halfmask.metrics.utility.distributions import (
    column_distance,
    joint_distances,
    likeness,
    pairs_of,
)
from halfmask.metrics.utility.prediction import predict, regress
from halfmask.metrics.utility.queries import counting_queries, sql_queries
from halfmask.metrics.utility.summary import left_out, summaries
from halfmask.metrics.utility.tables import class_mean_error, class_utility, moments
from halfmask.metrics.weighted import weighted_mean
from halfmask.release.record import other_roles_words, recorded_risk, ties_words
from halfmask.series.audit import audit_differencing
from halfmask.table.classes import classes_of
from halfmask.table.columns import Column
from halfmask.table.document import Result
from halfmask.table.schema import TIES, Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from halfmask.assessment.compare import ComparisonOptions
    from halfmask.metrics.discrimination.release_rates import LabelRate, ReleaseRates
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.risk.attack import AttackOutcome, Doubts, Targets
    from halfmask.metrics.risk.differencing import Differencing
    from halfmask.metrics.risk.disclosure import Disclosure
    from halfmask.metrics.risk.inference import Membership
    from halfmask.metrics.risk.linkage import Linkage
    from halfmask.metrics.risk.reidentification import RecordedRisk, Reidentification
    from halfmask.metrics.sides import ReleasedRows, Sides
    from halfmask.metrics.utility.prediction import Prediction, Regression
    from halfmask.metrics.utility.queries import CountingQueries, QueryDeviation
    from halfmask.metrics.utility.tables import GeneralizedColumn
    from halfmask.table.classes import Classes

_PAIRS = 50_000_000  # pairs of rows inside classes whose distance is looked at
_NEAR = 1e-9
_FITTED = 3  # numeric sensitive columns that are fitted without being named


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """How far the distribution of a column that leaves as it is moved, from 0 to 1."""

    name: str
    distance: float


@dataclass(frozen=True, slots=True)
class PeopleFound(Result):
    """How an attacker who holds original rows finds people in the release.

    Attributes:
        found: the mean over people of the chance to hit their row among those that fit, if the
            tightest is guessed; 0 for those that none fits.
        highest: the most that this becomes.
        uncovered: the share of people whom no released row fits.
    """

    found: float
    highest: float
    uncovered: float


@dataclass(frozen=True, slots=True, eq=False)
class ComparedTables:
    """What is compared.

    Attributes:
        original: the rows or tuples it was made from.
        release: its rows or tuples; ``earlier`` another release, ``control`` other people.
        weaker: a release under a weaker promise.
        notes: who counted what, and which columns were left out.
        blanks: per release, the columns in which a missing cell may be a suppressed one.
    """

    original: Tuples
    release: ReleasedRows | Tuples
    control: Tuples | None
    earlier: ReleasedRows | Tuples | None
    weaker: ReleasedRows | Tuples | None
    notes: tuple[str, ...] = ()
    blanks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ComparisonCase:
    """An original and its release while they are compared; what several measures need once."""

    tables: ComparedTables
    options: ComparisonOptions

    @cached_property
    def readings(self) -> tuple[ComparisonCase, ...]:
        """This case, and the one in which no missing cell is a suppressed one, if that differs."""
        if not any(self.tables.blanks.values()):
            return (self,)
        return self, replace(self, tables=replace(self.tables, blanks={}))

    def _beside(self, name: str) -> Sides | None:
        """The original and one of the releases."""
        release = getattr(self.tables, name)
        blank = self.tables.blanks.get(name, ())
        return None if release is None else sides(self.tables.original, release, blank=blank)

    @cached_property
    def sides(self) -> Sides:
        """Both on common ground."""
        found = self._beside("release")
        assert found is not None  # noqa: S101 - it is always given
        return found

    @cached_property
    def targets(self) -> Targets:
        """Whom attacks are tried on."""
        given, how = self.tables, self.options
        return whom(given.original, given.release, given.control, attacks=how.attacks,
                    seed=how.seed, known=self.sides,
                    blank=given.blanks.get("release", ()))  # fmt: skip

    @cached_property
    def learn(self) -> bool:
        """Whether models are trained."""
        return prediction.available() if self.options.learn is None else self.options.learn

    @cached_property
    def earlier(self) -> Sides | None:
        """The original and the earlier release."""
        return self._beside("earlier")

    @cached_property
    def differencing(self) -> Differencing | None:
        """What both releases tell together."""
        return None if self.earlier is None else audit_differencing(self.sides, self.earlier)

    @cached_property
    def linkage(self) -> Linkage:
        """How many rows are matched back to their people."""
        how = self.options
        people = self.targets.people
        return linkage(self.sides, people, same_order=how.same_order, seed=how.seed)

    @cached_property
    def rates(self) -> ReleaseRates:
        """How far attacks tell a column."""
        how, weaker = self.options, self._beside("weaker")
        own = release_rates(self.sides, how.partition, same_order=how.same_order)
        return own if weaker is None else own.than(release_rates(weaker, how.partition))

    @cached_property
    def doubts(self) -> Doubts:
        """What attacks could not see."""
        given = self.tables
        return doubts_about(self.sides, given.original, given.release, self.targets)

    @cached_property
    def released(self) -> Table:
        """The released rows with the roles of the original."""
        known = self.sides.original.schema.columns
        columns = {n: Column(c.role) for n, c in known.items() if n in self.sides.columns}
        ties = [name for name in self.ties if name not in columns]
        names = [*self.sides.columns, *ties]
        tokens = Schema(columns, release={TIES: ties} if ties else {}).name_people()
        return Table(self.sides.rows.select(list(dict.fromkeys(names))), tokens)

    @cached_property
    def ties(self) -> tuple[str, ...]:
        """The columns of tokens that tie rows of the release together."""
        release = self.tables.release
        schema = release.table.schema if isinstance(release, Tuples) else None
        schema = getattr(release, "schema", None) if schema is None else schema
        there = self.sides.rows.column_names
        return tuple(name for name in getattr(schema, "ties", ()) if name in there)

    @property
    def values(self) -> bool:
        """Whether single labels are scored, which shows them."""
        return self.options.values

    @cached_property
    def before(self) -> Classes:
        """The classes of the original."""
        return self._classes(self.sides.original_tuples)

    @cached_property
    def after(self) -> Classes:
        """The classes of the release."""
        return self._classes(Tuples(self.released, self.sides.released_counts))

    @cached_property
    def several_rows(self) -> bool:
        """Whether somebody has several rows, so that rows of a class are not as many people."""
        people = self.targets.people
        return people is not None and rows_per_person(people, self.sides.original_counts) > 1

    @property
    def own_risk(self) -> Reidentification | None:
        """The risk that the door counted, if the release itself is given."""
        return getattr(self.tables.release, "risk", None)

    @cached_property
    def recorded(self) -> RecordedRisk | None:
        """The risk that the door counted, if the file of a release is given with its record."""
        release, quasi = self.tables.release, [column.name for column in self.sides.quasi]
        if not isinstance(release, Tuples) or self.ties:  # then the rows say whose they are
            return None
        rows = self.after.rows
        least, mean = int(rows.min()), len(rows) / int(rows.sum())
        return recorded_risk(release.table.schema, quasi, least=least, mean=mean)

    @cached_property
    def people_found(self) -> PeopleFound:
        """How people are found by their original values."""
        return _people_found(self)

    @cached_property
    def disclosures(self) -> tuple[tuple[Disclosure, Disclosure], ...]:
        """What classes give away before and after, per sensitive column."""
        return _disclosures(self)

    @cached_property
    def after_risk(self) -> Reidentification:
        """How likely people are found in the release by its own classes."""
        return _risk_after(self)

    def _classes(self, tuples: Tuples) -> Classes:
        quasi = [column.name for column in self.sides.quasi]
        secret = [column.name for column in self.sides.sensitive]
        return classes_of(tuples, quasi, columns=secret, tied=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        before, after = self.sides.before, self.sides.after
        out = [*self.tables.notes, *self.doubts.all, *self.sides.notes]
        if isinstance(self.tables.release, Tuples):
            quasi = [column.name for column in self.sides.quasi]
            out += other_roles_words(self.tables.release.table.schema, quasi)
        if self.ties:
            out.append(f"{ties_words(self.released.schema)} Attacks look at one row at a time.")
        elif self.several_rows and self.own_risk is None and self.recorded is not None:
            out.append(self.recorded.words)
        elif self.several_rows and self.own_risk is None:
            out.append(
                "People have several rows, and the released rows do not say whose they are: for "
                "the people of a class each original row is taken to stand in the tightest class "
                "that fits it. Give the release itself, or its file with its record, to have them "
                "counted."
            )
        if before != after:
            out.append(
                f"The release holds {after:,} rows and the original {before:,}: figures of "
                "single values are not comparable, those of columns are."
                + (" Random counts were scaled." if after > before else "")
            )
        if self.learn and self.tables.control is None:
            out.append(
                "Models were tested on people who are in the tables they were trained on: their "
                "scores lean upward on both sides. Rows of other people (control) would mend it."
            )
        return tuple(out)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(MeasureResults):
    """An original and its release, side by side; the attributes are those of ``COMPARED``."""

    format: ClassVar[str] = "halfmask.comparison/1"
    derived: ClassVar[tuple[str, ...]] = (
        "made_up", "loss", "classes", "classes_released", "mean_class", "mean_class_released",
        "generalized", "kept", "score", "smallest", "highest_risk", "mean_risk",
    )  # fmt: skip

    def __repr__(self) -> str:
        loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
        return (
            f"Comparison({self.rows:,} rows, {self.rows_released:,} released; {loss}"
            f"random counts off by {self.counting.error.value:.1%} (mean))"
        )

    @property
    def made_up(self) -> bool:
        """Whether cells are false or rows stand for nobody.

        Known by people who fit no released row although nobody was left out. Classes of the
        release then hold rows, not these people.
        """
        return bool(self.finding.uncovered > self.suppressed / self.rows + _NEAR)

    @property
    def loss(self) -> float | None:
        """The geometric aggregate of the columns' losses, 0 to 1; None where values are new."""
        found: float | None = self.utility.loss
        return found

    @property
    def score(self) -> float | None:
        """Information loss and disclosure risk by linkage, half each; None where one is unknown."""
        risk = self.linkage.risk
        return None if self.loss is None or risk is None else (self.loss + risk) / 2

    @property
    def smallest(self) -> int:
        """People in the smallest class of the release."""
        return int(self.after.smallest)

    @property
    def highest_risk(self) -> float:
        """The prosecutor's risk in the release, 1 / smallest."""
        return float(self.after.prosecutor)

    @property
    def mean_risk(self) -> float:
        """The marketer's risk in the release, the expected share found by guessing."""
        return float(self.after.marketer)

    @property
    def generalized(self) -> tuple[GeneralizedColumn, ...]:
        """The quasi-identifiers."""
        columns: tuple[GeneralizedColumn, ...] = self.utility.columns
        return columns

    @property
    def classes(self) -> int:
        """Classes of the original."""
        return int(self.utility.classes)

    @property
    def classes_released(self) -> int:
        """Classes of the release."""
        return int(self.utility.classes_released)

    @property
    def mean_class(self) -> float:
        """Mean rows per class before."""
        return float(self.utility.mean_class)

    @property
    def mean_class_released(self) -> float:
        """Mean rows per class after."""
        return float(self.utility.mean_class_released)

    @property
    def kept(self) -> tuple[KeptColumn, ...]:
        """The columns that are no quasi-identifiers, and how far they moved."""
        return tuple(KeptColumn(d.name, d.variation) for d in self.distances if d.role != "quasi")


def _class_means(case: ComparisonCase) -> tuple[tuple[str, Estimate], ...]:
    numeric = [c.name for c in case.sides.sensitive if c.numbers is not None]
    return tuple((name, class_mean_error(case.sides, name)) for name in numeric)


def _counting(case: ComparisonCase) -> CountingQueries:
    paired = case.sides
    return counting_queries(paired, seed=case.options.seed, scaled=paired.after > paired.before)


def _queries(case: ComparisonCase) -> tuple[QueryDeviation, ...]:
    how = case.options
    if not how.queries:
        return ()
    given = (case.tables.original, case.tables.release)
    stored = [one.source for one in given if isinstance(one, Tuples) and one.source]
    limit = next((one.memory_limit for one in stored if one.memory_limit), None)
    return sql_queries(case.sides, list(how.queries), seed=how.seed, memory_limit=limit)


def _predictions(case: ComparisonCase) -> tuple[Prediction, ...]:
    names = case.options.targets
    if names:
        prediction.require()
    elif not case.learn or len(case.sides.columns) < 2:
        return ()
    paired = case.targets.sides  # the control's rows are tested on
    chosen = names or [column.name for column in paired.sensitive[:1]]
    inside = case.targets.size if len(case.targets.control) else None
    seed = case.options.seed
    return tuple(p for name in chosen for p in predict(paired, name, inside=inside, seed=seed))


def _regressions(case: ComparisonCase) -> tuple[Regression, ...]:
    how = case.options
    numeric = [column.name for column in case.sides.sensitive if column.numbers is not None]
    fitted = numeric[:_FITTED] if how.learn is not False else ()
    return regress(case.sides, how.targets or fitted, seed=how.seed)


def _risk_after(case: ComparisonCase) -> Reidentification:
    """By the rows of each class, or by its people where somebody has several rows."""
    people = case.targets.people
    rows, theirs = case.after.rows, case.after.people
    if case.ties:
        return case.own_risk or reidentification(rows, theirs)
    if people is not None and case.several_rows:
        if case.own_risk is not None:
            return case.own_risk
        each = [released_people(one.sides, people) for one in case.readings]
        rows, theirs = min(each, key=lambda one: (int(one[1].min()), -len(one[1])))
    return with_recorded_risk(reidentification(rows, theirs), rows, theirs, case.recorded)


def _people_found(case: ComparisonCase) -> PeopleFound:
    rows = case.sides.original_counts
    each = [chance_of_people(one.sides, one.targets.people) for one in case.readings]
    # Whoever follows a token knows all rows of a person; the classes say how few share them.
    tied = (case.after_risk.marketer, case.after_risk.prosecutor) if case.ties else (0.0, 0.0)
    return PeopleFound(
        max(tied[0], *(weighted_mean(chance, rows) for chance in each)),
        max(tied[1], *(float(chance.max()) for chance in each)),
        weighted_mean(each[0] == 0, rows),
    )


def _disclosures(case: ComparisonCase) -> tuple[tuple[Disclosure, Disclosure], ...]:
    out, original = [], case.sides.original
    for name in (column.name for column in case.sides.sensitive):
        meaning = meaning_of(original, name, case.options.partition.get(name))
        blocks = released_blocks(case.sides, case.released, name, meaning)
        first = disclosure(case.before, name, original_blocks(original, name, meaning))
        out.append((first, disclosure(case.after, name, blocks)))
    return tuple(out)


def _discrimination(case: ComparisonCase) -> ReleaseRates:
    # The less was lost, the more attacks tell.
    return min((one.rates for one in case.readings), key=_lost)


def _labels(case: ComparisonCase) -> tuple[LabelRate, ...]:
    worse, how = min(case.readings, key=lambda one: _lost(one.rates)), case.options
    return label_rates(worse.sides, how.partition, same_order=how.same_order)


def _lost(rates: ReleaseRates) -> float:
    return float("inf") if rates.loss is None else rates.loss


# The record of a masked file says in which columns cells were blanked, and not which cells. There a
# missing cell may be a suppressed one or one that the original lacks too, and whoever wrote the
# record may be a stranger: what it says must never make a figure better than the rows are. So
# attacks are tried by both readings, and the worse is reported.
_REVEALED = (None, "nothing", "not known", "revealed")


def _worse_criteria(case: ComparisonCase) -> tuple[AttackOutcome, ...]:
    """Each criterion by the reading under which it fares worse."""
    found: dict[tuple[str, str | None], AttackOutcome] = {}
    for one in case.readings:
        judged = try_criteria(
            one.targets, one.doubts, one.linkage, one.differencing, limit=one.options.limit
        )
        for outcome in judged:
            key = outcome.name, outcome.column
            if key not in found or _grave(outcome) > _grave(found[key]):
                found[key] = outcome
    return (*found.values(), *_criteria_by_classes(case))


def _criteria_by_classes(case: ComparisonCase) -> tuple[AttackOutcome, ...]:
    """What ``assess`` says of the released rows alone; nothing where they stand for nobody."""
    missing = max(0, case.sides.before - case.sides.after) / case.sides.before
    if case.linkage.distance.value is None or case.people_found.uncovered > missing + _NEAR:
        return ()
    # Of a column that holds one label alone there is nothing left to guess.
    told = [after for _, after in case.disclosures if after.prior_guess < 1]
    found = class_criteria(
        case.after, case.after_risk.marketer, told, limit=case.options.limit,
        controlled=case.tables.control is not None,
    )  # fmt: skip
    return case.doubts.judge(found)


def _grave(one: AttackOutcome) -> tuple[int, float, float]:
    return OUTCOMES.index(one.outcome), _level(one.risk), _level(one.attack)


def _worse_linkage(found: Iterable[Linkage]) -> Linkage:
    """Each way to link rows by the reading that links more."""
    held = [*found]
    best = max(held, key=lambda one: _level(one.probabilistic))
    names = ("distance", "second", "assignment", "interval", "probabilistic")
    worst: dict[str, Any] = {
        name: _worse_estimate(getattr(one, name) for one in held) for name in names
    }
    return replace(best, **worst)


def _worse_membership(found: Iterable[Membership]) -> Membership:
    """Presence by the reading that tells it better."""
    held = [*found]
    told = [one.attribution for one in held]
    return replace(
        held[0],
        area=_worse_estimate(one.area for one in held),
        advantage=_worse_estimate(one.advantage for one in held),
        attribution=replace(
            told[0],
            ratio=min(one.ratio for one in told),
            copies=max(one.copies for one in told),
            unique_copies=max(one.unique_copies for one in told),
        ),
    )


def _worse_differencing(found: Iterable[Differencing | None]) -> Differencing | None:
    """What two releases tell together, by the reading under which it is more."""
    held = [one for one in found if one is not None]
    return max(
        held,
        key=lambda one: (
            _REVEALED.index(one.outcome),
            _level(one.alone),
            _level(one.smaller),
        ),
        default=None,
    )


def _worse_estimate(found: Iterable[Estimate]) -> Estimate:
    """The highest, one that is known before one that is not."""
    return max(found, key=_level)


def _level(one: Estimate) -> float:
    return -1.0 if one.value is None else one.value


COMPARED: tuple[Measure, ...] = (
    Measure(
        "rows", "How many rows has the original?", lambda case: case.sides.before,
        short=True,
    ),
    Measure(
        "rows_released", "How many rows has the release?", lambda case: case.sides.after,
        findings.show_row_counts, "sizes", short=True,
    ),
    Measure(
        "suppressed", "How many rows fewer has the release?",
        lambda case: max(0, case.sides.before - case.sides.after), short=True,
    ),
    Measure(
        "left_out", "Whose rows are missing, by group?", lambda case: left_out(case.sides),
        findings.show_left_out, "use", short=True,
    ),
    Measure(
        "utility", "What is left of classes and labels?",
        lambda case: class_utility(case.sides), findings.show_utility, "classes", short=True,
    ),
    Measure(
        "partition", "What do the classes lose as a division of the rows (DBIL, SBIL, EBIL ...)?",
        lambda case: published_measures(case.sides, pairs=_PAIRS),
        findings.show_partition, "classes",
    ),
    Measure(
        "distances", "How far did the distribution of each column move?",
        lambda case: tuple(
            column_distance(c, case.sides.after) for c in case.sides.columns.values()
        ),
    ),
    Measure(
        "joint", "How far did the distributions of sets of columns move?",
        lambda case: joint_distances(case.sides),
    ),
    Measure(
        "pairs", "What is left of two-way tables and associations?",
        lambda case: pairs_of(case.sides),
    ),
    Measure(
        "moments",
        "How far are means, covariances, correlations and the first principal component off?",
        lambda case: moments(case.sides), findings.show_moments,
    ),
    Measure(
        "summaries", "What are means, deviations, quantiles and correlations before and after?",
        lambda case: summaries(case.sides, case.options.weights), short=True,
    ),
    Measure(
        "class_means", "How far are class means of sensitive numbers from people's own?",
        _class_means, findings.show_class_means, parts=("column", "error"),
    ),
    Measure(
        "counting", "How far are random counts off?", _counting, findings.show_counting,
        short=True,
    ),
    Measure(
        "queries", "How far are the user's own queries off?", _queries, findings.show_queries,
        short=True,
    ),
    Measure(
        "needs", "Are discrimination rates as somebody asked for?",
        lambda case: tuple(need_met(need, case.sides) for need in case.options.needs), short=True,
    ),
    Measure(
        "predictions", "How well do models predict that were trained on the release?",
        _predictions, findings.show_predictions, short=True,
    ),
    Measure(
        "regressions", "How far do the coefficients of linear models agree?",
        _regressions, findings.show_regressions, short=True,
    ),
    Measure(
        "likeness", "How well can the tables be told apart?",
        lambda case: likeness(case.sides, seed=case.options.seed),
        findings.show_likeness, needs="learn",
    ),
    Measure(
        "before", "How likely are people found in the original?",
        lambda case: reidentification(case.before.rows, case.before.people), short=True,
    ),
    Measure(
        "after", "How likely are people found in the release, by its own classes?",
        lambda case: case.after_risk, findings.show_risk, "sizes", short=True,
    ),
    Measure(
        "finding", "How many people are found by their original values?",
        lambda case: case.people_found,
        short=True,
    ),
    Measure(
        "disclosures", DISCLOSURES,
        lambda case: case.disclosures, findings.show_disclosures, "attacks", findings.KNOWS,
        parts=("before", "after"), short=True,
    ),
    Measure("discrimination", "How far do attacks tell a column?", _discrimination),
    Measure(
        "labels", "How far does each published label tell a column?",
        _labels, needs="values",
    ),
    Measure(
        "criteria", CRITERIA, _worse_criteria,
        short=True,
    ),
    Measure(
        "membership", "Can presence in the original be told?",
        lambda case: _worse_membership(membership(one.targets) for one in case.readings),
        findings.show_membership, "attacks",
        "knows a whole row and asks whether its person was in the original",
    ),
    Measure(
        "minimality", "What does the way it was made give away?",
        lambda case: _worse_estimate(minimality(one.sides) for one in case.readings),
        findings.show_minimality, "attacks",
        "knows that the method loses as little as it can",
    ),
    Measure(
        "linkage", "How many rows are matched back to their people?",
        lambda case: _worse_linkage(one.linkage for one in case.readings),
        findings.show_linkage, "attacks",
        "has a file with names and quasi-identifiers of people (grey box), and matches it by row",
    ),
    Measure(
        "differencing", "What does it tell together with an earlier release?",
        lambda case: _worse_differencing(one.differencing for one in case.readings),
        findings.show_differencing, "attacks",
        "has both releases, and keeps what fits a person in both", needs="earlier", short=True,
    ),
)  # fmt: skip
SHORT = tuple(one.name for one in COMPARED if one.short)
