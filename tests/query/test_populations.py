"""On random populations: every row keeps its guarantee and everybody's own, and says the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.query.groups import collect
from halfmask.query.run import Session
from halfmask.query.semantics import choose_levels, publish_groups

GUARANTEES = [(2, 1), (3, 2), (4, 2), (6, 3)]
STEPS = ["", "THEN a -> 2", "THEN a -> 4", "THEN b -> del"]


def sql(semantics: str) -> str:
    chain = " ".join(
        f"{step} GUARANTEE k = {k}, l = {l}" for step, (k, l) in zip(STEPS, GUARANTEES, strict=True)
    )
    return (
        f"SELECT a, b, COUNT(*) AS n, SUM(s) AS total FROM t GROUP BY a, b {chain} "
        f"SEMANTICS {semantics}"
    )


Person = dict[str, Any]


@st.composite
def populations(draw: st.DrawFn) -> list[Person]:
    person = st.fixed_dictionaries(
        {
            "a": st.one_of(st.none(), st.integers(-3, 6)),
            "b": st.sampled_from(["x", "y", None]),
            "s": st.one_of(st.none(), st.integers(0, 4)),
            "k": st.one_of(st.none(), st.integers(1, 7)),
            "l": st.integers(1, 3),
        }
    )
    return draw(st.lists(person, min_size=1, max_size=40))


def table(people: list[Person]) -> hm.Table:
    types = {"a": pa.int64(), "b": pa.string(), "s": pa.int64(), "k": pa.int64(), "l": pa.int64()}
    rows = pa.table({n: pa.array([p[n] for p in people], t) for n, t in types.items()})
    return hm.read(rows, {"columns": {"a": "quasi", "b": "quasi", "s": "sensitive"}})


def entry(person: Person) -> int | None:
    own = person["k"] or 1  # who states no k asks for none
    return next((i for i, (k, l) in enumerate(GUARANTEES) if own <= k and person["l"] <= l), None)


def key(person: Person, level: int) -> tuple[Any, ...]:
    a = person["a"]
    if level and a is not None:
        width = 2 if level == 1 else 4
        low = a // width * width
        a = f"[{low}, {low + width})"
    b = "*" if level == 3 else person["b"]
    return (None if a is None else str(a), b)


def meets(people: list[Person], level: int) -> bool:
    k, l = GUARANTEES[level]
    salaries = [p["s"] for p in people if p["s"] is not None]
    return len(people) >= k and len(salaries) >= k and len(set(salaries)) >= l


def selective_by_hand(people: list[Person]) -> dict[tuple[Any, ...], list[Person]]:
    rising: list[Person] = []
    published: dict[tuple[Any, ...], list[Person]] = {}
    for level in range(4):
        inside = rising + [p for p in people if entry(p) == level]
        nodes: dict[tuple[Any, ...], list[Person]] = {}
        for p in inside:
            nodes.setdefault(key(p, level), []).append(p)
        rising = []
        for node, members in nodes.items():
            if meets(members, level):
                published[(*node, level)] = members
            else:
                rising += members
    return published


@settings(max_examples=examples(40))
@given(populations())
def test_selective_is_what_a_person_with_a_pencil_finds(people: list[Person]) -> None:
    answer = hm.query(table(people), sql("selective"), {"k": "k", "l": "l"}, recheck="rows")
    found = {
        (r["a"], r["b"], r["level"]): (r["n"], r["total"]) for r in answer.to_arrow().to_pylist()
    }
    assert found == {
        node: (len(members), sum(p["s"] for p in members if p["s"] is not None))
        for node, members in selective_by_hand(people).items()
    }


@pytest.mark.parametrize("semantics", ["selective", "complete", "complete-greedy"])
@settings(max_examples=examples(25))
@given(populations())
def test_every_row_keeps_every_promise(semantics: str, people: list[Person]) -> None:
    with Session(table(people)) as session:
        work = session.prepare(sql(semantics), {"k": "k", "l": "l"})
        groups = collect(work.plan, session.engine)
        published = publish_groups(groups, choose_levels(groups, semantics))  # type: ignore[arg-type]
        answer = session.answer(work, recheck="rows")
    place = {}
    for g in range(len(groups)):
        values = tuple(k.values[int(k.codes[g])].as_py() for k in groups.keys)
        place[(int(groups.level[g]), values)] = int(published.ids[g])
    rows: dict[int, list[Person]] = {}
    for p in people:
        level = entry(p)
        if level is not None:
            a = p["a"]
            if level and a is not None:
                a = a // (2 if level == 1 else 4) * (2 if level == 1 else 4)
            at = place[(level, (a, None if level == 3 else p["b"]))]
            if at >= 0:
                rows.setdefault(at, []).append(p)
    assert len(rows) == len(answer)
    for at, members in rows.items():
        level = int(published.level[at])
        k, l = GUARANTEES[level]
        assert meets(members, level)
        assert len({key(p, level) for p in members}) == 1
        assert all((p["k"] or 1) <= k and p["l"] <= l for p in members)
    expected = sorted((len(m), sum(p["s"] for p in m if p["s"] is not None)) for m in rows.values())
    assert expected == sorted((r["n"], r["total"]) for r in answer.to_arrow().to_pylist())


def test_people_with_several_rows_count_once() -> None:
    rows = pa.table({"who": ["a"] * 9 + ["b", "c"], "city": ["x"] * 11, "cost": list(range(11))})
    visits = hm.read(
        rows,
        {
            "table": {"person": "who"},
            "columns": {"who": "identifier", "city": "quasi", "cost": "sensitive"},
        },
    )
    text = "SELECT city, SUM(cost) AS s FROM visits GROUP BY city GUARANTEE k = {k}, l = 2"
    assert len(hm.query(visits, text.format(k=4))) == 0
    assert len(hm.query(visits, text.format(k=3), recheck="rows")) == 1


def test_somebody_in_two_groups_is_one_person_in_the_merged_one() -> None:
    who = ["a", "b", "c", "a", "b", "c"]
    rows = pa.table({"who": who, "street": ["s"] * 3 + ["t"] * 3, "cost": [1, 2, 3, 4, 5, 6]})
    visits = hm.read(
        rows,
        {
            "table": {"person": "who"},
            "columns": {"who": "identifier", "street": "quasi", "cost": "sensitive"},
        },
    )
    text = (
        "SELECT street, SUM(cost) AS s FROM visits GROUP BY street GUARANTEE k = 4 "
        "THEN street -> del GUARANTEE k = {k} SEMANTICS {s}"
    )
    for semantics in ("selective", "complete", "complete-greedy"):
        assert len(hm.query(visits, text.format(k=4, s=semantics))) == 0
    with_bigger = pa.concat_tables([rows, pa.table({"who": ["d"], "street": ["u"], "cost": [9]})])
    visits = hm.read(with_bigger, visits.schema)
    for semantics in ("selective", "complete", "complete-greedy"):
        answer = hm.query(visits, text.format(k=4, s=semantics), recheck="rows")
        assert [r["s"] for r in answer.to_arrow().to_pylist()] == [30]


def test_having_looks_at_rows_that_may_be_published_only() -> None:
    """Two groups of two leave as one of four: HAVING sees the four, never the twos."""
    rows = pa.table({"g": ["a"] * 2 + ["b"] * 2 + ["c"] * 5, "s": list(range(9))})
    text = (
        "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) {} "
        "GUARANTEE k = 3 THEN g -> del GUARANTEE k = 4"
    )
    for condition, expected in (("> 2", {"c": 5, "*": 4}), ("= 4", {"*": 4}), ("= 2", {})):
        answer = hm.query(rows, text.format(condition))
        assert {r["g"]: r["n"] for r in answer.to_arrow().to_pylist()} == expected
        assert answer.people == 9


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_somebody_in_many_withheld_groups_is_one_withheld_person(engine: str) -> None:
    schema = {
        "table": {"person": "p"},
        "columns": {"p": "identifier", "g": "quasi", "s": "sensitive"},
    }
    text = "SELECT g, SUM(s) AS s FROM t GROUP BY g GUARANTEE k = 5"
    for alone, said in ((1, None), (4, None), (6, 6)):
        # Everybody of them in twelve groups of one's own, and eight people in one group.
        people = [i for i in range(alone) for _ in range(12)] + list(range(100, 108))
        groups = [100 * i + j for i in range(alone) for j in range(12)] + [-1] * 8
        rows = pa.table({"p": people, "g": groups, "s": list(range(len(people)))})
        answer = hm.query(rows, text, schema=schema, engine=engine)
        assert len(answer) == 1
        assert answer.withheld["below the guarantee"] == said


def test_an_average_of_one_person_is_not_published() -> None:
    rows = pa.table({"city": ["x"] * 6, "bonus": pa.array([None] * 5 + [100], pa.int64())})
    text = "SELECT city, AVG(bonus) AS b FROM t GROUP BY city GUARANTEE k = 5"
    assert len(hm.query(rows, text)) == 0


def test_totals_of_withheld_people_hide_them() -> None:
    rows = pa.table({"city": ["x"] * 8 + ["y"] * 2, "s": list(range(10)), "k": [2] * 8 + [50, 2]})
    text = "SELECT city, AVG(s) AS m FROM t GROUP BY city GUARANTEE k = 5, l = 2"
    answer = hm.query(rows, text, {"k": "k"})
    assert set(answer.withheld.values()) == {None}
    assert answer.people == 8
    many = pa.table(
        {"city": ["x"] * 8 + ["y"] * 60, "s": list(range(68)), "k": [2] * 8 + [50] * 60}
    )
    answer = hm.query(many, text, {"k": "k"})
    assert answer.withheld["no level satisfies their demands"] == 60
    fewer = pa.table(
        {"city": ["x"] * 8 + ["y"] * 40, "s": list(range(48)), "k": [2] * 8 + [50] * 40}
    )
    answer = hm.query(fewer, text, {"k": "k"})
    assert answer.withheld["no level satisfies their demands"] is None  # 40 people, who demand 50


@pytest.mark.parametrize("missing", ["refuse", "level 0"])
def test_people_without_a_policy(missing: str) -> None:
    rows = pa.table(
        {"city": ["x"] * 12, "s": list(range(12)), "k": pa.array([2] * 6 + [None] * 6, pa.int64())}
    )
    text = "SELECT city, COUNT(*) AS n FROM t GROUP BY city GUARANTEE k = 5"
    answer = hm.query(rows, text, {"k": "k", "missing": missing})
    assert [r["n"] for r in answer.to_arrow().to_pylist()] == [6 if missing == "refuse" else 12]
    assert answer.withheld["no policy"] == (6 if missing == "refuse" else None)


def test_policies_per_queried_column(tmp_path: Any) -> None:
    rows = pa.table(
        {"who": list(range(12)), "city": ["x"] * 12, "s": list(range(12)), "d": list(range(12))}
    )
    people = hm.read(
        rows,
        {
            "table": {"person": "who"},
            "columns": {"who": "identifier", "city": "quasi", "s": "sensitive", "d": "sensitive"},
        },
    )
    file = tmp_path / "policies.toml"
    file.write_text(
        'k = 2\n[columns.s]\nk = 9\n[people."3"]\nk = 20\n'
        '[people."4"]\nk = 1\n[people."4".columns.d]\nk = 30\n'
    )
    text = "SELECT city, COUNT(*) AS n, AVG({c}) AS m FROM t GROUP BY city GUARANTEE k = {k}"

    def count(column: str, k: int) -> list[int]:
        answer = hm.query(people, text.format(c=column, k=k), file)
        return [r["n"] for r in answer.to_arrow().to_pylist()]

    assert count("d", 5) == [10]  # not 3 (demands 20) and not 4 (30 when d is queried)
    assert count("s", 5) == []  # everybody but 4 demands 9 when s is queried
    assert count("s", 9) == [11]  # person 4 is content with 1, person 3 demands 20
    assert count("d", 40) == []


def test_np_integers_do_not_reach_the_answer() -> None:
    answer = hm.query(
        pa.table({"c": ["x"] * 5}), "SELECT c, COUNT(*) AS n FROM t GROUP BY c GUARANTEE k = 2"
    )
    assert not any(isinstance(v, np.generic) for v in answer.to_dict().values())


def test_people_who_stand_in_several_rows_are_said_to_count_in_each():
    ids = [i for i in range(6) for _ in range(2)]
    table = hm.read(
        {"id": ids, "city": ["a", "b"] * 6},
        {"table": {"person": "id"}, "columns": {"city": "quasi"}},
    )
    answer = hm.query(table, "SELECT city, COUNT(*) FROM people GROUP BY city GUARANTEE k = 2")
    words = "12 people (once for each row they stand in) could be published."
    assert answer.coverage[0] == f"2 rows; {words}"
