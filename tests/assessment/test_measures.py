"""A measure is declared in one place; results, documents, terminal and pages follow."""

from __future__ import annotations

import json
import pickle
import runpy
from pathlib import Path

import pytest
from packages import install_package, run_beside

import halfmask as hm
from halfmask.assessment import measure
from halfmask.assessment.assess import ASSESSED
from halfmask.assessment.comparison import COMPARED
from halfmask.cli.assess import show_assessment
from halfmask.cli.compare import show_comparison
from halfmask.report.page import render_page

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
from halfmask.assessment.measure import Finding, Measure, register_measures
from halfmask.metrics.estimate import Estimate

register_measures(
    "{verb}",
    Measure(
        "letters",
        "How many letters have the names of the quasi-identifiers?",
        lambda case: Estimate(sum(map(len, {names})), 2, 5, 7),
        lambda one, found: [Finding("letters of names", 0.5, one, "as a count", form="count")],
        "{section}",
        "reads names",
    ),
)
"""


@pytest.fixture
def people():
    rows = {"age": [30, 30, 41, 41], "ill": ["a", "b", "a", "b"]}
    return hm.read(rows, schema={"age": "quasi", "ill": "sensitive"})


@pytest.fixture
def declare(tmp_path, monkeypatch):
    """Runs a module that declares a measure, which is forgotten after the test."""

    def run(verb, names, section):
        monkeypatch.setitem(measure._ADDED, verb, [])
        path = tmp_path / "letters.py"
        path.write_text(MODULE.format(verb=verb, names=names, section=section))
        runpy.run_path(str(path))

    return run


@pytest.mark.parametrize("section", ["use", "attacks", "classes"])
def test_a_declared_measure_of_a_comparison_is_seen_everywhere(people, declare, section, capsys):
    declare("compare", "[c.name for c in case.sides.quasi]", section)
    found = hm.compare(
        people, hm.anonymize(people, hm.KAnonymity(2), method="optimal"), learn=False
    )
    assert found.letters.value == 3
    document = found.to_dict()
    assert document["letters"]["high"] == 5
    (line,) = (one for one in document["findings"] if one["measure"] == "letters")
    assert (line["section"], line["attacker"]) == (section, "reads names")
    page = " ".join(render_page(document).split())
    assert '<b>letters of names</b><br><span class="quiet">reads names</span>' in page
    assert "0 → 3 (2 to 5)" in page
    assert "as a count, n = 7" in page
    show_comparison(found)
    (printed,) = (x for x in capsys.readouterr().out.splitlines() if "letters of names" in x)
    assert [cell.strip() for cell in printed.split("│")][2:-1] == ["0.5", "3", "2", "5"]


def test_a_declared_measure_of_an_assessment_is_seen_everywhere(people, declare, capsys):
    declare("assess", "case.table.schema.quasi", "use")
    found = hm.assess(people)
    assert found.letters.value == 3
    document = found.to_dict()
    assert document["letters"]["low"] == 2
    page = " ".join(render_page(document).split())
    assert "<b>letters of names</b>" in page
    assert "0 → 3 (2 to 5)" in page
    show_assessment(found)
    assert "letters of names: as a count" in capsys.readouterr().out


def test_a_measure_of_another_package_is_seen_by_command_line_and_reference(tmp_path):
    names = "case.table.schema.quasi"
    module = MODULE.format(verb="assess", names=names, section="use")
    install_package(tmp_path, "letters", module, "halfmask.measures", "letters")
    (tmp_path / "people.csv").write_text("age,ill\n30,a\n30,b\n41,a\n41,b\n")
    told = run_beside(
        tmp_path, "-m", "halfmask", "assess", "people.csv", "--quasi", "age", "--json"
    )
    assert json.loads(told)["letters"]["value"] == 3
    script = str(ROOT / "scripts" / "measure_reference.py")
    page = run_beside(
        tmp_path,
        "-c",
        "import runpy, sys; print(runpy.run_path(sys.argv[1])['reference']())",
        script,
    )
    assert "| `letters` | How many letters have the names of the quasi-identifiers? |" in page


def test_every_measure_of_an_assessment_is_in_its_document(people):
    document = hm.assess(people).to_dict()
    assert {one.written or one.name for one in ASSESSED} <= set(document)


def test_every_measure_of_a_comparison_is_an_attribute_and_in_its_document(people):
    found = hm.compare(
        people, hm.anonymize(people, hm.KAnonymity(2), method="optimal"), learn=False
    )
    document = found.to_dict()
    for one in COMPARED:
        assert one.name in dir(found)
        assert (one.written or one.name) in document
        assert one.question.endswith("?")
    assert pickle.loads(pickle.dumps(found)).to_dict() == document  # noqa: S301 - our own
    with pytest.raises(AttributeError, match="nonsense"):
        found.nonsense  # noqa: B018 - it must not be there
