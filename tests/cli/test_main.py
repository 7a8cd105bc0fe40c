"""Help, version, usage errors, and the one place where failures become exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest

from halfmask import errors
from halfmask.cli import main


def call(*arguments, **options):
    command = [sys.executable, "-m", "halfmask", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(command, text=True, check=False, **streams | options)  # noqa: S603


def raising(monkeypatch, error):
    @click.command()
    @click.option("--json", is_flag=True)
    def command(json):
        raise error

    monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: command)


def test_help_lists_every_verb(halfmask):
    outcome = halfmask("--help")
    assert outcome.code == 0
    for verb in main.VERBS:
        assert f"  {verb} " in outcome.out


@pytest.mark.parametrize("verb", main.VERBS)
def test_every_verb_has_help_with_an_example(halfmask, verb):
    outcome = halfmask(verb, "--help")
    assert outcome.code == 0
    assert f"Example: halfmask {verb}" in " ".join(outcome.out.split())
    if verb in {"budget", "cell", "cells"}:  # groups of verbs
        for below in main.cli.get_command(None, verb).commands:
            assert "--json" in halfmask(verb, below, "--help").out, below
    else:
        assert "--json" in outcome.out


def test_version(halfmask):
    outcome = halfmask("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("halfmask 0.")


def test_no_arguments_show_help_on_stderr(halfmask):
    outcome = halfmask()
    assert outcome.code == 1
    assert outcome.out == ""
    assert "Usage" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("check",), ("check", "x.csv", "--nope"), ("check", "x.csv", "--k", "many")],
    ids=["unknown verb", "missing argument", "unknown option", "text for a number"],
)
def test_usage_errors_are_input_errors_not_broken_promises(halfmask, arguments):
    outcome = halfmask(*arguments)
    assert outcome.code == 1
    assert outcome.err.startswith("halfmask:")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InputError("Wrong."), 1),
        (errors.SchemaError("One.", "Two."), 1),
        (errors.ParameterError("k", 0, "at least 1"), 1),
        (errors.PrivacyError("No."), 2),
        (errors.UnsatisfiableError("No."), 2),
        (errors.EngineUnavailableError("DuckDB", "pip install duckdb"), 4),
        (errors.InternalError("Odd."), 70),
        (MemoryError(), 4),
        (FileNotFoundError(2, "No such file or directory", "gone.csv"), 1),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("canary"), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_each_branch_has_its_exit_code(halfmask, monkeypatch, error, code):
    raising(monkeypatch, error)
    outcome = halfmask("anything")
    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err
    assert "Traceback" not in outcome.err
    assert "canary" not in outcome.err


def test_with_json_an_error_is_one_document(halfmask, monkeypatch):
    raising(monkeypatch, errors.SchemaError("One.", "Two."))
    outcome = halfmask("anything", "--json")
    assert outcome.code == 1
    document = outcome.json()
    assert document == {
        "ok": False,
        "code": "input.schema",
        "message": "- One.\n- Two.",
        "details": {"faults": ["One.", "Two."]},
    }


def test_a_defect_shows_no_value_unless_asked(halfmask, monkeypatch):
    raising(monkeypatch, ValueError("canary-42"))
    outcome = halfmask("anything", "--json")
    assert outcome.code == 70
    assert "canary" not in outcome.out + outcome.err
    assert "ValueError at test_main.py:" in outcome.err
    monkeypatch.setenv("HALFMASK_DEBUG", "1")
    assert "canary-42" in halfmask("anything").err


@pytest.mark.parametrize(
    ("arguments", "both"),
    [
        (["assess", "FILE", "--json"], False),
        (["check", "FILE", "--k", "2"], True),
    ],
    ids=["assess", "check, both streams"],
)
def test_a_reader_that_goes_away_is_no_failure_of_ours(few, arguments, both):
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": writer, "stderr": writer if both else subprocess.PIPE}
    listed = [few if one == "FILE" else one for one in arguments]
    done = call(*listed, **streams)
    os.close(writer)
    assert done.returncode == 141
    # A check that fails still says nothing: whoever reads has gone.
    assert "Traceback" not in (done.stderr or "")
    assert "Exception" not in (done.stderr or "")


def loaded(code: str, before: str = "pass") -> set[str]:
    """The modules that ``code`` loads in a fresh process, beyond those of ``before``."""
    script = (
        f"import sys\n{before}\nthere = set(sys.modules)\n"
        f"try:\n    {code}\nexcept SystemExit:\n    pass\n"
        "print(*sorted(set(sys.modules) - there), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return set(done.stderr.split())


def test_help_comes_at_once():
    """What is loaded, since seconds tell of the machine: of ours the verbs and no more."""
    found = loaded("from halfmask.cli.main import run; run(['--help'])")
    assert not found & {
        "numpy", "pyarrow", "numba", "duckdb", "pandas", "polars", "jinja2", "rich", "sqlglot",
    }  # fmt: skip
    deep = {name for name in found if name.startswith("halfmask.") and name.count(".") > 1}
    deep -= {"halfmask.table.hierarchy_finder"}  # a hook alone
    assert {name.rpartition(".")[0] for name in deep} == {"halfmask.cli"}
    assert len(found) < 200


def test_a_command_on_a_file_imports_no_pandas(sample):
    words = ["halfmask", "check", str(sample), "--k", "2", "--ignore-demands"]
    found = loaded(f"from halfmask.cli.main import run; sys.argv = {words}; run()")
    assert "pyarrow" in found
    assert "pandas" not in found


def test_a_command_inside_another_process_leaves_pandas_to_it(sample):
    words = ["check", str(sample), "--k", "2", "--ignore-demands"]
    found = loaded(f"from halfmask.cli.main import run; run({words})")
    assert "pandas" in found  # pyarrow looks once, and whoever runs this may have frames


def test_import_adds_little_to_numpy():
    found = loaded("import halfmask", before="import numpy")
    assert len(found) < 15
    assert {name.partition(".")[0] for name in found} <= {"halfmask", "importlib"}


def test_module_can_be_run(tmp_path):
    done = call("--version", cwd=tmp_path, env={**os.environ, "PYTHONWARNINGS": "error"})
    assert done.returncode == 0
    assert json.dumps(done.stdout).startswith('"halfmask 0.')
