"""A masked file says what its columns are and what was promised, as any release does."""

from __future__ import annotations

import pytest

MASKED = ("--step", "suppress age", "--step", "local-suppression k=3", "--k", 3)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """60 people of three towns and three jobs, five or more of each pair, and one alone."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + i},{'abc'[i % 3]},{'xyz'[i // 3 % 3]},{i % 4}" for i in range(60)]
    (tmp_path / "c.csv").write_text("age,town,job,ill\n" + "\n".join([*rows, "90,d,x,1"]) + "\n")
    roles = {"age": "quasi", "town": "quasi", "job": "quasi", "ill": "sensitive"}
    (tmp_path / "c.toml").write_text(
        "".join(f'[columns.{name}]\nrole = "{role}"\n' for name, role in roles.items())
    )
    return tmp_path


@pytest.mark.parametrize("file", ["r4.csv", "r4.parquet", "r4.arrow"])
def test_a_masked_file_is_checked_and_assessed_as_it_stands(people, halfmask, file):
    assert halfmask("mask", "c.csv", *MASKED, "-o", file).code == 0
    checked = halfmask("check", file, "--json")
    assert checked.code == 0
    (verdict,) = checked.json()["verdicts"]
    assert (verdict["model"], verdict["holds"]) == ("k-anonymity", True)
    assert halfmask("assess", file).code == 0
    assert (people / "r4.toml").exists() == (file == "r4.csv")


def test_a_row_that_is_added_afterwards_is_found(people, halfmask):
    halfmask("mask", "c.csv", *MASKED, "-o", "r4.csv")
    with (people / "r4.csv").open("a") as stream:
        stream.write('"e","z",2\n')
    assert halfmask("check", "r4.csv").code != 0


def test_without_promises_a_masked_file_says_its_roles(people, halfmask):
    assert halfmask("mask", "c.csv", "--step", "round age base=10", "-o", "r.csv").code == 0
    text = (people / "r.toml").read_text()
    assert 'age = "masked: round"' in text
    assert halfmask("assess", "r.csv").code == 0


def test_what_a_masked_file_says_writes_over_no_schema_of_another_table(people, halfmask):
    (people / "other.toml").write_text((people / "c.toml").read_text())
    found = halfmask("mask", "c.csv", *MASKED, "-o", "other.csv")
    assert found.code == 1
    assert "schema file of another table" in found.err
    assert not (people / "other.csv").exists()
