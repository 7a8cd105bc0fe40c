"""``halfmask recode``: apply a saved recoding to new rows, which are checked before they leave."""

from __future__ import annotations

from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    STDOUT,
    as_json,
    demand_options,
    demand_settings,
    load,
    output,
    refuse_bad_outputs,
    refuse_two_documents,
    source,
)
from halfmask.cli.promises import models, promises
from halfmask.cli.releases import deliver, show_release, suppression


@click.command("recode")
@source
@click.argument("recoding", type=click.Path())
@promises
@demand_options
@suppression
@output("The release: .parquet, .csv, .arrow; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="A report: .html or .json.")
@as_json
def command(file: str, recoding: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Recode new rows as an earlier release was.

    The promises are checked again on the rows of FILE after RECODING has been applied.

    Example: halfmask recode new.csv recoding.json --schema people.toml --k 5 -o new.parquet
    """
    from halfmask.release.recoding import Recoding

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    saved = Recoding.load(recoding)
    table = load(file, given)
    wanted = models(given, table.schema)
    with show.working("Recoding"):
        settings = {"suppression": given["suppression"], **demand_settings(given)}
        release = saved.apply(table, *wanted, **settings)
    deliver(release, output, given["report"])
    if as_json:
        show.document("recode", release.to_dict())
    else:
        show_release(release, to="stderr" if output == STDOUT else "stdout")
