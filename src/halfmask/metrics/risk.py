"""Re-identification risk of a table as it stands: who stands out, through which columns.

Definition: a person in a class of n people is found with probability 1/n; the prosecutor's risk is
the highest over all people, the marketer's the mean, which is classes / people.
Source: El Emam, "Guide to the de-identification of personal health information", 2013.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError, SchemaError
from halfmask.table.classes import classes_of
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.table import Table

_BINS = (1, 2, 3, 5, 10, 20, 50, 100, 1000)


@dataclass(frozen=True, slots=True)
class ColumnRisk:
    """How much one quasi-identifier tells by itself."""

    name: str
    distinct: int
    missing: int
    unique_rows: int
    unique_share: float


@dataclass(frozen=True, slots=True)
class Assessment:
    """The risk in one table.

    Attributes:
        rows: how many rows the table has.
        people: how many people stand in its classes (a person in two classes counts twice).
        classes: how many classes its quasi-identifiers form.
        smallest: how many people the smallest class holds.
        unique_rows: rows whose class holds nobody else.
        unique_share: the same as a share of all rows.
        highest_risk: the prosecutor's risk, 1 / smallest.
        mean_risk: the marketer's risk, the expected share of people found by guessing.
        sizes: (people in the class as text, classes, rows) from small to large.
        columns: each quasi-identifier by itself.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the assessment as plain values."""
        out = asdict(self)
        out["sizes"] = [
            {"people": label, "classes": classes, "rows": rows}
            for label, classes, rows in self.sizes
        ]
        out["columns"] = [asdict(column) for column in self.columns]
        return out


def assess(table: Table) -> Assessment:
    """Measure who stands out in ``table`` by its quasi-identifiers.

    Example:
        >>> import halfmask as hm
        >>> import pyarrow as pa
        >>> people = hm.read(pa.table({"age": [30, 30, 41]}), schema={"age": "quasi"})
        >>> hm.assess(people).unique_rows
        1
    """
    quasi = require_table(table).schema.quasi
    if not quasi:
        raise SchemaError(
            "No column is a quasi-identifier: give columns the role quasi in the schema or --quasi."
        )
    if not len(table):
        raise InputError("The table has no rows: there is nothing to assess.")
    classes = classes_of(table, quasi)
    rows, people = classes.rows, classes.people
    alone = int(rows[people == 1].sum())
    smallest = int(people.min())
    return Assessment(
        rows=len(table),
        people=int(people.sum()),
        classes=len(classes),
        smallest=smallest,
        unique_rows=alone,
        unique_share=alone / len(table),
        highest_risk=1 / smallest,
        mean_risk=len(classes) / int(people.sum()),
        sizes=_sizes(people, rows),
        columns=tuple(_column(table, name) for name in quasi),
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


def _column(table: Table, name: str) -> ColumnRisk:
    encoded = table.encode(name)
    alone = int(np.count_nonzero(np.bincount(encoded.codes) == 1))
    missing = int(table.arrow[name].null_count)
    distinct = len(encoded.values) - (1 if missing else 0)
    return ColumnRisk(name, distinct, missing, alone, alone / len(table))
