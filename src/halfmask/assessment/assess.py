"""``hm.assess``: who stands out in a table as it stands, through which columns, how much.

All figures but the population estimates are counted on all rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.assessment.advice import advice, way
from halfmask.assessment.assessment import Assessment, ColumnRisk
from halfmask.assessment.notes import notes
from halfmask.assessment.parameters import (
    known_fraction,
    require_everybody,
    require_fraction,
    require_limit,
    require_weights_within,
)
from halfmask.assessment.table_criteria import table_criteria
from halfmask.engines.counted import Counted, counted
from halfmask.engines.source import Source
from halfmask.errors import InputError
from halfmask.metrics.discrimination.column_sets import ranked
from halfmask.metrics.discrimination.inflation import inflation
from halfmask.metrics.discrimination.meaning import meaning_of, original_blocks
from halfmask.metrics.risk.column_sets import ColumnSet, column_sets
from halfmask.metrics.risk.criterion import LIMIT
from halfmask.metrics.risk.disclosure import disclosure
from halfmask.metrics.risk.intrusion import by_class, intrusion
from halfmask.metrics.risk.rarity import rarity
from halfmask.metrics.risk.reidentification import reidentification
from halfmask.metrics.risk.special_uniques import special_uniques
from halfmask.metrics.risk.survey import survey_risk
from halfmask.metrics.risk.uniqueness import uniqueness
from halfmask.metrics.walk import affordable
from halfmask.models.exact import require_whole
from halfmask.table.classes import distinct
from halfmask.table.population import widen
from halfmask.table.read import rows_of

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.metrics.discrimination.set_walk import SetRate
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

_BINS = (1, 2, 3, 5, 10, 20, 50, 100, 1000)
_SHUFFLED = 2_000_000  # rows that are shuffled in all to see what chance gives one column set


def assess(
    table: Table | str | PathLike[str],
    *,
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    population: Table | None = None,
    fraction: float | None = None,
    weights: str | None = None,
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
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.
        population: the table of everybody, if there is one (for the journalist's risk).
        fraction: the share of the population that the table holds, if it is known.
        weights: a column that says how many people of the population each row stands for.
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
    require_fraction(fraction)
    require_whole("size", size, 1)
    require_whole("k", k, 1)
    source = Source(table, schema, engine, source_table, memory_limit, delimiter, encoding)
    held = counted(source, _read, weights=weights)
    return _assessed(held, population, fraction, size, k, limit)


def _read(schema: Schema) -> list[str]:
    """The columns that everything is counted from."""
    names = [*schema.quasi, *schema.sensitive]
    schema.require_quasi()
    return names if schema.person is None else [*names, schema.person]


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
    _require(table)
    population = None if population is None else rows_of(population)
    quasi, sensitive = table.schema.quasi, table.schema.sensitive
    ready = table if population is None else widen(table, population, quasi)
    classes, of_row = distinct(
        ready, quasi, columns=sensitive, population=population, counts=counts
    )
    if population is not None:
        require_everybody(classes, len(population))
    survey = None
    if held.weights is not None:
        require_weights_within(held.weights, population, fraction)
        survey = survey_risk(held.weights, classes, of_row, (limit,))
    fraction = known_fraction(fraction, classes, population, held.weights)
    own = classes.select(classes.rows > 0)
    size = affordable(len(quasi), size)
    sets = column_sets(table, quasi, size=size, counts=counts)
    single = {one.columns[0]: one for one in sets if len(one.columns) == 1}
    special = special_uniques(table, quasi, size=size, counts=counts)
    scores = by_class(classes, special.scores, of_row)[classes.rows > 0]
    disclosures = tuple(
        disclosure(own, name, original_blocks(ready, name, meaning_of(ready, name)))
        for name in sensitive
    )
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
        survey=survey,
        special=special,
        intrusion=None if fraction is None else intrusion(own, scores, len(quasi), fraction),
        sets=sets[:10],
        minimal=tuple(sorted((s.columns for s in sets if s.minimal), key=len))[:20],
        disclosures=disclosures,
        discrimination=tuple((name, _ranked(held, name, size)) for name in sensitive[:5]),
        criteria=table_criteria(own, alone, disclosures, limit),
        advice=advice(ready, own),
        way=way(ready, own),
        limit=limit,
        notes=notes(held, own, size, fraction, survey),
    )


def _ranked(held: Counted, target: str, size: int) -> tuple[SetRate, ...]:
    """The column sets that tell most about ``target``, beside what chance would give them."""
    table, counts = held.table, held.counts
    found = ranked(table, target, table.schema.quasi, size=size, counts=counts)[:5]
    times = max(3, min(10, _SHUFFLED // held.rows))
    return tuple(
        replace(
            one, inflation=inflation(table, target, one.columns, permutations=times, counts=counts)
        )
        for one in found
    )


def _require(table: Table) -> None:
    table.schema.require_quasi()
    if not len(table):
        raise InputError("The table has no rows: there is nothing to assess.")


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
