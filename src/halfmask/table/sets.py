"""Sets of values as text: ``a | b``, ``]2,5]`` (above 2, up to 5), ``<=2 | >7``, ``any``.

Releases by co-clustering publish such labels; whoever holds the original reads them here again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIGN = " | "
ANY = "any"
MISSING = "missing"
_BETWEEN = re.compile(r"\](?P<low>[^,]+),(?P<high>[^,]+)\]")
_BEYOND = re.compile(r"(?P<sign><=|>)(?P<bound>[^,]+)")


class Members:
    """Reads which values of a column a label stands for."""

    def __init__(self, texts: list[str | None], values: pa.Array) -> None:
        self._known = {text: place for place, text in enumerate(texts) if text is not None}
        self._present = np.array([text is not None for text in texts])
        self._numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        self._ordered = self._numeric or pa.types.is_temporal(values.type)
        if self._numeric:
            filled = values.cast(pa.float64(), safe=False).fill_null(0.0)
            self._keys: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
        else:
            self._keys = np.array([text or "" for text in texts])

    def __repr__(self) -> str:
        return f"Members({len(self._known)} values)"

    def of(self, label: str) -> NDArray[np.bool_] | None:
        """A mask over the values, or None where a piece of the label is neither value nor range."""
        pieces = [self._piece(piece) for piece in label.split(SIGN)]
        known = [piece for piece in pieces if piece is not None]
        return np.logical_or.reduce(known) if len(known) == len(pieces) else None

    def _piece(self, text: str) -> NDArray[np.bool_] | None:
        if text in self._known:
            return np.asarray(np.arange(len(self._present)) == self._known[text])
        if text == MISSING and not self._present.all():
            return ~self._present
        if not self._ordered:
            return None
        if text == ANY:
            return self._present
        if (found := _BETWEEN.fullmatch(text)) is not None:
            low, high = self._key(found["low"]), self._key(found["high"])
            if low is None or high is None:
                return None
            return np.asarray((self._keys > low) & (self._keys <= high) & self._present)
        return self._beyond(text)

    def _beyond(self, text: str) -> NDArray[np.bool_] | None:
        found = _BEYOND.fullmatch(text)
        key = self._key(found["bound"] if found else text)
        if key is None or (found is None and not self._numeric):
            return None
        if found is None:  # the same number, written otherwise
            same = np.asarray((self._keys == key) & self._present)
            return same if same.any() else None
        below = self._keys <= key
        return np.asarray((below if found["sign"] == "<=" else ~below) & self._present)

    def _key(self, text: str) -> float | str | None:
        if not self._numeric:
            return text
        try:
            return float(text)
        except ValueError:
            return None
