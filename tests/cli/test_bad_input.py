"""Bad input: one clear error, the exit code of its branch, no value, no traceback, no file."""

from __future__ import annotations

import pytest

CANARY = "Zyxw9173"

SCHEMA = """
[columns.age]
role = "quasi"
kind = "numeric"
hierarchy = { intervals = [10, 50] }
[columns.job]
role = "quasi"
hierarchy = { csv = "job.csv" }
[columns.ill]
role = "sensitive"
"""
ROWS = f"age,job,ill\n30,cook,{CANARY}\n31,cook,flu\n45,baker,flu\n47,baker,gout\n"
JOBS = "cook;kitchen;*\nbaker;kitchen;*\n"


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "people.csv", ROWS)
    write(tmp_path, "people.toml", SCHEMA)
    write(tmp_path, "job.csv", JOBS)
    return tmp_path


def write(folder, name, text):
    if text is None:
        (folder / name).unlink()
    elif isinstance(text, bytes):
        (folder / name).write_bytes(text)
    else:
        (folder / name).write_text(text, encoding="utf-8")


# what is changed -> (files, further options, exit code, words that the message must hold)
CASES = {
    "missing file": ({"people.csv": None}, [], 1, ["people.csv", "not"]),
    "missing schema": ({}, ["--schema", "nowhere.toml"], 1, ["nowhere.toml", "not exist"]),
    "unreadable encoding": (
        {"people.csv": ROWS.encode("utf-16-be")[:-1] + b"\xff"}, ["--encoding", "utf-8"], 1, []
    ),
    "not utf-8": (
        {"people.csv": ROWS.replace("flu", "grippe-\xe9").encode("latin-1")},
        ["--encoding", "utf-8"], 1, ["encoding"],
    ),
    "unknown encoding": ({}, ["--encoding", "klingon"], 1, ["klingon"]),
    "duplicated columns": (
        {"people.csv": ROWS.replace("age,job,ill", "age,job,job")}, [], 1, ["columns 2 and 3"]
    ),
    "a declared column is missing": (
        {"people.csv": ROWS.replace("age,job,ill", "age,work,ill")}, [], 1, ["job"]
    ),
    "an unknown column on the command line": ({}, ["--quasi", "agee"], 1, ["agee", "age"]),
    "a model on an unknown column": ({}, ["--l", "disease=2"], 1, ["disease"]),
    "an undeclared column": (
        {"people.toml": SCHEMA.split("[columns.ill]")[0]}, [], 1, ["ill"]
    ),
    "a value the hierarchy lacks": ({"job.csv": "cook;kitchen;*\n"}, [], 1, ["job", "1"]),
    "an empty table": ({"people.csv": "age,job,ill\n"}, [], 1, ["no rows"]),
    "an empty file": ({"people.csv": ""}, [], 1, ["empty"]),
    "two roles in the file": (
        {"people.toml": SCHEMA + '[columns.age]\nrole = "sensitive"\n'}, [], 1, ["twice"]
    ),
    "two roles in a list": (
        {"people.toml": SCHEMA.replace('"sensitive"', '["quasi", "sensitive"]')}, [], 1, ["ill"]
    ),
    "two roles on the command line": ({}, ["--quasi", "ill", "--sensitive", "ill"], 1, ["ill"]),
    "a number column with text in it": (
        {"people.csv": ROWS.replace("30,", f"{CANARY},")}, [], 1, ["age", "1 row"]
    ),
    "a hierarchy with ragged rows": ({"job.csv": "cook;kitchen;*\nbaker;*\n"}, [], 1, ["job"]),
    "a hierarchy file is missing": ({"job.csv": None}, [], 1, ["job"]),
    "ragged rows in the table": (
        {"people.csv": ROWS + f"50,cook,{CANARY},{CANARY}\n"}, [], 1, ["people.csv"]
    ),
    "a schema that is no toml": ({"people.toml": "[columns\n"}, [], 1, ["people.toml", "line"]),
    "an unknown role": ({"people.toml": SCHEMA.replace("sensitive", "secret")}, [], 1, ["role"]),
    "suppression above one": ({}, ["--suppression", "1.5"], 1, ["suppression"]),
    "an unknown method": ({}, ["--method", "magic"], 1, ["magic"]),
    "an unknown metric": ({}, ["--metric", "magic"], 1, ["magic"]),
    "k larger than the table": ({}, ["--k", "5"], (1, 2), ["k"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bad_input_is_explained(halfmask, folder, monkeypatch, case):
    files, options, code, words = case
    for name, text in files.items():
        write(folder, name, text)
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    outcome = halfmask(
        "anonymize", "people.csv", "--k", "2", *options, "-o", "out.csv", "--report", "out.html"
    )
    assert outcome.code in (code if isinstance(code, tuple) else (code,)), outcome.err
    assert outcome.err.startswith("halfmask:")
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert CANARY not in outcome.err
    for word in words:
        assert word in outcome.err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_cases_fail_for_their_own_reason(halfmask, folder, monkeypatch):
    monkeypatch.chdir(folder)
    outcome = halfmask("anonymize", "people.csv", "--k", "2", "-o", "out.csv")
    assert outcome.code == 0, outcome.err
    assert (folder / "out.csv").exists()


@pytest.mark.parametrize("name", ["out.xyz", "nowhere/out.csv", "."])
def test_an_output_that_cannot_be_written_is_refused(halfmask, folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    outcome = halfmask("anonymize", "people.csv", "--k", "2", "-o", name)
    assert outcome.code == 1
    assert name.split("/")[-1] in outcome.err


@pytest.mark.parametrize("verb", ["describe", "assess", "check", "compare", "recode"])
def test_a_missing_file_in_every_verb(halfmask, tmp_path, verb):
    more = {"check": ["--k", "2"], "compare": ["b.csv"], "recode": ["r.json", "--k", "2"]}
    outcome = halfmask(verb, tmp_path / "a.csv", *more.get(verb, []), "--json")
    assert outcome.code == 1
    assert outcome.json()["ok"] is False
    assert outcome.json()["code"] == "input"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"columns": 3}', f'"{CANARY}"'])
def test_a_damaged_recoding_is_refused(halfmask, folder, text):
    write(folder, "recoding.json", text)
    outcome = halfmask("recode", folder / "people.csv", folder / "recoding.json", "--k", "2")
    assert outcome.code == 1
    assert CANARY not in outcome.err


def test_an_interrupted_write_leaves_no_file(halfmask, folder, monkeypatch):
    import pyarrow.csv

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pyarrow.csv, "write_csv", interrupted)
    before = sorted(path.name for path in folder.iterdir())
    outcome = halfmask("anonymize", folder / "people.csv", "--k", "2", "-o", folder / "out.csv")
    assert outcome.code == 130
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_report_of_no_known_kind_is_refused_before_anything_is_written(
    halfmask, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    outcome = halfmask("anonymize", "people.csv", "--k", 2, "-o", "out.csv", "--report", "out.docx")
    assert outcome.code == 1
    assert "out.docx" in outcome.err
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize("option", [("--rows", 1), ("--rows", -3), ("--rows", 9), ("--seed", -1)])
def test_a_demo_that_cannot_be_leaves_nothing_behind(halfmask, tmp_path, option):
    outcome = halfmask("demo", *option, "-o", tmp_path / "demo")
    assert outcome.code == 1
    assert option[0] in outcome.err
    assert not (tmp_path / "demo").exists()


def test_the_smallest_demo_works(halfmask, tmp_path):
    assert halfmask("demo", "--rows", 10, "--seed", 3, "-o", tmp_path / "demo").code == 0


def test_a_column_named_twice_is_called_that(halfmask, folder):
    outcome = halfmask("check", folder / "people.csv", "--quasi", "age,age", "--k", "2")
    assert outcome.code == 1
    assert "--quasi names the column 'age' twice" in outcome.err
