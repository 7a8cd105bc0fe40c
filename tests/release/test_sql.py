from __future__ import annotations

import datetime
import decimal
import random

import numpy as np
import pyarrow as pa
import pytest

from halfmask.errors import InputError, ParameterError
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.population import AverageRisk
from halfmask.release import Candidate, Recoding, seal
from halfmask.table import hierarchies
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table

duckdb = pytest.importorskip("duckdb")

AWKWARD = ["it's", 'say "x"', "back\\slash", "", None, "ünï", "a;b", "line\nbreak", "'; DROP --"]


def run(sql, name, rows):
    connection = duckdb.connect()
    connection.register(name, rows)
    return connection.sql(sql).to_arrow_table()


def test_the_statement_publishes_what_the_release_publishes(lab):
    table = lab.people()
    release = seal(lab.candidate(table))
    out = run(release.recoding.to_sql(table, name="people"), "people", table.arrow)
    assert out.column_names == release.to_arrow().column_names
    assert lab.row_set(out) == lab.row_set(release.to_arrow())


@pytest.mark.parametrize("seed", range(6))
def test_awkward_values_and_local_steps_come_out_the_same(lab, seed):
    pick = random.Random(seed)
    rows = pa.table(
        {
            "q'1": [pick.choice(AWKWARD) for _ in range(80)],
            'q"2': pa.array([pick.choice([1, 2, 3, 40, None]) for _ in range(80)]),
            "born": [
                pick.choice([datetime.date(1990, 1, 2), datetime.date(1991, 5, 6), None])
                for _ in range(80)
            ],
            "s": [pick.choice(AWKWARD) for _ in range(80)],
        }
    )
    schema = Schema(
        {
            "q'1": Column("quasi"),
            'q"2': Column("quasi", hierarchy=hierarchies.Intervals([10, 50])),
            "born": Column("quasi", hierarchy=hierarchies.Dates(["month", "year"])),
            "s": Column("sensitive"),
        }
    )
    table = Table(rows, schema)
    levels = [
        {"q'1": 0, 'q"2': 1, "born": 1},
        {"q'1": 1, 'q"2': 0, "born": 2},
        {"q'1": 1, 'q"2': 4, "born": 4},
    ]
    recoding = Recoding.of(table, levels)
    step = np.full(80, -1, dtype=np.int32)
    for index in range(3):  # classes of at least three rows, step by step; the rest is suppressed
        open_ = np.flatnonzero(step < 0)
        trial = step.copy()
        trial[open_] = index
        only = np.where(step < 0, trial, np.int32(-1))
        columns = [c.to_pylist() for c in recoding.published(table, only).columns]
        labels = list(zip(*columns, strict=True))
        many = {label for label in labels if labels.count(label) >= 3}
        step[open_] = [index if label in many else -1 for label in labels]
        if index == 1:
            break
    release = seal(Candidate(table, [AverageRisk(1)], recoding, step))
    out = run(release.recoding.to_sql(table, name="t"), "t", rows)
    assert lab.row_set(out) == lab.row_set(release.to_arrow())
    assert release.suppressed > 0


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, True, False, False, None, None]),
        pa.array([1.5, 1.5, float("nan"), float("nan"), float("inf"), float("inf")]),
        pa.array([0.1, 0.1, 1e300, 1e300, None, None], type=pa.float64()),
        pa.array([0.1, 0.1, 7.0, 7.0, None, None], type=pa.float32()),
        pa.array([decimal.Decimal("1.10")] * 4 + [None] * 2),
        pa.array([datetime.datetime(2020, 1, 2, 3, 4, 5)] * 4 + [None] * 2),
        pa.array([None] * 6, type=pa.string()),
    ],
    ids=["boolean", "nan", "double", "float", "decimal", "timestamp", "all missing"],
)
def test_every_type_has_its_literal(lab, values):
    rows = pa.table({"a": values, "b": ["x"] * 6})
    table = Table(rows, Schema({"a": Column("quasi"), "b": Column("quasi")}))
    step = np.array([0, 0, 0, 0, -1, -1], dtype=np.int32)
    if values.null_count == 6:
        step[:] = 0
    for level in (0, 1):
        recoding = Recoding.of(table, [{"a": level, "b": 0}])
        chosen = step if level == 0 else np.zeros(6, dtype=np.int32)
        release = seal(Candidate(table, [KAnonymity(2)], recoding, chosen))
        out = run(release.recoding.to_sql(table, name="t"), "t", rows)
        assert repr(lab.row_set(out)) == repr(lab.row_set(release.to_arrow()))


def test_values_that_came_later_do_not_come_out(lab):
    table = lab.people()
    sql = seal(lab.candidate(table)).recoding.to_sql(table, name="people")
    new = pa.concat_tables([table.arrow, table.arrow.slice(0, 1)])
    column = pa.array([31, 38, 52, 57, 91, 63])
    assert run(sql, "people", new.set_column(1, "age", column)).num_rows == 4


def test_a_table_without_any_published_class_gives_no_row(lab):
    table = lab.people()
    other = Table(table.arrow.set_column(1, "age", pa.array([1, 2, 3, 4, 5])), table.schema)
    sql = seal(lab.candidate(table)).recoding.to_sql(other, name="people")
    assert run(sql, "people", other.arrow).num_rows == 0


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_every_dialect_parses_and_keeps_its_texts(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    rows = pa.table({"q`'\"": AWKWARD * 2, "n": [1.5] * 18})
    table = Table(rows, Schema({"q`'\"": Column("quasi"), "n": Column("quasi")}))
    recoding = Recoding.of(table, [{"q`'\"": 0, "n": 1}, {"q`'\"": 1, "n": 1}])
    sql = recoding.to_sql(table, name="my.people", dialect=dialect)
    tree = sqlglot.parse_one(sql, dialect=dialect)
    texts = {literal.this for literal in tree.find_all(sqlglot.exp.Literal) if literal.is_string}
    assert {text for text in AWKWARD if text} <= texts
    assert [column.alias for column in tree.selects] == ["q`'\"", "n"]


def test_unknown_dialects_and_types_are_refused(lab):
    table = lab.people()
    recoding = seal(lab.candidate(table)).recoding
    with pytest.raises(ParameterError, match="duckdb, postgres, spark"):
        recoding.to_sql(table, name="people", dialect="cobol")
    blob = Table(pa.table({"a": [b"x", b"x"]}), Schema({"a": Column("quasi")}))
    with pytest.raises(InputError, match="'a'"):
        Recoding.of(blob, [{"a": 0}]).to_sql(blob, name="t")
