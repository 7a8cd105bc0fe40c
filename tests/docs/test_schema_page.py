"""Every example of the schema page can be read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from halfmask.table.hierarchies import from_dict
from halfmask.table.schema import KINDS, ROLES, Schema

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\{.*?\})` \|", PAGE, re.MULTILINE)


def test_the_example_is_a_schema():
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    schema = Schema.from_dict(tomllib.loads(block))
    assert schema.quasi == ("age",)
    assert schema.sensitive == ("disease",)


@pytest.mark.parametrize("row", ROWS)
def test_every_hierarchy_of_the_page_is_known(row):
    assert from_dict(tomllib.loads(f"h = {row}")["h"]).to_dict()


def test_every_builder_has_a_row():
    from halfmask.table.hierarchies.parse import BUILDERS

    assert {re.match(r"\{ (\w+)", row)[1] for row in ROWS} == set(BUILDERS)


@pytest.mark.parametrize("word", [*ROLES, *KINDS])
def test_roles_and_kinds_are_explained(word):
    assert f"`{word}`" in PAGE
