"""Options that several verbs share, and what they mean together."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from halfmask.models.options import Form
    from halfmask.models.verdict import Model
    from halfmask.release.doors.series import SeriesLedger
    from halfmask.table.columns import Role
    from halfmask.table.schema import Schema
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


verbose = click.option("-v", "--verbose", is_flag=True, help="Print every figure.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

_TEXT = (
    click.option("--delimiter", help="What separates the fields of a CSV file."),
    click.option("--encoding", help="utf-8 or latin-1."),
    click.option("--decimal", metavar="MARK", help="The decimal mark of a CSV file: , or a point."),
)
schema_option = click.option(
    "--schema", type=click.Path(), help="Schema file; default: FILE's .toml sibling."
)
_READ = ("schema", "delimiter", "encoding", "decimal", "engine", "memory_limit", "table")
_ROLES = (
    schema_option,
    click.option("--quasi", metavar="A,B", help="Columns to take as quasi-identifiers."),
    click.option("--sensitive", metavar="A,B", help="Columns to take as sensitive."),
    click.option("--identifier", metavar="A,B", help="Columns that identify and never leave."),
    click.option("--other", metavar="A,B", help="Columns that leave as they are."),
)


def text_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add how the text of a file is written."""
    for option in reversed(_TEXT):
        verb = option(verb)
    return verb


