"""``cocluster``: the verb that groups rows and values together, and draws the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    as_json,
    engine_options,
    load,
    refuse_bad_outputs,
    source,
    split_names,
)

if TYPE_CHECKING:
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.run import CoClustering


_NAMED = 8  # values of a group that are printed


@click.command("cocluster")
@source
@click.option("--columns", metavar="A,B", help="Rows x parts of these columns; default: quasi.")
@click.option("--variables", metavar="A,B", help="The columns themselves, 2 to 10 of them.")
@click.option("--criterion", default="published", show_default=True, help="published or khiops11.")
@click.option("--bins", type=int, default=10, show_default=True, help="Intervals of numbers.")
@click.option("--intervals", default="equal-frequency", show_default=True,
              help="equal-frequency, equal-width or modl.")  # fmt: skip
@click.option("--rounds", type=int, help="How long to search; default: as all other verbs.")
@click.option("--seed", type=int, default=0, show_default=True, help="Repeat a search.")
@click.option("--time-limit", type=float, help="Seconds for the search.")
@click.option("--parts", metavar="N", help="Simplify to so many parts; or A=3,B=2 by variable.")
@click.option("--cells", type=int, help="Simplify to at most so many cells.")
@click.option("--information", type=float, help="Simplify while this share (0 to 1) is kept.")
@click.option("--smallest", type=int, help="Simplify until each group of rows has so many.")
@click.option("-o", "--output", type=click.Path(), help="Save the grid: .json.")
@click.option("--picture", type=click.Path(), help="Draw the grid: .html, or .svg.")
@click.option(
    "--hierarchies",
    type=click.Path(file_okay=False),
    help="A folder for trees of values, as of ARX.",
)
@engine_options
@as_json
def cocluster_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Co-cluster FILE, a table or a saved grid, and draw it.

    Example: halfmask cocluster people.csv --variables job,age --picture grid.svg
    """
    from halfmask.release.files import private_file

    for path, kinds in ((output, (".json",)), (given["picture"], (".html", ".svg"))):
        if path and not str(path).endswith(kinds):
            named = " or ".join(kinds)
            raise click.UsageError(f"'{path}' is written as {named}: end its name so.")
    many = len(split_names(given["variables"] or "")) > 2
    if many and str(given["picture"]).endswith(".svg"):
        raise click.UsageError("An .svg shows two variables: end the picture's name in .html.")
    refuse_bad_outputs(file, None, None, output, given["picture"])
    found = _cocluster(file, given)
    grid = found.grid
    if output:
        with private_file(output) as temporary:
            grid.save(temporary)
        show.say(f"The grid is in {output}.")
    if given["picture"]:
        with private_file(given["picture"]) as temporary:
            temporary.write_text(_picture(found, str(given["picture"])), encoding="utf-8")
        show.say(f"The picture is in {given['picture']}.")
    if given["hierarchies"]:
        if file.endswith(".json"):
            raise click.UsageError("A saved grid has no columns: --hierarchies needs a table.")
        written = found.write_hierarchies(given["hierarchies"])
        show.say(f"{len(written)} hierarchies are in {given['hierarchies']}.")
    if as_json:
        show.print_document("cocluster", found.to_dict())
    else:
        _show(found)
    show.say("A grid describes the original rows and their values: it is no release.")
    if found.dependence is not None:
        for words in found.dependence.sentences():
            show.say(words)
    if not grid.informative:
        show.say("It has one cell: the columns are as good as independent, or the rows too few.")


def _cocluster(file: str, given: dict[str, Any]) -> CoClustering:
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.hierarchy import hierarchy
    from halfmask.coclustering.run import CoClustering, cocluster, simplify_levels
    from halfmask.table.hierarchy_finder import ROUNDS

    limits = {key: given[key] for key in ("cells", "information") if given[key] is not None}
    if given["smallest"] is not None:
        limits["smallest"] = {"row": given["smallest"]}
    rounds = ROUNDS if given["rounds"] is None else given["rounds"]
    if file.endswith(".json"):
        grid = Grid.load(file)
        return simplify_levels(CoClustering(grid, hierarchy(grid), rounds), _parts(given), limits)
    if given["columns"] and given["variables"]:
        raise click.UsageError("Give --columns or --variables, not both.")
    table = load(file, given)
    chosen = ("criterion", "bins", "intervals", "seed", "time_limit")
    options = {key: given[key] for key in chosen} | {"rounds": rounds, "parts": _parts(given)}
    with show.show_working("Searching the grid that explains the rows best"):
        if given["variables"]:
            return cocluster(table, split_names(given["variables"]), **options, **limits)
        columns = split_names(given["columns"]) if given["columns"] else None
        return cocluster(table, columns, dimensions="rows", **options, **limits)


def _parts(given: dict[str, Any]) -> int | dict[str, int] | None:
    text = given["parts"]
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        pairs = (one.rpartition("=") for one in text.split(","))
        return {name.strip(): int(number) for name, _, number in pairs}
    except ValueError:
        raise click.UsageError("--parts is a number, or A=3,B=2.") from None


def _picture(found: CoClustering, path: str) -> str:
    if path.endswith(".svg"):
        return found.picture()
    from halfmask.report.grid import render_grid

    return render_grid(found)


def _show(found: CoClustering) -> None:
    grid = found.grid
    facts: list[tuple[str, Any]] = [
        (f"groups of {variable.name}", f"{grid.parts[side]:,} of {variable.size:,}")
        for side, variable in enumerate(grid.variables)
    ]
    facts += [
        (f"smallest to largest group of {grid.variables[0].name}", _span(grid)),
        ("cost, of one cell", f"{grid.cost:,.3f}, {grid.null_cost:,.3f}"),
        ("information kept", show.percent(found.information)),
    ]
    if found.dependence is not None:
        together = ", ".join(found.dependence.bound) or "none"
        facts.append(("go together beyond chance", together))
    show.print_table("Grid", ("", ""), facts)
    for side, variable in enumerate(grid.variables):
        if variable.values is not None:
            show.print_table(
                f"Groups of {variable.name}",
                ("observations", "values"),
                _intervals(found, side) or _groups(grid, side, variable.values),
            )


def _span(grid: Grid) -> str:
    sizes = grid.sizes(0)
    return f"{int(sizes.min()):,} to {int(sizes.max()):,}"


def _intervals(found: CoClustering, side: int) -> list[tuple[int, str]]:
    """The intervals of one variable, where it is cut, in their order."""
    from halfmask.report.grid import interval_text

    ends = found.interval_ends(side, found.grid) or []
    totals = found.grid.totals(side).tolist()
    return [(total, interval_text(*one)) for total, one in zip(totals, ends, strict=False)]


def _groups(grid: Grid, side: int, values: tuple[Any, ...]) -> list[tuple[int, str]]:
    """The groups of one variable, the largest first, each by its most frequent values."""
    import numpy as np

    out = []
    for part in np.argsort(-grid.totals(side), kind="stable").tolist():
        held = np.flatnonzero(grid.partition[side] == part)
        held = held[np.argsort(-grid.marginals[side][held], kind="stable")]
        text = ", ".join(str(values[v]) for v in held[:_NAMED].tolist())
        more = f", {len(held) - _NAMED} more" if len(held) > _NAMED else ""
        out.append((int(grid.totals(side)[part]), text + more))
    return out
