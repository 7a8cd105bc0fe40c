"""The options of ``frontier`` that name models: each takes several numbers, one model each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import promises

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from halfmask.models.verdict import Model

    Verb = Callable[..., Any]

_COLUMN = "COLUMN=NUMBERS"
_OPTIONS = (
    click.option("--k", metavar="2,5,10", help="k-anonymity with each of these k."),
    *promises.PERSONAL,
    click.option("--l", multiple=True, metavar=_COLUMN + "[:KIND[:C]]",
                 help="l-diversity with each l, such as disease=2,3."),
    click.option("--alpha", multiple=True, metavar=_COLUMN,
                 help="(alpha,k)-anonymity with each alpha; needs --k."),
    click.option("--t", multiple=True, metavar=_COLUMN + "[:DISTANCE]",
                 help="t-closeness with each t, such as disease=0.2,0.4."),
    click.option("--delta-disclosure", multiple=True, metavar=_COLUMN + "[:ABSENT]",
                 help="delta-disclosure with each delta."),
    click.option("--beta", multiple=True, metavar=_COLUMN + "[:KIND]",
                 help="beta-likeness with each beta."),
    click.option("--k-map", metavar="2,5,10",
                 help="Each class holds at least each of these K people of --population."),
    click.option("--delta-presence", multiple=True, metavar="LOW,HIGH",
                 help="Bounds of the share of --population's people who are in the table; give it "
                      "several times for several bounds."),
    promises.POPULATION,
    click.option("--average-risk", metavar="0.05,0.1", help="Each highest mean risk."),
    click.option("--sample-uniques", metavar="0,0.01", help="Each highest share of rows alone."),
)  # fmt: skip


def alternatives(verb: Verb) -> Verb:
    """Add one option per model."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def choices(given: Mapping[str, Any]) -> list[list[Model]]:
    """One list of alternatives per option and column."""
    from halfmask.models.stated_alternatives import stated_alternatives

    population = promises.population_of(given)
    return stated_alternatives(given, mark="--", population=population)
