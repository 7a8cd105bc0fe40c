"""Schemas: from TOML and Python, back to TOML, and every fault at once."""

from __future__ import annotations

import string
import tomllib
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, SchemaError
from halfmask.table.files.toml import toml_section

if TYPE_CHECKING:
    from pathlib import Path

TOML = """
[table]
person = "id"
missing = ["", "?"]
[policy]
k = "k_i"
l = "l_i"
[columns.age]
role = "quasi"
kind = "numeric"
hierarchy = { intervals = [5, 10, 20, 40] }
[columns.zip]
role = "quasi"
hierarchy = { mask = 5 }
[columns.workclass]
role = "quasi"
weight = 2.5
hierarchy = { csv = "workclass.csv" }
[columns."how are you"]
role = "quasi"
kind = "ordinal"
order = ["bad", "good"]
[columns.disease]
role = "sensitive"
"""


def test_a_schema_file_says_what_each_column_is(tmp_path: Path) -> None:
    path = tmp_path / "people.toml"
    path.write_text(TOML)
    schema = hm.Schema.read(path)
    assert schema.quasi == ("age", "zip", "workclass", "how are you")
    assert schema.sensitive == ("disease",)
    assert schema.person == "id"
    assert schema.private == ("id", "k_i", "l_i")
    assert schema.policy == {"k": "k_i", "l": "l_i"}
    assert schema.columns["age"].hierarchy == hm.hierarchies.Intervals([5, 10, 20, 40])
    assert schema.columns["workclass"].weight == 2.5
    assert schema.undeclared(["age", "id", "l_i", "new"]) == ("new",)


def test_a_schema_comes_back_from_its_own_toml(tmp_path: Path) -> None:
    schema = hm.Schema.from_dict(tomllib.loads(TOML), folder=tmp_path)
    (tmp_path / "again.toml").write_text(schema.to_toml())
    assert hm.Schema.read(tmp_path / "again.toml") == schema
    assert hm.Schema.from_dict(schema.to_dict()) == schema


PLAIN = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.text(string.printable, min_size=0), inside, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), PLAIN, max_size=4))
def test_any_plain_value_comes_back_from_toml(data: dict[str, object]) -> None:
    text = toml_section("a.b", data, "A comment\nof two lines")
    assert tomllib.loads(text) == {"a": {"b": data}}


def test_a_mapping_of_columns_alone_is_a_schema() -> None:
    schema = hm.Schema.from_dict({"age": "quasi", "city": {"role": "other"}})
    assert schema == hm.Schema.from_dict({"columns": {"age": "quasi", "city": "other"}})
    assert schema == hm.Schema({"age": hm.Column("quasi"), "city": hm.Column("other")})


FAULTS = [
    ({"columns": {"a": {"role": "quasi"}}, "colums": {}}, "did you mean 'columns'"),
    ({"columns": {"a": {"role": "quasi", "knd": "date"}}}, "did you mean 'kind'"),
    ({"columns": {"a": "quasy"}}, "did you mean 'quasi'"),
    ({"columns": {"a": {"role": "quasi", "kind": "number"}}}, "unknown kind"),
    ({"columns": {"a": {"role": ["quasi", "sensitive"]}}}, "has 2 roles"),
    ({"columns": {"a": {"kind": "date"}}}, "has no role"),
    ({"columns": {"a": 5}}, "give its role"),
    ({"columns": {"a": {"role": "quasi", "weight": -1}}}, "weight"),
    ({"columns": {"a": {"role": "quasi", "weight": True}}}, "weight"),
    ({"columns": {"a": {"role": "quasi", "hierarchy": {"interval": [5]}}}}, "'intervals'"),
    ({"columns": {"a": {"role": "quasi", "hierarchy": {"mask": 1, "flat": True}}}}, "exactly one"),
    ({"columns": {"a": {"role": "quasi", "hierarchy": {"intervals": [5, 7]}}}}, "not a multiple"),
    ({"columns": {"a": {"role": "quasi", "order": "abc"}}}, "order must be a list"),
    ({"columns": {"a": {"role": "quasi", "kind": "date", "order": ["x"]}}}, "only an ordinal"),
    ({"table": {"persn": "id"}}, "did you mean 'person'"),
    ({"table": {"person": 7}}, "must be a text"),
    ({"table": {"missing": 7}}, "missing must be a list"),
    ({"policy": {"k": True}}, "name of a column"),
    ({"policy": {"gamma": "e"}}, "Unknown key 'gamma'"),
    ({"policy": {"file": "p.csv"}}, "needs [table] person"),
    ({"table": {"person": "a"}, "columns": {"a": "quasi"}}, "the person column and quasi"),
    ({"policy": {"k": "a"}, "columns": {"a": "sensitive"}}, "two roles"),
    ({"table": {"person": "a"}, "policy": {"k": "a"}}, "two roles: person and policy"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_each_fault_of_a_schema_is_named(data: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        hm.Schema.from_dict(data)
    assert len(caught.value.faults) == 1
    assert message in caught.value.faults[0]


def test_faults_of_a_schema_come_together() -> None:
    data = {"columns": {"a": "x", "b": {"role": "quasi", "hierarchy": {"mask": 0}}}, "tabel": {}}
    with pytest.raises(SchemaError) as caught:
        hm.Schema.from_dict(data)
    assert len(caught.value.faults) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns.a]\nrole = \n", "syntax error at line 2"),
        ("[columns.a]\nrole = 'quasi'\n[columns.a]\nrole = 'other'\n", "twice"),
    ],
)
def test_invalid_toml_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=message):
        hm.Schema.read(path)


