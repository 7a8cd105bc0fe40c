"""Needs as a user states them in a TOML file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.errors import HalfmaskError, InputError
from halfmask.metrics.discrimination.need import Need, unique_titles
from halfmask.metrics.discrimination.partition_file import is_number, read_toml, stated_partition

if TYPE_CHECKING:
    from os import PathLike

_NEED = ("target", "keys", "name", "at_least", "at_most", "partitions")


def stated_needs(given: Sequence[Need] | str | PathLike[str]) -> list[Need]:
    """Needs as they are, or read from a file: one ``[[need]]`` each.

    Raises:
        InputError: the file cannot be read or says something else.
    """
    if not isinstance(given, str | os.PathLike):
        return unique_titles(list(given))
    path = Path(given)
    document = read_toml(path)
    entries = document.get("need")
    if not isinstance(entries, list) or not entries or set(document) != {"need"}:
        raise InputError(f"The file {path.name!r} states no needs: write a [[need]] for each.")
    return unique_titles([_need(place, entry) for place, entry in enumerate(entries, 1)])


def _need(place: int, stated: object) -> Need:
    if not isinstance(stated, Mapping) or "target" not in stated or "keys" not in stated:
        raise InputError(f"Need {place} must name its target and its keys.")
    strange = sorted(set(stated) - set(_NEED))
    if strange:
        raise InputError(
            f"Need {place} knows no {', '.join(strange)}; it knows {', '.join(_NEED)}."
        )
    keys, blocks = stated["keys"], stated.get("partitions")
    names = [keys] if isinstance(keys, str) else keys
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"The keys of need {place} are a list of columns.")
    if blocks is not None and not isinstance(blocks, Mapping):
        raise InputError(f"The partitions of need {place} are a table per column.")
    bounds = {name: stated[name] for name in ("at_least", "at_most") if name in stated}
    if not all(is_number(bound) for bound in bounds.values()):
        raise InputError(f"The bounds of need {place} are numbers from 0 to 1.")
    try:
        return Need(
            str(stated["target"]),
            tuple(names),
            {name: stated_partition(name, one) for name, one in blocks.items()} if blocks else None,
            str(stated.get("name", "")),
            **bounds,
        )
    except HalfmaskError as error:
        raise InputError(f"Need {place}: {error}") from None
