"""How people read a comparison: each measure of it as findings, with their sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.assessment.measure import FigureForm, Finding, known_figure
from halfmask.metrics.risk.reidentification import (
    HIGHEST,
    MEAN,
    SMALLEST,
)
from halfmask.report.words import STATISTICS, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfmask.assessment.comparison import Comparison
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.partition_measures import PartitionMeasures
    from halfmask.metrics.risk.differencing import Differencing
    from halfmask.metrics.risk.disclosure import Disclosure
    from halfmask.metrics.risk.inference import Membership
    from halfmask.metrics.risk.linkage import Linkage
    from halfmask.metrics.risk.reidentification import Reidentification
    from halfmask.metrics.utility.distributions import Likeness
    from halfmask.metrics.utility.prediction import Prediction, Regression
    from halfmask.metrics.utility.queries import CountingQueries, QueryDeviation
    from halfmask.metrics.utility.summary import LeftOut
    from halfmask.metrics.utility.tables import ClassUtility, Moment


def show_row_counts(_: int, found: Comparison) -> Iterator[Finding]:
    """How many rows leave."""
    yield Finding("rows", found.rows, known_figure(found.rows_released), form="count")


def show_utility(one: ClassUtility, _: Comparison) -> Iterator[Finding]:
    """Classes, and what generalization and suppression cost."""
    yield Finding(
        "classes", one.classes, known_figure(one.classes_released), form="count", section="sizes"
    )
    size = known_figure(one.mean_class_released)
    yield Finding("mean class size", one.mean_class, size, form="figure", section="sizes")
    for column, share in one.classification:
        yield Finding(
            f"classification metric of {column}",
            after=known_figure(share),
            meaning="rows whose value is not the majority of their class",
        )
    if one.precision is not None:
        yield Finding("precision", after=known_figure(one.precision), meaning="1 - level / height")


_LOSSES = (
    ("dbil", "diameters of classes"),
    ("sbil", "widths of columns"),
    ("tbil", "heights of common labels"),
    ("ebil", "bits of entropy inside classes"),
    ("wcss", "squared distances to the middle"),
    ("ctbil", "cells of one- and two-way tables that differ, in rows"),
)


def show_partition(one: PartitionMeasures, found: Comparison) -> Iterator[Finding]:
    """The classes as a division of the rows."""
    yield Finding("smallest class, rows", after=known_figure(one.k), form="count")
    yield Finding(
        "C_AVG",
        after=known_figure(one.average_class),
        meaning="average class as a multiple of the smallest",
        form="figure",
    )
    alike = percent_text(found.utility.discernibility)
    yield Finding(
        "discernibility",
        after=known_figure(one.discernibility),
        sentence=f"The chance that two rows cannot be told apart is {alike}.",
        form="count",
    )
    for name, meaning in _LOSSES:
        after = known_figure(getattr(one, name))
        yield Finding(name.upper(), None, after, meaning, _why_unknown(one, name, after), "figure")


def _why_unknown(one: PartitionMeasures, name: str, after: Estimate | None) -> str:
    """What is known of a loss where labels do not tell which row stands in which class."""
    if after is not None:
        return ""
    low, high = getattr(one, f"{name}_low", None), getattr(one, f"{name}_high", None)
    if low is None or high is None:
        return (
            "not known: labels do not tell which row stands in which class, or there are too many "
            "pairs of rows"
        )
    return f"between {low:,.1f} and {high:,.1f}: labels do not tell which row stands where"


def show_class_means(one: tuple[tuple[str, Estimate], ...], _: Comparison) -> Iterator[Finding]:
    """Means of classes against the values of their people."""
    for column, error in one:
        meaning = f"how far the mean {column} of a person's class is from the person's own"
        yield Finding(f"class means of {column}", after=error, meaning=meaning)


def show_moments(one: tuple[Moment, ...], _: Comparison) -> Iterator[Finding]:
    """How far statistics of numbers are off, the first principal component among them."""
    for each in one:
        share = "" if each.variation is None else f" ({percent_text(each.variation)} of the true)"
        yield Finding(
            STATISTICS[each.statistic],
            after=known_figure(each.absolute_error),
            meaning=f"mean absolute error{share}",
            form="figure",
        )


def show_counting(one: CountingQueries, _: Comparison) -> Iterator[Finding]:
    """Random counts on both tables."""
    yield Finding("random counts, mean error", after=one.error, meaning="of the true count")
    yield Finding("random counts, median error", after=known_figure(one.median, one.queries))
    yield Finding(
        "random counts, 95 % quantile of errors", after=known_figure(one.q95, one.queries)
    )


def show_queries(one: tuple[QueryDeviation, ...], _: Comparison) -> Iterator[Finding]:
    """The controller's own queries on both tables."""
    for each in one:
        name = f"query {each.query} of the file"
        yield Finding(name, after=each.error, meaning="mean relative error")


def show_predictions(one: tuple[Prediction, ...], _: Comparison) -> Iterator[Finding]:
    """Models trained on the release against those trained on the original."""
    for each in one:
        name = f"{each.measure} of {each.target}, {each.model}"
        yield Finding(name, each.original.value, each.release)


def show_regressions(one: tuple[Regression, ...], _: Comparison) -> Iterator[Finding]:
    """Linear models fitted to both tables."""
    for each in one:
        total = each.coefficients + each.lost
        known = each.overlap.value is not None
        yield Finding(
            f"linear model of {each.target}",
            after=each.overlap,
            meaning="overlap of intervals"
            + (f" ({each.coefficients} of {total} coefficients)" if known else ""),
            form="score",
        )


