"""``halfmask cell``: one person's own data store, from making it to reading its log.

``halfmask cells``: enroll people, certify askers, simulate, estimate what it takes, and advise.

``halfmask relay``: the server between cells that sees ciphertexts only.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json
from halfmask.cli.query import (
    AUTHORITY,
    COMMONS,
    RELAY,
    asker_options,
    put_to_cells,
    say_who_answered,
)
from halfmask.errors import InputError, ParameterError

if TYPE_CHECKING:
    from halfmask.protocol.common_schema import CommonSchema
    from halfmask.protocol.store.vault import CellVault


PASSPHRASE = "HALFMASK_CELL_PASSPHRASE"  # noqa: S105 - a variable's name
_common_table = click.option("--table", help="The common table; needed where there are several.")


@click.group("cell")
def cell_command() -> None:
    """One person's cell: rows and policy stay in it, encrypted.

    The key lies in HOME.key, or is a passphrase in HALFMASK_CELL_PASSPHRASE.

    Example: halfmask cell init alice.cell --credential enrolled/alice.json --commons people.toml
    """


@cell_command.command("init")
@click.argument("home", type=click.Path())
@click.option(
    "--credential",
    type=click.Path(exists=True),
    required=True,
    help="The person's own file, as cells enroll writes it.",
)
@COMMONS
@as_json
def init_command(home: str, credential: str, commons: str, as_json: bool) -> None:
    """Make a cell at HOME for a person who is enrolled."""
    import tomllib

    from halfmask.protocol.common_schema import read_commons
    from halfmask.protocol.keys import CellKey, read_key
    from halfmask.protocol.store.vault import CellVault, new_key_file

    read_commons(commons)
    enrolled = read_key(credential, CellKey)
    if Path(home).exists():
        raise InputError(f"{Path(home).name} exists already; a cell is never overwritten.")
    phrase = os.environ.get(PASSPHRASE)
    key = phrase or new_key_file(f"{home}.key")
    document = tomllib.loads(Path(commons).read_text(encoding="utf-8"))
    CellVault.create(home, key, enrolled, document, Path(commons).resolve().parent)
    if as_json:
        show.print_document("cell init", {"cell": Path(home).name, "group": enrolled.group})
    else:
        show.say(f"{Path(home).name} is a cell of group {enrolled.group}; it has no rows yet.")


@cell_command.command("import")
@click.argument("home", type=click.Path())
@click.argument("file", type=click.Path())
@_common_table
@click.option("--where", metavar="COLUMN=VALUE", help="Only the rows in which this holds.")
@as_json
def import_command(
    home: str, file: str, table: str | None, where: str | None, as_json: bool
) -> None:
    """Put the rows of FILE into the cell, in place of those that were there."""
    from halfmask.engines.read import read

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
        show.print_document("cell import", facts)
    else:
        show.say(f"{rows.num_rows:,} rows are in {Path(home).name}.")


@cell_command.command("policy")
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
def policy_command(home: str, columns: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """State (or, without options, show) what the person demands; the rest of it stays."""
    from dataclasses import replace

    from halfmask.protocol.common_schema import Policy

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
        show.print_document("cell policy", {"policy": document})
    elif document is None:
        show.say("No policy: this cell contributes to nothing.")
    else:
        show.print_table("Policy", ["demand", "value"], [[n, str(v)] for n, v in document.items()])
        if found is not None and found.k is None:
            show.say(
                "Without --k the cell contributes only where all columns of a query are named."
            )


@cell_command.command("join")
@click.argument("homes", type=click.Path(), nargs=-1, required=True)
@RELAY
@AUTHORITY
@click.option(
    "--seconds",
    type=float,
    default=0.0,
    show_default=True,
    help="Stay so long and work for others; 0: until there is nothing to do.",
)
@as_json
def join_command(
    homes: tuple[str, ...], relay: str, authority: str | None, seconds: float, as_json: bool
) -> None:
    """Take part in the relay's open queries, then work for others."""
    from halfmask.protocol.transport import Sender, drive

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
        show.print_document("cell join", {"relay": relay, "done": did})


