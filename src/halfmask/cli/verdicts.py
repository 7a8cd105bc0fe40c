"""Prints verdicts for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.cli import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.models.verdict import Verdict


_SHOWN = 20  # people who are named; --failing and --json name all


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


def _broken(verdicts: Sequence[Verdict]) -> dict[object, list[str]]:
    """Per person (or row) with less than they demand, which promises that breaks."""
    found: dict[object, list[str]] = {}
    for verdict in verdicts:
        promise = verdict.model if verdict.column is None else f"{verdict.model}: {verdict.column}"
        for who in verdict.failing:
            found.setdefault(who, []).append(promise)
    return found


def _printed(who: object) -> str:
    """A person as a terminal may show it: what steers a terminal is left out."""
    return "".join(sign for sign in str(who) if sign.isprintable())


def show_failing(verdicts: Sequence[Verdict]) -> None:
    """Print whose own demand is not met, the first of them where they are many."""
    found = _broken(verdicts)
    if not found:
        return
    rows = [(_printed(who), "; ".join(broken)) for who, broken in list(found.items())[:_SHOWN]]
    title = "Whose own demand is not met (for whoever holds the table)"
    show.table(title, ("person or row", "promise"), rows)
    if len(found) > _SHOWN:
        show.say(f"{len(found) - _SHOWN:,} more are not shown: --failing FILE or --json names all.")


def write_failing(verdicts: Sequence[Verdict], path: str) -> None:
    """Write whose own demand is not met to a private file."""
    import csv
    import os

    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8", newline="") as stream:
        lines = csv.writer(stream)
        lines.writerow(("person_or_row", "promise"))
        for who, broken in _broken(verdicts).items():
            lines.writerows((who, promise) for promise in broken)
