"""``halfmask tabulate``: tables of counts and sums, protected; and the audit of published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.budget import accountant_of, budget_options, show_promise
from halfmask.cli.options import (
    STDOUT,
    as_json,
    demand_options,
    demand_settings,
    engine_options,
    load,
    output,
    refuse_bad_outputs,
    refuse_two_documents,
    source,
    split_names,
)
from halfmask.errors import ParameterError, PrivacyError

if TYPE_CHECKING:
    from halfmask.release.tabulation.door import TableRelease
    from halfmask.tabulate.audit import TableAudit

_METHOD_OPTIONS = {
    "suppress": ("time_limit", "cost", "sole"),
    "round": ("base", "time_limit"),
    "random-round": ("base",),
    "cell-key": ("variance", "maximum", "least", "record_keys", "secret"),
    "dp": ("epsilon", "delta", "domains", "rows_per_person", "period", "through"),
}

_LINES = 60  # of a table that is shown where no file is named


@click.command("tabulate")
@source
@click.option("--by", metavar="A,B", help="The columns that span the table.")
@click.option("--sum", "amount", metavar="COLUMN", help="Sum this column; default: count.")
@click.option("--count", type=click.Choice(["people", "rows"]), default="people",
              show_default=True, help="What is counted; rules always speak of people.")  # fmt: skip
@click.option("--level", "levels", multiple=True, metavar="COLUMN=LEVELS",
              help="Levels of a hierarchy to show, such as age=1,2 or age=all.")  # fmt: skip
@click.option("--no-margins", is_flag=True, help="Show no totals.")
@click.option("--method", type=click.Choice(list(_METHOD_OPTIONS)), default="suppress",
              show_default=True, help="How figures are protected.")  # fmt: skip
@click.option("--threshold", type=int, help="The least number of people behind a figure.")
@click.option("--dominance", multiple=True, metavar="N,PERCENT",
              help="No N people may make up more than PERCENT of a sum.")  # fmt: skip
@click.option("--p", type=float, help="Percent by which every contribution must be in doubt.")
@click.option("--l", "diversity", multiple=True, metavar="COLUMN=NUMBER",
              help="Least number of values of a sensitive column in a line or sum.")  # fmt: skip
@click.option("--protection", type=float, default=None,
              help="Share by which readers must be in doubt of a withheld sum, or, with --audit, "
              "that counts as close.")  # fmt: skip
@demand_options
@click.option("--leave-out", multiple=True, metavar="k=NUMBER",
              help="Leave out who asks for a larger k (or l); the table says so.")  # fmt: skip
@click.option("--time-limit", type=float, help="suppress, round: seconds for the search.")
@click.option("--cost", help="suppress: keep small the withheld values (default) or cells.")
@click.option("--sole/--no-sole", default=None,
              help="suppress: sole contributors know their cells; default: in sums.")  # fmt: skip
@click.option("--base", type=int, help="round, random-round: figures become multiples of it.")
@click.option("--variance", type=float, help="cell-key: of the noise.")
@click.option("--maximum", type=int, help="cell-key: of the noise.")
@click.option("--least", type=float, help="cell-key: published counts are 0 or above it; with "
              "--audit, the least that a withheld figure can be, -inf where none is.")  # fmt: skip
@click.option("--record-keys", metavar="COLUMN", help="cell-key: a column of permanent keys.")
@click.option("--secret", type=click.Path(), help="cell-key: a secret file that keys derive from.")
@budget_options
@click.option("--ledger", type=click.Path(), help="dp: the ledger that keeps the budget.")
@click.option("--period", metavar="COLUMN",
              help="dp: count what came over time, by this column; one budget for all periods that "
              "its domain lists.")  # fmt: skip
@click.option("--through", metavar="PERIOD", help="dp: the last period that is over.")
@click.option("--audit", is_flag=True, help="Audit FILE, a published table in long form.")
@click.option("--with", "others", multiple=True, type=click.Path(),
              help="With --audit, another published table of the same people.")  # fmt: skip
@click.option("--value", metavar="COLUMN", help="With --audit, the column of figures.")
@click.option("--parts", type=click.Path(), help="With --audit, which labels are parts of which: "
              ".toml, or the .json report of a release.")  # fmt: skip
@click.option("--total", default="Total", show_default=True, help="With --audit, totals' label.")
@output("The table: .csv, .parquet, .arrow; - is CSV on stdout.")
@click.option("--form", type=click.Choice(["long", "crossed"]), default="long", show_default=True,
              help="One line per cell, or the last column across.")  # fmt: skip
@click.option("--report", type=click.Path(), help="A report: .html or .json.")
@click.option("--controller", type=click.Path(), help="suppress: which rule each cell breaks, for "
              "whoever holds the rows: .csv.")  # fmt: skip
@engine_options
@as_json
def tabulate_command(file: str, output: str | None, as_json: bool, **given: Any) -> int:
    """Tabulate FILE, or audit published tables.

    The exit code is 2 where an audit finds something out.

    Example: halfmask tabulate people.csv --by city,sex --threshold 5 -o table.csv
    """
    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"], given["controller"])
    if given["audit"]:
        return _audit(file, output, as_json=as_json, given=given)
    if not given["by"]:
        raise click.UsageError("--by names the columns that span the table: give it.")
    if given["others"] or given["value"] or given["parts"]:
        raise click.UsageError("--with, --value and --parts belong to --audit.")
    if given["controller"] and given["method"] != "suppress":
        raise click.UsageError("--controller tells which rule cells break: use --method suppress.")
    return _tabulate(file, output, as_json=as_json, given=given)


def _tabulate(file: str, output: str | None, *, as_json: bool, given: dict[str, Any]) -> int:
    from halfmask.release.release import PrivateRelease
    from halfmask.tabulate.run import tabulate

    settings = _settings(given)
    table = load(file, given)
    with show.show_working("Protecting the table"):
        release = tabulate(table, split_names(given["by"]), **settings)
    show.set_aside(release)
    if output == STDOUT:
        show.print_csv(_form(release, given["form"]))
    elif output:
        _write(release, output, given["form"])
        show.say(f"The table is in {output}.")
    if given["report"]:
        release.report(given["report"])
        show.say(f"The report is in {given['report']}.")
    to = "stderr" if output == STDOUT else "stdout"
    if not output and not as_json:
        _show_published(release, given["form"])
    if isinstance(release, PrivateRelease):
        if as_json:
            show.print_document("tabulate", release.to_dict())
        else:
            show_promise(release, "Private table", [("cells", len(release))], to=to)
        return 0
    if given["controller"]:
        _write_controller(release, given["controller"])
        show.say(f"Which rule each cell breaks is in {given['controller']}: keep it to yourself.")
    if as_json:
        show.print_document("tabulate", release.to_dict())
    else:
        _show(release, to=to)
    return 0


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """What the options say, for ``tabulate``."""
    method = given["method"]
    found: dict[str, Any] = {
        "sum": given["amount"],
        "count": given["count"],
        "levels": dict(_level(text) for text in given["levels"]),
        "margins": not given["no_margins"],
        "method": method,
        "threshold": given["threshold"],
        "dominance": [_pair(text) for text in given["dominance"]] or None,
        "p": given["p"],
        "l": dict(_least(text) for text in given["diversity"]),
        "leave_out": dict(_most(text) for text in given["leave_out"]),
        **demand_settings(given),
    }
    if given["protection"] is not None:
        found["protection"] = given["protection"]
    own = {name for listed in _METHOD_OPTIONS.values() for name in listed}
    for name in sorted(own):
        if given.get(name) is None:
            continue
        if name not in _METHOD_OPTIONS[method]:
            raise click.UsageError(f"--{name.replace('_', '-')} is not for --method {method}.")
        found[name] = given[name]
    if found.get("least") is not None and found["least"].is_integer():
        found["least"] = int(found["least"])
    if method == "dp":
        accountant = accountant_of(
            given["ledger"], given["grant"], given["ledger_key"], insist=given["insist"]
        )
        found["insist"] = given["insist"]
        if accountant is not None:
            found["accountant"] = accountant
    return found


def _level(text: str) -> tuple[str, object]:
    name, _, levels = text.rpartition("=")
    if not name:
        raise click.UsageError("--level is COLUMN=LEVELS, such as age=1,2 or age=all.")
    if levels == "all":
        return name, "all"
    try:
        return name, [int(level) for level in levels.split(",")]
    except ValueError:
        raise click.UsageError("--level takes whole numbers, such as age=1,2.") from None


def _pair(text: str) -> tuple[int, float]:
    n, _, percent = text.partition(",")
    try:
        return int(n), float(percent)
    except ValueError:
        raise click.UsageError("--dominance is N,PERCENT, such as 2,80.") from None


def _least(text: str) -> tuple[str, int]:
    name, _, least = text.rpartition("=")
    try:
        return name, int(least)
    except ValueError:
        raise click.UsageError("--l is COLUMN=NUMBER, such as disease=3.") from None


def _most(text: str) -> tuple[str, int]:
    name, _, most = text.partition("=")
    try:
        return name, int(most)
    except ValueError:
        raise click.UsageError("--leave-out is k=NUMBER or l=NUMBER, such as k=20.") from None


def _form(release: Any, form: str) -> Any:
    from halfmask.release.tabulation.door import cross_table

    rows = release.to_arrow()
    if form == "long":
        return rows
    by = release.parameters["by"]
    value = next(name for name in rows.column_names if name not in by)
    return cross_table(rows, by, value)


def _show_published(release: Any, form: str) -> None:
    """The table that may leave, or its first lines."""
    rows = _form(release, form)
    names = [name for name in rows.column_names if form != "long" or name != "withheld"]
    shown = rows.select(names).slice(0, _LINES)
    lines = [["withheld" if one is None else one for one in line] for line in
             zip(*(column.to_pylist() for column in shown.columns), strict=True)]  # fmt: skip
    show.print_table("Published table", names, lines)
    if len(rows) > _LINES:
        show.say(f"{len(rows) - _LINES:,} more lines: -o FILE writes all, -o - prints them.")


def _write(release: Any, path: str, form: str) -> None:
    from halfmask.release.files import write_table

    write_table(_form(release, form), path)


def _write_controller(release: TableRelease, path: str) -> None:
    """One line per withheld cell with the rules it breaks, in a file for its owner alone."""
    import numpy as np
    import pyarrow as pa

    from halfmask.release.files import private_file, write_table

    found = release.controller
    rows = release.to_arrow()
    broken = [""] * len(rows)
    for rule, cells in found["reasons"].items():
        for cell in np.asarray(cells).tolist():
            broken[cell] = f"{broken[cell]}; {rule}" if broken[cell] else rule
    hidden = rows["withheld"].to_pylist()
    words = [b or ("secondary" if h else "") for b, h in zip(broken, hidden, strict=True)]
    table = rows.select(list(release.by)).append_column("reason", pa.array(words))
    table = table.append_column("figure", pa.array(found["values"]))
    table = table.append_column("people", pa.array(found["people"]))
    write_table(table.filter(pa.array(hidden)), path, private_file)


def _show(release: TableRelease, *, to: str) -> None:
    found = release.controller
    facts: list[tuple[str, Any]] = [("cells", len(release)), ("withheld", release.withheld)]
    if "primary" in found:
        facts += [
            ("... because a rule forbids it", found["primary"]),
            ("... because it would give those away", found["secondary"]),
            ("information kept", show.percent(found["information_kept"])),
            ("proven distance to the optimum", show.percent(found["gap"])),
        ]
    show.print_table("Table (figures for the controller)", ("", ""), facts, to=to)
    show.print_notes(release)


def _audit(file: str, output: str | None, *, as_json: bool, given: dict[str, Any]) -> int:
    from halfmask.tabulate.audit import audit_table

    if given["report"] and not given["report"].endswith(".json"):
        raise ParameterError("report", given["report"], "a name that ends in .json for an audit")
    with show.show_working("Auditing"):
        found = audit_table(
            file,
            *given["others"],
            by=split_names(given["by"]) or None,
            value=given["value"],
            parts=given["parts"],
            total=given["total"],
            least=given["least"],
            threshold=given["threshold"],
            protection=given["protection"] or 0.0,
        )
    if output == STDOUT:
        show.print_csv(found.to_arrow())
    elif output:
        found.write(output)
        show.say(f"The intervals are in {output}.")
    if given["report"]:
        found.report(given["report"])
        show.say(f"The report is in {given['report']}.")
    if as_json:
        show.print_document("tabulate", found.to_dict())
    elif output != STDOUT:
        _show_audit(found)
    return 0 if found.holds else PrivacyError.exit_code


def _show_audit(found: TableAudit) -> None:
    facts = [
        ("tables", found.tables),
        ("cells", found.cells),
        ("withheld", found.withheld),
        ("found out", len(found.disclosed)),
        ("published although small", len(found.small)),
    ]
    show.print_table("Audit", ("", ""), facts)
    rows = [
        (", ".join(f"{c}={v}" for c, v in one.cell.items()), one.low, one.high, one.finding)
        for one in found.disclosed[:20]
    ]
    if rows:
        show.print_table("Cells that readers find out", ("cell", "from", "to", "finding"), rows)
    if len(found.disclosed) > len(rows):
        show.say(f"{len(found.disclosed) - len(rows):,} more: -o FILE or --json lists all.")
