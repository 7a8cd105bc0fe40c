"""The table of verbs and engines is the one of the list."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_engines_is_that_of_the_list() -> None:
    place = ROOT / "scripts" / "engine_reference.py"
    spec = importlib.util.spec_from_file_location("engine_reference", place)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    assert script.page(text) == text
    assert "| anonymize: optimal, local" in text
