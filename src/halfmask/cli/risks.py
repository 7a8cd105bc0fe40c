"""``halfmask risks``: the risk of every row, as a file for the controller."""

from __future__ import annotations

from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    as_json,
    load,
    output,
    refuse_bad_outputs,
    source,
    weights_option,
)


@click.command("risks")
@source
@click.option("--population", type=click.Path(), help="The population table's file.")
@click.option("--fraction", type=float, help="Share of the population that is in FILE (0 to 1).")
@weights_option
@click.option("--household", metavar="COLUMN", help="Which rows belong together.")
@click.option("--size", type=int, default=3, show_default=True, help="Largest column sets.")
@click.option("--limit", type=float, default=0.09, show_default=True,
              help="Rows above this risk are counted.")  # fmt: skip
@output("The figures of every row: .csv, .parquet, ...")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure every row of FILE, to filter and treat rows by.

    The figures are about single people: keep them as safe as FILE itself.

    Example: halfmask risks people.csv -o risks.csv
    """
    from halfmask.assessment.row_risks import row_risks

    refuse_bad_outputs(file, output, None)
    population = load(given["population"], {}) if given["population"] else None
    table = load(file, given)
    with show.working("Measuring"):
        found = row_risks(
            table,
            population=population,
            fraction=given["fraction"],
            weights=given["weights"],
            household=given["household"],
            size=given["size"],
        )
    if output:
        found.write(output)
        show.say(f"The risk of every row is in {output}.")
    facts = found.summary(given["limit"])
    if as_json:
        show.document("risks", {"rows": len(found), "limit": given["limit"], "risks": facts})
    else:
        show.table(
            "Risk of rows",
            ("risk", "highest", "mean", f"rows above {show.number(given['limit'])}"),
            [(one["risk"], one["highest"], one["mean"], one["above"]) for one in facts],
        )
