"""Ranges of an ordered column as text: ``17-24`` covers the values from 17 to 24.

Where a value holds another sign than digits and a point, ``to`` stands between the two.

Sets of values as text: ``a | b``, ``]2,5]`` (above 2, up to 5), ``<=2 | >7``, ``any``.

Releases by co-clustering publish such labels; whoever holds the original reads them here again.
Labels of other programs are read too: ``{a, b}``, and ranges such as ``[20, 30[``, ``[20, 30)``,
``(20,30]``, ``20-29``, ``20 to 29`` and ``>=80``; masks such as ``355**``; a year or a month.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?")


def separator(texts: Sequence[str | None]) -> str:
    """What stands between the ends of a range of these values."""
    return "-" if all(t is None or _PLAIN.fullmatch(t) for t in texts) else " to "


def value_places(texts: Sequence[str | None]) -> dict[str, int]:
    """Where each value stands; the missing value is in no range."""
    return {text: place for place, text in enumerate(texts) if text is not None}


def range_ends(label: str, known: Mapping[str, int]) -> tuple[int, int] | None:
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


SIGN = " | "
ANY = "any"
MISSING = "missing"
_BETWEEN = re.compile(r"(?P<left>[\[\](])(?P<low>[^,]+),(?P<high>[^,]+)(?P<right>[\[\])])")
_BEYOND = re.compile(r"(?P<sign><=|>=|<|>)(?P<bound>[^,]+)")
_FROM_TO = re.compile(r"(?P<low>-?[0-9.]+)\s?([-\u2013]|to)\s?(?P<high>-?[0-9.]+)")
_DATES = re.compile(r"(?P<low>[0-9]{4}-[0-9].*) to (?P<high>[0-9]{4}-[0-9].*)")
_PERIOD = re.compile(r"[0-9]{4}(-[0-9]{2})?")
_MASK = "*"
_COMPARISONS: dict[str, Any] = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "<": np.less,
    ">": np.greater,
}


class LabelReader:
    """Reads which values of a column a label stands for."""

    def __init__(
        self,
        texts: list[str | None],
        values: pa.Array,
        groups: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> None:
        self._groups = groups or {}  # labels of a hierarchy that may stand in sets
        self._known = {text: place for place, text in enumerate(texts) if text is not None}
        self._present = np.array([text is not None for text in texts])
        self._truth = pa.types.is_boolean(values.type)
        self._numeric = is_number(values.type)
        self._dated = pa.types.is_temporal(values.type)
        self._ordered = self._numeric or self._dated
        self._texts = np.array([text or "" for text in texts])
        if pa.types.is_decimal(values.type):  # as a label would be read: a cast rounds otherwise
            self._keys: NDArray[Any] = np.array([float(text or 0) for text in texts])
        elif self._numeric:
            filled = values.cast(pa.float64(), safe=False).fill_null(0.0)
            self._keys = filled.to_numpy(zero_copy_only=False)
        else:
            self._keys = self._texts

    def __repr__(self) -> str:
        return f"LabelReader({len(self._known)} values)"

    def of(self, label: str) -> NDArray[np.bool_] | None:
        """A mask over the values, or None where a piece of the label is neither value nor range."""
        pieces = [self._piece(piece) for piece in label.split(SIGN)]
        known = [piece for piece in pieces if piece is not None]
        return np.logical_or.reduce(known) if len(known) == len(pieces) else None

    def _piece(self, text: str) -> NDArray[np.bool_] | None:
        if text in self._known:
            return np.asarray(np.arange(len(self._present)) == self._known[text])
        if text in self._groups:
            return self._groups[text]
        if text == MISSING and not self._present.all():
            return ~self._present
        if text[:1] == "{" and text[-1:] == "}":
            return self._read_list(text[1:-1])
        if self._truth and text.lower() in self._known:
            return self._piece(text.lower())
        if text.endswith(_MASK) and (masked := self._masked(text)).any():
            return masked
        if self._dated and _PERIOD.fullmatch(text):
            return np.asarray(np.char.startswith(self._texts, f"{text}-"))
        if not self._ordered:
            return None
        if self._dated and (found := _DATES.fullmatch(text)) is not None:
            return self._read_range(found["low"], found["high"], open_left=False, open_right=False)
        if text == ANY:
            return self._present
        if (found := _BETWEEN.fullmatch(text)) is not None:
            return self._read_range(
                found["low"], found["high"], open_left=found["left"] != "[",
                open_right=found["right"] != "]",
            )  # fmt: skip
        if self._numeric and (found := _FROM_TO.fullmatch(text)) is not None:
            return self._read_range(found["low"], found["high"], open_left=False, open_right=False)
        return self._beyond(text)

    def _masked(self, text: str) -> NDArray[np.bool_]:
        """The values of the same length that begin alike; of nothing but masks, none."""
        begin = text.rstrip(_MASK)
        same = np.char.startswith(self._texts, begin) & self._present & bool(begin)
        return np.asarray(same & (np.char.str_len(self._texts) == len(text)))

    def _read_list(self, text: str) -> NDArray[np.bool_] | None:
        """The values of ``{a, b}``, where all of them are known."""
        for comma in (", ", ","):
            pieces = text.split(comma)
            if all(piece in self._known for piece in pieces):
                out = np.zeros(len(self._present), dtype=bool)
                out[[self._known[piece] for piece in pieces]] = True
                return out
        return None

    def _read_range(
        self, low: str, high: str, *, open_left: bool, open_right: bool
    ) -> NDArray[np.bool_] | None:
        bottom, top = self._key(low), self._key(high)
        if bottom is None or top is None:
            return None
        above = self._keys > bottom if open_left else self._keys >= bottom
        below = self._keys < top if open_right else self._keys <= top
        return np.asarray(above & below & self._present)

    def _beyond(self, text: str) -> NDArray[np.bool_] | None:
        found = _BEYOND.fullmatch(text)
        key = self._key(found["bound"] if found else text)
        if key is None or (found is None and not self._numeric):
            return None
        if found is None:  # the same number, written otherwise
            same = np.asarray((self._keys == key) & self._present)
            return same if same.any() else None
        compared = _COMPARISONS[found["sign"]](self._keys, key)
        return np.asarray(compared & self._present)

    def _key(self, text: str) -> float | str | None:
        text = text.strip()
        if not self._numeric:
            return text
        try:
            return float(text)
        except ValueError:
            return None
