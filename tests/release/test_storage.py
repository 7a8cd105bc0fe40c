from __future__ import annotations

import json

import pyarrow as pa
import pytest

from halfmask.errors import InputError
from halfmask.release import Recoding, RecodingStep, seal
from halfmask.table import hierarchies
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def test_a_recoding_reads_back_and_covers_unseen_values(lab, tmp_path):
    recoding = seal(lab.candidate()).recoding
    recoding.save(tmp_path / "r.json")
    back = Recoding.load(tmp_path / "r.json")
    assert back == recoding
    new = Table(pa.table({"age": [35, 77], "zip": ["35510", "1"]}), Schema())
    assert back.assign(new).tolist() == [0, -1]


def test_a_hierarchy_file_travels_with_the_recoding(tmp_path):
    (tmp_path / "h").mkdir()
    file = tmp_path / "h" / "sex.csv"
    file.write_text("m;any\nf;any\n")
    rule = hierarchies.Csv("sex.csv", folder=file.parent)
    table = Table(pa.table({"sex": ["m", "f"]}), Schema({"sex": Column("quasi", hierarchy=rule)}))
    Recoding.of(table, [{"sex": 1}]).save(tmp_path / "r.json")
    file.unlink()
    back = Recoding.load(tmp_path / "r.json")
    back.save(tmp_path / "again.json")
    again = Recoding.load(tmp_path / "again.json")
    other = Table(pa.table({"sex": ["f", "f"]}), Schema())
    assert again.published(other, again.assign(other))["sex"].to_pylist() == ["any", "any"]


def test_a_local_recoding_keeps_its_classes_and_missing_labels(tmp_path):
    steps = (RecodingStep({"a": 0}, (("x",), (None,))), RecodingStep({"a": 1}))
    recoding = Recoding({"a": Column("quasi")}, steps)
    recoding.save(tmp_path / "r.json")
    assert Recoding.load(tmp_path / "r.json") == recoding


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": "halfmask.recoding/9"}',
        '{"format": "halfmask.recoding/1"}',
        '{"format": "halfmask.recoding/1", "columns": {"a": {"role": "quasi"}}, "steps": []}',
        '{"format": "halfmask.recoding/1", "columns": {"a": {"role": "quasi"}}, '
        '"steps": [{"levels": {"b": 1}, "classes": null}]}',
        '{"format": "halfmask.recoding/1", "columns": {"a": {"role": "quasi"}}, '
        '"steps": [{"levels": {"a": 1}, "classes": [["x", "y"]]}]}',
        '{"format": "halfmask.recoding/1", "columns": {"a": {"role": "quasi"}}, "steps": [3]}',
        '{"format": "halfmask.recoding/1", "columns": {"a": {"role": "quasi", "content": "x"}}, '
        '"steps": [{"levels": {"a": 1}, "classes": null}]}',
    ],
)
def test_damaged_files_are_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=r"r\.json"):
        Recoding.load(tmp_path / "r.json")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Recoding.load(tmp_path / "no.json")


def test_the_file_holds_columns_and_steps_only(lab, tmp_path):
    seal(lab.candidate()).recoding.save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert document == {
        "format": "halfmask.recoding/1",
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
            "zip": {"role": "quasi", "hierarchy": document["columns"]["zip"]["hierarchy"]},
        },
        "steps": [
            {
                "levels": {"age": 1, "zip": 0},
                "classes": [["30-39", "35510"], ["50-59", "35521"]],
            }
        ],
    }
