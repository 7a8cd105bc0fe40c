"""People's own demands: whole, complete, and joined from a file by person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InternalError, SchemaError, UnsatisfiableError
from halfmask.release import Candidate, Recoding, seal

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
        ([1, 0, -3], "2 are below 1"),
        ([1.0, 2.5, 2.0], "1 are not whole"),
        (["1", "x7x", "2"], "1 are not whole"),
        ([True, True, False], "not whole numbers"),
        (pa.array([1, 2**64 - 1, 2], pa.uint64()), "1 are not whole numbers, or far too large"),
    ],
    ids=str,
)
def test_demands_must_be_whole(demands: list[object], message: str) -> None:
    rows = pa.table({"k_i": demands, "age": [1, 2, 3]})
    with pytest.raises(SchemaError, match=message) as caught:
        hm.read(rows, {"policy": {"k": "k_i"}, "columns": {"age": "quasi"}})
    assert "x7x" not in str(caught.value)
    assert str(2**64 - 1) not in str(caught.value)


def test_whole_demands_of_any_type_become_integers() -> None:
    for demands in ([1.0, 2.0], ["1", "2"], pa.array([1, 2], pa.uint8())):
        table = hm.read(pa.table({"k_i": demands}), {"policy": {"k": "k_i"}})
        assert table.arrow["k_i"].type == pa.int64()
        assert table.arrow["k_i"].to_pylist() == [1, 2]


SEVERAL = {"id": [1, 1, 2, 3, 4, 5, 6], "a": list("xyyxxxx"), "k": [5, 2, 2, 1, 1, 1, 1]}
ONE_EACH = {"table": {"person": "id"}, "policy": {"k": "k"}, "columns": {"a": "quasi"}}


@pytest.mark.parametrize("demands", [[5, 2, 2, 1, 1, 1, 1], [5, None, 2, 1, 1, 1, 1]], ids=str)
def test_one_person_has_one_demand(demands: list[int | None]) -> None:
    with pytest.raises(SchemaError, match=r"'k': 1 person.*one demand per person"):
        hm.read(pa.table(SEVERAL | {"k": demands}), ONE_EACH)


def test_one_demand_is_required_of_tables_made_by_hand_too() -> None:
    table = hm.Table(pa.table(SEVERAL), hm.Schema.from_dict(ONE_EACH))
    recoding = Recoding.of(table, [{"a": 0}])
    whole = Candidate(
        table=table,
        models=[hm.PersonalKAnonymity()],
        recoding=recoding,
        step=np.zeros(7, dtype=np.int32),
    )
    for attempt in (
        lambda: hm.check(table, hm.PersonalKAnonymity()),
        lambda: hm.anonymize(table, hm.PersonalKAnonymity()),
        lambda: recoding.apply(table, hm.PersonalKAnonymity()),
        lambda: seal(whole),
    ):
        with pytest.raises(SchemaError, match="one demand per person"):
            attempt()


def test_the_same_demand_in_all_rows_of_a_person_is_one_demand() -> None:
    rows = pa.table(SEVERAL | {"k": [2, 2, 2, 1, 1, 1, 1]})
    verdict = hm.check(hm.read(rows, ONE_EACH), hm.PersonalKAnonymity())[0]
    assert verdict.holds


def unstated(demands: list[int | None] | None) -> hm.Table:
    """Four people, two a class, of whom some state no demand (None: there is no such column)."""
    rows = pa.table({"a": ["x", "x", "y", "y"]})
    if demands is None:
        return hm.read(rows, {"a": "quasi"})
    rows = rows.append_column("k", pa.array(demands, pa.int64()))
    return hm.read(rows, {"policy": {"k": "k"}, "columns": {"a": "quasi"}})


@pytest.mark.parametrize("demands", [[2, None, 1, 1], [None] * 4, None], ids=str)
def test_a_default_speaks_for_people_who_state_no_demand(demands: list[int | None] | None) -> None:
    table = unstated(demands)
    for default, level in ((2, 0), (3, 1), (4, 1)):
        model = hm.PersonalKAnonymity(default=default)
        assert hm.check(table, model)[0].holds == (level == 0)
        release = hm.anonymize(table, model)
        assert release.levels == {"a": level}
        assert release.verdicts[0].required == default
        assert len(release.recoding.apply(table, model)) == 4


@pytest.mark.parametrize("demands", [[2, None, None, 1], None], ids=str)
def test_the_seal_applies_the_default_too(demands: list[int | None] | None) -> None:
    table = unstated(demands)
    for default, holds in ((2, True), (3, False)):
        candidate = Candidate(
            table=table,
            models=[hm.PersonalKAnonymity(default=default)],
            recoding=Recoding.of(table, [{"a": 0}]),
            step=np.zeros(4, dtype=np.int32),
        )
        if holds:
            assert len(seal(candidate)) == 4
        else:
            with pytest.raises(InternalError, match="personal k-anonymity"):
                seal(candidate)


def test_without_a_default_every_demand_must_be_stated() -> None:
    with pytest.raises(SchemaError, match="'k' is empty in 3 rows"):
        hm.check(unstated([None, 2, None, None]), hm.PersonalKAnonymity())
    with pytest.raises(SchemaError, match="under \\[policy\\], or give default="):
        hm.anonymize(unstated(None), hm.PersonalKAnonymity())


@pytest.mark.parametrize("default", [None, 98765], ids=["stated", "by default"])
def test_a_refusal_counts_people_and_keeps_their_demands_secret(default: int | None) -> None:
    table = unstated([1, 2, 98765, 2] if default is None else None)
    with pytest.raises(UnsatisfiableError) as caught:
        hm.anonymize(table, hm.PersonalKAnonymity(default=default))
    assert "98765" not in str(caught.value)
    assert f"{1 if default is None else 4} of 4 rows are of people who demand more" in str(
        caught.value
    )
    assert caught.value.verdicts[0].required == 98765
