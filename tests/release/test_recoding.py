from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from halfmask.errors import HierarchyError, SchemaError
from halfmask.release import Recoding, RecodingStep
from halfmask.release.recoding import _match as match
from halfmask.table import hierarchies
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def test_published_replaces_values_by_labels_and_leaves_suppressed_rows_out(lab):
    table = lab.people()
    recoding = Recoding.of(table, [{"age": 1, "zip": 0}])
    rows = recoding.published(table, lab.steps(0, -1, 0, 0, -1))
    assert rows["age"].to_pylist() == ["30-39", "50-59", "50-59"]
    assert rows["zip"].to_pylist() == ["35510", "35521", "35521"]


def test_level_0_keeps_the_type_only_where_every_row_has_it(lab):
    table = lab.people()
    recoding = Recoding.of(table, [{"age": 0, "zip": 0}, {"age": 1, "zip": 0}])
    assert recoding.published(table, lab.steps(0, 0, 0, 0, 0))["age"].type == pa.int64()
    mixed = recoding.published(table, lab.steps(0, 0, 1, 1, 1))["age"]
    assert mixed.to_pylist() == ["31", "38", "50-59", "50-59", "90-99"]


def test_a_level_above_the_height_suppresses_the_cell(lab):
    table = lab.people()
    recoding = Recoding.of(table, [{"age": 4, "zip": 0}])
    assert set(recoding.published(table, lab.steps(0, 0, 0, 0, 0))["age"].to_pylist()) == {"*"}


def test_missing_values_keep_their_own_label_below_the_top():
    table = Table(pa.table({"a": ["x", None, "y"]}), Schema({"a": Column("quasi")}))
    everyone = np.zeros(3, dtype=np.int32)
    as_is = Recoding.of(table, [{"a": 0}]).published(table, everyone)
    assert as_is["a"].to_pylist() == ["x", None, "y"]
    top = Recoding.of(table, [{"a": 1}]).published(table, everyone)
    assert top["a"].to_pylist() == ["*", "*", "*"]


def test_assign_takes_the_first_step_that_knows_the_class(lab):
    table = lab.people()
    steps = [
        RecodingStep({"age": 1, "zip": 0}, (("30-39", "35510"),)),
        RecodingStep({"age": 2, "zip": 1}, (("0-49", "3551*"), ("50-99", "3552*"))),
    ]
    assert Recoding.of(table, steps).assign(table).tolist() == [0, 0, 1, 1, -1]
    any_class = [*steps, RecodingStep({"age": 3, "zip": 5})]
    assert Recoding.of(table, any_class).assign(table).tolist() == [0, 0, 1, 1, 2]


def test_with_classes_states_what_the_rows_show(lab):
    table = lab.people()
    recoding = Recoding.of(table, [{"age": 1, "zip": 0}])
    stated = recoding.with_classes(table, lab.steps(0, 0, 0, 0, -1))
    assert stated.steps[0].classes == (("30-39", "35510"), ("50-59", "35521"))
    assert stated.assign(table).tolist() == [0, 0, 0, 0, -1]


def test_values_the_hierarchies_lack_are_counted_in_all_columns(lab):
    tree = hierarchies.Tree({"north": ["a"], "south": ["b"]})
    columns = {"p": Column("quasi", hierarchy=tree), "q": Column("quasi", hierarchy=tree)}
    recoding = Recoding(columns, (RecodingStep({"p": 1, "q": 1}),))
    new = Table(pa.table({"p": ["a", lab.CANARY, "b"], "q": [lab.CANARY, "y", "b"]}), Schema())
    with pytest.raises(HierarchyError) as caught:
        recoding.assign(new)
    assert len(caught.value.faults) == 2
    assert "'p'" in str(caught.value)
    assert "2" in caught.value.faults[1]
    assert lab.CANARY not in str(caught.value)


def test_a_missing_column_is_named(lab):
    recoding = Recoding.of(lab.people(), [{"age": 1, "zip": 0}])
    with pytest.raises(SchemaError, match="'zip'"):
        recoding.assign(Table(pa.table({"age": [1]}), Schema()))


def test_full_domain_means_one_step(lab):
    table = lab.people()
    one = Recoding.of(table, [{"age": 1, "zip": 0}])
    two = Recoding.of(table, [{"age": 1, "zip": 0}, {"age": 2, "zip": 0}])
    assert one.levels == {"age": 1, "zip": 0}
    assert two.levels is None
    assert repr(one) == "Recoding(age, zip; full-domain)"
    assert repr(two) == "Recoding(age, zip; 2 steps)"


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_tuples_fall_into_the_classes_whose_labels_are_all_theirs(data):
    columns = data.draw(st.integers(1, 4))
    names, known = [str(c) for c in range(columns)], ["a", "b", None]
    tuples = data.draw(st.lists(st.tuples(*[st.sampled_from(known)] * columns), max_size=12))
    stated = [*known, "seen nowhere"]
    classes = data.draw(st.lists(st.tuples(*[st.sampled_from(stated)] * columns), max_size=5))
    labels = [({word: i for i, word in enumerate(known)}, {0: np.arange(3)}) for _ in names]
    units = [
        np.array([known.index(one[c]) for one in tuples], dtype=np.int32) for c in range(columns)
    ]
    step = RecodingStep(dict.fromkeys(names, 0), classes=tuple(classes))
    assert match(names, step, labels, units).tolist() == [one in classes for one in tuples]
