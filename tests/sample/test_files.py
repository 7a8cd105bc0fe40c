"""The files of the sample fit together."""

from __future__ import annotations

import tomllib

import pyarrow.compute as pc

from halfmask.sample import people, write
from halfmask.sample.population import hierarchies, sample_schema


def test_all_files_are_written_and_no_temporary_one_stays(tmp_path):
    path = write(tmp_path / "new" / "folder", 50)
    assert path.name == "people.csv"
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "disease.csv",
        "occupation.csv",
        "people.csv",
        "people.toml",
    ]


def test_writing_again_gives_the_same_bytes(tmp_path):
    first = write(tmp_path, 50).read_bytes()
    assert write(tmp_path, 50).read_bytes() == first


def test_the_schema_declares_every_column():
    declared = tomllib.loads(sample_schema())
    policies = set(declared["policy"].values())
    assert set(declared["columns"]) | policies == set(people(1).column_names)


def test_hierarchy_files_cover_every_value():
    table = people(20_000)
    for name, text in hierarchies().items():
        leaves = {line.split(";")[0] for line in text.splitlines()}
        widths = {line.count(";") for line in text.splitlines()}
        values = pc.unique(table[name.removesuffix(".csv")].cast("string")).drop_null().to_pylist()
        assert set(values) <= leaves
        assert len(widths) == 1
