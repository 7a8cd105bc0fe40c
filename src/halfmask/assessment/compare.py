"""``hm.compare``: what a release is still good for, and what it still tells about people.

It works for generalized, suppressed, perturbed and synthetic rows alike; see
``halfmask.metrics.sides`` for the common ground.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.assessment.write import write
from halfmask.errors import ParameterError
from halfmask.metrics.covering import covering_rows
from halfmask.metrics.risk.criterion import LIMIT, Criterion
from halfmask.metrics.risk.disclosure import Disclosure, disclosure
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.linkability import linkability
from halfmask.metrics.risk.membership import Membership, membership
from halfmask.metrics.risk.reidentification import Reidentification, reidentification
from halfmask.metrics.risk.republication import minimality
from halfmask.metrics.risk.singling_out import singling_out
from halfmask.metrics.risk.targets import targets as whom
from halfmask.metrics.sides import sides
from halfmask.metrics.utility import learning
from halfmask.metrics.utility.association import Pair, pairs_of
from halfmask.metrics.utility.classes import ClassUtility, GeneralizedColumn, class_utility
from halfmask.metrics.utility.distributions import (
    ColumnDistance,
    JointDistance,
    column_distance,
    joint_distances,
)
from halfmask.metrics.utility.likeness import Likeness, likeness
from halfmask.metrics.utility.moments import Moment, class_mean_error, moments
from halfmask.metrics.utility.prediction import Prediction, predict
from halfmask.metrics.utility.queries import CountingQueries, counting_queries
from halfmask.metrics.utility.sql_queries import QueryError, sql_queries, statements
from halfmask.release.document import plain, versions
from halfmask.table.classes import classes_of
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table, require_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from halfmask.metrics.discrimination.attacks import Need
    from halfmask.metrics.discrimination.rate import Discrimination
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.risk.targets import Targets
    from halfmask.metrics.sides import Published, Sides

FORMAT = "halfmask.comparison/1"


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """How far the distribution of a column that leaves as it is moved, from 0 to 1."""

    name: str
    distance: float


@dataclass(frozen=True, slots=True)
class NeedMet:
    """How far a need is served before and after: discrimination rates and the rows they rest on."""

    name: str
    before: float | None
    after: float | None
    rows_before: int
    rows_after: int


@dataclass(frozen=True, slots=True)
class Finding:
    """How an attacker who holds original rows finds people in the release.

    Attributes:
        found: the mean over people of 1 / released rows that fit; 0 for those that none fits.
        highest: the most that this becomes.
        uncovered: the share of people whom no released row fits.
    """

    found: float
    highest: float
    uncovered: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """An original and its release, side by side.

    Attributes:
        rows: rows of the original; ``rows_released`` of the release; ``suppressed`` the difference.
        utility: what is left of classes and labels.
        distances: per column, how far its distribution moved.
        joint: the same for sets of columns.
        pairs: two-way tables and associations.
        moments: means, covariances and correlations of numeric columns.
        class_means: per numeric sensitive column, how far class means are from people's numbers.
        counting: random counting queries.
        queries: the user's own queries.
        needs: discrimination rates before and after.
        predictions: models trained on the release and tested on the original.
        likeness: how well the tables can be told apart; None where nothing was trained.
        before: the risk of the original; ``after`` that of the release's own classes.
        finding: how many people are found in the release by their original values.
        disclosures: per sensitive column, before and after.
        criteria: the three criteria of the data protection authorities.
        membership: whether presence can be told.
        minimality: what the way it was made gives away.
        notes: what a reader should know.
    """

    rows: int
    rows_released: int
    suppressed: int
    utility: ClassUtility
    distances: tuple[ColumnDistance, ...]
    joint: tuple[JointDistance, ...]
    pairs: tuple[Pair, ...]
    moments: tuple[Moment, ...]
    class_means: tuple[tuple[str, Estimate], ...]
    counting: CountingQueries
    queries: tuple[QueryError, ...]
    needs: tuple[NeedMet, ...]
    predictions: tuple[Prediction, ...]
    likeness: Likeness | None
    before: Reidentification
    after: Reidentification
    finding: Finding
    disclosures: tuple[tuple[Disclosure, Disclosure | None], ...]
    criteria: tuple[Criterion, ...]
    membership: Membership
    minimality: Estimate
    limit: float
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
        return (
            f"Comparison({self.rows:,} rows, {self.rows_released:,} released; {loss}"
            f"queries off by {self.counting.error.value:.1%})"
        )

    @property
    def loss(self) -> float | None:
        """The geometric aggregate of the columns' losses, 0 to 1; None where values are new."""
        return self.utility.loss

    @property
    def generalized(self) -> tuple[GeneralizedColumn, ...]:
        """The quasi-identifiers."""
        return self.utility.columns

    @property
    def classes(self) -> int:
        """Classes of the original."""
        return self.utility.classes

    @property
    def classes_released(self) -> int:
        """Classes of the release."""
        return self.utility.classes_released

    @property
    def mean_class(self) -> float:
        """Mean rows per class before."""
        return self.utility.mean_class

    @property
    def mean_class_released(self) -> float:
        """Mean rows per class after."""
        return self.utility.mean_class_released

    @property
    def kept(self) -> tuple[KeptColumn, ...]:
        """The columns that are no quasi-identifiers, and how far they moved."""
        return tuple(KeptColumn(d.name, d.variation) for d in self.distances if d.role != "quasi")

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        document: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "rows": self.rows,
                "rows_released": self.rows_released,
                "suppressed": self.suppressed,
                "loss": self.loss,
                "classes": self.classes,
                "classes_released": self.classes_released,
                "mean_class": self.mean_class,
                "mean_class_released": self.mean_class_released,
                "limit": self.limit,
                "generalized": [asdict(one) for one in self.generalized],
                "kept": [asdict(one) for one in self.kept],
                "utility": self.utility.to_dict(),
                "distances": [asdict(one) for one in self.distances],
                "joint": [one.to_dict() for one in self.joint],
                "pairs": [one.to_dict() for one in self.pairs],
                "moments": [one.to_dict() for one in self.moments],
                "class_means": [
                    {"column": name, "error": error.to_dict()} for name, error in self.class_means
                ],
                "counting": self.counting.to_dict(),
                "queries": [one.to_dict() for one in self.queries],
                "needs": [asdict(one) for one in self.needs],
                "predictions": [one.to_dict() for one in self.predictions],
                "likeness": None if self.likeness is None else self.likeness.to_dict(),
                "before": self.before.to_dict(),
                "after": self.after.to_dict(),
                "finding": asdict(self.finding),
                "disclosures": [
                    {"before": a.to_dict(), "after": None if b is None else b.to_dict()}
                    for a, b in self.disclosures
                ],
                "criteria": [one.to_dict() for one in self.criteria],
                "membership": self.membership.to_dict(),
                "minimality": self.minimality.to_dict(),
                "notes": list(self.notes),
                "versions": versions(),
            }
        )
        return document

    def report(self, path: str | PathLike[str]) -> None:
        """Write the comparison as ``.json`` or as a self-contained ``.html`` page."""
        write(self.to_dict(), path)


