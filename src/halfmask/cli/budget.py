"""``halfmask budget``: who may spend how much privacy; and the options of verbs that spend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import as_json, bare_source, load, schema_option
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import Budget
    from halfmask.dp.ledger import Account
    from halfmask.release.release import PrivateRelease

_INSIST = click.option(
    "--insist", is_flag=True, help="Mean an epsilon above 20 or a delta above 0.0001."
)
LEDGER = click.option(
    "--ledger", type=click.Path(), help="The file that keeps this table's budget."
)
GRANT = click.option(
    "--grant", metavar="EPSILON[,DELTA]", help="Start --ledger with this budget for the table."
)
_KEY = click.option(
    "--ledger-key", type=click.Path(), help="The secret file that --ledger is sealed with."
)
_OPTIONS = (
    click.option("--epsilon", help="The privacy budget to spend; personal: each person's own."),
    click.option("--share", help="With --epsilon personal, the share of everybody's own to spend."),
    click.option("--delta", help="A small chance that nothing is promised; buys accuracy."),
    click.option(
        "--domains",
        type=click.Path(),
        help="A codebook of public values or bounds: .toml, .csv.",
    ),
    click.option("--rows-per-person", type=int, help="How many rows one person can have."),
    GRANT,
    _KEY,
    _INSIST,
)


def budget_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says how much may be spent, and who keeps count."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def accountant_of(
    ledger: str | None, grant: str | None, key: str | None = None, *, insist: bool = False
) -> Accountant | None:
    """Who keeps the budget of the table: the ledger, opened, or started with a grant."""
    from halfmask.dp.accountant import Accountant
    from halfmask.dp.ledger import BudgetLedger

    if not ledger:
        if grant:
            raise click.UsageError("--grant starts a ledger: name its file with --ledger.")
        if key:
            raise click.UsageError("--ledger-key opens a ledger: name its file with --ledger.")
        return None
    if grant:
        made = BudgetLedger.create(ledger, _read_grant(grant), key=key, insist=insist)
        return Accountant.of(made)
    return Accountant.of(BudgetLedger.open(ledger, key=key))


@click.group("budget")
def budget_command() -> None:
    """Grant, show and raise the privacy budget of a table, which LEDGER keeps.

    create it once, name it with --ledger in query and synthesize, and show what is left. Only bind
    needs the table.

    Example: halfmask budget create people.ledger --grant 3,1e-6
    """


_ledger = click.argument("ledger", type=click.Path())
_key = click.option("--key", type=click.Path(), help="A secret file that the rows are sealed with.")
_reason = click.option("--reason", required=True, help="Why; it is kept in the ledger.")


@budget_command.command("create")
@_ledger
@click.option("--grant", required=True, metavar="EPSILON[,DELTA]", help="What may be spent in all.")
@click.option("--rho", is_flag=True, help="The grant is a rho of concentrated privacy.")
@click.option("--name", default="", help="What you call the table.")
@click.option(
    "--partition",
    default="",
    metavar="COLUMN",
    help="Every person has one value of it: answers about different values cost the largest only.",
)
@_key
@_INSIST
@as_json
def create(ledger: str, grant: str, rho: bool, as_json: bool, **given: Any) -> None:
    """Start LEDGER with a budget; only its owner can read the file."""
    from halfmask.dp.ledger import BudgetLedger

    granted = _rho("grant", grant) if rho else _read_grant(grant)
    made = BudgetLedger.create(
        ledger,
        granted,
        name=given["name"],
        partition=given["partition"],
        key=given["key"],
        insist=given["insist"],
    )
    _show(made.account(), as_json=as_json)


@budget_command.command("show")
@_ledger
@_key
@as_json
def show_ledger(ledger: str, key: str | None, as_json: bool) -> None:
    """Check the seals of LEDGER and tell what was granted, spent and is left."""
    from halfmask.dp.ledger import BudgetLedger

    _show(BudgetLedger.open(ledger, key=key).account(), as_json=as_json)


@budget_command.command("raise")
@_ledger
@click.option(
    "--to", required=True, metavar="EPSILON[,DELTA]", help="What may be spent in all now."
)
@_reason
@_key
@_INSIST
@as_json
def raise_grant(ledger: str, to: str, as_json: bool, **given: Any) -> None:
    """Grant more, as the controller; what was spent stays spent."""
    from halfmask.dp.budget import Approximate, Concentrated
    from halfmask.dp.ledger import BudgetLedger

    opened = BudgetLedger.open(ledger, key=given["key"])
    now = opened.granted()
    if isinstance(now, Concentrated):
        amount = _rho("to", to)
    elif isinstance(now, Approximate) and "," not in to:
        amount = Approximate(_read_grant(to, "to").parts()[0], now.delta)
    else:
        amount = _read_grant(to, "to")
    opened.raise_to(amount, given["reason"], insist=given["insist"])
    _show(opened.account(), as_json=as_json)


@budget_command.command("bind")
@_ledger
@bare_source
@schema_option
@_reason
@_key
@as_json
def bind_table(ledger: str, file: str, as_json: bool, **given: Any) -> None:
    """Say that LEDGER keeps the budget of FILE from now on, whose columns changed."""
    from halfmask.dp.ledger import BudgetLedger, table_identity

    table = load(file, given)
    opened = BudgetLedger.open(ledger, key=given["key"])
    opened.bind(table_identity(table.arrow.column_names, table.schema), given["reason"])
    _show(opened.account(), as_json=as_json)


def _read_grant(text: str, option: str = "grant") -> Budget:
    from halfmask.dp.budget import budget

    epsilon, _, delta = text.partition(",")
    try:
        return budget(epsilon, delta or 0)
    except ParameterError:
        allowed = "an epsilon above 0, or an epsilon and a delta below 1, such as 3 or 3,1e-6"
        raise ParameterError(f"--{option}", text, allowed) from None


def _rho(option: str, text: str) -> Budget:
    from halfmask.dp.budget import Concentrated

    try:
        return Concentrated(text)
    except ParameterError:
        raise ParameterError(f"--{option}", text, "one number, the rho, such as 0.1") from None


def _show(account: Account, *, as_json: bool) -> None:
    facts = account.to_dict()
    if as_json:
        show.print_document("budget", facts)
        return
    shown = [
        (name, facts[name])
        for name in ("name", "partition", "granted", "spent", "left")
        if facts[name]
    ]
    bound = "a table, by its columns" if facts["table"] else "no table yet: the first use binds it"
    shown.append(("bound to", bound))
    show.print_table("Budget", ("", ""), shown)
    show.print_table(
        "Grants",
        ("when", "in all", "why"),
        [(g["at"], g["amount"], g["reason"] or "created") for g in facts["grants"]],
    )
    if facts["levels"]:
        rows = [(level["epsilon"], level["left"]) for level in facts["levels"]]
        show.print_table("People who state an epsilon", ("level", "left of it"), rows)
    if facts["spendings"]:
        spent = [(s["serial"], s["at"], s["purpose"], s["amount"]) for s in facts["spendings"]]
        show.print_table("Spent", ("", "when", "for", "what"), spent)


def show_promise(
    release: PrivateRelease, title: str, facts: list[tuple[str, Any]], *, to: str = "stdout"
) -> None:
    """Print what was spent and what it means for one person."""
    receipt = release.receipt
    promised = [("promise", str(receipt.promise)), ("holds for", receipt.neighbors)]
    show.print_table(title, ("", ""), [*facts, *promised], to=to)
    shown = [
        (b.column, b.values, f"{100 * b.before:.3g}%", f"{100 * b.after:.3g}%")
        for b in release.bounds
    ]
    title = "An attacker's best chance, of equally likely values"
    show.print_table(title, ("column", "values", "before", "after"), shown, to=to)
    show.print_notes(release)
