"""``halfmask cells``: enroll people, certify askers, simulate, and estimate what it takes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json
from halfmask.errors import InputError

_ABOVE_0 = click.FloatRange(min=0, min_open=True)


@click.group("cells")
def command() -> None:
    """Many cells: their credentials, simulated queries, and what queries would take.

    Example: halfmask cells simulate --cells 100000 --groups 10000
    """


@command.command("keys")
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
def keys(folder: str, groups: int, asker: str, days: int, as_json: bool) -> None:
    """Make an issuer of credentials and a certified asker in FOLDER."""
    from halfmask.protocol.keys import new_issuer, write_key

    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    issuer = new_issuer(groups)
    write_key(issuer, where / "issuer.json")
    write_key(issuer.asker(asker, int(time.time()) + days * 86_400), where / "asker.json")
    if as_json:
        facts = {"folder": str(where), "groups": groups, "issuer": issuer.public.hex()}
        show.document("cells keys", facts)
    else:
        show.say(f"Keys are in {where}; the issuer's public key is {issuer.public.hex()}.")


@command.command("enroll")
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
def enroll(people: str, issuer: str, person: str, output: str, days: int, as_json: bool) -> None:
    """Give every person of the file PEOPLE a credential: one private file each.

    A file holds keys and nothing of the rows; hand it to its person and keep no copy. Whoever is
    enrolled again stays one person: both credentials together contribute once to a query.
    """
    from urllib.parse import quote

    from halfmask.protocol.keys import Issuer, read_key, write_key

    by = read_key(issuer, Issuer)
    names = _people(people, person)
    where = Path(output)
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Quoted: a name may hold what a path may not.
    files = {name: where / f"{quote(name, safe='')}.json" for name in names}
    taken = sum(file.exists() for file in files.values())
    if taken:
        raise InputError(
            f"{taken:,} of the {len(names):,} files are in {where.name} already; a credential is "
            "never overwritten."
        )
    expires = int(time.time()) + days * 86_400
    with show.working("Enrolling"):
        for name, file in files.items():
            write_key(by.enroll(name, expires), file)
    if as_json:
        show.document(
            "cells enroll", {"folder": str(where), "people": len(names), "groups": len(by.groups)}
        )
    else:
        show.say(f"{len(names):,} people are enrolled; their files are in {where}.")


def _people(file: str, column: str) -> list[str]:
    """Who is to be enrolled, each once."""
    import pyarrow as pa

    from halfmask.table.names import told
    from halfmask.table.read import read

    rows = read(file, {}).arrow
    if column not in rows.column_names:
        raise InputError(f"There is no column '{column}'; there are {told(rows.column_names)}.")
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


@command.command("simulate")
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
def simulate(cells: int, groups: int, as_json: bool, **given: Any) -> None:
    """Answer the ten-level census query by invented cells in this process."""
    from halfmask.protocol import census
    from halfmask.protocol.simulate import simulate
    from halfmask.protocol.terms import SUMS, Terms

    people = census.population(cells, groups, given["seed"])
    text = census.QUERY
    if given["plain"]:
        people, text = people.drop_columns(["k", "l"]), census.PLAIN
    room = 4 * min(cells, groups) + 1024
    terms = Terms(given["merge"], given["partition"], given["frame"] + SUMS, room, ram=1 << 33)
    with show.working("Simulating"):
        done = simulate(
            census.commons(), people, text, terms, credentials=given["credentials"]
        ).to_dict()
    if as_json:
        show.document("cells simulate", done)
        return
    rows = [[phase, f"{seconds:,.2f} s"] for phase, seconds in done["seconds"].items()]
    show.table("Phases", ["phase", "time"], rows)
    checked = "checked" if given["credentials"] else "left out (--credentials checks them)"
    show.say(
        f"{cells:,} cells, {done['groups']:,} groups, {done['rows']:,} rows published; credentials "
        f"{checked}."
    )


@command.command("estimate")
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
def estimate(as_json: bool, output: str | None, **given: Any) -> None:
    """Estimate time and availability on given devices, by number of groups."""
    from halfmask.protocol.estimate import Device, curves
    from halfmask.protocol.estimate_page import write_page

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
        show.document("cells estimate", {"rows": [point.to_dict() for point in found]})
        return
    names = ["merge", "groups", "aggregation_s", "availability_s", "fits"]
    shown = [p.to_dict() for p in found]
    show.table("Estimate", names, [[p[n] for n in names] for p in shown])
