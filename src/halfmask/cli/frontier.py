"""``halfmask frontier``: risk against utility over many settings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.alternatives import alternatives, choices
from halfmask.cli.options import (
    as_json,
    demand_options,
    demand_settings,
    engine_options,
    load,
    names,
    refuse_bad_outputs,
    report_option,
    rows_or_place,
    source,
)
from halfmask.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.assessment.points import Frontier, Point

_SHOWN = 40  # settings that are printed; --json and -o hold all


@click.command("frontier")
@source
@alternatives
@demand_options
@click.option("--method", default="optimal", show_default=True, metavar="A,B", help="Methods.")
@click.option(
    "--suppression", default="0,0.02,0.05", show_default=True, help="Shares of rows left out."
)
@click.option("--metric", default="loss", show_default=True, help="What recodings minimize.")
@click.option("--risk", default="mean", show_default=True,
              help="Compare by this risk: mean, highest or inference.")  # fmt: skip
@click.option("--utility", help="Compare by loss or distance; default: loss where it is known.")
@click.option("--epsilon", metavar="0.5,1,2", help="Private tables with each of these budgets.")
@click.option("--domains", type=click.Path(), help="Their public values or bounds: .toml.")
@click.option("--draws", type=int, default=5, show_default=True,
              help="Private tables drawn for each budget; figures are means.")  # fmt: skip
@click.option("--release", multiple=True, type=click.Path(), help="A finished table to add.")
@click.option("--seed", type=int, default=0, show_default=True, help="For random methods.")
@click.option("--time-limit", type=float, help="Seconds for each search.")
@engine_options
@report_option
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> int:
    """Show risk against utility for many settings.

    Example: halfmask frontier people.csv --k 2,5,10,20 -o frontier.html
    """
    from halfmask.assessment.frontier import frontier
    from halfmask.models.stated_alternatives import stated_numbers

    refuse_bad_outputs(file, None, output)
    wanted = choices(given)
    if not wanted and not given["release"] and not given["epsilon"]:
        raise click.UsageError(
            "No promise is named: give --k, --l, --t or another, or --epsilon or --release."
        )
    table, how = rows_or_place(file, given)
    finished = {path: load(path, {}) for path in given["release"]}
    with show.counting("Searching every setting") as progress:
        found = frontier(
            table,
            *wanted,
            methods=names(given["method"]),
            suppression=stated_numbers("suppression", given["suppression"], "--"),
            metric=given["metric"],
            risk=given["risk"],
            utility=given["utility"],
            seed=given["seed"],
            time_limit=given["time_limit"],
            epsilons=stated_numbers("epsilon", given["epsilon"], "--") if given["epsilon"] else (),
            domains=given["domains"],
            draws=given["draws"],
            releases=finished,
            progress=progress,
            **demand_settings(given),
            **how,
        )
    show.outcome("frontier", found, show_frontier, report=output, as_json=as_json)
    return 0 if found.points else PrivacyError.exit_code


def show_frontier(found: Frontier) -> None:
    """Print one line per result for people; where they are many, those worth a choice."""
    points = found.different if len(found.different) <= _SHOWN else found.best
    if not points:
        show.say(
            "No setting can be satisfied: promise less, let more rows be suppressed "
            "(--suppression), or give hierarchies that generalize further."
        )
        return
    headings = ("setting", "✓", "mean risk", "highest risk", "inference", "loss", "distance",
                "suppressed")  # fmt: skip
    what = {"mean": "mean risk", "highest": "highest risk", "inference": "inference"}[found.risk]
    title = (
        f"Risk and utility (✓ not dominated: none is better in {what} or {found.utility} and as "
        "good in the other)"
    )
    same = Counter(point.same_as for point in found.points if point.same_as is not None)
    show.table(title, headings, [_row(point, same[point.name]) for point in points])
    if same:
        show.say("Settings with the same figures stand in one line: --json or -o names all.")
    if len(points) < len(found.different):
        show.say(
            f"{len(found.different) - len(points)} results that others dominate are not shown: "
            "--json or -o gives all."
        )
    for names_, what in ((found.impossible, "cannot be satisfied"),
                         (found.undecided, "not decided within the time limit")):  # fmt: skip
        if names_:
            few = "; ".join(f"({name})" for name in names_[:3])
            more = ", ..." if len(names_) > 3 else ""
            count = "1 setting" if len(names_) == 1 else f"{len(names_)} settings"
            show.say(f"{count} {what}: {few}{more}")
    for note in found.notes:
        show.say(note)


def _row(point: Point, same: int) -> tuple[str, ...]:
    more = "" if not same else f" (and {same} more)"
    return (
        point.name + more,
        "✓" if point.best else "",
        *(_figure(point, name, show.percent) for name in ("risk", "highest_risk", "inference")),
        _figure(point, "loss", show.percent),
        _figure(point, "distance", lambda value: show.number(round(value, 4))),
        show.percent(point.suppressed),
    )


def _figure(point: Point, name: str, written: Callable[[float], str]) -> str:
    """A figure, with its interval where it is a mean of draws."""
    value = getattr(point, name)
    if value is None:
        return ""
    if point.intervals is None or name not in point.intervals:
        return written(value)
    low, high = point.intervals[name]
    return written(value) + ("" if low == high else f" ({written(low)} to {written(high)})")
