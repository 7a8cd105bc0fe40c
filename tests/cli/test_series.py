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
    for who, said in (("p0", "hold this person: 1."), ("p5", ": 1, 2."), ("x", "None of the 2")):
        found = halfmask("check", "--previous", "s.ledger", "--holding", who)
        assert (found.code, said in found.out + found.err) == (0, True)
    for words in (("--holding", "p0"), ("may.csv", "--holding", "p0", "--previous", "s.ledger"),
                  ("--holding", "p0", "--previous", "absent.ledger")):  # fmt: skip
        assert halfmask("check", *words).code == 1
    found = halfmask(
        "anonymize", "may.csv", "--schema", "people.toml", "--k", "2", "--previous", "s.ledger",
        "-o", "x.parquet",
    )  # fmt: skip
    assert found.code == 1
    assert not (folder / "x.parquet").exists()


@pytest.mark.parametrize("first", ["series", "answers", "budget"])
def test_one_file_is_the_ledger_of_answers_of_noise_and_of_a_series(first, folder, halfmask):
    """Whichever made the file, the others keep what is theirs in it."""
    lines = [f"p{i},{20 + i},{'abcd'[i % 4]}" for i in range(16)]
    (folder / "may.csv").write_text("\n".join(["id,age,ill", *lines]) + "\n")
    schema, ledger = ("--schema", "people.toml"), ("--ledger", "one.ledger")
    exact = "SELECT COUNT(*) AS n FROM may {} GUARANTEE k = 5"
    noisy = "SELECT COUNT(*) AS n FROM may WITH EPSILON 0.5"
    steps = {
        "series": ("anonymize", "may.csv", *schema, "--m-invariance", "ill=3",
                   "--previous", "one.ledger", "-o", "may.parquet"),
        "answers": ("query", "may.csv", exact.format(""), *schema, *ledger),
        "budget": ("budget", "create", "one.ledger", "--grant", "1"),
    }  # fmt: skip
    for name in (first, *(one for one in steps if one != first)):
        found = halfmask(*steps[name])
        assert found.code == 0, found.err
    spent = halfmask("query", "may.csv", noisy, *schema, *ledger)
    assert spent.code == 0, spent.err
    # What was answered, spent and released stands in it: each refuses what its own record forbids.
    assert halfmask("query", "may.csv", exact.format("WHERE age > 20"), *schema, *ledger).code == 2
    account = halfmask("budget", "show", "one.ledger", "--json").json()
    assert (account["granted"], account["left"]) == ("epsilon = 1", "epsilon = 0.5")
    again = halfmask(*steps["series"][:-1], "june.parquet")
    assert again.code == 0, again.err
    proof = halfmask("check", "--against", "may.parquet", "june.parquet", *schema,
                     "--previous", "one.ledger")  # fmt: skip
    assert proof.code == 0, proof.out + proof.err


def test_a_series_in_a_ledger_with_a_key_needs_the_key(folder, halfmask):
    (folder / "key").write_bytes(b"sixteen bytes or more")
    lines = [f"p{i},{20 + i},{'abcd'[i % 4]}" for i in range(16)]
    (folder / "may.csv").write_text("\n".join(["id,age,ill", *lines]) + "\n")
    made = halfmask("budget", "create", "one.ledger", "--grant", "1", "--key", "key")
    assert made.code == 0, made.err
    words = ("anonymize", "may.csv", "--schema", "people.toml", "--m-invariance", "ill=3",
             "--previous", "one.ledger", "-o", "may.parquet")  # fmt: skip
    found = halfmask(*words)
    assert found.code != 0
    assert "sealed with another key" in found.err
    assert not (folder / "may.parquet").exists()
    key = ("--ledger-key", "key")
    assert halfmask(*words, *key).code == 0
    assert halfmask(*words[:-1], "june.parquet", *key).code == 0
    check = ("check", "--against", "may.parquet", "june.parquet", "--schema", "people.toml")
    assert halfmask(*check, "--previous", "one.ledger", *key).code == 0
    lone = halfmask(*check, *key)
    assert lone.code == 1
    assert "name its file, --previous" in lone.err


def test_a_ledger_without_a_series_proves_nothing_and_says_so(folder, halfmask):
    assert halfmask("budget", "create", "budget.ledger", "--grant", "1").code == 0
    found = halfmask("check", "--against", "r1.csv", "r2.csv", "--schema", "people.toml",
                     "--previous", "budget.ledger")  # fmt: skip
    assert found.code == 1
    assert "keeps no series of releases" in found.err


def test_a_ledger_that_is_not_there_is_named(folder, halfmask):
    found = halfmask("check", "--previous", "nofile.ledger", "--holding", "p1")
    assert found.code == 1
    assert "There is no file 'nofile.ledger'" in found.err
    assert not (folder / "nofile.ledger").exists()
