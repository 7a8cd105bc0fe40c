"""``halfmask synthesize``: draw a synthetic table and say what is left of the risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    STDOUT,
    as_json,
    load,
    output,
    refuse_bad_outputs,
    refuse_two_documents,
    source,
)
from halfmask.cli.releases import deliver

if TYPE_CHECKING:
    from halfmask.release.synthetic import SyntheticRelease


@click.command("synthesize")
@source
@click.option("--method", default="cocluster", show_default=True, help="cocluster.")
@click.option("--k", type=int, required=True, help="The fewest people in a group of the model.")
@click.option("--rows", type=int, help="How many rows to draw; default: as many as FILE has.")
@click.option("--seed", type=int, help="Repeat a draw.")
@output("The synthetic table: .parquet, .csv, .arrow; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="A report: .json.")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Draw a synthetic table from FILE.

    Example: halfmask synthesize people.csv --k 50 -o synthetic.parquet
    """
    from halfmask.synthesize.run import synthesize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    table = load(file, given)
    options = {name: given[name] for name in ("k", "rows", "seed") if given[name] is not None}
    with show.working("Learning groups of people"):
        release = synthesize(table, given["method"], **options)
    deliver(release, output, given["report"])
    if as_json:
        show.document("synthesize", release.to_dict())
    else:
        show_synthetic(release, to="stderr" if output == STDOUT else "stdout")


def show_synthetic(release: SyntheticRelease, *, to: str = "stdout") -> None:
    """Print what was drawn and what was measured."""
    measured = release.measured
    facts: list[tuple[str, Any]] = [
        ("rows that leave", len(release)),
        ("least people in a group", release.parameters["k_obtained"]),
        ("rows equal to a real one", show.percent(measured["attribution"]["copies"])),
        ("attribution ratio", round(measured["attribution"]["ratio"], 4)),
        ("singling out, right", show.percent(measured["attacks"]["singling_out"]["rate"])),
        ("linkability, right", show.percent(measured["attacks"]["linkability"]["rate"])),
    ]
    show.table("Synthetic table", ("", ""), facts, to=to)
    for note in release.notes:
        show.say(note)
