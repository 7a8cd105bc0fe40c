"""``halfmask frontier``: risk against utility over many settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json, load, names, refuse_bad_outputs, report_option, source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.assessment.points import Frontier
    from halfmask.models.verdict import Model


@click.command("frontier")
@source
@click.option("--k", metavar="2,5,10", help="k-anonymity with each of these k.")
@click.option("--l", "l_", multiple=True, metavar="COLUMN=2,3", help="l-diversity, each l.")
@click.option("--t", "t_", multiple=True, metavar="COLUMN=0.2,0.4", help="t-closeness, each t.")
@click.option("--method", default="optimal", show_default=True, metavar="A,B", help="Methods.")
@click.option(
    "--suppression", default="0,0.02,0.05", show_default=True, help="Shares of rows left out."
)
@click.option("--personal", is_flag=True, help="Personal k-anonymity, from the policy columns.")
@click.option("--epsilon", metavar="0.5,1,2", help="Private tables with each of these budgets.")
@click.option("--domains", type=click.Path(), help="Their public values or bounds: .toml.")
@click.option("--release", multiple=True, type=click.Path(), help="A finished table to add.")
@click.option("--time-limit", type=float, help="Seconds for each search.")
@report_option
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Show risk against utility for many settings.

    Example: halfmask frontier people.csv --k 2,5,10,20 -o frontier.html
    """
    from halfmask.assessment.frontier import frontier

    refuse_bad_outputs(file, None, output)
    wanted = _choices(given)
    table = load(file, given)
    with show.working("Searching every setting"):
        found = frontier(
            table,
            *wanted,
            methods=names(given["method"]),
            suppression=_numbers("suppression", given["suppression"]),
            time_limit=given["time_limit"],
            epsilons=_numbers("epsilon", given["epsilon"] or ""),
            domains=given["domains"],
            releases={path: load(path, {}) for path in given["release"]},
        )
    if output:
        found.report(output)
        show.say(f"The report is in {output}.")
    if as_json:
        show.document("frontier", found.to_dict())
    else:
        show_frontier(found)


def show_frontier(found: Frontier) -> None:
    """Print the points for people."""
    rows = [
        (p.name, "yes" if p.best else "", p.risk, p.highest_risk, p.loss, p.distance, p.suppressed)
        for p in found.points
    ]
    headings = ("setting", "best", "mean risk", "highest", "loss", "distance", "suppressed")
    show.table("Risk and utility (best: none has less of both)", headings, rows)
    if found.impossible:
        show.say(f"{len(found.impossible)} settings cannot be satisfied.")


def _choices(given: dict[str, Any]) -> list[list[Model]]:
    from halfmask.models import KAnonymity, LDiversity, PersonalKAnonymity, TCloseness

    out: list[list[Model]] = []
    if given["k"]:
        out.append([KAnonymity(int(k)) for k in _numbers("k", given["k"])])
    for column, values in _pairs("l", given["l_"]):
        levels = [int(v) if v.is_integer() else v for v in values]
        out.append([LDiversity(level, column) for level in levels])
    out += [[TCloseness(t, column) for t in values] for column, values in _pairs("t", given["t_"])]
    if given["personal"]:
        out.append([PersonalKAnonymity()])
    if not out and not given["release"] and not given["epsilon"]:
        raise click.UsageError(
            "No promise is named: give --k, --l, --t, --personal or --epsilon, or --release."
        )
    return out


def _pairs(option: str, entries: Sequence[str]) -> list[tuple[str, list[float]]]:
    out = []
    for entry in entries:
        column, equals, listed = entry.rpartition("=")
        if not equals or not column:
            raise click.UsageError(f"--{option} takes COLUMN=NUMBERS, such as disease=2,3.")
        out.append((column, _numbers(option, listed)))
    return out


def _numbers(option: str, listed: str) -> list[float]:
    try:
        return [float(part) for part in listed.split(",") if part.strip()]
    except ValueError:
        raise click.UsageError(f"--{option} takes numbers separated by commas.") from None
