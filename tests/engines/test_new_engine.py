"""To add an engine that answers queries: one module and one line. The verbs follow."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest
from click.testing import CliRunner

import halfmask as hm
from halfmask.cli.main import cli
from halfmask.engines import sources
from halfmask.engines.reference import Reference
from halfmask.errors import ParameterError
from halfmask.query.run import Session

ASK = (
    "SELECT city, job, AVG(pay) AS pay FROM people GROUP BY city, job GUARANTEE k = 2 "
    "THEN job -> del GUARANTEE k = 3"
)
ROWS = {
    "city": ["Vis", "Vis", "Vis", "Vis", "Ur", "Ur", "Ur"],
    "job": ["cook", "cook", "smith", "clerk", "cook", "smith", "clerk"],
    "pay": [10, 20, 30, 50, 70, 10, 40],
}
asked: list[str] = []


class Echo(Reference):
    """Rows in lists, which keeps count of what it is asked."""

    name = "echo"

    def collect(self, request):
        asked.append(self.name)
        return super().collect(request)


@pytest.fixture(autouse=True)
def _added(monkeypatch):
    """The module stands beside the others, and one line names it."""
    module = ModuleType("halfmask.engines.echo")
    module.Echo = Echo
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sources.ENGINES, "echo", ("echo", "Echo"))
    asked.clear()


def test_it_answers_as_the_others_do():
    people = hm.read(ROWS, schema={"city": "quasi", "job": "quasi", "pay": "sensitive"})
    rows = [
        hm.query({"people": people}, ASK, engine=name).to_arrow().sort_by("city").to_pylist()
        for name in ("echo", "duckdb")
    ]
    assert rows[0] == rows[1]
    assert [row["pay"] for row in rows[0] if row["job"] == "cook"] == [15.0]
    assert asked == ["echo"]


def test_a_session_keeps_it():
    people = hm.read(ROWS, schema={"city": "quasi", "job": "quasi", "pay": "sensitive"})
    with Session({"people": people}, engine="echo") as session:
        assert len(session.answer(session.prepare(ASK)).to_arrow()) == 2
    assert asked


def test_the_command_line_takes_it(tmp_path):
    file = tmp_path / "people.csv"
    lines = zip(*ROWS.values(), strict=True)
    file.write_text("\n".join([",".join(ROWS), *(",".join(map(str, one)) for one in lines)]))
    words = ["query", str(file), ASK, "--quasi", "city,job", "--engine", "echo", "--json"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)["answer"]
    assert (answer["engine"], answer["rows"]) == ("echo", 2)
    assert asked == ["echo"]


def test_who_names_none_is_told_of_it():
    with pytest.raises(ParameterError, match="reference, echo"):
        hm.query({"people": hm.read(ROWS)}, ASK, engine="nonsense")
