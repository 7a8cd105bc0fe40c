"""An address with a password is given to every verb: nothing that is shown or kept repeats it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from effort import turn

import halfmask as hm
from halfmask.cli.main import VERBS, run
from halfmask.errors import HalfmaskError, InputError, ParameterError, SchemaError, mask_passwords
from halfmask.failure import failure

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "Zyxw9173"
ADDRESSES = (
    f"postgres://ann:{CANARY}@127.0.0.1:1/db",
    f"postgresql://ann:{CANARY}@127.0.0.1:1",
    f"postgres://127.0.0.1:1/db?user=ann&password={CANARY}",
    f"postgres://ann:a/b@{CANARY}@127.0.0.1:1/db",
    f"POSTGRES://ann:{CANARY}@127.0.0.1:1/db",
    f"mysql://ann:{CANARY}@127.0.0.1",
    f"postgres:/ann:{CANARY}@127.0.0.1",
)
SQL = "SELECT city, COUNT(*) FROM people GROUP BY city GUARANTEE k = 3, l = 1"
# how each verb names the address: as its file, or as any other thing that it reads or writes
GIVEN = {
    "describe": ["{}", "people.csv -o {}"],
    "assess": [
        "{}",
        "{} --table t",
        "{} --table t --quasi age",
        "people.csv --population {}",
        "people.csv --schema {}",
    ],
    "risks": ["{}", "people.csv --population {}", "people.csv -o {}"],
    "check": [
        "{} --k 2",
        "people.csv --k 2 --schema {}",
        "people.csv --quasi age --k 2 --policies {}",
        "people.csv --quasi age --k 2 --failing {}",
    ],
    "discriminate": ["{}", "people.csv --quasi age --sensitive job --needs {}"],
    "anonymize": [
        "{} --k 2",
        "people.csv --quasi age --k 2 -o {}",
        "people.csv --quasi age --k 2 --report {}",
        "people.csv --quasi age --k 2 --recoding {}",
    ],
    "recode": ["{}", "{} {} --k 2", "people.csv {} --k 2", "people.csv --recoding {} --k 2"],
    "query": [
        "{} SQL",
        "{} NOISE --grant 1 --ledger x.sqlite",
        "people.csv SQL --policies {}",
        "people.csv SQL --table t={}",
        "people.csv SQL --ledger {}",
        "people.csv NOISE --ledger {} --grant 1",
        "{} SQL --explain",
        "{} SQL --suggest",
    ],
    "budget": ["show {}", "create {} --grant 1", "raise {} --grant 1 --reason x", "bind {} {}"],
    "synthesize": ["{} --epsilon 1", "people.csv --epsilon 1 --domains {}"],
    "cocluster": ["{}", "people.csv -o {}"],
    "compare": [
        "{} people.csv",
        "{} people.csv --table t --quasi age",
        "people.csv {}",
        "people.csv {} --release-table t --quasi age",
    ],
    "frontier": ["{} --k 2", "{} --k 2 --table t --quasi age"],
    "mask": [
        '{} --step "round age base=5"',
        "people.csv --like {}",
        'people.csv --step "round age base=5" -o {}',
    ],
    "randomize": ["{} -c job --epsilon 1", "people.csv -c job --epsilon 1 -o {}"],
    "shares": ["{} --like people.csv", "people.csv --like {}"],
    "tabulate": ["{} --by age", "people.csv --by age -o {}"],
    "policies": ["{}", "people.csv -o {}"],
    "serve": ["{} --no-open", "people.csv --ledger {} --no-open"],
    "relay": ["--store {}"],
    "cell": ["init {}", "join {} --relay http://x"],
    "ask": ["SQL --relay {}", "SQL --key {}"],
    "cells": ["init {}"],
    "demo": ["{}"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text("age,job,city\n30,cook,a\n31,cook,a\n45,baker,b\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALFMASK_DEBUG", "1")
    return tmp_path


# The page starts a process for each try: addresses of three kinds are enough for it.
@pytest.mark.parametrize(
    ("verb", "address"),
    [(v, a) for i, v in enumerate(GIVEN) for a in turn(ADDRESSES, i, 1 if v == "serve" else 3)],
)
def test_no_verb_repeats_a_password(
    verb: str, address: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for pattern in GIVEN[verb]:
        for ending in ([], ["--json"]):
            words = [
                {"SQL": SQL, "NOISE": SQL.split("GUARANTEE")[0] + "WITH EPSILON 1"}.get(w, w)
                for w in pattern.split()
            ]
            with pytest.raises(SystemExit):
                run([verb, *(w.replace("{}", address) for w in words), *ending])
            out, err = capfd.readouterr()
            assert CANARY not in out + err, (verb, pattern)
    for file in folder.rglob("*"):
        assert CANARY not in file.name
        assert not file.is_file() or CANARY.encode() not in file.read_bytes()


def test_every_verb_is_tried() -> None:
    assert set(GIVEN) == set(VERBS)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_function_repeats_a_password(address: str) -> None:
    people = hm.read(pa.table({"age": [1, 2, 3]}), hm.Schema(columns={"age": hm.Column("quasi")}))
    tried = (
        lambda: hm.read(address),
        lambda: hm.query(address, SQL),
        lambda: hm.query(people, SQL, policies=address),
        lambda: hm.query(people, SQL, engine=address),
        lambda: hm.assess(hm.read(address, table="t")),
        lambda: hm.assess(address),
        lambda: hm.compare(people, address),
        lambda: hm.anonymize(people, hm.KAnonymity(2)).write(address),
        lambda: hm.anonymize(people, hm.KAnonymity(2)).report(address),
        lambda: hm.BudgetLedger.open(address),
        lambda: hm.Ledger().write(address),
    )
    for attempt in tried:
        with pytest.raises((HalfmaskError, OSError)) as caught:
            attempt()
        told = failure(caught.value)
        assert CANARY not in json.dumps(told.to_dict())
        if isinstance(caught.value, HalfmaskError):
            assert CANARY not in str(caught.value) + repr(caught.value)


def test_a_database_that_answers_is_not_named_with_its_password(
    postgres: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS cities")
        base.execute(
            "CREATE TABLE cities AS SELECT 1 AS age, 'a' AS city FROM generate_series(1, 9)"
        )
    address = f"{postgres}&password={CANARY}"
    asked = SQL.replace("people", "cities")
    calls = (
        ["query", address, asked, "--tables", "cities"],
        ["query", address, asked, "--tables", "cities", "--json", "--ledger", "answers.json",
         "--report", "answer.html"],
        ["query", address, asked, "--explain", "--tables", "cities"],
        ["query", address, asked, "--suggest", "--tables", "cities"],
        ["query", address, asked.replace("cities", "nowhere"), "--tables", "cities"],
        ["assess", address, "--table", "cities", "--quasi", "age,city", "-o", "assess.json"],
        ["assess", address, "--table", "nowhere", "--quasi", "age"],
        ["check", address, "--k", "2", "--table", "cities", "--quasi", "age"],
        ["compare", address, address, "--table", "cities", "--release-table", "cities",
         "--quasi", "age,city", "-o", "compare.html"],
        ["frontier", address, "--k", "2,3", "--table", "cities", "--quasi", "age,city"],
    )  # fmt: skip
    for call in calls:
        with pytest.raises(SystemExit):
            run(call)
        out, err = capfd.readouterr()
        assert CANARY not in out + err, call
    assert len(list(folder.iterdir())) > 3
    for file in folder.iterdir():
        assert CANARY.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://u:p@h/db", "postgres://u:***@h/db"),
        ("'postgres://u:p:q@r@h:5432/db'", "'postgres://u:***@h:5432/db'"),
        ("postgres://u@h/db", "postgres://u@h/db"),
        ("https://u:p@relay/x?y=1", "https://u:***@relay/x?y=1"),
        ("h/db?password=p&x=1", "h/db?password=***&x=1"),
        ("sslpassword=p host=h", "sslpassword=*** host=h"),
        ("Column 'a': b@c.", "Column 'a': b@c."),
        ("at 12:30 in x", "at 12:30 in x"),
    ],
)
def test_what_a_masked_text_looks_like(text: str, shown: str) -> None:
    assert mask_passwords(text) == shown


def test_errors_mask_whatever_they_are_made_of() -> None:
    for error in (
        InputError(ADDRESSES[0]),
        SchemaError(ADDRESSES[0], ADDRESSES[2]),
        ParameterError("x", ADDRESSES[0], "another"),
    ):
        assert CANARY not in str(error)
        assert CANARY not in json.dumps(failure(error).to_dict())
