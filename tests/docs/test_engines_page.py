"""The table of verbs and engines is the one of the list."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_growth_is_that_of_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["growth_reference.py", "--check"])
    assert loaded("growth_reference").main() == 0


def test_the_table_of_engines_is_that_of_the_list() -> None:
    script = loaded("engine_reference")
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    assert script.page(text) == text
    assert "| anonymize: optimal, local" in text
