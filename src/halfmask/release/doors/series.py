"""A series of releases: its ledger, and its door, where everybody hides among the same values.

The ledger holds no rows. People stand in it as keyed hashes, each with a signature: the set of
values of their class, which is the same in every release. Whoever reads the file learns how many
people were in which release; with its salt (in the file) and, where it is sealed with a key, that
key, also whether a certain person was, and among which values this person hides. It never holds the
value of a person. Values are those that were published.

At the door everything is read again from the rows that would leave and from the ledger's file:
every class, counterfeits among it, holds m values, none of them twice, and they are the signature
that each of its people has in the ledger. The release is noted before it leaves.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, InternalError, LedgerError
from halfmask.ledger import RELEASE, SERIES, LedgerFile, decode_numbers, encode_numbers
from halfmask.metrics.risk.reidentification import reidentification
from halfmask.models.verdict import Verdict
from halfmask.release.demands import enforce_demands, order_notes
from halfmask.release.document import column_changes
from halfmask.release.files import kept_columns, types_of_rows
from halfmask.release.labels import decode_labels, decoded_type, encode_labels
from halfmask.release.partition import ClassSizes, PublishedColumns, table_loss
from halfmask.release.record import released_schema
from halfmask.release.release import DOOR, Release, SealedGuarantee
from halfmask.release.verification import (
    recheck_models,
    require_cover,
    require_own_values,
    require_round_bounds,
    require_shared_values,
    require_verdicts,
    secret_order,
)
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.ledger import Change, LedgerRecord
    from halfmask.release.candidate import SeriesCandidate
    from halfmask.table.table import Table

    Hashes = NDArray[np.uint64]
    Numbers = NDArray[np.uint32]
    Label = str | None
    Signature = frozenset[Label]


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

        The file may hold answers and a budget too, and may have been made by them.

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
        return self.file.hashes(self.salt, map(canonical, people))

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

    def require_releases(self) -> None:
        """Refuse a ledger in which there is no series.

        Raises:
            InputError: there is no such file, or nothing was released with it.
        """
        if not self.file.path.exists():
            raise InputError(
                f"There is no file {self.file.path.name!r}: give the ledger that anonymize made "
                "with previous=."
            )
        if not self.releases:
            raise InputError(
                f"The ledger {self.file.path.name!r} keeps no series of releases: give one that "
                "anonymize made with previous=."
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

    def _take(self, records: Sequence[LedgerRecord]) -> None:
        for record in records:
            body = record.body if record.kind in (SERIES, RELEASE) else {}
            if record.kind == SERIES:
                self.salt, self.terms = bytes.fromhex(body["salt"]), body["terms"]
            elif record.kind == RELEASE:
                self.values += body["values"]
                self.signatures += [tuple(one) for one in body["signatures"]]
                people = decode_numbers(body["people"], "<u8").astype(np.uint64)
                signature, classes = (
                    decode_numbers(body[n], "<u4") for n in ("signature", "class")
                )
                held = (body["rows"], body["counterfeits"], body["digest"])
                self.releases.append(ReleasedPeople(people, signature, classes, *held))
                self.seal = record.seal
        if not self.salt:  # a ledger of answers or of a budget, in which a series may begin
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
    texts = [pc.fill_null(decode_labels(rows[name]).cast(pa.string()), "\x01") for name in
             sorted(rows.column_names)]  # fmt: skip
    joined = pc.binary_join_element_wise(*texts, "\x00").combine_chunks()
    ordered = joined.take(pc.sort_indices(joined))
    return hashlib.sha256("\x02".join(ordered.to_pylist()).encode()).hexdigest()


def _places(ordered: Hashes, some: Any) -> NDArray[np.int64]:
    """Where each of some hashes stands among ascending ones; -1: nowhere."""
    some = np.atleast_1d(some)
    if not len(ordered):
        return np.full(len(some), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, some), len(ordered) - 1)
    return np.where(ordered[at] == some, at, -1)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class SeriesRelease(Release):
    """One release of a series.

    Attributes:
        number: the how manieth it is, from 1.
        counterfeits: how many of its rows stand for nobody.
    """

    kind: ClassVar[str] = "release"

    number: int
    counterfeits: int

    def _facts(self) -> dict[str, Any]:
        facts = super(SeriesRelease, self)._facts()
        people = self.rows - self.counterfeits + self.suppressed
        facts["rows"] |= {
            "original": people,
            "counterfeits": self.counterfeits,
            "suppressed_share": self.suppressed / people,
        }
        return facts | {"series": {"release": self.number, "counterfeits": self.counterfeits}}


def seal_series(candidate: SeriesCandidate, names: Sequence[str]) -> SeriesRelease:
    """Check a release of a series and note it in its ledger.

    Raises:
        InternalError: a promise is not kept, or somebody's signature changed; nothing leaves.
        LedgerError: another release was noted meanwhile.
    """
    table, partition = candidate.table, candidate.partition
    if set(names) != {*table.schema.quasi, candidate.invariance.column}:
        raise InternalError("A release of a series holds quasi-identifiers and one column.")
    kept = np.arange(len(table))
    quasi, signatures = _check_series(candidate, kept)
    found, groups = recheck_models(candidate.models, quasi, table, kept, partition)
    require_verdicts(found, expected=len(kept))
    own = enforce_demands(table, kept, groups, candidate.models, candidate.demands)
    rows = _rows(candidate, names, quasi, kept)
    found_columns = PublishedColumns.of(partition, table, candidate.step)
    losses = found_columns.losses
    weights = {name: table.schema.columns[name].weight for name in losses}
    everybody = len(table) + candidate.left_out
    whole = {n: (one * len(table) + candidate.left_out) / everybody for n, one in losses.items()}
    columns = column_changes(table, rows, replace(found_columns, losses=whole))
    given = table.given
    if candidate.left_out:
        rows, given = types_of_rows(rows, table, kept_columns(columns))
    kinds = dict(zip(rows.column_names, rows.schema.types, strict=True))
    number = _note(candidate, kept, signatures, digest_of(rows))
    sizes = np.bincount(_labels_of(candidate)).astype(np.int64)
    return SeriesRelease(
        guarantee=SealedGuarantee(
            verdicts=(_verdict(candidate, signatures, len(rows)), *found),
            models=(candidate.invariance, *candidate.models),
            demands=own,
        ),
        method="m-invariance",
        parameters=dict(candidate.parameters),
        notes=order_notes(own, _notes(candidate, number, len(rows))),
        loss=table_loss(whole, weights),
        suppressed=candidate.left_out,
        classes=ClassSizes.of(sizes[sizes > 0]),
        risk=reidentification(*(np.bincount(groups).astype(np.int64),) * 2),
        columns=columns,
        schema=released_schema(table.schema, columns, kinds),
        origin=table.origin,
        given=given,
        number=number,
        counterfeits=len(candidate.counterfeits[0]),
        _arrow=rows,
        door=DOOR,
    )


def _check_series(
    candidate: SeriesCandidate, kept: NDArray[np.int64]
) -> tuple[pa.Table, list[Signature]]:
    """The labels that leave and the values of each class, after both were checked.

    Raises:
        InternalError: a label shows more than it may, or a class holds too few values.
    """
    table, step, partition = candidate.table, candidate.step, candidate.partition
    models, floor = candidate.models, candidate.invariance.m
    if (
        step.shape != (len(table),)
        or not len(kept)
        or not (0 <= step.min() <= step.max() < len(partition))
    ):
        raise InternalError("The candidate's classes do not match the table's rows.")
    quasi = partition.published(table, step)
    require_cover(partition, table, quasi, step)
    require_own_values(partition, table, quasi, kept, models)
    require_round_bounds(partition, table, quasi, kept, models, floor=floor)
    # Where all others of a class are counterfeits, its labels are one person's own values.
    require_shared_values(table, quasi, kept, models, floor)
    return quasi, _signatures(*_members(candidate, kept), floor)


def _verdict(candidate: SeriesCandidate, signatures: list[Signature], rows: int) -> Verdict:
    """What was found of the signatures of all classes."""
    return Verdict(
        candidate.invariance.name,
        holds=True,
        required=candidate.invariance.m,
        achieved=min(map(len, signatures)),
        failing_classes=0,
        failing_rows=0,
        classes=len(signatures),
        rows=rows,
        column=candidate.invariance.column,
    )


def _notes(candidate: SeriesCandidate, number: int, rows: int) -> tuple[str, ...]:
    fake = len(candidate.counterfeits[0])
    return (
        f"This is release {number} of a series: everybody in it hides among the same values as in "
        "all releases before.",
        f"{fake:,} of the {rows:,} rows are counterfeits, which stand for nobody: counts are "
        "higher by as many."
        if fake
        else "No row is a counterfeit: each stands for a person.",
        *candidate.notes,
    )


def _members(
    candidate: SeriesCandidate, kept: NDArray[np.int64]
) -> tuple[NDArray[np.int64], pa.Array]:
    """The class and the value of every row that would leave, counterfeits last."""
    table, (fake, texts) = candidate.table, candidate.counterfeits
    if len(fake) != len(texts) or (len(fake) and fake.max() >= len(candidate.partition)):
        raise InternalError("The counterfeits do not match the classes.")
    own = encode_labels(table.arrow[candidate.invariance.column]).cast(pa.string())
    values = pa.concat_arrays([own.take(pa.array(kept)), pa.array(list(texts), pa.string())])
    return np.concatenate([candidate.step[kept], fake]).astype(np.int64), values


def _signatures(ids: NDArray[np.int64], values: pa.Array, m: int) -> list[Signature]:
    """The set of values of each class that has rows, by its number; empty for the others."""
    grouped = pa.table({"class": ids, "value": values}).group_by("class")
    lists = grouped.aggregate([("value", "list")])
    out: list[Signature] = [frozenset()] * (int(ids.max()) + 1)
    for number, held in zip(
        lists["class"].to_pylist(), lists["value_list"].to_pylist(), strict=True
    ):
        out[number] = frozenset(held)
        if len(out[number]) != len(held):
            raise InternalError("A class holds a value twice; nothing was released.")
        if len(held) < m:
            raise InternalError("A class holds fewer values than promised; nothing was released.")
    if not all(out):
        raise InternalError("A class has no rows; nothing was released.")
    return out


def _note(
    candidate: SeriesCandidate,
    kept: NDArray[np.int64],
    signatures: list[Signature],
    digest: str,
) -> int:
    """Hold the classes against the ledger and note the release; gives its number."""
    table, ledger = candidate.table, candidate.ledger
    people = table.arrow[str(table.schema.person)].take(pa.array(kept)).to_pylist()
    hashes = ledger.hashes(people)
    order = np.argsort(hashes)
    if len(np.unique(hashes)) != len(hashes):
        raise InternalError("Somebody stands in two rows; nothing was released.")
    if not ledger.file.path.exists():
        if ledger.releases:
            raise LedgerError("The ledger of the series is gone; nothing was released.")
        ledger.file.create()
    with ledger.file.change() as change:
        records = change.of(RELEASE)
        if (records[-1].seal if records else "") != ledger.seal:
            raise LedgerError(
                "Another release was noted in the ledger meanwhile; nothing was released. Ask "
                "again, to be compared with it."
            )
        values, known = _read(records)
        classes = candidate.step[kept]
        _require_invariant(records, known, hashes, signatures, classes)
        place = {value: number for number, value in enumerate(values)}
        fresh = [v for one in dict.fromkeys(signatures) for v in one if v not in place]
        for value in dict.fromkeys(fresh):
            place[value] = len(place)
        numbered = {one: number for number, one in enumerate(known)}
        more = [one for one in dict.fromkeys(signatures) if one not in numbered]
        for one in more:
            numbered[one] = len(numbered)
        of_class = np.array([numbered[one] for one in signatures], dtype=np.int64)
        ledger.append(
            change,
            {
                "terms": terms_of(table, candidate.invariance.column),
                "values": list(dict.fromkeys(fresh)),
                "signatures": [sorted(place[value] for value in one) for one in more],
                "people": encode_numbers(hashes[order], "<u8"),
                "signature": encode_numbers(of_class[classes[order]], "<u4"),
                "class": encode_numbers(classes[order], "<u4"),
                "rows": len(kept) + len(candidate.counterfeits[0]),
                "counterfeits": len(candidate.counterfeits[0]),
                "digest": digest,
            },
        )
        return len(records) + 1


def _read(records: Sequence[LedgerRecord]) -> tuple[list[Label], list[Signature]]:
    """The values and the signatures of all releases before."""
    values: list[Label] = []
    known: list[Signature] = []
    for record in records:
        body = record.body
        values += body["values"]
        known += [frozenset(values[place] for place in one) for one in body["signatures"]]
    return values, known


def _require_invariant(
    records: Sequence[LedgerRecord],
    known: list[Signature],
    hashes: NDArray[np.uint64],
    signatures: list[Signature],
    classes: NDArray[np.int32],
) -> None:
    """Demand that everybody has the signature of every release before that held them."""
    number = {one: place for place, one in enumerate(known)}
    mine = np.array([number.get(one, -1) for one in signatures], dtype=np.int64)[classes]
    now = pa.table({"person": hashes, "now": mine})
    for record in records:
        body = record.body
        before = pa.table(
            {
                "person": decode_numbers(body["people"], "<u8").astype(np.uint64),
                "before": decode_numbers(body["signature"], "<u4").astype(np.int64),
            }
        )
        both = now.join(before, "person", join_type="inner")
        changed = int(np.count_nonzero(both["now"].to_numpy() != both["before"].to_numpy()))
        if changed:
            raise InternalError(
                f"{changed:,} people would hide among other values than before; nothing was "
                "released."
            )


def _rows(
    candidate: SeriesCandidate, names: Sequence[str], quasi: pa.Table, kept: NDArray[np.int64]
) -> pa.Table:
    """The rows that leave, counterfeits among them, in an order that tells nothing."""
    table, (fake, texts) = candidate.table, candidate.counterfeits
    column = candidate.invariance.column
    first = np.full(len(candidate.partition), -1, dtype=np.int64)
    first[candidate.step[kept]] = np.arange(len(kept))
    if len(fake) and first[fake].min() < 0:
        raise InternalError("A counterfeit stands in a class without people.")
    places = np.concatenate([np.arange(len(kept)), first[fake]])
    order = secret_order(len(places))
    arrays = {}
    for name in names:
        if name == column:
            own = table.arrow[name].take(pa.array(kept)).combine_chunks()
            more = pa.array(list(texts), pa.string()).cast(decoded_type(own.type))
            arrays[name] = pa.concat_arrays([*_chunks(decode_labels(own)), more]).take(order)
        else:
            held = quasi[name].take(pa.array(places)).combine_chunks()
            arrays[name] = pa.concat_arrays(_chunks(held)).take(order)
    return pa.table(arrays)


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def _labels_of(candidate: SeriesCandidate) -> NDArray[np.int64]:
    """Per row that leaves, counterfeits among them, a number that equal labels share."""
    same = candidate.partition.same(candidate.table)
    return np.concatenate([same[candidate.step], same[candidate.counterfeits[0]]])
