"""``halfmask describe``: propose roles, kinds and hierarchies, and say why."""

from __future__ import annotations

import sys
from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.options import STDOUT, as_json, load, output, refuse_two_documents, source


@click.command("describe")
@source
@output("The proposed schema, a TOML file; - is stdout.")
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Propose a schema for FILE.

    Example: halfmask describe people.csv -o people.toml
    """
    from halfmask.table.describe import describe

    refuse_two_documents(output, json_too=as_json)
    table = load(file, given)
    with show.working("Describing"):
        found = describe(table)
    if output == STDOUT:
        sys.stdout.write(found.to_toml())
    elif output:
        _write(output, found.to_toml())
        show.say(f"The proposed schema is in {output}: read it, change what is wrong.")
    if as_json:
        show.document("describe", found.to_dict())
    elif output != STDOUT:
        rows = [(c.name, c.role, c.kind, c.why) for c in found.columns]
        show.table("Proposed schema", ("column", "role", "kind", "why"), rows)


def _write(path: str, text: str) -> None:
    from pathlib import Path

    part = Path(path).with_name(f".{Path(path).name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
