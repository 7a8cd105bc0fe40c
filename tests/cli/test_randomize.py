"""``halfmask randomize`` and ``halfmask shares`` on the command line."""

from __future__ import annotations

import json

import pytest

SCHEMA = """
[columns.smokes]
role = "sensitive"
domain = ["yes", "no"]
"""


@pytest.fixture
def town(tmp_path, monkeypatch):
    """300 answers of which 100 are yes, beside an age."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{'yes' if i % 3 == 0 else 'no'},{20 + i % 2}" for i in range(300)]
    (tmp_path / "town.csv").write_text("smokes,age\n" + "\n".join(rows) + "\n")
    (tmp_path / "town.toml").write_text(SCHEMA + '[columns.age]\nrole = "quasi"\n')
    return tmp_path


def test_answers_are_told_and_shares_estimated(town, halfmask):
    found = halfmask("randomize", "town.csv", "-c", "smokes", "--epsilon", 3, "-o", "out.csv",
                     "--report", "out.json")  # fmt: skip
    assert found.code == 0
    assert "Randomized answers" in found.out
    lines = (town / "out.csv").read_text().splitlines()
    assert len(lines) == 301
    document = json.loads((town / "out.json").read_text())
    told = document["statement"]["randomized"][0]
    assert (told["column"], told["epsilon"]) == ("smokes", 3.0)
    # By the formula: e^3 / (e^3 + 1).
    assert told["truth"] == pytest.approx(0.952574, abs=1e-6)
    shares = halfmask("shares", "out.csv", "--like", "out.json")
    assert shares.code == 0
    assert "Estimated shares" in shares.out
    exact = halfmask("shares", "out.csv", "--like", "out.json", "--json")
    yes, no = exact.json()["shares"]
    count = sum(line.startswith('"yes"') for line in lines[1:])
    assert yes["told"] == count
    by_hand = (count / 300 - (1 - 0.952574)) / (2 * 0.952574 - 1)
    assert yes["share"] == pytest.approx(by_hand, abs=1e-4)
    assert yes["share"] + no["share"] == pytest.approx(1)
    assert yes["low"] <= yes["share"] <= yes["high"]


def test_odds_are_bounded_and_a_chance_only_of_equally_likely_answers(town, halfmask):
    # Two in three say no: whoever always names it is right in 66.7 %, above the 62.2 % of the bound
    # e^0.5 / (e^0.5 + 1); the factor is e^0.5 = 1.649.
    found = halfmask("randomize", "town.csv", "-c", "smokes", "--epsilon", 0.5, "-o", "out.csv",
                     "--report", "out.json")  # fmt: skip
    said = " ".join(found.out.split()) + " ".join(found.err.split())
    told = json.loads((town / "out.json").read_text())["statement"]["randomized"][0]
    assert told["odds"] == pytest.approx(1.648721, abs=1e-6)
    for words in ("odds between two true answers", "1.649", "Only of 2 equally likely answers",
                  "62.2%", "more frequent"):  # fmt: skip
        assert words in told["meaning"]
        assert words in said
    assert "names it at most" not in said


def test_the_release_is_one_json_document(town, halfmask):
    found = halfmask("randomize", "town.csv", "-c", "smokes", "--epsilon", 1, "--json")
    assert found.code == 0
    document = found.json()
    assert document["rows"] == {"original": 300, "published": 300, "suppressed": 0}
    assert document["steps"][0]["mask"] == "randomize"


def test_rows_go_to_stdout_and_words_to_stderr(town, halfmask):
    found = halfmask("randomize", "town.csv", "-c", "smokes", "--epsilon", 1, "-o", "-")
    assert found.code == 0
    assert found.out.splitlines()[0] == '"smokes","age"'
    assert "Estimated shares" in found.err


def test_a_table_of_answers_alone_needs_no_quasi_identifier(town, halfmask):
    (town / "only.csv").write_text("smokes\n" + "yes\nno\n" * 50)
    (town / "only.toml").write_text(SCHEMA)
    found = halfmask("randomize", "only.csv", "-c", "smokes", "--epsilon", 1, "-o", "o.csv")
    assert (found.code, found.err.count("quasi")) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-c", "drinks", "--epsilon", 1), "drinks"),
        (("-c", "age", "--epsilon", 1), "no declared answers"),
        (("-c", "smokes", "--epsilon", 0), "above 0"),
        (("-c", "smokes", "--epsilon", "much"), "--epsilon"),
        (("--epsilon", 1), "--column"),
        (("-c", "smokes"), "--epsilon"),
        (("-c", "smokes", "-c", "smokes", "--epsilon", 1), "once"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(town, halfmask, arguments, words):
    found = halfmask("randomize", "town.csv", *arguments, "-o", "out.csv")
    assert found.code == 1
    assert words in found.err
    assert "Traceback" not in found.err
    assert not (town / "out.csv").exists()


def test_an_epsilon_that_somebody_does_not_accept_is_a_refusal(town, halfmask):
    text = (town / "town.toml").read_text()
    (town / "town.toml").write_text(text + "[policy]\nepsilon = 0.5\nk = 2\n")
    found = halfmask("randomize", "town.csv", "-c", "smokes", "--epsilon", 1, "-o", "out.csv")
    assert found.code == 2
    assert not (town / "out.csv").exists()


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (None, "cannot be read"),
        ("no json", "not a JSON file"),
        ('{"statement": {}}', "no report of a release with randomized"),
        ('{"statement": {"randomized": [{"column": "smokes"}]}}', "lacks what it should say"),
        ('{"statement": {"randomized": [{"column": "drinks", "epsilon": 1, "values": ["a", "b"]}'
         ']}}', "Name a column"),
        ('{"statement": {"randomized": [{"column": "smokes", "epsilon": 1, "values": ["a", "b"]}'
         ']}}', "could not be told"),
    ],
)  # fmt: skip
def test_shares_of_what_is_no_such_release_are_refused(town, halfmask, report, words):
    if report is not None:
        (town / "out.json").write_text(report)
    found = halfmask("shares", "town.csv", "--like", "out.json", "--json")
    assert found.code == 1
    assert words in found.err
