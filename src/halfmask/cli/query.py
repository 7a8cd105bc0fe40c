"""``halfmask query``: aggregate SQL in which every person keeps an own guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.budget import budget_options
from halfmask.cli.options import IGNORE, POLICIES, STDOUT, as_json, load, output, source
from halfmask.cli.private_query import answer_with_noise, refuse_noise

if TYPE_CHECKING:
    from halfmask.query.run import Session


@click.command("query")
@source
@click.argument("sql", required=False)
@click.option(
    "-f", "--sql-file", type=click.Path(allow_dash=True), help="Read the query from here."
)
@POLICIES
@click.option("--engine", help="duckdb, spark or reference; postgres:// needs none.")
@click.option("--table", "tables", multiple=True, metavar="NAME=FILE", help="A table to join.")
@click.option(
    "--tables", "listed", metavar="NAMES", help="Tables of the database to be asked: a,b."
)
@click.option("--floor", type=int, help="The least k of an answer, where the schema states none.")
@click.option("--ledger", type=click.Path(), help="Refuse what earlier answers forbid; kept here.")
@budget_options
@IGNORE
@click.option(
    "--effort",
    type=float,
    default=1.0,
    show_default=True,
    help="Work for SEMANTICS complete, counted, not timed; then the best found, with its gap.",
)
@click.option("--explain", is_flag=True, help="Show the plan and the engine's SQL only.")
@click.option(
    "--suggest",
    is_flag=True,
    help="Propose guarantees, none below those asked; looks at everybody: for the controller.",
)
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

    text = _text(sql, given["sql_file"])
    if given["epsilon"] is not None or is_private(text):
        with _session(file, given) as session:
            answer_with_noise(session, text, given, as_json=as_json)
        return
    refuse_noise(given)
    explain = given["explain"] or parse(text).explain
    with show.working("Answering"), _session(file, given) as session:
        work = session.prepare(text, given["policies"])
        if explain:
            plan = explained(work.plan, session)
            if as_json:
                show.document("query", {"explanation": plan.to_dict()})
            else:
                show.echo(str(plan))
            return
        if not given["suggest"]:
            _answer(session, work, given, as_json=as_json)
            return
    _suggest(file, text, given, as_json=as_json)


def _answer(session: Any, work: Any, given: dict[str, Any], *, as_json: bool) -> None:
    from halfmask.query.history.ledger import Ledger
    from halfmask.release.document import plain_rows

    ledger = Ledger.read(given["ledger"]) if given["ledger"] else None
    answer = session.answer(work, ledger=ledger, effort=given["effort"])
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
        show.csv(rows)
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
    from halfmask.query.suggest import FOR_WHOM, suggest

    found = suggest(
        _tables(file, given),
        text,
        given["policies"],
        given["engine"],
        schema=_schema(file, given),
        floor=given["floor"],
        tables=_listed(file, given),
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
    show.echo(found.clause)
    show.say(FOR_WHOM)


def _text(sql: str | None, file: str | None) -> str:
    if (sql is None) == (file is None):
        raise click.UsageError("Give the query, or -f with a file that holds it.")
    if sql is not None:
        return sql
    with click.open_file(str(file), encoding="utf-8") as stream:
        return str(stream.read())


def _session(file: str, given: dict[str, Any]) -> Session:
    from halfmask.query.run import Session

    return Session(
        _tables(file, given),
        engine=given["engine"],
        schema=_schema(file, given),
        floor=given["floor"],
        tables=_listed(file, given),
    )


def _listed(file: str, given: dict[str, Any]) -> list[str] | None:
    """The tables that may be asked; of a database, --table names one as well."""
    from halfmask.engines.open import is_address

    names = [name.strip() for name in (given["listed"] or "").split(",") if name.strip()]
    if is_address(file):
        names += [name for name in given["tables"] if "=" not in name]
    return names or None


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
