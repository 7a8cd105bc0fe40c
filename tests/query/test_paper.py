"""The worked examples of the thesis: Table 4.1, Figures 4.4 to 4.6, and the query on Adult."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from adult import TREES, adult_rows

import halfmask as hm
from halfmask.query.groups import collect
from halfmask.query.run import Session
from halfmask.query.semantics import choose_levels, publish_groups
from halfmask.table.hierarchies import Tree

if TYPE_CHECKING:
    from pathlib import Path

FIG_4_5 = """GB= Age, Workclass, Education, Marital_status,
    Occupation, Race, Gender, Native_Country;
OP= AVG(fnlwgt);
MD= :                               k=5 l=3,
    age->20:                          k=6 l=3,
    workclass->up:                     k=8 l=4,
    education->5:                      k=9 l=4,
    marital_status->up:                k=9 l=4,
    occupation->up:                   k=10 l=4,
    race->up:                          k=11 l=5,
    gender->del:                       k=14 l=6,
    native country->del:k=15 l=7,
    age->40:                           k=17 l=8;"""

TABLE_4_1 = """SELECT city, street, AVG(salary) FROM people GROUP BY city, street
GUARANTEE k = 5, l = 3 THEN street -> del GUARANTEE k = 10, l = 3 SEMANTICS """


@pytest.fixture
def table_4_1() -> hm.Table:
    rows = []
    for city, street, mean, people, distinct, k in (
        ("Le Chesnay", "Dom. Voluceau", 1500, 6, 4, 5),
        ("Le Chesnay", "elsewhere", 1700, 9, 6, 10),
        ("Bourges", "Bv. Lahitolle", 1600, 3, 3, 5),
        ("Bourges", "elsewhere", 1400, 11, 7, 10),
    ):
        values = {
            4: [1490, 1490, 1500, 1500, 1505, 1515],
            6: [1600, 1650, 1680, 1700, 1700, 1700, 1700, 1770, 1800],
            3: [1500, 1600, 1700],
            7: [1300, 1350, 1380, 1400, 1400, 1400, 1400, 1400, 1420, 1450, 1500],
        }[distinct]
        assert (sum(values), len(values), len(set(values))) == (mean * people, people, distinct)
        rows += [(city, street, v, k, 3) for v in values]
    names = ("city", "street", "salary", "k_i", "l_i")
    columns = {n: [r[i] for r in rows] for i, n in enumerate(names)}
    schema = {
        "policy": {"k": "k_i", "l": "l_i"},
        "columns": {"city": "quasi", "street": "quasi", "salary": "sensitive"},
    }
    return hm.read(pa.table(columns), schema)


def shown(answer: object) -> set[tuple[object, ...]]:
    rows = answer.to_arrow().to_pylist()  # type: ignore[attr-defined]
    return {(r["city"], r["street"], round(r["AVG(salary)"], 2), r["level"]) for r in rows}


def test_table_4_1_selective(table_4_1: hm.Table) -> None:
    answer = hm.query(table_4_1, TABLE_4_1 + "selective", recheck="rows")
    assert shown(answer) == {
        ("Le Chesnay", "Dom. Voluceau", 1500.0, 0),
        ("Bourges", "*", 1442.86, 1),
    }
    assert (answer.people, answer.depth) == (20, 6)


@pytest.mark.parametrize("semantics", ["complete", "complete-greedy"])
def test_table_4_1_complete(table_4_1: hm.Table, semantics: str) -> None:
    answer = hm.query(table_4_1, TABLE_4_1 + semantics, recheck="rows")
    assert shown(answer) == {("Le Chesnay", "*", 1620.0, 1), ("Bourges", "*", 1442.86, 1)}
    assert answer.people == 29


def test_table_4_1_never_says_how_few_were_left_out(table_4_1: hm.Table) -> None:
    answer = hm.query(table_4_1, TABLE_4_1 + "selective")
    assert answer.withheld["below the guarantee"] is None  # nine people, and k is 10


def test_figure_4_4_each_person_contributes_where_the_guarantee_suffices() -> None:
    people = pa.table(
        {
            "name": ["Alice", "Bob", "Charlie"],
            "city": ["x"] * 3,
            "street": ["y"] * 3,
            "consu": [1, 2, 3],
            "k": [5, 8, 20],
            "l": [3, 3, 3],
        }
    )
    table = hm.read(
        people,
        {
            "policy": {"k": "k", "l": "l"},
            "columns": {
                "name": "identifier",
                "city": "quasi",
                "street": "quasi",
                "consu": "sensitive",
            },
        },
    )
    sql = (
        "SELECT city, street, SUM(consu) FROM people GROUP BY city, street "
        "GUARANTEE k = 5, l = 3 THEN street -> del GUARANTEE k = 10, l = 3"
    )
    with Session(table) as session:
        groups = collect(session.prepare(sql).plan, session.engine)
    assert sorted(groups.level.tolist()) == [0, 1]  # Alice fine, Bob by city
    assert groups.refused == 1  # Charlie not at all


@pytest.fixture
def figure_4_6() -> hm.Table:
    """A=2 B=4 C=3 D=4, AB=2, CD=7, *=3 under k = 5, 7, 10."""
    people = [("A", 5)] * 2 + [("B", 5)] * 4 + [("C", 5)] * 3 + [("D", 5)] * 4
    people += [("A", 7), ("B", 7)] + [("C", 7)] * 3 + [("D", 7)] * 4 + [("A", 10)] * 2 + [("D", 10)]
    rows = pa.table({"a": [v for v, _ in people], "k": [k for _, k in people]})
    column = hm.Column("quasi", hierarchy=Tree({"AB": ["A", "B"], "CD": ["C", "D"]}))
    return hm.read(rows, hm.Schema(columns={"a": column}, policy={"k": "k"}))


@pytest.mark.parametrize(
    ("semantics", "rows", "f1", "f2"),
    [
        ("selective", {("AB", 8), ("CD", 14)}, 22, 22),
        ("complete", {("AB", 8), ("CD", 7), ("*", 10)}, 25, 15),
        ("complete-greedy", {("*", 11), ("CD", 14)}, 25, 14),
    ],
)
def test_figure_4_6(
    figure_4_6: hm.Table, semantics: str, rows: set[tuple[str, int]], f1: int, f2: int
) -> None:
    sql = (
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a GUARANTEE k = 5 "
        f"THEN a -> up GUARANTEE k = 7 THEN a -> up GUARANTEE k = 10 SEMANTICS {semantics}"
    )
    answer = hm.query(figure_4_6, sql, recheck="rows")
    assert {(r["a"], r["n"]) for r in answer.to_arrow().to_pylist()} == rows
    assert (answer.people, answer.depth) == (f1, f2)
    assert answer.gap == (None if semantics == "complete-greedy" else 0.0)


@pytest.fixture(scope="module")
def adult(data: Path) -> pa.Table:
    return adult_rows(data)


def adult_query(rows: pa.Table, k: int, l: int) -> tuple[object, ...]:
    columns = {
        n: hm.Column("quasi", hierarchy=Tree(TREES[n]) if n in TREES else None)
        for n in rows.column_names
    }
    columns["fnlwgt"] = hm.Column("sensitive")
    table = hm.read(rows, hm.Schema(columns=columns))
    with Session(table) as session:
        work = session.prepare(FIG_4_5, {"k": k, "l": l})
        groups = collect(work.plan, session.engine)
        choice = choose_levels(groups, "selective")
        return groups, publish_groups(groups, choice), session.answer(work)


def test_figure_4_5_on_adult(adult: pa.Table) -> None:
    groups, published, answer = adult_query(adult, 5, 3)
    assert len(groups) == 18_109  # type: ignore[arg-type]
    rows = [x.rows for x in answer.levels]  # type: ignore[attr-defined]
    assert rows == [887, 783, 30, 161, 155, 162, 48, 22, 64, 14]
    people = [
        int(published.people[published.level == i].sum())  # type: ignore[attr-defined]
        for i in range(10)
    ]
    assert people == [8185, 11059, 273, 1852, 1903, 2441, 683, 354, 2328, 285]
    assert answer.people == 29_363  # type: ignore[attr-defined]
    assert answer.withheld["below the guarantee"] == 799  # type: ignore[attr-defined]


def test_figure_4_5_on_adult_with_stronger_demands(adult: pa.Table) -> None:
    groups, _, _ = adult_query(adult, 10, 4)
    assert set(groups.level.tolist()) == {5}  # type: ignore[attr-defined]
    assert len(groups) == 2_350  # type: ignore[arg-type]


def test_figure_4_5_on_adult_where_no_level_suffices(adult: pa.Table) -> None:
    groups, _, answer = adult_query(adult, 18, 3)
    assert len(groups) == 0  # type: ignore[arg-type]
    assert len(answer) == 0  # type: ignore[arg-type]
    assert answer.withheld["no level satisfies their demands"] == 30_162  # type: ignore[attr-defined]
