"""The three criteria of the data protection authorities for a table as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.metrics.estimate import exact
from halfmask.metrics.risk.criterion import Criterion, judge

if TYPE_CHECKING:
    from halfmask.metrics.risk.disclosure import Disclosure
    from halfmask.table.classes import Classes


def table_criteria(
    classes: Classes, alone: int, disclosures: tuple[Disclosure, ...], limit: float
) -> tuple[Criterion, ...]:
    """The three criteria for a table that would be published as it stands."""
    rows, people = int(classes.rows.sum()), int(classes.people.sum())
    nothing = exact(0.0, rows)
    out = [
        judge(
            "singling out",
            "The attacker looks for a combination of quasi-identifiers that fits one person only.",
            exact(alone / rows, rows),
            None,
            nothing,
            limit=limit,
        ),
        judge(
            "linkability",
            "The attacker has a file with names and the same quasi-identifiers, and joins each "
            "person to a row that fits.",
            exact(len(classes) / people, people),
            None,
            exact(1 / people, people),
            limit=limit,
        ),
    ]
    out += [
        judge(
            "inference",
            f"The attacker knows the quasi-identifiers of a person and guesses {one.column} "
            "as the likeliest value among the rows that fit.",
            exact(one.best_guess, rows),
            None,
            exact(one.prior_guess, rows),
            limit=limit,
            column=one.column,
        )
        for one in disclosures
    ]
    return tuple(out)
