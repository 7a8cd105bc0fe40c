"""What local suppression claims of rows with blank cells, and whether they keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError, InternalError, PrivacyError
from halfmask.models.verdict import Verdict
from halfmask.table.table import encode_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]


CLAIMS = "claims"  # what the record of a file says of its blank cells
CLAIMED = "local suppression"
_READINGS = ("value", "any")


@dataclass(frozen=True, slots=True)
class WildcardAnonymity:
    """Claims that everybody shares ``columns`` with ``k`` people, a blank cell read as stated."""

    k: int
    columns: tuple[str, ...]
    reading: str

    @property
    def words(self) -> str:
        """What is claimed."""
        how = "a value of its own" if self.reading == "value" else "matching any value"
        names = ", ".join(f"'{name}'" for name in self.columns)
        return f"k-anonymity of {names} with k = {self.k}, a blank cell counting as {how}"

    def to_dict(self) -> dict[str, Any]:
        """What the record of a file says of it."""
        return {"k": self.k, "reading": self.reading, "columns": list(self.columns)}

    @classmethod
    def recorded(cls, schema: Schema) -> tuple[WildcardAnonymity, ...]:
        """What the record of a file says; whoever wrote it may be a stranger.

        Raises:
            InputError: it claims what no release of ours does.
        """
        out = []
        entries = schema.release.get(CLAIMS, ())
        for entry in entries if isinstance(entries, list) else (entries,) if entries else ():
            given = entry if isinstance(entry, Mapping) else {}
            k: Any = given.get("k")
            reading, names = (given.get(n) for n in ("reading", "columns"))
            whole = isinstance(k, int) and not isinstance(k, bool) and k >= 2
            named = isinstance(names, list) and all(isinstance(one, str) for one in names)
            if not whole or reading not in _READINGS or not named or not names:
                raise InputError(
                    "The record of this release is damaged: it speaks of blank cells as halfmask "
                    "does not. Take the released file and its record again, or take claims out of "
                    "the record and say what to check (--k)."
                )
            out.append(cls(k, tuple(names), reading))
        return tuple(out)

    def check(self, rows: Table) -> Verdict:
        """Hold rows to it."""
        short = self.short(rows)
        return Verdict(
            CLAIMED, not short, self.k, self.k if not short else 1, 0, short, 0, len(rows),
            note=self.words,
        )  # fmt: skip

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of the rows that leave."""
        if any(name not in rows.arrow.column_names for name in self.columns):
            raise InternalError("A column that a step speaks of does not leave.")
        short = self.short(rows)
        if short:
            raise PrivacyError(
                f"{short:,} rows would leave with fewer than {self.k} like them: a later step "
                "undid the local suppression. Suppress last."
            )

    def short(self, rows: Table) -> int:
        """How many rows have too few like them."""
        if not self.columns or any(name not in rows.arrow.column_names for name in self.columns):
            return len(rows)
        codes = [encode_column(rows.arrow[name]) for name in self.columns]
        people = people_of(rows)
        block = np.array([one.codes for one in codes]).T.astype(np.int64)
        blank = np.array([one.codes >= len(one.values.drop_null()) for one in codes]).T
        short = np.flatnonzero(people_alike(block, people) < self.k)
        # Matches through blanks are counted in rows, so each person must have one.
        each = people is None or len(np.unique(people)) == len(people)
        if len(short) and self.reading == "any" and each:
            short = short[_matches(block, blank, short) < self.k]
        return len(short)


def people_of(rows: Table) -> Ints | None:
    """Per row, whose it is; None: every row is another person."""
    person = rows.schema.person
    return None if person is None else rows.encode(person).codes.astype(np.int64)


def people_alike(block: Ints, people: Ints | None) -> Ints:
    """Per row, how many people have the same codes, by sorting."""
    group = _number_groups(block, range(block.shape[1]))
    if people is None:
        return np.bincount(group)[group]
    many = int(people.max(initial=0)) + 1
    pairs = np.unique(group * many + people)
    return np.bincount(pairs // many)[group]


def _number_groups(block: Ints, columns: Sequence[int]) -> Ints:
    """Per row a number, the same where rows agree on the columns; column by column, exactly."""
    group = np.zeros(len(block), np.int64)
    size = 1
    for c in columns:
        wide = int(block[:, c].max(initial=0)) + 1
        if size > 2**62 // wide:  # numbered anew before they outgrow their type
            group = np.unique(group, return_inverse=True)[1].reshape(-1)
            size = int(group.max(initial=0)) + 1
        group = group * wide + block[:, c]
        size *= wide
    return np.unique(group, return_inverse=True)[1].reshape(-1)


def _matches(block: Ints, blank: NDArray[np.bool_], short: Ints) -> Ints:
    """For rows ``short``, how many rows agree with them where both show something.

    Rows are put together by what they leave blank; between two such patterns, rows are matched on
    the columns that both show.
    """
    pattern = blank @ (1 << np.arange(blank.shape[1], dtype=np.int64))
    found = np.zeros(len(block), np.int64)
    wanted = np.zeros(len(block), dtype=bool)
    wanted[short] = True
    kinds, place = np.unique(pattern, return_inverse=True)
    members = [np.flatnonzero(place.reshape(-1) == i) for i in range(len(kinds))]
    for a, mine in zip(kinds.tolist(), members, strict=True):
        mine = mine[wanted[mine]]
        if not len(mine):
            continue
        for b, theirs in zip(kinds.tolist(), members, strict=True):
            shown = [c for c in range(block.shape[1]) if not (a | b) >> c & 1]
            if not shown:
                found[mine] += len(theirs)
                continue
            both = np.concatenate([mine, theirs])
            ids = _number_groups(block[both], shown)
            counts = np.bincount(ids[len(mine) :], minlength=int(ids.max()) + 1)
            found[mine] += counts[ids[: len(mine)]]
    return found[short]
