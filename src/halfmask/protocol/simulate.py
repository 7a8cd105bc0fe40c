"""A whole query with a million cells in one process, phase by phase.

Every contribution is encoded, sealed for its ticket and opened again, and every task runs the code
that real cells run; what is left out is the way between them. Where not asked for, credentials are
left out too: two signatures to check per contribution, of which real cells share the work and one
process does all. Proofs then are as long, and say nothing.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from halfmask.protocol import answering, merkle
from halfmask.protocol.blueprint import Blueprint, blueprint
from halfmask.protocol.crypto import FrameKey, derive
from halfmask.protocol.keys import PROOF, SERIAL, Members, new_issuer
from halfmask.protocol.messages import Closing
from halfmask.protocol.parties import worker
from halfmask.protocol.schedule import Schedule, Task
from halfmask.protocol.store.home import FileSpill

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from halfmask.protocol.commons import Commons
    from halfmask.protocol.crypto import Address
    from halfmask.protocol.keys import CellKey
    from halfmask.protocol.layout import Records
    from halfmask.protocol.records import Tally
    from halfmask.protocol.terms import Terms
    from halfmask.release.answer import Answer

BATCH = 1 << 18
_NOTHING = bytes(PROOF - SERIAL)


@dataclass(eq=False)
class Simulation:
    """What a simulated query took.

    Attributes:
        seconds: phase to seconds.
        processor: phase to seconds of the processor, whatever else runs beside.
        tasks: kind of task to how many there were.
        traffic: bytes that went through the relay.
        groups: groups before filtering.
        busiest: per kind of task, the longest one.
        credentials: whether they were made and checked.
    """

    cells: int
    answer: Answer
    groups: int
    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    busiest: dict[str, float] = field(default_factory=dict)
    traffic: int = 0
    credentials: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "cells": self.cells,
            "groups": self.groups,
            "rows": len(self.answer),
            "people": self.answer.people,
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
            "processor": {k: round(v, 3) for k, v in self.processor.items()},
            "tasks": self.tasks,
            "traffic": self.traffic,
            "busiest": {k: round(v, 4) for k, v in self.busiest.items()},
            "credentials": self.credentials,
        }


@dataclass(frozen=True, slots=True)
class Anybody:
    """Stands where a credential is expected: proofs of the same length that prove nothing."""

    own: bytes = bytes(SERIAL)

    def prove(self, _: bytes) -> bytes:
        """A serial, and zeros in place of signatures."""
        return self.own + _NOTHING

    def serial(self, proof: bytes, _: bytes) -> bytes:
        """Whatever serial is named."""
        return proof[:SERIAL]


def simulate(
    commons: Commons,
    people: pa.Table,
    text: str,
    terms: Terms,
    *,
    table: str | None = None,
    credentials: bool = False,
) -> Simulation:
    """Answer a question by as many cells as there are rows.

    Args:
        commons: the common schema.
        people: one row per cell; columns ``k`` and ``l`` hold its policy, where it has one.
        text: guaranteed SQL.
        terms: how the work is cut up.
        table: the common table that the rows belong to; the first where there is one only.
        credentials: enroll every cell, sign and check everything.
    """
    query = os.urandom(32)
    issuer = new_issuer()
    secret = issuer.groups[0]
    made = blueprint(commons, text, terms, derive(secret, b"", b"tokens"))
    key = FrameKey(secret, query)
    clock = _Clock()
    cells: Iterator[CellKey | Anybody]
    worker_key: CellKey | Anybody
    judge: worker.Judge
    if credentials:
        enrolled = [issuer.enroll(str(i), 1) for i in range(len(people))]
        cells, worker_key, judge = iter(enrolled), enrolled[0], Members(issuer.public, 0, 0)
        clock.stop("enrollment")
    else:
        cells = (Anybody(i.to_bytes(SERIAL, "big")) for i in range(len(people)))
        worker_key, judge = Anybody(), Anybody()
    given = _collected(made, people, table or next(iter(commons.tables)), key, query, cells)
    clock.stop("collection")
    traffic = (
        sum(len(f) for _, f in given[: terms.partition])
        * len(given)
        // min(len(given), terms.partition)
    )
    run = close(made, terms, key, query, given, worker_key, judge)
    clock.stop("closing")
    run.aggregate()
    clock.stop("aggregation")
    found, _ = run.everything()
    answer = answering.answer(made, found)
    clock.stop("filtering")
    return Simulation(
        len(people),
        answer,
        len(found),
        clock.seconds,
        clock.processor,
        run.tasks,
        run.busiest,
        traffic + run.traffic,
        credentials,
    )


def close(
    made: Blueprint,
    terms: Terms,
    key: FrameKey,
    query: bytes,
    given: list[tuple[bytes, bytes]],
    signer: worker.Signer,
    judge: worker.Judge,
) -> Run:
    """End the collection, as the relay does."""
    given.sort(key=itemgetter(0))
    size = terms.partition
    leaves = [merkle.partition(given[low : low + size]) for low in range(0, len(given), size)]
    root, paths = merkle.root_and_paths(leaves)
    closing = Closing(len(given), root)
    schedule = Schedule(terms, len(given))
    bound = closing.digest(query, 0)
    bench = worker.Bench(made, schedule, closing, key, query, bound, signer, judge)
    return Run(bench, given, paths)


@dataclass(eq=False)
class _Clock:
    """Takes the time of phases, one after the other."""

    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    last: tuple[float, float] = field(
        default_factory=lambda: (time.perf_counter(), time.process_time())
    )

    def stop(self, phase: str) -> None:
        now = (time.perf_counter(), time.process_time())
        self.seconds[phase] = now[0] - self.last[0]
        self.processor[phase] = now[1] - self.last[1]
        self.last = now


def _collected(
    made: Blueprint,
    people: pa.Table,
    table: str,
    key: FrameKey,
    query: bytes,
    cells: Iterator[CellKey | Anybody],
) -> list[tuple[bytes, bytes]]:
    """Every cell's ticket and contribution, sealed for it."""
    size = made.layout.size
    return [
        worker.seal_contribution(
            key,
            query,
            cell.own if isinstance(cell, Anybody) else cell.credential.serial,
            data[at : at + size],
            cell,
        )
        for data in map(made.layout.bytes_of, contributions(made, people, table))
        for at, cell in zip(range(0, len(data), size), cells, strict=False)
    ]


