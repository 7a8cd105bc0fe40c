"""What an assessment holds: every figure of a table as it stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from halfmask.assessment.write import write
from halfmask.release.document import plain, versions

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.assessment.advice import Advice, Step
    from halfmask.metrics.discrimination.set_walk import SetRate
    from halfmask.metrics.risk.column_sets import ColumnSet
    from halfmask.metrics.risk.criterion import Criterion
    from halfmask.metrics.risk.disclosure import Disclosure
    from halfmask.metrics.risk.intrusion import Intrusion
    from halfmask.metrics.risk.rarity import Rarity
    from halfmask.metrics.risk.reidentification import Reidentification
    from halfmask.metrics.risk.special_uniques import SpecialUniques
    from halfmask.metrics.risk.survey import SurveyRisk
    from halfmask.metrics.risk.uniqueness import Uniqueness

FORMAT = "halfmask.assessment/1"


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
class Assessment:
    """The risk in one table.

    Attributes:
        rows: how many rows the table has.
        people: how many people stand in its classes (a person in two classes counts twice).
        classes: how many classes its quasi-identifiers form.
        smallest: how many people the smallest class holds.
        unique_rows: rows whose class holds nobody else; ``unique_share`` of all rows.
        highest_risk: the prosecutor's risk, 1 / smallest.
        mean_risk: the marketer's risk, the expected share of people found by guessing.
        sizes: (people in the class as text, classes, rows) from small to large.
        columns: each quasi-identifier by itself.
        reidentification: prosecutor, journalist and marketer, with thresholds.
        rarity: who is unique here and in the population; None where no population is given.
        uniqueness: estimates for the population; None where its size is not known.
        survey: the risk in the population by sampling weights; None where none are named.
        special: who stands out through how few columns.
        intrusion: how likely a row that alone fits somebody is the right one (DIS, DIS-SUDA); None
            where nothing is known of the population.
        sets: the column sets that tell most people apart; ``minimal`` those that begin to.
        disclosures: what the classes give away, per sensitive column.
        discrimination: per sensitive column, the sets that tell most about it.
        criteria: the three criteria of the data protection authorities.
        advice: what generalizing each column would change.
        way: steps of generalization until few people are alone.
        limit: the highest acceptable risk.
        notes: what a reader should know.
    """

    rows: int
    people: int
    classes: int
    smallest: int
    unique_rows: int
    unique_share: float
    highest_risk: float
    mean_risk: float
    sizes: tuple[tuple[str, int, int], ...]
    columns: tuple[ColumnRisk, ...]
    reidentification: Reidentification
    rarity: Rarity | None
    uniqueness: Uniqueness | None
    survey: SurveyRisk | None
    special: SpecialUniques
    intrusion: Intrusion | None
    sets: tuple[ColumnSet, ...]
    minimal: tuple[tuple[str, ...], ...]
    disclosures: tuple[Disclosure, ...]
    discrimination: tuple[tuple[str, tuple[SetRate, ...]], ...]
    criteria: tuple[Criterion, ...]
    advice: tuple[Advice, ...]
    way: tuple[Step, ...]
    limit: float
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"Assessment({self.rows:,} rows, {self.unique_rows:,} alone; highest risk "
            f"{self.highest_risk:.3f}, mean {self.mean_risk:.3f})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the assessment as plain values."""
        document: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "rows": self.rows,
                "people": self.people,
                "classes": self.classes,
                "smallest": self.smallest,
                "unique_rows": self.unique_rows,
                "unique_share": self.unique_share,
                "highest_risk": self.highest_risk,
                "mean_risk": self.mean_risk,
                "limit": self.limit,
                "sizes": [
                    {"people": label, "classes": classes, "rows": rows}
                    for label, classes, rows in self.sizes
                ],
                "columns": [asdict(column) for column in self.columns],
                "reidentification": self.reidentification.to_dict(),
                "rarity": None if self.rarity is None else self.rarity.to_dict(),
                "uniqueness": None if self.uniqueness is None else self.uniqueness.to_dict(),
                "survey": None if self.survey is None else self.survey.to_dict(),
                "special_uniques": self.special.to_dict(),
                "intrusion": None if self.intrusion is None else self.intrusion.to_dict(),
                "column_sets": [one.to_dict() for one in self.sets],
                "minimal_quasi_identifiers": [list(names) for names in self.minimal],
                "disclosures": [one.to_dict() for one in self.disclosures],
                "discrimination": [
                    {"target": target, "sets": [one.to_dict() for one in sets]}
                    for target, sets in self.discrimination
                ],
                "criteria": [one.to_dict() for one in self.criteria],
                "advice": [one.to_dict() for one in self.advice],
                "way": [one.to_dict() for one in self.way],
                "notes": list(self.notes),
                "versions": versions(),
            }
        )
        return document

    def report(self, path: str | PathLike[str]) -> None:
        """Write the assessment as ``.json`` or as a self-contained ``.html`` page."""
        write(self.to_dict(), path)
