"""The check of a table as it stands, and what it says of tables it cannot check."""

from __future__ import annotations

import pyarrow as pa
import pytest

from halfmask.errors import ParameterError, SchemaError
from halfmask.models import (
    AlphaKAnonymity,
    DeltaPresence,
    KAnonymity,
    KMap,
    LDiversity,
    PersonalKAnonymity,
    TCloseness,
)
from halfmask.models.check import check
from halfmask.models.requirements import statistics
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

CANARY = "canary-7351"
QUASI = Schema({"q": Column("quasi")})


def faults(table, *models):
    with pytest.raises(SchemaError) as caught:
        check(table, *models)
    assert CANARY not in str(caught.value)
    return caught.value.faults


def test_several_models_and_columns_at_once(table):
    people = table(q=["a", "a", "b"], s=["x", "y", "x"], k=[1, 2, 1], other=[1, 1, 1])
    k, own, diverse, other = check(
        people, KAnonymity(2), PersonalKAnonymity(), LDiversity(2, "s"), LDiversity(2, "other")
    )
    assert (k.holds, k.failing_rows) == (False, 1)
    assert own.holds
    assert (own.required, own.achieved) == (2, 2)
    assert (diverse.failing_classes, diverse.column) == (1, "s")
    assert (other.failing_classes, other.column) == (2, "other")


def test_people_with_several_rows_count_once(table):
    people = table(q=["a"] * 4, person=[1, 1, 1, 2])
    (verdict,) = check(people, KAnonymity(3))
    assert (verdict.holds, verdict.achieved, verdict.failing_rows) == (False, 2, 4)


def test_k_above_the_table_is_a_verdict_not_an_error(table):
    (verdict,) = check(table(q=["a", "b"]), KAnonymity(100))
    assert (verdict.holds, verdict.achieved) == (False, 1)


def test_no_model_is_an_error(table):
    with pytest.raises(ParameterError, match="at least one model"):
        check(table(q=["a"]))
    with pytest.raises(ParameterError, match="models"):
        check(table(q=["a"]), 5)


def test_a_table_without_quasi_identifiers_rows_or_columns():
    bare = Table(pa.table({"q": [CANARY]}), Schema())
    assert "No column is declared a quasi-identifier" in faults(bare, KAnonymity(2))[0]
    empty = Table(pa.table({"q": pa.array([], pa.string())}), QUASI)
    assert "no rows" in faults(empty, KAnonymity(2))[0]
    other = Table(pa.table({"x": [CANARY]}), QUASI)
    assert "'q' is not in the table, which has: x" in faults(other, KAnonymity(2))[0]


def test_all_faults_come_together(table):
    people = table(q=[CANARY], s=[CANARY])
    found = faults(
        people,
        LDiversity(2, "disease"),
        TCloseness(0.1, "q"),
        PersonalKAnonymity(),
        TCloseness(0.1, "s", "ordered"),
        TCloseness(0.1, "s", "hierarchical"),
        AlphaKAnonymity(0.5, 2, "s", value="flu"),
    )
    assert len(found) == 6
    assert "'disease' is not in the table" in found[0]
    assert "'q' is a quasi-identifier" in found[1]
    assert "[policy]" in found[2]
    assert "declare its order" in found[3]
    assert "no hierarchy" in found[4]
    assert "value named is not in column 's'" in found[5]


def test_a_declared_order_is_used_for_the_ordered_distance():
    arrow = pa.table({"q": list("aabb"), "s": ["low", "mid", "mid", "high"]})
    columns = {"q": Column("quasi"), "s": Column("sensitive", order=("low", "mid", "high"))}
    (verdict,) = check(Table(arrow, Schema(columns)), TCloseness(1, "s", "ordered"))
    # Running shares of a: 1/2, 1, 1; of all rows: 1/4, 3/4, 1. (1/4 + 1/4) / 2.
    assert verdict.achieved == 0.25


def test_personal_demands_that_cannot_be_read(table):
    assert "holds text" in faults(table(q=["a"], k=[CANARY]), PersonalKAnonymity())[0]
    half = table(q=["a", "a"], k=[2, None])
    (verdict,) = check(half, PersonalKAnonymity())
    assert (verdict.holds, verdict.required, verdict.achieved) == (True, 2, 2)
    (verdict,) = check(half, PersonalKAnonymity(default=3))
    assert (verdict.holds, verdict.required, verdict.achieved) == (False, 3, 2)
    absent = Table(pa.table({"q": ["a"]}), Schema({"q": Column("quasi")}, policy={"k": "k_i"}))
    assert "'k_i' is not in the table" in faults(absent, PersonalKAnonymity())[0]


def test_who_states_nothing_asks_for_nothing_and_keeps_what_others_ask(table):
    for demands, passes in (([1, None], True), ([3, None], False)):
        classes, _ = statistics(Tuples.of(table(q=["a", "a"], k=demands)), [PersonalKAnonymity()])
        assert PersonalKAnonymity().passes(classes).all() == passes


def test_populations_that_do_not_fit(table):
    people = table(q=[CANARY])
    one, two = (Table(pa.table({"q": [CANARY]}), QUASI) for _ in range(2))
    found = faults(people, KMap(2, one), DeltaPresence(0, 1, two))
    assert found == ("The models compare with different populations: give all the same table.",)
    lacks = Table(pa.table({"x": [CANARY]}), Schema())
    assert "no column 'q'" in faults(people, KMap(2, lacks))[0]
    numbers = Table(pa.table({"q": [1]}), QUASI)
    assert "int64 in the population" in faults(people, KMap(2, numbers))[0]
    empty = Table(pa.table({"q": pa.array([], pa.string())}), QUASI)
    assert "population is empty" in faults(people, KMap(2, empty))[0]
    twice = Table(
        pa.table({"q": [CANARY, CANARY], "p": [1, 1]}), Schema({"q": Column("quasi")}, person="p")
    )
    assert "several rows of one person" in faults(people, KMap(2, twice))[0]


def test_a_population_that_lacks_people_of_the_table_fails(table):
    other = Table(pa.table({"q": ["a"]}), QUASI)
    (verdict,) = check(table(q=["a", "b"]), DeltaPresence(0, 1, other))
    assert (verdict.holds, verdict.failing_classes) == (False, 1)
    assert verdict.to_dict()["achieved"] is None
