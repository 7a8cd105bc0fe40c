"""The page of the first hour, run from top to bottom on the sample."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from halfmask.cli.main import run
from halfmask.sample import write

PAGE = (Path(__file__).parents[2] / "docs" / "first-hour.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def home(tmp_path, monkeypatch):
    write(tmp_path, 120)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_run_in_their_order(home, capfd):
    lines = [line for kind, block in BLOCKS if not kind for line in block.splitlines() if line]
    assert len(lines) == 6
    said = {}
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "halfmask"
        with pytest.raises(SystemExit) as stop:
            run(arguments)
        assert stop.value.code == 0, line
        said[line] = "".join(capfd.readouterr())
    assert "demanded 3" in said["halfmask anonymize people.csv -o own.csv"]
    assert "those that were released" in said["halfmask check out.csv"]
    page = (home / "out.html").read_text(encoding="utf-8")
    assert "Statistics unit" in page
    assert str(home) not in page  # where it lies on this machine is nobody's business
    (home / "out.csv").write_bytes((home / "out.csv").read_bytes() + b"\n")
    with pytest.raises(SystemExit) as stop:
        run(["check", "out.csv"])
    assert stop.value.code == 2


def test_the_python_runs(home, capsys):
    (code,) = (block for kind, block in BLOCKS if kind == "python")
    exec(compile(code, "first-hour.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.splitlines()[0] == "1"
    assert {"own.parquet", "own.html"} <= {path.name for path in home.iterdir()}
