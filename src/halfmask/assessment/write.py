"""Writes a document as JSON or as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.release.document import plain
from halfmask.release.files import whole_file

if TYPE_CHECKING:
    from os import PathLike


def write(document: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write ``document`` to a file whose suffix says the kind, whole or not at all."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".json", ".html", ".htm"):
        raise InputError(
            f"The report {Path(path).name!r} can be .json or .html: end its name in either."
        )
    values = plain(document)
    if suffix == ".json":
        text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        from halfmask.report.pages import render_page

        text = render_page(values)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
