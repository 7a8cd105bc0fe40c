from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import budget
from halfmask.dp.domain import public_domains
from halfmask.dp.views import guarded_rows
from halfmask.release.doors import synthetic
from halfmask.synthesize import dp_cocluster
from halfmask.table.schema import Schema
from halfmask.table.table import Table

DOMAINS = {
    "sex": ["f", "m"],
    "job": ["cook", "clerk", "smith", "none"],
    "age": {"low": 0, "high": 100, "bins": 20},
    "ill": ["no", "yes"],
}


def invented(rows: int = 4000, seed: int = 1) -> pa.Table:
    """People whose job follows sex and whose illness follows age; sex and age are independent."""
    random = np.random.default_rng(seed)
    sex = random.random(rows) < 0.4
    job = np.where(sex, random.integers(0, 2, rows), random.integers(1, 4, rows))
    age = random.integers(0, 100, rows)
    ill = random.random(rows) < age / 120
    return pa.table(
        {
            "sex": pa.array(np.where(sex, "f", "m")),
            "job": pa.array(np.array(DOMAINS["job"])[job]),
            "age": pa.array(age),
            "ill": pa.array(np.where(ill, "yes", "no")),
        }
    )


@pytest.fixture
def people() -> Table:
    return Table(invented(), Schema())


@pytest.fixture
def domains() -> dict[str, object]:
    return dict(DOMAINS)


def views(table: Table, domains, epsilon=1, delta=0, sampler=None, rows_per_person: int = 1):
    promise = budget(epsilon, delta)
    allowance = Accountant(promise).allow(promise, "test", rows_per_person=rows_per_person)
    known = public_domains(table.arrow.column_names, domains)
    return guarded_rows(table, known, allowance, sampler=sampler)


@pytest.fixture
def make_views():
    return views


@pytest.fixture
def few_drawn(monkeypatch) -> None:
    """The private grids of small tables are learned from fewer drawn rows."""
    monkeypatch.setattr(dp_cocluster, "DRAWN", 1 << 15)


@pytest.fixture
def unmeasured(monkeypatch) -> None:
    """What rows of groups still tell is not measured where a test looks at the rows alone."""
    nothing = {"attribution": {}, "nearness": {}, "criteria": [], "likeness": {}}
    monkeypatch.setattr(synthetic, "measure_synthetic", lambda _: dict(nothing))
