"""Filtering inside a cell: the stages of ``hm.query`` after collection, on decrypted groups.

The answer is checked and sealed by the same door as any other, padded to a size that the terms
fix, signed by the cell that made it and encrypted to the asker.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.dp.sampling import Sampler
from halfmask.errors import RoomError, TamperedMessageError
from halfmask.protocol.contribution import PEOPLE, debias
from halfmask.protocol.crypto import open_sealed, seal_for
from halfmask.protocol.filtering import add_noise, noise_words, recode_locally
from halfmask.protocol.keys import PROOF
from halfmask.protocol.publication import release_rows
from halfmask.protocol.records import sketches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.engines.request import GroupMeasure, Request
    from halfmask.protocol.cell_plan import CellPlan
    from halfmask.protocol.keys import CellGroup, CellKey
    from halfmask.protocol.records.layout import ContributionCount, RecordLayout, Records
    from halfmask.query.groups import Groups
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.semantics import PublishedRows
    from halfmask.release.release import Answer

SKETCHED = "Distinct values beyond 255 are counted by a sketch: at least so many, almost surely."
NOISY = "Counts are estimates: people reported their groups by chance, under epsilons of their own."
_HEAD = struct.Struct(">QQQQ")


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Stands where the stages of a query expect an engine; all it can do is read its records."""

    groups: pa.Table
    layout: RecordLayout
    records: Records
    name: str = "cells"

    def measure(self, _: Request, places: pa.Table, asked: Sequence[GroupMeasure]) -> pa.Table:
        return sketches.measure_records(self.layout, self.records, self.groups, places, asked)


@dataclass(frozen=True, eq=False)
class ReceivedAnswer:
    """What an asker gets from one group of cells.

    Attributes:
        rows: the selected columns, ``level`` and ``guarantee``.
        document: what else is known of the answer.
        contributions: how many cells took part, dummies included.
        void: how many more contributions came without a credential, and count for nothing.
    """

    rows: pa.Table
    document: dict[str, Any]
    contributions: int
    void: int = 0

    def __repr__(self) -> str:
        return f"Received({self.rows.num_rows:,} rows from {self.contributions:,} cells)"


def filter_cells(
    made: CellPlan, found: Records, sampler: Sampler
) -> tuple[pa.Table, dict[str, Any]]:
    """The rows that leave, of an answer or a release, and what the asker is told of them."""
    if made.shown is not None:
        return release_rows(made, found)
    done = answer_cells(made, found, sampler)
    return done.to_arrow(), document_of(made, done)


def answer_cells(made: CellPlan, found: Records, sampler: Sampler | None = None) -> Answer:
    """Filter groups, aggregate what may be published, and pass it through the door.

    Args:
        made: the question made ready.
        found: the groups.
        sampler: the source of noise, where the question asks for some at filtering.
    """
    from halfmask.query.aggregate import aggregate
    from halfmask.query.answer_columns import Figures
    from halfmask.query.groups import groups_of
    from halfmask.query.run import candidate_of, level_steps
    from halfmask.query.semantics import choose_levels, publish_groups
    from halfmask.release.seal import seal

    plan = made.plan
    request = plan.request
    if made.layout.noisy:
        found = debias(made.layout, found)
        plan = replace(plan, notes=(*plan.notes, NOISY))
    if made.terms.epsilon:
        found = add_noise(made.layout, found, made.terms.epsilon, sampler or Sampler())
        plan = replace(plan, notes=(*plan.notes, noise_words(made.terms.epsilon)))
    decoded = made.layout.decode(found, request.tests, request.states)
    groups = groups_of(plan, decoded)
    choice = choose_levels(groups, plan.semantics)
    steps = level_steps(plan)
    if made.terms.local:
        local = recode_locally(plan, groups, choice)
        plan, steps, groups, choice = local.plan, local.steps, local.groups, local.choice
        decoded = local.place_groups(decoded)
    published = publish_groups(groups, choice)
    engine: Any = _Cells(decoded, made.layout, found)
    if made.layout.sketches and sketches.is_estimate(made.layout, found):
        plan = replace(plan, notes=(*plan.notes, SKETCHED))
    rows = aggregate(plan, groups, published, engine)
    figures = Figures(_without_few_missing(plan, groups, published, rows))
    candidate = candidate_of(plan, groups, choice, published, figures, engine, second_look=False)
    return seal(replace(candidate, steps=steps))


