from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError, UnsatisfiableError


def people(**columns):
    data = {
        "age": [31, 34, 38, 52, 57, 59],
        "sex": ["f", "m", "f", "m", "f", "m"],
        "disease": ["flu", "flu", "cold", "cold", "gout", "flu"],
    }
    schema = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
        "sex": "quasi",
        "disease": "sensitive",
    }
    return hm.read(pa.table(data | columns), schema={"columns": schema})


def test_the_optimum_of_a_table_small_enough_to_check_by_hand():
    release = hm.anonymize(people(), hm.KAnonymity(3), method="optimal")
    # Three women and three men: sex can stay if age goes (L = 1 and 0). Age by tens would do
    # without sex, but then loses 0.4 and 1.
    assert release.levels == {"age": 3, "sex": 0}
    assert release.loss == pytest.approx(2**0.5 - 1)
    assert release.suppressed == 0
    assert release.gap == 0.0


def test_suppression_is_used_up_to_its_share_and_no_further():
    lonely = people(age=[31, 31, 31, 31, 31, 99], sex=["f"] * 6)
    best = {"method": "optimal"}
    assert hm.anonymize(lonely, hm.KAnonymity(2), suppression=0.17, **best).suppressed == 1
    assert hm.anonymize(lonely, hm.KAnonymity(2), suppression=0.16, **best).suppressed == 0


def test_several_models_and_columns_combine():
    release = hm.anonymize(people(), hm.KAnonymity(2), hm.LDiversity(3, "disease"))
    assert [v.holds for v in release.verdicts] == [True, True]
    assert release.verdicts[1].achieved == 3


def test_nothing_satisfies_the_models_and_the_error_says_what_comes_closest():
    with pytest.raises(UnsatisfiableError) as caught:
        hm.anonymize(people(), hm.KAnonymity(7))
    error = caught.value
    assert error.exit_code == 2
    assert [(v.required, v.achieved) for v in error.verdicts] == [(7, 6)]
    assert set(error.levels) == {"age", "sex"}
    assert "7 is required" in str(error)


def test_a_table_is_never_suppressed_whole():
    with pytest.raises(UnsatisfiableError):
        hm.anonymize(people(), hm.LDiversity(4, "disease"), suppression=1.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"method": "magic"}, "optimal, local"),
        ({"suppression": 1.5}, "0 to 1"),
        ({"suppression": "much"}, "0 to 1"),
        ({"metric": "beauty"}, "loss, mean-loss"),
        ({"time_limit": 0}, "above 0"),
    ],
    ids=["method", "suppression above 1", "suppression as text", "metric", "time limit"],
)
def test_parameters_out_of_range_are_named_with_what_is_possible(arguments, says):
    with pytest.raises(ParameterError, match=says):
        hm.anonymize(people(), hm.KAnonymity(2), **arguments)


def test_a_frame_that_was_not_read_is_refused_with_what_to_do():
    with pytest.raises(InputError, match=r"hm\.read"):
        hm.anonymize(pa.table({"age": [1]}), hm.KAnonymity(2))


def test_no_model_is_an_error():
    with pytest.raises(InputError, match="KAnonymity"):
        hm.anonymize(people())


def test_a_column_nobody_declared_does_not_leave():
    table = hm.read(
        pa.table({"age": [1, 1], "note": ["x", "y"]}), schema={"columns": {"age": "quasi"}}
    )
    with pytest.raises(SchemaError, match="note"):
        hm.anonymize(table, hm.KAnonymity(2))


def test_people_with_several_rows_count_once():
    data = pa.table({"id": [1, 1, 1, 2, 3], "age": [30, 30, 30, 40, 40]})
    schema = {"table": {"person": "id"}, "columns": {"age": "quasi"}}
    release = hm.anonymize(hm.read(data, schema=schema), hm.KAnonymity(2), method="optimal")
    assert release.levels == {"age": 1}
    assert "id" not in release.to_arrow().column_names


def test_personal_demands_are_met_row_by_row():
    data = pa.table({"age": [31, 32, 51, 52, 53, 54], "k_i": [2, 2, 4, 1, 1, 1]})
    schema = {
        "policy": {"k": "k_i"},
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 100]}}},
    }
    table = hm.read(data, schema=schema)
    release = hm.anonymize(table, hm.PersonalKAnonymity(), method="optimal")
    assert release.levels == {"age": 1}
    assert release.to_arrow().column_names == ["age"]


def test_missing_values_are_a_value_of_their_own():
    data = pa.table({"age": [None, None, 31, 31], "sex": ["f", "f", None, "m"]})
    table = hm.read(data, schema={"columns": {"age": "quasi", "sex": "quasi"}})
    release = hm.anonymize(table, hm.KAnonymity(2), method="optimal")
    assert len(release) == 4
    assert release.levels == {"age": 0, "sex": 1}
    assert sorted(release.to_arrow()["age"].to_pylist(), key=str) == [31, 31, None, None]
