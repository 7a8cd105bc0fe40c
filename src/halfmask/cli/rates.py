"""Prints discrimination rates of a release and of needs, and reads needs from options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.assessment.comparison import Comparison
    from halfmask.metrics.discrimination.need import Need


def needs_of(given: dict[str, Any]) -> list[Need]:
    """The needs of ``--need`` and of the file of ``--needs``."""
    from halfmask.metrics.discrimination.needs_file import stated_needs

    asked = [_need(text) for text in given["needs"]]
    return asked + (stated_needs(given["needs_file"]) if given["needs_file"] else [])


def _need(text: str) -> Need:
    """A need written as ``target=key,key``."""
    from halfmask.metrics.discrimination.need import Need

    target, sign, keys = text.partition("=")
    if not sign or not target.strip() or not names(keys):
        raise click.UsageError("--need wants COLUMN=A,B, such as --need disease=age,sex.")
    return Need(target.strip(), tuple(names(keys)))


def show_needs(found: Comparison) -> None:
    """Print how far needs are served, and whether as asked."""
    if not found.needs:
        return
    rows = [
        (
            one.name,
            show.rate(one.before),
            show.rate(one.after, one.reason),
            f"{one.rows_before:,} -> {one.rows_after:,}",
            _asked(one.at_least, one.at_most),
            "" if one.met is None else one.met,
        )
        for one in found.needs
    ]
    headings = ("need", "original", "release", "rows", "asked", "met")
    show.table("Needs (discrimination rate, 0 to 1)", headings, rows)
    for note in dict.fromkeys(note for one in found.needs for note in one.notes):
        show.say(note)


def _asked(at_least: float | None, at_most: float | None) -> str:
    said = [] if at_least is None else [f"at least {at_least:g}"]
    return " and ".join(said if at_most is None else [*said, f"at most {at_most:g}"])


def show_release_rates(found: Comparison) -> None:
    """Print attacks scored by discrimination rates, and where a weaker release tells less."""
    from halfmask.report.discrimination import NAMES

    held, quasi = found.discrimination, len(found.generalized)
    rows = [
        (
            NAMES.get(one.attack, one.attack),
            one.target,
            None if one.before is None else show.rate(one.before),
            show.rate(one.rate),
            None if one.chance is None else show.rate(one.chance.value),
            one.kind or "",
        )
        for one in held.rates
        if one.attack == "identity" or len(one.keys) == quasi
    ]
    headings = ("attack", "on", "original", "release", "by chance", "class")
    loss = show.rate(held.loss)
    show.table(f"Discrimination rates; overall information loss: {loss}", headings, rows)
    each = [
        (one.target, one.keys[0], show.rate(one.before), show.rate(one.rate), one.kind or "")
        for one in held.rates
        if one.attack == "homogeneity" and len(one.keys) < quasi
    ]
    if each:
        parts = ("column", "told by", "original", "release", "class")
        show.table("By each quasi-identifier alone", parts, each)
    show.say(f"{held.pairing} Identity bounds an attacker without this pairing from above.")
    _say_reasons([(one.attack, one.target, one.reason) for one in held.rates if one.reason])
    for gone in held.absent:
        show.say(
            f"Column {gone.column}: no released label but * stands for {gone.absent:,} of its "
            f"{gone.values:,} values."
        )
    if held.inversions is None:
        return
    if held.weaker_rows != held.rows:
        show.say(
            f"The weaker release holds {held.weaker_rows:,} rows, this one {held.rows:,}: their "
            "coverage differs."
        )
    if not held.inversions:
        show.say("Nowhere does it tell more than the weaker release.")
        return
    worse = [(i.attack, i.target, ", ".join(i.keys), i.rate, i.weaker) for i in held.inversions]
    compared = ("attack", "on", "known", "this release", "the weaker one")
    show.table("It tells more than the weaker release", compared, worse)


def _say_reasons(reasons: Sequence[tuple[str, str, str]]) -> None:
    for attack, target, reason in dict.fromkeys(reasons):
        show.say(f"{attack.capitalize()} of {target} is not known: {reason}")
