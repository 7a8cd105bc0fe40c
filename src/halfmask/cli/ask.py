"""``halfmask ask``: put a query to cells through a relay and open the sealed answer."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json
from halfmask.errors import PartyUnavailableError


@click.command("ask")
@click.argument("sql")
@click.option("--relay", required=True, help="The relay's address.")
@click.option("--key", type=click.Path(exists=True), required=True, help="The asker's key file.")
@click.option("--commons", type=click.Path(exists=True), required=True, help="The common schema.")
@click.option(
    "--cells",
    type=int,
    default=1_000_000_000,
    help="Close with so many contributions, of all groups of cells together.",
)
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Close the collection after so long.",
)
@click.option(
    "--patience", type=float, default=600.0, show_default=True, help="Give up so long after that."
)
@click.option(
    "--merge",
    type=click.Choice(["tree", "swap", "network"]),
    default="tree",
    show_default=True,
    help="How cells merge partial aggregates.",
)
@click.option("--partition", type=int, default=256, show_default=True, help="Cells per partition.")
@click.option("--frame", type=int, default=256, show_default=True, help="Groups per frame.")
@click.option("--room", type=int, default=4096, show_default=True, help="Room for so many groups.")
@click.option("--noise", is_flag=True, help="COUNT under each person's own epsilon.")
@click.option("--authority", type=click.Path(exists=True), help="Trust this certificate (PEM).")
@as_json
def command(sql: str, relay: str, as_json: bool, **given: Any) -> None:
    """Ask cells a query with guarantees; nobody else sees rows or counts.

    Example: halfmask ask "SELECT city, COUNT(*) FROM people GROUP BY city GUARANTEE k = 5"
    --relay http://127.0.0.1:8765 --key keys/asker.json --commons people.toml
    """
    from halfmask.protocol.commons import read_commons
    from halfmask.protocol.keys import AskerKey, read_key
    from halfmask.protocol.parties.asker import Asker
    from halfmask.protocol.terms import Terms
    from halfmask.protocol.transport.http import Sender
    from halfmask.protocol.transport.memory import drive

    terms = Terms(
        given["merge"], given["partition"], given["frame"], given["room"], noise=given["noise"]
    )
    asker = Asker(read_key(given["key"], AskerKey), read_commons(given["commons"]), terms)
    question = asker.question(
        sql, time.time(), cells=given["cells"], seconds=given["seconds"], patience=given["patience"]
    )
    send = Sender(relay, authority=given["authority"])
    drive(asker.ask(question), send)
    show.say(f"Asked as query {question.id.hex()[:16]}; waiting for cells.")
    until = time.time() + given["seconds"] + given["patience"]
    with show.working("Waiting"):
        while (found := drive(asker.collect(question), send)) is None:
            if time.time() > until:
                raise PartyUnavailableError(
                    "The cells did not finish in time; nothing was released."
                )
            time.sleep(0.1)
    send.close()
    whole, reason = asker.together(sql, found) if len(found) > 1 else (None, "")
    silent = _silent(asker.key, found)
    if as_json:
        show.document("ask", _document(found, whole, silent))
        return
    if silent:
        show.say(
            f"No answer of {len(silent):,} groups of cells: none of them took part, or the relay "
            "withholds it."
        )
    void = sum(received.void for received in found.values())
    if void:
        show.say(f"{void:,} contributions carried no credential, and count for nothing.")
    if whole is not None:
        cells = sum(received.contributions for received in found.values())
        _show("Answer", whole)
        show.say(
            f"{whole.num_rows:,} rows from {len(found):,} groups of cells; {cells:,} cells took "
            "part. Guarantees hold within each group."
        )
        return
    for group, received in found.items():
        _show("Answer" if len(found) == 1 else f"Answer of group {group}", received.rows)
        show.say(f"{received.rows.num_rows:,} rows; {received.contributions:,} cells took part.")
    if len(found) > 1:
        show.say(f"The groups' answers stay apart: {reason}.")


def _silent(key: Any, found: Any) -> list[int]:
    """The groups of cells that were asked and gave no answer."""
    return sorted(set(range(key.groups)) - set(found))


def _show(title: str, rows: Any) -> None:
    show.table(title, rows.column_names, [list(r.values()) for r in rows.to_pylist()])


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
