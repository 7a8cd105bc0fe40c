"""The verbs that promise: ``check``, ``anonymize``, ``recode``, ``synthesize``."""

from __future__ import annotations

from dataclasses import asdict
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
    show_criteria,
    source,
    with_roles,
)
from halfmask.cli.show import show_failing, show_verdicts, write_failing
from halfmask.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.models.verdict import Verdict
    from halfmask.release.doors.series import SeriesLedger
    from halfmask.release.release import PrivateRelease, Release, SyntheticRelease
    from halfmask.table.table import Table


class CheckCommand(PromiseCommand):
    """``check``, whose option ``--against`` takes all names that follow it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give each of the names its own option."""
        if "--against" in args:
            at = args.index("--against")
            end = next((i for i in range(at + 1, len(args)) if args[i][:1] == "-"), len(args))
            each = [word for name in args[at + 1 : end] for word in ("--against", name)]
            args = [*args[:at], *each, *args[end:]]
            if not each:
                raise click.UsageError("--against needs the files of two or more releases.", ctx)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """FILE may be left out where releases are looked at."""
        found = super().get_params(ctx)
        for one in found:
            if one.name == "file":
                one.required = False
        return found


_series_key = click.option(
    "--ledger-key", type=click.Path(), help="The secret file that --previous is sealed with."
)


@click.command("check", cls=CheckCommand)
@source
@POPULATION
@demand_options
@click.option("--failing", type=click.Path(), help="Write whose own demand is not met: .csv.")
@click.option("--against", multiple=True, type=click.Path(), metavar="R1 R2 ...",
              help="What these releases reveal together, in their order.")  # fmt: skip
@click.option("--previous", type=click.Path(), metavar="LEDGER",
              help="With --against, the ledger of the series, which may prove more.")  # fmt: skip
@click.option(
    "--holding", metavar="PERSON", help="With --previous, list the releases that hold this person."
)
@_series_key
@engine_options
@as_json
def check_command(file: str | None, as_json: bool, **given: Any) -> int:
    """Check promises on FILE as it stands, and what its people demand for themselves.

    The exit code is 2 where one of them does not hold. Who has less than they demand is named, for
    whoever holds the table.

    With --against the releases named behind it are looked at together: what a reader of all of
    them learns that none tells alone. FILE, if given, is the table of the people who are looked
    for. The exit code is 2 where something is revealed, and where that is not known.

    Example: halfmask check people.csv --k 5 --l disease=3

    Example: halfmask check --against may.parquet june.parquet --schema people.toml
    """
    from halfmask.models.blank_cells import CLAIMED
    from halfmask.models.check import check, claims_everybody, recorded_claims, recorded_models

    if given["holding"] is not None:
        return _list_releases(file, given, json_too=as_json)
    if given["against"]:
        return _check_series(file, given, json_too=as_json)
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    table = load(file, given).name_people()
    facts = table.schema.release
    rows_kept = bool(recorded_models(table.schema))  # promises that the rows can be held to again
    standing = record_state(file, facts)
    # Of people's own demands alone the record and its hash tell.
    told = not rows_kept and "unchanged" in standing and _all_personal(standing["promises"])
    claims = [
        {"claim": one.note, "holds": one.holds, "failing_rows": one.failing_rows}
        for one in recorded_claims(table)
    ]
    told = told or (claims_everybody(table.schema) and not rows_kept)
    wanted = models(given, table.schema, stated=rows_kept or told)
    with show.show_working("Checking"):
        nothing = told and not wanted and not given["policies"]
        verdicts = () if nothing else check(table, *wanted, **demand_settings(given))
    verdicts = tuple(one for one in verdicts if one.model != CLAIMED)  # told by themselves
    figures = smallest_figures(verdicts, table)
    holds = all(verdict.holds for verdict in verdicts) and standing.get("unchanged", True)
    holds = holds and all(one["holds"] for one in claims)
    if given["ignore_demands"]:
        show.say("What people demand for themselves was not checked: it was set aside.")
    if as_json:
        found = [{**verdict.to_dict(), "failing": list(verdict.failing)} for verdict in verdicts]
        choice = {"demands": {"checked": not given["ignore_demands"]}}
        more = ({"release": standing} if standing else {}) | ({"claims": claims} if claims else {})
        document = {"holds": holds, **figures, **choice, **more, "verdicts": found}
        show.print_document("check", document)
    else:
        _show_check(table, verdicts, figures, claims, standing)
    if given["failing"]:
        write_failing(verdicts, given["failing"])
        show.say(f"Whose demands are not met is in {given['failing']}.")
    if not as_json and not holds:
        show.say(next_step(verdicts, standing, claims))
    return 0 if holds else PrivacyError.exit_code


