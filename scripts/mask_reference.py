"""Writes the table of masks in docs/mask.md from the masks; ``--check`` only compares."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from halfmask.masking.masks import MaskStep, known_masks, metavar

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mask.md"
TITLE = "## The masks\n"
INTRO = """
This table is written by `scripts/mask_reference.py`.

| name | as text | does | protects from | does not protect from |
|---|---|---|---|---|
"""


def table() -> str:
    """The table, one line a mask."""
    return INTRO + "".join(map(_line, known_masks()))


def _line(mask: type[MaskStep]) -> str:
    stated = []
    for one in inspect.signature(mask).parameters.values():
        default = "" if one.default is one.empty else "=" + repr(one.default).replace("'", '"')
        stated.append(f"{one.name}{default}")
    cells = [
        f"`hm.masks.{mask.__name__}({', '.join(stated)})`",
        f"`{metavar(mask)}`".replace("|", "\\|"),
        mask.words.does,
        mask.words.protects,
        mask.words.open,
    ]
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Write the table, or say that it is old."""
    page = PAGE.read_text(encoding="utf-8")
    text = re.sub(rf"(?<={TITLE}).*?(?=\n## )", lambda _: table(), page, flags=re.DOTALL)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif page != text:
        sys.exit("docs/mask.md is old. Run: .venv/bin/python scripts/mask_reference.py")


if __name__ == "__main__":
    main()
