"""The door for a release of a series: nobody hides among other values than before.

Everything is read again from the rows that would leave and from the ledger's file: every class,
counterfeits among it, holds m values, none of them twice, and they are the signature that each of
its people has in the ledger. The release is noted before it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError, LedgerError
from halfmask.ledger import RELEASE
from halfmask.metrics.risk.reidentification import reidentification
from halfmask.models.verdict import Verdict
from halfmask.release.demands import enforce_demands, order_notes
from halfmask.release.document import column_changes
from halfmask.release.labels import as_text
from halfmask.release.partition import ClassSizes, column_loss, table_loss
from halfmask.release.recheck import (
    require_cover,
    require_own_values,
    require_round_bounds,
    require_shared_values,
    require_verdicts,
    secret_order,
    verdicts,
)
from halfmask.release.record import released_schema
from halfmask.release.release import DOOR, Release, SealedGuarantee
from halfmask.release.signatures import digest_of, pack, terms_of, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.ledger import Record
    from halfmask.release.candidate import SeriesCandidate

    Label = str | None
    Signature = frozenset[Label]


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
    table, step, column = candidate.table, candidate.step, candidate.invariance.column
    if set(names) != {*table.schema.quasi, column}:
        raise InternalError("A release of a series holds quasi-identifiers and one column.")
    kept = np.arange(len(table))
    if (
        step.shape != (len(table),)
        or not len(kept)
        or not (0 <= step.min() <= step.max() < len(candidate.partition))
    ):
        raise InternalError("The candidate's classes do not match the table's rows.")
    quasi = candidate.partition.published(table, step)
    require_cover(candidate.partition, table, quasi, step)
    require_own_values(candidate.partition, table, quasi, kept, candidate.models)
    floor = candidate.invariance.m
    require_round_bounds(candidate.partition, table, quasi, kept, candidate.models, floor=floor)
    require_shared_values(table, quasi, kept, candidate.models, floor)
    ids, values = _members(candidate, kept)
    signatures = _signatures(ids, values, candidate.invariance.m)
    found, groups = verdicts(candidate.models, quasi, table, kept, candidate.partition)
    require_verdicts(found, expected=len(kept))
    own = enforce_demands(table, kept, groups, candidate.models, candidate.demands)
    rows = _rows(candidate, names, quasi, kept)
    number = _note(candidate, kept, signatures, digest_of(rows))
    losses = {
        name: column_loss(candidate.partition, table, step, name)
        for name in candidate.partition.columns
    }
    weights = {name: table.schema.columns[name].weight for name in losses}
    everybody = len(table) + candidate.left_out
    whole = {n: (one * len(table) + candidate.left_out) / everybody for n, one in losses.items()}
    columns = column_changes(table, rows, candidate.partition, step, whole)
    fake = len(candidate.counterfeits[0])
    sizes = np.bincount(_labels_of(candidate)).astype(np.int64)
    notes = (
        f"This is release {number} of a series: everybody in it hides among the same values as in "
        "all releases before.",
        f"{fake:,} of the {len(rows):,} rows are counterfeits, which stand for nobody: counts are "
        "higher by as many."
        if fake
        else "No row is a counterfeit: each stands for a person.",
        *candidate.notes,
    )
    verdict = Verdict(
        candidate.invariance.name,
        holds=True,
        required=candidate.invariance.m,
        achieved=min(map(len, signatures)),
        failing_classes=0,
        failing_rows=0,
        classes=len(signatures),
        rows=len(rows),
        column=column,
    )
    return SeriesRelease(
        guarantee=SealedGuarantee(
            verdicts=(verdict, *found),
            models=(candidate.invariance, *candidate.models),
            demands=own,
        ),
        method="m-invariance",
        parameters=dict(candidate.parameters),
        notes=order_notes(own, notes),
        loss=table_loss(whole, weights),
        suppressed=candidate.left_out,
        classes=ClassSizes.of(sizes[sizes > 0]),
        risk=reidentification(*(np.bincount(groups).astype(np.int64),) * 2),
        columns=columns,
        schema=released_schema(table, columns),
        origin=table.origin,
        given=table.given,
        number=number,
        counterfeits=fake,
        _arrow=rows,
        door=DOOR,
    )


def _members(
    candidate: SeriesCandidate, kept: NDArray[np.int64]
) -> tuple[NDArray[np.int64], pa.Array]:
    """The class and the value of every row that would leave, counterfeits last."""
    table, (fake, texts) = candidate.table, candidate.counterfeits
    if len(fake) != len(texts) or (len(fake) and fake.max() >= len(candidate.partition)):
        raise InternalError("The counterfeits do not match the classes.")
    own = as_text(table.arrow[candidate.invariance.column]).cast(pa.string())
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
                "people": pack(hashes[order], "<u8"),
                "signature": pack(of_class[classes[order]], "<u4"),
                "class": pack(classes[order], "<u4"),
                "rows": len(kept) + len(candidate.counterfeits[0]),
                "counterfeits": len(candidate.counterfeits[0]),
                "digest": digest,
            },
        )
        return len(records) + 1


def _read(records: Sequence[Record]) -> tuple[list[Label], list[Signature]]:
    """The values and the signatures of all releases before."""
    values: list[Label] = []
    known: list[Signature] = []
    for record in records:
        body = record.body
        values += body["values"]
        known += [frozenset(values[place] for place in one) for one in body["signatures"]]
    return values, known


def _require_invariant(
    records: Sequence[Record],
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
                "person": unpack(body["people"], "<u8").astype(np.uint64),
                "before": unpack(body["signature"], "<u4").astype(np.int64),
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
            kind = own.type.value_type if pa.types.is_dictionary(own.type) else own.type
            more = pa.array(list(texts), pa.string()).cast(kind)
            plain = own.dictionary_decode() if pa.types.is_dictionary(own.type) else own
            arrays[name] = pa.concat_arrays([*_chunks(plain), more]).take(order)
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
