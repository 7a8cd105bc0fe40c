"""An asker plants one odd value and sees whether a noisy question or a private table fails.

Whether anything fails, and how, must depend on no row: the odd value stands in the row of the
person whose presence is to be found out.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from effort import turn

import halfmask as hm

PEOPLE = 60
TYPES = {
    "id": pa.int64(),
    "city": pa.string(),
    "pay": pa.float64(),
    "whole": pa.int64(),
    "paid": pa.decimal128(38, 2),
    "day": pa.date32(),
    "at": pa.timestamp("ns"),
    "own": pa.int64(),
}
START = dt.date(2020, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
DOMAINS = {
    "city": ["Lille", "Nice"],
    "pay": {"low": 0, "high": 100, "bins": 4},
    "whole": {"low": 0, "high": 100, "bins": 4},
    "paid": {"low": 0, "high": 100, "bins": 4},
    "day": [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
    "at": [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)],
}
ODD = {
    "not a number": {"pay": float("nan")},
    "infinite": {"pay": float("inf")},
    "the largest number": {"pay": 1.7e308},
    "a large whole number": {"whole": 2**63 - 1},
    "a small whole number": {"whole": -(2**63)},
    "a long decimal": {"paid": Decimal("9" * 36)},
    "the last day": {"day": 2_932_896},
    "the first day": {"day": -719_162},
    "a billionth of a second": {"at": 1},
    "the last nanosecond": {"at": 2**63 - 1},
    "a city outside": {"city": "Paris"},
    "a long text": {"city": "x" * 2_000_000},
    "an odd text": {"city": "\x00\"';--"},
    "a large person": {"id": 2**63 - 1},
    "nobody": {"id": None},
    "a large demand": {"own": 2**63 - 1},
    "all missing": dict.fromkeys(["city", "pay", "whole", "paid", "day", "at", "own"]),
}
QUESTIONS = (
    "SELECT city, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY city WITH EPSILON 1",
    "SELECT AVG(whole) AS a, MEDIAN(pay) AS m, STDDEV(paid) AS d FROM people WITH EPSILON 1",
    "SELECT whole, COUNT(DISTINCT id) AS n FROM people GROUP BY whole WITH EPSILON 1",
    "SELECT day, at, COUNT(*) AS n FROM people GROUP BY day, at WITH EPSILON 1",
    "SELECT COUNT(*) AS n FROM people WHERE day + INTERVAL 1 YEAR > DATE '2020-01-01' "
    "AND whole * whole > 4 WITH EPSILON 1",
    "SELECT SUM(LEAST(GREATEST(EXTRACT(year FROM day), 1900), 2100)) AS y FROM people "
    "WITH EPSILON 1",
    "SELECT COUNT(*) AS n FROM people WITH PERSONAL EPSILON",
)
HIDDEN = (
    "SELECT day, COUNT(*) AS n FROM people GROUP BY day WITH EPSILON 1 DELTA 1e-6",
    "SELECT at, COUNT(*) AS n FROM people GROUP BY at WITH EPSILON 1 DELTA 1e-6",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city WITH EPSILON 1 DELTA 1e-6",
)


def rows(odd: dict[str, object] | None = None) -> pa.Table:
    found = {
        "id": list(range(PEOPLE)),
        "city": ["Lille", "Nice"] * (PEOPLE // 2),
        "pay": [float(i) for i in range(PEOPLE)],
        "whole": list(range(PEOPLE)),
        "paid": [Decimal(i) for i in range(PEOPLE)],
        "day": [START + i % 2 for i in range(PEOPLE)],
        "at": [(START + i % 2) * 86_400 * 10**9 for i in range(PEOPLE)],
        "own": [1] * PEOPLE,
    }
    for name, value in (odd or {}).items():
        found[name][7] = value
    plain = {"day": pa.int32(), "at": pa.int64()}
    return pa.table(
        {n: pa.array(v, plain.get(n, TYPES[n])).cast(TYPES[n]) for n, v in found.items()}
    )


def table(odd: dict[str, object] | None, *, declared: bool = True) -> hm.Table:
    columns = {name: {"role": "quasi", "domain": DOMAINS[name]} for name in DOMAINS}
    policy = {"epsilon": "own", "levels": {"epsilon": [1]}}
    schema = {"table": {"person": "id"}, "policy": policy, "columns": columns if declared else {}}
    return hm.read(rows(odd), schema=schema)


def outcome(work) -> str:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - whatever fails is what the asker sees
        return f"{type(error).__name__}: {error}"
    return "an answer"


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("odd", ODD)
def test_no_noisy_question_fails_on_a_planted_value(odd: str, engine: str) -> None:
    number = [*ODD].index(odd)
    for declared, questions in ((True, QUESTIONS), (False, HIDDEN)):
        asked = table(ODD[odd], declared=declared)
        few = -(-len(questions) // 2) if engine == "duckdb" else 3
        for sql in turn(questions, number, few):
            found = outcome(lambda q=sql, t=asked: hm.query({"people": t}, q, engine=engine))
            assert found == "an answer", sql


@pytest.mark.parametrize("method", ["marginals", "histogram"])
@pytest.mark.parametrize("odd", ODD)
def test_no_private_table_fails_on_a_planted_value(odd: str, method: str) -> None:
    few = {"marginals": 6, "histogram": 2}[method]
    names = list(DOMAINS)[-few:] if few < 6 else list(DOMAINS)
    chosen = [*names, *(n for n in ODD[odd] if n not in (*names, "id", "own"))][-few:]
    kept = table(ODD[odd]).arrow.select(["id", "own", *chosen])
    policy = {"epsilon": "own", "levels": {"epsilon": [1]}}
    asked = hm.read(kept, schema={"table": {"person": "id"}, "policy": policy})
    domains = {name: DOMAINS[name] for name in chosen}
    for epsilon in (1, "personal"):
        made = lambda e=epsilon: hm.synthesize(asked, method, epsilon=e, domains=domains)  # noqa: E731
        assert outcome(made) == "an answer"


@pytest.mark.parametrize("pay", [1.7e308, -1e308, 1e22, float("inf"), 5e-324])
def test_one_number_does_not_keep_a_table_from_being_described(pay: float) -> None:
    """Before, widths above what a hierarchy takes were proposed, and the service opened nothing."""
    planted = hm.read(rows({"pay": pay}).select(["city", "pay"]), schema=hm.Schema())
    proposal = hm.describe(planted).to_schema()
    assert len(hm.read(planted.arrow, proposal)) == PEOPLE
    assert proposal.columns["pay"].kind == "numeric"
