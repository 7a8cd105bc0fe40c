"""Without a trusted centre as well: a cell whose demand cannot be met does not show."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from effort import THOROUGH
from questions import Grammar, Source

from halfmask.errors import HalfmaskError
from halfmask.protocol.common_schema import Terms, commons_from
from halfmask.protocol.simulate import simulate

if TYPE_CHECKING:
    from interference import Count

UNMEETABLE = 1_000_000
COMMONS = commons_from(
    {
        "tables": {
            "people": {
                "columns": {
                    "age": {"type": "integer", "role": "quasi"},
                    "city": {
                        "type": "text",
                        "role": "quasi",
                        "values": ["x", "y", "z"],
                        "hierarchy": {"tree": {"*": {"east": ["x", "y"], "west": ["z"]}}},
                    },
                    "salary": {"type": "integer", "role": "sensitive"},
                    "kwh": {"type": "float", "role": "sensitive"},
                    "code": {"type": "text", "role": "sensitive"},
                    "seen": {"type": "date", "role": "sensitive"},
                    "flag": {"type": "boolean", "role": "sensitive"},
                }
            }
        }
    }
)
TERMS = Terms(partition=16, frame=16, room=256)
PLANTED = 7
SPOKEN_OF = Source(
    "",
    "people",
    {"number": ("salary", "kwh"), "text": ("code",), "date": ("seen",), "truth": ("flag",)},
    {"number": ("age",), "text": ("city",)},
    bound=False,
)


def people(seed: int) -> dict[str, list[Any]]:
    r = random.Random(seed)
    n = 40
    return {
        "age": [r.randrange(20, 60) for _ in range(n)],
        "city": [r.choice("xyz") for _ in range(n)],
        "salary": [r.randrange(1000, 5000) for _ in range(n)],
        "kwh": [r.randrange(4000) / 8 for _ in range(n)],
        "code": [r.choice(["12", "7", "1e3", "x7", ""]) for _ in range(n)],
        "seen": [date(2020, 1, 1) + timedelta(r.randrange(900)) for _ in range(n)],
        "flag": [r.random() < 0.5 for _ in range(n)],
        "k": [UNMEETABLE if i == PLANTED else r.choice([1, 2, 3, 9]) for i in range(n)],
        "l": [1] * n,
    }


VALUES: dict[str, list[Any]] = {
    "age": [20, 59, None, 0, -(2**63), 2**63 - 1],
    "city": ["x", "y", "z", None, "nowhere"],
    "salary": [1000, 0, None, 2**63 - 1, -(2**63)],
    "kwh": [1.0, float("nan"), float("inf"), -1e308, 5e-324, None],
    "code": ["1e400", "999999999999999999999", "nan", "a" * 70_000, None],
    "seen": [date(1, 1, 1), date(9999, 12, 31), None],
    "flag": [True, False, None],
}


def other(rows: dict[str, list[Any]], seed: int) -> dict[str, list[Any]]:
    r = random.Random(seed)
    changed = {name: list(values) for name, values in rows.items()}
    for name, values in VALUES.items():
        if r.random() < 0.7:
            changed[name][PLANTED] = r.choice(values)
    return changed


def question(seed: int) -> str:
    r = random.Random(seed)
    keys = r.sample(["age", "city"], r.choice([1, 2]))
    figures = [
        "COUNT(*)",
        "SUM(salary)",
        "AVG(kwh)",
        "MAX(salary)",
        "SUM(salary + 1)",
        "SUM(CASE WHEN salary > 2000 THEN 1 ELSE 0 END)",
        "VARIANCE(kwh)",
        "COUNT(DISTINCT salary)",
    ]
    shown = [*keys, *(f"{f} AS x{i}" for i, f in enumerate(r.sample(figures, r.choice([1, 2]))))]
    grammar = Grammar(None, seed)
    figures += [f"{r.choice(['SUM', 'AVG', 'MAX'])}({grammar._number(SPOKEN_OF, 2)})"] * 4
    conditions = [
        "",
        "",
        "WHERE salary > 1500",
        "WHERE age > 30 AND city <> 'z'",
        "WHERE kwh / 2 < 99",
        f"WHERE {grammar._condition(SPOKEN_OF, 2)}",
        f"WHERE {grammar._condition(SPOKEN_OF, 2)}",
    ]
    steps = {"age": ["age -> 10", "age -> 20", "age -> del"], "city": ["city -> up", "city -> del"]}
    chain, k = "GUARANTEE k = 3", 3
    for key in keys:
        for step in steps[key]:
            k += 1
            chain += f" THEN {step} GUARANTEE k = {k}"
    semantics = r.choice(["selective", "complete", "complete-greedy"])
    return (
        f"SELECT {', '.join(shown)} FROM people {r.choice(conditions)} "  # noqa: S608 - a question
        f"GROUP BY {', '.join(keys)} {chain} SEMANTICS {semantics}"
    )


def see(rows: dict[str, list[Any]], sql: str) -> dict[str, Any]:
    fields = {f.name: f.type for f in COMMONS.tables["people"].arrow}
    table = pa.table({n: pa.array(v, type=fields.get(n, pa.int64())) for n, v in rows.items()})
    try:
        answer = simulate(COMMONS, table, sql, TERMS).answer
    except HalfmaskError as error:
        return {"refused": type(error).__name__, "code": error.code, "text": str(error)}
    return {
        "rows": list(map(repr, answer.to_arrow().to_pylist())),
        "document": repr(answer.to_dict()),
    }


@pytest.mark.parametrize("seed", range(20 if THOROUGH else 10))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_planted_cell_does_not_show(seed: int, count: Count) -> None:
    rows = people(seed)
    sql = question(seed)
    first = see(rows, sql)
    count.answers += 3
    for change in range(2):
        count.note(first)
        assert see(other(rows, 100 * seed + change), sql) == first, sql


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_most_questions_to_cells_have_rows() -> None:
    seen = [see(people(seed), question(seed)) for seed in range(12)]
    assert sum(bool(s.get("rows")) for s in seen) >= 8


@pytest.mark.parametrize(
    "where",
    ["WHERE salary > 1500", "WHERE NOT (age > 0 AND salary > 3000)"],
)
def test_an_l_that_no_row_gives_leaves_a_cell_out(where: str) -> None:
    # Of salary no values are counted: it only decides who is read.
    rows = people(3)
    rows["k"], rows["l"] = [3] * len(rows["k"]), [1] * len(rows["l"])
    rows["l"][PLANTED] = 2
    sql = f"SELECT AVG(kwh) AS x, COUNT(*) AS n FROM people {where} GUARANTEE k = 3, l = 2"  # noqa: S608
    seen = []
    for salary in (1000, 4000, None):
        rows["salary"][PLANTED] = salary
        seen.append(see(rows, sql))
    assert seen[0] == seen[1] == seen[2]