def _without_few_missing(
    plan: GuaranteePlan, groups: Groups, published: PublishedRows, rows: pa.Table
) -> pa.Table:
    """Counts of a column's values are null where too few people have a row without one."""
    import numpy as np
    import pyarrow.compute as pc
    from sqlglot import exp

    from halfmask.protocol.cell_plan import absence
    from halfmask.query.aggregate import merge_states

    states = [state.expression for state in plan.request.states]
    merged = merge_states(plan, groups, published) if len(published) else {}
    for i, aggregate in enumerate(plan.aggregates):
        counted = aggregate.kind in ("count", "distinct") and aggregate.states != (-1,)
        if not merged or not counted:
            continue
        of = (
            plan.request.states[aggregate.states[0]].expression
            if aggregate.measure is None
            else plan.measures[aggregate.measure].expression
        )
        if not isinstance(of, exp.Column) or absence(of) not in states:
            continue
        lacking = merged[f"s{states.index(absence(of))}"].to_pylist()
        people = np.asarray(lacking, dtype=np.int64)
        k = np.array([g[0] for g in plan.request.guarantees], dtype=np.int64)[published.level]
        # All people less those with a value are those without one: the count would tell of these
        # few.
        few = pa.array((people > 0) & (people < k))
        at = rows.column_names.index(f"a{i}")
        rows = rows.set_column(at, f"a{i}", pc.if_else(few, None, rows[f"a{i}"]))
    return rows


def document_of(made: CellPlan, done: Answer) -> dict[str, Any]:
    """What an asker is told of an answer beside its rows.

    How many people stand behind it, and all that follows from that, only where the question counts
    people: only then the ledgers of cells know that they were counted.
    """
    document = done.to_dict()
    if PEOPLE in made.aggregated:
        return document
    nothing = {"people": None, "depth": None, "gap": None}
    return document | nothing | {"withheld": dict.fromkeys(document["withheld"])}


def envelope(
    rows: pa.Table,
    told: Mapping[str, Any],
    tally: ContributionCount,
    *,
    size: int,
    query: bytes,
    box: bytes,
    signer: CellKey,
) -> bytes:
    """An answer of one size whatever it says, signed by a cell and readable by the asker.

    Raises:
        RoomError: the answer is larger than that.
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    table = sink.getvalue().to_pybytes()
    document = json.dumps(told, default=str).encode()
    counts = tally.contributions - tally.void, tally.void
    plain = _HEAD.pack(len(table), len(document), *counts) + table + document
    if len(plain) > size:
        raise RoomError("The answer is larger than its query has room for: raise row or room.")
    # Filled up: its length tells the relay nothing of the answer.
    plain += bytes(size - len(plain))
    return seal_for(box, query, signer.prove(b"answer" + query + plain) + plain)


def read_envelope(sealed: bytes, *, query: bytes, box: bytes, members: CellGroup) -> ReceivedAnswer:
    """The answer inside.

    Raises:
        TamperedMessageError: not for this asker and query.
        AuthenticationError: not signed by a cell of the group that was asked.
    """
    plain = open_sealed(box, query, sealed)
    proof, body = plain[:PROOF], plain[PROOF:]
    # Signed inside what is encrypted: the relay learns of no cell which answered.
    members.serial(proof, b"answer" + query + body)
    rows, words, contributions, void = _HEAD.unpack_from(body)
    start = _HEAD.size
    try:
        table = pa.ipc.open_stream(pa.BufferReader(body[start : start + rows])).read_all()
        document = json.loads(body[start + rows : start + rows + words])
    except (pa.ArrowInvalid, ValueError):
        raise TamperedMessageError("The answer cannot be read.") from None
    return ReceivedAnswer(table, document, contributions, void)