def compare(
    original: Table,
    release: Published | Table,
    *,
    control: Table | None = None,
    targets: Sequence[str] | None = None,
    needs: Sequence[Need] = (),
    queries: str | PathLike[str] | None = None,
    learn: bool | None = None,
    attacks: int = 500,
    seed: int = 0,
    limit: float = LIMIT,
) -> Comparison:
    """Measure what ``release`` lost against ``original`` and what it still gives away.

    Args:
        original: the rows it was made from; its schema and hierarchies count.
        release: a release, or a table read from one.
        control: rows of people who are not in the original, with the same columns.
        targets: columns to predict; None: the first sensitive column.
        needs: what analysts want to learn, as discrimination rates.
        queries: a file of SQL on a table called people, run on both.
        learn: whether to train models; None: if scikit-learn is installed.
        attacks: how many people each attack is tried on.
        seed: repeats the random choices of attacks and queries.
        limit: the highest acceptable risk.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41, 41]}, schema={"age": "quasi"})
        >>> hm.compare(people, hm.anonymize(people, hm.KAnonymity(2)), learn=False).suppressed
        0
    """
    require_table(original)
    if not hasattr(release, "to_arrow"):
        require_table(release)
    if attacks < 1:
        raise ParameterError("attacks", attacks, "at least 1")
    asked = [] if queries is None else statements(queries)
    paired = sides(original, release)
    attacked = whom(original, release, control, attacks=attacks, seed=seed)
    wanted = learning.available() if learn is None else learn
    sensitive = [c.name for c in paired.sensitive]
    # Without a sensitive column, one that others may know is guessed from the rest of them.
    secrets = sensitive or [c.name for c in paired.quasi[1:][-1:]]
    released = _released(paired)
    before, after = _classes(original, paired), _classes(released, paired)
    return Comparison(
        rows=paired.before,
        rows_released=paired.after,
        suppressed=max(0, paired.before - paired.after),
        utility=class_utility(paired),
        distances=tuple(column_distance(c, paired.after) for c in paired.columns.values()),
        joint=joint_distances(paired),
        pairs=pairs_of(paired),
        moments=moments(paired),
        class_means=tuple(
            (c.name, class_mean_error(paired, c.name))
            for c in paired.sensitive
            if c.numbers is not None
        ),
        counting=counting_queries(paired, seed=seed),
        queries=sql_queries(paired, asked, seed=seed) if asked else (),
        needs=tuple(_need(need, original, released) for need in needs),
        predictions=_predictions(attacked, targets, wanted=wanted, seed=seed),
        likeness=likeness(paired, seed=seed) if wanted else None,
        before=reidentification(before.rows, before.people),
        after=reidentification(after.rows, after.people),
        finding=_finding(paired),
        disclosures=tuple(
            (disclosure(before, name), disclosure(after, name)) for name in sensitive
        ),
        criteria=(
            singling_out(attacked, limit=limit),
            singling_out(attacked, known=False, limit=limit),
            linkability(attacked, limit=limit),
            *(inference(attacked, name, limit=limit) for name in secrets),
        ),
        membership=membership(attacked),
        minimality=minimality(paired),
        limit=limit,
        notes=(*paired.notes, *_coverage(paired), *_seen(control, wanted=wanted)),
    )


