"""Writes a document as JSON or as a page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from halfmask.release.document import plain
from halfmask.release.files import private_file
from halfmask.release.write import report_kind

if TYPE_CHECKING:
    from os import PathLike


def write(document: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write ``document``, which speaks of original rows, to a private ``.json`` or ``.html``."""
    suffix = report_kind(path)
    values = plain(document)
    if suffix == ".json":
        text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        from halfmask.report.pages import render_page

        text = render_page(values)
    with private_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
