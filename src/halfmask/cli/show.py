"""Prints: tables for people, one JSON document for programs, progress on a terminal only."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from halfmask.errors import mask_passwords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from rich.console import Console

    from halfmask.assessment.measure import Finding
    from halfmask.models.verdict import Verdict


WIDTH_ELSEWHERE = 120


def print_document(verb: str, facts: Mapping[str, Any]) -> None:
    """Print the one JSON document of a verb to stdout."""
    click.echo(
        json.dumps({"ok": True, "verb": verb, **facts}, indent=2, default=str, allow_nan=False)
    )


def print_outcome(
    verb: str,
    found: Any,
    write: Callable[[Any], None],
    *,
    report: str | None,
    as_json: bool,
) -> None:
    """Keep what a verb found as a report, if one is asked for, and print it."""
    set_aside(found)
    if report:
        found.report(report)
        say(f"The report is in {report}.")
    if as_json:
        print_document(verb, found.to_dict())
    else:
        write(found)


def print_steps(
    lines: Sequence[str], report: str = "-o report.html", *, short: bool = True
) -> None:
    """Say what to do next, and where the rest is; ``short``: not all figures were printed."""
    if lines:
        say("What to do next:")
        for line in lines:
            say(f"  - {line}")
    every = "-v prints every figure, " if short else ""
    say(f"{every}{report} writes them as a page.")


def print_criteria(document: Mapping[str, Any]) -> None:
    """Print one line for each of the three criteria: the worst of its attacks."""
    from halfmask.report.words import criteria_verdicts, mark

    rows = [
        (one["name"], mark(one) + (f" ({one['by']})" if one["by"] else ""))
        for one in criteria_verdicts(dict(document))
    ]
    print_table(f"Can an attacker succeed (limit {percent(document['limit'])})", ("", ""), rows)


def set_aside(found: Any) -> None:
    """Say before anything else that people's own demands were set aside, where they were."""
    own = getattr(found, "demands", None)
    if own is not None and not own.kept:
        say(own.words)


def print_notes(found: Any) -> None:
    """Say what a reader should know besides, but for what was said first."""
    own = getattr(found, "demands", None)
    for note in found.notes:
        if own is None or note != own.words:
            say(note)


def say(text: str) -> None:
    """Print words to stderr."""
    click.echo(visible(mask_passwords(text)), err=True)


def echo(text: str) -> None:
    """Print a text to stdout."""
    click.echo(visible(text))


def print_csv(rows: pa.Table) -> None:
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
    return "".join(c if c.isprintable() or c in keep else _escape(c) for c in text)


def _escape(character: str) -> str:
    """One character as Python writes it; spaces of other scripts stay."""
    if unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def print_table(
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
        cells = [row[position] for row in rows if row[position] is not None]
        right = bool(cells) and all(_is_number(c) or _is_percent(c) for c in cells)
        label = Text(visible(heading, ""))
        out.add_column(label, justify="right" if right else "left", overflow="fold")
    for row in rows:
        out.add_row(*(Text(visible(number_text(cell))) for cell in row))
    console = _console(to)
    console.print(Text(visible(title), "bold"))
    console.print(out)


def findings(title: str, found: Sequence[Finding], *sections: str) -> None:
    """Print the figures of some sections, in those columns that any of them fills."""
    lines = [_line(one) for one in found if one.section in sections]
    if not lines:
        return
    headings = ("", "original", "release", "from", "to")
    filled = [i for i in range(len(headings)) if any(line[i] is not None for line in lines)]
    if filled == [0, 2]:
        headings = ("", "", "figure", "", "")
    print_table(title, [headings[i] for i in filled], [[line[i] for i in filled] for line in lines])


def _line(one: Finding) -> tuple[Any, ...]:
    """What it is, both figures, and the interval where it was not counted on all rows."""
    after, value = one.after, one.sentence or "not known"
    name = f"{box_of(one.attacker)} {one.name}".strip()  # first, so that no line breaks within it
    name = f"{name}: {one.meaning}" if one.meaning else name
    before = figure_in_form(one.before, one.form)
    if after is None or after.value is None:
        return (name, before, "not known" if one.before is not None else value, None, None)
    sampled = (after.low, after.high) != (after.value, after.value)
    ends = (after.low, after.high) if sampled else (None, None)
    return (name, before, *(figure_in_form(one_end, one.form) for one_end in (after.value, *ends)))


def box_of(attacker: str | None) -> str:
    """The box of an attacker where pages name one: " (black box)", grey or white; else nothing."""
    found = re.search(r" \((black|grey|white) box\)", attacker or "")
    return found[0] if found else ""


def figure_in_form(value: float | None, form: str) -> Any:
    """A figure in its form; shares as percent, as on pages."""
    return percent(value) if value is not None and form == "percent" else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_percent(value: Any) -> bool:
    return isinstance(value, str) and value.endswith("%") and value[-2:-1].isdigit()


def number_text(value: Any) -> str:
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


def rate_text(value: float | None, reason: str = "") -> str:
    """Write a rate with four decimals, or why there is none."""
    if value is None or value != value:
        return f"not known: {reason}" if reason else "not known"
    return f"{value:.4f}"


def percent(share: float) -> str:
    """Write a share as percent."""
    from halfmask.report.words import percent_text as written

    return written(share)


@contextmanager
def show_working(what: str) -> Iterator[None]:
    """Show that something is going on and for how long, on a terminal only."""
    with phases() as phase:
        phase(what)
        yield


@contextmanager
def phases() -> Iterator[Callable[[str], None]]:
    """Show which part of the work is going on and the seconds since it began, on a terminal only.

    Gives what is to be called with the name of each part.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=_console("stderr"), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what: bar.update(task, description=visible(what))


@contextmanager
def show_progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show how much of the work is done, on a terminal only; gives what is to be called."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(), TextColumn("of about"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=_console("stderr"), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _console(to: str) -> Console:
    from rich.console import Console

    class Plain(Console):
        """A console that leaves a closed pipe to us: rich would exit with 1, which is bad input."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if to == "stderr" else sys.stdout
    return Plain(
        file=stream,
        width=None if stream.isatty() else WIDTH_ELSEWHERE,
        highlight=False,
        markup=False,
    )


_SHOWN = 20  # people who are named; --failing and --json name all


def show_verdicts(verdicts: Sequence[Verdict], *, to: str = "stdout") -> None:
    """Print one line per promise, what people demand and have, and the notes below."""
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
            "each own" if verdict.demands else verdict.required,
            "by demand" if verdict.demands else verdict.achieved,
            verdict.failing_classes,
            verdict.failing_rows,
        )
        for verdict in verdicts
    ]
    print_table("Promises", headings, rows, to=to)
    for verdict in verdicts:
        for line in demand_lines(verdict):
            say(line)
        if verdict.note and not (verdict.demands and verdict.holds):
            say(f"{verdict.model}: {verdict.note}")


