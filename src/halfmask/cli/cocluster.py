"""``halfmask cocluster``: how the columns of a table go together, as a grid and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json, load, names, refuse_bad_outputs, source

if TYPE_CHECKING:
    from halfmask.coclustering.grid import Grid

_NAMED = 8  # values of a group that are printed


@click.command("cocluster")
@source
@click.option("--columns", metavar="A,B", help="Columns to look at; default: quasi-identifiers.")
@click.option("--bins", type=int, default=10, show_default=True, help="Intervals of numbers.")
@click.option("--intervals", default="equal-frequency", show_default=True,
              help="equal-frequency, equal-width or modl.")  # fmt: skip
@click.option("--rounds", type=int, default=4, show_default=True, help="How long to search.")
@click.option("--seed", type=int, default=0, show_default=True, help="Repeat a search.")
@click.option("--time-limit", type=float, help="Seconds for the search.")
@click.option("--cells", type=int, help="Simplify to at most so many cells.")
@click.option("--information", type=float, help="Simplify while this share (0 to 1) is kept.")
@click.option("--smallest", type=int, help="Simplify until each group of rows has so many.")
@click.option("-o", "--output", type=click.Path(), help="Save the grid: .json.")
@click.option("--picture", type=click.Path(), help="Draw the grid: .svg.")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Co-cluster FILE, a table or a saved grid, and draw it.

    Example: halfmask cocluster people.csv -o grid.json --picture grid.svg
    """
    from halfmask.coclustering.draw import heat_map
    from halfmask.coclustering.hierarchy import hierarchy
    from halfmask.release.files import private_file

    for path, kind in ((output, ".json"), (given["picture"], ".svg")):
        if path and not str(path).endswith(kind):
            raise click.UsageError(f"'{path}' is written as {kind}: end its name so.")
    for path in (output, given["picture"]):
        refuse_bad_outputs(file, None, None, path)
    finest = _grid(file, given)
    levels = hierarchy(finest)
    grid = _simplified(levels, given)
    kept = (grid.cost - grid.null_cost) / (finest.cost - finest.null_cost or 1.0)
    if output:
        with private_file(output) as temporary:
            grid.save(temporary)
        show.say(f"The grid is in {output}.")
    if given["picture"]:
        with private_file(given["picture"]) as temporary:
            temporary.write_text(heat_map(grid), encoding="utf-8")
        show.say(f"The picture is in {given['picture']}.")
    if as_json:
        show.document("cocluster", _facts(grid, kept))
    else:
        _show(grid, kept)
    show.say("A grid describes the original rows and their values: it is no release.")
    if not grid.informative:
        show.say("It has one cell: the columns are as good as independent, or the rows too few.")


def _grid(file: str, given: dict[str, Any]) -> Grid:
    from halfmask.coclustering.columns import cocluster_columns
    from halfmask.coclustering.grid import Grid

    if file.endswith(".json"):
        return Grid.load(file)
    table = load(file, given)
    columns = names(given["columns"]) if given["columns"] else table.schema.quasi
    chosen = {key: given[key] for key in ("bins", "intervals", "rounds", "seed", "time_limit")}
    with show.working("Searching the grid that explains the rows best"):
        return cocluster_columns(table, columns, **chosen)[1]


def _simplified(levels: Any, given: dict[str, Any]) -> Grid:
    from halfmask.coclustering.simplify import simplify

    limits = {key: given[key] for key in ("cells", "information") if given[key] is not None}
    if given["smallest"] is not None:
        limits["smallest"] = {"row": given["smallest"]}
    found: Grid = simplify(levels, **limits) if limits else levels.grid
    return found


def _facts(grid: Grid, kept: float) -> dict[str, Any]:
    return {
        "observations": grid.total,
        "variables": [
            {
                "name": variable.name,
                "values": variable.size,
                "parts": grid.parts[side],
                "sizes": grid.sizes(side).tolist(),
            }
            for side, variable in enumerate(grid.variables)
        ],
        "cost": grid.cost,
        "null_cost": grid.null_cost,
        "level": grid.level,
        "information": kept,
        "criterion": grid.criterion,
    }


def _show(grid: Grid, kept: float) -> None:
    facts: list[tuple[str, Any]] = [
        (f"groups of {variable.name}s", f"{grid.parts[side]:,} of {variable.size:,}")
        for side, variable in enumerate(grid.variables)
    ]
    facts += [
        (f"smallest to largest group of {grid.variables[0].name}s", _span(grid)),
        ("cost, of one cell", f"{grid.cost:,.3f}, {grid.null_cost:,.3f}"),
        ("information kept", show.percent(kept)),
    ]
    show.table("Grid", ("", ""), facts)
    values = grid.variables[-1].values
    if values is not None:
        show.table(
            f"Groups of {grid.variables[-1].name}s",
            ("observations", "values"),
            [(total, text) for total, text in _groups(grid, values)],
        )


def _span(grid: Grid) -> str:
    sizes = grid.sizes(0)
    return f"{int(sizes.min()):,} to {int(sizes.max()):,}"


def _groups(grid: Grid, values: tuple[Any, ...]) -> list[tuple[int, str]]:
    """The groups of the last variable, the largest first, each by its most frequent values."""
    import numpy as np

    side = len(grid.parts) - 1
    out = []
    for part in np.argsort(-grid.totals(side), kind="stable").tolist():
        held = np.flatnonzero(grid.partition[side] == part)
        held = held[np.argsort(-grid.marginals[side][held], kind="stable")]
        text = ", ".join(str(values[v]) for v in held[:_NAMED].tolist())
        more = f", {len(held) - _NAMED} more" if len(held) > _NAMED else ""
        out.append((int(grid.totals(side)[part]), text + more))
    return out
