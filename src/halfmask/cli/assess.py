"""``halfmask assess``: who stands out, through which columns, how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json, load, source

if TYPE_CHECKING:
    from halfmask.metrics.risk import Assessment


@click.command("assess")
@source
@as_json
def command(file: str, as_json: bool, **given: Any) -> None:
    """Measure who stands out in FILE.

    Example: halfmask assess people.csv
    """
    from halfmask.metrics.risk import assess

    table = load(file, given)
    with show.working("Assessing"):
        found = assess(table)
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
    sizes = [(size, classes, rows) for size, classes, rows in found.sizes]
    show.table("Class sizes", ("people in the class", "classes", "rows"), sizes)
    columns = [(c.name, c.distinct, c.missing, show.percent(c.unique_share)) for c in found.columns]
    show.table(
        "Quasi-identifiers",
        ("column", "distinct values", "missing", "rows alone by this column"),
        columns,
    )
