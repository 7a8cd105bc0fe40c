"""A bound on rows per person, checked on the filtered rows, tells whether the filter took any."""

from __future__ import annotations

import pyarrow as pa
from tests.attacks.conftest import AGE, SALARY, SCHEMA, Asker, make_rows

import halfmask as hm


def test_the_bound_tells_no_salary() -> None:
    rows = make_rows()
    visits = pa.table({"id": [i for i in rows["id"] for _ in (0, 1)], "ward": ["a", "b"] * 60})
    schema = {"table": {"person": "id"}, "columns": {"id": "identifier", "ward": "quasi"}}
    asker = Asker({"people": hm.read(pa.table(rows), SCHEMA), "visits": hm.read(visits, schema)})
    found = asker.search(
        lambda guess: (
            "SELECT COUNT(*) AS n FROM people JOIN visits USING (id) "
            f"WHERE age = {AGE} AND salary > {guess} GUARANTEE k = 3 AT MOST 1 ROWS PER PERSON"
        )
    )
    assert found != SALARY


def test_the_bound_on_people_with_several_rows_tells_no_salary() -> None:
    rows = make_rows()
    twice = {name: values + values for name, values in rows.items()}
    asker = Asker(hm.read(pa.table(twice), SCHEMA))
    found = asker.search(
        lambda guess: (
            f"SELECT COUNT(*) AS n FROM people WHERE age = {AGE} AND salary > {guess} "
            "GUARANTEE k = 3 AT MOST 1 ROWS PER PERSON"
        )
    )
    assert found != SALARY
