"""A whole query with a million cells in one process, phase by phase.

Every contribution is encoded, sealed for its ticket and opened again, and every task runs the code
that real cells run; what is left out is the way between them. Where not asked for, credentials are
left out too: two signatures to check per contribution, of which real cells share the work and one
process does all. Proofs then are as long, and say nothing.

An invented census to simulate with: the columns and the ten levels of the thesis' query.

Source: Michel 2019, Figure 4.5. The trees and people are our own.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError
from halfmask.protocol import answering, crypto
from halfmask.protocol.cell_plan import CellPlan, plan_for_cells
from halfmask.protocol.common_schema import LARGEST, CommonSchema, commons_from
from halfmask.protocol.crypto import FrameKey, derive
from halfmask.protocol.keys import PROOF, SERIAL, CellGroup, new_issuer
from halfmask.protocol.messages import Closing
from halfmask.protocol.parties import worker
from halfmask.protocol.schedule import MergeTask, Schedule
from halfmask.protocol.store.vault import FileSpill

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from halfmask.protocol.common_schema import CommonSchema, Terms
    from halfmask.protocol.crypto import Address
    from halfmask.protocol.keys import CellKey
    from halfmask.protocol.records.layout import ContributionCount, Records
    from halfmask.release.release import Answer


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
class UnprovenCell:
    """Stands where a credential is expected: proofs of the same length that prove nothing."""

    own: bytes = bytes(SERIAL)

    def prove(self, _: bytes) -> bytes:
        """A serial, and zeros in place of signatures."""
        return self.own + _NOTHING

    def serial(self, proof: bytes, _: bytes) -> bytes:
        """Whatever serial is named."""
        return proof[:SERIAL]


def simulate(
    commons: CommonSchema,
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
    made = plan_for_cells(commons, text, terms, derive(secret, b"", b"tokens"))
    key = FrameKey(secret, query)
    clock = _Clock()
    cells: Iterator[CellKey | UnprovenCell]
    worker_key: CellKey | UnprovenCell
    judge: worker.ProofVerifier
    if credentials:
        enrolled = [issuer.enroll(str(i), 1) for i in range(len(people))]
        cells, worker_key, judge = iter(enrolled), enrolled[0], CellGroup(issuer.public, 0, 0)
        clock.stop("enrollment")
    else:
        cells = (UnprovenCell(i.to_bytes(SERIAL, "big")) for i in range(len(people)))
        worker_key, judge = UnprovenCell(), UnprovenCell()
    given = _collect(made, people, table or next(iter(commons.tables)), key, query, cells)
    clock.stop("collection")
    # All contributions have one size: a part tells that of all.
    traffic = (
        sum(len(f) for _, f in given[: terms.partition])
        * len(given)
        // min(len(given), terms.partition)
    )
    run = close(made, terms, key, query, given, worker_key, judge)
    clock.stop("closing")
    run.aggregate()
    clock.stop("aggregation")
    found, _ = run.merge_all()
    answer = answering.answer_cells(made, found)
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
    made: CellPlan,
    terms: Terms,
    key: FrameKey,
    query: bytes,
    given: list[tuple[bytes, bytes]],
    signer: worker.Signer,
    judge: worker.ProofVerifier,
) -> TimedRun:
    """End the collection, as the relay does."""
    given.sort(key=itemgetter(0))
    size = terms.partition
    leaves = [crypto.partition(given[low : low + size]) for low in range(0, len(given), size)]
    root, paths = crypto.root_and_paths(leaves)
    closing = Closing(len(given), root)
    schedule = Schedule(terms, len(given))
    bound = closing.digest(query, 0)
    context = worker.TaskContext(made, schedule, closing, key, query, bound, signer, judge)
    return TimedRun(context, given, paths)


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


def _collect(
    made: CellPlan,
    people: pa.Table,
    table: str,
    key: FrameKey,
    query: bytes,
    cells: Iterator[CellKey | UnprovenCell],
) -> list[tuple[bytes, bytes]]:
    """Every cell's ticket and contribution, sealed for it."""
    size = made.layout.size
    return [
        worker.seal_contribution(
            key,
            query,
            cell.own if isinstance(cell, UnprovenCell) else cell.credential.serial,
            data[at : at + size],
            cell,
        )
        for data in map(made.layout.bytes_of, contributions(made, people, table))
        for at, cell in zip(range(0, len(data), size), cells, strict=False)
    ]


def contributions(made: CellPlan, people: pa.Table, table: str) -> Iterator[Records]:
    """Every cell's record, in batches; those whom WHERE leaves out give a dummy."""
    import numpy as np

    from halfmask.engines.duckdb.engine import DuckDB
    from halfmask.engines.generalization import rows_by_level

    request = made.plan.request
    rows_of = rows_by_level(replace(request, demands=_demands(made, people)), made.measured)
    for low in range(0, len(people), BATCH):
        batch = people.slice(low, BATCH)
        engine = DuckDB({table: batch})
        try:
            found = made.layout.encode(engine.run(rows_of))
        finally:
            engine.close()
        missing = len(batch) - len(found)
        yield np.concatenate((found, made.layout.empty(missing))) if missing else found


def _demands(made: CellPlan, people: pa.Table) -> Any:
    from sqlglot import exp

    alias = made.plan.scope.main
    one = exp.Literal.number(1)
    stated: list[exp.Expr] = [
        exp.column(name, table=alias, quoted=True) if name in people.column_names else one.copy()
        for name in ("k", "l")
    ]
    k, diversity = stated
    if made.sensitive:  # of a column that only decides who is read, no row gives an l
        owed = exp.GT(this=diversity.copy(), expression=one.copy())
        k = exp.Case().when(owed, exp.Literal.number(LARGEST)).else_(k)
    return k, diversity