def _show_check(
    table: Table,
    verdicts: Sequence[Verdict],
    figures: dict[str, Any],
    claims: list[dict[str, Any]],
    standing: dict[str, Any],
) -> None:
    """Print what holds, of whom it does not, and what the file says of itself."""
    if verdicts:
        show_verdicts(verdicts)
    of_rows = bool(table.schema.release) and table.schema.person is None
    show.show_smallest(figures, of_rows=of_rows, tied=bool(table.schema.ties))
    show_failing(verdicts)
    for one in claims:
        kept = "holds" if one["holds"] else f"fails; rows: {one['failing_rows']:,}"
        show.say(f"Claimed: {one['claim']}. By this rule it {kept}.")
    show_record_state(standing)


def _series_ledger(given: dict[str, Any]) -> SeriesLedger | None:
    """The ledger of --previous, opened with its key."""
    from halfmask.release.doors.series import SeriesLedger

    if given["previous"]:
        return SeriesLedger.open(given["previous"], given["ledger_key"])
    if given["ledger_key"]:
        raise click.UsageError("--ledger-key is the secret of a ledger: name its file, --previous.")
    return None


def _list_releases(file: str | None, given: dict[str, Any], *, json_too: bool) -> int:
    """Print which releases of a series hold somebody."""
    ledger = None if file or given["against"] else _series_ledger(given)
    if ledger is None:
        raise click.UsageError(
            "--holding asks the ledger of a series alone: halfmask check --previous LEDGER "
            "--holding PERSON."
        )
    ledger.require_releases()
    found, count = ledger.holding(given["holding"]), len(ledger.releases)
    if json_too:
        show.print_document("check", {"releases": found, "of": count})
    elif found:
        show.say(f"Of the {count:,} releases these hold this person: {', '.join(map(str, found))}.")
    else:
        show.say(f"None of the {count:,} releases holds this person.")
    return 0


def _check_series(file: str | None, given: dict[str, Any], *, json_too: bool) -> int:
    """Print what releases reveal together."""
    from halfmask.engines.read import read
    from halfmask.models.options import read_models
    from halfmask.series.audit import audit_releases
    from halfmask.table.read import as_schema

    if read_models(given, mark="--", population=lambda: None, needed=False):
        raise click.UsageError("--against looks at releases: check promises in another call.")
    people = load(file, given) if file else None
    tables = [read(one) for one in given["against"]]
    held = None if people is None else people.schema
    if people is None:
        first = tables[0].collect()
        declared = as_schema(given["schema"]) if given["schema"] else first.schema
        tables[0] = with_roles(first.with_schema(declared), given)
        held = tables[0].schema if given["schema"] else None
    with show.show_working("Looking at the releases together"):
        ledger = _series_ledger(given)
        found = audit_releases(*tables, schema=held, people=people, previous=ledger)
    if json_too:
        show.print_document("check", found.to_dict())
    else:
        rows = [
            (one.kind, one.column, " and ".join(map(str, one.releases)), one.places, one.people,
             one.fewest, one.values)
            for one in found.witnesses
        ]  # fmt: skip
        headings = ("kind", "column", "releases", "places", "people", "fewest", "values left")
        if rows:
            show.print_table("Revealed together", headings, rows)
        show.print_table("Releases", ("", ""), [
            ("rows", ", ".join(f"{n:,}" for n in found.rows)),
            ("groups that releases can be compared in", found.cuts),
            ("of these, proven to reveal nothing more", found.proven),
            ("people where it is not known", found.undecided),
            *((f"people of whom {name} is narrowed down further", n)
              for name, n in found.narrowed.items() if n is not None),
        ])  # fmt: skip
        show.say(found.sentence)
        for text in (*(one.sentence for one in found.witnesses), *found.reasons):
            show.say(text)
        if not found.holds:
            show.say(_NEXT[found.outcome])
    return 0 if found.holds else PrivacyError.exit_code