@cell_command.command("log")
@click.argument("home", type=click.Path())
@click.option("--revoke", metavar="QUERY", help="Never contribute to this query (again).")
@as_json
def log_command(home: str, revoke: str | None, as_json: bool) -> None:
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
        show.print_document("cell log", {"entries": rows})
        return
    names = ["query", "asker", "outcome", "level", "epsilon", "revoked", "text"]
    show.print_table(
        "Log", names, [["" if r[n] is None else str(r[n]) for n in names] for r in rows]
    )


def _vault(home: str) -> CellVault:
    from halfmask.protocol.store.vault import CellVault, read_key_file

    if not Path(home).exists():
        raise InputError(f"There is no cell {Path(home).name}: make one with cell init.")
    phrase = os.environ.get(PASSPHRASE)
    return CellVault(home, phrase or read_key_file(f"{home}.key"))


def _column(text: str) -> tuple[str, tuple[int, int]]:
    name, _, pair = text.partition("=")
    k, _, l = pair.partition(",")  # noqa: E741
    if not name or not k.isdigit() or (l and not l.isdigit()):
        raise ParameterError("column", text, "NAME=K or NAME=K,L")
    return name, (int(k), int(l or 1))


def _matching(rows: Any, where: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    from halfmask.table.columns import quote_names

    name, _, value = where.partition("=")
    if name not in rows.column_names:
        raise InputError(
            f"There is no column '{name}'; there are {quote_names(rows.column_names)}."
        )
    return rows.filter(pc.equal(rows[name].cast(pa.string()), value))


_ABOVE_0 = click.FloatRange(min=0, min_open=True)


@click.group("cells")
def cells_command() -> None:
    """Many cells: their credentials, simulated queries, and what queries would take.

    Example: halfmask cells simulate --cells 100000 --groups 10000
    """


@cells_command.command("keys")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option(
    "--groups",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    help="Groups of cells with a key each.",
)
@click.option("--asker", default="asker", show_default=True, help="The name of a certified asker.")
@click.option("--days", type=int, default=365, show_default=True, help="How long that is valid.")
@as_json
def keys_command(folder: str, groups: int, asker: str, days: int, as_json: bool) -> None:
    """Make an issuer of credentials and a certified asker in FOLDER."""
    from halfmask.ownership import private_folder
    from halfmask.protocol.keys import new_issuer, write_key

    where = private_folder(folder)
    issuer = new_issuer(groups)
    write_key(issuer, where / "issuer.json")
    write_key(issuer.asker(asker, int(time.time()) + days * 86_400), where / "asker.json")
    if as_json:
        facts = {"folder": str(where), "groups": groups, "issuer": issuer.public.hex()}
        show.print_document("cells keys", facts)
    else:
        show.say(f"Keys are in {where}; the issuer's public key is {issuer.public.hex()}.")


@cells_command.command("enroll")
@click.argument("people", type=click.Path())
@click.option(
    "--issuer", type=click.Path(exists=True), required=True, help="The issuer's key file."
)
@click.option("--person", metavar="COLUMN", required=True, help="The column that names people.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), required=True, help="A folder to write to."
)
@click.option(
    "--days", type=click.IntRange(1), default=365, show_default=True, help="Valid so long."
)
@as_json
def enroll_command(
    people: str, issuer: str, person: str, output: str, days: int, as_json: bool
) -> None:
    """Give every person of the file PEOPLE a credential: one private file each.

    A file holds keys and nothing of the rows; hand it to its person and keep no copy. Whoever is
    enrolled again stays one person: both credentials together contribute once to a query.
    """
    from urllib.parse import quote

    from halfmask.ownership import is_listable, private_folder
    from halfmask.protocol.keys import Issuer, read_key, write_key

    by = read_key(issuer, Issuer)
    names = _people(people, person)
    where = private_folder(output)
    if is_listable(where):
        raise InputError(
            f"Others can list {where.name}, and the files in it are called after people: "
            "name a new folder, or make it yours alone (chmod 700)."
        )
    # Quoted: a name may hold what a path may not.
    files = {name: where / f"{quote(name, safe='')}.json" for name in names}
    taken = sum(file.exists() for file in files.values())
    if taken:
        raise InputError(
            f"{taken:,} of the {len(names):,} files are in {where.name} already; a credential is "
            "never overwritten."
        )
    expires = int(time.time()) + days * 86_400
    with show.show_working("Enrolling"):
        for name, file in files.items():
            write_key(by.enroll(name, expires), file)
    if as_json:
        show.print_document(
            "cells enroll", {"folder": str(where), "people": len(names), "groups": len(by.groups)}
        )
    else:
        show.say(f"{len(names):,} people are enrolled; their files are in {where}.")


def _people(file: str, column: str) -> list[str]:
    """Who is to be enrolled, each once."""
    import pyarrow as pa

    from halfmask.engines.read import read
    from halfmask.table.columns import quote_names

    rows = read(file, {}).arrow
    if column not in rows.column_names:
        raise InputError(
            f"There is no column '{column}'; there are {quote_names(rows.column_names)}."
        )
    names: list[str] = rows[column].cast(pa.string()).to_pylist()
    absent = sum(not name for name in names)
    if absent or not names:
        raise InputError(f"{absent:,} of {len(names):,} rows name nobody in '{column}'.")
    repeated = len(names) - len(set(names))
    if repeated:
        raise InputError(
            f"{repeated:,} rows name somebody again in '{column}': give one row per person."
        )
    if max(map(len, names)) > 60:
        raise InputError(f"A name in '{column}' is longer than 60 characters: give a short one.")
    return names


@cells_command.command("simulate")
@click.option("--cells", type=click.IntRange(1), default=10_000, show_default=True)
@click.option(
    "--groups",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    help="Distinct combinations of grouping columns.",
)
@click.option(
    "--merge", type=click.Choice(["tree", "swap", "network"]), default="tree", show_default=True
)
@click.option(
    "--frame", type=click.IntRange(1), default=4096, show_default=True, help="Groups per frame."
)
@click.option(
    "--partition",
    type=click.IntRange(1, 65536),
    default=4096,
    show_default=True,
    help="Cells per partition.",
)
@click.option("--plain", is_flag=True, help="One level and no policies, to compare with.")
@click.option("--credentials", is_flag=True, help="Enroll every cell, sign and check everything.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the invented people.")
@as_json
def simulate_command(cells: int, groups: int, as_json: bool, **given: Any) -> None:
    """Answer the ten-level census query by invented cells in this process."""
    from halfmask.protocol import simulate as census
    from halfmask.protocol.common_schema import SUMS, Terms
    from halfmask.protocol.simulate import simulate

    people = census.population(cells, groups, given["seed"])
    text = census.QUERY
    if given["plain"]:
        people, text = people.drop_columns(["k", "l"]), census.PLAIN
    room = 4 * min(cells, groups) + 1024
    terms = Terms(given["merge"], given["partition"], given["frame"] + SUMS, room, ram=1 << 33)
    with show.show_working("Simulating"):
        done = simulate(
            census.commons(), people, text, terms, credentials=given["credentials"]
        ).to_dict()
    if as_json:
        show.print_document("cells simulate", done)
        return
    rows = [[phase, f"{seconds:,.2f} s"] for phase, seconds in done["seconds"].items()]
    show.print_table("Phases", ["phase", "time"], rows)
    checked = "checked" if given["credentials"] else "left out (--credentials checks them)"
    show.say(
        f"{cells:,} cells, {done['groups']:,} groups, {done['rows']:,} rows published; credentials "
        f"{checked}."
    )


@cells_command.command("estimate")
@click.option("--cells", type=float, default=1e6, show_default=True, help="Up to so many cells.")
@click.option(
    "--ram", type=int, default=196 << 10, show_default=True, help="Bytes of a cell's memory."
)
@click.option("--link", type=_ABOVE_0, default=7.9, show_default=True, help="Megabits a second.")
@click.option(
    "--flash-read", type=_ABOVE_0, default=1.6, show_default=True, help="Megabytes a second."
)
@click.option(
    "--flash-write", type=_ABOVE_0, default=0.6, show_default=True, help="Megabytes a second."
)
@click.option(
    "--present",
    type=float,
    default=0.01,
    show_default=True,
    help="Share of the cells that can work at one time.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A page with plots, .html.")
@as_json
def estimate_command(as_json: bool, output: str | None, **given: Any) -> None:
    """Estimate time and availability on given devices, by number of groups."""
    from halfmask.protocol.estimate import Device, curves, write_page

    device = Device(
        ram=given["ram"],
        link=given["link"] * 1e6 / 8,
        flash_read=given["flash_read"] * 1e6,
        flash_write=given["flash_write"] * 1e6,
    )
    found = curves(device, cells=int(given["cells"]), present=given["present"])
    if output is not None:
        write_page(found, device, output)
        show.say(f"The plots are in {output}.")
    if as_json:
        show.print_document("cells estimate", {"rows": [point.to_dict() for point in found]})
        return
    names = ["merge", "groups", "aggregation_s", "availability_s", "fits"]
    shown = [p.to_dict() for p in found]
    show.print_table("Estimate", names, [[p[n] for n in names] for p in shown])


@cells_command.command("advise")
@click.argument("sql")
@COMMONS
@click.option("--cells", type=click.IntRange(1), required=True, help="How many cells may answer.")
@click.option(
    "--span",
    "spans",
    multiple=True,
    metavar="COLUMN=LOW,HIGH",
    help="Whole numbers of a column whose values the common schema does not list.",
)
@as_json
def advise_command(
    sql: str, commons: str, cells: int, spans: tuple[str, ...], as_json: bool
) -> None:
    """Say which k, l and epsilon the levels of a query can expect; nobody's rows are looked at."""
    from halfmask.protocol.advice import PUBLIC, advise
    from halfmask.protocol.common_schema import read_commons

    found = advise(read_commons(commons), sql, cells, spans=dict(map(_span, spans)))
    if as_json:
        rows = [one.to_dict() for one in found]
        show.print_document("cells advise", {"cells": cells, "levels": rows, "note": PUBLIC})
        return
    names = ["level", "asks for", "groups", "cells in one", "people published",
             "k with 95 %", "l with 95 %", "epsilon from"]  # fmt: skip
    shown = [
        [
            one.level, f"k = {one.k}, l = {one.l}", f"{one.groups:,}", f"{one.mean:,.1f}",
            show.percent(one.published), one.reached_k,
            "as k" if one.reached_l is None else one.reached_l,
            "too few cells" if one.epsilon is None else f"{one.epsilon:g}",
        ]
        for one in found
    ]  # fmt: skip
    show.print_table("What cells can expect", names, shown)
    show.say(PUBLIC)


def _span(text: str) -> tuple[str, tuple[int, int]]:
    name, _, ends = text.partition("=")
    low, _, high = ends.partition(",")
    try:
        return name, (int(low), int(high))
    except ValueError:
        raise ParameterError("span", text, "COLUMN=LOW,HIGH, whole numbers") from None


@cells_command.command("publish")
@click.argument("columns", nargs=-1, required=True)
@_common_table
@click.option("--where", metavar="SQL", help="Only rows in which this holds.")
@click.option(
    "--k",
    type=click.IntRange(1),
    help="At least so many people in a class; by default what the common schema asks for.",
)
@click.option(
    "--l", "l", type=click.IntRange(1), default=1, help="And so many values of sensitive columns."
)
@click.option(
    "--method",
    type=click.Choice(["mondrian", "personal", "mdav"]),
    default="mondrian",
    show_default=True,
    help="How rows are divided into classes.",
)
@asker_options
@click.option("-o", "--output", required=True, help="The release: .csv, .parquet or .arrow.")
@as_json
def publish_command(
    columns: tuple[str, ...], method: str, output: str, as_json: bool, **given: Any
) -> None:
    """Publish one row of every person who agrees, without anybody who holds the rows together.

    Cells build classes in which everybody's own k and l are kept. The file says of itself what
    was promised, as every release does: halfmask check FILE reads it.

    Example: halfmask cells publish age city illness --relay http://127.0.0.1:8765
    --key keys/asker.json --commons people.toml -o release.csv
    """
    from halfmask.protocol.cell_plan import plan_for_cells
    from halfmask.protocol.publication import join_rows, release_record, release_text
    from halfmask.release.files import table_kind
    from halfmask.release.record import require_free, write_release

    table_kind(output)  # refused before anybody is asked
    require_free(output)

    def text_of(commons: CommonSchema) -> str:
        return release_text(
            commons,
            columns,
            table=given["table"],
            where=given["where"],
            k=given["k"],
            l=given["l"],
        )

    asker, found = put_to_cells(given, text_of, {"release": method})
    rows = join_rows([received.rows for received in found.values()])
    made = plan_for_cells(asker.commons, text_of(asker.commons), asker.terms)
    record = release_record(made, rows, [received.document for received in found.values()])
    write_release(rows, output, record)
    silent = sorted(set(range(asker.key.groups)) - set(found))
    cells = sum(received.contributions for received in found.values())
    if as_json:
        releases = [
            {"group": group, "contributions": received.contributions, "release": received.document}
            for group, received in found.items()
        ]
        document = {"file": output, "rows": rows.num_rows, "cells": cells, "silent": silent}
        show.print_document("cells publish", document | {"releases": releases})
        return
    say_who_answered(silent, found)
    several = asker.key.groups > 1
    for group, received in found.items():
        title = f"Promises of group {group}" if several else "Promises"
        verdicts = received.document["verdicts"]
        if verdicts:
            show.print_table(
                title, ["promise", "column", "kept"],
                [[v["model"], v["column"] or "", "yes" if v["holds"] else "NO"] for v in verdicts],
            )  # fmt: skip
        for note in received.document["notes"]:
            show.say(f"Group {group}: {note}" if several else note)
    show.say(f"{rows.num_rows:,} rows are in {output}; {cells:,} cells took part.")


@click.command("relay")
@click.option("--store", type=click.Path(dir_okay=False), required=True, help="The relay's file.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True)
@click.option("--certificate", type=click.Path(exists=True), help="PEM; listens with TLS.")
@click.option("--certificate-key", type=click.Path(exists=True), help="Its key, PEM.")
@click.option("--issuer", help="Take queries of this issuer's askers only: its public key, in hex.")
@click.option(
    "--patience",
    type=float,
    default=30.0,
    show_default=True,
    help="Seconds after which work is given to another cell.",
)
@as_json
def relay_command(
    store: str,
    host: str,
    port: int,
    certificate: str | None,
    certificate_key: str | None,
    issuer: str | None,
    patience: float,
    as_json: bool,
) -> None:
    """Relay messages between cells until interrupted; may be killed and started again.

    Example: halfmask relay --store relay.sqlite --port 8765
    """
    from halfmask.protocol.parties.relay import Relay
    from halfmask.protocol.store.relay_sqlite import RelayStore
    from halfmask.protocol.transport import RelayServer

    public = _public(issuer) if issuer else None
    relay = Relay(RelayStore(store), patience=patience, issuer=public)
    server = RelayServer(relay, host, port, certificate=certificate, key=certificate_key)
    if as_json:
        show.print_document("relay", {"address": server.address})
    show.say(f"Relaying on {server.address}; stop with Ctrl-C.")
    server.serve()


def _public(text: str) -> bytes:
    from halfmask.errors import ParameterError

    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise ParameterError("issuer", "...", "64 hexadecimal digits, as cells keys prints them")
    return found
