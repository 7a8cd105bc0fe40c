"""One promise, one page: every model has a definition page of its name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halfmask import models
from halfmask.models.verdict import known_models

PAGES = Path(__file__).parents[2] / "docs" / "definitions"
PARTS = ("Definition", "Source", "Protects", "Does not protect", "Attacker", "Exactness")


@pytest.mark.parametrize("model", known_models(), ids=lambda model: model.__name__)
def test_page_says_what_is_promised(model):
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", model.__name__).lower()
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    for part in PARTS:
        assert f"**{part}.**" in page


@pytest.mark.parametrize("model", known_models(), ids=lambda model: model.__name__)
def test_a_model_says_its_definition_source_and_words(model):
    assert "Definition: " in model.__doc__
    assert "Source: " in model.__doc__
    assert model.words.bound in ("at least", "at most")
    assert model.option is not None


def test_exported_names_are_sorted_and_there():
    assert models.__all__ == sorted(models.__all__)
    assert all(hasattr(models, name) for name in models.__all__)
