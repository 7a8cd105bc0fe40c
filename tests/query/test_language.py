"""What the language takes, what it refuses, and where it points."""

# ruff: noqa: E501
from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import PrivacyError, QueryError, SchemaError, UnsupportedQueryError
from halfmask.query.parse import parse

PEOPLE = hm.read(
    pa.table(
        {
            "id": list(range(30)),
            "name": [f"n{i}" for i in range(30)],
            "city": ["x", "y", "z"] * 10,
            "Native-Country": ["fr", "de"] * 15,
            "age": list(range(20, 50)),
            "salary": [1000 + i for i in range(30)],
            "bonus": [i % 4 for i in range(30)],
        }
    ),
    {
        "table": {"person": "id"},
        "columns": {
            "id": "identifier",
            "name": "identifier",
            "age": "quasi",
            "salary": "sensitive",
            "bonus": "sensitive",
            "Native-Country": "quasi",
            "city": {"role": "quasi", "hierarchy": {"tree": {"A": ["x", "y"], "B": ["z"]}}},
        },
    },
)
VISITS = hm.read(
    pa.table({"id": [0, 0, 1, 2], "cost": [1, 2, 3, 4], "friend": [1, 1, 2, 3]}),
    {
        "table": {"person": "id"},
        "columns": {"id": "identifier", "cost": "sensitive", "friend": "quasi"},
    },
)
WARDS = pa.table({"city": ["x", "y", "y"], "ward": ["a", "b", "c"]})
TABLES = {"people": PEOPLE, "visits": VISITS, "wards": WARDS}


def place(error: QueryError) -> tuple[int | None, int | None]:
    return error.line, error.column


