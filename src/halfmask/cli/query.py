"""``halfmask query``: aggregate SQL in which every person keeps an own guarantee."""

from __future__ import annotations

from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.budget import budget_options, ignore_demands
from halfmask.cli.options import STDOUT, as_json, load, output, source
from halfmask.cli.private_query import answer_with_noise, refuse_noise


@click.command("query")
@source
@click.argument("sql", required=False)
@click.option(
    "-f", "--sql-file", type=click.Path(allow_dash=True), help="Read the query from here."
)
@click.option("--policies", type=click.Path(), help="People's demands: .toml, .csv or .parquet.")
@click.option("--engine", help="duckdb, spark or reference; postgres:// needs none.")
@click.option("--table", "tables", multiple=True, metavar="NAME=FILE", help="A table to join.")
@click.option("--ledger", type=click.Path(), help="Refuse what earlier answers forbid; kept here.")
@budget_options
@ignore_demands
@click.option(
    "--time-limit",
    type=float,
    default=10.0,
    show_default=True,
    help="Seconds for SEMANTICS complete; then the best found, with its proven gap.",
)
@click.option("--explain", is_flag=True, help="Show the plan and the engine's SQL only.")
@click.option("--suggest", is_flag=True, help="Estimate guarantees and propose a chain.")
@click.option("--report", type=click.Path(), help="What was answered and why: .html or .json.")
@output("The rows: .parquet, .csv, .arrow; - is CSV on stdout.")
@as_json
def command(file: str, sql: str | None, as_json: bool, **given: Any) -> None:
    """Ask FILE (a table, a .duckdb file or a postgres:// address) with guarantees, or with noise.

    Example: halfmask query people.csv "SELECT education, AVG(salary) FROM people GROUP BY education
    GUARANTEE k = 5, l = 3"

    Example: halfmask query people.csv "SELECT education, COUNT(*) FROM people GROUP BY education
    WITH EPSILON 1.0 DELTA 1e-6"
    """
    from halfmask.query.explain import explained
    from halfmask.query.parsing.parse import parse
    from halfmask.query.private.clause import is_private
    from halfmask.query.run import Session

    text = _text(sql, given["sql_file"])
    if given["epsilon"] is not None or is_private(text):
        with Session(
            _tables(file, given), engine=given["engine"], schema=_schema(file, given)
        ) as session:
            answer_with_noise(session, text, given, as_json=as_json)
        return
    refuse_noise(given)
    explain = given["explain"] or parse(text).explain
    with (
        show.working("Answering"),
        Session(
            _tables(file, given), engine=given["engine"], schema=_schema(file, given)
        ) as session,
    ):
        work = session.prepare(text, given["policies"])
        if explain:
            plan = explained(work.plan, session)
            if as_json:
                show.document("query", {"explanation": plan.to_dict()})
            else:
                click.echo(str(plan))
            return
        if not given["suggest"]:
            _answer(session, work, given, as_json=as_json)
            return
    _suggest(file, text, given, as_json=as_json)


def _answer(session: Any, work: Any, given: dict[str, Any], *, as_json: bool) -> None:
    from halfmask.query.history.ledger import Ledger
    from halfmask.release.document import plain_rows

    ledger = Ledger.read(given["ledger"]) if given["ledger"] else None
    answer = session.answer(work, ledger=ledger, time_limit=given["time_limit"])
    if ledger is not None:
        ledger.write(given["ledger"])
    rows = answer.to_arrow()
    if given["output"] and given["output"] != STDOUT:
        answer.write(given["output"])
        show.say(f"The answer is in {given['output']}.")
    if given["report"]:
        answer.report(given["report"])
        show.say(f"The report is in {given['report']}.")
    if as_json:
        show.document("query", {"answer": answer.to_dict(), "data": plain_rows(rows)})
        return
    if given["output"] == STDOUT:
        _csv(rows)
    elif not given["output"]:
        show.table("Answer", rows.column_names, [list(r.values()) for r in rows.to_pylist()])
    _say(answer)


def _say(answer: Any) -> None:
    show.say(f"{len(answer):,} rows; {answer.people:,} people could be published.")
    for reason, people in answer.withheld.items():
        if people is not None:
            show.say(f"Withheld, {reason}: {people:,} people.")
    if answer.gap:
        show.say(f"Stopped early: at most {answer.gap:.1%} below the best quality.")
    for note in answer.notes:
        show.say(note)


def _suggest(file: str, text: str, given: dict[str, Any], *, as_json: bool) -> None:
    from halfmask.query.suggest import suggest

    found = suggest(
        _tables(file, given), text, given["policies"], given["engine"], schema=_schema(file, given)
    )
    if as_json:
        show.document("query", {"suggestion": found.to_dict()})
        return
    rows = [
        [
            label,
            " · ".join(f"k={k} l={l}" for k, l in e.guarantees),
            show.percent(e.contributing),
            show.percent(e.people),
            show.percent(e.groups),
        ]
        for label, e in (
            ("asked", found.asked),
            ("proposed", found.proposed),
            *(("tried", e) for e in found.tried),
        )
    ]
    show.table(
        "Guarantees",
        ["", "chain", "people contribute", "people published", "groups published"],
        rows,
    )
    click.echo(found.clause)


def _text(sql: str | None, file: str | None) -> str:
    if (sql is None) == (file is None):
        raise click.UsageError("Give the query, or -f with a file that holds it.")
    if sql is not None:
        return sql
    with click.open_file(str(file), encoding="utf-8") as stream:
        return str(stream.read())


def _tables(file: str, given: dict[str, Any]) -> object:
    from halfmask.engines.open import is_address
    from halfmask.table.read import read

    if is_address(file):
        return file
    main = load(file, given)
    if not given["tables"]:
        return main
    from pathlib import Path

    tables = {Path(file).name.split(".")[0]: main}
    for pair in given["tables"]:
        name, _, path = pair.partition("=")
        if not path:
            raise click.UsageError("--table takes NAME=FILE.")
        tables[name] = read(path)
    return tables


def _schema(file: str, given: dict[str, Any]) -> object:
    from halfmask.engines.open import is_address

    return given["schema"] if is_address(file) else None


def _csv(rows: Any) -> None:
    import sys

    from pyarrow import csv

    csv.write_csv(rows, sys.stdout.buffer)
