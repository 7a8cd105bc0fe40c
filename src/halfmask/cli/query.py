"""The part of ``halfmask query`` that answers with noise.

``halfmask query``: aggregate SQL in which every person keeps an own guarantee.

``halfmask ask``: put a query to cells through a relay and open the sealed answer.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.budget import accountant_of, budget_options, show_promise
from halfmask.cli.options import (
    IGNORE,
    POLICIES,
    STDOUT,
    as_json,
    load,
    output,
    refuse_two_documents,
    source,
)
from halfmask.cli.publish import deliver
from halfmask.errors import PartyUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from halfmask.protocol.answering import ReceivedAnswer
    from halfmask.protocol.common_schema import CommonSchema
    from halfmask.protocol.parties.asker import Asker
    from halfmask.query.parse import Statement
    from halfmask.query.run import Session


_NOISE = ("delta", "domains", "rows_per_person", "share")


def refuse_noise(given: dict[str, Any]) -> None:
    """Refuse options that mean nothing without a budget."""
    if given["ignore_demands"]:
        raise click.UsageError(
            "--ignore-demands is for noisy answers: with a GUARANTEE everybody's demand is kept."
        )
    for name in (*_NOISE, "grant", "insist"):
        if given[name]:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} is for noisy answers: add WITH EPSILON 1.0.")


def print_noisy_answer(
    session: Any, statement: Statement, given: dict[str, Any], *, as_json: bool
) -> None:
    """Answer under differential privacy, print the figures and what they cost."""
    from halfmask.query.private.answer import NoiseTerms, answer_with_noise, prepare_noise
    from halfmask.release.document import plain_rows

    if given["suggest"]:
        raise click.UsageError("--suggest is for GUARANTEE: leave it away under EPSILON.")
    options = {name: given[name] for name in _NOISE if given[name] is not None}
    options |= {
        "insist": given["insist"],
        "policies": given["policies"],
        "demands": "ignore" if given["ignore_demands"] else "keep",
    }
    terms = NoiseTerms(epsilon=given["epsilon"], **options)
    if given["explain"]:
        _explain(session, prepare_noise(session, statement, terms), as_json=as_json)
        return
    refuse_two_documents(given["output"], json_too=as_json)
    with show.show_working("Answering"):
        answer = answer_with_noise(
            session,
            statement,
            terms,
            accountant_of(
                given["ledger"], given["grant"], given["ledger_key"], insist=given["insist"]
            ),
        )
    rows = answer.to_arrow()
    to = "stderr" if given["output"] == STDOUT else "stdout"
    if given["output"] or given["report"]:
        deliver(answer, given["output"], given["report"])
    else:
        show.set_aside(answer)
    if as_json:
        show.print_document("query", {"answer": answer.to_dict(), "data": plain_rows(rows)})
        return
    if not given["output"]:
        show.print_table("Answer", rows.column_names, [list(r.values()) for r in rows.to_pylist()])
    sure = float(answer.parameters["confidence"])
    facts = [("groups", answer.parameters["groups"]), ("confidence", show.percent(sure))]
    show_promise(answer, "Private answer", facts, to=to)


def _explain(session: Any, prepared: Any, *, as_json: bool) -> None:
    from halfmask.query.explain import explain_prepared

    plan = explain_prepared(prepared, session)
    if as_json:
        show.print_document("query", {"explanation": plan.to_dict()})
    else:
        show.echo(str(plan))


@click.command("query")
@source
@click.argument("sql", required=False)
@click.option(
    "-f", "--sql-file", type=click.Path(allow_dash=True), help="Read the query from here."
)
@POLICIES
@click.option("--engine", help="duckdb, spark or reference; postgres:// needs none.")
@click.option("--table", "tables", multiple=True, metavar="NAME=FILE", help="A table to join.")
@click.option("--sheet", "table", help="Which sheet of a workbook, or table of an SQLite file.")
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
def query_command(file: str, sql: str | None, as_json: bool, **given: Any) -> None:
    """Ask FILE (a table, a .duckdb file or a postgres:// address) with guarantees, or with noise.

    Example: halfmask query people.csv "SELECT education, AVG(salary) FROM people GROUP BY education
    GUARANTEE k = 5, l = 3"

    Example: halfmask query people.csv "SELECT education, COUNT(*) FROM people GROUP BY education
    WITH EPSILON 1.0 DELTA 1e-6"
    """
    from halfmask.query.parse import parse

    text = _text(sql, given["sql_file"])
    statement = parse(text, noisy=given["epsilon"] is not None)
    given["explain"] = given["explain"] or statement.explain
    if statement.noisy:
        with _session(file, given) as session:
            print_noisy_answer(session, statement, given, as_json=as_json)
        return
    refuse_noise(given)
    with show.show_working("Answering"), _session(file, given) as session:
        work = session.prepare(statement, given["policies"])
        if given["explain"]:
            _explain(session, work, as_json=as_json)
            return
        if not given["suggest"]:
            _answer(session, work, given, as_json=as_json)
            return
    _suggest(file, text, given, as_json=as_json)


def _answer(session: Any, work: Any, given: dict[str, Any], *, as_json: bool) -> None:
    from halfmask.query.history.ledger import Ledger
    from halfmask.release.document import plain_rows

    kept, key = given["ledger"], given["ledger_key"]
    if key and not kept:
        raise click.UsageError("--ledger-key is the secret of a ledger: name its file, --ledger.")
    ledger = Ledger.read(kept, key=key) if kept else None
    answer = session.answer(work, ledger=ledger, effort=given["effort"])
    if ledger is not None:
        ledger.write(kept)
    rows = answer.to_arrow()
    if given["output"] and given["output"] != STDOUT:
        answer.write(given["output"])
        show.say(f"The answer is in {given['output']}.")
    if given["report"]:
        answer.report(given["report"])
        show.say(f"The report is in {given['report']}.")
    if as_json:
        show.print_document("query", {"answer": answer.to_dict(), "data": plain_rows(rows)})
        return
    if given["output"] == STDOUT:
        show.print_csv(rows)
    elif not given["output"]:
        show.print_table("Answer", rows.column_names, [list(r.values()) for r in rows.to_pylist()])
    _say(answer)


def _say(answer: Any) -> None:
    """How many people the answer covers, and why not the others."""
    for line in answer.coverage:
        show.say(line)
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
        tables=_tables_listed(file, given),
    )
    if as_json:
        show.print_document("query", {"suggestion": found.to_dict()})
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
    show.print_table(
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
        tables=_tables_listed(file, given),
    )


def _tables_listed(file: str, given: dict[str, Any]) -> list[str] | None:
    """The tables that may be asked; of a database, --table names one as well."""
    from halfmask.engines.sources import is_address

    names = [name.strip() for name in (given["listed"] or "").split(",") if name.strip()]
    if is_address(file):
        names += [name for name in given["tables"] if "=" not in name]
    return names or None


def _tables(file: str, given: dict[str, Any]) -> object:
    from halfmask.engines.read import read
    from halfmask.engines.sources import is_address

    if is_address(file):
        return file
    main = load(file, given | {"engine": None})  # who answers is another question
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
    from halfmask.engines.sources import is_address

    return given["schema"] if is_address(file) else None


RELAY = click.option("--relay", required=True, help="The relay's address.")
AUTHORITY = click.option(
    "--authority", type=click.Path(exists=True), help="Trust this certificate (PEM)."
)
COMMONS = click.option(
    "--commons", type=click.Path(exists=True), required=True, help="The common schema."
)


def asker_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of whoever asks cells: whom, with which key, for how long, and in which sizes."""
    merges = click.Choice(["tree", "swap", "network"])
    cells = "Close with so many contributions, of all groups of cells together."
    options = [
        RELAY,
        click.option(
            "--key", type=click.Path(exists=True), required=True, help="The asker's key file."
        ),
        COMMONS,
        click.option("--cells", type=int, default=1_000_000_000, help=cells),
        click.option(
            "--seconds",
            type=float,
            default=60.0,
            show_default=True,
            help="Close the collection after so long.",
        ),
        click.option(
            "--patience",
            type=float,
            default=600.0,
            show_default=True,
            help="Give up so long after that.",
        ),
        click.option(
            "--merge",
            type=merges,
            default="tree",
            show_default=True,
            help="How cells merge partial aggregates.",
        ),
        click.option(
            "--partition", type=int, default=256, show_default=True, help="Cells per partition."
        ),
        click.option("--frame", type=int, default=256, show_default=True, help="Groups per frame."),
        click.option(
            "--room", type=int, default=4096, show_default=True, help="Room for so many groups."
        ),
        AUTHORITY,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("ask")
@click.argument("sql")
@asker_options
@click.option("--noise", is_flag=True, help="COUNT under each person's own epsilon.")
@click.option(
    "--epsilon",
    type=float,
    default=0.0,
    help="COUNT with noise of so much epsilon; people's own epsilons are kept.",
)
@click.option("--local", is_flag=True, help="Generalize each row in the columns it needs only.")
@as_json
def ask_command(sql: str, as_json: bool, **given: Any) -> None:
    """Ask cells a query with guarantees; nobody else sees rows or counts.

    Example: halfmask ask "SELECT city, COUNT(*) FROM people GROUP BY city GUARANTEE k = 5"
    --relay http://127.0.0.1:8765 --key keys/asker.json --commons people.toml
    """
    chosen = {name: given[name] for name in ("noise", "epsilon", "local")}
    asker, found = put_to_cells(given, lambda _: sql, chosen)
    whole, reason = asker.join_answers(sql, found) if len(found) > 1 else (None, "")
    silent = _silent(asker.key, found)
    if as_json:
        show.print_document("ask", _document(found, whole, silent))
        return
    say_who_answered(silent, found)
    if whole is not None:
        cells = sum(received.contributions for received in found.values())
        _show("Answer", whole)
        show.say(
            f"{whole.num_rows:,} rows from {len(found):,} groups of cells; {cells:,} cells took "
            "part. Guarantees hold within each group."
        )
        _say_notes(found)
        return
    for group, received in found.items():
        _show("Answer" if len(found) == 1 else f"Answer of group {group}", received.rows)
        show.say(f"{received.rows.num_rows:,} rows; {received.contributions:,} cells took part.")
    if len(found) > 1:
        show.say(f"The groups' answers stay apart: {reason}.")
    _say_notes(found)


def put_to_cells(
    given: Mapping[str, Any], text_of: Callable[[CommonSchema], str], chosen: Mapping[str, Any]
) -> tuple[Asker, dict[int, ReceivedAnswer]]:
    """Sign a question, wait for cells, and open what they answer."""
    from halfmask.protocol.common_schema import Terms, read_commons
    from halfmask.protocol.keys import AskerKey, read_key
    from halfmask.protocol.parties.asker import Asker
    from halfmask.protocol.transport import Sender, drive

    terms = Terms(given["merge"], given["partition"], given["frame"], given["room"], **chosen)
    asker = Asker(read_key(given["key"], AskerKey), read_commons(given["commons"]), terms)
    seconds, patience = given["seconds"], given["patience"]
    question = asker.question(
        text_of(asker.commons),
        time.time(),
        cells=given["cells"],
        seconds=seconds,
        patience=patience,
    )
    send = Sender(given["relay"], authority=given["authority"])
    drive(asker.ask(question), send)
    show.say(f"Asked as query {question.id.hex()[:16]}; waiting for cells.")
    until = time.time() + seconds + patience
    with show.show_working("Waiting"):
        while (found := drive(asker.collect(question), send)) is None:
            if time.time() > until:
                raise PartyUnavailableError(
                    "The cells did not finish in time; nothing was released."
                )
            time.sleep(0.1)
    send.close()
    return asker, found


def say_who_answered(silent: Sequence[int], found: Mapping[int, ReceivedAnswer]) -> None:
    """Tell which groups of cells are missing, and what did not count."""
    if silent:
        show.say(
            f"No answer of {len(silent):,} groups of cells: none of them took part, or the relay "
            "withholds it."
        )
    void = sum(received.void for received in found.values())
    if void:
        show.say(f"{void:,} contributions carried no credential, and count for nothing.")


def _say_notes(found: Mapping[int, ReceivedAnswer]) -> None:
    """Tell what a reader must know of the figures, such as their noise; once for all groups."""
    notes = [note for received in found.values() for note in received.document.get("notes", ())]
    for note in dict.fromkeys(notes):
        show.say(note)


def _silent(key: Any, found: Any) -> list[int]:
    """The groups of cells that were asked and gave no answer."""
    return sorted(set(range(key.groups)) - set(found))


def _show(title: str, rows: Any) -> None:
    show.print_table(title, rows.column_names, [list(r.values()) for r in rows.to_pylist()])


def _plain(rows: Any) -> Any:
    return json.loads(json.dumps(rows.to_pylist(), default=str))


def _document(found: Any, whole: Any, silent: list[int]) -> dict[str, Any]:
    answers = [
        {
            "group": group,
            "contributions": received.contributions,
            "void": received.void,
            "answer": received.document,
            "data": _plain(received.rows),
        }
        for group, received in found.items()
    ]
    together = None if whole is None else _plain(whole)
    return {"answers": answers, "together": together, "silent": silent}