CHAINS = {
    "a guarantee that weakens in k": ("GUARANTEE k = 5\nTHEN city -> up GUARANTEE k = 4", 2, 17),
    "a guarantee that weakens in l": (
        "GUARANTEE k = 5, l = 3 OF salary\nTHEN city -> up GUARANTEE k = 9, l = 2",
        2,
        17,
    ),
    "intervals that do not nest": (
        "GUARANTEE k = 5\nTHEN age -> 20 GUARANTEE k = 5\nTHEN age -> 30 GUARANTEE k = 6",
        3,
        6,
    ),
    "past the top": (
        "GUARANTEE k = 1\nTHEN city -> up GUARANTEE k = 2 "
        "THEN city -> up GUARANTEE k = 2\nTHEN city -> up GUARANTEE k = 3",
        3,
        6,
    ),
    "after it was taken away": (
        "GUARANTEE k = 1\nTHEN city -> del GUARANTEE k = 2\nTHEN city -> up GUARANTEE k = 3",
        3,
        6,
    ),
    "a column that is not grouped": ("GUARANTEE k = 1\nTHEN salary -> 5 GUARANTEE k = 2", 2, 6),
    "intervals of words": ("GUARANTEE k = 1\nTHEN city -> 5 GUARANTEE k = 2", 2, 6),
    "no hierarchy": ("GUARANTEE k = 1\nTHEN age -> up GUARANTEE k = 2", 2, 6),
    "an unknown operation": ("GUARANTEE k = 1\nTHEN age -> much GUARANTEE k = 2", 2, 13),
    "no number": ("GUARANTEE k = many", 1, 15),
    "k twice": ("GUARANTEE k = 2, k = 3", 1, 18),
    "an unknown semantics": ("GUARANTEE k = 2 SEMANTICS best", 1, 27),
    "l without a column": ("GUARANTEE k = 2, l = 2", 1, 1),
    "something behind it": ("GUARANTEE k = 2 please", 1, 17),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_faulty_clause_is_pointed_at(name: str) -> None:
    clause, line, column = CHAINS[name]
    with pytest.raises(QueryError) as caught:
        hm.query(PEOPLE, f"SELECT city, age, COUNT(*) FROM people\nGROUP BY city, age\n{clause}")
    assert place(caught.value) == (line + 2, column)
    row, caret = caught.value.highlight.split("\n")
    assert row == clause.split("\n")[line - 1]
    assert caret.index("^") == column - 1


REFUSED = {
    "UNION": "SELECT city, COUNT(*) FROM people GROUP BY city UNION SELECT city, 1 FROM people",
    "window functions": "SELECT city, SUM(salary) OVER () FROM people GROUP BY city",
    "subqueries": "SELECT city, COUNT(*) FROM people WHERE age > (SELECT 1) GROUP BY city",
    "a grouping inside": "SELECT s, COUNT(*) FROM (SELECT SUM(salary) AS s FROM people GROUP BY city) p GROUP BY s",
    "a star with exceptions": "SELECT city, COUNT(*) FROM (SELECT * EXCLUDE (age) FROM people) p GROUP BY city",
    "rows cut inside": "SELECT city, COUNT(*) FROM (SELECT * FROM people LIMIT 3) p GROUP BY city",
    "rows made one inside": "SELECT city, COUNT(*) FROM (SELECT DISTINCT city FROM people) p GROUP BY city",
    "a window inside": "SELECT r, COUNT(*) FROM (SELECT ROW_NUMBER() OVER () AS r FROM people) p GROUP BY r",
    "a sum inside": "SELECT COUNT(*) FROM (SELECT SUM(salary) AS s FROM people) p",
    "an identifier under another name": "SELECT n, COUNT(*) FROM (SELECT name AS n FROM people) p GROUP BY n",
    "an identifier inside WHERE": "SELECT COUNT(*) FROM (SELECT * FROM people WHERE name = 'n1') p",
    "a constant as a position": "SELECT city, COUNT(*) FROM (SELECT city, 1 AS one FROM people) p GROUP BY one, city",
    "a column that is not selected inside": "SELECT age, COUNT(*) FROM (SELECT city FROM people) p GROUP BY age",
    "WITH that is not used": "WITH p AS (SELECT 1) SELECT city, COUNT(*) FROM people GROUP BY city",
    "WITH RECURSIVE": "WITH RECURSIVE p AS (SELECT city FROM people) SELECT city, COUNT(*) FROM p GROUP BY city",
    "people looked up": "SELECT city, COUNT(*) FROM people WHERE salary IN (SELECT salary FROM people) GROUP BY city",
    "people looked up as one value": "SELECT city, COUNT(*) FROM people WHERE salary > (SELECT AVG(salary) FROM people) GROUP BY city",
    "EXISTS": "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits)",
    "a joined query": "SELECT COUNT(*) FROM people p JOIN (SELECT id FROM visits) v ON p.id = v.id",
    "a joined WITH": "WITH v AS (SELECT id FROM visits) SELECT COUNT(*) FROM people p JOIN v ON p.id = v.id",
    "QUALIFY": "SELECT city, COUNT(*) FROM people GROUP BY city QUALIFY COUNT(*) > 1",
    "DISTINCT": "SELECT DISTINCT city FROM people",
    "star": "SELECT * FROM people",
    "rollup": "SELECT city, COUNT(*) FROM people GROUP BY ROLLUP (city)",
    "neither grouped nor aggregated": "SELECT city, age FROM people GROUP BY city",
    "an identifier in the output": "SELECT name, COUNT(*) FROM people GROUP BY name",
    "an identifier in a condition": "SELECT COUNT(*) FROM people WHERE name = 'n1'",
    "an identifier in an aggregate": "SELECT city, MIN(name) FROM people GROUP BY city",
    "the person in an aggregate": "SELECT city, MAX(id) FROM people GROUP BY city",
    "picking people out inside an aggregate": "SELECT city, SUM(CASE WHEN age = 31 THEN salary ELSE 0 END) FROM people GROUP BY city",
    "picking them out with FILTER": "SELECT city, SUM(salary) FILTER (WHERE age = 31) FROM people GROUP BY city",
    "an engine's own function": "SELECT getenv('HOME'), COUNT(*) FROM people GROUP BY city",
    "reading a file": "SELECT COUNT(*) FROM read_csv('x.csv')",
    "another schema": "SELECT COUNT(*) FROM information_schema.tables",
    "chance": "SELECT city, COUNT(*) FROM people WHERE random() < 0.5 GROUP BY city",
    "a list of values": "SELECT city, LIST(salary) FROM people GROUP BY city",
    "sums of distinct values": "SELECT city, SUM(DISTINCT salary) FROM people GROUP BY city",
    "nested aggregates": "SELECT city, SUM(COUNT(*)) FROM people GROUP BY city",
    "an aggregate in WHERE": "SELECT city FROM people WHERE COUNT(*) > 3 GROUP BY city",
    "computing with a generalized column": "SELECT UPPER(city), COUNT(*) FROM people GROUP BY city, age",
    "two statements": "SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people",
    "a cross join": "SELECT COUNT(*) FROM people, visits",
    "a join on something else than the person": "SELECT COUNT(*) FROM people p JOIN visits v ON p.id = v.friend",
    "a join that is not equal": "SELECT COUNT(*) FROM people p JOIN visits v ON p.id > v.id",
    "a full join": "SELECT COUNT(*) FROM people p FULL JOIN visits v ON p.id = v.id",
    "a self join": "SELECT COUNT(*) FROM people p JOIN people q ON p.id = q.id",
    "a join that multiplies rows": "SELECT COUNT(*) FROM people p JOIN visits v ON p.id = v.id",
    "a lookup that multiplies rows": "SELECT w.ward, COUNT(*) FROM people p JOIN wards w ON p.city = w.city GROUP BY w.ward",
    "a write": "DELETE FROM people",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_pointed_at(name: str) -> None:
    tail = "THEN city -> up GUARANTEE k = 3" if "generalized" in name else ""
    with pytest.raises(UnsupportedQueryError) as caught:
        hm.query(TABLES, f"{REFUSED[name]} GUARANTEE k = 2 {tail}")
    assert caught.value.line == 1
    assert caught.value.highlight


@pytest.mark.parametrize(
    ("text", "reason", "shown"),
    [
        (
            "SELECT city, AVG(s) FROM (SELECT id, city, SUM(salary) AS s FROM people "
            "GROUP BY id, city) p GROUP BY city",
            "one row per person",
            "id, city",
        ),
        (
            "WITH v AS (SELECT id, SUM(cost) AS s FROM visits GROUP BY id) "
            "SELECT p.city, AVG(v.s) FROM people p JOIN v ON p.id = v.id GROUP BY p.city",
            "not in JOIN",
            "v ON",
        ),
        (
            "SELECT p.city, AVG(v.cost) FROM people p JOIN (SELECT id, cost FROM visits) v "
            "ON p.id = v.id GROUP BY p.city",
            "not in JOIN",
            "id, cost FROM",
        ),
        ("SELECT city, AVG(salary FROM people GROUP BY city", "never closed", "(salary"),
    ],
)
def test_a_refusal_says_what_to_do_and_where(text: str, reason: str, shown: str) -> None:
    with pytest.raises(QueryError, match=reason) as caught:
        hm.query(TABLES, f"{text} GUARANTEE k = 2")
    row, caret = caught.value.highlight.split("\n")
    assert row[caret.index("^") :].startswith(shown)


def test_a_bracket_inside_a_text_is_no_bracket() -> None:
    for text in ("(", ")", "GUARANTEE"):
        sql = f"SELECT city, COUNT(*) FROM people WHERE city <> '{text}' GROUP BY city"
        assert len(hm.query(PEOPLE, f"{sql} GUARANTEE k = 1")) > 0


def test_names_that_mean_nothing() -> None:
    for text in (
        "SELECT nope, COUNT(*) FROM people GROUP BY nope GUARANTEE k = 2",
        "SELECT COUNT(*) FROM nowhere GUARANTEE k = 2",
        "SELECT q.city, COUNT(*) FROM people GROUP BY q.city GUARANTEE k = 2",
        "SELECT COUNT(*) GUARANTEE k = 2",
    ):
        with pytest.raises(QueryError):
            hm.query(TABLES, text)


def test_an_ambiguous_name_must_be_qualified() -> None:
    with pytest.raises(QueryError, match="name the table"):
        hm.query(
            TABLES,
            "SELECT city, COUNT(*) FROM people p JOIN wards w ON p.city = w.city "
            "GROUP BY city GUARANTEE k = 2",
        )


def test_a_query_without_a_promise() -> None:
    with pytest.raises(QueryError, match="promises nothing"):
        hm.query(PEOPLE, "SELECT city, COUNT(*) FROM people GROUP BY city")


def test_a_bounded_join_is_answered_and_the_bound_holds() -> None:
    text = "SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.id GUARANTEE k = 2 "
    answer = hm.query(TABLES, text + "AT MOST 2 ROWS PER PERSON")
    assert answer.to_arrow()["n"].to_pylist() == [4]
    with pytest.raises(PrivacyError, match="more than 1 rows"):
        hm.query(TABLES, text + "AT MOST 1 ROWS PER PERSON")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT city AS c, AVG(salary) AS m FROM people GROUP BY c ORDER BY m DESC LIMIT 2",
        "SELECT city AS c, AVG(salary) AS m FROM people GROUP BY 1 ORDER BY 2 DESC LIMIT 2",
        "SELECT p.city AS c, ROUND(SUM(p.salary) / COUNT(*), 1) AS m FROM people AS p GROUP BY p.city "
        "ORDER BY AVG(p.salary) DESC LIMIT 2",
        "SELECT City AS c, avg(SALARY) AS m FROM anything GROUP BY CITY HAVING m > 1014 ORDER BY m DESC",
    ],
)
def test_the_same_question_in_many_ways(text: str) -> None:
    rows = hm.query(PEOPLE, text + " GUARANTEE k = 5, l = 3").to_arrow().to_pylist()
    assert [(r["c"], r["m"]) for r in rows] == [("z", 1015.5), ("y", 1014.5)]