@dataclass(eq=False)
class TimedRun:
    """The stages over frames in a dictionary."""

    context: worker.TaskContext
    given: list[tuple[bytes, bytes]]
    paths: list[list[bytes]]
    frames: dict[Address, bytes] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    busiest: dict[str, float] = field(default_factory=dict)
    traffic: int = 0

    def aggregate(self) -> None:
        """Do every task but the last."""
        schedule = self.context.schedule
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

    def merge_all(self) -> tuple[Records, ContributionCount]:
        """All groups, as the last task finds them, and how many took part."""
        schedule = self.context.schedule
        task = schedule.task(len(schedule.stages) - 1, 0)
        return worker.collect_groups(self.context, task, self._take(task))

    def _done(self, task: MergeTask) -> list[bytes]:
        if task.kind == "fold":
            size = self.context.schedule.terms.partition
            low = task.node * size
            part = self.given[low : low + size]
            tickets, frames = [t for t, _ in part], [f for _, f in part]
            self.given[low : low + size] = [(b"", b"")] * len(part)
            return worker.fold_task(self.context, task, tickets, frames, self.paths[task.node])
        if task.kind in ("split", "pack"):
            return worker.split_task(
                self.context, task, [None if a is None else self.frames.pop(a) for a in task.inputs]
            )
        if task.kind == "tree":
            return worker.merge_task(self.context, task, self._take(task))
        spill = FileSpill()
        for frame in self._take(task):
            spill.append(frame)
        try:
            return list(worker.merge_swapped(self.context, task, spill))
        finally:
            spill.close()

    def _take(self, task: MergeTask) -> list[bytes]:
        return [self.frames.pop(a) for a in task.inputs if a is not None]


TREES: dict[str, dict[str, list[str]]] = {
    "workclass": {
        "Self": ["Self-emp-inc", "Self-emp-not-inc"],
        "Government": ["Federal-gov", "Local-gov", "State-gov"],
        "Company": ["Private"],
        "Unpaid": ["Never-worked", "Without-pay"],
    },
    "marital_status": {
        "Married": ["AF-spouse", "Civ-spouse", "Spouse-absent"],
        "Alone": ["Divorced", "Never-married", "Separated", "Widowed"],
    },
    "occupation": {
        "White": ["Adm-clerical", "Exec-managerial", "Prof-specialty", "Sales", "Tech-support"],
        "Blue": ["Craft-repair", "Farming-fishing", "Handlers-cleaners", "Machine-op", "Transport"],
        "Service": ["Armed-Forces", "Other-service", "Priv-house-serv", "Protective-serv"],
    },
    "race": {"*": ["A", "B", "C", "D", "E"]},
}
GENDERS = ["F", "M"]
COUNTRIES = [f"Country {i:02}" for i in range(41)]
QUERY = """
GB = Age, Workclass, Education, Marital_status, Occupation, Race, Gender, Native_Country
OP = AVG(fnlwgt)
MD = : k=5 l=3,
     age->20: k=6 l=3,
     workclass->up: k=8 l=4,
     education->5: k=9 l=4,
     marital_status->up: k=9 l=4,
     occupation->up: k=10 l=4,
     race->up: k=11 l=5,
     gender->del: k=14 l=6,
     native_country->del: k=15 l=7,
     age->40: k=17 l=8;
"""
PLAIN = QUERY.split("MD")[0] + "MD = : k=5 l=3;"


@cache
def commons() -> CommonSchema:
    """The common schema of the census."""
    columns: dict[str, object] = {
        "age": {"type": "integer", "role": "quasi"},
        "education": {"type": "integer", "role": "quasi"},
        "fnlwgt": {"type": "integer", "role": "sensitive"},
        "gender": {"role": "quasi", "values": GENDERS},
        "native_country": {"role": "quasi", "values": COUNTRIES},
    }
    for name, tree in TREES.items():
        values = [value for group in tree.values() for value in group]
        columns[name] = {"role": "quasi", "values": values, "hierarchy": {"tree": tree}}
    return commons_from({"tables": {"census": {"columns": columns}}})


def population(cells: int, groups: int, seed: int = 0) -> pa.Table:
    """People of a census, with demands ``k`` and ``l``, who fall into about so many groups."""
    import pyarrow as pa

    if cells < 1 or groups < 1:
        raise ParameterError("cells or groups", min(cells, groups), "at least 1")
    random = np.random.default_rng(seed)
    kinds = min(groups, cells)
    keys = {
        "age": random.integers(17, 91, kinds),
        "education": random.integers(1, 17, kinds),
        "gender": random.integers(0, 2, kinds),
        "native_country": np.minimum(random.geometric(0.35, kinds) - 1, len(COUNTRIES) - 1),
    }
    for name, tree in TREES.items():
        keys[name] = random.integers(0, sum(map(len, tree.values())), kinds)
    kind = np.concatenate((np.arange(kinds), random.integers(0, kinds, cells - kinds)))
    random.shuffle(kind)
    names = {"gender": GENDERS, "native_country": COUNTRIES} | {
        name: [v for group in tree.values() for v in group] for name, tree in TREES.items()
    }
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes[kind].astype(np.int32)), names[name])
        if name in names
        else pa.array(codes[kind])
        for name, codes in keys.items()
    }
    columns["fnlwgt"] = pa.array(random.integers(12_000, 1_500_000, cells))
    # Of a hundred people 82 are content with the finest level, one with none at all.
    chance = random.random(cells)
    columns["k"] = pa.array(np.select([chance < 0.82, chance < 0.99], [5, 9], 20))
    columns["l"] = pa.array(np.select([chance < 0.82, chance < 0.99], [3, 4], 4))
    return pa.table(columns)
