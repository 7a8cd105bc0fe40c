"""What somebody meets who installs the package and imports it."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

import halfmask

ROOT = Path(halfmask.__file__)


def test_type_checkers_are_told_that_the_package_has_types():
    assert files("halfmask").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", halfmask.__all__)
def test_every_promised_name_loads(name):
    assert getattr(halfmask, name) is not None
    assert name in dir(halfmask)


def test_a_name_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(AttributeError, match=r"has no 'anonymise'; it has .*anonymize"):
        _ = halfmask.anonymise


def test_type_checkers_see_every_name_where_it_is():
    tree = ast.parse(ROOT.with_suffix(".pyi").read_text(encoding="utf-8"))
    stated = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    imported = {alias.asname: node.module for node in stated for alias in node.names}
    modules = {n for n in halfmask.__all__ if isinstance(getattr(halfmask, n), ModuleType)}
    assert modules == {"errors", "hierarchies", "masks", "policies"}
    found = {n: f"{home}.{n}" if n in modules else home for n, home in imported.items()}
    assert found == halfmask._HOMES
    assert sorted(found) == halfmask.__all__


@pytest.mark.parametrize("first", ["anonymize", "query", "synthesize"])
def test_a_folder_does_not_hide_the_function_of_its_name(first):
    code = f"import halfmask.{first}.run, halfmask; print(callable(halfmask.{first}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "True\n"
