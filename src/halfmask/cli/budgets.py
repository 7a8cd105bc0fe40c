"""Options of a privacy budget, shared by the verbs that spend one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.dp.accountant import Accountant
    from halfmask.release.private import PrivateRelease

_OPTIONS = (
    click.option("--epsilon", help="The privacy budget to spend; personal: each person's own."),
    click.option("--delta", help="A small chance that nothing is promised; buys accuracy."),
    click.option("--domains", type=click.Path(), help="Public values or bounds per column: .toml."),
    click.option("--rows-per-person", type=int, help="How many rows one person can have."),
    click.option(
        "--grant", metavar="EPSILON[,DELTA]", help="Start --ledger with this budget for the table."
    ),
)


def budget_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says how much may be spent, and who keeps count."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def keeper(ledger: str | None, grant: str | None) -> Accountant | None:
    """Who keeps the budget of the table: the ledger, opened, or started with a grant."""
    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import budget
    from halfmask.dp.ledger import BudgetLedger

    if not ledger:
        if grant:
            raise click.UsageError("--grant starts a ledger: name its file with --ledger.")
        return None
    if grant:
        epsilon, _, delta = grant.partition(",")
        return Accountant.of(BudgetLedger.create(ledger, budget(epsilon, delta or 0)))
    return Accountant.of(BudgetLedger.open(ledger))


def show_promise(
    release: PrivateRelease, title: str, facts: list[tuple[str, Any]], *, to: str = "stdout"
) -> None:
    """Print what was spent and what it means for one person."""
    show.table(title, ("", ""), [*facts, ("promise", str(release.receipt.promise))], to=to)
    shown = [
        (b.column, b.values, show.percent(b.before), show.percent(b.after)) for b in release.bounds
    ]
    show.table("An attacker's best chance", ("column", "values", "before", "after"), shown, to=to)
    for note in release.notes:
        show.say(note)