def bare_source(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add the FILE argument and how its text is written."""
    return _with(verb, _TEXT)


def source(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add the FILE argument and everything that says how to read it."""
    return _with(verb, (*_ROLES, *_TEXT))


def _with(verb: Callable[..., Any], options: tuple[Decorator, ...]) -> Callable[..., Any]:
    taken = {name for given in getattr(verb, "__click_params__", ()) for name in given.opts}
    wanted: tuple[Decorator, ...] = options if "--table" in taken else (*options, _SHEET)
    for option in reversed(wanted):
        verb = option(verb)
    return click.argument("file", type=click.Path())(verb)


def output(help_text: str) -> Decorator:
    """Add ``-o/--output``."""
    return click.option("-o", "--output", type=click.Path(allow_dash=True), help=help_text)


output_table = click.option(
    "--output-table", metavar="NAME", help="The table of the database that -o names."
)
weights_option = click.option(
    "--weights", metavar="COLUMN", help="How many people of the population a row stands for."
)

_ENGINE = (
    click.option("--engine", help="duckdb or spark: count FILE without reading it into memory."),
    click.option("--memory-limit", help="How much memory DuckDB may take, such as 500MB."),
    click.option("--table", help="Which table of a database, or sheet of a workbook."),
)
_SHEET = click.option("--table", help="Which sheet of a workbook, or table of an SQLite file.")


def engine_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says who counts the rows."""
    for option in reversed(_ENGINE):
        verb = option(verb)
    return verb


def read_beside(option: str, file: str | None, given: Mapping[str, Any]) -> Any:
    """Another table of a verb: FILE itself, or its table where an engine counts the rows.

    ``option`` names the table of a database, such as ``release_table``.
    """
    from halfmask.engines.read import read, stays_stored
    from halfmask.engines.sources import is_address
    from halfmask.errors import InputError, ParameterError

    table, what = given[option], option.removesuffix("_table")
    if file is None:
        if table is not None:
            raise InputError(f"{option} names a table of {what}, which is not given: give it too.")
        return None
    how = {name: given[name] for name in ("engine", "memory_limit")}
    if not stays_stored(file, **how):
        return file
    if is_address(file) and table is None:
        raise ParameterError(option, None, "the name of a table of the database")
    return read(file, table=table, **how)


# Elsewhere -o is the release and --report its report; where nothing else is written both name it.
report_option = click.option(
    "-o", "--output", "--report", "output", type=click.Path(), help="The report: .html or .json."
)


def refuse_two_documents(output_path: str | None, *, json_too: bool) -> None:
    """``--json`` and ``-o -`` both want stdout."""
    if json_too and output_path == STDOUT:
        raise click.UsageError("--json and -o - both write to stdout: give -o a file name.")


def refuse_bad_outputs(
    file: str,
    output_path: str | None,
    report: str | None,
    *others: str | None,
    beside: bool = False,
    table: str | None = None,
    inputs: Sequence[str] = (),
) -> None:
    """Look at where outputs go before the work begins; nothing that is read is written over.

    With ``beside`` the output is a release, which may write a schema file beside it, and ``table``
    names the table of a database that it goes to. Beside the files that options of this verb name,
    ``inputs`` are read.
    """
    from pathlib import Path

    from halfmask.release.files import report_kind, table_kind
    from halfmask.release.record import require_free
    from halfmask.table.read import schema_beside

    if beside and output_path and output_path != STDOUT:
        from halfmask.release.record import require_target

        if require_target(output_path, table):
            output_path = None
    if STDOUT in others:
        raise click.UsageError("Only -o writes to stdout: give the other files names.")
    files = [path for path in (output_path, report, *others) if path and path != STDOUT]
    original = Path(file)
    known = {name: path for name in _READ_TOO if (path := _value_of(name))}
    if original.name:
        known.setdefault("schema", str(schema_beside(original)))
    used = {Path(path).resolve() for path in (*known.values(), *inputs)}
    taken = {original.resolve()}
    for path in files:
        place = Path(path).resolve()
        if place in taken:
            raise click.UsageError(f"'{path}' is named twice or is the table itself: rename it.")
        if place in used:
            raise click.UsageError(f"'{path}' is read too and would be written over: rename it.")
        if not place.parent.is_dir():
            raise click.UsageError(f"The folder of '{path}' does not exist: make it first.")
        taken.add(place)
    if output_path and output_path != STDOUT:
        table_kind(output_path)
        if beside:
            require_free(output_path)
    if report:
        report_kind(report)


_READ_TOO = ("schema", "policies", "population", "like")


def _value_of(option: str) -> str | None:
    """What this command line says for an option, if the verb has it."""
    found: str | None = click.get_current_context().params.get(option)
    return found


def load(file: str, given: Mapping[str, Any]) -> Table:
    """Read the table that the options of ``source`` describe."""
    from halfmask.engines.read import read
    from halfmask.engines.sources import is_address
    from halfmask.errors import InputError

    if "memory_limit" not in given and is_address(file):
        raise InputError(
            "The address of a database stands where a file is read: give a file, or a verb that "
            "counts in a database (anonymize, assess, check, cocluster, compare, describe, "
            "discriminate, frontier, mask, query, recode, risks, synthesize, tabulate)."
        )
    if file.endswith((".csv", ".tsv", ".parquet")):
        spare_pandas()
    read_options = {k: given[k] for k in _READ if given.get(k)}
    table = read(file, **read_options)
    for note in table.notes:
        show.say(note)
    return with_roles(table, given)


class _Absent:
    """What says of pandas that it is not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004
        """Not this one; nothing of others."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas, as it does at its first array, where nobody needs it.

    pyarrow looks once; so it is only where the process is this command and nothing else.
    """
    import pyarrow as pa

    context = click.get_current_context()
    alone = context.find_root().obj == sys.argv[1:] and not context.params.get("engine")
    if not alone or "pandas" in sys.modules:
        return
    absent: Any = _Absent
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)


def with_roles(table: Table, given: Mapping[str, Any]) -> Table:
    """Give the columns named on the command line their roles; the others keep theirs."""
    from halfmask.errors import SchemaError
    from halfmask.table.columns import Column, quote_names

    columns, faults, there = dict(table.schema.columns), [], table.column_names
    seen: dict[str, Role] = {}
    roles: tuple[Role, ...] = ("identifier", "quasi", "sensitive", "other")
    for role in roles:
        for name in split_names(given.get(role)):
            if name not in there:
                known = quote_names(there)
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
    return table.with_schema(schema)


