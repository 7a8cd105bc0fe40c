"""``check --against`` and ``anonymize --previous``."""

from __future__ import annotations

import pytest

SCHEMA = """
[table]
person = "id"
[columns.age]
role = "quasi"
hierarchy = { intervals = [10, 20] }
[columns.ill]
role = "sensitive"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA)
    rows = ["20-29,canary-a", "20-29,canary-b", "20-29,canary-c"]
    for name, held in (("r1", rows), ("r2", [*rows, "20-29,canary-d"])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,ill", *held]) + "\n")
    return tmp_path


def test_what_releases_reveal_ends_with_two(folder, halfmask):
    found = halfmask("check", "--against", "r1.csv", "r2.csv", "--schema", "people.toml")
    assert found.code == 2
    assert "arrival" in found.out
    assert "canary" not in found.out + found.err
    assert halfmask("check", "--schema", "people.toml", "--against", "r1.csv", "r1.csv").code == 0


def test_the_document_of_releases(folder, halfmask):
    called = halfmask(
        "check", "--against", "r1.csv", "r2.csv", "--quasi", "age", "--sensitive", "ill", "--json"
    )
    found = called.json()
    assert (called.code, found["outcome"], found["holds"]) == (2, "revealed", False)
    assert found["witnesses"][0]["kind"] == "arrival"


def test_bad_questions_are_one_sentence(folder, halfmask):
    assert "Missing argument 'FILE'" in halfmask("check").err
    for words in (
        ("check", "--against", "r1.csv", "--schema", "people.toml"),
        ("check", "--against", "r1.csv", "r2.csv"),
        ("check", "--against", "--schema", "people.toml"),
        ("check", "--against", "r1.csv", "r2.csv", "--schema", "people.toml", "--k", "5"),
    ):
        found = halfmask(*words)
        assert found.code == 1
        assert found.err.count("\n") <= 2


def test_a_series_from_the_command_line(folder, halfmask):
    ills = "abcd"
    for month, people in (("may", range(16)), ("june", range(1, 20))):
        lines = [f"p{i},{20 + i},{ills[i % 4]}" for i in people]
        (folder / f"{month}.csv").write_text("\n".join(["id,age,ill", *lines]) + "\n")
        found = halfmask(
            "anonymize", f"{month}.csv", "--schema", "people.toml", "--m-invariance", "ill=3",
            "--previous", "s.ledger", "-o", f"{month}.parquet", "--report", f"{month}.html",
        )  # fmt: skip
        assert found.code == 0, found.err
    found = halfmask(
        "anonymize", "may.csv", "--schema", "people.toml", "--k", "2", "--previous", "s.ledger",
        "-o", "x.parquet",
    )  # fmt: skip
    assert found.code == 1
    assert not (folder / "x.parquet").exists()
