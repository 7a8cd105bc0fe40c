"""Prints: tables for people, one JSON document for programs, progress on a terminal only."""

from __future__ import annotations

import json
import sys
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from halfmask.errors import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
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
    click.echo(visible(masked(text)), err=True)


def echo(text: str) -> None:
    """Print a text to stdout."""
    click.echo(visible(text))


def csv(rows: pa.Table) -> None:
    """Print rows as CSV to stdout: as they are, except on a terminal, which would obey them."""
    import pyarrow as pa
    from pyarrow import csv as written

    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in rows.columns
    ]
    table = pa.table(plain, names=rows.column_names)
    if not sys.stdout.isatty():
        written.write_csv(table, sys.stdout.buffer)
        return
    sink = pa.BufferOutputStream()
    written.write_csv(table, sink)
    click.echo(visible(sink.getvalue().to_pybytes().decode()), nl=False)


def visible(text: str, keep: str = "\n\t") -> str:
    """The text with its control characters written out, so that a terminal obeys none of them.

    Names and labels come from files that others wrote. Escaped are control characters (but line
    breaks and tabs of our own sentences), and what changes the direction of writing or hides.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    """One character as Python writes it; spaces of other scripts stay."""
    if unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


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
        label = Text(visible(heading, ""))
        out.add_column(label, justify="right" if right else "left", overflow="fold")
    for row in rows:
        out.add_row(*(Text(visible(number(cell))) for cell in row))
    console = _console(to)
    console.print(Text(visible(title), "bold"))
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
