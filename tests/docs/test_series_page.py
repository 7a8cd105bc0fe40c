"""The examples of the page on series run."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "series.md").read_text(encoding="utf-8")


def test_the_examples_run():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for code in blocks:
        exec(compile(code, "docs/series.md", "exec"), names)  # noqa: S102 - our own page
