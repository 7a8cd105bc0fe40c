"""Which cells are sensitive, against the definitions written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, ParameterError, PrivacyError, SchemaError
from halfmask.tabulate.cube import count_cube, ladders
from halfmask.tabulate.sensitivity_rules import SensitivityRules, dominance_pairs, find_sensitive

FOOTBALL = {
    "age": [35, 32, 20, 27, 32, 32],
    "club": ["PSG"] * 4 + ["OM"] * 2,
    "salary": [1160, 1500, 1730, 3060, 500, 500],
}


def cube_of(amounts, **more):
    rows = {"g": ["x"] * len(amounts), "v": amounts}
    table = hm.read(rows, schema={"columns": {"g": "quasi", "v": "other"}})
    return count_cube(table, ladders(table, ["g"], {}, margins=False), amount="v", **more)


def sensitive(amounts, **rules):
    return find_sensitive(cube_of(amounts, most=5), SensitivityRules(**rules))


@pytest.mark.parametrize(
    ("amounts", "rules", "broken"),
    [
        ([95, 3, 2], {"p": 10}, True),  # 2 left, 9.5 needed
        ([50, 30, 20], {"p": 10}, False),  # 20 left, 5 needed
        ([100], {"p": 10}, True),
        ([60, 25, 15], {"dominance": ((2, 80.0),)}, True),  # 85 %
        ([40, 30, 30], {"dominance": ((2, 80.0),)}, False),  # 70 %
        ([1, 1], {"threshold": 3}, True),
        ([1, 1, 1], {"threshold": 3}, False),
    ],
)
def test_worked_examples(amounts, rules, broken):
    assert bool(sensitive(amounts, **rules).cells[0]) is broken


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=7),
    st.integers(1, 100),
    st.integers(1, 3),
    st.integers(1, 99),
)
def test_dominance_and_p_are_as_defined(amounts, p, n, percent):
    ranked, total = sorted(amounts, reverse=True), sum(amounts)
    if not total:
        return
    rest = total - sum(ranked[:2])
    lack = Fraction(p, 100) * ranked[0] - rest
    if lack:  # where it is nothing, close counts
        assert bool(sensitive(amounts, p=p).cells[0]) is (lack > 0)
    share = sum(ranked[:n]) - Fraction(percent, 100) * total
    if share:
        found = sensitive(amounts, dominance=((n, float(percent)),))
        assert bool(found.cells[0]) is (share > 0)


def test_the_doubt_that_p_asks_for():
    found = sensitive([95, 3, 2], p=10)
    # The second must not be able to estimate the first below 104.5: 100 - 3 + rise >= 104.5
    assert found.rise[0] == pytest.approx(7.5)


def test_footballers_by_club():
    table = hm.read(
        FOOTBALL, schema={"columns": {"age": "quasi", "club": "quasi", "salary": "sensitive"}}
    )
    release = hm.tabulate(table, "club", sum="salary", threshold=2)
    assert release.to_arrow()["sum of salary"].to_pylist() == [1000, 7450, 8450]
    # Both of OM earn the same: l = 2 forbids the sum, and the one beside it would give it away.
    diverse = hm.tabulate(table, "club", sum="salary", threshold=2, l={"salary": 2})
    assert diverse.to_arrow()["sum of salary"].to_pylist() == [None, None, 8450]


def test_everybody_of_one_age_being_divorced_is_not_told():
    rows = {
        "age": ["50-59"] * 5 + ["40-49"] * 10,
        "state": ["divorced"] * 5 + ["divorced", "married"] * 5,
    }
    table = hm.read(rows, schema={"columns": {"age": "quasi", "state": "sensitive"}})
    told = hm.tabulate(table, ["age", "state"], threshold=3)
    assert told.withheld == 0
    release = hm.tabulate(table, ["age", "state"], threshold=3, l={"state": 2})
    shown = release.to_crossed().to_pylist()
    line = next(row for row in shown if row["age"] == "50-59")
    assert (line["divorced"], line["married"], line["Total"]) == (None, None, 5)


def test_negative_amounts_and_shares():
    with pytest.raises(InputError, match="negative"):
        sensitive([5, -1, 4], p=10)
    table = hm.read(
        {"g": ["x", "y"] * 4, "v": [1, -2, 3, 4, 5, 6, 7, 8]},
        schema={"columns": {"g": "quasi", "v": "other"}},
    )
    release = hm.tabulate(table, "g", sum="v", threshold=2)
    assert release.to_arrow()["sum of v"].to_pylist() == [16, 16, 32]


def test_people_with_several_rows_count_once():
    rows = {"who": [1, 1, 1, 2, 3, 4], "g": ["x"] * 4 + ["y"] * 2}
    schema = {"table": {"person": "who"}, "columns": {"who": "identifier", "g": "quasi"}}
    table = hm.read(rows, schema=schema)
    people = hm.tabulate(table, "g", threshold=2)
    assert people.to_arrow()["count"].to_pylist() == [2, 2, 4]
    listed = hm.tabulate(table, "g", count="rows", threshold=2)
    assert listed.to_arrow()["rows"].to_pylist() == [4, 2, 6]
    with pytest.raises(PrivacyError):
        hm.tabulate(table, "g", count="rows", threshold=5)


def test_people_in_several_cells_do_not_add_up():
    rows = {"who": [1, 1, 2, 3, 4], "g": ["x", "y", "x", "y", "x"]}
    schema = {"table": {"person": "who"}, "columns": {"who": "identifier", "g": "quasi"}}
    with pytest.raises(InputError, match="do not add up to their totals: count rows"):
        hm.tabulate(hm.read(rows, schema=schema), "g", threshold=2)


def test_missing_values_are_a_category():
    rows = {"g": ["x", None, None, "x"], "h": ["u", "u", "v", "v"]}
    table = hm.read(rows, schema={"columns": {"g": "quasi", "h": "quasi"}})
    release = hm.tabulate(table, "g", threshold=2)
    assert release.to_arrow()["g"].to_pylist() == ["x", "(missing)", "Total"]
    assert release.to_arrow()["count"].to_pylist() == [2, 2, 4]


def test_missing_amounts_contribute_nothing():
    rows = {"g": ["x"] * 4, "v": [1.0, None, 2.0, None]}
    table = hm.read(rows, schema={"columns": {"g": "quasi", "v": "other"}})
    assert hm.tabulate(table, "g", sum="v", threshold=2).to_arrow()[1].to_pylist() == [3, 3]
    with pytest.raises(PrivacyError):
        hm.tabulate(table, "g", sum="v", threshold=3)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"by": ["nothing"]}, "is not there"),
        ({"by": []}, "at least one column"),
        ({"by": ["g", "g"]}, "named twice"),
        ({"by": ["who"]}, "identifies people"),
        ({"by": ["g"], "sum": "nothing"}, "is not there"),
        ({"by": ["g"], "sum": "g"}, "holds no numbers"),
        ({"by": ["g"], "sum": "who"}, "identifies people"),
        ({"by": ["loose"]}, "not declared"),
    ],
)
def test_unknown_columns(more, words):
    rows = {"who": [1, 2], "g": ["x", "y"], "loose": ["u", "v"]}
    schema = {"columns": {"who": "identifier", "g": "quasi"}}
    table = hm.read(rows, schema=schema)
    with pytest.raises(SchemaError, match=words):
        hm.tabulate(table, **more, threshold=2)


@pytest.mark.parametrize(
    "more",
    [
        {"threshold": 0}, {"threshold": 2.5}, {"p": 0}, {"p": 101}, {"dominance": (0, 50)},
        {"dominance": (1, 100)}, {"dominance": "2,80"}, {"protection": 0}, {"l": {"g": 2}},
        {"method": "magic"}, {"levels": {"g": 9}}, {"levels": {"z": 1}}, {"levels": {"g": "up"}},
        {"count": "heads"}, {"cost": "money"}, {"time_limit": 0}, {"base": 5},
        {"demands": "maybe"},
    ],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range(more):
    table = hm.read({"g": ["x", "y"] * 3}, schema={"columns": {"g": "quasi"}})
    with pytest.raises(ParameterError):
        hm.tabulate(table, "g", **{"threshold": 2, **more})


def test_several_dominance_rules():
    assert dominance_pairs((2, 80)) == ((2, 80.0),)
    assert dominance_pairs([(1, 50), (2, 80)]) == ((1, 50.0), (2, 80.0))
    assert dominance_pairs(None) == ()


def test_labels_that_are_spelled_alike():
    table = hm.read({"g": ["Total", "y"] * 3}, schema={"columns": {"g": "quasi"}})
    with pytest.raises(InputError, match="spelled alike"):
        hm.tabulate(table, "g", threshold=2)


def test_largest_contributions_are_of_people():
    rows = {"who": [1, 1, 2, 3], "g": ["x"] * 4, "v": [5, 6, 7, 1]}
    schema = {
        "table": {"person": "who"},
        "columns": {"who": "identifier", "g": "quasi", "v": "other"},
    }
    table = hm.read(rows, schema=schema)
    cube = count_cube(table, ladders(table, ["g"], {}, margins=False), amount="v", most=3)
    assert cube.largest[:, 0].tolist() == [11, 7, 1]
    assert np.array_equal(cube.people, [3])


CANARY = "Q7canary"


@pytest.mark.parametrize(
    "more",
    [
        {"by": ["g"], "threshold": 50},
        {"by": ["g", "h"], "sum": "h", "threshold": 2},
        {"by": ["g"], "sum": "v", "p": 10},
        {"by": ["g", "t"], "threshold": 2},
        {"by": ["g"], "method": "cell-key", "threshold": 9, "variance": 0.5, "maximum": 1},
        {"by": ["g"], "method": "round", "base": 2, "threshold": 9},
    ],
    ids=str,
)
def test_no_value_of_the_table_is_in_an_error(more):
    rows = {"g": [CANARY] * 3 + ["y"] * 3, "h": [CANARY + "h"] * 6, "t": ["Total", CANARY] * 3,
            "v": [777123, -777123, 5, 6, 7, 8]}  # fmt: skip
    schema = {"columns": {"g": "quasi", "h": "quasi", "t": "quasi", "v": "other"}}
    with pytest.raises(hm.HalfmaskError) as caught:
        hm.tabulate(hm.read(rows, schema=schema), **more)
    assert CANARY not in str(caught.value)
    assert "777123" not in str(caught.value)
