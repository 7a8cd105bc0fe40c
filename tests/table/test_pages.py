"""The examples of the pages on reading, schemas and hierarchies run."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

import pytest

import halfmask as hm

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["hierarchies", "reading", "schema"]


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str) -> None:
    code = "\n".join(blocks(page, "python"))
    test = doctest.DocTestParser().get_doctest(code, {}, page, None, 0)
    assert test.examples
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0


def test_schema_files_are_valid() -> None:
    files = blocks("schema", "toml")
    assert len(files) == 2
    assert hm.Schema.from_dict(tomllib.loads(files[0])).quasi == ("age", "health", "born")
    assert hm.Schema.from_dict(tomllib.loads(files[1])).policy_file == "policies.csv"
