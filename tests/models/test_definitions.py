"""One promise, one file, one page: every exported model has a definition page of its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from halfmask import models

PAGES = Path(__file__).parents[2] / "docs" / "definitions"
PROMISES = [getattr(models, name) for name in models.__all__ if name not in ("Model", "Verdict")]
PARTS = ("Definition", "Source", "Protects", "Does not protect", "Attacker", "Exactness")


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_page_says_what_is_promised(promise):
    module = promise.__module__.rpartition(".")[2]
    page = (PAGES / f"{module}.md").read_text(encoding="utf-8")
    for part in PARTS:
        assert f"**{part}.**" in page


def test_exported_names_are_sorted_and_there():
    assert models.__all__ == sorted(models.__all__)
    assert all(hasattr(models, name) for name in models.__all__)
