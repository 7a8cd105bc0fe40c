from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError
from halfmask.release import Recoding, seal
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def read(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_full_domain_gives_one_value_mapping_per_column(lab, tmp_path):
    release = seal(lab.candidate())
    paths = release.recoding.to_csv(tmp_path / "maps", lab.people())
    assert [Path(p).name for p in paths] == ["age.csv", "zip.csv", "classes.csv"]
    assert read(paths[0]) == [
        ["value", "label"],
        ["31", "30-39"],
        ["38", "30-39"],
        ["52", "50-59"],
        ["57", "50-59"],
    ]
    assert read(paths[2]) == [
        ["step", "age", "zip"],
        ["0", "30-39", "35510"],
        ["0", "50-59", "35521"],
    ]


def test_local_gives_levels_steps_and_classes(lab, tmp_path):
    table = lab.people()
    recoding = Recoding.of(table, [{"age": 1, "zip": 0}, {"age": 3, "zip": 6}])
    stated = recoding.with_classes(table, lab.steps(0, 0, 0, 0, 1))
    files = {Path(p).name: read(p) for p in stated.to_csv(tmp_path, table)}
    assert files["age.csv"][0] == ["value", "level 1", "level 3"]
    assert files["age.csv"][-1] == ["91", "90-99", "*"]
    assert files["zip.csv"][1] == ["35510", "35510", "*"]
    assert files["steps.csv"] == [["step", "age", "zip"], ["0", "1", "0"], ["1", "3", "6"]]
    assert files["classes.csv"][-1] == ["1", "*", "*"]


def test_awkward_column_names_become_safe_file_names(tmp_path):
    rows = pa.table({"a/b": ["x"], "a b": ["y"], "classes": ["z"], "..": ["w"]})
    schema = Schema({name: Column("quasi") for name in rows.column_names})
    table = Table(rows, schema)
    recoding = Recoding.of(table, [dict.fromkeys(rows.column_names, 0)])
    names = {Path(p).name for p in recoding.to_csv(tmp_path, table)}
    assert names == {"a_b.csv", "a_b_2.csv", "classes_2.csv", "column.csv"}


def test_a_folder_that_cannot_be_made_is_refused(lab, tmp_path):
    recoding = seal(lab.candidate()).recoding
    with pytest.raises(InputError, match="cannot be made"):
        recoding.to_csv(tmp_path / "no" / "maps", lab.people())


def test_long_column_names_give_short_file_names(tmp_path):
    names = ["a" * 300, "a" * 299 + "b", "\u00e4" * 300]
    table = hm.read(pa.table({name: [1, 1] for name in names}), dict.fromkeys(names, "quasi"))
    recoding = hm.anonymize(table, hm.KAnonymity(2), method="optimal").recoding
    paths = recoding.to_csv(tmp_path, table)
    assert len(set(paths)) == len(list(tmp_path.iterdir())) == 3
