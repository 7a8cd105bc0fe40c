"""``halfmask compare``: what a release is still good for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json, load, source

if TYPE_CHECKING:
    from halfmask.metrics.utility import Comparison


@click.command("compare")
@source
@click.argument("release", type=click.Path())
@as_json
def command(file: str, release: str, as_json: bool, **given: Any) -> None:
    """Compare the original FILE with its RELEASE.

    Example: halfmask compare people.csv out.parquet
    """
    from halfmask.metrics.utility import compare

    original = load(file, given)
    published = load(release, {})
    with show.working("Comparing"):
        found = compare(original, published)
    if as_json:
        show.document("compare", found.to_dict())
    else:
        show_comparison(found)


def show_comparison(found: Comparison) -> None:
    """Print a comparison for people."""
    facts = [
        ("rows", found.rows, found.rows_released),
        ("classes", found.classes, found.classes_released),
        ("mean class size", found.mean_class, found.mean_class_released),
    ]
    show.table("Original and release", ("", "original", "release"), facts)
    generalized = [(c.name, c.loss, c.distinct, c.distinct_released) for c in found.generalized]
    show.table(
        f"Loss: {show.number(found.loss)} of 1",
        ("quasi-identifier", "loss", "values", "labels"),
        generalized,
    )
    if found.kept:
        show.table(
            "Columns that leave as they are",
            ("column", "distance of distributions (0 to 1)"),
            [(c.name, c.distance) for c in found.kept],
        )
