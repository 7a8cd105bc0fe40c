"""The options that name models, and the models they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli.options import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.models.verdict import Model
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

Verb = Callable[..., Any]
COLUMN = "COLUMN=NUMBER"

POPULATION = click.option("--population", type=click.Path(), help="The population table's file.")
PERSONAL = (
    click.option("--personal-k", is_flag=True, help="Each person's own k, from the policy column."),
    click.option("--personal-l", multiple=True, metavar="COLUMN",
                 help="Each person's own l for a sensitive column."),
    click.option("--personal-t", multiple=True, metavar="COLUMN[:DISTANCE]",
                 help="Each person's own t for a sensitive column."),
)  # fmt: skip
_OPTIONS = (
    click.option("--k", type=int, help="k-anonymity: each class holds at least K people."),
    *PERSONAL,
    click.option("--l", multiple=True, metavar=COLUMN + "[:KIND[:C]]",
                 help="l-diversity; KIND: distinct, entropy or recursive (then C)."),
    click.option("--alpha", multiple=True, metavar=COLUMN,
                 help="(alpha,k)-anonymity: no value above this share of a class; needs --k."),
    click.option("--t", multiple=True, metavar=COLUMN + "[:DISTANCE]",
                 help="t-closeness; DISTANCE: equal, ordered or hierarchical."),
    click.option("--delta-disclosure", multiple=True, metavar=COLUMN + "[:ABSENT]",
                 help="delta-disclosure; ABSENT: a value that a class lacks fails or is ignored."),
    click.option("--beta", multiple=True, metavar=COLUMN + "[:KIND]",
                 help="beta-likeness; KIND: basic or enhanced."),
    click.option("--k-map", type=int, help="Each class holds at least K people of --population."),
    click.option("--delta-presence", metavar="LOW,HIGH",
                 help="Bounds of the share of --population's people who are in the table."),
    POPULATION,
    click.option("--average-risk", type=float, help="Highest mean risk of re-identification."),
    click.option("--sample-uniques", type=float, help="Highest share of rows alone in a class."),
)  # fmt: skip


def promises(verb: Verb) -> Verb:
    """Add one option per model."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def models(given: Mapping[str, Any], schema: Schema) -> list[Model]:
    """The models that the options name, in their order; none only where people state demands."""
    from halfmask.models.stated import stated_models
    from halfmask.table.demands import EXACT, states

    demands = given["policies"] or any(states(schema, demand) for demand in EXACT)
    needed = not demands or given.get("ignore_demands", False)
    return stated_models(given, mark="--", population=population_of(given), needed=needed)


def population_of(given: Mapping[str, Any]) -> Callable[[], Table | None]:
    """What reads the population, once a promise is about it."""
    file = given.get("population")
    return lambda: load(file, {}) if file else None
