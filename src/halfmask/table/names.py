"""The names of columns: what they must be, and how an error tells them.

A file without its line of names has the cells of its first row in their place, and these must not
be told. Nobody can know for sure, but a name that reads as a number or date gives such files away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FIGURE = re.compile(r"[-+]?\d[\d\s.,:/TZ+-]*%?")  # numbers, dates and times


def check_names(names: Sequence[str]) -> None:
    """Every column has a name, and no two the same."""
    blank = [str(place) for place, name in enumerate(names, start=1) if not name]
    if blank:
        raise InputError(
            f"Column {', '.join(blank)} has no name: name it (or leave row numbers out of the"
            " file)."
        )
    # Told by place: where a file lacks its line of names, they are the cells of a person.
    places: dict[str, list[str]] = {}
    for place, name in enumerate(names, start=1):
        places.setdefault(name, []).append(str(place))
    twice = [" and ".join(held) for held in places.values() if len(held) > 1]
    if twice:
        raise InputError(
            f"Column names occur more than once: columns {'; '.join(twice)}. Rename them, or add a "
            "first line that names the columns if the file begins with a row."
        )


def told(names: Iterable[str]) -> str:
    """``names`` in a row for an error, or that they seem to be cells."""
    names = list(names)
    if any(_FIGURE.fullmatch(name.strip()) for name in names):
        return (
            f"{len(names)} columns that are not listed here, as some are named by a number or "
            "date: add a first line that names the columns if the file begins with a row"
        )
    return ", ".join(f"'{name}'" for name in names)


def listed(names: Sequence[str], most: int = 10) -> str:
    """The first of ``names`` in a row, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def require_known(wanted: Iterable[str], names: Iterable[str]) -> None:
    """Refuse columns that a table does not have.

    Raises:
        InputError: some of ``wanted`` are not among ``names``.
    """
    names = list(names)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        words = ", ".join(f"'{name}'" for name in unknown)
        raise InputError(f"Unknown columns: {words}. The table has {told(names)}.")
