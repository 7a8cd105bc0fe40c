"""A small table with all that real ones have: missing values, dates, several rows per person."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm

COLUMNS = {
    "age": "quasi",
    "sex": {"role": "quasi", "domain": ["f", "m"]},
    "region": "quasi",
    "town": "quasi",
    "job": "quasi",
    "pay": "sensitive",
    "fee": "other",
    "ill": "sensitive",
    "day": "other",
    "lat": "other",
    "lon": "other",
    "guarded": "identifier",
}


def rows(size: int = 200, seed: int = 1) -> dict[str, object]:
    draw = np.random.default_rng(seed)
    town = draw.choice(["x1", "x2", "y1", "y2"], size).tolist()
    pay = [
        None if i % 17 == 0 else round(float(v), 2)
        for i, v in enumerate(draw.lognormal(8, 1, size))
    ]
    return {
        "id": [f"p{i // 2}" for i in range(size)],
        "age": draw.integers(18, 90, size).tolist(),
        "sex": draw.choice(["f", "m"], size).tolist(),
        "region": [one[0] for one in town],
        "town": town,
        "job": [None if i % 23 == 0 else j for i, j in enumerate(draw.choice(list("abcd"), size))],
        "pay": pay,
        "fee": pa.array([round(float(v), 2) for v in draw.uniform(1, 99, size)]).cast(
            pa.decimal128(9, 2), safe=False
        ),
        "ill": draw.choice(["flu", "cold", "aids", "hiv"], size).tolist(),
        "day": [
            None if i % 19 == 0 else dt.date(2020, 1, 1) + dt.timedelta(int(d))
            for i, d in enumerate(draw.integers(0, 300, size))
        ],
        "lat": draw.uniform(45, 50, size).tolist(),
        "lon": draw.uniform(2, 6, size).tolist(),
        "guarded": ["aids" if i % 5 == 0 else None for i in range(size)],
    }


@pytest.fixture(scope="session")
def people() -> hm.Table:
    return hm.read(pa.table(rows()), schema={"table": {"person": "id"}, "columns": COLUMNS})


@pytest.fixture(scope="session")
def singles() -> hm.Table:
    """The same, one row a person."""
    table = pa.table(rows()).drop_columns(["id"])
    return hm.read(table, schema={"columns": COLUMNS})
