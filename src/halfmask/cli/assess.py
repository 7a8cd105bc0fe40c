"""``halfmask assess``: who stands out, through which columns, how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.criteria import show_criteria
from halfmask.cli.options import (
    as_json,
    engine_options,
    load,
    refuse_bad_outputs,
    report_option,
    rows_or_place,
    source,
)

if TYPE_CHECKING:
    from halfmask.assessment.assessment import Assessment


@click.command("assess")
@source
@click.option("--population", type=click.Path(), help="The population table's file.")
@click.option("--fraction", type=float, help="Share of the population that is in FILE (0 to 1).")
@click.option("--size", type=int, default=3, show_default=True, help="Largest column sets.")
@engine_options
@report_option
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure who stands out in FILE.

    Example: halfmask assess people.csv -o report.html
    """
    from halfmask.assessment.assess import assess

    refuse_bad_outputs(file, None, output)
    population = load(given["population"], {}) if given["population"] else None
    table, how = rows_or_place(file, given)
    with show.working("Assessing"):
        found = assess(
            table,
            population=population,
            fraction=given["fraction"],
            size=given["size"],
            **how,
        )
    if output:
        found.report(output)
        show.say(f"The report is in {output}.")
    if as_json:
        show.document("assess", found.to_dict())
    else:
        show_assessment(found)


def show_assessment(found: Assessment) -> None:
    """Print an assessment for people."""
    facts = [
        ("rows", found.rows),
        ("people", found.people),
        ("classes", found.classes),
        ("smallest class, people", found.smallest),
        (
            "rows alone in their class",
            f"{found.unique_rows:,} ({show.percent(found.unique_share)})",
        ),
        ("highest risk (prosecutor)", show.percent(found.highest_risk)),
        ("mean risk (marketer)", show.percent(found.mean_risk)),
    ]
    show.table("Risk", ("", ""), facts)
    show_criteria([one.to_dict() for one in found.criteria])
    sizes = [(size, classes, rows) for size, classes, rows in found.sizes]
    show.table("Class sizes", ("people in the class", "classes", "rows"), sizes)
    columns = [(c.name, c.distinct, c.missing, show.percent(c.unique_share)) for c in found.columns]
    show.table(
        "Quasi-identifiers",
        ("column", "distinct values", "missing", "rows alone by this column"),
        columns,
    )
    steps = [(a.column, a.unique_rows, a.one_level, a.removed) for a in found.advice]
    show.table(
        "Rows alone in their class, if one column is",
        ("column", "as it is", "one level up", "removed"),
        steps,
    )
    for note in found.notes:
        show.say(note)
