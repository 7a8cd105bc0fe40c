"""One row of a file must not decide whether a private verb fails, or which types leave.

Attacker: knows all rows but one, asks for a private release of the file, and looks at whether it is
refused, and at the types of its columns. A file's columns are read as what all their cells are.
"""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import halfmask as hm

DOMAINS = {
    "age": {"low": 0, "high": 100, "bins": 5},
    "kids": [0, 1, 2],
    "weight": {"low": 0.0, "high": 200.0, "bins": 4},
    "sex": ["f", "m"],
}
PLAIN = ["34,0,70.5,f", "41,1,80.0,m", "29,2,61.25,f", "55,0,90.5,m"] * 30
ROWS = [
    "37.5,1,70.0,f",
    "unknown,1,70.0,f",
    ",,,",
    "1e400,1,-1e400,m",
    "true,true,true,true",
    "2020-01-01,2020-01-01,2020-01-01 10:00,2020-01-01",
    "99999999999999999999999,007,nan,inf",
    "34,1.5,seventy,other",
    '"3,4",0,70.0,"f ""x"""',
]
SCHEMA = {name: {"role": "quasi"} for name in DOMAINS}


def outcome(tmp_path, extra, ask):
    path = tmp_path / "people.csv"
    path.write_text("\n".join([",".join(DOMAINS), *PLAIN, *extra]) + "\n", encoding="utf-8")
    try:
        made = ask(hm.read(path, {"columns": SCHEMA}))
    except hm.HalfmaskError as error:
        return type(error).__name__, str(error)
    return made.to_arrow().schema


def private(method):
    return lambda table: hm.synthesize(table, method, epsilon=1, domains=DOMAINS)


@pytest.mark.parametrize("method", ["marginals", "histogram", "privbayes"])
def test_types_and_refusals_of_a_synthetic_table_depend_on_no_row(tmp_path, method):
    known = outcome(tmp_path, [], private(method))
    assert [str(kind) for kind in known.types] == ["int64", "int64", "double", "string"]
    for row in ROWS:
        assert outcome(tmp_path, [row], private(method)) == known, row


def test_types_and_refusals_of_a_table_of_figures_depend_on_no_row(tmp_path):
    domains = {name: DOMAINS[name] for name in ("age", "kids")}

    def ask(table):
        return hm.tabulate(table, ["age", "kids"], method="dp", epsilon=1, domains=domains)

    known = outcome(tmp_path, [], ask)
    assert not isinstance(known, tuple)
    for row in ROWS:
        assert outcome(tmp_path, [row], ask) == known, row


def test_a_row_outside_moves_by_the_public_rule(tmp_path):
    made = outcome(tmp_path, ["unknown,7,1e9,x"] * 3, private("histogram"))
    assert not isinstance(made, tuple)


QUESTIONS = [
    "SELECT kids, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY kids",
    "SELECT sex, SUM(weight) AS w, MEDIAN(age) AS a FROM people GROUP BY sex",
    "SELECT age, COUNT(kids) AS n FROM people GROUP BY age",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age > 30 AND kids = 1 GROUP BY sex",
    "SELECT SUM(LEAST(GREATEST(age + kids, 0), 50)) AS s FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE sex = 'f' AND weight * 2 < 150",
]


@pytest.mark.parametrize(
    ("question", "engine"),
    [*((question, "duckdb") for question in QUESTIONS), (QUESTIONS[0], "reference")],
)
def test_types_and_refusals_of_a_noisy_answer_depend_on_no_row(tmp_path, question, engine):
    def ask(table):
        return hm.query(table, question, epsilon=1, domains=DOMAINS, engine=engine)

    known = outcome(tmp_path, [], ask)
    assert not isinstance(known, tuple), known
    if question == QUESTIONS[0]:
        assert str(known.field("kids").type) == "int64"
    for row in ROWS:
        assert outcome(tmp_path, [row], ask) == known, row


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_plan_of_a_noisy_answer_depends_on_no_row(tmp_path, question):
    """EXPLAIN tells no type of a column either."""
    told = set()
    for extra in ([], [ROWS[0]], [ROWS[1]], [ROWS[5]]):
        path = tmp_path / "people.csv"
        path.write_text("\n".join([",".join(DOMAINS), *PLAIN, *extra]) + "\n", encoding="utf-8")
        plan = hm.explain(hm.read(path, {"columns": SCHEMA}), question, epsilon=1, domains=DOMAINS)
        told.add(str(plan))
    assert len(told) == 1


