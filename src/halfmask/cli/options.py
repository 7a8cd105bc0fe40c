"""Options that several verbs share, and what they mean together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from halfmask.table.schema import Role, Schema
    from halfmask.table.table import Table

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

STDOUT = "-"
POLICIES = click.option(
    "--policies", type=click.Path(), help="More demands of people: .toml, .csv or .parquet."
)
IGNORE = click.option(
    "--ignore-demands", is_flag=True, help="Set people's own demands aside; what leaves says so."
)


def demand_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add where people's demands stand besides the schema, and whether they are set aside."""
    return POLICIES(IGNORE(verb))


def demand_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the options of ``demand_options`` say, for the verbs of the library."""
    choice = "ignore" if given["ignore_demands"] else "keep"
    return {"policies": given["policies"], "demands": choice}


as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

_TEXT = (
    click.option("--delimiter", help="What separates the fields of a CSV file."),
    click.option("--encoding", help="utf-8 or latin-1."),
    click.option("--decimal", metavar="MARK", help="The decimal mark of a CSV file: , or a point."),
)
_READ = ("schema", "delimiter", "encoding", "decimal")
_ROLES = (
    click.option("--schema", type=click.Path(), help="Schema file; default: FILE's .toml sibling."),
    click.option("--quasi", metavar="A,B", help="Columns to take as quasi-identifiers."),
    click.option("--sensitive", metavar="A,B", help="Columns to take as sensitive."),
    click.option("--identifier", metavar="A,B", help="Columns that identify and never leave."),
    click.option("--other", metavar="A,B", help="Columns that leave as they are."),
)


def bare_source(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add the FILE argument and how its text is written."""
    return _with(verb, _TEXT)


def source(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add the FILE argument and everything that says how to read it."""
    return _with(verb, (*_ROLES, *_TEXT))


def _with(verb: Callable[..., Any], options: tuple[Decorator, ...]) -> Callable[..., Any]:
    for option in reversed(options):
        verb = option(verb)
    return click.argument("file", type=click.Path())(verb)


def output(help_text: str) -> Decorator:
    """Add ``-o/--output``."""
    return click.option("-o", "--output", type=click.Path(allow_dash=True), help=help_text)


weights_option = click.option(
    "--weights", metavar="COLUMN", help="How many people of the population a row stands for."
)

_ENGINE = (
    click.option("--engine", help="duckdb: count FILE without reading it into memory."),
    click.option("--memory-limit", help="How much memory DuckDB may take, such as 500MB."),
    click.option(
        "--table", "source_table", help="Which table of a database (.duckdb, postgres://)."
    ),
)


def engine_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says who counts the rows."""
    for option in reversed(_ENGINE):
        verb = option(verb)
    return verb


def rows_or_place(file: str, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The table that FILE holds, or FILE where an engine counts it, and how that is done."""
    from halfmask.engines.source import Source

    if not Source(file, engine=given["engine"], memory_limit=given["memory_limit"]).stays:
        return load(file, given), {}
    how = {name: given[name] for name in ("engine", "source_table", "memory_limit")}
    how |= {name: given.get(name) for name in ("delimiter", "encoding")}
    return file, how | {"schema": stated_schema(file, given)}


report_option = output("The report: .html or .json.")


def refuse_two_documents(output_path: str | None, *, json_too: bool) -> None:
    """``--json`` and ``-o -`` both want stdout."""
    if json_too and output_path == STDOUT:
        raise click.UsageError("--json and -o - both write to stdout: give -o a file name.")


def refuse_bad_outputs(
    file: str, output_path: str | None, report: str | None, recoding: str | None = None
) -> None:
    """Look at where outputs go before the work begins; the original is never written over."""
    from pathlib import Path

    from halfmask.release.write import report_kind, table_kind

    files = [path for path in (output_path, report, recoding) if path and path != STDOUT]
    taken = {Path(file).resolve()}
    for path in files:
        place = Path(path).resolve()
        if place in taken:
            raise click.UsageError(f"'{path}' is named twice or is the table itself: rename it.")
        if not place.parent.is_dir():
            raise click.UsageError(f"The folder of '{path}' does not exist: make it first.")
        taken.add(place)
    if output_path and output_path != STDOUT:
        table_kind(output_path)
    if report:
        report_kind(report)


def load(file: str, given: Mapping[str, Any]) -> Table:
    """Read the table that the options of ``source`` describe."""
    from halfmask.table.read import read

    read_options = {k: given[k] for k in _READ if given.get(k)}
    return with_roles(read(file, **read_options), given)


def stated_schema(file: str, given: Mapping[str, Any]) -> Schema:
    """The schema that the options of ``source`` describe, without reading FILE."""
    import pyarrow as pa

    from halfmask.table.decimal_comma import require_mark
    from halfmask.table.read import declared_schema
    from halfmask.table.table import Table

    schema = declared_schema(file, given.get("schema"))
    if given.get("decimal"):
        require_mark(given["decimal"])
        schema = replace(schema, decimal=given["decimal"])
    roles = ("identifier", "quasi", "sensitive", "other")
    every = dict.fromkeys([*schema.columns, *(n for role in roles for n in names(given.get(role)))])
    rows = pa.table({name: pa.array([], pa.string()) for name in every})
    return with_roles(Table(rows, schema), given).schema


def with_roles(table: Table, given: Mapping[str, Any]) -> Table:
    """Give the columns named on the command line their roles; the others keep theirs."""
    from halfmask.errors import SchemaError
    from halfmask.table.names import told
    from halfmask.table.schema import Column
    from halfmask.table.table import Table

    columns, faults = dict(table.schema.columns), []
    seen: dict[str, Role] = {}
    roles: tuple[Role, ...] = ("identifier", "quasi", "sensitive", "other")
    for role in roles:
        for name in names(given.get(role)):
            if name not in table.arrow.column_names:
                known = told(table.arrow.column_names)
                faults.append(
                    f"--{role} names a column that is not there: {name!r}. There: {known}."
                )
            elif seen.get(name) == role:
                faults.append(f"--{role} names the column {name!r} twice: name it once.")
            elif name in seen:
                faults.append(
                    f"Column {name!r} is given two roles, {seen[name]} and {role}: keep one."
                )
            else:
                seen[name] = role
                columns[name] = replace(columns.get(name, Column(role)), role=role)
    if faults:
        raise SchemaError(*faults)
    if not seen:
        return table
    schema = replace(table.schema, columns=columns)
    return Table(table.arrow, schema, table.origin, table.given)


def names(listed: str | None) -> list[str]:
    """The names in ``a,b``."""
    return [name.strip() for name in (listed or "").split(",") if name.strip()]
