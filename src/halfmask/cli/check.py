"""``halfmask check``: does the table keep these promises as it stands?"""

from __future__ import annotations

from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.options import POLICIES, as_json, engine_options, rows_or_place, source
from halfmask.cli.promises import models, promises
from halfmask.cli.verdicts import show_failing, show_verdicts, write_failing
from halfmask.errors import PrivacyError


@click.command("check")
@source
@promises
@POLICIES
@click.option("--failing", type=click.Path(), help="Write whose own demand is not met: .csv.")
@engine_options
@as_json
def command(file: str, as_json: bool, **given: Any) -> int:
    """Check promises on FILE as it stands, or what its people demand for themselves.

    The exit code is 2 where one does not hold. Who has less than they demand is named, for whoever
    holds the table.

    Example: halfmask check people.csv --k 5 --l disease=3
    """
    from halfmask.models.check import check
    from halfmask.table.demands import sources
    from halfmask.table.schema import Schema

    table, how = rows_or_place(file, given)
    wanted = models(given, how["schema"] if how else table.schema)
    with show.working("Checking"):
        verdicts = check(table, *wanted, policies=given["policies"], **how)
    holds = all(verdict.holds for verdict in verdicts)
    if as_json:
        found = [{**verdict.to_dict(), "failing": list(verdict.failing)} for verdict in verdicts]
        show.document("check", {"holds": holds, "verdicts": found})
    else:
        show_verdicts(verdicts)
        show_failing(verdicts)
    declared = how["schema"] if how else table.schema
    if wanted and not given["policies"] and isinstance(declared, Schema) and sources(declared):
        show.say("What people demand for themselves was not checked: name no promise for that.")
    if given["failing"]:
        write_failing(verdicts, given["failing"])
        show.say(f"Whose demands are not met is in {given['failing']}.")
    return 0 if holds else PrivacyError.exit_code