def _predictions(
    attacked: Targets, names: Sequence[str] | None, *, wanted: bool, seed: int
) -> tuple[Prediction, ...]:
    paired = attacked.sides
    if names:
        learning.require()
    elif not wanted or len(paired.columns) < 2:
        return ()
    chosen = list(names) if names else [c.name for c in paired.sensitive[:1]]
    outside = np.arange(attacked.size, paired.before) if len(attacked.control) else None
    return tuple(
        one for name in chosen for one in predict(paired, name, outside=outside, seed=seed)
    )


def _released(paired: Sides) -> Table:
    """The released rows with the roles of the original; hierarchies only where values stayed."""
    schema = paired.original.schema
    columns = {}
    for name, column in schema.columns.items():
        if name in paired.columns:
            shared = paired.columns[name]
            same = shared.foreign == 0 and int(shared.level.max(initial=0)) == 0
            columns[name] = column if same and column.role == "sensitive" else Column(column.role)
    arrow = paired.rows.select(list(paired.columns))
    return Table(arrow, Schema(columns))


def _classes(table: Table, paired: Sides) -> Any:
    quasi = [c.name for c in paired.quasi]
    return classes_of(table, quasi, columns=[c.name for c in paired.sensitive])


def _finding(paired: Sides) -> Finding:
    fits = covering_rows(paired.quasi)
    chance = np.where(fits > 0, 1.0 / np.maximum(fits, 1), 0.0)
    return Finding(float(chance.mean()), float(chance.max()), float((fits == 0).mean()))


def _need(need: Need, original: Table, released: Table) -> NeedMet:
    one, two = need.measure(original), need.measure(released)
    return NeedMet(need.title, _rate(one), _rate(two), one.rows, two.rows)


def _rate(found: Discrimination) -> float | None:
    return None if found.degenerate else found.rate


def _seen(control: Table | None, *, wanted: bool) -> tuple[str, ...]:
    if control is not None or not wanted:
        return ()
    return (
        "Models were tested on people who are in the tables they were trained on: their scores "
        "lean upward on both sides. Rows of other people (control) would mend it.",
    )


def _coverage(paired: Sides) -> tuple[str, ...]:
    if paired.before == paired.after:
        return ()
    return (
        f"The release holds {paired.after:,} rows and the original {paired.before:,}: figures of "
        "single values are not comparable, those of columns are.",
    )
