"""``halfmask synthesize``: draw a synthetic table and say what is left of the risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.budget import (
    budget_options,
    keeper,
    show_promise,
)
from halfmask.cli.criteria import show_criteria
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
from halfmask.cli.releases import deliver

if TYPE_CHECKING:
    from halfmask.release.private import PrivateRelease
    from halfmask.release.synthetic import SyntheticRelease

_OPTIONS = (
    "epsilon", "delta", "domains", "rows_per_person", "share", "k", "rows", "holdout", "seed",
    "bins", "intervals", "strategy", "mode", "time_limit",
)  # fmt: skip


@click.command("synthesize")
@source
@click.option("--method", help="marginals, histogram, privbayes, dp-cocluster, auto; cocluster.")
@demand_options
@budget_options
@click.option("--ledger", type=click.Path(), help="The file that keeps this table's budget.")
@click.option("--k", type=int, help="cocluster: the fewest people in a group of the model.")
@click.option("--bins", type=int, help="cocluster: how many intervals numbers are cut into.")
@click.option("--intervals", help="cocluster: equal-frequency (default), equal-width or modl.")
@click.option("--strategy", help="cocluster: how groups grow to k: climb (default) or targeted.")
@click.option("--mode", help="cocluster: draw (default) at random, or by quota.")
@click.option("--time-limit", type=float, help="cocluster: seconds for the search.")
@click.option("--rows", type=int, help="How many rows to draw; default: about as many as FILE has.")
@click.option("--holdout", type=float, help="cocluster: share of rows kept out as a control.")
@click.option("--seed", type=int, help="cocluster: repeat a draw.")
@output("The synthetic table: .parquet, .csv, .arrow; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="A report: .html or .json.")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Draw a synthetic table from FILE.

    Example: halfmask synthesize people.csv --k 50 -o synthetic.parquet
    """
    from halfmask.release.private import PrivateRelease
    from halfmask.synthesize.run import synthesize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    table = load(file, given)
    method = given["method"] or ("auto" if given["epsilon"] else "cocluster")
    options = {name: given[name] for name in _OPTIONS if given[name] is not None}
    options |= demand_settings(given)
    if given["epsilon"] is not None:
        options["insist"] = given["insist"]
    accountant = keeper(
        given["ledger"], given["grant"], given["ledger_key"], insist=given["insist"]
    )
    if accountant is not None:
        options["accountant"] = accountant
    with show.working("Learning a model of the rows"):
        release = synthesize(table, method, **options)
    deliver(release, output, given["report"])
    to = "stderr" if output == STDOUT else "stdout"
    if as_json:
        show.document("synthesize", release.to_dict())
    elif isinstance(release, PrivateRelease):
        show_private(release, to=to)
    else:
        show_synthetic(release, to=to)


def show_private(release: PrivateRelease, *, to: str = "stdout") -> None:
    """Print what was spent and what it means for one person."""
    facts = [("rows that leave", len(release)), ("method", release.method)]
    show_promise(release, "Private table", facts, to=to)


def show_synthetic(release: SyntheticRelease, *, to: str = "stdout") -> None:
    """Print what was drawn and what was measured."""
    measured = release.measured
    facts: list[tuple[str, Any]] = [
        ("rows that leave", len(release)),
        ("least people in a group", release.parameters["k_obtained"]),
        ("rows equal to a real one", show.percent(measured["attribution"]["copies"])),
        ("attribution ratio", round(measured["attribution"]["ratio"], 4)),
    ]
    show.table("Synthetic table", ("", ""), facts, to=to)
    show_criteria(measured["criteria"], to=to)
    for note in release.notes:
        if release.demands is None or note != release.demands.words:  # that was said first
            show.say(note)
