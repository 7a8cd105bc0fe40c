"""``hm.assess``: who stands out in a table as it stands, through which columns, how much.

All figures but the population estimates are counted on all rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.assessment.advice import Advice, Step, advice, way
from halfmask.assessment.counted import Counted, counted
from halfmask.assessment.write import write
from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.metrics.discrimination.column_sets import SetRate, rank_column_sets
from halfmask.metrics.estimate import exact
from halfmask.metrics.risk.column_sets import ColumnSet, column_sets
from halfmask.metrics.risk.criterion import LIMIT, Criterion, judge
from halfmask.metrics.risk.disclosure import Disclosure, disclosure
from halfmask.metrics.risk.rarity import Rarity, rarity
from halfmask.metrics.risk.reidentification import Reidentification, reidentification
from halfmask.metrics.risk.special_uniques import SpecialUniques, special_uniques
from halfmask.metrics.risk.uniqueness import Uniqueness, uniqueness
from halfmask.release.document import plain, versions
from halfmask.table.classes import classes_of
from halfmask.table.population import widen

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table

FORMAT = "halfmask.assessment/1"
_BINS = (1, 2, 3, 5, 10, 20, 50, 100, 1000)
_RANKED = 200_000_000  # rows up to which discrimination rates of column sets are ranked
_SETS = 4000  # column sets that are looked at without being asked


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
        special: who stands out through how few columns.
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
    special: SpecialUniques
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
                "special_uniques": self.special.to_dict(),
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


def assess(
    table: Table | str | PathLike[str],
    *,
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    memory_limit: str | None = None,
    population: Table | None = None,
    fraction: float | None = None,
    size: int = 3,
    k: int = 5,
    limit: float = LIMIT,
) -> Assessment:
    """Measure who stands out in ``table`` by its quasi-identifiers.

    Args:
        table: rows with a schema that names the quasi-identifiers; or the name of a file, or the
            address of a PostgreSQL database, whose rows stay where they are if ``engine`` says so
            or the file is large.
        schema: the schema of a file or database, as for ``read``.
        engine: ``"duckdb"`` counts a CSV or Parquet file or a DuckDB database within
            ``memory_limit`` (such as ``"500MB"``), spilling to disk; ``"memory"`` reads it.
        source_table: which table of a database.
        memory_limit: how much memory DuckDB may take.
        population: the table of everybody, if there is one (for the journalist's risk).
        fraction: the share of the population that the table holds, if it is known.
        size: the largest column sets that are looked at.
        k: fewer people than this are too few in the population.
        limit: the highest acceptable risk.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41]}, schema={"age": "quasi"})
        >>> hm.assess(people).unique_rows
        1
    """
    held = counted(
        table, schema=schema, engine=engine, table=source_table, memory_limit=memory_limit
    )
    if held.counts is not None and population is not None:
        raise ParameterError("population", "a table", "nothing: an engine counts one table")
    return _assessed(held, population, fraction, size, k, limit)


def _assessed(
    held: Counted,
    population: Table | None,
    fraction: float | None,
    size: int,
    k: int,
    limit: float,
) -> Assessment:
    """Measure rows, or distinct tuples with counts."""
    table, counts = held.table, held.counts
    _require(table, limit)
    quasi, sensitive = table.schema.quasi, table.schema.sensitive
    ready = table if population is None else widen(table, population, quasi)
    classes = classes_of(ready, quasi, columns=sensitive, population=population, counts=counts)
    if population is not None and fraction is None:
        fraction = min(1.0, len(table) / len(population))
    own = classes.select(classes.rows > 0)
    size = _affordable(len(quasi), size)
    sets = column_sets(table, quasi, size=size, counts=counts)
    single = {one.columns[0]: one for one in sets if len(one.columns) == 1}
    shown = sensitive[:5] if held.rows <= _RANKED else ()
    disclosures = tuple(disclosure(own, name) for name in sensitive)
    rows, people = own.rows, own.people
    alone = int(rows[people == 1].sum())
    smallest = int(people.min())
    return Assessment(
        rows=held.rows,
        people=int(people.sum()),
        classes=len(own),
        smallest=smallest,
        unique_rows=alone,
        unique_share=alone / held.rows,
        highest_risk=1 / smallest,
        mean_risk=len(own) / int(people.sum()),
        sizes=_sizes(people, rows),
        columns=tuple(_column(held, name, single[name]) for name in quasi),
        reidentification=reidentification(classes.rows, classes.people, classes.population),
        rarity=None if population is None else rarity(classes),
        uniqueness=None if fraction is None else uniqueness(people, fraction, k=k),
        special=special_uniques(table, quasi, size=size, counts=counts),
        sets=sets[:10],
        minimal=tuple(sorted((s.columns for s in sets if s.minimal), key=len))[:20],
        disclosures=disclosures,
        discrimination=tuple(
            (name, rank_column_sets(table, name, quasi, size=size, counts=counts)[:5])
            for name in shown
        ),
        criteria=_criteria(own, alone, disclosures, limit),
        advice=advice(ready, own),
        way=way(ready, own),
        limit=limit,
        notes=_notes(held, size, fraction, len(quasi)),
    )


def _require(table: Table, limit: float) -> None:
    if not table.schema.quasi:
        raise SchemaError(
            "No column is a quasi-identifier: give columns the role quasi in the schema or --quasi."
        )
    if not len(table):
        raise InputError("The table has no rows: there is nothing to assess.")
    if not 0 < limit < 1:
        raise ParameterError("limit", limit, "more than 0 and less than 1")


def _affordable(columns: int, size: int) -> int:
    """The largest set size for which there are not too many sets."""
    if size < 1:
        raise ParameterError("size", size, "at least 1")
    size = min(size, columns)
    while size > 1 and sum(comb(columns, s) for s in range(1, size + 1)) > _SETS:
        size -= 1
    return size


def _notes(held: Counted, size: int, fraction: float | None, columns: int) -> tuple[str, ...]:
    notes = [held.note] if held.note else []
    if held.rows > _RANKED and held.table.schema.sensitive:
        notes.append(
            f"Column sets were not ranked by their discrimination rate: there are more than "
            f"{_RANKED:,} rows. Those of all quasi-identifiers together are given."
        )
    if size < columns:
        notes.append(f"Column sets of up to {size} columns were looked at; larger ones tell more.")
    if fraction is None:
        notes.append(
            "Nothing is said about the population: give the share of it that is in the table "
            "(fraction), or a table of it (population)."
        )
    return tuple(notes)


def _criteria(
    classes: Classes, alone: int, disclosures: tuple[Disclosure, ...], limit: float
) -> tuple[Criterion, ...]:
    """The three criteria for a table that would be published as it stands."""
    rows, people = int(classes.rows.sum()), int(classes.people.sum())
    nothing = exact(0.0, rows)
    out = [
        judge(
            "singling out",
            "The attacker looks for a combination of quasi-identifiers that fits one person only.",
            exact(alone / rows, rows),
            None,
            nothing,
            limit=limit,
        ),
        judge(
            "linkability",
            "The attacker has a file with names and the same quasi-identifiers, and joins each "
            "person to a row that fits.",
            exact(len(classes) / people, people),
            None,
            exact(1 / people, people),
            limit=limit,
        ),
    ]
    out += [
        judge(
            "inference",
            f"The attacker knows the quasi-identifiers of a person and guesses {one.column} "
            "as the likeliest value among the rows that fit.",
            exact(one.best_guess, rows),
            None,
            exact(one.prior_guess, rows),
            limit=limit,
            column=one.column,
        )
        for one in disclosures
    ]
    return tuple(out)


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


def _column(held: Counted, name: str, alone: ColumnSet) -> ColumnRisk:
    encoded = held.table.encode(name)
    distinct, missing = len(encoded.values), 0
    if encoded.values.null_count:  # the missing value is the last
        distinct -= 1
        mine = encoded.codes == distinct
        missing = int(mine.sum() if held.counts is None else held.counts[mine].sum())
    return ColumnRisk(
        name,
        distinct,
        missing,
        alone.unique_rows,
        alone.unique_rows / held.rows,
        alone.separation,
    )
