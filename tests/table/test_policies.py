"""People's own demands: whole, complete, and joined from a file by person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import SchemaError

if TYPE_CHECKING:
    from pathlib import Path

PEOPLE = pa.table({"id": ["a", "b", "a"], "age": [1, 2, 3]})


def with_file(folder: Path, text: str, **policy: str) -> hm.Schema:
    (folder / "p.csv").write_text(text)
    data = {
        "table": {"person": "id"},
        "policy": {"file": "p.csv", **policy},
        "columns": {"id": "identifier", "age": "quasi"},
    }
    return hm.Schema.from_dict(data, folder=folder)


def test_demands_are_joined_by_person(tmp_path: Path) -> None:
    schema = with_file(tmp_path, "id,k_i,l_i\nb,5,1\na,2,3\nz,9,9\n", k="k_i", l="l_i")
    table = hm.read(PEOPLE, schema)
    assert table.arrow["k_i"].to_pylist() == [2, 5, 2]
    assert table.arrow["l_i"].to_pylist() == [3, 1, 3]
    assert table.schema.private == ("id", "k_i", "l_i")
    assert hm.read(table, schema).arrow["k_i"].to_pylist() == [2, 5, 2]


def test_numbered_people_match_whatever_their_type(tmp_path: Path) -> None:
    people = pa.table({"id": [1, 2], "age": [1, 2]})
    table = hm.read(people, with_file(tmp_path, "id,k\n2,7\n1,3\n"))
    assert table.arrow["k"].to_pylist() == [3, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,k\na,2\n", "no line for 1 person"),
        ("id,k\na,2\nb,3\na,4\n", "1 more line"),
        ("pid,k\na,2\n", "no column 'id'"),
        ("id,kk\na,2\n", "no column 'k'"),
    ],
)
def test_a_policy_file_that_does_not_fit(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        hm.read(PEOPLE, with_file(tmp_path, text))


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        ([1, None, 2], "1 are missing"),
        ([1, 0, -3], "2 are below 1"),
        ([1.0, 2.5, 2.0], "1 are not whole"),
        (["1", "x7x", "2"], "1 are not whole"),
        ([True, True, False], "not whole numbers"),
    ],
    ids=str,
)
def test_demands_must_be_whole_and_complete(demands: list[object], message: str) -> None:
    rows = pa.table({"k_i": demands, "age": [1, 2, 3]})
    with pytest.raises(SchemaError, match=message) as caught:
        hm.read(rows, {"policy": {"k": "k_i"}, "columns": {"age": "quasi"}})
    assert "x7x" not in str(caught.value)


def test_whole_demands_of_any_type_become_integers() -> None:
    for demands in ([1.0, 2.0], ["1", "2"], pa.array([1, 2], pa.uint8())):
        table = hm.read(pa.table({"k_i": demands}), {"policy": {"k": "k_i"}})
        assert table.arrow["k_i"].type == pa.int64()
        assert table.arrow["k_i"].to_pylist() == [1, 2]
