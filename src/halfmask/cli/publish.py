"""The verbs that promise: ``check``, ``cocluster``, ``anonymize``, ``recode``, ``synthesize``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.budget import LEDGER, accountant_of, budget_options, show_promise
from halfmask.cli.options import (
    POPULATION,
    STDOUT,
    PromiseCommand,
    as_json,
    demand_options,
    demand_settings,
    engine_options,
    load,
    models,
    names,
    output,
    refuse_bad_outputs,
    refuse_two_documents,
    show_criteria,
    source,
)
from halfmask.cli.show import show_failing, show_verdicts, write_failing
from halfmask.errors import PrivacyError

if TYPE_CHECKING:
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.run import CoClustering
    from halfmask.release.release import PrivateRelease, Release, SyntheticRelease


@click.command("check", cls=PromiseCommand)
@source
@POPULATION
@demand_options
@click.option("--failing", type=click.Path(), help="Write whose own demand is not met: .csv.")
@engine_options
@as_json
def check_command(file: str, as_json: bool, **given: Any) -> int:
    """Check promises on FILE as it stands, and what its people demand for themselves.

    The exit code is 2 where one of them does not hold. Who has less than they demand is named, for
    whoever holds the table.

    Example: halfmask check people.csv --k 5 --l disease=3
    """
    from halfmask.models.check import check

    table = load(file, given)
    wanted = models(given, table.schema)
    with show.working("Checking"):
        verdicts = check(table, *wanted, **demand_settings(given))
    holds = all(verdict.holds for verdict in verdicts)
    if given["ignore_demands"]:
        show.say("What people demand for themselves was not checked: it was set aside.")
    if as_json:
        found = [{**verdict.to_dict(), "failing": list(verdict.failing)} for verdict in verdicts]
        choice = {"demands": {"checked": not given["ignore_demands"]}}
        show.document("check", {"holds": holds, **choice, "verdicts": found})
    else:
        show_verdicts(verdicts)
        show_failing(verdicts)
    if given["failing"]:
        write_failing(verdicts, given["failing"])
        show.say(f"Whose demands are not met is in {given['failing']}.")
    return 0 if holds else PrivacyError.exit_code


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
@click.option("--picture", type=click.Path(), help="Draw the grid: .svg.")
@click.option("--hierarchies", type=click.Path(), help="A folder for trees of values, as of ARX.")
@as_json
def cocluster_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Co-cluster FILE, a table or a saved grid, and draw it.

    Example: halfmask cocluster people.csv --variables job,age --picture grid.svg
    """
    from halfmask.release.files import private_file

    for path, kind in ((output, ".json"), (given["picture"], ".svg")):
        if path and not str(path).endswith(kind):
            raise click.UsageError(f"'{path}' is written as {kind}: end its name so.")
    for path in (output, given["picture"]):
        refuse_bad_outputs(file, None, None, path)
    found = _coclustered(file, given)
    grid = found.grid
    if output:
        with private_file(output) as temporary:
            grid.save(temporary)
        show.say(f"The grid is in {output}.")
    if given["picture"]:
        with private_file(given["picture"]) as temporary:
            temporary.write_text(found.picture(), encoding="utf-8")
        show.say(f"The picture is in {given['picture']}.")
    if given["hierarchies"]:
        if file.endswith(".json"):
            raise click.UsageError("A saved grid has no columns: --hierarchies needs a table.")
        written = found.write_hierarchies(given["hierarchies"])
        show.say(f"{len(written)} hierarchies are in {given['hierarchies']}.")
    if as_json:
        show.document("cocluster", found.to_dict())
    else:
        _show(grid, found.information)
    show.say("A grid describes the original rows and their values: it is no release.")
    if not grid.informative:
        show.say("It has one cell: the columns are as good as independent, or the rows too few.")


def _coclustered(file: str, given: dict[str, Any]) -> CoClustering:
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.hierarchy import hierarchy
    from halfmask.coclustering.optimize import ROUNDS
    from halfmask.coclustering.run import CoClustering, cocluster, simplified

    limits = {key: given[key] for key in ("cells", "information") if given[key] is not None}
    if given["smallest"] is not None:
        limits["smallest"] = {"row": given["smallest"]}
    rounds = ROUNDS if given["rounds"] is None else given["rounds"]
    if file.endswith(".json"):
        grid = Grid.load(file)
        return simplified(CoClustering(grid, hierarchy(grid), rounds), _parts(given), limits)
    if given["columns"] and given["variables"]:
        raise click.UsageError("Give --columns or --variables, not both.")
    table = load(file, given)
    chosen = ("criterion", "bins", "intervals", "seed", "time_limit")
    options = {key: given[key] for key in chosen} | {"rounds": rounds, "parts": _parts(given)}
    with show.working("Searching the grid that explains the rows best"):
        if given["variables"]:
            return cocluster(table, names(given["variables"]), **options, **limits)
        columns = names(given["columns"]) if given["columns"] else None
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


