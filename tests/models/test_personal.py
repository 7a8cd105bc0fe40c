"""Personal models on the thesis's Table 5.1 and on tables checked by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import SchemaError

ZIPS = ["1402*"] * 3 + ["141**"] * 4 + ["1402*"] * 2
AGES = ["25-35"] * 3 + ["38-45"] * 4 + ["50-70"] * 2
CONDITION = ["Cancer", "Heart", "Cancer", "Heart", "Viral", "Viral", "Cancer", "Viral", "Cancer"]


def table(**policy: list) -> hm.Table:
    columns = {"zip": ZIPS, "age": AGES, "condition": CONDITION}
    columns |= {f"{demand}_i": values for demand, values in policy.items()}
    schema = hm.Schema(
        {"zip": "quasi", "age": "quasi", "condition": "sensitive"},
        policy={demand: f"{demand}_i" for demand in policy},
    )
    return hm.Table(pa.table(columns), schema)


def test_table_51_is_accepted():
    (verdict,) = hm.check(table(k=[2, 2, 2, 3, 3, 2, 3, 2, 2]), hm.PersonalKAnonymity())
    assert verdict.holds
    assert (verdict.classes, verdict.required) == (3, 3)


def test_table_51_fails_when_row_8_asks_for_three():
    (verdict,) = hm.check(table(k=[2, 2, 2, 3, 3, 2, 3, 3, 2]), hm.PersonalKAnonymity())
    assert not verdict.holds
    assert (verdict.failing_classes, verdict.failing_rows, verdict.achieved) == (1, 2, 2)


def test_each_person_gets_the_diversity_they_ask_for():
    (verdict,) = hm.check(table(l=[2, 1, 1, 3, 1, 1, 1, 2, 2]), hm.PersonalLDiversity("condition"))
    assert verdict.holds
    assert (verdict.required, verdict.achieved) == (3, 3)
    (verdict,) = hm.check(table(l=[3, 1, 1, 3, 1, 1, 1, 2, 2]), hm.PersonalLDiversity("condition"))
    assert not verdict.holds
    assert (verdict.failing_rows, verdict.achieved) == (3, 2)


def test_each_person_gets_the_closeness_they_ask_for():
    # The table has Cancer 4/9, Heart 2/9, Viral 3/9; the classes lie 1/3, 5/18 - 1/18 ... apart.
    # class 1: (2/3, 1/3, 0): (2/9 + 1/9) = 1/3; class 2: (1/4, 1/4, 1/2): 1/36 + 6/36 = 7/36;
    # class 3: (1/2, 0, 1/2): 1/18 + 1/6 = 2/9.
    own = [0.34, 1, 1, 0.2, 1, 1, 1, 0.23, 1]
    (verdict,) = hm.check(table(t=own), hm.PersonalTCloseness("condition"))
    assert verdict.holds
    assert verdict.required == 0.2
    assert verdict.achieved == pytest.approx(7 / 36)
    own[0] = 0.33
    (verdict,) = hm.check(table(t=own), hm.PersonalTCloseness("condition"))
    assert not verdict.holds
    assert verdict.achieved == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("policy", "model", "words"),
    [
        ({"k": [2, 2.5, 2, 3, 3, 2, 3, 2, 2]}, hm.PersonalKAnonymity(), "1 rows are not whole"),
        ({"k": [0, -1, 2, 3, 3, 2, 3, 2, 2]}, hm.PersonalKAnonymity(), "2 rows are below 1"),
        ({"l": [0] * 9}, hm.PersonalLDiversity("condition"), "'l_i': 9 rows are below 1"),
        ({"t": [1.5] * 9}, hm.PersonalTCloseness("condition"), "9 rows are not from 0 to 1"),
    ],
    ids=["not whole", "below one", "l below one", "t above one"],
)
def test_a_demand_that_cannot_be_meant_is_refused_with_column_and_count(policy, model, words):
    with pytest.raises(SchemaError, match=words):
        hm.check(table(**policy), model)


def test_demands_for_t_are_read_from_files(tmp_path):
    (tmp_path / "p.csv").write_text("age,disease,t_i\n30,flu,0.5\n30,cold,1\n")
    schema = {"policy": {"t": "t_i"}, "columns": {"age": "quasi", "disease": "sensitive"}}
    (verdict,) = hm.check(
        hm.read(tmp_path / "p.csv", schema=schema), hm.PersonalTCloseness("disease")
    )
    assert verdict.holds
    (tmp_path / "q.csv").write_text("age,disease,t_i\n30,flu,1.5\n30,cold,\n")
    with pytest.raises(SchemaError, match="1 are not from 0 to 1"):
        hm.read(tmp_path / "q.csv", schema=schema)


def test_personal_closeness_may_break_when_classes_merge():
    rows = {"x": [0, 0, 1, 1], "s": ["a", "b", "a", "a"], "t_i": [0.3, 0.3, 1.0, 1.0]}
    schema = hm.Schema({"x": "quasi", "s": "sensitive"}, policy={"t": "t_i"})
    more = {"x": [2] * 4, "s": ["b"] * 4, "t_i": [1.0] * 4}
    apart = hm.Table(pa.table({n: rows[n] + more[n] for n in rows}), schema)
    (verdict,) = hm.check(apart, hm.PersonalTCloseness("s"))
    assert verdict.holds  # 1/2 against 3/8 is 1/8 away
    merged = {**rows, "x": [0, 0, 0, 0]}  # 3/4 against 3/8 is 3/8 away
    (verdict,) = hm.check(
        hm.Table(pa.table({n: merged[n] + more[n] for n in rows}), schema),
        hm.PersonalTCloseness("s"),
    )
    assert not verdict.holds
    assert not hm.PersonalTCloseness.monotone


def test_demands_are_told_by_people_and_not_by_their_rows(tmp_path):
    """a demands 2 in three rows, b and c demand 2 and 3 in one each, d demands nothing."""
    rows = {"who": list("aaabcdd"), "town": ["x"] * 7, "own": [2, None, 2, 2, 3, None, None]}
    schema = {
        "table": {"person": "who"},
        "policy": {"k": "own"},
        "columns": {"who": "identifier", "town": "quasi"},
    }
    table = hm.read(pa.table(rows), schema=schema)
    wanted = [(2, 2, 4), (3, 1, 4)]
    (verdict,) = hm.check(table)
    assert [(d.demanded, d.people, d.reached) for d in verdict.demands] == wanted
    for method in ("optimal", "mondrian"):
        (verdict,) = hm.anonymize(table, method=method).verdicts
        assert [(d.demanded, d.people, d.reached) for d in verdict.demands] == wanted
    assert hm.assess(table).people == 4
