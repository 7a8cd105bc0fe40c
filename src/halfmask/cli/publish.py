"""The verbs that promise: ``anonymize``, ``recode``, ``synthesize``."""

from __future__ import annotations

from pathlib import Path
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
    output,
    output_table,
    refuse_bad_outputs,
    refuse_two_documents,
    series_key,
    series_ledger,
    show_criteria,
    source,
)
from halfmask.cli.show import show_verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.release.release import PrivateRelease, Release, SyntheticRelease


_report = click.option(
    "--report", type=click.Path(), help="The certificate: .html, .pdf (by chromium) or .json."
)
_by = click.option("--by", metavar="NAME", help="Who releases it, for the certificate.")
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
    release: Release | SyntheticRelease | PrivateRelease,
    output: str | None,
    report: str | None,
    about: Mapping[str, Any] | None = None,
    *,
    table: str | None = None,
) -> None:
    """Write the rows and the report where the user wants them; ``about`` is for a certificate."""
    show.set_aside(release)
    if output == STDOUT:
        show.print_csv(release.to_arrow())
    elif output:
        table = table or (about or {}).get("table")
        release.write(output, **({"table": table} if table else {}))
        inside = f", table {table}" if table else _beside(release, output)
        show.say(f"The release is in {output}{inside}.")
    if report:
        file = output if output != STDOUT and output and Path(output).is_file() else None
        about = None if about is None else {k: v for k, v in about.items() if k != "table"}
        release.report(report, **({} if about is None else {"file": file, **about}))
        show.say(f"The report is in {report}.")
    if not output and not report:
        show.say("Nothing was written: give -o FILE to keep the release.")


