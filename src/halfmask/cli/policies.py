"""``halfmask policies``: invent demands for the people of a table, or show what demands gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    STDOUT,
    as_json,
    load,
    names,
    output,
    refuse_bad_outputs,
    refuse_two_documents,
    source,
)

if TYPE_CHECKING:
    from halfmask.anonymize.gains import Gain, PolicyComparison
    from halfmask.table.table import Table


@click.command("policies")
@source
@click.option(
    "--concern",
    multiple=True,
    metavar="NAME",
    help="general, offline, online, personal, professional, sexual-political, or shares "
    "HIGH/MEDIUM/LOW in percent.",
)
@click.option(
    "--ks",
    default="3,5,7",
    show_default=True,
    metavar="LOW,MEDIUM,HIGH",
    help="What people with each concern demand.",
)
@click.option("--correlated", metavar="A,B", help="Numeric columns that demands grow with.")
@click.option("--column", default="k_i", show_default=True, help="The name of the new column.")
@click.option("--seed", type=int, default=0, show_default=True, help="Repeat the dealing.")
@click.option("--compare", is_flag=True, help="Show what demands gain over one k and deleting.")
@click.option("--runs", type=int, default=3, show_default=True, help="Seeds to compare over.")
@click.option("--method", default="personal", show_default=True, help="How rows are divided.")
@output("The table with the new column, yours alone; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="With --compare, a report: .html or .json.")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:  # fmt: skip
    """Invent people's demands, or compare with --compare.

    Example: halfmask policies people.csv --concern personal -o demands.csv

    Example: halfmask policies people.csv --compare --report gains.html
    """
    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    table = load(file, given)
    given["ks"] = _numbers("ks", given["ks"], ",")
    given["correlated"] = names(given["correlated"]) or None
    if given["compare"]:
        _compare(table, given, as_json=as_json)
    else:
        _generate(table, given, output, as_json=as_json)


def _generate(table: Table, given: dict[str, Any], output: str | None, *, as_json: bool) -> None:
    from collections import Counter

    from halfmask.release.files import private_file
    from halfmask.release.write import write_table
    from halfmask.sample.policies import generate

    concern = _concerns(given["concern"] or ("personal",))[0]
    made = generate(
        table,
        concern,
        k=given["ks"],
        correlated=given["correlated"],
        column=given["column"],
        seed=given["seed"],
    )
    counts = Counter(made.arrow[given["column"]].to_pylist())
    if output == STDOUT:
        show.csv(made.arrow)
    elif output:
        write_table(made.arrow, output, private_file)
        show.say(f"The table with its demands is in {output}: these are all rows, no release.")
    else:
        show.say("Nothing was written: give -o FILE to keep the demands.")
    groups = sorted(counts.items())
    if as_json:
        listed = [{"k": k, "people": people} for k, people in groups]
        show.document("policies", {"column": given["column"], "demands": listed})
    elif output != STDOUT:
        show.table("Demands", ("k", "people"), groups)


def _compare(table: Table, given: dict[str, Any], *, as_json: bool) -> None:
    from halfmask.anonymize.policies import compare_policies

    if given["runs"] < 1:
        raise click.UsageError("--runs takes a number of at least 1.")
    concerns = _concerns(given["concern"]) if given["concern"] else None
    with show.working("Dividing the rows under every policy"):
        found = compare_policies(
            table,
            concerns,
            k=given["ks"],
            correlated=given["correlated"],
            method=given["method"],
            seeds=range(given["seed"], given["seed"] + given["runs"]),
        )
    show.outcome("policies", found, _show, report=given["report"], as_json=as_json)


def _show(found: PolicyComparison) -> None:
    rows = [
        (
            one.concern,
            ", ".join(map(str, one.k)),
            one.personal,
            _words(one.over_moderate),
            _words(one.over_uniform),
            _words(one.over_deleting),
        )
        for one in found.gains
    ]
    headings = ("people", "k", "loss per row", "over k medium", "over k high", "over deleting")
    show.table("What personal demands gain (above 1: they lose less)", headings, rows)


def _words(gain: Gain) -> str:
    wide = (gain.high - gain.low) / 2
    return f"{gain.mean:.3f}" + (f" ± {wide:.3f}" if wide else "")


def _concerns(given: tuple[str, ...]) -> list[Any]:
    return [tuple(_numbers("concern", one, "/")) if "/" in one else one for one in given]


def _numbers(option: str, text: str, sign: str) -> list[Any]:
    try:
        listed = [float(part) for part in text.split(sign)]
    except ValueError:
        raise click.UsageError(f"--{option} takes three numbers with '{sign}' between.") from None
    return [int(one) if one.is_integer() else one for one in listed]
