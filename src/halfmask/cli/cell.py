"""``halfmask cell``: one person's own data store, from making it to reading its log."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json
from halfmask.errors import InputError, ParameterError

if TYPE_CHECKING:
    from halfmask.protocol.store.vault import Vault

PASSPHRASE = "HALFMASK_CELL_PASSPHRASE"  # noqa: S105 - a variable's name


@click.group("cell")
def command() -> None:
    """One person's cell: rows and policy stay in it, encrypted.

    The key lies in HOME.key, or is a passphrase in HALFMASK_CELL_PASSPHRASE.

    Example: halfmask cell init alice.cell --credential enrolled/alice.json --commons people.toml
    """


@command.command("init")
@click.argument("home", type=click.Path())
@click.option(
    "--credential",
    type=click.Path(exists=True),
    required=True,
    help="The person's own file, as cells enroll writes it.",
)
@click.option("--commons", type=click.Path(exists=True), required=True, help="The common schema.")
@as_json
def init(home: str, credential: str, commons: str, as_json: bool) -> None:
    """Make a cell at HOME for a person who is enrolled."""
    import tomllib

    from halfmask.protocol.commons import read_commons
    from halfmask.protocol.keys import CellKey, read_key
    from halfmask.protocol.store.key_file import new_key_file
    from halfmask.protocol.store.vault import Vault

    read_commons(commons)
    enrolled = read_key(credential, CellKey)
    if Path(home).exists():
        raise InputError(f"{Path(home).name} exists already; a cell is never overwritten.")
    phrase = os.environ.get(PASSPHRASE)
    key = phrase or new_key_file(f"{home}.key")
    document = tomllib.loads(Path(commons).read_text(encoding="utf-8"))
    Vault.create(home, key, enrolled, document, Path(commons).resolve().parent)
    if as_json:
        show.document("cell init", {"cell": Path(home).name, "group": enrolled.group})
    else:
        show.say(f"{Path(home).name} is a cell of group {enrolled.group}; it has no rows yet.")


@command.command("import")
@click.argument("home", type=click.Path())
@click.argument("file", type=click.Path())
@click.option("--table", help="The common table; needed where there are several.")
@click.option("--where", metavar="COLUMN=VALUE", help="Only the rows in which this holds.")
@as_json
def import_(home: str, file: str, table: str | None, where: str | None, as_json: bool) -> None:
    """Put the rows of FILE into the cell, in place of those that were there."""
    from halfmask.table.read import read

    vault = _vault(home)
    names = list(vault.commons.tables)
    if table is None and len(names) != 1:
        raise InputError(f"Name the table: --table {' or '.join(names)}.")
    # The common schema speaks for the columns, not a schema that may lie beside the file.
    rows = read(file, {}).arrow
    if where is not None:
        rows = _matching(rows, where)
    vault.put_table(table or names[0], rows)
    if as_json:
        facts = {"cell": Path(home).name, "table": table or names[0], "rows": rows.num_rows}
        show.document("cell import", facts)
    else:
        show.say(f"{rows.num_rows:,} rows are in {Path(home).name}.")


@command.command("policy")
@click.argument("home", type=click.Path())
@click.option("--k", type=int, help="Hide among at least so many people, whatever is asked.")
@click.option("--l", "l", type=int, help="And so many values; 1 at first.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=K,L",
    help="And when a query touches this column; repeatable.",
)
@click.option(
    "--days", type=int, help="An answer blocks others on the same values so long; 30 at first."
)
@click.option(
    "--answers", type=int, help="So many answers on the same values in that time; 1 at first."
)
@click.option("--epsilon", type=float, help="What one answer with noise may cost.")
@click.option("--budget", type=float, help="And all of them; 1 at first.")
@as_json
def policy(home: str, columns: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """State (or, without options, show) what the person demands; the rest of it stays."""
    from dataclasses import replace

    from halfmask.protocol.policy import Policy

    vault = _vault(home)
    changes = {name: value for name, value in given.items() if value is not None}
    if changes or columns:
        now = vault.policy() or Policy()
        named = dict(map(_column, columns))
        vault.put_policy(replace(now, columns={**now.columns, **named}, **changes))
    found = vault.policy()
    document = (
        None
        if found is None
        else {
            "k": found.k,
            "l": found.l,
            "columns": {n: list(p) for n, p in found.columns.items()},
            "days": found.days,
            "answers": found.answers,
            "epsilon": found.epsilon,
            "budget": found.budget,
        }
    )
    if as_json:
        show.document("cell policy", {"policy": document})
    elif document is None:
        show.say("No policy: this cell contributes to nothing.")
    else:
        show.table("Policy", ["demand", "value"], [[n, str(v)] for n, v in document.items()])
        if found is not None and found.k is None:
            show.say(
                "Without --k the cell contributes only where all columns of a query are named."
            )


@command.command("join")
@click.argument("homes", type=click.Path(), nargs=-1, required=True)
@click.option("--relay", required=True, help="The relay's address.")
@click.option("--authority", type=click.Path(exists=True), help="Trust this certificate (PEM).")
@click.option(
    "--seconds",
    type=float,
    default=0.0,
    show_default=True,
    help="Stay so long and work for others; 0: until there is nothing to do.",
)
@as_json
def join(
    homes: tuple[str, ...], relay: str, authority: str | None, seconds: float, as_json: bool
) -> None:
    """Take part in the relay's open queries, then work for others."""
    from halfmask.protocol.transport.http import Sender
    from halfmask.protocol.transport.memory import drive

    cells = [(Path(home).name, _vault(home).cell()) for home in homes]
    send = Sender(relay, authority=authority)
    until = time.time() + seconds
    said: dict[tuple[str, str], None] = {}  # in order
    # A cell that refuses a task rests, longer each time: another one may be able to do it.
    rests = {name: (0.0, 1.0) for name, _ in cells}

    def tell(name: str, done: str | None) -> None:
        if done is not None and (name, done) not in said:
            said[name, done] = None
            show.say(f"{name}: {done}.")

    while True:
        busy = False
        for name, cell in cells:
            tell(name, drive(cell.take_part(time.time()), send))
            awake, pause = rests[name]
            while time.time() >= awake and (done := drive(cell.work(time.time()), send)):
                if done.startswith("refused"):
                    tell(name, done)
                    rests[name] = (time.time() + pause, min(60.0, 2 * pause))
                    break
                rests[name] = (0.0, 1.0)
                busy = True
        if time.time() >= until and not busy:
            break
        time.sleep(0 if busy else 0.2)
    send.close()
    if as_json:
        did = [{"cell": name, "did": what} for name, what in said]
        show.document("cell join", {"relay": relay, "done": did})


