"""``hm.row_risks``: the risk of every row, for the controller to filter and treat rows by.

These figures are about single people: they stand in no report and are not made to be published.
Rows that stay elsewhere are counted there: figures stand beside distinct tuples, and are written
per row by a join.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.assessment.sampling import Sampling
from halfmask.engines.counting.tuples import count_tuples, one_row_each
from halfmask.engines.read import as_table, is_typed
from halfmask.engines.staging import join_figures
from halfmask.errors import ParameterError, SchemaError
from halfmask.metrics.risk.column_sets import affordable_size, special_uniques
from halfmask.metrics.risk.individual import class_chances, household_risks, individual_risks
from halfmask.metrics.risk.inference import by_class, dis_scores
from halfmask.metrics.risk.reidentification import prosecutor_risks as prosecutor_risks
from halfmask.models.verdict import require_whole
from halfmask.release.files import private_file, write_batches, write_table
from halfmask.table.tuples import all_ones, ones, pick_counts, rows_in

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples
    from halfmask.table.weights import Weights

_CHANCES = ("prosecutor", "journalist", "individual", "weighted", "special_dis", "household")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowRisks:
    """One figure per row, in the order of the table; of rows elsewhere, one per distinct tuple.

    Attributes:
        people: how many people share the row's quasi-identifiers.
        prosecutor: 1 / people, the chance of somebody who knows that the person is in the table.
        special_score: the SUDA score; 0 for rows that no small column set singles out.
        special_size: how many columns suffice to single the row out; 0 where none were found.
        journalist: 1 / people of the population who share them; None where no population is given.
        individual: the expected chance in a population of unknown rows, by the weights of the class
            or else by the fraction; None without either.
        household: the chance that somebody of the household is found; None where none is named.
        represented: how many people of the population the people of the class stand for by their
            weights; None without weights.
        weighted: 1 / represented.
        special_dis: the DIS-SUDA score, the chance that the row is the right one where it alone
            fits somebody; None where nothing is known of the population.
        held: of rows that stay elsewhere, their distinct tuples with their counts; else None.
    """

    people: NDArray[np.int64]
    prosecutor: NDArray[np.float64]
    special_score: NDArray[np.float64]
    special_size: NDArray[np.int64]
    journalist: NDArray[np.float64] | None = None
    individual: NDArray[np.float64] | None = None
    household: NDArray[np.float64] | None = None
    represented: NDArray[np.float64] | None = None
    weighted: NDArray[np.float64] | None = None
    special_dis: NDArray[np.float64] | None = None
    held: Tuples | None = None

    def __len__(self) -> int:
        return len(self.people) if self.held is None else self.held.rows

    def __repr__(self) -> str:
        return f"RowRisks({len(self):,} rows; {', '.join(self.given)})"

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the figures that there are."""
        names = (f.name for f in fields(self) if f.name != "held")
        return tuple(name for name in names if getattr(self, name) is not None)

    @property
    def _rows(self) -> NDArray[np.int64]:
        """How many rows each figure is about."""
        return ones(len(self.people)) if self.held is None else self.held.counts

    def above(self, limit: float, risk: str = "prosecutor") -> NDArray[np.bool_]:
        """Which rows have a risk above ``limit``, as a mask over the rows of the table.

        Of rows that stay elsewhere, over the distinct tuples of ``to_arrow``.
        """
        if risk not in self.given:
            raise ParameterError("risk", risk, f"one of {', '.join(self.given)}")
        return np.asarray(getattr(self, risk) > limit)

    def summary(self, limit: float) -> list[dict[str, Any]]:
        """Per kind of risk, the highest, the mean, and how many rows lie above ``limit``."""
        return [
            {
                "risk": name,
                "highest": float(getattr(self, name).max()),
                "mean": _mean(getattr(self, name), self._rows),
                "above": rows_in(pick_counts(self._rows, self.above(limit, name))),
            }
            for name in self.given
            if name in _CHANCES
        ]

    def to_arrow(self) -> pa.Table:
        """The figures beside the place of each row, counted from 0.

        Of rows that stay elsewhere, beside each distinct tuple and the number of its ``rows``.

        Raises:
            SchemaError: a column of these has the name of a figure.
        """
        columns = {name: getattr(self, name) for name in self.given}
        if self.held is None:
            return pa.table({"row": np.arange(len(self)), **columns})
        columns = {"rows": self.held.counts, **columns}
        known = {name: self.held.table.arrow[name] for name in self.held.table.arrow.column_names}
        _refuse_names(name for name in known if name in columns)
        return pa.table({**known, **columns})

    def to_pandas(self) -> Any:
        """The figures as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the figures to a private file; its suffix says the kind, such as ``.parquet``.

        Of rows that stay elsewhere, the engine writes every row with all its columns, and its
        figures behind them, in no order of its own.
        """
        if self.held is None:
            write_table(self.to_arrow(), path, private_file)
            return
        figures = {f"risk_{name}": pa.array(getattr(self, name)) for name in self.given}
        with join_figures(self.held, figures) as rows:
            write_batches(rows, path, private_file)


