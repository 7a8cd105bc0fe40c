"""``halfmask assess``: who stands out, through which columns, how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.criteria import show_criteria
from halfmask.cli.options import (
    as_json,
    load,
    refuse_bad_outputs,
    report_option,
    source,
    stated_schema,
)

if TYPE_CHECKING:
    from halfmask.assessment.assessment import Assessment


@click.command("assess")
@source
@click.option("--population", type=click.Path(), help="The population table's file.")
@click.option("--fraction", type=float, help="Share of the population that is in FILE (0 to 1).")
@click.option("--size", type=int, default=3, show_default=True, help="Largest column sets.")
@click.option("--engine", help="duckdb: count FILE without reading it into memory.")
@click.option("--memory-limit", help="How much memory DuckDB may take, such as 500MB.")
@click.option("--table", "source_table", help="Which table of a database (.duckdb, postgres://).")
@report_option
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure who stands out in FILE.

    Example: halfmask assess people.csv -o report.html
    """
    from halfmask.assessment.assess import assess

    refuse_bad_outputs(file, None, output)
    population = load(given["population"], {}) if given["population"] else None
    table: Any = load(file, given) if _read(file, given["engine"]) else file
    with show.working("Assessing"):
        found = assess(
            table,
            schema=None if table is not file else stated_schema(file, given),
            engine=given["engine"],
            source_table=given["source_table"],
            memory_limit=given["memory_limit"],
            population=population,
            fraction=given["fraction"],
            size=given["size"],
        )
    if output:
        found.report(output)
        show.say(f"The report is in {output}.")
    if as_json:
        show.document("assess", found.to_dict())
    else:
        show_assessment(found)


def _read(file: str, engine: str | None) -> bool:
    """Whether the rows are read, rather than counted where they are."""
    from halfmask.assessment.counted import stays

    return not stays(file, engine)


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
