"""A file whose names and labels command the terminal: every verb writes them out instead."""

from __future__ import annotations

import os
import pty
import sys
import tomllib
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.cli import show
from halfmask.cli.main import run
from halfmask.table.files.toml import toml_section

if TYPE_CHECKING:
    from pathlib import Path

TITLE, BELL, BACK, C1, FLIP = "\x1b]0;x\x07", "\x07", "\r\b", "\x9b31m", "\u202e\u2066"
HOSTILE = TITLE + BELL + C1 + FLIP
NAME = f"age{HOSTILE}"
JOB = f"job{BACK}{HOSTILE}"
FORBIDDEN = set("\x1b\x07\x08\x9b\u202e\u2066\u200f\u0085")
QUASI = ["--quasi", f"{NAME},town"]
ASKED = 'SELECT "job", COUNT(*) AS n FROM people GROUP BY "job" GUARANTEE k = 2, l = 1'
ASKED = ASKED.replace("job", JOB)
CALLS = {
    "describe": ["describe", "people.csv"],
    "describe as a schema": ["describe", "people.csv", "-o", "-"],
    "assess": ["assess", "people.csv", *QUASI, "--sensitive", JOB],
    "risks": ["risks", "people.csv", *QUASI],
    "check": ["check", "people.csv", *QUASI, "--sensitive", JOB, "--k", "2", "--l", f"{JOB}=2"],
    "discriminate": ["discriminate", "people.csv", *QUASI, "--sensitive", JOB],
    "anonymize": ["anonymize", "people.csv", *QUASI, "--k", "2"],
    "frontier": ["frontier", "people.csv", *QUASI, "--k", "2,3"],
    "compare": ["compare", "people.csv", "people.csv", *QUASI],
    "cocluster": ["cocluster", "people.csv", *QUASI],
    "query": ["query", "people.csv", ASKED],
    "explain": ["query", "people.csv", "--explain", ASKED],
    "suggest": ["query", "people.csv", "--suggest", f'{ASKED} THEN "{JOB}" -> del GUARANTEE k = 2'],
    "a wrong query": ["query", "people.csv", ASKED.replace("GROUP", "HAVING", 1)],
    "an unknown column": ["assess", "people.csv", "--quasi", f"x{HOSTILE}"],
    "an unknown file": ["assess", f"x{HOSTILE}.csv"],
    "an unknown option": ["assess", f"--x{HOSTILE}"],
    "policies": ["policies", "people.csv", *QUASI],
    "synthesize": ["synthesize", "people.csv", *QUASI, "--method", "cocluster", "--k", "2"],
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{30 + i % 3},t{HOSTILE}{i % 2},j{HOSTILE}{i % 4}" for i in range(40)]
    names = f'"{NAME}",town,"{JOB}"'
    (tmp_path / "people.csv").write_text("\n".join([names, *rows, ""]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("what", CALLS)
def test_no_verb_sends_control_characters(what: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(CALLS[what])
    out, err = capfd.readouterr()
    assert out + err
    assert not FORBIDDEN & set(out + err), what
    assert "\r" not in out + err


def test_a_name_is_still_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["describe", "people.csv"])
    out = "".join(line.strip("│ \n") for line in capfd.readouterr().out.splitlines())
    assert "\\x1b]0;x" in out


def test_rows_go_to_a_pipe_as_they_are(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(SystemExit):
        run(["query", "people.csv", ASKED, "-o", "-"])
    assert f"j{HOSTILE}0".encode() in capfdbinary.readouterr().out


def test_rows_go_to_a_terminal_written_out() -> None:
    reader, terminal = pty.openpty()
    kept = os.dup(1)
    try:
        os.dup2(terminal, 1)
        sys.stdout.flush()
        before, sys.stdout = sys.stdout, open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
        try:
            show.print_csv(pa.table({NAME: [HOSTILE]}))
            sys.stdout.flush()
        finally:
            sys.stdout = before
        told = os.read(reader, 4096).decode()
    finally:
        os.dup2(kept, 1)
        for one in (reader, terminal, kept):
            os.close(one)
    assert "age\\x1b" in told
    assert not FORBIDDEN & set(told)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with ü and 漢字", "plain, with ü and 漢字"),
        ("two\nlines\tapart", "two\nlines\tapart"),
        ("a\x1b[31mb\x07", "a\\x1b[31mb\\x07"),
        ("a\rb\x7f\x85", "a\\rb\\x7f\\x85"),
        ("\u202eflipped\u2069\u200b", "\\u202eflipped\\u2069\\u200b"),
        ("a\u00a0b\u2028", "a\u00a0b\\u2028"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_a_terminal_is_sent(text: str, shown: str) -> None:
    assert show.visible(text) == shown


def test_a_cell_of_a_table_stays_on_its_line(capfd: pytest.CaptureFixture[str]) -> None:
    show.print_table("Title\x1b", ["a\nb"], [["c\x1bd"]])
    out = capfd.readouterr().out
    assert "\x1b" not in out
    assert "a\\nb" in out


def test_a_schema_file_is_read_back_with_every_character() -> None:
    names = {NAME: 1, JOB: HOSTILE, "\x7f\u2028": "\U000e0041\u200f"}
    text = toml_section("columns", names)
    assert not FORBIDDEN & set(text)
    assert tomllib.loads(text)["columns"] == names


def test_pages_escape_names_and_labels(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    table = pa.table({name: ["<b>a</b>"] * 6, "town": ["x", "y"] * 3})
    flat = hm.Column("quasi", hierarchy=hm.hierarchies.Flat())
    people = hm.read(table, hm.Schema(columns={name: flat, "town": flat}))
    release = hm.anonymize(people, hm.KAnonymity(2))
    release.report(tmp_path / "release.html")
    hm.assess(people).report(tmp_path / "assess.html")
    hm.query(people, ASKED.replace(JOB, name)).report(tmp_path / "answer.html")
    for page in tmp_path.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<script>alert(" not in text
        assert "<b>a</b>" not in text
