"""Pseudonyms: tokens by a keyed hash, and what they tie together.

A release in which tokens tie the rows of a person together keeps a promise only if it holds for
these rows together; see ``tied_classes``.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError, PrivacyError, SchemaError, usable_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from halfmask.models.verdict import Verdict
    from halfmask.table.table import Table

_LEAST = 16  # bytes of a key
_DIGITS = 32


def key_bytes(key: Any, file: str | Path | None) -> bytes:
    """The secret key as it was given, or from its file.

    Raises:
        ParameterError: it is too short, or neither bytes nor text.
        InputError: the file cannot be read.
    """
    if key is None and file is not None:
        try:
            key = usable_path(file).read_bytes().strip()
        except FileNotFoundError:
            raise InputError(
                f"There is no key file {str(file)!r}: make one first, as by python -c 'import "
                f"secrets; print(secrets.token_hex())' > {file}, and keep it to yourself."
            ) from None
        except OSError as error:
            why = error.strerror or "no access"
            raise InputError(f"The key file {str(file)!r} cannot be read: {why}.") from error
    found = key.encode() if isinstance(key, str) else key
    if not isinstance(found, bytes | bytearray) or len(found) < _LEAST:
        raise ParameterError("key", "***", f"at least {_LEAST} random bytes")
    return bytes(found)


def keyed_tokens(key: bytes, label: str, values: pa.Array) -> list[str]:
    """A token for each of the distinct values, which must not be missing."""
    own = hmac.digest(key, label.encode(), "sha256").ljust(64, b"\0")
    # HMAC written out: for a million values, less than half the time of asking hmac for each.
    inner, outer = (bytes(one ^ pad for one in own) for pad in (0x36, 0x5C))
    texts = values.cast(pa.string()).cast(pa.binary()).to_pylist()
    return [sha256(outer + sha256(inner + text).digest()).hexdigest()[:_DIGITS] for text in texts]


def person_tokens(table: Table, key: bytes, rows: NDArray[np.int64]) -> pa.Array:
    """The pseudonym of the person of each of ``rows``.

    Raises:
        SchemaError: no column says whose rows these are, or some are nobody's.
    """
    name = table.schema.person
    if name is None:
        raise SchemaError(
            "Pseudonyms keep a person's rows together: name the person column under [table] person."
        )
    people = table.encode(name)
    if people.values.null_count:
        raise SchemaError(f"Column '{name}' is missing in some rows: say whose they are.")
    return pa.array(keyed_tokens(key, name, people.values), pa.string()).take(
        pa.array(people.codes[rows])
    )


def tied_classes(ids: NDArray[Any], who: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The classes of rows that are alike, of people whose rows are alike all together.

    Where a token ties the rows of a person together, whoever knows some of them finds the others:
    nobody hides among people who have other rows, or more of them. And of these people's rows only
    those that are like the row itself hide what it tells.

    Args:
        ids: the class of each row that leaves.
        who: whose row it is.
    """
    if not len(who) or len(ids) == len(np.unique(who)):  # one row each: nothing is tied
        alone, of_row = np.unique(ids, return_inverse=True)
        return of_row.reshape(-1), len(alone)
    order = np.lexsort((ids, who))
    texts = pa.array(ids[order]).cast(pa.string())
    people, starts = np.unique(who[order], return_index=True)
    offsets = np.append(starts, len(ids)).astype(np.int32)
    together = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), " ").dictionary_encode()
    of_person = together.indices.to_numpy().astype(np.int64)
    pairs = of_person[np.searchsorted(people, who)] << 32 | ids
    found, of_row = np.unique(pairs, return_inverse=True)
    return of_row.reshape(-1), len(found)


def require_tied(found: Sequence[Verdict]) -> None:
    """Let no token leave that ties rows together which only fewer people share than promised.

    Raises:
        PrivacyError: a promise does not hold for a person's rows taken together.
    """
    broken = [verdict for verdict in found if not verdict.holds]
    if broken:
        one = broken[0]
        raise PrivacyError(
            f"Pseudonyms would tie a person's rows together, and then {one.model} does not hold: "
            f"{one.failing_rows:,} rows are of people whose rows, taken together, too few others "
            "share. Leave the pseudonym out, promise less, or give fewer columns or one row per "
            "person."
        )
