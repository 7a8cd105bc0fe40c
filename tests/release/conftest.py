"""A table small enough to check by hand, with canaries in what must never leave.

Loss of the candidate below: age has 5 leaves, four rows cover 2 of them and one is suppressed, so
L = (4 * 2 + 5 - 5) / (5 * 4) = 0.4; zip has 3 leaves, L = (4 * 1 + 3 - 5) / (5 * 2) = 0.2; the
table loses (1.4 * 1.2)^(1/2) - 1.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from halfmask.models.k_anonymity import KAnonymity
from halfmask.release import Candidate, Recoding
from halfmask.table import hierarchies
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table

CANARY = "canary-7fb1"

# Two people of 31-38 in 3551x, two of 52-57 in 3552x, and one of 91 who stands alone.
ROWS = {
    "name": [f"{CANARY}-a", f"{CANARY}-b", f"{CANARY}-c", f"{CANARY}-d", f"{CANARY}-e"],
    "age": [31, 38, 52, 57, 91],
    "zip": ["35510", "35510", "35521", "35521", f"{CANARY[:5]}"],
    "disease": ["flu", "o'brien", None, "flu", f"{CANARY}-disease"],
    "weight": [61.5, 70.0, 82.25, None, 55.0],
}


def schema(**more: object) -> Schema:
    return Schema(
        {
            "name": Column("identifier"),
            "age": Column("quasi", hierarchy=hierarchies.Intervals([10, 50])),
            "zip": Column("quasi", hierarchy=hierarchies.Mask()),
            "disease": Column("sensitive"),
            "weight": Column("other"),
        },
        **more,  # type: ignore[arg-type]
    )


def people() -> Table:
    rows = pa.table(ROWS)
    zips = rows["zip"].combine_chunks().dictionary_encode()
    return Table(rows.set_column(2, "zip", zips), schema())


def steps(*index: int) -> np.ndarray:
    return np.array(index, dtype=np.int32)


def candidate(table: Table | None = None, **changes: object) -> Candidate:
    """Ages to tens, zip as it is, the last row suppressed: two classes of two."""
    table = table or people()
    given: dict[str, object] = {
        "table": table,
        "models": [KAnonymity(2)],
        "recoding": Recoding.of(table, [{"age": 1, "zip": 0}]),
        "step": steps(0, 0, 0, 0, -1),
        "parameters": {"suppression": 0.2},
    }
    return Candidate(**given | changes)  # type: ignore[arg-type]


def row_set(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows in an order that two tables can be compared by."""
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=repr)


@pytest.fixture
def lab() -> SimpleNamespace:
    return SimpleNamespace(
        CANARY=CANARY, ROWS=ROWS, schema=schema, people=people, steps=steps, candidate=candidate,
        row_set=row_set,
    )  # fmt: skip
