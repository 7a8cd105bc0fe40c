"""Pseudonyms: identifiers become tokens. This is never anonymous.

Definition: by a key, the first 128 bits of HMAC-SHA-256(key, column, value), written as hexadecimal
    digits. By a vault, 128 random bits, which a private file of the controller ties to the value.
Source: Krawczyk, Bellare and Canetti, "HMAC: keyed-hashing for message authentication", 1997;
    Article 29 Working Party, Opinion 05/2014.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, usable_path
from halfmask.masking.step import (
    MaskStep,
    MaskWords,
    Outcome,
    one_column,
    register_mask,
    secret,
    secret_place,
)
from halfmask.release.doors.claims import PseudonymClaim
from halfmask.release.doors.masked import refuse_beside
from halfmask.release.files import folder_lock, private_file
from halfmask.release.pseudonyms import key_bytes, keyed_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from halfmask.masking.step import Rows
    from halfmask.table.table import Table

_FEW = 50  # values of a column that is no identifier, below which tokens are told by their counts


@register_mask
@dataclass(frozen=True, slots=True)
class Pseudonym(MaskStep):
    """Replace identifiers by tokens that need the ``key``, or the ``vault``, to be made again.

    The same value gets the same token under the same key. A ``vault`` is a private file that holds
    a random token for each value, and is made where there is none: tokens follow from nothing, and
    destroying the file leaves nobody who could turn them back. Tokens leave labelled as pseudonyms:
    whoever has key or vault can find everybody, and rows of one person stay together.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"id": ["a", "b"], "age": [1, 2]},
        ...     schema={"table": {"person": "id"}, "columns": {"age": "quasi"}})
        >>> release = hm.mask(people, hm.masks.Pseudonym("id", key=b"at least 16 bytes"))
        >>> len(release.to_arrow()["id"][0].as_py())
        32
    """

    name: ClassVar[str] = "pseudonym"
    identifiers: ClassVar[bool] = True
    words: ClassVar[MaskWords] = MaskWords(
        "Identifiers become tokens, by a keyed hash or from a private vault.",
        "Reading a name or number of a person, for whoever lacks the key or the vault.",
        "Almost everything: the rows are not anonymous, those of one person stay together.",
    )

    column: str = field(metadata=one_column())
    key: Any = field(default=None, metadata=secret(), repr=False)
    key_file: str | None = field(default=None, metadata=secret_place())
    vault: str | None = field(default=None, metadata=secret_place())

    def require(self) -> None:
        """Demand a key that cannot be guessed, or a vault."""
        if self.key is None and self.key_file is None and self.vault is None:
            raise InputError(
                "pseudonym needs a key: give key= (or key-file=) of at least 16 random bytes, or "
                "vault=, a private file of random tokens; without one, tokens of a small domain "
                "are found by trying all values."
            )
        if self.vault is not None and (self.key is not None or self.key_file is not None):
            raise InputError("pseudonym takes a key or a vault, and not both.")
        if self.key is not None:
            key_bytes(self.key, None)

    def faults(self, table: Table) -> list[str]:
        """Refuse columns whose few values are told by how often they occur, and demands."""
        if self.column in table.schema.policy_names:
            return [f"column '{self.column}' holds people's demands, which never leave."]
        if self.column in table.schema.private:
            return []
        few = len(table.encode(self.column).values)
        if few < _FEW:
            return [
                f"column '{self.column}' has {few} values: tokens of so few are told by how often "
                "they occur. Generalize or suppress it instead."
            ]
        return []

    def apply(self, rows: Rows) -> Outcome:
        """Replace the values."""
        encoded = rows.table.encode(self.column)
        held = encoded.values.drop_null()
        place = None if self.vault is None else vault_place(self.vault)
        if place is not None:
            found = vault_tokens(place, self.column, held)
        else:
            found = keyed_tokens(key_bytes(self.key, self.key_file), self.column, held)
        tokens = pa.array(found, pa.string())
        missing = encoded.codes >= len(held)
        codes = pa.array(np.where(missing, 0, encoded.codes), mask=missing)
        taken = tokens.take(codes) if len(held) else pa.nulls(len(codes), pa.string())
        return Outcome(
            {self.column: taken},
            claims=(PseudonymClaim(self.column, place),),
            notes=(
                f"Column '{self.column}' holds pseudonyms: these rows are not anonymous. Whoever "
                f"has the {'key' if self.vault is None else 'vault'} can find everybody.",
            ),
        )


_FORMAT = "halfmask.vault/1"
_OTHERS = 0o077  # rights of anybody but the owner


def vault_place(path: str | Path) -> Path:
    """Where the vault itself stands, whatever links lead to it: there it is locked and written.

    Raises:
        InputError: nothing can stand there.
    """
    try:
        return usable_path(path).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # no home, or links in a circle
        raise InputError(f"The vault {str(path)!r} leads nowhere: name a file.") from error


def vault_tokens(path: str | Path, column: str, values: pa.Array) -> list[str]:
    """A token for each of the distinct values: that of the vault, or a new one that it then holds.

    Raises:
        InputError: others may read the vault, or it is none.
    """
    place = vault_place(path)
    with folder_lock(place.parent):
        vault = _read_vault(place)
        held = vault.setdefault(column, {})
        texts = [str(one) for one in values.cast(pa.string()).to_pylist()]
        fresh = [text for text in texts if text not in held]
        held.update({text: secrets.token_hex(16) for text in fresh})
        if fresh:  # before anything leaves: a token that nobody can turn back is lost
            with private_file(place) as temporary:
                document = {"format": _FORMAT, "columns": vault}
                temporary.write_text(json.dumps(document), encoding="utf-8")
        return [held[text] for text in texts]


def _read_vault(place: Path) -> dict[str, dict[str, str]]:
    """The tokens by column and value; none where there is no file yet."""
    try:
        if place.is_dir():
            raise InputError(f"The vault {str(place)!r} is a folder: name a file.")
        if not place.exists():
            return {}
        if not place.is_file():
            raise InputError(f"The vault {str(place)!r} is no file: name another one.")
        if place.stat().st_mode & _OTHERS:
            raise InputError(
                f"Others may read the vault {str(place)!r}: make it yours alone (chmod 600), and "
                "take its tokens for known."
            )
        content = place.read_bytes()
    except OSError as error:
        why = error.strerror or "no access"
        raise InputError(f"The vault {str(place)!r} cannot be read: {why}.") from error
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise InputError(f"{str(place)!r} is no vault of tokens: name another file.")
    columns = document.get("columns")
    if not isinstance(columns, dict) or not all(map(_are_tokens, columns.values())):
        raise InputError(
            f"The vault {str(place)!r} is damaged: each value of a column needs one token of its "
            "own, of 32 hexadecimal digits. Take its last copy."
        )
    return columns


def _are_tokens(held: object) -> bool:
    """Whether a column of a vault ties each of its values to a token of its own."""
    if not isinstance(held, dict) or not all(isinstance(one, str) for one in held.values()):
        return False
    well = all(re.fullmatch("[0-9a-f]{32}", one) for one in held.values())
    return well and len(set(held.values())) == len(held)


def refuse_near_vault(steps: Sequence[object], output: str | None) -> None:
    """Refuse, before a vault is made, what ``MaskedRelease.write`` would refuse.

    Raises:
        InputError: a vault of the steps and the release stand in one folder.
    """
    stated = [vault for one in steps if (vault := getattr(one, "vault", None)) is not None]
    if output is not None:
        refuse_beside([vault_place(vault) for vault in stated], output)
