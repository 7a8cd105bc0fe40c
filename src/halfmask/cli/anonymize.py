"""``halfmask anonymize``: find the recoding that loses least and release what it gives."""

from __future__ import annotations

from typing import Any

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
from halfmask.cli.promises import models, promises
from halfmask.cli.releases import deliver, show_release, suppression


@click.command("anonymize")
@source
@promises
@suppression
@click.option(
    "--method",
    default="optimal",
    show_default=True,
    help="optimal, local, cocluster, cocluster-sets or cocluster-mode.",
)
@click.option("--metric", default="loss", show_default=True, help="What the search minimizes.")
@click.option("--time-limit", type=float, help="Seconds; the best so far and its gap leave.")
@click.option("--seed", type=int, help="Repeat a search that draws lots.")
@output("The release: .parquet, .csv, .arrow; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="A report: .html or .json.")
@click.option("--recoding", type=click.Path(), help="Save the recoding for new rows: .json.")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Release FILE with promises, losing least.

    Example: halfmask anonymize people.csv --k 10 -o out.parquet --report out.html
    """
    from halfmask.anonymize.run import anonymize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"], given["recoding"])
    wanted = models(given)
    table = load(file, given)
    settings = {
        name: given[name]
        for name in ("method", "metric", "suppression", "time_limit", "seed")
        if given[name] is not None
    }
    with show.working("Searching the recoding that loses least"):
        release = anonymize(table, *wanted, **settings)
    deliver(release, output, given["report"])
    if given["recoding"] and release.recoding is None:
        show.say("This method has no recoding for new rows: none was saved.")
    elif given["recoding"] and release.recoding is not None:
        release.recoding.save(given["recoding"])
        show.say(f"The recoding is in {given['recoding']}.")
    if as_json:
        show.document("anonymize", release.to_dict())
    else:
        show_release(release, to="stderr" if output == STDOUT else "stdout")
