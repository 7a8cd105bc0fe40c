"""SQL in which every person keeps an own epsilon, whoever asks and however often."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from noise import least_epsilon, repeatable

import halfmask as hm
from halfmask.dp import Accountant, Pure
from halfmask.dp.figures import Stratum, answer
from halfmask.dp.views import ExactCounts, Question
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.engines.postgres import Postgres
from halfmask.engines.reference import Reference
from halfmask.query.private.answer import NoiseTerms, collect_totals, prepare_noise
from halfmask.query.run import Session

if TYPE_CHECKING:
    from halfmask.engines.request import Engine

LEVELS = [0.05, 0.5, 1]


def schema(**more) -> hm.Schema:
    return hm.Schema.from_dict(
        {
            "table": {"person": "id"},
            "columns": {
                "id": "identifier",
                "city": {"role": "quasi", "domain": ["Arras", "Lille"]},
                "pay": {"role": "sensitive", "domain": {"low": 0, "high": 100}},
            },
            "policy": {"epsilon": "own", "levels": {"epsilon": LEVELS}, **more},
        }
    )


SHARED = schema(shares={"epsilon": [1 / 3, 1 / 3, 1 / 3]})
SQL = "SELECT city, COUNT(*) AS n, SUM(pay) AS s, AVG(pay) AS m FROM people GROUP BY city"


def people(rows: int = 6000, own=(0.05, 0.5, 1.0)) -> pa.Table:
    random = np.random.default_rng(4)
    return pa.table(
        {
            "id": np.arange(rows),
            "city": np.array(["Arras", "Lille"])[random.integers(0, 2, rows)],
            "pay": pa.array(random.integers(20, 60, rows), mask=random.random(rows) < 0.1),
            "own": pa.array([own[i % len(own)] for i in range(rows)], pa.float64()),
        }
    )


def count(table: hm.Table, sql: str = "SELECT COUNT(*) AS n FROM people", **options) -> int:
    return hm.query(table, sql, **options).to_arrow()["n"][0].as_py()


@pytest.mark.parametrize("rule", [schema(), SHARED], ids=["added up", "weighted"])
def test_figures_are_near_and_intervals_cover(rule) -> None:
    table = people()
    frame = table.to_pandas()
    truth = frame.groupby("city").agg(n=("city", "size"), s=("pay", "sum"), m=("pay", "mean"))
    hits = []
    for _ in range(12):
        found = hm.query(hm.read(table, rule), f"{SQL} WITH PERSONAL EPSILON")
        for row in found.to_arrow().to_pylist():
            exact = truth.loc[row["city"]]
            hits += [row[f"{f}_low"] <= exact[f] <= row[f"{f}_high"] for f in "nsm"]
    assert np.mean(hits) >= 0.8  # 72 intervals, not all apart
    assert row["n"] == pytest.approx(3000, abs=800)
    assert found.parameters["personal"]["costs"] == LEVELS
    assert found.receipt.promise == Pure(1)
    found.receipt.verify()


def test_with_public_shares_better_than_the_smallest_epsilon_for_all() -> None:
    table = hm.read(people(), SHARED)
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    exact = np.array([table.arrow["city"].to_pylist().count(c) for c in ("Arras", "Lille")])

    def error(epsilon, **options) -> float:
        found = [hm.query(table, sql, epsilon=epsilon, **options).to_arrow()["n"] for _ in range(9)]
        return float(np.mean([(a.to_numpy() - exact) ** 2 for a in found]))

    # Noise of 0.05 in a sum of three shares of two numbers against the mixture of people.
    assert error("personal") < error("0.05", demands="ignore") * 2
    own = hm.read(people(own=(0.005, 1.0, 1.0)), _with_levels([0.005, 1], [1 / 3, 2 / 3]))
    table = own
    assert error("personal") < error("0.005", demands="ignore") / 4


def _with_levels(levels, shares) -> hm.Schema:
    return schema(levels={"epsilon": levels}, shares={"epsilon": shares})


def test_one_epsilon_for_all_leaves_out_whoever_allows_less() -> None:
    table = hm.read(people(6000), schema())
    found = hm.query(table, "SELECT COUNT(*) AS n FROM people WITH EPSILON 0.5")
    assert found.to_arrow()["n"][0].as_py() == pytest.approx(4000, abs=40)
    assert "those at the level 0.05" in found.notes[0]
    assert found.to_dict()["privacy"]["levels"][0] == {"epsilon": 0.05, "cost": 0.0}
    with pytest.raises(hm.errors.PrivacyError, match="No public level of epsilon allows this"):
        hm.query(table, "SELECT COUNT(*) AS n FROM people WITH EPSILON 5")


def test_a_controller_who_sets_demands_aside_says_so_first() -> None:
    table = hm.read(people(6000), schema())
    found = hm.query(table, "SELECT COUNT(*) AS n FROM t WITH EPSILON 5", demands="ignore")
    assert found.to_arrow()["n"][0].as_py() == pytest.approx(6000, abs=10)
    told = found.to_dict()
    assert told["outcome"].startswith("People's own demands")
    assert told["notes"][0].startswith("People's own demands")
    assert next(iter(told["parameters"])) == "demands"
    with pytest.raises(hm.errors.ParameterError, match="'keep' or 'ignore'"):
        hm.query(table, "SELECT COUNT(*) AS n FROM t WITH EPSILON 5", demands="drop")


def test_a_demand_is_a_total_over_all_answers(tmp_path) -> None:
    ledger = hm.BudgetLedger.create(tmp_path / "people.ledger", Pure(3))
    table = hm.read(people(3000), schema())
    asked = {"epsilon": "personal", "ledger": ledger, "share": "0.4"}
    costs = []
    for _ in range(2):
        found = hm.query(table, "SELECT COUNT(*) AS n FROM t", **asked)
        costs.append(found.parameters["personal"]["costs"])
    assert costs == [[0.02, 0.2, 0.4]] * 2
    with pytest.raises(hm.errors.PrivacyError, match="No public level"):
        hm.query(table, "SELECT COUNT(*) AS n FROM t", **asked)
    # A fifth of each is left: of 1, that is what people at 0.5 could have paid before.
    assert count(table, epsilon="0.1", ledger=ledger) == pytest.approx(2000, abs=150)
    assert count(table, epsilon="0.1", ledger=ledger) == pytest.approx(1000, abs=150)
    left = Accountant.of(ledger).left([Fraction(1, 20), Fraction(1, 2), Fraction(1)])
    assert left == (Fraction(1, 100), 0, 0)


def test_people_without_a_demand_are_read_at_one_epsilon_and_not_at_personal_ones() -> None:
    table = hm.read(people(900, own=(1.0, None, 1.0)), schema())
    assert count(table, epsilon="1") == pytest.approx(900, abs=15)
    assert count(table, epsilon="personal") == pytest.approx(600, abs=400)


def exact_part(engine: Engine, sql: str, rows_per_person: int = 1) -> list:
    with Session("people", engine=engine, schema={"people": schema()}) as session:
        ready = prepare_noise(session, sql, NoiseTerms(rows_per_person=rows_per_person))
        found = collect_totals(ready.plan, session.engine, ready.audience)
    return [
        (one.counts.tolist(), one.sums["pay"].tolist(), one.histograms["pay"].sum(1).tolist())
        for one in found.exact
    ]


@pytest.mark.parametrize("kind", ["reference", "duckdb", "postgres"])
def test_engines_find_the_same_levels_whatever_the_demands_are(kind: str, request) -> None:
    """By hand: the least of a person's rows counts, also of one that WHERE leaves out."""
    nan = float("nan")
    rows = pa.table(
        {
            "id": [1, 1, 2, 3, 4, 5, 6, 7, 8, 8],
            "city": ["Arras"] * 9 + ["Lille"],
            "pay": [50] * 10,
            # At 0.05, at 1, silent, at 0.5, out (below all, no number, infinite), at 0.05.
            "own": pa.array([1.0, 0.06, 4.0, None, 0.5, 0.01, nan, float("inf"), 1.0, 0.05]),
        }
    )
    if kind == "reference":
        engine: Engine = Reference({"people": rows})
    elif kind == "duckdb":
        engine = DuckDB({"people": rows})
    else:
        engine = Postgres(request.getfixturevalue("postgres"))
        engine.add("people", rows)
    sql = "SELECT city, SUM(pay) AS s, MEDIAN(pay) AS m FROM people WHERE city = 'Arras' "
    sql += "GROUP BY city WITH "
    assert exact_part(engine, f"{sql} PERSONAL EPSILON") == [
        ([2, 0], [1_000_000, 0], [2, 0]),
        ([1, 0], [500_000, 0], [1, 0]),
        ([1, 0], [500_000, 0], [1, 0]),
    ]
    assert exact_part(engine, f"{sql} EPSILON 0.5") == [([3, 0], [1_500_000, 0], [3, 0])]
    engine.close()


