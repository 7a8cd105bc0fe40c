"""The ledger of a series: for everybody who was ever released, the values they hide among.

It holds no rows. People stand in it as keyed hashes, each with a signature: the set of values of
their class, which is the same in every release. Whoever reads the file learns how many people were
in which release; with its salt (in the file) and, where it is sealed with a key, that key, also
whether a certain person was, and among which values this person hides. It never holds the value of
a person. Values are those that were published.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, LedgerError
from halfmask.ledger import RELEASE, SERIES, LedgerFile
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.ledger import Change, Record
    from halfmask.table.table import Table

    Hashes = NDArray[np.uint64]
    Numbers = NDArray[np.uint32]
    Label = str | None


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedPeople:
    """Who was in one release.

    Attributes:
        people: their hashes, ascending.
        signature: the number of each one's signature; ``classes`` of each one's class.
        rows: how many rows left; ``counterfeits`` how many of them stand for nobody.
        digest: of the rows that left, in whatever order.
    """

    people: Hashes
    signature: Numbers
    classes: Numbers
    rows: int
    counterfeits: int
    digest: str


@dataclass(slots=True, eq=False)
class SeriesLedger:
    """What a series of releases has promised to the people in it.

    Attributes:
        file: where it is kept.
        terms: the columns that all releases have: person, quasi-identifiers, sensitive column.
        values: the values of signatures as text; ``signatures``: each as numbers of values.
        releases: who was in each release, in order.

    Example:
        >>> import tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> len(SeriesLedger.open(folder / "series.ledger").releases)
        0
    """

    file: LedgerFile
    salt: bytes = field(repr=False)
    terms: dict[str, Any] = field(default_factory=dict)
    values: list[Label] = field(default_factory=list, repr=False)
    signatures: list[tuple[int, ...]] = field(default_factory=list, repr=False)
    releases: list[ReleasedPeople] = field(default_factory=list, repr=False)
    seal: str = field(default="", repr=False)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | SeriesLedger,
        key: str | PathLike[str] | None = None,
    ) -> SeriesLedger:
        """The ledger of ``path``; an absent file is one without releases.

        Raises:
            InputError: the file is no ledger.
            LedgerError: it is damaged.
        """
        if isinstance(path, SeriesLedger):
            return path
        file = LedgerFile.at(path, key)
        if not file.path.exists():
            return cls(file, secrets.token_bytes(16))
        found = cls(file, b"")
        try:
            found._take(file.records())
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            if isinstance(error, InputError):
                raise
            raise LedgerError(
                f"The ledger {file.path.name!r} is damaged: a row cannot be read. Nothing was "
                "computed."
            ) from error
        return found

    def hashes(self, people: Iterable[object]) -> Hashes:
        """What some people are known by here."""
        secret = hashlib.blake2b(self.salt + self.file.key, digest_size=32).digest()
        made = b"".join(
            hashlib.blake2b(canonical(one).encode(), key=secret, digest_size=8).digest()
            for one in people
        )
        return np.frombuffer(made, dtype="<u8").astype(np.uint64)

    def holding(self, person: object) -> list[int]:
        """The releases, from 1, that hold a person; to be told when this person is to be deleted.

        A release that has left cannot be called back. The next one simply leaves the person out:
        somebody of the same value, or a counterfeit, takes the place.
        """
        (one,) = self.hashes([person])
        return [n for n, held in enumerate(self.releases, 1) if _places(held.people, one)[0] >= 0]

    def latest(self, people: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The signature and the last class of each of some people; -1 where nobody knows them."""
        signature = np.full(len(people), -1, dtype=np.int64)
        classes = np.full(len(people), -1, dtype=np.int64)
        for place, held in enumerate(self.releases):
            at = _places(held.people, people)
            known = at >= 0
            signature[known] = held.signature[at[known]]
            classes[known] = -1
            if place == len(self.releases) - 1:
                classes[known] = held.classes[at[known]]
        return signature, classes

    def require(self, table: Table, column: str) -> None:
        """Refuse a table that the series is not about.

        Raises:
            InputError: its columns are others.
        """
        stated = terms_of(table, column)
        if self.terms and self.terms != stated:
            odd = next(name for name in stated if stated[name] != self.terms.get(name))
            raise InputError(
                f"The ledger {self.file.path.name!r} is of another table: its {odd} is not that "
                "of this one. Give the ledger of this series, or a new name for a new series."
            )

    def proves(self, releases: Sequence[pa.Table]) -> bool:
        """Whether these are releases of the series, and nobody's signature changed in it."""
        known = {one.digest for one in self.releases}
        if not known:
            return False
        names = [*self.terms["list of quasi-identifiers"], self.terms["sensitive column"]]
        if any(not set(names) <= set(one.column_names) for one in releases):
            return False
        if not {digest_of(one.select(names)) for one in releases} <= known:
            return False
        everybody = np.unique(np.concatenate([one.people for one in self.releases]))
        signature = np.full(len(everybody), -1, dtype=np.int64)
        for one in self.releases:
            at = _places(everybody, one.people)
            before = signature[at]
            if ((before >= 0) & (before != one.signature)).any():
                return False
            signature[at] = one.signature
        return True

    def append(self, change: Change, record: dict[str, Any]) -> None:
        """Note a release; the turn with the file is the caller's."""
        if not change.of(SERIES):
            change.append(SERIES, {"salt": self.salt.hex(), "terms": record["terms"]})
        body = {name: held for name, held in record.items() if name != "terms"}
        change.append(RELEASE, body)

    def _take(self, records: Sequence[Record]) -> None:
        for record in records:
            body = record.body if record.kind in (SERIES, RELEASE) else {}
            if record.kind == SERIES:
                self.salt, self.terms = bytes.fromhex(body["salt"]), body["terms"]
            elif record.kind == RELEASE:
                self.values += body["values"]
                self.signatures += [tuple(one) for one in body["signatures"]]
                people = unpack(body["people"], "<u8").astype(np.uint64)
                signature, classes = (unpack(body[n], "<u4") for n in ("signature", "class"))
                held = (body["rows"], body["counterfeits"], body["digest"])
                self.releases.append(ReleasedPeople(people, signature, classes, *held))
                self.seal = record.seal
        if not self.salt:
            if records:
                raise InputError(
                    f"The ledger {self.file.path.name!r} keeps no series of releases: give one "
                    "that anonymize made with previous=, or a new name."
                )
            self.salt = secrets.token_bytes(16)