_NEXT = {  # by the outcome of releases that are looked at together
    "revealed": "Do not publish the last of them beside the others: halfmask anonymize with "
    "--m-invariance COLUMN=M and --previous LEDGER makes releases that can stand together.",
    "not known": "Treat it as if something were revealed, or let it be decided: --schema with the "
    "roles and hierarchies of these columns, or --previous LEDGER of their series.",
}


def smallest_figures(verdicts: Sequence[Verdict], table: Table) -> dict[str, Any]:
    """The smallest class and the highest risk, as other verbs name them.

    Of a release file those that were counted by people when it was released, and the mean risk,
    where the rows do not belie them; with tokens in it, by the people whom these name.
    """
    from halfmask.engines.counting.tuples import count_tuples
    from halfmask.metrics.risk.reidentification import RecordedRisk, reidentification
    from halfmask.release.record import recorded_risk
    from halfmask.table.classes import classes_of

    schema = table.schema
    least = next((one.smallest for one in verdicts if one.smallest), None)
    if schema.ties and schema.quasi:
        held = count_tuples(table, lambda declared: [*declared.quasi, *declared.ties])
        classes = classes_of(held, list(schema.quasi), tied=True)
        risk = reidentification(classes.rows, classes.people)
        return asdict(RecordedRisk(risk.smallest, risk.prosecutor, risk.marketer))
    if schema.release and schema.quasi:
        held = count_tuples(table, lambda declared: list(declared.quasi))
        rows = classes_of(held, list(schema.quasi)).rows
        mean = len(rows) / int(rows.sum())
        found = recorded_risk(schema, schema.quasi, least=int(rows.min()), mean=mean)
        if found is not None:
            return asdict(found)
    return {"smallest": least, "highest_risk": 1 / least} if least else {}


def record_state(file: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a release file says of itself, and whether its rows are those that were released."""
    from halfmask.release.record import matches_record

    if not facts:
        return {}
    promises = [dict(one) for one in facts.get("promises", ())]
    found = {"made_with": facts.get("made_with"), "rows": facts.get("rows"), "promises": promises}
    same = matches_record(file, facts)
    return found if same is None else {**found, "unchanged": same}


def _all_personal(promises: Sequence[Mapping[str, Any]]) -> bool:
    return bool(promises) and all("personal" in one.get("model", "") for one in promises)


def show_record_state(standing: Mapping[str, Any]) -> None:
    """Say what a release file says of itself."""
    if not standing:
        return
    if standing.get("unchanged"):
        show.say("The rows are those that were released: their hash is the one in the record.")
    personal = [one["model"] for one in standing["promises"] if "personal" in one["model"]]
    if personal:
        show.say(
            f"{', '.join(dict.fromkeys(personal))}: kept when it was released. What people "
            "demanded did not leave with the rows, so it cannot be looked at again here."
        )


def next_step(
    verdicts: Sequence[Verdict],
    standing: Mapping[str, Any],
    claims: Sequence[Mapping[str, Any]] = (),
) -> str:
    """What to do where something does not hold."""
    if standing.get("unchanged") is False:
        return (
            "The rows are not those that were released: the file was changed afterwards. Take the "
            "released file again, or release the changed rows with halfmask anonymize."
        )
    broken = ", ".join(dict.fromkeys(one.model for one in verdicts if not one.holds))
    if not broken and not all(one["holds"] for one in claims):
        return "Not kept: what local suppression claims. Mask the table anew, suppressing last."
    return (
        f"Not kept: {broken}. Do not publish this table as it is: halfmask anonymize with the same "
        "promises releases it with them kept; halfmask assess says which columns make people stand "
        "out."
    )


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
        return ""
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
        show.print_table("What was done", ("column", "now"), done, to=to)
    show.print_notes(release)


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
@_series_key
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
    if (ledger := _series_ledger(given)) is not None:
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
