"""Names of the code: no two things share one, none tells nothing, few take many arguments."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import halfmask as hm

HOME = Path(hm.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in HOME.rglob("*.py")}
TELL_NOTHING = {"bench", "books", "desk", "drawn", "held", "kept", "mend", "standing", "told"}


def test_no_two_classes_share_a_name():
    classes = Counter(
        one.name for tree in TREES.values() for one in tree.body if isinstance(one, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_modules_classes_and_functions_say_what_they_are():
    modules = {path.stem for path in TREES}
    defined = {
        one.name.strip("_").lower()
        for tree in TREES.values()
        for one in tree.body
        if isinstance(one, ast.ClassDef | ast.FunctionDef)
    }
    assert (modules | defined) & TELL_NOTHING == set()


def test_only_what_users_call_takes_more_than_eight_arguments():
    long = {
        one.name
        for tree in TREES.values()
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
        and len([*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]) > 8
    }
    assert {name for name in long - {*hm.__all__} if not name.endswith("_command")} == set()
