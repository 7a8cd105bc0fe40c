"""The walk-through of the cells page, run as it stands."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from patience import PATIENCE
from tests.protocol.town import Town

import halfmask as hm
from halfmask.cli.main import run
from halfmask.protocol.common_schema import commons_from

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cells.md").read_text(encoding="utf-8")


def block(kind: str, number: int = 0) -> str:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[number]


def shown(*heads: str) -> list[dict[str, str]]:
    """The rows of the table with these heads."""
    rest = PAGE.split(f"| {' | '.join(heads)} |\n", 1)[1]
    lines = itertools.takewhile(lambda line: line.startswith("|"), rest.splitlines()[1:])
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(heads, row, strict=True)) for row in cells]


def commands() -> list[str]:
    return re.findall(r"^\$ halfmask (.*)$", PAGE, re.MULTILINE)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
def test_the_walk_through_gives_the_answer_of_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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
                text.rstrip("& ").replace("8765", port).replace("--seconds 20", "--seconds 2")
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
                with pytest.raises(SystemExit) as ended:
                    run(words)
                assert ended.value.code == 0, text
        assert asked is not None
        answer = json.loads(asked.communicate(timeout=PATIENCE)[0])
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
    stated = [text.split() for text in commands() if text.startswith("cell policy")]
    demands = {words[2].removesuffix(".cell"): int(words[4]) for words in stated}
    people = {"people": {name: {"k": k} for name, k in demands.items()}}
    expected = hm.query(pooled, sql, people).to_arrow().to_pylist()
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert shown("city", "street", "n", "mean", "level") == [
        {n: f"{v:g}" if n == "mean" else str(v) for n, v in r.items() if n != "guarantee"}
        for r in sorted(rows, key=lambda r: r["level"])
    ]


def test_the_common_schema_with_values_and_a_hierarchy_answers_as_shown() -> None:
    commons = commons_from(tomllib.loads(block("toml", 1)))
    lines = list(csv.DictReader(io.StringIO(block("csv", 1))))
    numbers = {"age", "salary", "k"}
    people = [{n: int(v) if n in numbers else v for n, v in line.items()} for line in lines]
    text = block("sql")
    found = Town(people, commons).ask(text)
    assert found is not None
    ours = sorted(found[0].rows.to_pylist(), key=lambda r: r["level"])
    assert shown("city", "n", "middle", "level") == [
        {n: f"{v:g}" if n == "middle" else str(v) for n, v in r.items() if n != "guarantee"}
        for r in ours
    ]
    document = tomllib.loads(block("toml", 1))["tables"]["people"]["columns"]
    columns = {
        name: {k: v for k, v in given.items() if k in ("role", "hierarchy")}
        for name, given in document.items()
    }
    table = pa.Table.from_pylist([{n: p[n] for n in (*columns, "k")} for p in people])
    expected = hm.query(hm.read(table, {"columns": columns}), text, {"k": "k"})
    assert sorted(map(str, ours)) == sorted(map(str, expected.to_arrow().to_pylist()))


def test_every_fault_of_the_table_has_its_test() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    tests = Path(__file__).resolve().parents[1]
    files = [tests / folder / "test_cells.py" for folder in ("cli", "attacks")]
    files += (tests / "protocol").glob("test_*.py")
    known = {n for f in files for n in re.findall(r"^def (test_\w+)", f.read_text(), re.MULTILINE)}
    assert len(named) > 30
    assert named <= known, named - known
