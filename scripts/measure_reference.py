"""Writes docs/definitions/measures.md from the measures' own docstrings; ``--check`` compares."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfmask.assessment.measure import Measure

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "definitions" / "measures.md"
FOLDERS = ("discrimination", "risk", "utility")

INTRO = """# Measures

Written by `scripts/measure_reference.py` from the measures themselves; do not edit by hand. What a
search minimizes is in [../metrics.md](../metrics.md), what a model promises on its own page.
"""
TITLES = {
    "compare": "What `compare` finds",
    "assess": "What `assess` finds",
}


def reference() -> str:
    """The whole page: the declared measures, then the definitions that they rest on."""
    from halfmask.assessment.assess import ASSESSED
    from halfmask.assessment.comparison import COMPARED
    from halfmask.assessment.measure import registered_measures

    parts = [
        INTRO,
        _declared("compare", (*COMPARED, *registered_measures("compare"))),
        _declared("assess", (*ASSESSED, *registered_measures("assess"))),
    ]
    for folder in FOLDERS:
        home = ROOT / "src" / "halfmask" / "metrics" / folder
        parts.append(f"## {folder.capitalize()}\n")
        for path in sorted(home.glob("*.py")):
            parts += _definitions(path)
    return "\n".join(parts).rstrip() + "\n"


def _declared(verb: str, measures: tuple[Measure, ...]) -> str:
    """A table of the measures of a verb, each an attribute of its result."""
    lines = [
        f"| `{one.name}` | {one.question} | {one.attacker and f'The attacker {one.attacker}.'} |"
        for one in measures
    ]
    return "\n".join(
        [f"## {TITLES[verb]}", "", "| measure | question | attack |", "|---|---|---|", *lines, ""]
    )


def _definitions(path: Path) -> list[str]:
    """Whatever a module, or a class or function of it, defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
    out, own = [], ast.get_docstring(tree) or ""
    if "Definition:" in own:
        title, _, rest = own.partition("\n\n")
        out.append(_section(title.rstrip("."), module, rest))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = ast.get_docstring(node) or ""
            if "Definition:" in text:
                title = node.name.replace("_", " ")
                out.append(_section(title[0].upper() + title[1:], f"{module}.{node.name}", text))
    return out


def _section(title: str, name: str, text: str) -> str:
    paragraphs = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(("Args:", "Attributes:", "Returns:", "Raises:", "Example:")):
            break
        line = " ".join(paragraph.split())
        for word in ("Definition:", "Source:"):
            line = line.replace(word, f"\n\n**{word[:-1]}.**")
        paragraphs.append(line.strip())
    body = "\n\n".join(paragraphs)
    return f"### {title}\n\n`{name}`\n\n{body}\n"


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
