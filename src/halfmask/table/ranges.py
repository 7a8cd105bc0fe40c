"""Ranges of an ordered column as text: ``17-24`` covers the values from 17 to 24.

Where a value holds another sign than digits and a point, ``to`` stands between the two.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?")


def separator(texts: Sequence[str | None]) -> str:
    """What stands between the ends of a range of these values."""
    return "-" if all(t is None or _PLAIN.fullmatch(t) for t in texts) else " to "


def places(texts: Sequence[str | None]) -> dict[str, int]:
    """Where each value stands; the missing value is in no range."""
    return {text: place for place, text in enumerate(texts) if text is not None}


def ends(label: str, known: Mapping[str, int]) -> tuple[int, int] | None:
    """The places of both ends of a range, or None where ``label`` is none."""
    if label in known:
        return known[label], known[label]
    for sign in ("-", " to "):
        at = label.find(sign, 1)
        while at > 0:
            low, high = known.get(label[:at]), known.get(label[at + len(sign) :])
            if low is not None and high is not None and low <= high:
                return low, high
            at = label.find(sign, at + 1)
    return None
