"""The examples of the page on tables run and print what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tabulate.md").read_text(encoding="utf-8")


def test_the_examples_run_and_print_what_they_say():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, re.DOTALL)
    assert len(blocks) >= 3
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/tabulate.md", "exec"), names)  # noqa: S102 - our own page
        shown = [line.rstrip() for line in printed.getvalue().splitlines()]
        assert shown == [line.rstrip() for line in expected.splitlines()]
