"""``halfmask compare``: what a release is still good for, and what it still tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.criteria import show_criteria
from halfmask.cli.options import (
    as_json,
    engine_options,
    names,
    refuse_bad_outputs,
    report_option,
    rows_or_place,
    source,
)
from halfmask.cli.rates import needs_of, show_needs, show_release_rates

if TYPE_CHECKING:
    from halfmask.assessment.comparison import Comparison
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.utility.regression import Regression


_LEARNED = (
    ("homogeneity", "homogeneity: rows certain"),
    ("background", "background knowledge: rows certain if a value is ruled out"),
    ("skewness", "skewness: largest gain of a value"),
    ("similarity", "similarity: rows alike in meaning"),
)
_PLACES = (
    "engine", "memory_limit", "release_table", "control_table", "earlier_table", "weaker_table",
)  # fmt: skip


@click.command("compare")
@source
@click.argument("release", type=click.Path())
@click.option("--control", type=click.Path(), help="Rows of people who are not in FILE.")
@click.option("--earlier", type=click.Path(), help="Another release of the same people.")
@click.option("--suppressed", metavar="TEXT",
              help="What suppressed cells hold: a text, or missing; default: *.")  # fmt: skip
@click.option("--same-order", is_flag=True, help="Both tables hold the same people in order.")
@click.option("--target", metavar="A,B", help="Columns to predict from the others.")
@click.option("--queries", type=click.Path(), help="A file of SQL on a table called people.")
@click.option(
    "--need",
    "needs",
    multiple=True,
    metavar="COLUMN=A,B",
    help="What analysts want to learn, from which columns.",
)
@click.option("--needs", "needs_file", type=click.Path(), help="Needs with bounds: .toml.")
@click.option("--partition", type=click.Path(),
              help="Which sensitive values mean the same, per column: .toml.")  # fmt: skip
@click.option("--weaker", type=click.Path(),
              help="A release under a weaker promise: where RELEASE tells more.")  # fmt: skip
@click.option("--limit", type=float, default=0.09, show_default=True,
              help="Highest acceptable risk of a criterion.")  # fmt: skip
@click.option("--learn/--no-learn", default=None, help="Train models; default: if installed.")
@click.option("--attacks", type=int, default=500, show_default=True, help="People attacked.")
@click.option("--seed", type=int, default=0, show_default=True, help="Other random choices.")
@engine_options
@click.option("--release-table", help="Which table of a database RELEASE is.")
@click.option("--control-table", help="Which table of a database the control is.")
@click.option("--earlier-table", help="Which table of a database the earlier release is.")
@click.option("--weaker-table", help="Which table of a database the weaker release is.")
@report_option
@as_json
def command(file: str, release: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Compare the original FILE with its RELEASE.

    Example: halfmask compare people.csv out.parquet -o report.html
    """
    from halfmask.assessment.compare import compare

    refuse_bad_outputs(file, None, output)
    original, how = rows_or_place(file, given)
    how |= {name: given[name] for name in _PLACES}
    with show.working("Comparing"):
        found = compare(
            original,
            release,
            control=given["control"],
            earlier=given["earlier"],
            suppressed=given["suppressed"],
            same_order=given["same_order"],
            targets=names(given["target"]) or None,
            queries=given["queries"],
            needs=needs_of(given),
            partition=given["partition"],
            weaker=given["weaker"],
            limit=given["limit"],
            learn=given["learn"],
            attacks=given["attacks"],
            seed=given["seed"],
            **how,
        )
    show.outcome("compare", found, show_comparison, report=output, as_json=as_json)