def test_spaces_and_hyphens_in_names() -> None:
    text = "GB= native country; OP= COUNT(*); MD= : k=2 l=1, Native_Country->del: k=3 l=1;"
    rows = hm.query(PEOPLE, text).to_arrow().to_pylist()
    assert {tuple(r.values())[:2] for r in rows} == {("fr", 15), ("de", 15)}


FIG_4_AS_PRINTED = """GB= Age, Workclass, Education, Marital_status,
    Occupation, Race, Gender, Native_Country;
OP= AVG(fnlwgt);
MD= :
    age->20:          k=5 l=3,
    workclass->up:   k=6 l=3,
    education->5:    k=8 l=4,
    marital_status->up: k=9 l=4,
    occupation->up:  k=9 l=4,
    race->up:        k=10 l=4,
    gender->del:     k=11 l=5,
    native_country->del: k=14 l=6,
    age->40:         k=15 l=7,
    age->40:         k=17 l=8;"""


def test_figure_4_as_printed_has_no_level_0() -> None:
    statement = parse(FIG_4_AS_PRINTED)
    assert statement.chain.first == 1
    assert [(g.k, g.l) for g in statement.chain.guarantees] == [
        (5, 3),
        (6, 3),
        (8, 4),
        (9, 4),
        (9, 4),
        (10, 4),
        (11, 5),
        (14, 6),
        (15, 7),
        (17, 8),
    ]
    assert "no level 0" in statement.notes[0]