@command.command("log")
@click.argument("home", type=click.Path())
@click.option("--revoke", metavar="QUERY", help="Never contribute to this query (again).")
@as_json
def log(home: str, revoke: str | None, as_json: bool) -> None:
    """Show what the cell was asked and what it answered."""
    vault = _vault(home)
    if revoke is not None:
        named = [e for e in vault.log() if e.query.hex().startswith(revoke.lower())]
        if len(named) != 1:
            raise InputError(f"{len(named)} queries of the log begin like that; name one.")
        vault.revoke(named[0])
    rows = [
        {
            "query": e.query.hex()[:16],
            "time": e.time,
            "asker": e.asker,
            "outcome": e.outcome,
            "level": e.level,
            "epsilon": e.epsilon,
            "revoked": e.revoked,
            "text": " ".join(e.text.split()),
        }
        for e in vault.log()
    ]
    if as_json:
        show.document("cell log", {"entries": rows})
        return
    names = ["query", "asker", "outcome", "level", "epsilon", "revoked", "text"]
    show.table("Log", names, [["" if r[n] is None else str(r[n]) for n in names] for r in rows])


def _vault(home: str) -> Vault:
    from halfmask.protocol.store.key_file import read_key_file
    from halfmask.protocol.store.vault import Vault

    if not Path(home).exists():
        raise InputError(f"There is no cell {Path(home).name}: make one with cell init.")
    phrase = os.environ.get(PASSPHRASE)
    return Vault(home, phrase or read_key_file(f"{home}.key"))


def _column(text: str) -> tuple[str, tuple[int, int]]:
    name, _, pair = text.partition("=")
    k, _, l = pair.partition(",")  # noqa: E741
    if not name or not k.isdigit() or (l and not l.isdigit()):
        raise ParameterError("column", text, "NAME=K or NAME=K,L")
    return name, (int(k), int(l or 1))


def _matching(rows: Any, where: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    from halfmask.table.names import told

    name, _, value = where.partition("=")
    if name not in rows.column_names:
        raise InputError(f"There is no column '{name}'; there are {told(rows.column_names)}.")
    return rows.filter(pc.equal(rows[name].cast(pa.string()), value))