_report = click.option("--report", type=click.Path(), help="A report: .html or .json.")
_bins = click.option("--bins", type=int, help="cocluster: how many intervals numbers are cut into.")
_intervals = click.option(
    "--intervals", help="cocluster: equal-frequency (default), equal-width or modl."
)
_suppression = click.option(
    "--suppression",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of rows (0 to 1) that may be left out.",
)


def deliver(
    release: Release | SyntheticRelease | PrivateRelease, output: str | None, report: str | None
) -> None:
    """Write the rows and the report where the user wants them."""
    show.set_aside(release)
    if output == STDOUT:
        show.csv(release.to_arrow())
    elif output:
        release.write(output)
        show.say(f"The release is in {output}.")
    if report:
        release.report(report)
        show.say(f"The report is in {report}.")
    if not output and not report:
        show.say("Nothing was written: give -o FILE to keep the release.")


def show_release(release: Release, *, to: str = "stdout") -> None:
    """Print what was promised and what it cost."""
    show_verdicts(release.verdicts, to=to)
    facts: list[tuple[str, Any]] = [
        ("rows that leave", len(release)),
        ("rows left out", release.suppressed),
        ("loss (0 to 1)", release.loss),
    ]
    show.table("Release", ("", ""), facts, to=to)
    if release.levels:
        show.table("Generalization", ("column", "level"), list(release.levels.items()), to=to)
    show.notes(release)


_SETTINGS = (
    "method", "metric", "suppression", "time_limit", "seed", "labels", "fallback",
    "on_infeasible", "score", "cut", "block", "classes", "bins", "intervals", "link",
)  # fmt: skip