def show_comparison(found: Comparison) -> None:
    """Print a comparison for people."""
    from halfmask.report.sentences import MADE_UP

    facts = [
        ("rows", found.rows, found.rows_released),
        ("classes", found.classes, found.classes_released),
        ("mean class size", found.mean_class, found.mean_class_released),
        ("highest risk (prosecutor)", found.before.prosecutor, _of_classes(found, "prosecutor")),
        ("mean risk (marketer)", found.before.marketer, _of_classes(found, "marketer")),
    ]
    show.table("Original and release", ("", "original", "release"), facts)
    loss = "not known" if found.loss is None else f"{show.number(found.loss)} of 1"
    generalized = [(c.name, c.loss, c.distinct, c.distinct_released) for c in found.generalized]
    show.table(f"Loss: {loss}", ("quasi-identifier", "loss", "values", "labels"), generalized)
    moved = [(d.name, d.hellinger, d.variation) for d in found.distances]
    show.table("Distributions (distance 0 to 1)", ("column", "Hellinger", "total variation"), moved)
    show.table("Classes", ("", "figure"), _classes(found))
    show.table("What it is good for", ("", "figure", "from", "to"), _good_for(found))
    show_needs(found)
    show_criteria([one.to_dict() for one in found.criteria])
    show.table("Attacks", ("attack", "figure", "from", "to"), _attacks(found))
    show_release_rates(found)
    if found.made_up:
        show.say(MADE_UP)
    if found.membership.area.value is None:
        show.say(f"Membership is not known: {found.membership.area.reason}")
    for note in found.notes:
        show.say(note)


def _of_classes(found: Comparison, attacker: str) -> float | str:
    """A risk by the release's own classes, where they hold the original's people."""
    return "not known" if found.made_up else float(getattr(found.after, attacker))


def _classes(found: Comparison) -> list[tuple[str, Any]]:
    held = found.partition
    rows: list[tuple[str, Any]] = [
        (f"average class / smallest, {held.k} (C_AVG)", held.average_class),
        ("discernibility", held.discernibility),
    ]
    rows += [(f"classification metric, {name}", v) for name, v in found.utility.classification]
    names = ("dbil", "sbil", "ebil", "tbil", "ctbil", "wcss")
    return rows + [(name.upper(), _loss(held.to_dict(), name)) for name in names]


def _loss(held: dict[str, Any], name: str) -> Any:
    """A figure of the classes, or what is known of it where labels overlap."""
    if held[name] is not None:
        return held[name]
    low, high = held.get(f"{name}_low"), held.get(f"{name}_high")
    if low is None:
        return "not known: labels do not tell which row stands in which class"
    return f"{show.number(low)} to {show.number(high)}: labels do not tell who stands where"


def _attacks(found: Comparison) -> list[tuple[str, Any, Any, Any]]:
    link = found.linkage
    rows = [
        _line("record linkage, nearest row", link.distance),
        _line("record linkage, best matching", link.assignment),
        _line("record linkage, Fellegi-Sunter", link.probabilistic),
        _line("interval disclosure", link.interval),
        _line("membership (0.5 is guessing)", found.membership.area),
        _line("minimality, rows", found.minimality),
    ]
    for _, after in found.disclosures:
        if after is not None and not found.made_up:
            for name, words in _LEARNED:
                value = getattr(after, name)
                known = "not known" if value is None else value
                rows.append((f"{words}, {after.column}", known, None, None))
    if found.differencing is not None:
        rows.append(_line("differencing, people alone", found.differencing.alone))
        rows += [
            _line(f"differencing, {name} certain", share)
            for name, share in found.differencing.disclosed
        ]
    return rows


def _line(name: str, one: Estimate) -> tuple[str, Any, Any, Any]:
    """A figure and its interval; none where it was counted or is not known."""
    if one.value is None:
        return (name, "not known", None, None)
    sampled = (one.low, one.high) != (one.value, one.value)
    return (name, one.value, one.low if sampled else None, one.high if sampled else None)


def _good_for(found: Comparison) -> list[tuple[str, Any, Any, Any]]:
    error = found.counting.error
    rows = [("random counts, mean relative error", error.value, error.low, error.high)]
    rows += [
        (f"query {q.query} of the file, mean relative error", q.error.value, q.error.low,
         q.error.high)
        for q in found.queries
    ]  # fmt: skip
    rows += [
        (
            f"{p.measure} of {p.target}, {p.model} (original: {show.number(p.original.value)})",
            p.release.value,
            p.release.low,
            p.release.high,
        )
        for p in found.predictions
    ]
    rows += [_line(_fitted(one), one.overlap) for one in found.regressions]
    return rows


def _fitted(one: Regression) -> str:
    name = f"linear model of {one.target}, overlap of intervals"
    if one.overlap.value is None:
        return name
    return f"{name} ({one.coefficients} of {one.coefficients + one.lost} coefficients)"
