"""Prints: tables for people, one JSON document for programs, progress on a terminal only."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

WIDTH_ELSEWHERE = 120


def document(verb: str, facts: Mapping[str, Any]) -> None:
    """Print the one JSON document of a verb to stdout."""
    click.echo(
        json.dumps({"ok": True, "verb": verb, **facts}, indent=2, default=str, allow_nan=False)
    )


def outcome(
    verb: str,
    found: Any,
    write: Callable[[Any], None],
    *,
    report: str | None,
    as_json: bool,
) -> None:
    """Keep what a verb found as a report, if one is asked for, and print it."""
    if report:
        found.report(report)
        say(f"The report is in {report}.")
    if as_json:
        document(verb, found.to_dict())
    else:
        write(found)


def say(text: str) -> None:
    """Print words to stderr."""
    click.echo(text, err=True)


def table(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    to: str = "stdout",
) -> None:
    """Print a table; numbers are aligned right."""
    from rich.table import Table
    from rich.text import Text

    out = Table(show_header=any(headings))
    for position, heading in enumerate(headings):
        cells = [row[position] for row in rows]
        right = bool(cells) and all(_is_number(c) for c in cells if c is not None)
        out.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        out.add_row(*(Text(number(cell)) for cell in row))
    console = _console(to)
    console.print(Text(title, "bold"))
    console.print(out)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: Any) -> str:
    """Write a value for people: thousands apart, at least four digits, yes and no."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return f"{int(value):,}"
        return f"{value:,.1f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def rate(value: float | None, reason: str = "") -> str:
    """Write a rate with four decimals, or why there is none."""
    if value is None or value != value:
        return f"not known: {reason}" if reason else "not known"
    return f"{value:.4f}"


def percent(share: float) -> str:
    """Write a share as percent."""
    from halfmask.report.figures import percent as written

    return written(share)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is going on, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    with _console("stderr").status(what):
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show how much of the work is done, on a terminal only; gives what is to be called."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=_console("stderr"), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _console(to: str) -> Console:
    from rich.console import Console

    stream = sys.stderr if to == "stderr" else sys.stdout
    return Console(
        file=stream,
        width=None if stream.isatty() else WIDTH_ELSEWHERE,
        highlight=False,
        markup=False,
    )