_LEVELS = 6  # demands that are printed; --json has all


def demand_lines(verdict: Verdict) -> list[str]:
    """What people demand and have, one line per promise."""
    from halfmask.report.words import demands_text

    if not verdict.demands:
        return []
    about = "" if verdict.column is None else f" of {verdict.column}"
    levels = [one.to_dict() for one in verdict.demands]
    return [f"{verdict.model}{about}: {demands_text(verdict.model, levels, _LEVELS)}."]


def show_smallest(figures: Mapping[str, Any], *, of_rows: bool, tied: bool = False) -> None:
    """Print the smallest class and the risk that follows, under the names of all verbs.

    ``of_rows``: the rows of a release, whose people are known by its record alone; ``tied``: whose
    tokens tie those of a person together.
    """
    from halfmask.metrics.risk.reidentification import HIGHEST, MEAN, SMALLEST

    if not figures:
        return
    recorded = "mean_risk" in figures  # by the door, or by tokens
    how = "with all rows of a person together, by their tokens" if tied else ""
    how = how or "as counted when it was released"
    name = SMALLEST.replace("people", "rows") if of_rows and not recorded else SMALLEST
    said = f"{name}: {figures['smallest']:,}; {HIGHEST}: {percent(figures['highest_risk'])}"
    if recorded:
        said += f"; {MEAN}: {percent(figures['mean_risk'])}, {how}"
    say(f"{said}.")


def _broken(verdicts: Sequence[Verdict]) -> dict[object, list[str]]:
    """Per person (or row) with less than they demand, which promises that breaks."""
    found: dict[object, list[str]] = {}
    for verdict in verdicts:
        promise = verdict.model if verdict.column is None else f"{verdict.model}: {verdict.column}"
        for who in verdict.failing:
            found.setdefault(who, []).append(promise)
    return found


def _printable(who: object) -> str:
    """A person as a terminal may show it: what steers a terminal is left out."""
    return "".join(sign for sign in str(who) if sign.isprintable())


def show_failing(verdicts: Sequence[Verdict]) -> None:
    """Print whose own demand is not met, the first of them where they are many."""
    found = _broken(verdicts)
    if not found:
        return
    rows = [(_printable(who), "; ".join(broken)) for who, broken in list(found.items())[:_SHOWN]]
    title = "Whose own demand is not met (for whoever holds the table)"
    print_table(title, ("person or row", "promise"), rows)
    if len(found) > _SHOWN:
        say(f"{len(found) - _SHOWN:,} more are not shown: --failing FILE or --json names all.")


def write_failing(verdicts: Sequence[Verdict], path: str) -> None:
    """Write whose own demand is not met to a private file."""
    import csv

    from halfmask.release.files import private_file

    with (
        private_file(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        lines = csv.writer(stream)
        lines.writerow(("person_or_row", "promise"))
        for who, broken in _broken(verdicts).items():
            lines.writerows((who, promise) for promise in broken)
