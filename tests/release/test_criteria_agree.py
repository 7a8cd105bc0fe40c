"""A criterion has one attacker and one figure, whichever verb, file or page tells it."""

from __future__ import annotations

import html
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import halfmask as hm
from halfmask.metrics.risk import criteria
from halfmask.report.page import render_page

IRIS = Path(__file__).parents[1] / "coclustering" / "iris.csv"
ROLES = {
    "sepal_length": "quasi",
    "sepal_width": "quasi",
    "petal_length": "quasi",
    "petal_width": "sensitive",
    "species": "sensitive",
}
ASKED = {"k": 8, "bins": 3, "seed": 3}
# By roles; then every column as known, and guessed from all others.
TOLD = [
    ("singling out", None),
    ("singling out, by any column", None),
    ("linkability", None),
    ("inference", "petal_width"),
    ("inference", "species"),
    ("wide singling out", None),
    ("wide linkability", None),
    *(("wide inference", name) for name in ROLES),
]


@pytest.fixture(scope="module")
def iris():
    return hm.read(IRIS, ROLES)


@pytest.fixture(scope="module")
def release(iris):
    return hm.synthesize(iris, method="cocluster", **ASKED)


@pytest.fixture(scope="module")
def told(release):
    document = json.loads(json.dumps(release.to_dict()))
    return {(c["name"], c["column"]): c for c in document["statement"]["measured"]["criteria"]}


def rows_of(page):
    """Per title in the table of criteria, the cells of its row as text."""
    table = page[page.index('<table class="criteria">') :]
    table = table[: table.index("</table>")]
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL):
        cells = [
            re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", cell))).strip()
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        found[cells[0]] = cells[1:]
    return found


def title(name, column):
    return name if column is None else f"{name} of {column}"


def test_every_criterion_is_told_once_under_its_own_name(told, release):
    assert [key for key in told if not key[0].endswith("by names")] == TOLD
    assert len(told) == len(release.measured["criteria"])


def test_compare_gives_the_figures_of_the_release_from_rows_and_files(
    iris, release, told, tmp_path
):
    release.write(tmp_path / "out.csv")
    release.write(tmp_path / "out.parquet")
    for given in (release, tmp_path / "out.csv", tmp_path / "out.parquet"):
        found = [one.to_dict() for one in hm.compare(iris, given, learn=False).criteria]
        assert {("inference", "species"), ("linkability", None)} <= {
            (one["name"], one["column"]) for one in found
        }
        for one in found:
            own = told[one["name"], one["column"]]
            for figure in ("attack", "baseline", "risk", "outcome", "attacker"):
                assert own[figure] == json.loads(json.dumps(one))[figure], (one["name"], figure)


def test_both_pages_show_the_same_rows(iris, release, told):
    made = rows_of(render_page(release.to_dict()))
    compared = rows_of(render_page(hm.compare(iris, release, learn=False).to_dict()))
    narrow = [title(*key) for key in told if not key[0].startswith("wide")]
    assert {title(*key) for key in told} <= set(made)
    assert set(narrow) <= set(compared)
    for name in narrow:
        assert made[name][:4] == compared[name][:4]


def test_inference_by_roles_knows_less_than_inference_by_every_column(told):
    """The two are different questions, which is why they have different names."""
    by_roles, wide = told["inference", "species"], told["wide inference", "species"]
    assert by_roles["attacker"] != wide["attacker"]
    assert "petal_width" not in by_roles["attacker"]
    assert "petal_width" in wide["attacker"]


def test_every_verb_asks_one_place(iris, release, monkeypatch):
    """Two definitions cannot come apart again: neither verb calls an attack itself."""
    monkeypatch.setattr(criteria, "inference", lambda *_, **__: pytest.fail("asked"))
    with pytest.raises(pytest.fail.Exception, match="asked"):
        hm.compare(iris, release, learn=False)
    with pytest.raises(pytest.fail.Exception, match="asked"):
        hm.synthesize(iris, method="cocluster", **ASKED)


def test_the_service_tells_the_same(told, tmp_path):
    if not (find_spec("fastapi") and find_spec("uvicorn")):
        pytest.skip("the service is an extra")
    from serving import served

    with served(tmp_path / "private") as service:
        assert service.upload(IRIS.read_bytes(), "iris.csv")["ok"]
        columns = {name: {"role": role} for name, role in ROLES.items()}
        assert service.run("PUT", "/api/schema", json={"columns": columns})["ok"]
        asked = {"method": "cocluster", **ASKED}
        found = service.run("POST", "/api/synthesize", json=asked)
        assert found["ok"], found
        assert {
            (c["name"], c["column"]): c for c in found["statement"]["measured"]["criteria"]
        } == told
        url = service.call("POST", "/api/links", json={"file": "synthetic.html"}).json()["url"]
        shown = rows_of(service.client.get(url).text)
        assert {title(*key) for key in told} <= set(shown)
        # Values that together k people must hold are a field of the page too.
        few = service.run("POST", "/api/synthesize", json={**asked, "combinations": 2})
        assert few["parameters"]["combinations"] == 2
        assert any("2 columns of a row" in words for words in few["statement"]["claimed"])