@click.command("anonymize", cls=PromiseCommand)
@source
@POPULATION
@demand_options
@_suppression
@click.option(
    "--method",
    help="optimal (default), local; personal (default with people's own "
    "demands), k-member, mdav, mondrian, exact; cocluster, cocluster-sets, cocluster-mode.",
)
@click.option("--metric", help="What the search minimizes; default: loss, or dbil with divisions.")
@click.option("--labels", type=click.Choice(["tight", "levels"]), help="What divisions publish.")
@click.option("--fallback", type=click.Choice(["uniform"]), help="Try one k for all too.")
@click.option(
    "--on-infeasible",
    type=click.Choice(["error", "suppress"]),
    help="What to do with people who demand more than all can give.",
)
@click.option("--score", type=click.Choice(["improved", "plain"]), help="The score of k-member.")
@click.option("--cut", type=click.Choice(["sides", "whole"]), help="When mondrian may cut.")
@click.option("--block", type=int, help="With exact, the most rows proven at once.")
@click.option("--classes", type=int, help="With exact and the split, the fewest classes.")
@_bins
@_intervals
@click.option("--link", help="cocluster: what a class publishes first, by count or by lift.")
@click.option("--time-limit", type=float, help="Seconds; the best so far and its gap leave.")
@click.option("--seed", type=int, help="Repeat a search that draws lots.")
@output("The release: .parquet, .csv, .arrow; - is CSV on stdout.")
@_report
@click.option("--recoding", type=click.Path(), help="Save the recoding for new rows: .json.")
@as_json
def anonymize_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Release FILE with promises, losing least.

    What people demand for themselves in the schema is kept beside them, or alone.

    Example: halfmask anonymize people.csv --k 10 -o out.parquet --report out.html
    """
    from halfmask.anonymize.run import anonymize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"], given["recoding"])
    table = load(file, given)
    wanted = models(given, table.schema)
    settings = {name: given[name] for name in _SETTINGS if given[name] is not None}
    with show.working("Searching the recoding that loses least"):
        release = anonymize(table, *wanted, **settings, **demand_settings(given))
    deliver(release, output, given["report"])
    if given["recoding"] and release.recoding is None:
        show.say("This method has no recoding for new rows: none was saved.")
    elif given["recoding"] and release.recoding is not None:
        release.recoding.save(given["recoding"])
        show.say(f"The recoding is in {given['recoding']}.")
    if as_json:
        show.document("anonymize", release.to_dict())
    else:
        show_release(release, to="stderr" if output == STDOUT else "stdout")


@click.command("recode", cls=PromiseCommand)
@source
@click.argument("recoding", type=click.Path())
@POPULATION
@demand_options
@_suppression
@output("The release: .parquet, .csv, .arrow; - is CSV on stdout.")
@_report
@as_json
def recode_command(
    file: str, recoding: str, output: str | None, as_json: bool, **given: Any
) -> None:
    """Recode new rows as an earlier release was.

    The promises are checked again on the rows of FILE after RECODING has been applied.

    Example: halfmask recode new.csv recoding.json --schema people.toml --k 5 -o new.parquet
    """
    from halfmask.release.recoding import Recoding

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    saved = Recoding.load(recoding)
    table = load(file, given)
    wanted = models(given, table.schema)
    with show.working("Recoding"):
        settings = {"suppression": given["suppression"], **demand_settings(given)}
        release = saved.apply(table, *wanted, **settings)
    deliver(release, output, given["report"])
    if as_json:
        show.document("recode", release.to_dict())
    else:
        show_release(release, to="stderr" if output == STDOUT else "stdout")


_OPTIONS = (
    "epsilon", "delta", "domains", "rows_per_person", "share", "k", "rows", "holdout", "seed",
    "bins", "intervals", "strategy", "mode", "labels", "time_limit",
)  # fmt: skip


@click.command("synthesize")
@source
@click.option(
    "--method", help="marginals, histogram, privbayes, dp-cocluster, dpcocgen, auto; cocluster."
)
@demand_options
@budget_options
@LEDGER
@click.option("--k", type=int, help="cocluster: the fewest people in a group of the model.")
@_bins
@_intervals
@click.option("--strategy", help="cocluster: how groups grow to k: climb (default) or targeted.")
@click.option("--mode", help="cocluster: draw (default) at random, or by quota.")
@click.option("--labels", is_flag=True, default=None,
              help="cocluster: numbers leave as the intervals that they lie in.")  # fmt: skip
@click.option("--time-limit", type=float, help="cocluster: seconds for the search.")
@click.option("--rows", type=int, help="How many rows to draw; default: about as many as FILE has.")
@click.option("--holdout", type=float, help="cocluster: share of rows kept out as a control.")
@click.option("--seed", type=int, help="cocluster: repeat a draw.")
@output("The synthetic table: .parquet, .csv, .arrow; - is CSV on stdout.")
@_report
@as_json
def synthesize_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Draw a synthetic table from FILE.

    Example: halfmask synthesize people.csv --k 50 -o synthetic.parquet
    """
    from halfmask.release.release import PrivateRelease
    from halfmask.synthesize.run import synthesize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    table = load(file, given)
    method = given["method"] or ("auto" if given["epsilon"] else "cocluster")
    options = {name: given[name] for name in _OPTIONS if given[name] is not None}
    options |= demand_settings(given)
    if given["epsilon"] is not None:
        options["insist"] = given["insist"]
    accountant = accountant_of(
        given["ledger"], given["grant"], given["ledger_key"], insist=given["insist"]
    )
    if accountant is not None:
        options["accountant"] = accountant
    with show.working("Learning a model of the rows"):
        release = synthesize(table, method, **options)
    deliver(release, output, given["report"])
    to = "stderr" if output == STDOUT else "stdout"
    if as_json:
        show.document("synthesize", release.to_dict())
    elif isinstance(release, PrivateRelease):
        show_private(release, to=to)
    else:
        show_synthetic(release, to=to)


def show_private(release: PrivateRelease, *, to: str = "stdout") -> None:
    """Print what was spent and what it means for one person."""
    facts = [("rows that leave", len(release)), ("method", release.method)]
    show_promise(release, "Private table", facts, to=to)


def show_synthetic(release: SyntheticRelease, *, to: str = "stdout") -> None:
    """Print what was drawn and what was measured."""
    measured = release.measured
    facts: list[tuple[str, Any]] = [
        ("rows that leave", len(release)),
        ("least people in a group", release.parameters["k_obtained"]),
        ("rows equal to a real one", show.percent(measured["attribution"]["copies"])),
        ("attribution ratio", round(measured["attribution"]["ratio"], 4)),
    ]
    show.table("Synthetic table", ("", ""), facts, to=to)
    show_criteria(measured["criteria"], to=to)
    show.notes(release)