def contributions(made: Blueprint, people: pa.Table, table: str) -> Iterator[Records]:
    """Every cell's record, in batches; those whom WHERE leaves out give a dummy."""
    import numpy as np

    from halfmask.engines.duckdb import DuckDB
    from halfmask.engines.levels import levelled

    request = made.plan.request
    rows_of = levelled(replace(request, demands=_demands(made, people)), made.measured)
    for low in range(0, len(people), BATCH):
        batch = people.slice(low, BATCH)
        engine = DuckDB({table: batch})
        try:
            found = made.layout.encode(engine.run(rows_of))
        finally:
            engine.close()
        missing = len(batch) - len(found)
        yield np.concatenate((found, made.layout.empty(missing))) if missing else found


def _demands(made: Blueprint, people: pa.Table) -> Any:
    from sqlglot import exp

    alias = made.plan.scope.main
    one = exp.Literal.number(1)
    return tuple(
        exp.column(name, table=alias, quoted=True) if name in people.column_names else one.copy()
        for name in ("k", "l")
    )


@dataclass(eq=False)
class Run:
    """The stages over frames in a dictionary."""

    bench: worker.Bench
    given: list[tuple[bytes, bytes]]
    paths: list[list[bytes]]
    frames: dict[Address, bytes] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    busiest: dict[str, float] = field(default_factory=dict)
    traffic: int = 0

    def aggregate(self) -> None:
        """Do every task but the last."""
        schedule = self.bench.schedule
        for number, stage in enumerate(schedule.stages[:-1]):
            for index in range(stage.tasks):
                started = time.perf_counter()
                task = schedule.task(number, index)
                made = self._done(task)
                used = time.perf_counter() - started
                self.busiest[task.kind] = max(self.busiest.get(task.kind, 0.0), used)
                self.tasks[task.kind] = self.tasks.get(task.kind, 0) + 1
                self.frames.update(zip(task.outputs, made, strict=True))
                self.traffic += 2 * sum(map(len, made))

    def everything(self) -> tuple[Records, Tally]:
        """All groups, as the last task finds them, and how many took part."""
        schedule = self.bench.schedule
        task = schedule.task(len(schedule.stages) - 1, 0)
        return worker.everything(self.bench, task, self._taken(task))

    def _done(self, task: Task) -> list[bytes]:
        if task.kind == "fold":
            size = self.bench.schedule.terms.partition
            low = task.node * size
            part = self.given[low : low + size]
            tickets, frames = [t for t, _ in part], [f for _, f in part]
            self.given[low : low + size] = [(b"", b"")] * len(part)
            return worker.fold(self.bench, task, tickets, frames, self.paths[task.node])
        if task.kind in ("split", "pack"):
            return worker.split(
                self.bench, task, [None if a is None else self.frames.pop(a) for a in task.inputs]
            )
        if task.kind == "tree":
            return worker.tree(self.bench, task, self._taken(task))
        spill = FileSpill()
        for frame in self._taken(task):
            spill.append(frame)
        try:
            return list(worker.swapped(self.bench, task, spill))
        finally:
            spill.close()

    def _taken(self, task: Task) -> list[bytes]:
        return [self.frames.pop(a) for a in task.inputs if a is not None]