def test_a_schema_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        hm.Schema.read(tmp_path / "no.toml")
    with pytest.raises(InputError, match="is a folder"):
        hm.Schema.read(tmp_path)
    (tmp_path / "l.toml").write_bytes("a = 'é'".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        hm.Schema.read(tmp_path / "l.toml")


def test_long_trees_and_lists_are_written_over_lines_that_can_be_read(tmp_path: Path) -> None:
    towns = [f"a town with the number {i}" for i in range(12)]
    tree = {"the north": {"the coast": towns[:5], "the hills": towns[5:6]}, "the south": towns[6:]}
    column = hm.Column("quasi", hierarchy=hm.hierarchies.Tree(tree), weight=2.0)
    schema = hm.Schema({"a town": column})
    text = schema.to_toml()
    assert max(map(len, text.splitlines())) <= 110
    assert '[columns."a town".hierarchy.tree."the north"]' in text
    (tmp_path / "long.toml").write_text(text)
    assert hm.Schema.read(tmp_path / "long.toml") == schema


def test_query_rules_are_read_and_written() -> None:
    text = '[query]\nk = 5\ntables = ["visits"]\ndominance = { n = 2, k = 85 }\n'
    schema = hm.Schema.from_dict(tomllib.loads(text))
    assert (schema.query.k, schema.query.tables) == (5, ("visits",))
    assert schema.query.dominance == {"n": 2, "k": 85}
    assert hm.Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    assert hm.Schema(query={"k": 5}).query.k == 5  # type: ignore[arg-type]
    assert "query" not in hm.Schema().to_dict()


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": 2.5}, "whole number"),
        ({"k": True}, "whole number"),
        ({"k": 1}, "single_people = true"),
        ({"single_people": "yes"}, "true or false"),
        ({"tables": "visits"}, "a list of names"),
        ({"tables": [""]}, "a list of names"),
        ({"dominance": {"p": 0}}, "dominance must be"),
        ({"dominance": {"n": 2}}, "dominance must be"),
        ({"dominance": {"n": 2.5, "k": 85}}, "dominance must be"),
        ({"dominance": {"n": 2, "k": 101}}, "dominance must be"),
        ({"dominance": 10}, "dominance must be"),
        ({"kk": 3}, "did you mean 'k'"),
    ],
)
def test_wrong_query_rules_are_refused(rules: dict[str, object], fault: str) -> None:
    with pytest.raises(SchemaError, match=fault):
        hm.Schema.from_dict({"query": rules})


def test_one_entry_speaks_of_all_columns_that_have_none(tmp_path: Path) -> None:
    rows = pa.table({"age": [30, 30], "note": ["a", "b"], "code": [7, 8], "id": [1, 2]})
    told = {"table": {"person": "id"}, "columns": {"age": "quasi", "*": "drop"}}
    table = hm.read(rows, told)
    assert table.schema.names("drop") == ("note", "code")
    assert "*" not in table.schema.columns
    release = hm.anonymize(table, hm.KAnonymity(2), method="optimal")
    assert release.to_arrow().column_names == ["age"]
    told["columns"]["*"] = "other"
    release = hm.anonymize(hm.read(rows, told), hm.KAnonymity(2), method="optimal")
    assert release.to_arrow().column_names == ["age", "note", "code"]
    file = tmp_path / "people.csv"
    file.write_text("age,note\n30,a\n30,b\n")
    stored = hm.read(file, told | {"table": {}}, engine="duckdb")
    assert stored.schema.names("other") == ("note",)


def test_many_columns_without_a_role_are_one_fault() -> None:
    rows = pa.table({"age": [30, 30], **{f"c{i}": [1, 2] for i in range(189)}})
    with pytest.raises(SchemaError, match="189 columns are not declared") as error:
        hm.anonymize(hm.read(rows, {"age": "quasi"}), hm.KAnonymity(2), method="optimal")
    assert len(error.value.faults) == 1
    assert '[columns."*"]' in str(error.value)


def test_households_and_weights_never_leave_by_themselves() -> None:
    rows = pa.table({"age": [30, 30], "hid": [1, 2], "w": [1.5, 2.0]})
    told = {"table": {"household": "hid", "weight": "w"}, "columns": {"age": "quasi"}}
    schema = hm.Schema.from_dict(told)
    assert schema.private == ("hid", "w")
    assert hm.Schema.from_dict(schema.to_dict()) == schema
    release = hm.anonymize(hm.read(rows, told), hm.KAnonymity(2), method="optimal")
    assert release.to_arrow().column_names == ["age"]
    told["columns"]["hid"] = "other"
    with pytest.raises(SchemaError, match="two roles: the household column and other"):
        hm.Schema.from_dict(told)
    with pytest.raises(SchemaError, match="'gone' is named as the weight column"):
        hm.read(rows, {"table": {"weight": "gone"}, "columns": {"age": "quasi"}})
