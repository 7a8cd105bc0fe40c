from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InternalError, ParameterError, PrivacyError, SchemaError
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.l_diversity import LDiversity
from halfmask.models.personal import PersonalKAnonymity
from halfmask.models.population import DeltaPresence, KMap
from halfmask.models.verdict import Verdict
from halfmask.release import Recoding, RecodingStep, seal
from halfmask.release.seal import published_columns
from halfmask.release.verification import require_verdicts
from halfmask.table.columns import Column
from halfmask.table.files.rows import incoming_types
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def test_the_rows_that_leave_are_those_of_the_candidate(lab):
    release = seal(lab.candidate())
    assert lab.row_set(release.to_arrow()) == sorted(
        [
            ("30-39", "35510", "flu", 61.5),
            ("30-39", "35510", "o'brien", 70.0),
            ("50-59", "35521", None, 82.25),
            ("50-59", "35521", "flu", None),
        ],
        key=repr,
    )
    assert release.rows == 4
    assert release.suppressed == 1
    assert release.levels == {"age": 1, "zip": 0}
    assert release.verdicts[0].holds
    assert release.verdicts[0].achieved == 2
    assert release.loss == pytest.approx(math.sqrt(1.4 * 1.2) - 1, abs=1e-12)


def test_identifiers_person_and_policies_do_not_leave(lab):
    rows = pa.table(
        {"id": ["a", "b"], "who": [1, 2], "k_i": [2, 2], "sex": ["m", "m"], "note": ["x", "y"]}
    )
    schema = Schema(
        {"id": Column("identifier"), "sex": Column("quasi"), "note": Column("other")},
        person="who",
        policy={"k": "k_i"},
    )
    table = Table(rows, schema)
    release = seal(
        lab.candidate(
            table,
            models=[PersonalKAnonymity()],
            recoding=Recoding.of(table, [{"sex": 0}]),
            step=lab.steps(0, 0),
        )
    )
    assert release.to_arrow().column_names == ["sex", "note"]
    assert {c.name: c.role for c in release.columns} == {
        "id": "identifier",
        "who": "person",
        "k_i": "policy",
        "sex": "quasi",
        "note": "other",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": [0, 0, 0, 0, 0], "parameters": {}}, "break k-anonymity"),
        ({"step": [0, 0, 0, -1, -1], "parameters": {}}, "lead each row"),
        ({"step": [0, 0, 0, -1, -1]}, "more rows than allowed"),
        ({"step": [0, 0, 0, 0]}, "do not match"),
        ({"step": [0, 0, 0, 0, 1]}, "do not match"),
        ({"step": [0, 0, 0, 0, -2]}, "do not match"),
        ({"loss": 0.1}, "another loss"),
        ({"models": [LDiversity(3, "disease")]}, "break distinct l-diversity"),
    ],
    ids=[
        "a row too many stands alone",
        "part of a class is suppressed",
        "too many rows are suppressed",
        "a row has no step",
        "a step does not exist",
        "a step is below -1",
        "the claimed loss is wrong",
        "a sensitive column is not diverse",
    ],
)
def test_a_wrong_candidate_does_not_leave(lab, changes, message):
    if "step" in changes:
        changes["step"] = lab.steps(*changes["step"])
    with pytest.raises(InternalError, match=message):
        seal(lab.candidate(**changes))


@pytest.mark.parametrize(
    "levels", [{"age": 1}, {"age": 1, "zip": -1}, {"age": 5, "zip": 0}, {"age": 1, "zip": 7}]
)
def test_levels_that_do_not_exist_are_refused(lab, levels):
    table = lab.people()
    with pytest.raises(InternalError, match="levels"):
        seal(lab.candidate(table, recoding=Recoding.of(table, [levels])))


def test_a_recoding_of_other_columns_is_refused(lab):
    table = lab.people()
    recoding = Recoding({"age": table.schema.columns["age"]}, (RecodingStep({"age": 1}),))
    with pytest.raises(InternalError, match="all quasi-identifiers"):
        seal(lab.candidate(table, recoding=recoding))


def test_labels_that_do_not_cover_their_value_are_refused(lab, monkeypatch):
    stated = seal(lab.candidate()).recoding
    published = Recoding.published

    def swapped(self, table, step):
        rows = published(self, table, step)
        return rows.set_column(0, "age", pa.array(["50-59", "50-59", "30-39", "30-39"]))

    monkeypatch.setattr(Recoding, "published", swapped)
    with pytest.raises(InternalError, match="4 published labels do not cover"):
        seal(lab.candidate(recoding=stated))


