"""What nobody touched goes back as it came in: values, types, orders; nothing of rows that stay."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import halfmask as hm

BIG = 2**53 + 1  # no float holds it


def back(frame: object, name: str = "x") -> object:
    """Column ``x`` of a release that leaves every row, in the order of the rows."""
    columns = {"q": "quasi", "n": "other", name: "other"}
    return hm.anonymize(hm.read(frame, schema=columns), hm.KAnonymity(2), method="optimal").native()


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([BIG, None, 3, 3], dtype="Int64"),
        pd.Series([1, None, 3, 3], dtype="UInt8"),
        pd.Series([True, None, False, False], dtype="boolean"),
        pd.Series(["a", None, "b", "b"], dtype="string"),
        pd.Series(["a", None, "b", "b"], dtype="string[pyarrow]"),
        pd.Series([BIG, None, 3, 3], dtype="int64[pyarrow]"),
        pd.Series([BIG, None, 3, 3], dtype=object),
        pd.Series([True, None, False, False], dtype=object),
        pd.Series(["a", None, "b", "b"], dtype=object),
        pd.Series([1.0, np.nan, 3.0, 3.0]),
        pd.Series([1.5, np.nan, 3.0, 3.0], dtype="float32"),
        pd.Series([1, 2, 3, 3], dtype="int8"),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2021-05-05", "2021-05-05"])),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2021-05-05", "2021-05-05"], utc=True)),
        pd.Series(pd.Categorical(["lo", None, "hi", "hi"], ["lo", "hi"], ordered=True)),
        pd.Series(pd.Categorical([3, None, 1, 1])),
    ],
    ids=lambda s: str(s.dtype),
)
def test_pandas_columns_keep_values_and_types(series: pd.Series) -> None:
    frame = pd.DataFrame({"q": 1, "n": range(4), "x": series})
    out = back(frame).sort_values("n", ignore_index=True)
    pd.testing.assert_series_equal(out["x"], frame["x"])
    assert out["q"].dtype == frame["q"].dtype


def test_other_sources_give_pandas_whole_numbers_where_some_are_missing() -> None:
    rows = pa.table({"q": [1, 1], "n": [1, 2], "x": [BIG, None], "y": [True, None]})
    schema = {"q": "quasi", "n": "other", "x": "other", "y": "other"}
    out = hm.anonymize(hm.read(rows, schema=schema), hm.KAnonymity(2), method="optimal").to_pandas()
    assert out["x"].dtype == "Int64"
    assert out["y"].dtype == "boolean"
    assert out.sort_values("n")["x"].tolist() == [BIG, pd.NA]


def ordered(values: list[str | None], order: list[str]) -> pa.Array:
    codes = pa.array([None if v is None else order.index(v) for v in values], pa.uint8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(order), ordered=True)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["b", None, "a"], pa.string()),
        pa.array(["b", None, "a"], pa.large_string()),
        pa.array(["b", None, "a"], pa.string_view()),
        pa.array(["b", None, "a"]).dictionary_encode(),
        pa.array(["b", None, "a"]).cast(pa.dictionary(pa.int8(), pa.large_string())),
        pa.array([7, None, 5]).dictionary_encode(),
        ordered(["lo", None, "hi"], ["lo", "hi"]),
        pa.nulls(3),
        pa.array([1, None, 2], pa.uint16()),
        pa.array([1.5, None, 2], pa.float16()),
        pa.array([86_400_000, None, 0], pa.date64()),
        pa.array([True, None, False]),
    ],
    ids=lambda column: str(column.type),
)
def test_arrow_columns_keep_values_and_types(column: pa.Array, tmp_path) -> None:
    table = pa.table({"q": [1, 1, 1], "n": [0, 1, 2], "x": column})
    out = back(table)
    assert out["x"].type == column.type
    found = dict(zip(out["n"].to_pylist(), out["x"].to_pylist(), strict=True))
    assert found == dict(enumerate(column.to_pylist()))
    release = hm.anonymize(
        hm.read(table, schema={"q": "quasi", "n": "other", "x": "other"}), hm.KAnonymity(3)
    )
    for kind in ("csv", "parquet", "arrow"):
        release.write(tmp_path / f"out.{kind}")
    assert len(release.to_pandas()) == release.to_polars().height == 3
    assert release.to_duckdb().shape == (3, 3)
    assert (
        hm.compare(hm.read(table, schema={"q": "quasi", "x": "other"}), release).kept[0].distance
        == 0
    )


def test_runs_go_back_as_runs() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", "b"]))
    out = back(pa.table({"q": [1, 1, 1], "n": [0, 1, 2], "x": runs}))
    assert out["x"].type == runs.type


def test_polars_columns_keep_values_and_types() -> None:
    frame = pl.DataFrame(
        {
            "q": ["a", "a"],
            "n": [0, 1],
            "x": pl.Series(["y", "x"], dtype=pl.Enum(["y", "x"])),
            "c": pl.Series(["y", None], dtype=pl.Categorical),
            "z": pl.Series([None, None], dtype=pl.Null),
            "i": pl.Series([BIG, None]),
        }
    )
    schema = {name: "quasi" if name == "q" else "other" for name in frame.columns}
    release = hm.anonymize(hm.read(frame, schema=schema), hm.KAnonymity(2), method="optimal")
    out = release.native()
    assert out.sort("n").equals(frame)
    assert release.to_arrow()["q"].type == pa.large_string()
    assert out.schema == frame.schema


def test_duckdb_columns_keep_types() -> None:
    relation = duckdb.sql(
        "select 'a' as q, n::utinyint as n, date '2020-01-01' as x from range(2) r(n)"
    )
    assert [str(t) for t in back(relation).types] == [str(t) for t in relation.types]


def test_orders_name_only_values_that_leave() -> None:
    rows = pa.table({"q": [1, 1, 2], "x": ordered(["hi", "lo", "canary"], ["lo", "canary", "hi"])})
    table = hm.read(rows, schema={"q": "quasi", "x": "other"})
    out = hm.anonymize(table, hm.KAnonymity(2), suppression=0.5, method="optimal").native()
    assert out["x"].chunk(0).dictionary.to_pylist() == ["lo", "hi"]
    frame = pl.DataFrame({"q": [1, 1, 2], "x": ["hi", "lo", "canary"]}).with_columns(
        pl.col("x").cast(pl.Enum(["lo", "canary", "hi"]))
    )
    table = hm.read(frame, schema={"q": "quasi", "x": "other"})
    out = hm.anonymize(table, hm.KAnonymity(2), suppression=0.5, method="optimal").native()
    assert out["x"].dtype == pl.Enum(["lo", "hi"])


def test_labels_of_generalized_columns_are_plain_text() -> None:
    frame = pd.DataFrame(
        {"a": pd.Categorical(["x", "y"]), "b": pd.Series(["x", "y"], dtype="string")}
    )
    out = hm.anonymize(
        hm.read(frame, schema={"a": "quasi", "b": "quasi"}), hm.KAnonymity(2)
    ).native()
    assert out["a"].tolist() == out["b"].tolist() == ["*", "*"]
    assert out["a"].dtype == object
    assert out["b"].dtype == "string"


def test_a_column_declared_numbers_goes_back_as_numbers() -> None:
    rows = pa.table({"q": ["07", "07"], "x": ["1", "2"]})
    schema = {"q": {"role": "quasi"}, "x": {"role": "other", "kind": "numeric"}}
    out = hm.anonymize(hm.read(rows, schema=schema), hm.KAnonymity(2), method="optimal").native()
    assert out["x"].type == pa.int64()
    assert out["q"].type == pa.string()