def _certificate(file: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the certificate of a release says of the act: of which table, by whom, how."""
    import shlex

    from halfmask.errors import mask_passwords

    words = click.get_current_context().find_root().obj or []
    # The name of a file is enough to repeat it; where it lies on a machine is nobody's business.
    named = [Path(word).name if Path(word).is_absolute() else word for word in words]
    command = mask_passwords(f"halfmask {shlex.join(named)}") if words else None
    name = given.get("table") or Path(file).name  # an address may hold a password
    more = {"table": given["output_table"]} if given.get("output_table") else {}
    return {"original": name, "by": given["by"], "command": command, **more}


def _beside(release: Release, output: str) -> str:
    """Where the release says what it is."""
    from halfmask.release.files import holds_metadata
    from halfmask.table.read import schema_beside

    if release.schema is None:
        drawn = release.kind in ("private", "synthetic") and not output.endswith("/")
        text = drawn and not holds_metadata(output)
        return f", how it left in {schema_beside(Path(output))}" if text else ""
    if output.endswith("/") or holds_metadata(output):
        return ", with its schema and promises in it"
    return f", its schema and promises in {schema_beside(Path(output))}"


def show_release(release: Release, *, to: str = "stdout") -> None:
    """Print what was promised, what it cost and what was done to each column."""
    show_verdicts(release.verdicts, to=to)
    facts: list[tuple[str, Any]] = [
        ("rows that leave", len(release)),
        ("rows left out", release.suppressed),
        ("loss", show.percent(release.loss) if release.loss is not None else None),
        ("method", release.method),
    ]
    if release.risk is not None:
        from halfmask.metrics.risk.reidentification import HIGHEST, MEAN, SMALLEST

        facts += [
            (SMALLEST, release.risk.smallest),
            (HIGHEST, show.percent(release.risk.prosecutor)),
            (MEAN, show.percent(release.risk.marketer)),
        ]
    show.print_table("Release", ("", ""), facts, to=to)
    if release.tried:
        show.print_table("Tried", ("method", "loss", "seconds", ""), _attempts(release), to=to)
    done = [(one.name, one.action) for one in release.columns if one.role == "quasi"]
    if done:
        show.print_table("What was done", ("column", "now"), done[:_COLUMNS], to=to)
    if len(done) > _COLUMNS:
        show.say(f"And {len(done) - _COLUMNS:,} more columns: --report and --json list them all.")
    show.print_notes(release)
    for line in _next_steps(release):
        show.say(line)


def _next_steps(release: Release) -> list[str]:
    """What whoever holds the table may look at next."""
    from halfmask.table.columns import abbreviate_names

    out = []
    lost = [one.name for one in release.columns if one.loss is not None and one.loss > _NOTHING]
    if lost:
        out.append(
            f"Nothing is left of {abbreviate_names(lost)}: fewer quasi-identifiers, a hierarchy of "
            "more levels (a tree or csv for texts), --labels sets or more time may keep some of it."
        )
    if release.suppressed:
        out.append(
            "halfmask compare, with the original and this release, says who was left out, by group."
        )
    return out


_NOTHING = 0.99  # a loss of a column beside which hardly anything is left
_COLUMNS = 40  # columns that are printed


def _attempts(release: Release) -> list[tuple[Any, ...]]:
    """The methods that were looked at, for whoever holds the table."""
    return [
        (
            one.method,
            "" if one.loss is None else one.loss,
            "" if one.seconds is None else f"{one.seconds:.1f}",
            "released" if one.method == release.method else one.reason or "",
        )
        for one in release.tried
    ]


_SETTINGS = (
    "method", "metric", "suppression", "time_limit", "seed", "labels", "fallback",
    "on_infeasible", "counterfeits", "score", "cut", "block", "classes",
    "must_link", "cannot_link", "bins",
    "intervals", "link", "pseudonym", "most_tuples",
)  # fmt: skip


@click.command("anonymize", cls=PromiseCommand)
@source
@POPULATION
@demand_options
@_suppression
@click.option(
    "--method",
    help="auto (default): what loses least of those that follow; optimal (one level per column, "
    "recodes new rows), local; personal, mondrian, k-member, mdav, exact; cocluster, "
    "cocluster-sets, cocluster-mode.",
)
@click.option("--metric", help="What the search minimizes; default: loss.")
@click.option(
    "--labels",
    type=click.Choice(["tight", "levels", "sets"]),
    help="What classes publish: ranges and common labels, labels alone, or sets of values.",
)
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
@click.option("--must-link", metavar="COLUMN",
              help="With exact, rows of one value of it stand in one class.")  # fmt: skip
@click.option("--cannot-link", metavar="COLUMN",
              help="With exact, rows of one value of it never stand in one class.")  # fmt: skip
@_bins
@_intervals
@click.option("--link", help="cocluster: what a class publishes first, by count or by lift.")
@click.option("--time-limit", type=float, help="Seconds; the best so far and its gap leave.")
@click.option("--seed", type=int, help="Repeat a search that draws lots.")
@click.option(
    "--pseudonym",
    type=click.Path(),
    metavar="KEYFILE",
    help="Keep a person's rows together by keyed tokens, if the promises then hold.",
)
@click.option(
    "--previous",
    type=click.Path(),
    metavar="LEDGER",
    help="The next release of a series, with --m-invariance; its ledger.",
)
@series_key
@click.option(
    "--counterfeits",
    type=float,
    metavar="SHARE",
    help="With --previous, the highest share of rows that stand for nobody.",
)
@output("The release: .parquet, .csv, .arrow, a folder (out/), a database; - is CSV on stdout.")
@output_table
@engine_options
@click.option(
    "--most-tuples",
    type=int,
    help="Distinct tuples that come from where the rows stay; more are counted at coarser levels.",
)
@_report
@_by
@click.option("--recoding", type=click.Path(), help="Save the recoding for new rows: .json.")
@as_json
def anonymize_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Release FILE with promises, losing least.

    What people demand for themselves in the schema is kept beside them, or alone.

    Example: halfmask anonymize people.csv --k 10 -o out.parquet --report out.html

    Example: halfmask anonymize postgresql://host/db --table visits --schema visits.toml --k 10
    -o postgresql://host/db --output-table visits_public
    """
    from halfmask.anonymize.run import anonymize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(
        file, output, given["report"], given["recoding"], beside=True, table=given["output_table"]
    )
    table = load(file, given)
    wanted = models(given, table.schema)
    settings = {name: given[name] for name in _SETTINGS if given[name] is not None}
    if (ledger := series_ledger(given)) is not None:
        settings["previous"] = ledger
    if given["recoding"] and "method" not in settings:
        settings["method"] = "optimal"  # a recoding of new rows is wanted
    with show.show_working("Searching the recoding that loses least"):
        release = anonymize(table, *wanted, **settings, **demand_settings(given))
    deliver(release, output, given["report"], _certificate(file, given))
    if given["recoding"] and release.recoding is None:
        show.say("This method has no recoding for new rows: none was saved.")
    elif given["recoding"] and release.recoding is not None:
        release.recoding.save(given["recoding"])
        show.say(f"The recoding is in {given['recoding']}.")
    if as_json:
        show.print_document("anonymize", release.to_dict())
    else:
        show_release(release, to="stderr" if output == STDOUT else "stdout")


@click.command("recode", cls=PromiseCommand)
@source
@click.argument("recoding", type=click.Path())
@POPULATION
@demand_options
@_suppression
@output("The release: .parquet, .csv, .arrow, a folder (out/), a database; - is CSV on stdout.")
@output_table
@engine_options
@_report
@_by
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
    refuse_bad_outputs(file, output, given["report"], beside=True, table=given["output_table"])
    saved = Recoding.load(recoding)
    table = load(file, given)
    wanted = models(given, table.schema)
    with show.show_working("Recoding"):
        settings = {"suppression": given["suppression"], **demand_settings(given)}
        release = saved.apply(table, *wanted, **settings)
    deliver(release, output, given["report"], _certificate(file, given))
    if as_json:
        show.print_document("recode", release.to_dict())
    else:
        show_release(release, to="stderr" if output == STDOUT else "stdout")


_OPTIONS = (
    "epsilon", "delta", "domains", "bounds", "rows_per_person", "share", "k", "rows", "holdout",
    "together", "order",
    "seed", "bins", "intervals", "strategy", "mode", "labels", "combinations", "time_limit",
)  # fmt: skip


@click.command("synthesize")
@source
@click.option(
    "--method",
    help="marginals, adaptive, histogram, privbayes, dp-cocluster, dpcocgen, auto; cocluster.",
)
@demand_options
@budget_options
@LEDGER
@click.option("--bounds", metavar="SHARE",
              help="The share of epsilon that buys bounds that nobody declared.")  # fmt: skip
@click.option("--k", type=int, help="cocluster: the fewest people in a group of the model.")
@_bins
@_intervals
@click.option("--strategy", help="cocluster: how groups grow to k: climb (default) or targeted.")
@click.option("--mode", help="cocluster: draw (default) at random, or by quota.")
@click.option("--labels", is_flag=True, default=None,
              help="cocluster: numbers leave as the intervals that they lie in.")  # fmt: skip
@click.option(
    "--combinations",
    type=int,
    help="cocluster: of how many columns k people hold the values together (2).",
)
@click.option("--time-limit", type=float, help="cocluster: seconds for the search.")
@click.option("--rows", type=int, help="How many rows to draw; default: about as many as FILE has.")
@click.option("--given", multiple=True, metavar="CONDITION",
              help='Draw rows that hold this: sex=f, "age>=18", "age<65".')  # fmt: skip
@click.option("--prior", metavar="FILE",
              help="A public table, which is not protected: where the model begins.")  # fmt: skip
@click.option("--together", metavar="WHOSE",
              help="Draw rows of one person or household together.")  # fmt: skip
@click.option("--order", metavar="COLUMN", help="--together: what sorts the rows of one.")
@click.option("--constant", multiple=True, metavar="COLUMN",
              help="--together: a column that all rows of one share.")  # fmt: skip
@click.option("--holdout", type=float, help="cocluster: share of rows kept out as a control.")
@click.option("--seed", type=int, help="cocluster: repeat a draw.")
@engine_options
@output("The synthetic table: .parquet, .csv, .arrow; - is CSV on stdout.")
@_report
@as_json
def synthesize_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Draw a synthetic table from FILE.

    Example: halfmask synthesize people.csv --k 50 -o synthetic.parquet
    """
    from halfmask.dp.conditions import read_conditions
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
    if given["prior"]:
        options["prior"] = load(given["prior"], {})
    if given["constant"]:
        options["constant"] = given["constant"]
    if given["given"]:
        options["given"] = read_conditions(given["given"])
    with show.show_working("Learning a model of the rows"):
        release = synthesize(table, method, **options)
    deliver(release, output, given["report"])
    to = "stderr" if output == STDOUT else "stdout"
    if as_json:
        show.print_document("synthesize", release.to_dict())
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
        (
            "rows that all people but one do not explain (few: risky)",
            show.percent(measured["attribution"]["ratio"]),
        ),
    ]
    show.print_table("Synthetic table", ("", ""), facts, to=to)
    show_criteria(measured["criteria"], to=to)
    show.print_notes(release)
