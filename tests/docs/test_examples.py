"""The examples in docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib
from fractions import Fraction
from pathlib import Path

import pytest

import halfmask

SOURCE = Path(halfmask.__file__).parent
MODULES = {
    ".".join(("halfmask", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): ">>>" in file.read_text(encoding="utf-8")
    for file in sorted(SOURCE.rglob("*.py"))
    if file.name != "__main__.py"
}


def test_every_module_can_be_imported() -> None:
    for name in MODULES:
        assert importlib.import_module(name).__name__ == name


@pytest.mark.parametrize("name", [name for name, shows in MODULES.items() if shows])
def test_examples_give_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    given = {"Fraction": Fraction}
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=flags, extraglobs=given).failed == 0
