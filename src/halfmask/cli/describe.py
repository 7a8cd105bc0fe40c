"""``halfmask describe``: propose roles, kinds and hierarchies, and say why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from halfmask.cli import show
from halfmask.cli.options import STDOUT, as_json, bare_source, output, refuse_two_documents

if TYPE_CHECKING:
    from halfmask.table.description import Description


@click.command("describe")
@bare_source
@click.option(
    "--hierarchies",
    default="proposed",
    show_default=True,
    help="proposed: from each column's values; auto: from how the columns go together.",
)
@click.option("--intervals", help="auto: equal-frequency (default), equal-width or modl.")
@output("The proposed schema, a TOML file; - is stdout.")
@as_json
def command(
    file: str,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    hierarchies: str,
    intervals: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Propose a schema for FILE.

    Example: halfmask describe people.csv -o people.toml
    """
    from halfmask.release.files import whole_file
    from halfmask.table.describe import describe
    from halfmask.table.read import read
    from halfmask.table.schema import Schema

    refuse_two_documents(output, json_too=as_json)
    table = read(file, Schema(), delimiter=delimiter, encoding=encoding, decimal=decimal)
    with show.working("Describing"):
        chosen = {} if intervals is None else {"intervals": intervals}
        found = describe(table, hierarchies=hierarchies, **chosen)
    if output == STDOUT:
        sys.stdout.write(show.visible(found.to_toml()))
    elif output:
        with whole_file(output) as temporary:
            temporary.write_text(found.to_toml(), encoding="utf-8")
        show.say(f"The proposed schema is in {output}: read it, and change what is wrong.")
    if as_json:
        show.document("describe", found.to_dict())
    elif output != STDOUT:
        _show(found)


def _show(found: Description) -> None:
    columns = [(c.name, c.role, c.kind, c.distinct, c.missing, c.why) for c in found.columns]
    headings = ("column", "role", "kind", "distinct", "missing", "why")
    show.table(f"Proposed schema, from {found.rows:,} rows", headings, columns)
    for note in found.notes:
        show.say(note)