def test_a_step_that_changes_nothing_is_reported() -> None:
    text = "GB= age; OP= COUNT(*); MD= : age->10: k=2 l=1, age->10: k=3 l=1;"
    answer = hm.query(PEOPLE, text)
    assert any("changes nothing" in note for note in answer.notes)
    assert {r["level"] for r in answer.to_arrow().to_pylist()} == {1}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("GB= a;\nOP= COUNT(*);\nMD= : k=5 l=3, age->20: k=4 l=3", 3, 16),
        ("GB= a;\nOP= COUNT(*);\nMD= : k=5 l=3, age->x: k=6 l=3", 3, 21),
        ("GB= a;\nOP= COUNT(;\nMD= : k=5 l=3", 2, 10),
        ("GB= a; OP= COUNT(*); MD= : k=5 l=3 age->5: k=6 l=3", 1, 36),
    ],
)
def test_faults_in_the_papers_notation(text: str, line: int, column: int) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert place(caught.value) == (line, column)


def test_explain_reads_no_rows_and_shows_every_level() -> None:
    text = str(
        hm.explain(
            PEOPLE,
            "SELECT city, age, AVG(salary) FROM people GROUP BY city, age "
            "GUARANTEE k = 2 THEN age -> 5 GUARANTEE k = 3 "
            "THEN city -> up GUARANTEE k = 4 SEMANTICS complete",
        )
    )
    assert "Level 2: city -> up; by city 1 up, age in steps of 5; k >= 4, l >= 1" in text
    assert "at least k people with a value of" in text
    assert "GROUP BY" in text
    with pytest.raises(QueryError, match="EXPLAIN"):
        hm.query(PEOPLE, "EXPLAIN SELECT COUNT(*) FROM t GUARANTEE k = 2")


def test_policies_that_fit_nothing() -> None:
    text = "SELECT city, AVG(salary) FROM people GROUP BY city GUARANTEE k = 2"
    for policies in ({"k": "nope"}, {"kk": 3}, pa.table({"who": [1]}), "missing.toml", 7):
        with pytest.raises(SchemaError):
            hm.query(PEOPLE, text, policies)
    with pytest.raises(ValueError, match="missing"):
        hm.Policies(missing="perhaps")  # type: ignore[arg-type]
