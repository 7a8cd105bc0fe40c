"""Help, version, usage errors, and the one place where failures become exit codes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import click
import pytest

from halfmask import errors
from halfmask.cli import main


def call(*arguments, **options):
    command = [sys.executable, "-m", "halfmask", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # noqa: S603


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


@pytest.mark.parametrize("streams", ["", "2>&1"], ids=["stdout", "both streams"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["assess", "FILE", "--json"],
        ["describe", "FILE"],
        ["check", "FILE", "--k", "2"],
        ["query", "FILE", "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex GUARANTEE k = 3"],
    ],
    ids=["assess", "describe", "check", "query"],
)
def test_a_reader_that_goes_away_is_no_failure_of_ours(sample, arguments, streams):
    listed = shlex.join(str(sample) if one == "FILE" else one for one in arguments)
    command = f'"{sys.executable}" -m halfmask {listed} {streams} | true; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert done.returncode == 141
    # A check that fails still says nothing: whoever reads has gone.
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_help_loads_no_heavy_package():
    code = (
        "import sys\n"
        "from halfmask.cli.main import run\n"
        "try:\n    run(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'duckdb', 'pandas', 'polars', 'jinja2', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr.strip() == "[]"


def fastest(code: str, runs: int = 5) -> float:
    """Seconds of processor time, which a busy machine does not lengthen much."""
    times = []
    for _ in range(runs):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        after = os.times()
        spent = after.children_user + after.children_system
        times.append(spent - before.children_user - before.children_system)
    return min(times)


@pytest.mark.slow
def test_help_comes_at_once():
    code = "import sys; sys.argv = ['halfmask', '--help']; from halfmask.cli.main import run; run()"
    assert fastest(code) < 0.5


def test_the_function_wins_over_the_folder_of_its_name():
    code = "import halfmask.anonymize.run, halfmask as hm; assert callable(hm.anonymize)"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


@pytest.mark.slow
def test_import_adds_little_to_numpy():
    assert fastest("import numpy, halfmask") - fastest("import numpy") < 0.15


def test_module_can_be_run(tmp_path):
    done = call("--version", cwd=tmp_path, env={**os.environ, "PYTHONWARNINGS": "error"})
    assert done.returncode == 0
    assert json.dumps(done.stdout).startswith('"halfmask 0.')
