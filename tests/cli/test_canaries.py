"""No cell value in anything that a verb prints, on success as on failure."""

from __future__ import annotations

import pytest

CANARY = "Zyxw9173"
NUMBER = "918273645"
WHO = "Qvut5521"  # a check of own demands names people, to whoever holds the table
JOBS = "cook;kitchen;*\nbaker;kitchen;*\n" + f"{CANARY};kitchen;*\n"
SCHEMA = """
[table]
person = "id"
[policy]
k = "k_i"
[columns.id]
role = "identifier"
[columns.age]
role = "quasi"
[columns.job]
role = "quasi"
hierarchy = { csv = "job.csv" }
[columns.ill]
role = "sensitive"
[columns.pay]
role = "sensitive"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = "".join(
        f"{WHO}{i},{NUMBER if i == 0 else 30 + i % 2},{CANARY if i == 1 else 'cook'},"
        f"{CANARY if i % 3 else 'flu'},{NUMBER},{2 + i % 2}\n"
        for i in range(12)
    )
    (tmp_path / "people.csv").write_text(f"id,age,job,ill,pay,k_i\n{rows}", encoding="utf-8")
    (tmp_path / "people.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "job.csv").write_text(JOBS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMANDS = [
    "describe people.csv",
    "describe people.csv --json",
    "assess people.csv",
    "assess people.csv --json",
    "discriminate people.csv --target ill --key age,job",
    "discriminate people.csv --target ill --key age,job --json",
    "discriminate people.csv --target ill --size 2 --json",
    "discriminate people.csv --target pay --key age --partition job.csv",
    "check people.csv --k 2 --l ill=2 --t ill=0.1 --personal-k",
    "check people.csv --k 2 --beta ill=0.1 --delta-disclosure ill=1 --json",
    "check people.csv --t pay=0.1:ordered",
    "check people.csv --t ill=0.1:ordered",
    "check people.csv --l job=2",
    "check people.csv --l pay=99",
    "anonymize people.csv --k 3 -o out.csv --report out.json",
    "anonymize people.csv --personal-k --suppression 0.5 --method local -o out.csv",
    "anonymize people.csv --k 20 -o out.csv",
    "anonymize people.csv --l ill=9 --json",
    "check people.csv --k-map 3 --population people.csv",
    "compare people.csv people.csv",
    "compare people.csv job.csv",
    "recode people.csv people.toml --k 2",
    "check people.csv --schema job.csv --k 2",
    "anonymize job.csv --k 2",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_cell_value_is_printed(halfmask, folder, command):
    outcome = halfmask(*command.split())
    assert outcome.code in (0, 1, 2), outcome.err
    # The header of job.csv, read as a table, is its first line; it holds no canary.
    assert CANARY not in outcome.out + outcome.err
    assert NUMBER not in outcome.out + outcome.err
    # Whoever checks is the controller: what people demand is checked, and those are named who fail.
    assert WHO not in outcome.out or "check" in command
    assert WHO in outcome.out or "--personal-k" not in command or "check" not in command
    assert WHO not in outcome.err
    report = folder / "out.json"
    if report.exists():
        assert CANARY not in report.read_text(encoding="utf-8")
