"""Cell keys: the same people make the same cell, and the same cell gets the same noise everywhere.

Definition: every record has a key, uniform over 64-bit words; the key of a cell is the sum of its
records' keys modulo 2**64. Key and count look the noise up in a table that keeps zeros, has mean 0,
the given variance and maximum, and never makes a count negative.
Source: Fraser, Wooton, "A proposed method for confidentialising tabular output to protect against
differencing", 2005; Giessing, Tent, "Concepts for generalising tools implementing the cell key
method", 2019 (maximum entropy under these conditions, as in the European statistical system).
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError, SchemaError, usable_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.table import Table

    Keys = NDArray[np.uint64]
    Numbers = NDArray[np.float64]

_LEAST = 16  # bytes of a secret


@dataclass(frozen=True, slots=True, eq=False)
class NoiseTable:
    """The noise of every count: chances of each change, per count up to the largest that differs.

    Attributes:
        maximum: the largest change.
        variance: of the changes of large counts.
        least: published counts are 0 or above this.
        chances: (counts, changes) the chance of each change from -maximum to maximum.
    """

    maximum: int
    variance: float
    least: int
    chances: Numbers

    @classmethod
    def of(cls, *, variance: float, maximum: int, least: int = 0) -> NoiseTable:
        """The table of maximum entropy with mean 0, this variance and this maximum.

        Raises:
            ParameterError: no such table exists.
        """
        if isinstance(maximum, bool) or not isinstance(maximum, int) or not 1 <= maximum <= 100:
            raise ParameterError("maximum", maximum, "a whole number from 1 to 100")
        if not 0 < variance < maximum**2:
            raise ParameterError("variance", variance, f"above 0, below {maximum**2}")
        if isinstance(least, bool) or not isinstance(least, int) or not 0 <= least < maximum:
            raise ParameterError("least", least, f"a whole number from 0 to {maximum - 1}")
        # From the last of these counts on nothing is cut off, and the chances stay the same.
        changes = np.arange(-maximum, maximum + 1)
        after = np.arange(1, maximum + least + 2)[:, None] + changes[None, :]
        allowed = (after == 0) | (after > least)
        if not (allowed & (changes > 0)).any(axis=1).all():
            raise ParameterError("least", least, "less: a small count could not keep its mean")
        chances = _most_even(changes.astype(np.float64), allowed, variance)
        return cls(maximum, variance, least, np.vstack([changes == 0, chances]))

    def look_up(self, counts: NDArray[np.int64], keys: Keys) -> NDArray[np.int64]:
        """The changes of ``counts`` with these cell keys."""
        line = np.minimum(counts, len(self.chances) - 1)
        steps = np.cumsum(self.chances, axis=1)
        steps[:, -1] = 1.0
        # The upper 53 bits, as many as a float holds, make an even share of 0 to 1.
        share = (keys >> np.uint64(11)).astype(np.float64) / float(1 << 53)
        found = np.zeros(len(counts), np.int64)
        for one in np.unique(line):
            here = line == one
            places = np.searchsorted(steps[one], share[here], side="right")
            found[here] = np.minimum(places, 2 * self.maximum) - self.maximum
        return found


def _most_even(points: Numbers, allowed: NDArray[np.bool_], variance: float) -> Numbers:
    """Per line, chances of maximum entropy with mean 0 and this variance, or the nearest to it."""
    ends = np.where(allowed, points, 0.0)
    most = -ends.min(axis=1) * ends.max(axis=1)  # of a change with mean 0 between these ends
    wanted = np.minimum(variance, most * 0.999)
    # The mean holds for every curvature by the right tilt; the curvature gives the variance.
    low, high = np.full(len(allowed), -60.0 / points.max() ** 2), np.full(len(allowed), 60.0)
    for _ in range(60):
        middle = (low + high) / 2
        wide = _tilt(points, allowed, middle) @ points**2 > wanted
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return _tilt(points, allowed, (low + high) / 2)


def _tilt(points: Numbers, allowed: NDArray[np.bool_], curvature: Numbers) -> Numbers:
    """Per line, chances proportional to exp(tilt x - curvature x**2) whose mean is 0."""
    low, high = np.full(len(allowed), -80.0), np.full(len(allowed), 80.0)
    bent = np.where(allowed, -curvature[:, None] * points**2, -np.inf)
    for _ in range(60):
        middle = (low + high) / 2
        weights = bent + middle[:, None] * points
        chances = np.exp(weights - weights.max(axis=1, keepdims=True))
        above = chances @ points > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found: Numbers = chances / chances.sum(axis=1, keepdims=True)
    return found


def record_keys(table: Table, *, column: str | None, secret: object) -> tuple[Keys, bool]:
    """The key of each row's person, and whether it stays the same in later tables.

    Args:
        table: the rows.
        column: a column of permanent record keys: whole numbers, as random as possible.
        secret: bytes, or the path of a file, from which keys of people are derived.

    Raises:
        SchemaError: nobody can be told, or the column holds no whole numbers.
    """
    if column is not None:
        return _own_keys(table, column), True
    person = table.schema.person
    if secret is None:
        size = len(table) if person is None else len(table.encode(person).values)
        fresh = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64)
        return (fresh if person is None else fresh[table.encode(person).codes]), False
    if person is None:
        raise SchemaError(
            "Keys of people are derived from who they are: name the person column under [table] "
            "person, or give a column of record keys (record_keys, --record-keys)."
        )
    key, encoded = _secret(secret), table.encode(person)
    texts = encoded.values.cast(pa.string()).to_pylist()
    # A keyed hash of every person, once: the one thing here that goes person by person.
    hashes = b"".join(
        hashlib.blake2b(str(text).encode(), digest_size=8, key=key).digest() for text in texts
    )
    return np.frombuffer(hashes, dtype="<u8")[encoded.codes].astype(np.uint64), True


def _own_keys(table: Table, column: str) -> Keys:
    if column not in table.arrow.column_names:
        raise SchemaError(f"The column of record keys '{column}' is not there.")
    values = table.arrow[column]
    if not pa.types.is_integer(values.type) or values.null_count:
        raise SchemaError(
            f"The column of record keys '{column}' must hold whole numbers, and one for every row."
        )
    plain = values.cast(pa.int64(), safe=False).to_numpy().astype(np.uint64)
    # Keys of a few digits would fill a few words only: they are spread over all.
    found = plain * np.uint64(0x9E3779B97F4A7C15)
    found ^= found >> np.uint64(29)
    spread: Keys = found * np.uint64(0xBF58476D1CE4E5B9)
    spread ^= spread >> np.uint64(32)
    if table.schema.person is None:
        return spread
    # Somebody with several rows has one key, whichever of them a cell holds.
    codes = table.encode(table.schema.person).codes
    own = np.full(int(codes.max(initial=-1)) + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(own, codes, spread)
    return own[codes]


def _secret(given: object) -> bytes:
    if isinstance(given, bytes):
        found = given
    else:
        try:
            found = usable_path(str(given)).read_bytes().strip()
        except OSError:
            raise InputError("The file of the secret cannot be read: give its path.") from None
    if len(found) < _LEAST:
        raise InputError(f"The secret is shorter than {_LEAST} bytes: use a longer random one.")
    return hashlib.blake2b(found, digest_size=32).digest()


def cell_keys(cells: NDArray[np.int64], keys: Keys, size: int) -> Keys:
    """The key of every cell: the sum of its records' keys modulo 2**64."""
    order = np.argsort(cells, kind="stable")
    found = np.zeros(size, np.uint64)
    if len(order):
        # Overflow is meant: keys add up modulo 2**64, in whatever order.
        sums = np.cumsum(keys[order], dtype=np.uint64)
        ends = np.searchsorted(cells[order], np.arange(size), side="right")
        upto = np.concatenate([np.zeros(1, np.uint64), sums])[ends]
        found = np.diff(np.concatenate([np.zeros(1, np.uint64), upto]))
    return found
