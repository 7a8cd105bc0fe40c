"""Prints verdicts for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.cli import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.models.verdict import Verdict


def show_verdicts(verdicts: Sequence[Verdict], *, to: str = "stdout") -> None:
    """Print one line per promise, and the notes below."""
    headings = (
        "promise",
        "column",
        "holds",
        "required",
        "achieved",
        "classes failing",
        "rows failing",
    )
    rows = [
        (
            verdict.model,
            verdict.column,
            verdict.holds,
            verdict.required,
            verdict.achieved,
            verdict.failing_classes,
            verdict.failing_rows,
        )
        for verdict in verdicts
    ]
    show.table("Promises", headings, rows, to=to)
    for verdict in verdicts:
        if verdict.note:
            show.say(f"{verdict.model}: {verdict.note}")
