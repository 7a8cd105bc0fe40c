"""Things given in the wrong place: one clear error of ours, never another library's."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.anonymize.problem import RecodingProblem
from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.metrics.cost import Loss
from halfmask.table.classes import classes_of
from halfmask.table.tuples import Tuples

FRAME = pd.DataFrame({"a": [1, 1]})
TABLE = hm.read(FRAME, {"a": "quasi"})
TWO = hm.KAnonymity(2)
CANARY = "CANARY-51c0"


def recoding() -> hm.Recoding:
    return hm.anonymize(TABLE, TWO, method="optimal").recoding


@pytest.mark.parametrize(
    "attempt",
    [
        lambda _: hm.assess(FRAME),
        lambda _: hm.check(FRAME, TWO),
        lambda _: hm.anonymize(FRAME, TWO),
        lambda _: hm.compare(FRAME, FRAME),
        lambda _: recoding().apply(FRAME, TWO),
        lambda _: recoding().to_sql(FRAME, name="people"),
        lambda folder: recoding().to_csv(folder, FRAME),
        lambda _: hm.KMap(2, FRAME),
        lambda _: hm.DeltaPresence(0, 0.5, FRAME),
    ],
    ids=["assess", "check", "anonymize", "compare", "apply", "to_sql", "to_csv",
         "KMap", "DeltaPresence"],
)  # fmt: skip
def test_a_frame_in_place_of_a_table_is_to_be_read_first(attempt, tmp_path):
    with pytest.raises(InputError, match=r"A pandas DataFrame is not a table .* read it first"):
        attempt(tmp_path)


@pytest.mark.parametrize(
    ("attempt", "name"),
    [
        (lambda: hm.anonymize(TABLE, hm.KAnonymity), "models"),
        (lambda: hm.check(TABLE, hm.KAnonymity), "models"),
        (lambda: recoding().apply(TABLE, hm.KAnonymity), "models"),
        (lambda: recoding().apply(TABLE, TWO, suppression="x"), "suppression"),
        (lambda: hm.anonymize(TABLE, TWO, metric=3), "metric"),
        (lambda: hm.anonymize(TABLE, TWO, metric=Loss), "metric"),
        (lambda: hm.anonymize(TABLE, TWO, method=["optimal"]), "method"),
        (lambda: hm.anonymize(TABLE, TWO, seed="x"), "seed"),
        (lambda: hm.LDiversity(2, 3), "column"),
        (lambda: hm.TCloseness(0.2, None), "column"),
        (lambda: hm.AlphaKAnonymity(0.5, 2, 3), "column"),
        (lambda: hm.DeltaDisclosure(1, 3), "column"),
        (lambda: hm.BetaLikeness(1, 3), "column"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_parameter_of_the_wrong_kind_is_named(attempt, name):
    with pytest.raises(ParameterError) as caught:
        attempt()
    assert caught.value.name == name


@pytest.mark.parametrize("weight", [0, -1, float("nan")])
def test_weights_that_weigh_nothing_are_refused(weight):
    with pytest.raises(SchemaError, match="weight"):
        hm.read(FRAME, {"a": {"role": "quasi", "weight": weight}})
    tuples = classes_of(Tuples.of(TABLE), ["a"])
    with pytest.raises(SchemaError, match="Weights"):
        RecodingProblem(tuples, [TABLE.hierarchy("a")], [TWO], Loss(), weights=[weight])


def test_one_weight_of_zero_is_fine():
    rows = pa.table({"a": [1, 1], "b": [2, 2]})
    table = hm.read(rows, {"a": {"role": "quasi", "weight": 0}, "b": "quasi"})
    assert len(hm.anonymize(table, TWO)) == 2


@pytest.mark.parametrize(
    "frame",
    [
        lambda: duckdb.sql("select interval 1 day as a, 1 as q"),
        lambda: pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Duration), "q": [1, 1]}),
        lambda: pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128), "q": [1, 1]}),
        lambda: pa.table({"a": [[1], [2]], "q": [1, 1]}),
    ],
    ids=["interval", "duration", "Int128", "list"],
)
def test_a_type_that_cannot_be_used_is_named_with_its_column(frame):
    with pytest.raises(
        InputError, match=r"types .*'a' \((an interval|duration|Int128|list)"
    ) as caught:
        hm.read(frame(), {"a": "quasi", "q": "quasi"})
    assert "'q'" not in str(caught.value)


@pytest.mark.parametrize("source", [f"a,b\n{CANARY},2", f"a,b\r{CANARY},2", CANARY * 100])
def test_content_in_place_of_a_file_name_is_not_repeated(source):
    for attempt in (lambda: hm.read(source), lambda: hm.read(FRAME, source)):
        with pytest.raises(InputError, match="name") as caught:
            attempt()
        assert CANARY not in str(caught.value)


def test_long_paths_are_cut():
    with pytest.raises(InputError, match="does not exist") as caught:
        hm.read("/".join(["folder"] * 300))
    assert len(str(caught.value)) < 300


def test_a_mask_of_many_levels_is_counted_exactly():
    rows = pa.table({"a": ["x" * 200, "y" * 200]})
    schema = {"a": {"role": "quasi", "hierarchy": {"mask": 200}}}
    release = hm.anonymize(hm.read(rows, schema), TWO, method="optimal")
    assert release.levels["a"] > 127
    assert release.loss == 1.0
