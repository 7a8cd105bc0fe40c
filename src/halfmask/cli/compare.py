"""The verbs that hold tables against each other: ``compare``, ``frontier`` and ``policies``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.assess import limit_option, read_needs, show_needs, show_release_rates
from halfmask.cli.options import (
    POPULATION,
    STDOUT,
    AlternativesCommand,
    as_json,
    demand_options,
    demand_settings,
    engine_options,
    load,
    model_choices,
    output,
    read_beside,
    refuse_bad_outputs,
    refuse_two_documents,
    report_option,
    show_criteria,
    source,
    split_names,
    verbose,
)
from halfmask.errors import PrivacyError, mask_passwords

if TYPE_CHECKING:
    from halfmask.anonymize.policies import Gain, PolicyComparison
    from halfmask.assessment.compare import TablesBeside
    from halfmask.assessment.comparison import Comparison
    from halfmask.assessment.frontier_points import Frontier, Point
    from halfmask.assessment.side_by_side import SideBySide
    from halfmask.metrics.estimate import Estimate
    from halfmask.report.frontier import PointFigure
    from halfmask.table.table import Table


@click.command("compare")
@source
@click.argument("release", nargs=-1, required=True, type=click.Path())
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
@click.option("--values", is_flag=True, help="Score single published labels too; shows them.")
@click.option("--weaker", type=click.Path(),
              help="A release under a weaker promise: where RELEASE tells more.")  # fmt: skip
@click.option("--weights", metavar="COLUMN", help="Weight means and quantiles by this column.")
@limit_option
@click.option("--require", multiple=True, metavar="FIGURE<=NUMBER",
              help="A bound (<= or >=) that each release keeps, else exit code 2; "
              "--require highest_risk<=0.2.")  # fmt: skip
@click.option("--learn/--no-learn", default=None, help="Train models; default: if installed.")
@click.option("--attacks", type=int, default=500, show_default=True, help="People attacked.")
@click.option("--seed", type=int, default=0, show_default=True, help="Other random choices.")
@engine_options
@click.option("--release-table", help="Which table of a database RELEASE is.")
@click.option("--control-table", help="Which table of a database the control is.")
@click.option("--earlier-table", help="Which table of a database the earlier release is.")
@click.option("--weaker-table", help="Which table of a database the weaker release is.")
@report_option
@verbose
@as_json
def compare_command(
    file: str, release: tuple[str, ...], output: str | None, as_json: bool, **given: Any
) -> int:
    """Compare the original FILE with its RELEASE, or with several side by side.

    Example: halfmask compare people.csv out.parquet -o report.html

    Example: halfmask compare people.csv k5.csv k10.csv --require "highest_risk<=0.2"
    """
    from halfmask.assessment.compare import ComparisonOptions, compare_one, compare_releases
    from halfmask.assessment.comparison import SHORT
    from halfmask.assessment.side_by_side import FigureBound

    refuse_bad_outputs(file, None, output)
    conditions = [FigureBound.of(one) for one in given["require"]]
    if len(release) > 1 and given["release_table"] is not None:
        raise click.UsageError(
            "--release-table names the table of one RELEASE: give one, or compare the tables of a "
            "database side by side from Python."
        )
    original = load(file, given)
    releases = {
        name: read_beside("release_table", one, given)
        for name, one in zip(_release_names(release), release, strict=True)
    }
    others: TablesBeside = {
        "control": read_beside("control_table", given["control"], given),
        "earlier": read_beside("earlier_table", given["earlier"], given),
        "weaker": read_beside("weaker_table", given["weaker"], given),
    }
    same = {name: given[name] for name in ComparisonOptions.__slots__ if name in given}
    targets = split_names(given["target"]) or None
    options = ComparisonOptions.of(same | {"targets": targets, "needs": read_needs(given)})
    if len(releases) == 1 and not as_json and not output and not _asks_more(given):
        (only,) = releases.values()
        with show.show_working("Comparing"):
            one = compare_one(original, only, others, options, SHORT)
        show_short_comparison(one)
        return 0
    with show.show_working("Comparing"):
        found = compare_releases(original, releases, others, options, conditions)
    if len(releases) > 1:
        show.print_outcome("compare", found, _show_releases, report=output, as_json=as_json)
    else:
        _print_one(found, output, given, as_json=as_json)
    return 0 if found.met else PrivacyError.exit_code


def _asks_more(given: dict[str, Any]) -> bool:
    """Whether more is asked for than the short lines show."""
    more = ("verbose", "require", "needs", "needs_file", "partition", "values", "weaker")
    return any(given[name] for name in more)


def _print_one(
    found: SideBySide, output: str | None, given: dict[str, Any], *, as_json: bool
) -> None:
    """Print the comparison of the only release, and conditions beside it where any are stated."""
    (one,) = found.comparisons
    write = show_comparison if given["verbose"] else show_short_comparison
    if as_json and found.conditions:
        if output:
            one.report(output)
            show.say(f"The report is in {output}.")
        stated = {"conditions": [condition.to_dict() for condition in found.conditions]}
        show.print_document("compare", one.to_dict() | stated | {"met": found.met})
        return
    show.print_outcome("compare", one, write, report=output, as_json=as_json)
    if not as_json:  # the document holds them
        _show_labels(found)
        _show_conditions(found)


def _release_names(releases: tuple[str, ...]) -> list[str]:
    """What releases are called: as they were given, and numbered where two are given alike."""
    shown = [mask_passwords(one) for one in releases]
    return [
        f"{name} ({shown[:i].count(name) + 1})" if name in shown[:i] else name
        for i, name in enumerate(shown)
    ]


def _show_releases(found: SideBySide) -> None:
    """Print the figures of several releases, a column each."""
    from halfmask.report.side_by_side import release_notes

    headings = ("", "original", *found.releases)
    rows = [
        (line.title, show.figure_in_form(line.before, line.form),
         *(_headline_text(one, line.form) for one in line.after))
        for line in found.headlines
    ]  # fmt: skip
    show.print_table("Releases side by side", headings, rows)
    _show_labels(found)
    _show_conditions(found)
    for name, notes in release_notes(found.to_dict()):
        show.say(f"Of {name}:")
        for note in notes:
            show.say(f"  - {note}")
    show.say("--json and -o report.html give intervals and reasons besides.")


_LABELS = 20  # of each table; --json and -o hold more


def _show_labels(found: SideBySide) -> None:
    """Print the rates of single labels, a table for each attack and column, a column each."""
    from halfmask.report.discrimination import label_tables

    names = found.releases
    for one in label_tables([each.to_dict() for each in found.comparisons], _LABELS):
        headings = (one["column"], *(("rate", "rows") if len(names) == 1 else names))
        rows = [
            (line["label"], *line["rates"], *([line["rows"][0]] if len(names) == 1 else []))
            for line in one["lines"]
        ]
        show.print_table(f"{one['attack']}: {one['target']} by {one['column']}", headings, rows)


def _headline_text(one: Estimate | None, form: str) -> Any:
    if one is None or one.value is None:
        return "not known"
    return show.figure_in_form(one.value, form)


def _show_conditions(found: SideBySide) -> None:
    """Print whether each release meets each condition."""
    rows = [(one.condition, *("met" if met else "not met" for met in one.met))
            for one in found.conditions]  # fmt: skip
    if rows:
        show.print_table("Conditions", ("", *found.releases), rows)


_STEPS = 5  # pieces of advice that are printed; -o writes all


def show_short_comparison(found: Comparison) -> None:
    """Print risk and use before and after, whether attacks succeed, and what to do next."""
    from halfmask.assessment.comparison import SHORT
    from halfmask.report.words import MADE_UP, comparison_steps

    show.findings("Original and release", found.findings, "sizes")
    if found.loss is None:
        show.say("Loss: not known, as the release holds values that the original does not know.")
    else:
        show.say(f"Loss: {show.percent(found.loss)} of the detail in columns that others may know.")
    used = [one for one in found.findings if one.measure in SHORT]
    show.findings("What it is good for", used, "use")
    _show_summaries(found, _COLUMNS)
    show_needs(found)
    document = found.select("made_up", "generalized")
    show.print_criteria(document)
    if "discrimination" in document and found.discrimination.inversions is not None:
        show_release_rates(found)  # a weaker release was given
    if found.made_up:
        show.say(MADE_UP)
    for note in found.notes:
        show.say(note)
    show.print_steps(comparison_steps(document)[:_STEPS])


_COLUMNS = 40  # numeric columns that are printed; -v, --json and -o give all


def _show_summaries(found: Comparison, most: int | None = None) -> None:
    """Print means and the like of numeric columns, before and after; of many, what changed."""
    kinds = ("mean", "deviation", "q25", "median", "q75")
    columns = found.summaries.columns
    if most is not None and len(columns) > most:
        columns = tuple(one for one in columns if one.before != one.after)[:most]
    rows = [
        (one.name, *(f"{show.number_text(getattr(one.before, kind))} → "
                     f"{show.number_text(getattr(one.after, kind))}" for kind in kinds))
        for one in columns
    ]  # fmt: skip
    if rows:
        by = found.summaries.weighted
        title = "Numeric columns, original → release" + (f", weighted by {by}" if by else "")
        show.print_table(title, ("column", "mean", "deviation", "25 %", "median", "75 %"), rows)
    changed = sum(one.before != one.after for one in found.summaries.columns)
    if len(columns) < len(found.summaries.columns):
        show.say(
            f"{changed - len(columns):,} more numeric columns changed, "
            f"{len(found.summaries.columns) - changed:,} did not: -v and -o list all."
        )


def show_comparison(found: Comparison) -> None:
    """Print a comparison for people."""
    from halfmask.report.words import MADE_UP, comparison_steps

    show.findings("Original and release", found.findings, "sizes")
    loss = "not known" if found.loss is None else f"{show.number_text(found.loss)} of 1"
    generalized = [(c.name, c.loss, c.distinct, c.distinct_released) for c in found.generalized]
    show.print_table(f"Loss: {loss}", ("quasi-identifier", "loss", "values", "labels"), generalized)
    moved = [(d.name, d.hellinger, d.variation) for d in found.distances]
    show.print_table(
        "Distributions (distance 0 to 1)", ("column", "Hellinger", "total variation"), moved
    )
    show.findings("Classes", found.findings, "classes")
    show.findings("What it is good for", found.findings, "use")
    _show_summaries(found)
    show_needs(found)
    show_criteria([one.to_dict() for one in found.criteria])
    show.findings("Attacks", found.findings, "attacks")
    show_release_rates(found)
    if found.made_up:
        show.say(MADE_UP)
    if found.membership.area.value is None:
        show.say(f"Membership is not known: {found.membership.area.reason}")
    for note in found.notes:
        show.say(note)
    show.print_steps(comparison_steps(found.to_dict()), short=False)


_SHOWN = 40  # settings that are printed; --json and -o hold all


@click.command("frontier", cls=AlternativesCommand)
@source
@POPULATION
@demand_options
@click.option("--method", default="auto", show_default=True, metavar="A,B", help="Methods.")
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
@click.option("--time-limit", type=float, help="Seconds for all of it.")
@engine_options
@report_option
@as_json
def frontier_command(file: str, output: str | None, as_json: bool, **given: Any) -> int:
    """Show risk against utility for many settings.

    Example: halfmask frontier people.csv --k 2,5,10,20 -o frontier.html
    """
    from halfmask.assessment.frontier import frontier
    from halfmask.assessment.frontier_settings import FrontierOptions
    from halfmask.models.options import read_numbers

    refuse_bad_outputs(file, None, output)
    wanted = model_choices(given)
    if not wanted and not given["release"] and not given["epsilon"]:
        raise click.UsageError(
            "No promise is named: give --k, --l, --t or another, or --epsilon or --release."
        )
    same = {name: given[name] for name in FrontierOptions.__slots__ if name in given}
    same["suppression"] = read_numbers("suppression", given["suppression"], "--")
    if given["epsilon"]:
        same["epsilons"] = read_numbers("epsilon", given["epsilon"], "--")
    methods = split_names(given["method"])
    table = load(file, given)
    finished = {path: load(path, {}) for path in given["release"]}
    same |= demand_settings(given) | {"methods": methods, "releases": finished}
    with show.show_progress("Searching every setting") as progress:
        found = frontier(table, *wanted, progress=progress, **same)
    show.print_outcome("frontier", found, show_frontier, report=output, as_json=as_json)
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
    from halfmask.report.frontier import FIGURES, RISKS

    headings = ("setting", "✓", *(figure.title for figure in FIGURES))
    what = RISKS[found.risk].title
    title = (
        f"Risk and utility (✓ not dominated: none is better in {what} or {found.utility} and as "
        "good in the other)"
    )
    same = Counter(point.same_as for point in found.points if point.same_as is not None)
    show.print_table(title, headings, [_row(point, same[point.name]) for point in points])
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
    show.print_notes(found)


def _row(point: Point, same: int) -> tuple[str, ...]:
    more = "" if not same else f" (and {same} more)"
    from halfmask.report.frontier import FIGURES

    figures = (_figure(point, figure) for figure in FIGURES)
    return (point.name + more, "✓" if point.best else "", *figures)


def _figure(point: Point, figure: PointFigure) -> str:
    """A figure, with its interval where it is a mean of draws."""
    value = getattr(point, figure.name)
    if value is None:
        return ""
    low, high = (point.intervals or {}).get(figure.name, (value, value))
    text = figure.text(value)
    return text if low == high else f"{text} ({figure.text(low)} to {figure.text(high)})"


@click.command("policies")
@source
@click.option(
    "--concern",
    multiple=True,
    metavar="NAME",
    help="general, offline, online, personal, professional, sexual-political, or shares "
    "HIGH/MEDIUM/LOW in percent.",
)
@click.option(
    "--ks",
    default="3,5,7",
    show_default=True,
    metavar="LOW,MEDIUM,HIGH",
    help="What people with each concern demand.",
)
@click.option("--correlated", metavar="A,B", help="Numeric columns that demands grow with.")
@click.option("--column", default="k_i", show_default=True, help="The name of the new column.")
@click.option("--seed", type=int, default=0, show_default=True, help="Repeat the dealing.")
@click.option("--compare", is_flag=True, help="Show what demands gain over one k and deleting.")
@click.option("--runs", type=int, default=3, show_default=True, help="Seeds to compare over.")
@click.option("--method", default="personal", show_default=True, help="How rows are divided.")
@output("The table with the new column, yours alone; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="With --compare, a report: .html or .json.")
@as_json
def policies_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Invent people's demands, or compare with --compare.

    Example: halfmask policies people.csv --concern personal -o demands.csv

    Example: halfmask policies people.csv --compare --report gains.html
    """
    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    table = load(file, given)
    given["ks"] = _numbers("ks", given["ks"], ",")
    given["correlated"] = split_names(given["correlated"]) or None
    if given["compare"]:
        _compare(table, given, as_json=as_json)
    else:
        _generate(table, given, output, as_json=as_json)


