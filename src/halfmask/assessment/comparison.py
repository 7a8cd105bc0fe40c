"""What a comparison holds: every figure of an original beside its release."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from halfmask.assessment.write import write
from halfmask.release.document import plain, versions

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.metrics.discrimination.need import NeedMet
    from halfmask.metrics.discrimination.release_rates import ReleaseRates
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.partition_measures import PartitionMeasures
    from halfmask.metrics.risk.criterion import Criterion
    from halfmask.metrics.risk.differencing import Differencing
    from halfmask.metrics.risk.disclosure import Disclosure
    from halfmask.metrics.risk.linkage import Linkage
    from halfmask.metrics.risk.membership import Membership
    from halfmask.metrics.risk.reidentification import Reidentification
    from halfmask.metrics.utility.association import Pair
    from halfmask.metrics.utility.classes import ClassUtility, GeneralizedColumn
    from halfmask.metrics.utility.distributions import ColumnDistance, JointDistance
    from halfmask.metrics.utility.likeness import Likeness
    from halfmask.metrics.utility.moments import Moment
    from halfmask.metrics.utility.prediction import Prediction
    from halfmask.metrics.utility.queries import CountingQueries
    from halfmask.metrics.utility.regression import Regression
    from halfmask.metrics.utility.sql_queries import QueryError

FORMAT = "halfmask.comparison/1"


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """How far the distribution of a column that leaves as it is moved, from 0 to 1."""

    name: str
    distance: float


@dataclass(frozen=True, slots=True)
class Finding:
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """An original and its release, side by side.

    Attributes:
        rows: rows of the original; ``rows_released`` of the release; ``suppressed`` the difference.
        utility: what is left of classes and labels.
        partition: losses of the classes as a division of the rows (DBIL, SBIL, EBIL ...).
        distances: per column, how far its distribution moved.
        joint: the same for sets of columns.
        pairs: two-way tables and associations.
        moments: means, covariances and correlations of numeric columns.
        class_means: per numeric sensitive column, how far class means are from people's numbers.
        counting: random counting queries.
        queries: the user's own queries.
        needs: discrimination rates before and after, and whether they are as asked.
        predictions: models trained on the release and tested on the original.
        regressions: per numeric target, how far the coefficients of a linear model agree.
        likeness: how well the tables can be told apart; None where nothing was trained.
        before: the risk of the original; ``after`` that of the release's own classes.
        finding: how many people are found in the release by their original values.
        disclosures: per sensitive column, before and after.
        discrimination: attacks scored by discrimination rates, and the overall loss.
        criteria: the three criteria of the data protection authorities.
        membership: whether presence can be told.
        minimality: what the way it was made gives away.
        linkage: how many rows are matched back to their people.
        differencing: what it tells together with an earlier release; None where none is given.
        notes: what a reader should know.
    """

    rows: int
    rows_released: int
    suppressed: int
    utility: ClassUtility
    partition: PartitionMeasures
    distances: tuple[ColumnDistance, ...]
    joint: tuple[JointDistance, ...]
    pairs: tuple[Pair, ...]
    moments: tuple[Moment, ...]
    class_means: tuple[tuple[str, Estimate], ...]
    counting: CountingQueries
    queries: tuple[QueryError, ...]
    needs: tuple[NeedMet, ...]
    predictions: tuple[Prediction, ...]
    regressions: tuple[Regression, ...]
    likeness: Likeness | None
    before: Reidentification
    after: Reidentification
    finding: Finding
    disclosures: tuple[tuple[Disclosure, Disclosure | None], ...]
    discrimination: ReleaseRates
    criteria: tuple[Criterion, ...]
    membership: Membership
    minimality: Estimate
    linkage: Linkage
    differencing: Differencing | None
    limit: float
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
        return (
            f"Comparison({self.rows:,} rows, {self.rows_released:,} released; {loss}"
            f"queries off by {self.counting.error.value:.1%})"
        )

    @property
    def made_up(self) -> bool:
        """Whether cells are false or rows stand for nobody.

        Known by people who fit no released row although nobody was left out. Classes of the
        release then hold rows, not these people.
        """
        return self.finding.uncovered > self.suppressed / self.rows + 1e-9

    @property
    def loss(self) -> float | None:
        """The geometric aggregate of the columns' losses, 0 to 1; None where values are new."""
        return self.utility.loss

    @property
    def score(self) -> float | None:
        """Information loss and disclosure risk by linkage, half each; None where one is unknown."""
        risk = self.linkage.risk
        return None if self.loss is None or risk is None else (self.loss + risk) / 2

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
                "made_up": self.made_up,
                "loss": self.loss,
                "classes": self.classes,
                "classes_released": self.classes_released,
                "mean_class": self.mean_class,
                "mean_class_released": self.mean_class_released,
                "limit": self.limit,
                "generalized": [asdict(one) for one in self.generalized],
                "kept": [asdict(one) for one in self.kept],
                "utility": self.utility.to_dict(),
                "partition": self.partition.to_dict(),
                "distances": [asdict(one) for one in self.distances],
                "joint": [one.to_dict() for one in self.joint],
                "pairs": [one.to_dict() for one in self.pairs],
                "moments": [one.to_dict() for one in self.moments],
                "class_means": [
                    {"column": name, "error": error.to_dict()} for name, error in self.class_means
                ],
                "counting": self.counting.to_dict(),
                "queries": [one.to_dict() for one in self.queries],
                "needs": [one.to_dict() for one in self.needs],
                "predictions": [one.to_dict() for one in self.predictions],
                "regressions": [one.to_dict() for one in self.regressions],
                "likeness": None if self.likeness is None else self.likeness.to_dict(),
                "before": self.before.to_dict(),
                "after": self.after.to_dict(),
                "finding": asdict(self.finding),
                "disclosures": [
                    {"before": a.to_dict(), "after": None if b is None else b.to_dict()}
                    for a, b in self.disclosures
                ],
                "discrimination": self.discrimination.to_dict(),
                "criteria": [one.to_dict() for one in self.criteria],
                "membership": self.membership.to_dict(),
                "minimality": self.minimality.to_dict(),
                "linkage": self.linkage.to_dict(),
                "differencing": None if self.differencing is None else self.differencing.to_dict(),
                "score": self.score,
                "notes": list(self.notes),
                "versions": versions(),
            }
        )
        return document

    def report(self, path: str | PathLike[str]) -> None:
        """Write the comparison as ``.json`` or as a self-contained ``.html`` page."""
        write(self.to_dict(), path)
