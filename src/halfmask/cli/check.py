"""``halfmask check``: does the table keep these promises as it stands?"""

from __future__ import annotations

from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json, engine_options, rows_or_place, source
from halfmask.cli.promises import models, promises
from halfmask.cli.verdicts import show_verdicts
from halfmask.errors import PrivacyError


@click.command("check")
@source
@promises
@engine_options
@as_json
def command(file: str, as_json: bool, **given: Any) -> int:
    """Check promises on FILE as it stands.

    The exit code is 2 where one does not hold.

    Example: halfmask check people.csv --k 5 --l disease=3
    """
    from halfmask.models.check import check

    wanted = models(given)
    table, how = rows_or_place(file, given)
    with show.working("Checking"):
        verdicts = check(table, *wanted, **how)
    holds = all(verdict.holds for verdict in verdicts)
    if as_json:
        facts = {"holds": holds, "verdicts": [verdict.to_dict() for verdict in verdicts]}
        show.document("check", facts)
    else:
        show_verdicts(verdicts)
    return 0 if holds else PrivacyError.exit_code
