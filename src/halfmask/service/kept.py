"""What a step leaves: its files, written at once, and its document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from halfmask.service.files import FILES

if TYPE_CHECKING:
    from pathlib import Path


def document(verb: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The document of a verb, as plain values."""
    text = json.dumps({"ok": True, "verb": verb, **facts}, default=str, allow_nan=False)
    plain: dict[str, Any] = json.loads(text)
    return plain


def kept(verb: str, made: Any, facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the files of a step, and give its document."""
    for file, (source, kind) in FILES.items():
        if source == verb:
            (made.report if kind == "report" else made.write)(folder / file)
    return document(verb, facts)
