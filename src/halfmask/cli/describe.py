"""``describe``: a schema is proposed, and nobody's edits of an earlier one are lost."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from halfmask.cli import show
from halfmask.cli.options import (
    STDOUT,
    as_json,
    bare_source,
    engine_options,
    output,
    refuse_two_documents,
)
from halfmask.errors import InputError

if TYPE_CHECKING:
    from halfmask.table.proposals.describe import Description
    from halfmask.table.proposals.public import PublicDescription
    from halfmask.table.table import Table


@click.command("describe")
@bare_source
@click.option(
    "--hierarchies",
    default="proposed",
    show_default=True,
    help="proposed: from each column's values; auto: from how the columns go together.",
)
@click.option("--intervals", help="auto: equal-frequency (default), equal-width or modl.")
@click.option("--public", is_flag=True, help="From names and types alone; asks for domains.")
@click.option("--codebook", type=click.Path(), help="With --public: a codebook, .csv or .toml.")
@click.option("--details", "-v", is_flag=True, help="All that was seen of each column.")
@engine_options
@output("The proposed schema, a TOML file; - is stdout.")
@click.option("--replace", is_flag=True, help="Write over a schema that somebody edited.")
@as_json
def describe_command(
    file: str,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    hierarchies: str,
    intervals: str | None,
    public: bool,
    codebook: str | None,
    details: bool,
    output: str | None,
    replace: bool,
    as_json: bool,
    **where: str | None,
) -> None:
    """Propose a schema for FILE: what each column is, and how it can be made coarser.

    A schema that somebody edited is not written over without --replace.

    Example: halfmask describe people.csv -o people.toml
    """
    from halfmask.engines.read import read
    from halfmask.table.proposals.describe import describe, with_declared_policy
    from halfmask.table.schema import Schema

    refuse_two_documents(output, json_too=as_json)
    _refuse_inputs(output, file, codebook)
    how = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, **where}
    if codebook is not None and not public:
        raise click.UsageError("--codebook goes with --public.")
    if public:
        known = _describe_publicly(read(file, Schema(), **how), codebook)
        to = output or (None if as_json else STDOUT)
        _write_schema(known.to_toml(), to, replace=replace)
        _show_public(known, as_json=as_json)
        return
    rows = with_declared_policy(read(file, Schema(), **how), file)
    with show.show_working("Describing"):
        chosen = {} if intervals is None else {"intervals": intervals}
        found = describe(rows, hierarchies=hierarchies, **chosen)
    _write_schema(found.to_toml(), output, replace=replace)
    if as_json:
        show.print_document("describe", found.to_dict())
    elif output != STDOUT:
        _show_description(found, details=details)


def _refuse_inputs(output: str | None, *inputs: str | None) -> None:
    """Nothing that is read is written over."""
    if output is None or output == STDOUT:
        return
    if Path(output).resolve() in {Path(one).resolve() for one in inputs if one}:
        raise click.UsageError(f"'{output}' is read and would be written over: rename it.")


_UNTOUCHED = "# Untouched proposal "  # followed by the digest of all other lines


def _write_schema(text: str, output: str | None, *, replace: bool = False) -> None:
    """The proposed schema on stdout or in a file, where it was asked for.

    Raises:
        InputError: the file is there, and is no longer as this verb wrote it.
    """
    from halfmask.release.files import private_file

    if output == STDOUT:
        sys.stdout.write(show.visible(text))
    elif output:
        place = Path(output)
        if not replace and place.is_file() and not _is_untouched(place, text):
            raise InputError(
                f"{place.name!r} is there and holds more than a proposal of this verb, which "
                "would be lost: give -o another name to compare both, or --replace to write over "
                "it."
            )
        with private_file(output) as temporary:  # it may list values
            temporary.write_text(f"{text}{_UNTOUCHED}{_digest(text)}\n", encoding="utf-8")
        show.say(f"The proposed schema is in {output}: read it, and change what is wrong.")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_untouched(place: Path, proposal: str) -> bool:
    """Whether a file holds what was proposed and nothing else, now or by an earlier run."""
    try:
        held = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    text, mark, digest = held.rpartition(_UNTOUCHED)
    return held == proposal or (bool(mark) and digest.strip() == _digest(text))


def _describe_publicly(table: Table, codebook: str | None) -> PublicDescription:
    from halfmask.table.files.codebook import read_codebook
    from halfmask.table.proposals.public import public_description

    return public_description(table, {} if codebook is None else read_codebook(codebook))


def _show_public(found: PublicDescription, *, as_json: bool) -> None:
    """Say which domains are asked for, and what can be done with the schema."""
    from halfmask.table.columns import abbreviate_names

    if as_json:
        show.print_document("describe", found.to_dict())
    if found.unused:
        show.say(
            "The codebook speaks of columns that the table does not have: "
            f"{abbreviate_names(found.unused)}. Look at how they are written."
        )
    if found.asked:
        show.say(
            f"{len(found.asked)} columns need a domain that no row tells: "
            f"{abbreviate_names(found.asked)}. Write it into their entries, or give --codebook."
        )
    else:
        show.say(
            "Every column that leaves has a public domain: halfmask synthesize FILE --schema "
            "SCHEMA --epsilon 1 can run."
        )
    if found.schema.person is None:
        show.say(
            "No column's name says whose row it is: where people can have several rows, write "
            'person = "..." under [table], else epsilon holds per row.'
        )


_MANY = 20  # columns, from which on those of one role and reason share a line
_NAMED = 8
_SHOWN = 30


def _show_description(found: Description, *, details: bool) -> None:
    title = f"Proposed schema, from {found.rows:,} rows and {len(found.columns):,} columns"
    if details or len(found.columns) <= _MANY:
        columns = [
            (c.name, c.role, c.kind, c.distinct, c.missing, c.why if details else c.reason)
            for c in found.columns
        ]
        headings = ("column", "role", "kind", "distinct", "missing", "why")
        show.print_table(title, headings, columns)
    else:
        _show_roles(found, title)
    for note in found.notes:
        show.say(note)
    if not details:
        show.say("All that was seen of each column: --details.")


def _show_roles(found: Description, title: str) -> None:
    """Columns of one role and reason in one line, so that many fit on a screen."""
    from halfmask.table.columns import abbreviate_names

    shared: dict[tuple[str, str], list[str]] = {}
    for column in found.columns:
        shared.setdefault((column.role, column.reason), []).append(column.name)
    rows = [
        (role, len(names), reason, abbreviate_names(names, _NAMED))
        for (role, reason), names in sorted(shared.items(), key=lambda item: item[0])
    ]
    show.print_table(title, ("role", "columns", "why", "which"), rows)
