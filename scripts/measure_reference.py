"""Writes docs/definitions/measures.md from the measures' own docstrings; ``--check`` compares."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "definitions" / "measures.md"
FOLDERS = ("discrimination", "risk", "utility")

INTRO = """# Measures

Written by `scripts/measure_reference.py` from the measures themselves; do not edit by hand. What a
search minimizes is in [../metrics.md](../metrics.md), what a model promises on its own page.
"""


def reference() -> str:
    """The whole page."""
    parts = [INTRO]
    for folder in FOLDERS:
        home = ROOT / "src" / "halfmask" / "metrics" / folder
        parts.append(f"## {folder.capitalize()}\n")
        for path in sorted(home.glob("*.py")):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if "Definition:" in text:
                parts.append(_section(path, text))
    return "\n".join(parts).rstrip() + "\n"


def _section(path: Path, text: str) -> str:
    title, _, rest = text.partition("\n\n")
    paragraphs = []
    for paragraph in rest.split("\n\n"):
        line = " ".join(paragraph.split())
        for word in ("Definition:", "Source:"):
            line = line.replace(word, f"\n\n**{word[:-1]}.**")
        paragraphs.append(line.strip())
    body = "\n\n".join(paragraphs)
    name = path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
    return f"### {title.rstrip('.')}\n\n`{name}`\n\n{body}\n"


def main() -> None:
    """Write the page, or compare."""
    text = reference()
    if "--check" in sys.argv:
        if PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/definitions/measures.md is old: run scripts/measure_reference.py.")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