def row_risks(
    table: Table | str | PathLike[str],
    *,
    population: Table | None = None,
    fraction: float | None = None,
    weights: str | None = None,
    household: str | None = None,
    size: int = 3,
) -> RowRisks:
    """Measure every row of ``table`` by its quasi-identifiers.

    Args:
        table: rows with a schema that names the quasi-identifiers, wherever they are, or the name
            of a file with a schema beside it.
        population: the table of everybody, if there is one.
        fraction: the share of the population that the table holds, if it is known.
        weights: a column that says how many people of the population each row stands for; unless a
            population or fraction is given, that of the schema.
        household: a column that says which rows belong together, that of the schema by itself.
        size: the largest column sets that are looked at for special uniques; smaller ones where
            there are very many columns.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41]}, schema={"age": "quasi"})
        >>> hm.row_risks(people).prosecutor
        array([0.5, 0.5, 1. ])
    """
    rows = as_table(table).name_people()
    quasi = rows.schema.quasi
    rows.schema.require_quasi()
    if rows.stored is not None:  # figures are written beside all columns
        written = {f"risk_{one.name}" for one in fields(RowRisks)}
        _refuse_names(name for name in rows.column_names if name.casefold() in written)
    sampling = Sampling.of(population, fraction)
    require_whole("size", size, 1)
    household = household or rows.schema.household
    if household is not None and household not in rows.column_names:
        raise SchemaError(f"There is no column {household!r} that could name households.")
    held = _count(rows, household, sampling.weight_column(rows, weights))
    classes, of_row = sampling.classes_of(held)
    people, prosecutor = classes.people[of_row], prosecutor_risks(classes.people, of_row)
    special = special_uniques(held, quasi, size=affordable_size(len(quasi), size))
    found: dict[str, NDArray[np.float64]] = {}
    if classes.population is not None:
        found["journalist"] = 1.0 / np.maximum(classes.population[of_row], people)
    if held.weights is not None:
        found |= _by_weights(held.weights, classes, of_row)
    elif fraction is not None:
        found["individual"] = individual_risks(people, fraction)
    share = sampling.known_fraction(classes, held.weights)
    if share is not None:
        scores = by_class(classes, special.scores, of_row)
        found["special_dis"] = dis_scores(classes, scores, len(quasi), share)[of_row]
    if household is not None:
        chances = found.get("journalist", found.get("individual", prosecutor))
        homes = held.table.encode(household).codes
        found["household"] = household_risks(chances, homes, held.counts)
    stays = None if held.source is None else held
    return RowRisks(people, prosecutor, special.scores, special.smallest, **found, held=stays)


def _count(table: Table, household: str | None, weights: str | None) -> Tuples:
    """The rows, or the distinct tuples of the columns that figures are made of."""
    schema = table.schema
    if table.stored is None:
        return count_tuples(table, lambda _: (), weights=weights)
    if is_typed(table) and one_row_each(table):  # else two texts may name one person
        schema = replace(schema, person=None)
    more = [name for name in (schema.person, household, *schema.ties) if name is not None]
    return count_tuples(table.with_schema(schema), lambda s: [*s.quasi, *more], weights=weights)


def _refuse_names(names: Iterable[str]) -> None:
    """Refuse columns that figures would replace."""
    if faults := [f"Column {n!r} has the name of a figure: rename it, or read the rows into memory."
                  for n in names]:  # fmt: skip
        raise SchemaError(*faults)


def _mean(figures: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    return float(figures.mean() if all_ones(rows) else np.average(figures, weights=rows))


def _by_weights(
    weighed: Weights, classes: Classes, of_row: NDArray[np.int32]
) -> dict[str, NDArray[np.float64]]:
    """What the weights say of each row."""
    represented = weighed.by_class(classes, of_row)
    individual, weighted = class_chances(np.maximum(classes.people, 1), represented)
    figures = {"individual": individual, "represented": represented, "weighted": weighted}
    return {name: figure[of_row] for name, figure in figures.items()}
