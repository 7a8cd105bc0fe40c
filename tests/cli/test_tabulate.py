"""``halfmask tabulate`` and its audit."""

from __future__ import annotations

import json
import os

import pytest
from click import ClickException
from click.testing import CliRunner

from halfmask.cli.main import cli
from halfmask.errors import HalfmaskError

ROWS = "who,city,sex,pay\n" + "".join(
    f"{i},{'ab'[i % 2]},{'fm'[i % 5 == 0]},{100 + i}\n" for i in range(60)
)
SCHEMA = """
[table]
person = "who"
[columns]
who = { role = "identifier" }
city = { role = "quasi" }
sex = { role = "quasi" }
pay = { role = "sensitive" }
"""


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(ROWS, encoding="utf-8")
    (tmp_path / "people.toml").write_text(SCHEMA, encoding="utf-8")
    return path


def run(*words):
    return CliRunner().invoke(cli, ["tabulate", *map(str, words)], standalone_mode=False)


def test_a_table_is_written_and_audited(people, tmp_path):
    out, controller = tmp_path / "table.csv", tmp_path / "controller.csv"
    report = tmp_path / "table.json"
    done = run(people, "--by", "city,sex", "--threshold", 7, "-o", out, "--controller", controller,
               "--report", report)  # fmt: skip
    assert done.exception is None, done.exception
    assert out.exists()
    assert "threshold" in controller.read_text(encoding="utf-8")
    assert os.stat(controller).st_mode & 0o077 == 0
    audit = run(out, "--audit", "--threshold", 7, "--least", 1, "--parts", report, "--json")
    assert audit.return_value == 0, audit.output
    assert json.loads(audit.stdout)["holds"] is True


def test_without_a_file_the_published_table_is_printed_and_no_withheld_figure(people):
    done = run(people, "--by", "city,sex", "--threshold", 7)
    assert done.exception is None, done.exception
    shown = done.stdout.split("Table (figures for the controller)")[0]
    assert "Published table" in shown
    drawn = shown.replace("\u2502", "|").splitlines()
    lines = [[part.strip() for part in line.strip("| ").split("|")] for line in drawn]
    cells = {(line[0], line[1]): line[2] for line in lines if len(line) == 3}
    # 30 people live in each city; of 60 every fifth is m: 6 in a and 6 in b, below 7.
    assert cells["a", "m"] == cells["b", "m"] == "withheld"
    assert cells["a", "Total"] == cells["b", "Total"] == "30"
    assert cells["Total", "Total"] == "60"


def test_counts_over_time_are_paid_once(people, tmp_path):
    public = tmp_path / "public.toml"
    public.write_text('sex = ["f", "m"]\ncity = ["a", "b"]\n', encoding="utf-8")
    ledger = tmp_path / "people.ledger"
    words = [people, "--by", "sex", "--method", "dp", "--epsilon", 1, "--domains", public,
             "--ledger", ledger, "--period", "city"]  # fmt: skip
    first = run(*words, "--grant", 1, "--through", "a")
    assert first.exception is None, first.exception
    second = run(*words, "--through", "b", "--json")
    assert second.exception is None, second.exception
    document = json.loads(second.stdout)
    assert document["parameters"]["through"] == "b"
    assert any("Nothing was spent" in note for note in document["notes"])
    wrong = run(*words, "--through", "c")
    assert isinstance(wrong.exception, HalfmaskError)
    assert "last period that is over" in str(wrong.exception)


def test_an_audit_that_finds_something_ends_with_2(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("sex,n\nf,x\nm,7\nTotal,9\n", encoding="utf-8")
    found = run(path, "--audit", "-o", tmp_path / "found.csv", "--report", tmp_path / "found.json")
    assert found.return_value == 2
    assert "sex=f" in found.stdout
    assert "exact" in (tmp_path / "found.csv").read_text(encoding="utf-8")


def test_the_json_document(people):
    done = run(people, "--by", "city", "--sum", "pay", "--dominance", "1,50", "--p", 5, "--json")
    document = json.loads(done.stdout)
    assert document["format"] == "halfmask.tabulation/1"
    assert document["verb"] == "tabulate"
    assert document["cells"] == {"all": 3, "withheld": 0, "kept_share": 1.0}


def test_crossed_form_on_stdout(people):
    done = run(people, "--by", "city,sex", "--threshold", 2, "--form", "crossed", "-o", "-")
    assert done.stdout.splitlines()[0] == '"city","f","m","Total"'


@pytest.mark.parametrize(
    "more",
    [
        ("--method", "round", "--base", "5"),
        ("--method", "random-round"),
        ("--method", "cell-key", "--variance", "1", "--maximum", "3"),
        ("--threshold", "2", "--level", "city=0", "--l", "pay=2", "--sum", "pay"),
        ("--threshold", "2", "--no-margins", "--count", "rows", "--cost", "cells"),
    ],
    ids=" ".join,
)
def test_methods_and_rules(people, more):
    done = run(people, "--by", "city", *more, "--json")
    assert done.exception is None, done.exception


def test_noise_from_the_command_line(people, tmp_path):
    domains = tmp_path / "domains.toml"
    domains.write_text('city = ["a", "b"]\n', encoding="utf-8")
    done = run(people, "--by", "city", "--method", "dp", "--epsilon", 1, "--domains", domains)
    assert done.exception is None, done.exception
    assert "epsilon" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--threshold", "2"), "--by names the columns"),
        (("--by", "city", "--value", "n"), "belong to --audit"),
        (("--by", "city", "--base", "5"), "--base is not for --method suppress"),
        (("--by", "city", "--level", "2"), "COLUMN=LEVELS"),
        (("--by", "city", "--level", "city=x"), "whole numbers"),
        (("--by", "city", "--dominance", "2"), "N,PERCENT"),
        (("--by", "city", "--l", "pay"), "COLUMN=NUMBER"),
        (("--by", "nothing", "--threshold", "2"), "is not there"),
        (("--by", "city", "--method", "round", "--controller", "c.csv"), "--method suppress"),
    ],
)
def test_bad_words_write_nothing(people, tmp_path, words, said):
    out = tmp_path / "table.csv"
    done = run(people, *words, "-o", out)
    assert done.exception is not None
    text = getattr(done.exception, "message", "") or str(done.exception)
    assert said in text
    assert isinstance(done.exception, HalfmaskError | ClickException)
    assert not out.exists()
