"""Rows of one person or household are drawn together, and one person costs what is paid."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Pure
from halfmask.dp.domain import public_domains
from halfmask.errors import ParameterError, SchemaError
from halfmask.synthesize.histories import Histories
from halfmask.table.schema import Schema
from halfmask.table.table import Table

DOMAINS = {"visit": range(8), "state": ["well", "ill"], "sex": ["f", "m"]}


@pytest.fixture(scope="module")
def visits() -> Table:
    """1 to 4 visits of each of 3,000 people; states stay as they are, and men come twice."""
    random = np.random.default_rng(0)
    rows = []
    for person in range(3000):
        sex = person % 2
        state = int(random.random() < 0.5)
        for visit in range(2 if sex else 1 + int(random.integers(0, 4))):
            state = state if random.random() < 0.95 else 1 - state
            rows.append((person, visit, DOMAINS["state"][state], DOMAINS["sex"][sex]))
    random.shuffle(rows)
    columns = zip(*rows, strict=True)
    names = ("id", "visit", "state", "sex")
    arrow = pa.table({name: list(held) for name, held in zip(names, columns, strict=True)})
    return Table(arrow, Schema(person="id"))


def by_person(rows: pa.Table) -> dict[int, list[dict]]:
    found: dict[int, list[dict]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["id"], []).append(row)
    return found


def figures(rows: pa.Table) -> tuple[float, float, float, float]:
    """How often a state stays, rows of a woman and of a man, and how often visits rise."""
    people = by_person(rows)
    pairs = [(a, b) for held in people.values() for a, b in pairwise(held)]
    many = {sex: np.mean([len(h) for h in people.values() if h[0]["sex"] == sex]) for sex in "fm"}
    same = np.mean([a["state"] == b["state"] for a, b in pairs])
    rising = np.mean([a["visit"] <= b["visit"] for a, b in pairs])
    return float(same), float(many["f"]), float(many["m"]), float(rising)


def test_what_rows_of_one_person_have_in_common_is_kept(visits) -> None:
    made = hm.synthesize(
        visits, "marginals", epsilon=8, domains=DOMAINS, rows_per_person=4,
        together="person", order="visit", constant=["sex"],
    )  # fmt: skip
    rows = made.to_arrow()
    assert rows.column_names == ["id", "visit", "state", "sex"]
    people = by_person(rows)
    assert sorted(people) == list(range(1, len(people) + 1))  # invented
    assert abs(len(people) - 3000) < 60
    assert all(len({row["sex"] for row in held}) == 1 for held in people.values())
    same, women, men, rising = figures(rows)
    assert same > 0.85  # 0.95 in the table; rows drawn one by one have 0.5
    assert abs(women - 2.5) < 0.2
    assert abs(men - 2) < 0.1
    assert rising == 1
    made.receipt.verify()
    assert made.receipt.rows_per_person == 1
    assert "drawn together, at most 4 of each" in " ".join(made.notes)
    assert made.parameters["together"] == "person"


def test_rows_one_by_one_do_not_keep_it(visits) -> None:
    made = hm.synthesize(visits, "marginals", epsilon=8, domains=DOMAINS, rows_per_person=4)
    assert "id" not in made.to_arrow().column_names
    assert "are not drawn" in " ".join(made.notes)


def table_of(rows: list[tuple], *names: str) -> Table:
    columns = zip(names, zip(*rows, strict=True), strict=True)
    house = "house" if "house" in names else None
    return Table(
        pa.table({name: list(held) for name, held in columns}), Schema(person="id", household=house)
    )


def wide_of(table: Table, kind: str = "person") -> list[tuple[int, ...]]:
    domains = public_domains(["state", "visit"], {n: DOMAINS[n] for n in ("state", "visit")})
    sizes = {name: len(domain) for name, domain in domains.items()}
    histories = Histories.of(table.schema, kind, 3, "visit", (), sizes)
    allowance = Accountant(Pure(1)).allow(Pure(1), "test")
    views = histories.guard(table, domains, allowance)
    assert {n: int(c.max()) < views.sizes[n] for n, c in views._codes.items()} == dict.fromkeys(
        views.sizes, True
    )
    return sorted(zip(*(held.tolist() for held in views._codes.values()), strict=True))


def apart(a: list, b: list) -> int:
    """How many wide rows two tables do not share."""
    left, right = list(a), []
    for one in b:
        if one in left:
            left.remove(one)
        else:
            right.append(one)
    return len(left) + len(right)


def test_a_person_with_any_number_of_rows_is_one_wide_row() -> None:
    base = [(1, 0, "ill"), (1, 1, "ill"), (2, 5, "well"), (3, 2, "ill")]
    for many in (1, 2, 3, 7):
        planted = [*base, *((9, visit, "ill") for visit in range(many))]
        tables = [table_of(rows, "id", "visit", "state") for rows in (base, planted)]
        assert apart(*(wide_of(table) for table in tables)) == 1


@pytest.mark.parametrize("home", [1, 2, 7])
def test_a_person_changes_no_more_than_the_rows_of_one_household_and_pays_for_two(home) -> None:
    base = [(1, 1, 0, "ill"), (1, 2, 1, "well"), (1, 3, 4, "well"), (2, 4, 5, "well")]
    planted = [*base, (home, 9, 2, "ill"), (2, 9, 2, "ill"), (7, 9, 2, "ill")]
    tables = [table_of(rows, "house", "id", "visit", "state") for rows in (base, planted)]
    for _ in range(20):  # which of the person's rows counts is drawn
        assert 1 <= apart(*(wide_of(table, "household") for table in tables)) <= 2
    made = hm.synthesize(
        tables[1], "marginals", epsilon=1, domains={n: DOMAINS[n] for n in ("visit", "state")},
        rows_per_person=3, together="household",
    )  # fmt: skip
    assert made.receipt.rows_per_person == 2
    assert made.to_arrow().column_names == ["house", "visit", "state"]


def test_what_cannot_occur_occurs_in_no_row(visits) -> None:
    declared = {"sex": "m", "state": "ill"}
    schema = Schema(person="id", impossible=(declared,))
    made = hm.synthesize(
        Table(visits.arrow, schema), "marginals", epsilon=2, domains=DOMAINS, rows_per_person=3,
        together="person", constant=["sex"],
    )  # fmt: skip
    rows = made.to_arrow().to_pylist()
    assert not [row for row in rows if row["sex"] == "m" and row["state"] == "ill"]
    assert [row for row in rows if row["sex"] == "m"]


@pytest.mark.parametrize("method", ["marginals", "adaptive", "privbayes"])
@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_every_method_and_the_poorest_budget_deliver(visits, method, epsilon) -> None:
    few = Table(visits.arrow.slice(0, 300), visits.schema)
    made = hm.synthesize(
        few, method, epsilon=epsilon, domains=DOMAINS, rows_per_person=3, together="person",
        order="visit", constant=["sex"], rows=50,
    )  # fmt: skip
    people = by_person(made.to_arrow())
    assert len(people) == 50
    assert max(map(len, people.values())) <= 3


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"together": "city"}, ParameterError),
        ({"together": "household"}, SchemaError),
        ({"together": "person", "rows_per_person": 1}, ParameterError),
        ({"together": "person", "order": "id"}, ParameterError),
        ({"together": "person", "order": "sex", "constant": ["sex"]}, ParameterError),
        ({"together": "person", "constant": ["nothing"]}, ParameterError),
        ({"together": "person", "given": {"sex": "f"}, "rows": 5}, ParameterError),
        ({"order": "visit"}, ParameterError),
    ],
)
def test_what_cannot_be_done_costs_nothing(visits, wrong, error) -> None:
    accountant = Accountant(Pure(1))
    with pytest.raises(error):
        hm.synthesize(
            visits, epsilon=1, domains=DOMAINS, accountant=accountant,
            **{"rows_per_person": 3, **wrong},
        )  # fmt: skip
    assert accountant.remaining == Pure(1)