def split_names(listed: str | None) -> list[str]:
    """The names in ``a,b``."""
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


POPULATION = click.option("--population", type=click.Path(), help="The population table's file.")


class PromiseCommand(click.Command):
    """A verb with one option for each model, before ``--population``.

    The models load when the verb is asked for its options, not when all verbs are listed.
    """

    several = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the models among those of the verb."""
        from halfmask.models.verdict import known_models

        stated = super().get_params(ctx)
        place = [one.name for one in stated].index("population")
        made = _model_options(known_models(), several=self.several)
        return [*stated[:place], *made, *stated[place:]]


class AlternativesCommand(PromiseCommand):
    """The same where each option takes several numbers, one model each."""

    several = True


@cache
def _model_options(models: tuple[type[Model], ...], *, several: bool) -> list[click.Option]:
    from halfmask.models.options import forms

    return [_model_option(form, several=several) for form in forms(models)]


def _example(form: Form) -> str:
    """How several numbers are written."""
    number, *others = form.numbers.values()
    if others:
        return "given several times"
    column = "" if form.column is None else "disease="
    return f"such as {column}{'0.1,0.2' if number.high == 1 else '2,5'}"


def _model_option(form: Form, *, several: bool) -> click.Option:
    """How the command line asks for one model."""
    kind, text = form.takes(several=several), form.option.help
    if several and form.numbers:
        needs = "".join(f"; needs --{option}" for option in form.shared.values())
        numbers = " and ".join(form.numbers)
        text = f"{form.model.family} with each {numbers}, {_example(form)}{needs}."
    more: dict[str, Any] = {"metavar": form.metavar(several=several)}
    if kind in (int, float):
        more = {"type": kind}
    elif kind is bool:
        more = {"is_flag": True}
    return click.Option([f"--{form.name}"], multiple=kind is list, help=text, **more)


def models(given: Mapping[str, Any], schema: Schema, *, stated: bool = False) -> list[Model]:
    """The models that the options name, in their order.

    None only where people state demands, or where a release file states its promises (``stated``).
    """
    from halfmask.models.options import read_models
    from halfmask.table.demands import states
    from halfmask.table.policies import EXACT

    demands = given["policies"] or any(states(schema, demand) for demand in EXACT)
    needed = not stated and (not demands or given.get("ignore_demands", False))
    return read_models(given, mark="--", population=population_of(given), needed=needed)


def population_of(given: Mapping[str, Any]) -> Callable[[], Table | None]:
    """What reads the population, once a promise is about it."""
    file = given.get("population")
    return lambda: load(file, {}) if file else None


def model_choices(given: Mapping[str, Any]) -> list[list[Model]]:
    """One list of alternatives per option and column."""
    from halfmask.models.options import read_alternatives

    return read_alternatives(given, mark="--", population=population_of(given))


def show_criteria(criteria: Sequence[Mapping[str, Any]], *, to: str = "stdout") -> None:
    """Print criteria that are given as plain values."""
    rows = [
        (
            one["name"] if one["column"] is None else f"{one['name']} of {one['column']}",
            one["outcome"],
            *(one["risk"][end] for end in ("value", "low", "high")),
            one["attack"]["value"],
            (one["control"] or one["baseline"])["value"],
        )
        for one in criteria
    ]
    show.print_table(
        "Criteria (risk beyond control or guessing, 95 % interval)",
        ("criterion", "outcome", "risk", "from", "to", "attack", "without"),
        rows,
        to=to,
    )


series_key = click.option(
    "--ledger-key", type=click.Path(), help="The secret file that --previous is sealed with."
)


def series_ledger(given: dict[str, Any]) -> SeriesLedger | None:
    """The ledger of --previous, opened with its key."""
    from halfmask.release.doors.series import SeriesLedger

    if given["previous"]:
        return SeriesLedger.open(given["previous"], given["ledger_key"])
    if given["ledger_key"]:
        raise click.UsageError("--ledger-key is the secret of a ledger: name its file, --previous.")
    return None
