"""Every example of the pages about schemas and hierarchies can be read."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

import pytest

from halfmask.table.columns import KINDS, ROLES
from halfmask.table.hierarchies import from_dict
from halfmask.table.hierarchies.builders import BUILDERS
from halfmask.table.schema import Schema

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA = (DOCS / "schema.md").read_text(encoding="utf-8")
HIERARCHIES = (DOCS / "hierarchies.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\{.*?\})` \|", HIERARCHIES, re.MULTILINE)


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", SCHEMA, re.DOTALL))
def test_every_example_is_a_schema(block):
    Schema.from_dict(tomllib.loads(block))


@pytest.mark.parametrize("row", ROWS)
def test_every_hierarchy_of_the_page_is_known(row):
    spec = tomllib.loads(f"h = {row.replace('[...]', '[1, 2]')}")["h"]
    assert from_dict(spec).to_dict()


def test_every_builder_has_a_row():
    named = [re.match(r"\{ (\w+)", row) for row in ROWS]
    assert {match[1] for match in named if match} == set(BUILDERS)


@pytest.mark.parametrize("word", [*ROLES, *KINDS])
def test_roles_and_kinds_are_explained(word):
    assert f"`{word}`" in SCHEMA


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_python_examples_of_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    # A fence ends an example; to doctest it would be output.
    text = page.read_text(encoding="utf-8").replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert results.failed == 0, "".join(report)
