"""People's own demands: whole, complete, and joined from a file by person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InternalError, SchemaError, UnsatisfiableError
from halfmask.release import Candidate, Recoding, seal
from halfmask.table.demands import resolve_demand, with_policies

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


def test_a_policy_file_is_read_in_its_own_encoding_with_its_own_delimiter(tmp_path: Path) -> None:
    people = hm.read(pa.table({"id": ["Jörg", "Zoë"], "age": [1, 2]}), {"table": {"person": "id"}})
    path = tmp_path / "p.csv"
    path.write_bytes("person;k\nJörg;7\nZoë;3\n".encode("latin-1"))
    assert resolve_demand(with_policies(people, path), "k", []).tolist() == [7, 3]


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
def test_one_person_demands_the_most_of_all_rows(demands: list[int | None]) -> None:
    table = hm.read(pa.table(SEVERAL | {"k": demands}), ONE_EACH)
    assert resolve_demand(table, "k", []).tolist() == [5, 5, 2, 1, 1, 1, 1]


def test_the_most_of_all_rows_is_kept_of_tables_made_by_hand_too() -> None:
    table = hm.Table(pa.table(SEVERAL), hm.Schema.from_dict(ONE_EACH))
    assert hm.check(table, hm.PersonalKAnonymity())[0].failing == (1,)
    whole = Candidate(
        table=table,
        models=[hm.PersonalKAnonymity()],
        recoding=Recoding.of(table, [{"a": 0}]),
        step=np.zeros(7, dtype=np.int32),
    )
    with pytest.raises(InternalError, match="personal k-anonymity"):
        seal(whole)


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
        release = hm.anonymize(table, model, method="optimal")
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


def test_without_a_default_an_empty_demand_is_none() -> None:
    verdict = hm.check(unstated([None, 2, None, None]), hm.PersonalKAnonymity())[0]
    assert (verdict.holds, verdict.required) == (True, 2)
    assert not hm.check(unstated([None, 3, None, None]), hm.PersonalKAnonymity())[0].holds
    with pytest.raises(SchemaError, match="under \\[policy\\], or give default="):
        hm.anonymize(unstated(None), hm.PersonalKAnonymity())


@pytest.mark.parametrize("demand", ["k", "l", "t", "epsilon"])
def test_a_policy_column_in_which_nothing_stands_states_nothing(demand: str) -> None:
    rows = pa.table({"a": ["x", "y"], "own": pa.nulls(2)})
    table = hm.read(rows, {"policy": {demand: "own"}, "columns": {"a": "quasi"}})
    assert np.isnan(resolve_demand(table, demand, [])).all()


@pytest.mark.parametrize("default", [None, 98765], ids=["stated", "by default"])
def test_a_refusal_counts_people_and_keeps_their_demands_secret(default: int | None) -> None:
    table = unstated([1, 2, 98765, 2] if default is None else None)
    with pytest.raises(UnsatisfiableError) as caught:
        hm.anonymize(table, hm.PersonalKAnonymity(default=default), method="optimal")
    assert "98765" not in str(caught.value)
    count = 1 if default is None else 4  # told before anything is searched
    assert f"{count} of 4 people demand more" in str(caught.value)
    assert ("Nobody can be served" in str(caught.value)) == (count == 4)


def test_all_sources_of_a_table_are_resolved_together(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'l = 2\n[people."a"]\nk = 7\n[people."b".columns.age]\nk = 4\n'
    )
    rows = PEOPLE.append_column("k_i", pa.array([3, 5, 3]))
    policy = {"k": "k_i", "file": "own.toml", "columns": {"age": {"t": 0.5}}}
    data = {
        "table": {"person": "id"},
        "policy": policy,
        "columns": {"id": "identifier", "age": "quasi"},
    }
    table = hm.read(rows, hm.Schema.from_dict(data, folder=tmp_path))
    assert resolve_demand(table, "k", []).tolist() == [7, 5, 7]
    assert resolve_demand(table, "k", ["age"]).tolist() == [7, 5, 7]
    assert resolve_demand(table, "l", []).tolist() == [2, 2, 2]
    assert np.isnan(resolve_demand(table, "t", [])).all()
    assert resolve_demand(table, "t", ["age"]).tolist() == [0.5, 0.5, 0.5]
    more = with_policies(table, {"columns": {"age": {"k": 6}}})
    assert resolve_demand(more, "k", ["age"]).tolist() == [7, 6, 7]
    assert resolve_demand(table, "k", ["age"]).tolist() == [7, 5, 7]
    again = hm.Schema.from_dict(table.schema.to_dict(), folder=tmp_path)
    assert again == table.schema


def test_a_demand_in_the_table_and_in_the_file_is_the_stricter_one(tmp_path: Path) -> None:
    rows = PEOPLE.append_column("k_i", pa.array([4, 1, 4]))
    table = hm.read(rows, with_file(tmp_path, "id,k_i\na,2\nb,9\n", k="k_i"))
    assert table.arrow["k_i"].to_pylist() == [4, 9, 4]


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"K": 3}, "Unknown in the policies: K"),
        ({"k": 0}, "k must be a whole number of at least 1"),
        ({"l": 2.5}, "l must be a whole number"),
        ({"t": 1.5}, "t must be from 0 to 1"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"columns": {"age": {"K": 3}}}, "'K' is none of k, l, t, epsilon"),
        ({"people": {"a": {"K": 3}}}, "1 entries of people"),
        ({"people": {"a": {"k": "x7x"}}}, "1 entries of people"),
        (pa.table({"person": ["a"], "k": [0]}), "k: 1 demand"),
        (pa.table({"person": ["a"], "k": ["x7x"]}), "k must hold numbers"),
        (pa.table({"person": ["a"], "k": [1], "colunm": ["age"]}), "unknown are 'colunm'"),
        (pa.table({"who": ["a"]}), "needs the columns person"),
    ],
    ids=str,
)
def test_policies_that_say_something_odd(policies: object, message: str) -> None:
    table = hm.read(PEOPLE, {"table": {"person": "id"}, "columns": {"age": "quasi"}})
    with pytest.raises(SchemaError, match=message) as caught:
        with_policies(table, policies)
    assert "x7x" not in str(caught.value)


def test_people_are_told_apart_by_the_person_column() -> None:
    table = hm.read(PEOPLE.select(["age"]), {"age": "quasi"})
    with pytest.raises(SchemaError, match="keyed by person"):
        with_policies(table, {"people": {"1": {"k": 3}}})


def test_numbers_hold_for_everybody_and_leave_no_column() -> None:
    table = hm.read(
        PEOPLE.select(["age"]), {"policy": {"k": 3, "t": 0.5}, "columns": {"age": "quasi"}}
    )
    assert table.schema.private == ()
    assert len(hm.anonymize(table)) == 3
    assert table.schema.to_toml().startswith("[policy]\nk = 3\nt = 0.5\n")


def test_a_table_that_stays_in_a_database_keeps_the_demands_of_a_file(tmp_path: Path) -> None:
    import duckdb

    rows = pa.table({"id": list("abcdef"), "city": ["x"] * 6})
    with duckdb.connect(str(tmp_path / "p.duckdb")) as held:
        held.register("r", rows)
        held.execute("CREATE TABLE people AS SELECT * FROM r")
    (tmp_path / "p.csv").write_text(
        "id,k\n" + "".join(f"{i},{9 if i == 'b' else 2}\n" for i in "abcdef")
    )
    data = {
        "table": {"person": "id"},
        "policy": {"file": "p.csv", "k": "k"},
        "columns": {"city": "quasi"},
    }
    schema = hm.Schema.from_dict(data, folder=tmp_path)
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 2"
    answer = hm.query(str(tmp_path / "p.duckdb"), sql, schema=schema, tables=["people"])
    assert answer.to_arrow()["n"].to_pylist() == [5]


def test_demands_are_checked_where_an_engine_counts(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = pa.table({"id": list("abcdef"), "city": list("xxxxyy"), "pay": [1, 2, 3, 4, 5, 6]})
    pq.write_table(rows, tmp_path / "p.parquet")
    policy = {"k": 2, "columns": {"pay": {"k": 3}}}
    data = {
        "table": {"person": "id"},
        "policy": policy,
        "columns": {"city": "quasi", "pay": "other"},
    }
    for engine in ("memory", "duckdb"):
        found = hm.check(
            hm.read(tmp_path / "p.parquet", schema=data, engine=engine),
            policies={"people": {"a": {"k": 5}}},
        )
        assert [v.failing for v in found] == [("a", "e", "f")], engine