def test_rows_that_vanish_are_noticed(lab, monkeypatch):
    stated = seal(lab.candidate()).recoding
    published = Recoding.published
    monkeypatch.setattr(Recoding, "published", lambda *given: published(*given).slice(1))
    with pytest.raises(InternalError, match="add up"):
        seal(lab.candidate(recoding=stated))


def test_the_loss_of_either_aggregate_is_accepted(lab):
    assert seal(lab.candidate(loss=math.sqrt(1.68) - 1)).loss == pytest.approx(0.2961481)
    assert seal(lab.candidate(loss=0.3)).loss == pytest.approx(0.3)
    assert seal(lab.candidate(loss=17.0, metric="height")).loss == pytest.approx(0.2961481)


def test_a_loss_that_is_claimed_is_the_loss_of_the_rows(lab):
    for wrong in (1e-6, -1e-6):
        with pytest.raises(InternalError, match="another loss"):
            seal(lab.candidate(loss=math.sqrt(1.68) - 1 + wrong))


def test_as_many_rows_may_go_as_were_allowed_and_no_more(lab):
    # One of five is a fifth.
    assert seal(lab.candidate(parameters={"suppression": 0.2})).suppressed == 1
    with pytest.raises(InternalError, match="more rows than allowed"):
        seal(lab.candidate(parameters={"suppression": 0.199}))


def test_a_promise_that_was_not_checked_on_all_rows_is_not_kept():
    kept = Verdict("k-anonymity", True, 2, 3, 0, 0, 2, rows=6)
    require_verdicts([kept], expected=6)
    for wrong in (replace(kept, rows=5), replace(kept, holds=False, failing_classes=1)):
        with pytest.raises(InternalError, match="break k-anonymity"):
            require_verdicts([kept, wrong], expected=6)


def test_a_column_that_is_declared_and_not_there_is_named(lab):
    table = lab.people()
    with pytest.raises(SchemaError, match="'weight'"):
        seal(lab.candidate(Table(table.arrow.drop_columns(["weight"]), table.schema)))


def test_undeclared_columns_are_all_named(lab):
    table = lab.people()
    more = table.arrow.append_column("extra", pa.array(range(5)))
    more = more.append_column("note", pa.array(range(5)))
    with pytest.raises(SchemaError) as caught:
        seal(lab.candidate(Table(more, table.schema)))
    assert len(caught.value.faults) == 2
    assert "'extra'" in str(caught.value)
    assert "role" in str(caught.value)


def test_a_schema_without_quasi_identifiers_is_refused():
    table = Table(pa.table({"a": [1]}), Schema({"a": Column("other")}))
    with pytest.raises(SchemaError, match="quasi"):
        published_columns(table)


def test_no_model_and_no_row_are_refused(lab):
    with pytest.raises(PrivacyError, match="at least one model"):
        seal(lab.candidate(models=[]))
    with pytest.raises(PrivacyError, match="Every row"):
        seal(lab.candidate(step=lab.steps(-1, -1, -1, -1, -1), parameters={}))


def test_people_are_counted_not_rows():
    rows = pa.table({"who": ["a", "a", "b", "b"], "sex": ["m", "m", "f", "f"]})
    table = Table(rows, Schema({"sex": Column("quasi")}, person="who"))
    from halfmask.release import Candidate

    recoding = Recoding.of(table, [{"sex": 0}])
    wrong = Candidate(table, [KAnonymity(2)], recoding, np.zeros(4, dtype=np.int32))
    with pytest.raises(InternalError, match="2 classes"):
        seal(wrong)
    top = replace(wrong, recoding=Recoding.of(table, [{"sex": 1}]))
    assert seal(top).verdicts[0].achieved == 2


def test_rows_with_missing_values_form_classes_of_their_own(lab):
    rows = pa.table({"sex": pa.array([None, None, "m", "m"]).dictionary_encode()})
    table = Table(rows, Schema({"sex": Column("quasi")}))
    step = lab.steps(0, 0, 0, 0)
    release = seal(
        lab.candidate(table, recoding=Recoding.of(table, [{"sex": 0}]), step=step, parameters={})
    )
    assert release.classes.count == 2
    alone = Table(rows.slice(1), table.schema)
    with pytest.raises(InternalError, match="1 classes"):
        seal(
            lab.candidate(
                alone, recoding=Recoding.of(alone, [{"sex": 0}]), step=step[1:], parameters={}
            )
        )


def test_classes_of_two_steps_with_the_same_labels_are_one_class(lab):
    # "*" as the top of the hierarchy and "*" as a suppressed cell look the same to a reader.
    table = Table(pa.table({"a": ["x", "y"]}), Schema({"a": Column("quasi")}))
    steps = [RecodingStep({"a": 1}, (("*",),)), RecodingStep({"a": 2})]
    release = seal(
        lab.candidate(
            table, recoding=Recoding.of(table, steps), step=lab.steps(0, 0), parameters={}
        )
    )
    assert release.classes.count == 1


