"""``halfmask anonymize``: find the recoding that loses least and release what it gives."""

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

_SETTINGS = (
    "method", "metric", "suppression", "time_limit", "seed", "labels", "fallback",
    "on_infeasible", "score", "cut", "block", "classes", "bins", "intervals", "link",
)  # fmt: skip


@click.command("anonymize")
@source
@promises
@demand_options
@suppression
@click.option(
    "--method",
    help="optimal (default), local; personal (default with people's own "
    "demands), k-member, mdav, mondrian, exact; cocluster, cocluster-sets, cocluster-mode.",
)
@click.option("--metric", help="What the search minimizes; default: loss, or dbil with divisions.")
@click.option("--labels", type=click.Choice(["tight", "levels"]), help="What divisions publish.")
@click.option("--fallback", type=click.Choice(["uniform"]), help="Try one k for all too.")
@click.option(
    "--on-infeasible",
    type=click.Choice(["error", "suppress"]),
    help="What to do with people who demand more than all can give.",
)
@click.option("--score", type=click.Choice(["improved", "plain"]), help="The score of k-member.")
@click.option("--cut", type=click.Choice(["sides", "whole"]), help="When mondrian may cut.")
@click.option("--block", type=int, help="With exact, the most rows proven at once.")
@click.option("--classes", type=int, help="With exact and the split, the fewest classes.")
@click.option("--bins", type=int, help="cocluster: how many intervals numbers are cut into.")
@click.option("--intervals", help="cocluster: equal-frequency (default), equal-width or modl.")
@click.option("--link", help="cocluster: what a class publishes first, by count or by lift.")
@click.option("--time-limit", type=float, help="Seconds; the best so far and its gap leave.")
@click.option("--seed", type=int, help="Repeat a search that draws lots.")
@output("The release: .parquet, .csv, .arrow; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="A report: .html or .json.")
@click.option("--recoding", type=click.Path(), help="Save the recoding for new rows: .json.")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Release FILE with promises, losing least.

    What people demand for themselves in the schema is kept beside them, or alone.

    Example: halfmask anonymize people.csv --k 10 -o out.parquet --report out.html
    """
    from halfmask.anonymize.run import anonymize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"], given["recoding"])
    table = load(file, given)
    wanted = models(given, table.schema)
    settings = {name: given[name] for name in _SETTINGS if given[name] is not None}
    with show.working("Searching the recoding that loses least"):
        release = anonymize(table, *wanted, **settings, **demand_settings(given))
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
