"""The options of ``frontier`` that name models: each takes several numbers, one model each."""

from __future__ import annotations

from itertools import product
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
    click.option("--l", "l_", multiple=True, metavar=_COLUMN + "[:KIND[:C]]",
                 help="l-diversity with each l, such as disease=2,3."),
    click.option("--alpha", multiple=True, metavar=_COLUMN,
                 help="(alpha,k)-anonymity with each alpha; needs --k."),
    click.option("--t", "t_", multiple=True, metavar=_COLUMN + "[:DISTANCE]",
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
_LISTED = (("average_risk", "average-risk"), ("sample_uniques", "sample-uniques"))
_PER_COLUMN = (("l_", "l"), ("t_", "t"), ("delta_disclosure", "delta-disclosure"), ("beta", "beta"))


def alternatives(verb: Verb) -> Verb:
    """Add one option per model."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def choices(given: Mapping[str, Any]) -> list[list[Model]]:
    """One list of alternatives per option and column."""
    out = _counting(given)
    for key, option in _PER_COLUMN:
        for column, values, rest in pairs(option, given[key]):
            made = [f"{column}={value}{rest}" for value in values]
            out.append([promises.models({key: (entry,)})[0] for entry in made])
    for column in given["personal_l"]:
        out.append(promises.models({"personal_l": (column,)}))
    for column in given["personal_t"]:
        out.append(promises.models({"personal_t": (column,)}))
    out += _against_population(given)
    for key, option in _LISTED:
        if given[key]:
            out.append([promises.models({key: value})[0] for value in numbers(option, given[key])])
    return out


def _counting(given: Mapping[str, Any]) -> list[list[Model]]:
    ks = [_whole(value) for value in numbers("k", given["k"])] if given["k"] else []
    shares = pairs("alpha", given["alpha"])
    if shares and not ks:
        raise click.UsageError("--alpha needs --k.")
    if len(shares) > 1 and len(ks) > 1:
        raise click.UsageError("--alpha for several columns takes one --k: give one.")
    out = []
    for column, values, _ in shares:
        both = product(ks, values)
        out.append([promises.models({"k": k, "alpha": (f"{column}={a}",)})[-1] for k, a in both])
    if ks and not shares:
        out.append([promises.models({"k": k})[0] for k in ks])
    if given["personal_k"]:
        out.append(promises.models({"personal_k": True}))
    return out


def _against_population(given: Mapping[str, Any]) -> list[list[Model]]:
    """Settings share one table of the population, so that it is counted once."""
    population = promises.population_of(given)
    if population is None:
        return []
    from halfmask.models import DeltaPresence, KMap

    out: list[list[Model]] = []
    if given["k_map"]:
        ks: list[Any] = [_whole(value) for value in numbers("k-map", given["k_map"])]
        out.append([KMap(k, population) for k in ks])
    if given["delta_presence"]:
        shares = [promises.bounds(entry) for entry in given["delta_presence"]]
        out.append([DeltaPresence(low, high, population) for low, high in shares])
    return out


def pairs(option: str, entries: tuple[str, ...]) -> list[tuple[str, list[float], str]]:
    """Take ``column=numbers[:word...]`` apart."""
    out = []
    for entry in entries:
        column, equals, listed = entry.rpartition("=")
        values, colon, rest = listed.partition(":")
        if not equals or not column:
            raise click.UsageError(f"--{option} takes COLUMN=NUMBERS, such as disease=2,3.")
        out.append((column, numbers(option, values), colon + rest))
    return out


def numbers(option: str, listed: str) -> list[float]:
    """The numbers in ``1,2``; at least one."""
    try:
        found = [float(part) for part in listed.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise click.UsageError(f"--{option} takes numbers separated by commas, such as 2,5.")
    return found


def _whole(value: float) -> int | float:
    return int(value) if value.is_integer() else value
