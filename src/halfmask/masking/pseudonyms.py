"""Pseudonyms: identifiers become tokens by a keyed hash. This is never anonymous.

Definition: the first 128 bits of HMAC-SHA-256(key, column, value), written as hexadecimal digits.
Source: Krawczyk, Bellare and Canetti, "HMAC: keyed-hashing for message authentication", 1997;
    Article 29 Working Party, Opinion 05/2014.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError
from halfmask.masking.mask import (
    MaskStep,
    MaskWords,
    Outcome,
    anything,
    one_column,
    register_mask,
    secret,
)
from halfmask.release.masked import PseudonymClaim
from halfmask.release.pseudonyms import key_bytes, keyed_tokens

if TYPE_CHECKING:
    from halfmask.masking.mask import Rows
    from halfmask.table.table import Table

_FEW = 50  # values of a column that is no identifier, below which tokens are told by their counts


@register_mask
@dataclass(frozen=True, slots=True)
class Pseudonym(MaskStep):
    """Replace identifiers by tokens that need the ``key`` to be made again.

    The same value gets the same token under the same key. Tokens leave labelled as pseudonyms:
    whoever has the key can find everybody, and rows of one person stay together.

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
        "Identifiers become tokens by a keyed hash.",
        "Reading a name or number of a person, for whoever lacks the key.",
        "Almost everything: the rows are not anonymous, those of one person stay together.",
    )

    column: str = field(metadata=one_column())
    key: Any = field(default=None, metadata=secret(), repr=False)
    key_file: str | None = field(default=None, metadata=anything())

    def require(self) -> None:
        """Demand a key that cannot be guessed."""
        if self.key is None and self.key_file is None:
            raise InputError(
                "pseudonym needs a key: give key= (or key-file=) of at least 16 random bytes; "
                "without one, tokens of a small domain are found by trying all values."
            )
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
        tokens = pa.array(
            keyed_tokens(key_bytes(self.key, self.key_file), self.column, held), pa.string()
        )
        missing = encoded.codes >= len(held)
        codes = pa.array(np.where(missing, 0, encoded.codes), mask=missing)
        taken = tokens.take(codes) if len(held) else pa.nulls(len(codes), pa.string())
        return Outcome(
            {self.column: taken},
            claims=(PseudonymClaim(self.column),),
            notes=(
                f"Column '{self.column}' holds pseudonyms: these rows are not anonymous. Whoever "
                "has the key can find everybody.",
            ),
        )
