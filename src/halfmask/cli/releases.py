"""Prints and writes a release; shared by anonymize, recode and demo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import STDOUT
from halfmask.cli.verdicts import show_verdicts

if TYPE_CHECKING:
    from halfmask.release.private import PrivateRelease
    from halfmask.release.release import Release
    from halfmask.release.synthetic import SyntheticRelease

suppression = click.option(
    "--suppression",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of rows (0 to 1) that may be left out.",
)


def deliver(
    release: Release | SyntheticRelease | PrivateRelease, output: str | None, report: str | None
) -> None:
    """Write the rows and the report where the user wants them."""
    own = getattr(release, "demands", None)
    if own is not None and not own.kept:
        show.say(own.words)  # before anything else
    if output == STDOUT:
        show.csv(release.to_arrow())
    elif output:
        release.write(output)
        show.say(f"The release is in {output}.")
    if report:
        release.report(report)
        show.say(f"The report is in {report}.")
    if not output and not report:
        show.say("Nothing was written: give -o FILE to keep the release.")


def show_release(release: Release, *, to: str = "stdout") -> None:
    """Print what was promised and what it cost."""
    show_verdicts(release.verdicts, to=to)
    facts: list[tuple[str, Any]] = [
        ("rows that leave", len(release)),
        ("rows left out", release.suppressed),
        ("loss (0 to 1)", release.loss),
    ]
    show.table("Release", ("", ""), facts, to=to)
    if release.levels:
        show.table("Generalization", ("column", "level"), list(release.levels.items()), to=to)
    for note in release.notes:
        if release.demands is None or note != release.demands.words:  # that was said first
            show.say(note)
