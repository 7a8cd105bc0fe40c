"""Numbers with a decimal comma are numbers where that is said, and named where it is not."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import HierarchyError, ParameterError, SchemaError
from halfmask.table.values import are_comma_numbers

TEXT = "weight;price;code;zip;born;size\n" + "\n".join(
    f"{60 + i},{i % 10};{1 + i % 3}.234,50;{i % 3},{i % 2}x;0{1000 + i};2020-01-{i:02};{i}.500"
    for i in range(1, 21)
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT + "\n")
    return path


def test_a_comma_is_part_of_a_number_where_it_is_said(file):
    rows = hm.read(file, decimal=",").arrow
    assert rows["weight"].to_pylist()[:2] == [61.1, 62.2]
    assert rows["price"].to_pylist()[:2] == [2234.5, 3234.5]  # points stand between thousands
    assert rows["born"].type == pa.date32()
    for name in ("code", "zip", "size"):  # 1.500 is 1500 or text; it is no 1.5
        assert pa.types.is_dictionary(rows[name].type)
    said = {"columns": {"size": {"role": "quasi", "kind": "numeric"}}, "table": {"decimal": ","}}
    assert hm.read(file, said).arrow["size"].to_pylist()[:2] == [1500, 2500]


def test_without_a_word_such_numbers_stay_text_and_are_named(file):
    assert pa.types.is_dictionary(hm.read(file).arrow["weight"].type)
    declared = hm.read(file, {"weight": {"role": "quasi", "kind": "numeric"}})
    assert declared.arrow["weight"].to_pylist()[:2] == [61.1, 62.2]  # the mark is found
    table = hm.read(file, {"weight": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}}})
    with pytest.raises(HierarchyError, match="decimal comma"):
        hm.anonymize(hm.read(table.arrow.select(["weight"]), table.schema), hm.KAnonymity(2))


def test_a_description_proposes_the_comma(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("weight;born\n" + "".join(f"{i},5;2020-01-{i:02}\n" for i in range(1, 21)))
    found = hm.describe(path)
    assert found.decimal == ","
    assert found.columns[0].kind == "numeric"
    assert any("decimal comma: weight" in note for note in found.notes)
    assert 'decimal = ","' in found.to_toml()
    (tmp_path / "people.toml").write_text(found.to_toml())
    again = hm.read(path)
    assert again.arrow["weight"].to_pylist()[:2] == [1.5, 2.5]
    assert hm.describe(again).decimal == ","


def test_an_engine_reads_the_same(file):
    schema = {
        "table": {"decimal": ","},
        "columns": {"weight": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}},
    }
    counted = hm.check(hm.read(file, schema=schema, engine="duckdb"), hm.KAnonymity(2))
    assert counted == hm.check(hm.read(file, schema), hm.KAnonymity(2))
    found = hm.assess(hm.read(file, schema=schema, engine="duckdb"))
    assert found.columns == hm.assess(hm.read(file, schema)).columns


@pytest.mark.parametrize(
    ("texts", "are"),
    [
        (["1,5", "2"], True),
        (["-1.234,5"], True),
        (["1,5", "01,5"], False),
        (["1", "2"], False),
        (["1,5", "1.5"], False),
        (["1,2,3"], False),
        (["12.34,5"], False),
        ([], False),
    ],
)
def test_what_looks_like_such_numbers(texts, are):
    assert are_comma_numbers(pa.array(texts, pa.string())) is are


@pytest.mark.parametrize("mark", ["", ";", "komma", 3])
def test_other_marks_are_refused(mark, file):
    with pytest.raises(ParameterError, match="decimal"):
        hm.read(file, decimal=mark)
    with pytest.raises(SchemaError, match="decimal"):
        hm.Schema.from_dict({"table": {"decimal": mark}})


def test_a_schema_file_keeps_the_mark():
    schema = hm.Schema.from_dict({"table": {"decimal": ","}, "columns": {"a": "quasi"}})
    assert hm.Schema.from_dict(schema.to_dict()).decimal == ","
    assert 'decimal = ","' in schema.to_toml()


@pytest.mark.parametrize("engine", [None, "duckdb"])
@pytest.mark.parametrize("mark", [",", "."])
def test_a_release_is_compared_whichever_mark_it_has(mark, engine, tmp_path):
    original, release = tmp_path / "people.csv", tmp_path / "release.csv"
    original.write_text("weight;ill\n" + "".join(f"{i % 5},5;d{i % 2}\n" for i in range(40)))
    cells = ["*" if i % 4 == 0 else f"{i % 5}{mark}5" for i in range(40)]
    release.write_text("weight;ill\n" + "".join(f"{c};d{i % 2}\n" for i, c in enumerate(cells)))
    schema = {
        "table": {"decimal": ","},
        "columns": {"weight": {"role": "quasi", "kind": "numeric"}, "ill": "sensitive"},
    }
    found = hm.compare(
        hm.read(original, schema=schema, engine=engine),
        hm.read(release, engine=engine),
        learn=False,
        attacks=20,
    )
    assert not any("taken as new values" in note for note in found.notes)
    assert found.loss == pytest.approx(0.25)
