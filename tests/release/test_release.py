from __future__ import annotations

import builtins
import copy
import dataclasses
import json
import pickle

import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.errors import EngineUnavailableError, InputError, PrivacyError
from halfmask.release import Release, seal


@pytest.fixture
def release(lab):
    return seal(lab.candidate())


def test_only_seal_makes_a_release(release):
    fields = {f.name: getattr(release, f.name) for f in dataclasses.fields(release)}
    with pytest.raises(PrivacyError, match="anonymize"):
        Release(**fields, door=None)
    with pytest.raises(PrivacyError, match="anonymize"):
        dataclasses.replace(release, suppressed=0, door=object())
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.loss = 0.0
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="write"):
            duplicate(release)


def test_repr_shows_figures_only(release):
    assert repr(release) == "Release(4 rows, 1 suppressed; k-anonymity 2; loss 0.2961)"
    assert len(release) == 4


def test_the_release_goes_back_as_the_kind_that_came_in(lab, release):
    table = lab.people()
    kinds = {"pandas": "DataFrame", "polars": "DataFrame", "duckdb": "DuckDBPyRelation"}
    for origin, kind in kinds.items():
        out = seal(lab.candidate(dataclasses.replace(table, origin=origin))).native()
        assert type(out).__name__ == kind
        assert type(out).__module__.split(".")[0].lstrip("_") == origin
    assert isinstance(release.native(), pa.Table)


@pytest.mark.parametrize(
    ("method", "package"),
    [("to_pandas", "pandas"), ("to_polars", "polars"), ("to_duckdb", "duckdb")],
)
def test_a_missing_package_names_its_install_command(release, monkeypatch, method, package):
    genuine = builtins.__import__

    def without(name, *rest, **more):
        if name == package:
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EngineUnavailableError, match=f"pip install {package}"):
        getattr(release, method)()


def test_frames_hold_the_published_rows(lab, release):
    expected = lab.row_set(release.to_arrow())
    assert lab.row_set(release.to_polars().to_arrow()) == expected
    frame = release.to_pandas()
    assert list(frame.columns) == ["age", "zip", "disease", "weight"]
    assert list(frame.index) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.feather", "a.arrow", "a.csv", "a.tsv", "a.csv.gz"]
)
def test_written_files_read_back(lab, release, tmp_path, name):
    path = tmp_path / name
    release.write(path)
    if name.endswith("parquet"):
        back = pq.read_table(path)
    elif name.endswith(("feather", "arrow")):
        back = feather.read_table(path)
    else:
        options = csv.ParseOptions(delimiter="\t" if "tsv" in name else ",")
        convert = csv.ConvertOptions(column_types={"zip": pa.string()}, strings_can_be_null=True)
        back = csv.read_csv(path, parse_options=options, convert_options=convert)
    assert lab.row_set(back) == lab.row_set(release.to_arrow())
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".toml"] == [name]


def test_unknown_kinds_and_folders_are_refused_without_a_trace(release, tmp_path):
    with pytest.raises(InputError, match=r"\.parquet"):
        release.write(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match=r"\.csv"):
        release.write(tmp_path / ".csv")
    with pytest.raises(InputError, match="does not exist"):
        release.write(tmp_path / "no" / "a.csv")
    with pytest.raises(InputError, match="folder"):
        release.report(tmp_path / "no" / "a.html")
    with pytest.raises(InputError, match=r"\.html"):
        release.report(tmp_path / "a.docx")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        release.write(tmp_path / "b.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["b.csv"]


def test_a_failed_write_leaves_the_old_file(lab, tmp_path):
    table = lab.people()
    nested = table.arrow.set_column(4, "weight", pa.array([[1], [2], [3], [4], [5]]))
    release = seal(lab.candidate(dataclasses.replace(table, rows=nested)))
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(InputError, match=r"\.parquet"):
        release.write(path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
    release.write(tmp_path / "a.parquet")


def test_the_document_is_plain_and_complete(release, tmp_path):
    release.report(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    assert document == release.to_dict()
    assert list(document) == [
        "format", "outcome", "rows", "models", "verdicts", "loss", "levels", "columns", "classes",
        "risk", "method", "metric", "gap", "steps", "parameters", "versions", "notes",
    ]  # fmt: skip
    assert document["rows"] == {
        "original": 5,
        "published": 4,
        "suppressed": 1,
        "suppressed_share": 0.2,
    }
    assert document["models"] == [{"model": "k-anonymity", "k": 2}]
    assert document["classes"] == {
        "count": 2,
        "smallest": 2,
        "largest": 2,
        "mean": 2.0,
        "bins": [{"smallest": 2, "largest": 2, "classes": 2, "rows": 4}],
    }
    age = next(c for c in document["columns"] if c["name"] == "age")
    assert age == {
        "name": "age",
        "role": "quasi",
        "action": "10-year groups, e.g. 30-39",
        "published": True,
        "level": 1,
        "height": 3,
        "before": 4,
        "after": 2,
        "loss": 0.4,
        "cells": [{"level": 1, "rows": 4}],
        "steps": ["10-year groups", "50-year groups", "nothing left"],
    }
    assert document["versions"]["numpy"]
    assert document["outcome"].startswith("4 of 5 rows may leave: the one promise")
    assert "29.6%" in document["outcome"]


def test_parameters_become_plain_values(lab):
    import numpy as np

    given = {"suppression": 0.2, "seed": np.int64(3), "limit": float("inf"), "rule": object()}
    parameters = seal(lab.candidate(parameters=given)).to_dict()["parameters"]
    assert parameters == {"suppression": 0.2, "seed": 3, "limit": None, "rule": "object"}


def test_an_unknown_version_is_said(monkeypatch):
    from importlib import metadata

    from halfmask.release.document import _versions, versions

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    _versions.cache_clear()
    assert versions()["numba"] == "unknown"
    _versions.cache_clear()


def test_a_disk_that_refuses_is_an_input_error(release, tmp_path, monkeypatch):
    import os

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left"):
        release.write(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_text_goes_back_as_text_and_categories_as_categories():
    frame = pd.DataFrame({"sex": ["f", "f"], "city": pd.Categorical(["a", "a"]), "d": ["x", "y"]})
    table = hm.read(frame, schema={"sex": "quasi", "city": "quasi", "d": "sensitive"})
    back = hm.anonymize(table, hm.KAnonymity(2)).native()
    assert back["sex"].dtype == frame["sex"].dtype
    assert back["city"].dtype == "category"
    assert sorted(back["d"]) == ["x", "y"]