def _generate(table: Table, given: dict[str, Any], output: str | None, *, as_json: bool) -> None:
    from collections import Counter

    from halfmask.release.files import private_file, write_table
    from halfmask.sample.policies import generate

    concern = _concerns(given["concern"] or ("personal",))[0]
    made = generate(
        table,
        concern,
        k=given["ks"],
        correlated=given["correlated"],
        column=given["column"],
        seed=given["seed"],
    )
    counts = Counter(made.arrow[given["column"]].to_pylist())
    if output == STDOUT:
        show.print_csv(made.arrow)
    elif output:
        write_table(made.arrow, output, private_file)
        show.say(f"The table with its demands is in {output}: these are all rows, no release.")
    else:
        show.say("Nothing was written: give -o FILE to keep the demands.")
    groups = sorted(counts.items())
    if as_json:
        listed = [{"k": k, "people": people} for k, people in groups]
        show.print_document("policies", {"column": given["column"], "demands": listed})
    elif output != STDOUT:
        show.print_table("Demands", ("k", "people"), groups)


def _compare(table: Table, given: dict[str, Any], *, as_json: bool) -> None:
    from halfmask.anonymize.policies import compare_policies

    if given["runs"] < 1:
        raise click.UsageError("--runs takes a number of at least 1.")
    concerns = _concerns(given["concern"]) if given["concern"] else None
    with show.show_working("Dividing the rows under every policy"):
        found = compare_policies(
            table,
            concerns,
            k=given["ks"],
            correlated=given["correlated"],
            method=given["method"],
            seeds=range(given["seed"], given["seed"] + given["runs"]),
        )
    show.print_outcome("policies", found, _show_gains, report=given["report"], as_json=as_json)


def _show_gains(found: PolicyComparison) -> None:
    rows = [
        (
            one.concern,
            ", ".join(map(str, one.k)),
            one.personal,
            _gain_text(one.over_moderate),
            _gain_text(one.over_uniform),
            _gain_text(one.over_deleting),
        )
        for one in found.gains
    ]
    headings = ("people", "k", "loss per row", "over k medium", "over k high", "over deleting")
    show.print_table("What personal demands gain (above 1: they lose less)", headings, rows)


def _gain_text(gain: Gain) -> str:
    wide = (gain.high - gain.low) / 2
    return f"{gain.mean:.3f}" + (f" ± {wide:.3f}" if wide else "")


def _concerns(given: tuple[str, ...]) -> list[Any]:
    return [tuple(_numbers("concern", one, "/")) if "/" in one else one for one in given]


def _numbers(option: str, text: str, sign: str) -> list[Any]:
    try:
        listed = [float(part) for part in text.split(sign)]
    except ValueError:
        raise click.UsageError(f"--{option} takes three numbers with '{sign}' between.") from None
    return [int(one) if one.is_integer() else one for one in listed]
