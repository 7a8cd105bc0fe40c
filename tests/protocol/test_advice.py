"""Advice from public numbers alone: Poisson and binomial chances worked out here by sums."""

from __future__ import annotations

import json
import math

import pytest

from halfmask.cli.main import run
from halfmask.errors import InputError, ParameterError
from halfmask.protocol.advice import advise, least_epsilon
from halfmask.protocol.common_schema import commons_from

CITIES = ["Bourges", "Orléans", "Paris", "Versailles", "Vierzon"]
TREE = {"Centre": ["Bourges", "Orléans", "Vierzon"], "Region": ["Paris", "Versailles"]}
COLUMNS = {
    "city": {"role": "quasi", "values": CITIES, "hierarchy": {"tree": TREE}},
    "age": {"type": "integer", "role": "quasi"},
    "ill": {"role": "sensitive", "values": ["flu", "cold", "gout", "none"]},
}
SQL = (
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 3 "
    "THEN city -> up GUARANTEE k = 9"
)


def commons():
    return commons_from({"tables": {"people": {"columns": COLUMNS}}})


def at_least(k: int, mean: float) -> float:
    return 1 - sum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(k))


def test_every_level_is_told_what_it_can_expect():
    fine, coarse = advise(commons(), SQL, 50)
    assert (fine.groups, fine.mean, fine.k, fine.l) == (5, 10.0, 3, 1)
    assert fine.published == pytest.approx(at_least(2, 10), abs=1e-4)
    # P(X >= 5) = 0.9707 and P(X >= 6) = 0.9329 for a mean of 10.
    assert fine.reached_k == 5
    assert at_least(5, 10) >= 0.95 > at_least(6, 10)
    assert (coarse.groups, coarse.mean) == (2, 25.0)
    assert coarse.published == pytest.approx(at_least(8, 25), abs=1e-4)
    assert at_least(coarse.reached_k, 25) >= 0.95 > at_least(coarse.reached_k + 1, 25)
    assert fine.reached_l is None


def test_values_of_a_sensitive_column_limit_l():
    sql = "SELECT city, COUNT(ill) AS n FROM people GROUP BY city GUARANTEE k = 3, l = 2 OF (ill)"
    (one,) = advise(commons(), sql, 50)
    chance = 1 - math.exp(-10 / 4)  # that one of four values is among ten people

    def held(l: int) -> float:  # noqa: E741
        return sum(math.comb(4, i) * chance**i * (1 - chance) ** (4 - i) for i in range(l, 5))

    assert one.reached_l == 3
    assert held(3) >= 0.95 > held(4)


def test_epsilon_follows_from_groups_and_cells():
    # Six answers (a missing city is one) and 50 cells: a = 1.96 sqrt(5 / 50) = 0.61980.
    a = 1.959964 * math.sqrt(5 / 50)
    assert least_epsilon(6, 50) == pytest.approx(-math.log((1 - a) / (1 + 5 * a)), abs=1e-3)
    assert least_epsilon(6, 19) is None  # 1.96^2 * 5 = 19.2 cells at least
    assert least_epsilon(6, 20) is not None
    assert advise(commons(), SQL, 50)[0].epsilon == least_epsilon(6, 50)


def test_numbers_without_listed_values_need_their_span():
    sql = (
        "SELECT age, COUNT(*) AS n FROM people GROUP BY age GUARANTEE k = 3 "
        "THEN age -> 20 GUARANTEE k = 5"
    )
    with pytest.raises(InputError, match="does not list the values of 'age'"):
        advise(commons(), sql, 50)
    fine, coarse = advise(commons(), sql, 1000, spans={"age": (17, 90)})
    assert (fine.groups, coarse.groups) == (74, 5)  # [0, 20) ... [80, 100)
    with pytest.raises(ParameterError):
        advise(commons(), sql, 50, spans={"age": (90, 17)})
    with pytest.raises(ParameterError):
        advise(commons(), SQL, 0)


def test_the_verb(tmp_path, capsys):
    file = tmp_path / "people.toml"
    file.write_text(
        '[tables.people.columns.city]\nrole = "quasi"\nvalues = ["a", "b"]\n', encoding="utf-8"
    )
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 3"
    for given, code in ((["--json"], 0), ([], 0), (["--span", "city=a"], 1)):
        with pytest.raises(SystemExit) as stop:
            run(["cells", "advise", sql, "--commons", str(file), "--cells", "20", *given])
        assert stop.value.code == code
        told = capsys.readouterr()
        if given == ["--json"]:
            document = json.loads(told.out)
            assert document["levels"][0]["groups"] == 2
            assert "spread" in document["note"]
