"""The verb that looks at promises: ``check``, of a table, a release file or several releases."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    POPULATION,
    PromiseCommand,
    as_json,
    demand_options,
    demand_settings,
    engine_options,
    load,
    models,
    series_key,
    series_ledger,
    source,
    with_roles,
)
from halfmask.cli.show import show_failing, show_verdicts, write_failing
from halfmask.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.models.verdict import Verdict
    from halfmask.table.schema import Schema
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
@series_key
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
    standing = record_state(file, table.schema)
    claims = [
        {"claim": one.note, "holds": one.holds, "failing_rows": one.failing_rows}
        for one in recorded_claims(table)
    ]
    # Where rows can be held to no promise, the record and its hash tell that they were.
    told = not rows_kept and "unchanged" in standing and (not claims or "not_seen" in standing)
    told = told or (claims_everybody(table.schema) and not rows_kept)
    if not facts and not table.schema.columns:
        require_record(file, given)
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


def _list_releases(file: str | None, given: dict[str, Any], *, json_too: bool) -> int:
    """Print which releases of a series hold somebody."""
    ledger = None if file or given["against"] else series_ledger(given)
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
        ledger = series_ledger(given)
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


def record_state(file: str, schema: Schema) -> dict[str, Any]:
    """What a release file says of itself, and whether its rows are those that were released."""
    from halfmask.models.check import unseen_promises
    from halfmask.release.record import matches_record

    facts = schema.release
    if not facts:
        return {}
    promises = [dict(one) for one in facts.get("promises", ())]
    found = {"made_with": facts.get("made_with"), "rows": facts.get("rows"), "promises": promises}
    if isinstance(facts.get("left"), str):
        found["left"] = facts["left"]
    if unseen := unseen_promises(schema):
        found["not_seen"] = [{"model": name, "reason": why} for name, why in unseen]
    same = matches_record(file, facts)
    return found if same is None else {**found, "unchanged": same}


def require_record(file: str, given: Mapping[str, Any]) -> None:
    """Ask for the record of a text file that lies there alone, where nothing else says what it is.

    Raises:
        InputError: neither a schema nor a promise was given.
    """
    from halfmask.errors import InputError
    from halfmask.models.options import read_models
    from halfmask.release.files import holds_metadata
    from halfmask.table.read import schema_beside

    path = Path(file)
    if read_models(given, mark="--", population=lambda: None, needed=False) or not path.is_file():
        return
    if holds_metadata(path):
        lacks = f"{path.name} does not say of itself what was promised"
    else:
        lacks = f"{schema_beside(path).name}, which says what was promised, is not beside it"
    raise InputError(
        f"Nothing says what to check: {lacks}. Put the record there that the release was written "
        "with, or name the schema (--schema) and the promises (--k, --l, --t or another)."
    )


def show_record_state(standing: Mapping[str, Any]) -> None:
    """Say what a release file says of itself."""
    if not standing:
        return
    if standing.get("unchanged"):
        show.say("The rows are those that were released: their hash is the one in the record.")
    for one in standing.get("not_seen", ()):
        show.say(
            f"{one['model']}: kept when it was released. It cannot be looked at again here: "
            f"{one['reason']}."
        )
    if "left" in standing:
        show.say(
            f"By its record these rows left {standing['left']}: they were drawn, or have noise, "
            "and no row can show that again."
        )
    elif not standing["promises"]:
        show.say(
            "Its record states no promise of a model: the smallest class and the risks are what "
            "its rows give. Name --k, --l, --t or another to hold them to one."
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
        "promises releases it with them kept where that can be; halfmask assess says which columns "
        "make people stand out."
    )