def show_likeness(one: Likeness | None, _: Comparison) -> Iterator[Finding]:
    """How well the tables can be told apart."""
    if one is not None:
        yield Finding("telling apart", after=one.area, meaning="0.5 is perfect", form="score")
        yield Finding("clusters", after=one.clusters, meaning="1 is the same", form="score")
        yield Finding("propensity (pMSE)", after=one.pmse, form="score")


def show_risk(one: Reidentification, found: Comparison) -> Iterator[Finding]:
    """Risks by the release's own classes, where they hold the original's people."""
    for words, name in ((SMALLEST, "smallest"), (HIGHEST, "prosecutor"), (MEAN, "marketer")):
        known = None if found.made_up else known_figure(getattr(one, name))
        form: FigureForm = "count" if name == "smallest" else "percent"
        yield Finding(words, getattr(found.before, name), known, form=form)
    known = None if found.made_up else known_figure(one.prosecutor)
    yield Finding(
        "identity, by the released rows alone",
        found.before.prosecutor,
        known,
        "chance to be right about whoever stands out most",
        attacker="has the released rows and nothing else (black box)",
        section="attacks",
    )


def show_left_out(one: LeftOut | None, _: Comparison) -> Iterator[Finding]:
    """Whom the release leaves out."""
    if one is None:
        return
    yield Finding("rows left out", after=known_figure(one.share), meaning="of all rows")
    for group in one.most():
        name, share = f"rows left out, {group.column}: {group.group}", known_figure(group.share)
        yield Finding(name, after=share, meaning=f"of {group.before:,} rows")


KNOWS = "knows the quasi-identifiers of a person"
_LEARNED = (
    ("homogeneity", "homogeneity", f"{KNOWS}; all rows that fit hold one value",
     "rows whose value is certain"),
    ("background knowledge", "background",
     f"{KNOWS}, and can rule out one value of the rows that fit",
     "rows whose value is then certain"),
    ("skewness", "skewness", f"{KNOWS}; a value is likelier among the rows that fit",
     "largest gain of a value"),
    ("similarity", "similarity", f"{KNOWS}; the values that fit differ but mean the same",
     "rows whose values mean the same"),
)  # fmt: skip


def show_disclosures(
    one: tuple[tuple[Disclosure, Disclosure], ...], found: Comparison
) -> Iterator[Finding]:
    """What classes tell about sensitive columns."""
    for before, after in one:
        for name, key, attacker, meaning in _LEARNED:
            known = None if found.made_up else known_figure(getattr(after, key))
            first = getattr(before, key)
            why = "not known: nothing says which values are alike" if first is None else ""
            yield Finding(
                f"{name} of {before.column}", first, known, meaning, why, attacker=attacker
            )


def show_membership(one: Membership, _: Comparison) -> Iterator[Finding]:
    """Whether somebody can be told to be in the release."""
    yield Finding("membership", after=one.area, meaning="right answers (50 % is guessing)")
    yield Finding(
        "copies",
        after=known_figure(one.attribution.copies),
        meaning="released rows that equal an original one",
        attacker="looks for rows of real people",
    )
    yield Finding(
        "attribution",
        after=known_figure(one.attribution.ratio),
        meaning="released rows that are left for this one",
        attacker="knows everybody's row but one",
    )


def show_minimality(one: Estimate, _: Comparison) -> Iterator[Finding]:
    """What a method that loses least gives away."""
    yield Finding(
        "minimality", after=one, meaning="rows generalized more than their class size needs"
    )


def show_linkage(one: Linkage, _: Comparison) -> Iterator[Finding]:
    """Rows that are matched by their distance or likelihood."""
    right = "rows matched rightly"
    if one.distance.value is None:
        yield Finding("record linkage", after=one.distance, meaning=right)
        return
    yield Finding("record linkage, by the nearest row", after=one.distance, meaning=right)
    yield Finding("record linkage, in the best matching of all", None, one.assignment, right)
    agree = "record linkage, by where rows agree (Fellegi and Sunter)"
    yield Finding(agree, after=one.probabilistic, meaning=right)
    if one.interval.value is not None:
        yield Finding(
            "interval disclosure",
            after=one.interval,
            meaning="numbers that are right",
            attacker="takes each released number as the true one, give or take a tenth of the "
            "spread",
        )
    if one.bands is not None:
        said = (
            f"{one.bands.links:,} links, {one.bands.correct_links:,} of them right; "
            f"{one.bands.possible:,} possible, {one.bands.correct_possible:,} of them right"
        )
        name = "record linkage, with a person who decides"
        yield Finding(name, meaning="pairs of rows", sentence=said)


def show_differencing(one: Differencing | None, _: Comparison) -> Iterator[Finding]:
    """What an earlier release gives away beside this one."""
    if one is None:
        said = "not measured: give the earlier release (--earlier), if there is one"
        yield Finding("differencing", sentence=said)
        return
    for sentence in one.witnesses:
        yield Finding("differencing, who came and left", sentence=sentence)
    yield Finding("differencing", after=one.alone, meaning="people left alone")
    smaller = "people in smaller classes than in either release"
    yield Finding("differencing", after=one.smaller, meaning=smaller)
    for column, share in one.disclosed:
        certain = "people whose value becomes certain"
        yield Finding(f"differencing, {column}", after=share, meaning=certain)