def terms_of(table: Table, column: str) -> dict[str, Any]:
    """What all releases of a series have in common."""
    schema = table.schema
    return {
        "person column": schema.person,
        "sensitive column": column,
        "list of quasi-identifiers": list(schema.quasi),
    }


def digest_of(rows: pa.Table) -> str:
    """A digest of rows in whatever order, their columns by name, their values as text."""
    texts = [pc.fill_null(_plain(rows[name]).cast(pa.string()), "\x01") for name in
             sorted(rows.column_names)]  # fmt: skip
    joined = pc.binary_join_element_wise(*texts, "\x00").combine_chunks()
    ordered = joined.take(pc.sort_indices(joined))
    return hashlib.sha256("\x02".join(ordered.to_pylist()).encode()).hexdigest()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def pack(numbers: NDArray[Any], kind: str) -> str:
    """Numbers as text."""
    return base64.b64encode(zlib.compress(numbers.astype(kind).tobytes(), 6)).decode()


def unpack(text: str, kind: str) -> NDArray[Any]:
    """What ``pack`` gave."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind)


def _places(ordered: Hashes, some: Any) -> NDArray[np.int64]:
    """Where each of some hashes stands among ascending ones; -1: nowhere."""
    some = np.atleast_1d(some)
    if not len(ordered):
        return np.full(len(some), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, some), len(ordered) - 1)
    return np.where(ordered[at] == some, at, -1)
