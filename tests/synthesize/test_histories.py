"""Rows of one person or household are drawn together, and one person costs what is paid."""

from __future__ import annotations

from itertools import pairwise
from math import exp

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
    assert made.receipt.rows_per_person == 4  # the noise is for one wide row
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
    assert made.receipt.rows_per_person == 1  # the noise is for two wide rows
    entry = next(one for one in made.receipt.entries if one.view == "rows of each")
    chance = exp(-float(entry.cost.epsilon) / 2)
    assert float(entry.variance) == pytest.approx(2 * chance / (1 - chance) ** 2, rel=1e-4)
    assert "differ by all rows of one person" in made.receipt.neighbors
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
        ({"together": "person", "rows_per_person": 21}, ParameterError),
        ({"together": "person", "rows_per_person": "3"}, ParameterError),
        ({"together": "person", "rows_per_person": 2.5}, ParameterError),
        ({"together": "person", "constant": None}, ParameterError),
        ({"together": "person", "constant": "sex"}, ParameterError),
        ({"together": "person", "constant": [["sex"]]}, ParameterError),
        ({"together": "person", "order": ["visit"]}, ParameterError),
        ({"together": "person", "rows": 2.5}, ParameterError),
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


def test_households_of_nobody_in_particular_are_refused() -> None:
    """Two rows of two households change four wide rows, and nobody knows whose rows they are."""
    arrow = pa.table({"house": [i // 2 for i in range(40)], "state": ["ill", "well"] * 20})
    accountant = Accountant(Pure(1))
    with pytest.raises(SchemaError, match="whose row it is, which households drawn together need"):
        hm.synthesize(
            Table(arrow, Schema(household="house")), "marginals", epsilon=1, rows_per_person=2,
            domains={"state": DOMAINS["state"]}, together="household", accountant=accountant,
        )  # fmt: skip
    assert accountant.remaining == Pure(1)


@pytest.mark.parametrize(("nobody", "numbers"), [(None, int), (float("nan"), float)])
def test_rows_of_nobody_change_nothing(nobody, numbers) -> None:
    base = [(numbers(1), 0, "ill"), (numbers(2), 5, "well")]
    wide = wide_of(table_of(base, "id", "visit", "state"))
    for many in (1, 2, 3):
        planted = [*base, *((nobody, visit, "ill") for visit in range(many))]
        assert wide_of(table_of(planted, "id", "visit", "state")) == wide
    homes = [(7, *row) for row in base]
    wide = wide_of(table_of(homes, "house", "id", "visit", "state"), "household")
    homes = [*homes, (7, nobody, 1, "ill"), (8, nobody, 1, "ill")]
    assert wide_of(table_of(homes, "house", "id", "visit", "state"), "household") == wide


def test_people_without_a_household_are_one_each() -> None:
    base = [(1, 1, 0, "ill"), (1, 2, 1, "well")]
    single = [(None, person, 2, "ill") for person in range(10, 17)]
    wide = wide_of(table_of([*base, *single], "house", "id", "visit", "state"), "household")
    # number of rows less one, then state and visit of the first, second and third; 2 and 8: absent
    assert sorted(wide) == sorted([(1, 1, 0, 2, 0, 1, 8), *[(0, 1, 2, 2, 2, 8, 8)] * 7])


@pytest.mark.parametrize("epsilon", [1, "personal"])
def test_households_whose_members_may_be_left_out_are_refused(epsilon) -> None:
    people = {"id": range(8), "house": [0, 0, 1, 1, 2, 2, 3, 3], "own": [0.2, 1.0] * 4}
    policy = {"epsilon": "own", "levels": {"epsilon": [0.2, 1]}}
    table = hm.read(
        pa.table({**{n: list(held) for n, held in people.items()}, "state": ["ill", "well"] * 4}),
        {"table": {"person": "id", "household": "house"}, "policy": policy},
    )
    asked = {"domains": {"state": DOMAINS["state"]}, "rows_per_person": 2}
    accountant = Accountant(Pure(1))
    with pytest.raises(SchemaError, match="households would lose members"):
        hm.synthesize(
            table, "marginals", epsilon=epsilon, together="household", accountant=accountant,
            **asked,
        )  # fmt: skip
    assert accountant.remaining == Pure(1)
    made = hm.synthesize(
        table, "marginals", epsilon=1, together="household", demands="ignore", **asked
    )
    assert made.to_arrow().column_names == ["house", "state"]


def test_words_are_sorted_as_they_are_declared() -> None:
    """Cut and sorted by one order: low, mid and high, and not by the alphabet."""
    levels = ["low", "mid", "high"]
    arrow = pa.table({"id": [i // 3 for i in range(900)], "level": levels[::-1] * 300})
    for many, kept in ((3, levels), (2, levels[:2])):
        made = hm.synthesize(
            Table(arrow, Schema(person="id")), "marginals", epsilon=20, rows_per_person=many,
            domains={"level": {"values": levels, "ordered": True}}, together="person",
            order="level", rows=100,
        )  # fmt: skip
        people = by_person(made.to_arrow())
        ranks = [[levels.index(row["level"]) for row in held] for held in people.values()]
        assert all(held == sorted(held) for held in ranks)
        assert sum([levels[rank] for rank in held] == kept for held in ranks) > 80


def test_numbers_that_stand_alone_are_sorted_among_the_others() -> None:
    """The first two of -3, 0 and 3 are -3 and 0, though 0 has the last code."""
    domain = {"low": -4, "high": 4, "bins": 4, "special": [0]}
    arrow = pa.table({"id": [i // 3 for i in range(900)], "v": [3, 0, -3] * 300})
    made = hm.synthesize(
        Table(arrow, Schema(person="id")), "marginals", epsilon=20, rows_per_person=2,
        domains={"v": domain}, together="person", order="v", rows=100,
    )  # fmt: skip
    people = by_person(made.to_arrow())
    assert sum([row["v"] for row in held][1:] == [0] for held in people.values()) > 80


@pytest.mark.parametrize(
    ("column", "domain", "ranks"),
    [
        ([-9, -4, 0, 9, None], {"low": -4, "high": 4, "bins": 2}, [-4, -4, 0, 4, -4]),
        ([-9, -5, 1, 9], {"low": 0, "high": 4, "bins": 2, "special": [-9, 9]}, [-9, 0, 1, 9]),
        ([3, None], {"low": 0, "high": 4, "bins": 2, "missing": True}, [3, np.inf]),
    ],
)
def test_numbers_rank_as_what_is_drawn_for_them(column, domain, ranks) -> None:
    found = public_domains(["v"], {"v": domain})["v"].ranks(pa.array(column, pa.int64()))
    assert found.tolist() == ranks


def test_auto_learns_wide_rows_by_marginals() -> None:
    """Few values a row, and very many a person: not the histogram, and no refusal after paying."""
    random = np.random.default_rng(1)
    owner = np.repeat(np.arange(400), random.integers(1, 5, 400))
    arrow = pa.table({"id": owner, "state": random.choice(DOMAINS["state"], len(owner))})
    made = hm.synthesize(
        Table(arrow, Schema(person="id")), epsilon=4, rows_per_person=4, together="person",
        domains={"state": DOMAINS["state"]},
    )  # fmt: skip
    assert made.method == "marginals"
    people = by_person(made.to_arrow())
    assert abs(len(people) - 400) < 40
    assert abs(made.to_arrow().num_rows / len(people) - len(owner) / 400) < 0.4


def test_a_histogram_of_too_many_wide_rows_costs_nothing(visits) -> None:
    accountant = Accountant(Pure(1))
    with pytest.raises(ParameterError, match="give marginals"):
        hm.synthesize(
            visits, "histogram", epsilon=1, domains=DOMAINS, rows_per_person=20,
            together="person", accountant=accountant,
        )  # fmt: skip
    assert accountant.remaining == Pure(1)


def test_the_receipt_names_each_count_once(visits) -> None:
    few = Table(visits.arrow.slice(0, 300), visits.schema)
    made = hm.synthesize(
        few, "marginals", epsilon=1, domains=DOMAINS, rows_per_person=2, together="person",
        constant=["sex"],
    )  # fmt: skip
    views = [entry.view for entry in made.receipt.entries]
    assert views.count("number of rows") <= 1
    assert "rows of each" in views
    notes = " ".join(made.notes)
    assert "Of 'sex' the value in the first row of each counts." in notes
    assert "rows that name no person" in notes


@pytest.mark.parametrize("kind", ["person", "household"])
def test_a_table_of_nobody_delivers(kind) -> None:
    """Whether it fails depends on no row: nobody is named, or there is no row at all."""
    nobody = pa.nulls(5, pa.int64())
    arrow = pa.table({"id": nobody, "house": nobody, "state": ["ill"] * 5, "visit": range(5)})
    for rows in (arrow, arrow.slice(0, 0)):
        made = hm.synthesize(
            Table(rows, Schema(person="id", household="house")), epsilon=1, rows_per_person=2,
            domains={n: DOMAINS[n] for n in ("state", "visit")}, together=kind, order="visit",
            rows=7,
        )  # fmt: skip
        assert len(set(made.to_arrow()["id" if kind == "person" else "house"].to_pylist())) == 7