def test_several_rows_of_a_person_and_every_figure_work() -> None:
    table = pa.concat_tables([people(600), people(600)])
    sql = "SELECT COUNT(*) AS n, VARIANCE(pay) AS v, MEDIAN(pay) AS m FROM people"
    found = hm.query(
        hm.read(table, schema()), f"{sql} WITH PERSONAL EPSILON AT MOST 2 ROWS PER PERSON"
    )
    assert found.receipt.rows_per_person == 2
    assert len(found.receipt.entries) == 3 * 5  # levels times count, its own, sum, squares, tree
    found.receipt.verify()


def _audit(own: str, *, broken: bool) -> float:
    """One person of a level joins another; levels pay 0.25 and 1 for the noise of a count."""
    costs = {Fraction(1, 4): Pure("0.25"), Fraction(1): Pure(1)}
    if broken:
        costs[Fraction(1, 4)] = Pure(1)

    def run(with_person: bool, times: int) -> np.ndarray:
        from halfmask.dp.accountant import SpendingScope

        paid = {Fraction(1, 4): Fraction(1, 4), Fraction(1): Fraction(1)}
        allowance = Accountant(Pure(1)).allow(Pure(1), "audit", scope=SpendingScope(paid, costs))
        strata = [
            Stratum(
                level,
                ExactCounts(np.full(times, 5 + (with_person and level == Fraction(own))), {}, {}),
            )
            for level in costs
        ]
        sampler = repeatable(21 + with_person)
        found = answer([Question("n", "count")], strata, allowance, sampler=sampler)
        return found.figures[0].values

    return least_epsilon(run, 100_000)


