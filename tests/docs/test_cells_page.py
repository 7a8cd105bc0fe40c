"""The walk-through of the cells page, run as it stands."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import halfmask as hm

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cells.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def commands() -> list[str]:
    return re.findall(r"^\$ halfmask (.*)$", PAGE, re.MULTILINE)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
def test_the_walk_through_gives_the_answer_of_query(tmp_path: Path) -> None:
    (tmp_path / "commons.toml").write_text(block("toml"), encoding="utf-8")
    (tmp_path / "people.csv").write_text(block("csv"), encoding="utf-8")
    port = str(free_port())
    source = str(Path(hm.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    running: list[subprocess.Popen[str]] = []
    asked = None
    try:
        for text in commands():
            behind = text.endswith("&")
            words = shlex.split(
                text.rstrip("& ").replace("8765", port).replace("--seconds 20", "--seconds 8")
            )
            if behind:
                process = subprocess.Popen(  # noqa: S603 - ourselves
                    [sys.executable, "-m", "halfmask", *words],
                    cwd=tmp_path,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                running.append(process)
                asked = process if words[0] == "ask" else asked
                assert process.stderr is not None
                process.stderr.readline()  # says that it listens, or that the question is put
            else:
                done = subprocess.run(  # noqa: S603 - ourselves
                    [sys.executable, "-m", "halfmask", *words],
                    cwd=tmp_path,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
        assert asked is not None
        answer = json.loads(asked.communicate(timeout=60)[0])
    finally:
        for process in running:
            process.kill()
            process.communicate()
    rows = answer["answers"][0]["data"]
    sql = next(shlex.split(t)[1] for t in commands() if t.startswith("ask"))
    pooled = hm.read(
        tmp_path / "people.csv",
        {
            "columns": {
                "name": "identifier",
                "city": "quasi",
                "street": "quasi",
                "salary": "sensitive",
            },
            "table": {"person": "name"},
        },
    )
    people = {
        "people": {
            n: {"k": 3 if n == "dan" else 2} for n in ("alice", "bob", "carol", "dan", "erin")
        }
    }
    expected = hm.query(pooled, sql, people).to_arrow().to_pylist()
    key = str
    assert sorted(rows, key=key) == sorted(expected, key=key)
    shown = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("| Bourges")
    ]
    assert sorted(shown) == sorted(
        [r["city"], r["street"], str(r["n"]), f"{r['mean']:g}", str(r["level"])] for r in rows
    )


def test_every_fault_of_the_table_has_its_test() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    tests = Path(__file__).resolve().parents[1]
    files = [*(tests / "protocol").glob("test_*.py"), tests / "cli" / "test_cells.py"]
    known = {n for f in files for n in re.findall(r"^def (test_\w+)", f.read_text(), re.MULTILINE)}
    assert len(named) > 30
    assert named <= known, named - known
