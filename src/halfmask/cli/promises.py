"""The options that name models, and the models they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.models.verdict import Model
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
    click.option("--l", "l_", multiple=True, metavar=COLUMN + "[:KIND[:C]]",
                 help="l-diversity; KIND: distinct, entropy or recursive (then C)."),
    click.option("--alpha", multiple=True, metavar=COLUMN,
                 help="(alpha,k)-anonymity: no value above this share of a class; needs --k."),
    click.option("--t", "t_", multiple=True, metavar=COLUMN + "[:DISTANCE]",
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


def models(given: Mapping[str, Any]) -> list[Model]:
    """The models that the options name, in the order of the options; at least one."""
    made = [*_counting(given), *_sensitive(given), *_against_population(given), *_risk(given)]
    if not made:
        raise click.UsageError("No promise is named: give --k, --personal-k, --l, --t or another.")
    return made


def _counting(given: Mapping[str, Any]) -> list[Model]:
    from halfmask.models import AlphaKAnonymity, KAnonymity, PersonalKAnonymity

    made: list[Model] = []
    if given.get("k") is not None:
        made.append(KAnonymity(given["k"]))
    if given.get("personal_k"):
        made.append(PersonalKAnonymity())
    for column, value, _ in _pairs("alpha", given.get("alpha")):
        if given.get("k") is None:
            raise click.UsageError("--alpha needs --k.")
        made.append(AlphaKAnonymity(value, given["k"], column))
    return made


def _sensitive(given: Mapping[str, Any]) -> list[Model]:
    from halfmask.models import (
        BetaLikeness,
        DeltaDisclosure,
        LDiversity,
        PersonalLDiversity,
        PersonalTCloseness,
        TCloseness,
    )

    made: list[Model] = []
    for column, value, extra in _pairs("l", given.get("l_"), extras=2):
        c = _number("l", extra[1]) if len(extra) > 1 else None
        kind: Any = extra[0] if extra else "distinct"
        made.append(LDiversity(int(value) if value.is_integer() else value, column, kind=kind, c=c))
    for column, value, extra in _pairs("t", given.get("t_"), extras=1):
        distance: Any = extra[0] if extra else "equal"
        made.append(TCloseness(value, column, distance=distance))
    made += [PersonalLDiversity(column) for column in given.get("personal_l") or ()]
    for entry in given.get("personal_t") or ():
        column, _, apart = entry.partition(":")
        own: Any = apart or "equal"
        made.append(PersonalTCloseness(column, own))
    for column, value, extra in _pairs("delta-disclosure", given.get("delta_disclosure"), extras=1):
        absent: Any = extra[0] if extra else "fails"
        made.append(DeltaDisclosure(value, column, absent=absent))
    for column, value, extra in _pairs("beta", given.get("beta"), extras=1):
        kind = extra[0] if extra else "basic"
        made.append(BetaLikeness(value, column, kind=kind))
    return made


def _against_population(given: Mapping[str, Any]) -> list[Model]:
    population = population_of(given)
    if population is None:
        return []
    from halfmask.models import DeltaPresence, KMap

    made: list[Model] = []
    if given.get("k_map") is not None:
        made.append(KMap(given["k_map"], population))
    if given.get("delta_presence") is not None:
        made.append(DeltaPresence(*bounds(given["delta_presence"]), population))
    return made


def population_of(given: Mapping[str, Any]) -> Table | None:
    """The population that a promise is about; None where none is named."""
    if given.get("k_map") is None and not given.get("delta_presence"):
        return None
    if not given.get("population"):
        raise click.UsageError("--k-map and --delta-presence need --population FILE.")
    from halfmask.cli.options import load

    return load(given["population"], {})


def bounds(entry: str) -> tuple[float, float]:
    """The two numbers of ``--delta-presence``."""
    try:
        low, high = map(float, entry.split(","))
    except ValueError:
        raise click.UsageError("--delta-presence takes two numbers: LOW,HIGH.") from None
    return low, high


def _risk(given: Mapping[str, Any]) -> list[Model]:
    from halfmask.models import AverageRisk, SampleUniques

    made: list[Model] = []
    if given.get("average_risk") is not None:
        made.append(AverageRisk(given["average_risk"]))
    if given.get("sample_uniques") is not None:
        made.append(SampleUniques(given["sample_uniques"]))
    return made


def _pairs(
    option: str, entries: tuple[str, ...] | None, *, extras: int = 0
) -> list[tuple[str, float, list[str]]]:
    """Take ``column=number[:word...]`` apart; the column's name may hold '=' itself."""
    out = []
    for entry in entries or ():
        column, equals, rest = entry.rpartition("=")
        value, *extra = rest.split(":")
        if not equals or not column or len(extra) > extras:
            raise click.UsageError(f"--{option} takes COLUMN=NUMBER, such as --{option} disease=3.")
        out.append((column, _number(option, value), extra))
    return out


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--{option} takes a number after '='.") from None