def test_the_population_is_recoded_alongside(lab):
    table = Table(pa.table({"a": ["x", "y", "y"]}), Schema({"a": Column("quasi")}))
    everyone = pa.table({"a": ["x", "x", "x", "y", "y", "y", "y", "z"]})
    population = Table(everyone, Schema({"a": Column("quasi")}))
    given = {
        "recoding": Recoding.of(table, [{"a": 0}]),
        "step": lab.steps(0, 0, 0),
        "parameters": {},
    }
    assert (
        seal(lab.candidate(table, models=[KMap(3, population)], **given)).verdicts[0].achieved == 3
    )
    with pytest.raises(InternalError):
        seal(lab.candidate(table, models=[KMap(4, population)], **given))
    seal(lab.candidate(table, models=[DeltaPresence(0, 0.5, population)], **given))
    with pytest.raises(InternalError):  # nobody of class z is in the table
        seal(lab.candidate(table, models=[DeltaPresence(0.1, 0.5, population)], **given))


def test_people_of_the_population_whom_no_step_takes_are_counted(lab):
    table = Table(pa.table({"a": ["x", "x", "y"]}), Schema({"a": Column("quasi")}))
    population = Table(pa.table({"a": ["x", "x", "x", "y", "y", "z"]}), table.schema)
    steps = [RecodingStep({"a": 0}, (("x",),)), RecodingStep({"a": 0}, (("y",),))]
    given = {
        "recoding": Recoding.of(table, steps),
        "step": lab.steps(0, 0, 1),
        "parameters": {},
    }
    release = seal(lab.candidate(table, models=[DeltaPresence(0, 0.7, population)], **given))
    assert release.verdicts[0].achieved == pytest.approx(2 / 3)
    with pytest.raises(InternalError, match="1 classes fail"):
        seal(lab.candidate(table, models=[DeltaPresence(0.1, 0.7, population)], **given))


def test_row_order_carries_no_information(lab):
    rows = pa.table({"sex": ["m"] * 400, "n": list(range(400))})
    table = Table(rows, Schema({"sex": Column("quasi"), "n": Column("sensitive")}))
    given = {
        "recoding": Recoding.of(table, [{"sex": 0}]),
        "step": np.zeros(400, dtype=np.int32),
    }
    first, second = (seal(lab.candidate(table, **given)).to_arrow()["n"] for _ in range(2))
    assert sorted(first.to_pylist()) == list(range(400))
    assert first.to_pylist() != list(range(400))
    assert first.to_pylist() != second.to_pylist()


def test_dictionaries_and_metadata_tell_nothing_of_the_original(lab):
    table = lab.people()
    disease = pa.array(["zoster", "flu", None, "flu", lab.CANARY]).dictionary_encode()
    rows = table.arrow.set_column(3, "disease", disease)
    rows = rows.replace_schema_metadata({b"pandas": lab.CANARY.encode()})
    field = rows.schema.field("weight").with_metadata({b"note": lab.CANARY.encode()})
    rows = rows.cast(rows.schema.set(4, field))
    given = Table(rows, table.schema, given=incoming_types(rows))
    out = seal(lab.candidate(given)).to_arrow()
    assert out.schema.metadata is None
    assert all(field.metadata is None for field in out.schema)
    assert out["disease"].chunk(0).dictionary.to_pylist() == ["flu", "zoster"]
    assert out["zip"].chunk(0).dictionary.to_pylist() == ["35510", "35521"]
    assert all(column.num_chunks == 1 for column in out.columns)


def test_a_value_spelled_like_a_label_is_pointed_out():
    rows = pa.table({"a": ["*", "*", "*", "p", "q", "r"]})
    table = hm.read(rows, schema={"a": "quasi"})
    assert not hm.anonymize(table, hm.KAnonymity(3), method="optimal").notes
    local = hm.anonymize(table, hm.KAnonymity(3), method="local")
    assert any("'a': 1 label(s) of different levels" in note for note in local.notes)


def test_what_is_no_candidate_does_not_leave(lab):
    with pytest.raises(ParameterError, match="a candidate"):
        seal(lab.people())  # type: ignore[call-overload]


def test_the_guarantee_says_what_was_checked(lab):
    release = seal(lab.candidate())
    assert release.guarantee.verdicts == release.verdicts
    assert release.guarantee.models == release.models
    assert release.guarantee.receipt is None