def test_audit_of_people_at_each_level() -> None:
    assert _audit("1/4", broken=False) <= 0.25
    assert _audit("1", broken=False) <= 1
    assert _audit("1/4", broken=True) > 0.25


def test_a_level_whose_unit_is_larger_than_what_it_pays_does_not_leave() -> None:
    from halfmask.dp.accountant import SpendingScope

    paid = {Fraction(1, 4): Fraction(1, 4)}
    wrong = SpendingScope(paid, {Fraction(1, 4): Pure(1)})
    allowance = Accountant(Pure(1)).allow(Pure(1), "x", scope=wrong)
    with pytest.raises(hm.errors.InternalError, match="unit of a level"):
        allowance.receipt().verify()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM p WITH PERSONAL EPSILON SHARE 2", "at most 1"),
        ("SELECT COUNT(*) FROM p WITH EPSILON 1 SHARE 0.5", "expected"),
        (
            "SELECT own2, COUNT(*) FROM p GROUP BY own2 WITH PERSONAL EPSILON DELTA 1e-6",
            "no column",
        ),
    ],
    ids=["more than all", "a share of what", "an unknown column"],
)
def test_faults_are_pointed_at(sql: str, words: str) -> None:
    with pytest.raises(hm.errors.QueryError, match=words):
        hm.query(hm.read(people(30), schema()), sql)


def test_hidden_groups_have_no_personal_epsilon() -> None:
    table = people(30).append_column("job", pa.array(["a"] * 30))
    sql = "SELECT job, COUNT(*) FROM p GROUP BY job WITH PERSONAL EPSILON DELTA 1e-6"
    with pytest.raises(hm.errors.QueryError, match="groups are public"):
        hm.query(hm.read(table, schema()), sql)


def test_without_a_policy_it_says_how() -> None:
    with pytest.raises(hm.errors.QueryError, match=r"\[policy\] epsilon"):
        hm.query(pa.table({"a": [1]}), "SELECT COUNT(*) FROM p WITH PERSONAL EPSILON")


def test_demands_that_are_no_numbers_are_told_by_their_type() -> None:
    engine = DuckDB({"people": people(9).drop_columns("own").append_column("own", [["a"] * 9])})
    with pytest.raises(hm.errors.SchemaError, match="holds no numbers"):
        hm.query(
            "people",
            "SELECT COUNT(*) FROM people WITH EPSILON 0.5",
            engine=engine,
            schema={"people": schema()},
        )
    engine.close()