def test_figures_are_those_of_the_values(tmp_path):
    """Numbers among words are still numbers: 120 rows and one that is no number."""
    path = tmp_path / "people.csv"
    lines = [",".join(DOMAINS), *PLAIN, "unknown,1,70.0,f"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = hm.read(path, {"columns": SCHEMA})
    sql = "SELECT COUNT(*) AS n, COUNT(age) AS c, SUM(age) AS s FROM people WHERE kids < 2"
    found = hm.query(table, sql, epsilon=1e6, domains=DOMAINS, insist=True).to_arrow().to_pylist()
    assert (found[0]["n"], found[0]["c"]) == (91, 90)
    assert found[0]["s"] == pytest.approx(30 * (34 + 41 + 55), abs=0.01)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_one_large_number_changes_no_type_of_other_rows(engine: str) -> None:
    seen = []
    for salary in (2_000, 2**63 - 1):
        rows = {"city": ["a"] * 3 + ["b"] * 3, "salary": [salary, 5, 6, 1, 2, 3]}
        sql = "SELECT city, SUM(salary) AS n FROM people GROUP BY city GUARANTEE k = 3"
        answer = hm.query(pa.table(rows), sql, engine=engine).to_arrow()
        seen.append((answer.schema, answer.filter(pc.equal(answer["city"], "b")).to_pylist()))
    assert seen[0] == seen[1]
    assert seen[0][1][0]["n"] == 6


@pytest.mark.parametrize("figure", ["MAX({})", "MAX(CAST({} AS TEXT))", "MAX(COALESCE({}, 'a'))"])
def test_listed_texts_are_ordered_as_texts(tmp_path, figure):
    """Of an ENUM DuckDB would say which value is listed last, and give back what has no order."""
    path = str(tmp_path / "people.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TYPE grade AS ENUM ('c', 'b', 'a')")
        connection.execute("CREATE TABLE people AS SELECT i AS id, 'abc'[i % 3 + 1]::grade AS g "
                           "FROM range(30) t(i)")  # fmt: skip
    ask = f"SELECT {figure.format('g')} AS x FROM people GUARANTEE k = 3"
    schema = {"people": {"table": {"person": "id"}, "columns": {"g": "sensitive"}}}
    assert hm.query(path, ask, schema=schema).to_arrow()["x"].to_pylist() == ["c"]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_one_decimal_of_many_digits_fails_no_question(engine: str) -> None:
    """It makes Arrow's type of the whole column one that DuckDB does not read."""
    schema = {"columns": dict.fromkeys(("age", "sex"), "quasi")}
    domains = {"age": {"low": 0, "high": 100, "bins": 5}, "sex": ["f", "m"]}
    for figure in ("SUM(age)", "COUNT(*)"):  # of a column that is asked for, and one that is not
        sql, ends = f"SELECT sex, {figure} AS s FROM people GROUP BY sex", []
        for last in ("40", "1e50"):
            ages = [Decimal(age) for age in ("20", "30", last)]
            table = hm.read(pa.table({"age": pa.array(ages), "sex": ["f", "m", "f"]}), schema)
            made = hm.query({"people": table}, sql, epsilon=1, domains=domains, engine=engine)
            shown = made.to_arrow()
            ends.append((shown.schema.remove_metadata(), shown["sex"].to_pylist()))
        assert ends[0] == ends[1]


@pytest.mark.parametrize("kind", ["pandas", "mapping"])
def test_the_digits_of_one_decimal_tell_nothing_where_no_type_is_declared(kind):
    """Attacker: reads the types of an answer and of a release; somebody else's number is long."""

    def types(longest):
        values = {"pay": [Decimal("1.10"), Decimal("2.50")] * 10 + [Decimal(longest)]}
        table = hm.read(pd.DataFrame(values) if kind == "pandas" else values, {"pay": "other"})
        answer = hm.query(table, "SELECT SUM(pay) AS s, MAX(pay) AS m FROM people GUARANTEE k = 3")
        return table.arrow.schema, answer.to_arrow().schema

    assert types("7.00") == types("7.001") == types("7." + "1" * 20) == types("9" * 30)
