"""``halfmask discriminate``: how far what somebody knows tells a column, by which values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    as_json,
    engine_options,
    names,
    refuse_bad_outputs,
    report_option,
    rows_or_place,
    source,
)

if TYPE_CHECKING:
    from halfmask.assessment.discriminate import Discriminated
    from halfmask.metrics.discrimination.result import Discrimination

_SHOWN = 20  # lines of a table for people


@click.command("discriminate")
@source
@click.option("--target", required=True, metavar="COLUMN", help="What is to be learned.")
@click.option("--key", "keys", metavar="A,B", help="What somebody knows, jointly.")
@click.option("--size", type=int, help="Rank all sets of so many columns (of --key, or of all).")
@click.option("--values", is_flag=True, help="Also list each value of the keys. Shows cells.")
@click.option(
    "--partition", type=click.Path(), help="Which values count as one, per column: .toml."
)
@click.option(
    "--suppressed",
    type=click.Choice(("keep", "drop", "missing")),
    default="keep",
    show_default=True,
    help="Cells that hold *: a value, rows left out, or missing.",
)
@click.option("--permutations", type=int, default=20, show_default=True,
              help="Shuffles that show what chance gives; 0: none.")  # fmt: skip
@engine_options
@report_option
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure how far other columns of FILE tell one: the discrimination rate.

    With --key the rate of these columns together; without, or with --size, a ranking of all sets
    of columns up to a size (3 unless told).

    Example: halfmask discriminate people.csv --target disease --key age,sex
    """
    from halfmask.assessment.discriminate import discriminate

    refuse_bad_outputs(file, None, output)
    table, how = rows_or_place(file, given)
    with show.working("Measuring"):
        found = discriminate(
            table,
            given["target"],
            names(given["keys"]) or None,
            size=given["size"],
            values=given["values"],
            partition=given["partition"],
            suppressed=given["suppressed"],
            permutations=given["permutations"],
            **how,
        )
    show.outcome("discriminate", found, show_rates, report=output, as_json=as_json)


def show_rates(found: Discriminated) -> None:
    """Print rates for people."""
    if found.rate is not None:
        _show_rate(found.rate)
        _show_values(found.rate)
    if found.sets:
        rows = [
            (
                ", ".join(one.columns),
                show.rate(one.rate),
                None if one.inflation is None else show.rate(one.inflation.chance.value),
                one.kind,
                one.identified_rows,
            )
            for one in found.sets[:_SHOWN]
        ]
        headings = ("told by", "rate", "by chance", "class", "rows certain")
        show.table(f"Column sets that tell most about {found.target}", headings, rows)
        _more(len(found.sets), "column sets")
    for note in found.notes:
        show.say(note)


def _show_rate(one: Discrimination) -> None:
    facts: list[tuple[str, Any]] = [
        ("rate (0 tells nothing, 1 everything)", show.rate(one.rate)),
        ("class", one.kind),
        ("rows", one.rows),
        ("rows left out, with suppressed cells", one.left_out),
        (f"bits of {one.target}, H(X)", show.rate(one.entropy)),
        ("bits still needed, H(X | Y)", show.rate(one.residual)),
        ("values or combinations that leave one outcome", one.identifying),
        ("rows that hold them", one.identified_rows),
    ]
    if one.inflation is not None:
        chance, left = one.inflation.chance, one.inflation.adjusted
        facts.append(("rate by chance (shuffled target)", show.rate(chance.value, chance.reason)))
        facts.append(("rate beyond chance", show.rate(left.value, left.reason)))
    title = f"What {', '.join(one.keys_)} tells about {one.target}"
    show.table(title, ("", ""), facts)


def _show_values(one: Discrimination) -> None:
    """The values that tell most, whatever their frequency; the more frequent first."""
    if not one.details:
        return
    telling = sorted(one.details, key=lambda v: (-v.unweighted * v.share, -v.count))
    rows = [
        (
            ", ".join(show.number(part) for part in v.value)
            if isinstance(v.value, tuple)
            else str(v.value),
            show.rate(v.rate),
            v.count,
            show.percent(v.share),
            show.rate(v.unweighted),
            show.percent(v.top),
        )
        for v in telling[:_SHOWN]
    ]
    headings = (", ".join(one.keys_), "rate", "rows", "share", "rate alone", "likeliest outcome")
    show.table("Values", headings, rows)
    _more(len(telling), "values")


def _more(count: int, what: str) -> None:
    if count > _SHOWN:
        show.say(f"The first {_SHOWN} of {count:,} {what}; --json gives all.")
