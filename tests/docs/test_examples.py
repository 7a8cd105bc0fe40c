"""The examples in docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from fractions import Fraction

import pytest

import halfmask

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(halfmask.__path__, "halfmask.")
    if module.name != "halfmask.__main__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    given = {"Fraction": Fraction}
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=flags, extraglobs=given).failed == 0
