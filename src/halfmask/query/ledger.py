"""What was answered before, and whether a new answer could be subtracted from it.

Definition: take the rows of an earlier answer and of the new one as sets of people. Adding up some
rows of one and subtracting some of the other leaves the people in which the two choices differ.
If that difference can be made non-empty and smaller than k, those people would be isolated.

Rows of one answer share nobody, so the smallest difference is a smallest cut: nodes are the rows
of both answers and one node for nobody's row; an edge weighs the people that two rows share. An
answer is refused where some connected part has a cut lighter than k.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.errors import InputError, LedgerError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.engines.request import Request
    from halfmask.query.collect import Groups
    from halfmask.query.filter import Published
    from halfmask.query.planned import Plan
    from halfmask.query.run import Session, Work

FORMAT = "halfmask.ledger/1"
LARGEST_EXACT = 300


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One earlier answer: the query, its table, and which groups made up each row."""

    sql: str
    table: str
    k: int
    places: pa.Table


@dataclass(slots=True)
class Ledger:
    """What has been answered on a table, so that answers cannot be subtracted from each other.

    Attributes:
        on_danger: ``"refuse"`` to raise, ``"warn"`` to note it in ``warnings`` and answer.
        entries: the earlier answers.
        warnings: what would have been refused.

    Example:
        >>> ledger = Ledger()
        >>> len(ledger.entries)
        0
    """

    on_danger: Literal["refuse", "warn"] = "refuse"
    entries: list[Entry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.on_danger not in ("refuse", "warn"):
            raise ParameterError("on_danger", self.on_danger, "'refuse' or 'warn'")

    def check(self, session: Session, work: Work, groups: Groups, published: Published) -> None:
        """Compare a new answer with every earlier one on the same table.

        Raises:
            LedgerError: together with an earlier answer fewer than k people would be isolated.
        """
        from halfmask.query.aggregate import places

        table = _table(work.plan)
        new = places(work.plan, groups, published)
        for number, entry in enumerate(self.entries, start=1):
            if entry.table != table:
                continue
            k = max(entry.k, work.plan.chain.guarantees[0].k)
            earlier = session.prepare(entry.sql, work.policies).plan
            cells = _cells(session, earlier, entry.places, work.plan, new)
            if _smallest_cut(cells, k) < k:
                self._danger(number, k)

    def enter(self, plan: Plan, groups: Groups, published: Published) -> None:
        """Note an answer that left."""
        from halfmask.query.aggregate import places

        self.entries.append(
            Entry(
                plan.statement.text,
                _table(plan),
                plan.chain.guarantees[0].k,
                places(plan, groups, published),
            )
        )

    def write(self, path: str | Path) -> None:
        """Write the ledger; it belongs beside the table, not to the asker."""
        from halfmask.release.files import whole_file

        entries = [
            {"sql": e.sql, "table": e.table, "k": e.k, "places": _packed(e.places)}
            for e in self.entries
        ]
        with whole_file(path) as temporary:
            temporary.write_text(
                json.dumps({"format": FORMAT, "entries": entries}, indent=1), encoding="utf-8"
            )

    @classmethod
    def read(cls, path: str | Path, on_danger: Literal["refuse", "warn"] = "refuse") -> Ledger:
        """Read a ledger; an absent file is an empty one.

        Raises:
            InputError: the file is no ledger.
        """
        file = Path(path)
        if not file.exists():
            return cls(on_danger)
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            known = document["format"] == FORMAT
            entries = [
                Entry(e["sql"], e["table"], int(e["k"]), _unpacked(e["places"]))
                for e in document["entries"]
            ]
        except (ValueError, KeyError, TypeError, OSError):
            known, entries = False, []
        if not known:
            raise InputError(f"{file.name} is not a ledger that this version can read.")
        return cls(on_danger, entries)

    def _danger(self, number: int, k: int) -> None:
        message = (
            f"Together with answer {number} of the ledger this one would isolate fewer than "
            f"{k} people by subtraction; nothing was released. Ask with the same conditions "
            "and groups as before, or generalize further."
        )
        if self.on_danger == "refuse":
            raise LedgerError(message, entry=str(number))
        self.warnings.append(message)


def _table(plan: Plan) -> str:
    return plan.scope.tables[plan.scope.main].name


def _cells(
    session: Session, earlier: Plan, old: pa.Table, plan: Plan, new: pa.Table
) -> dict[tuple[int, int], int]:
    """How many people each pair of rows shares; -1 stands for nobody's row."""
    from halfmask.query.compare import by_person, by_row

    session.engine.add("hm_places_old", old)
    session.engine.add("hm_places_new", new)
    if earlier.request.person is not None and plan.request.person is not None:
        query = by_person(earlier.request, plan.request)
    elif _alone(earlier.request) and _alone(plan.request):
        query = by_row(earlier.request, plan.request)
    else:
        raise LedgerError(
            "This answer cannot be compared with an earlier one: declare the person "
            "column, so that the ledger can tell who stands where."
        )
    rows = session.engine.run(query).to_pylist()
    return {(_place(r["old"]), _place(r["new"])): int(r["n"]) for r in rows}


def _place(value: int | None) -> int:
    return -1 if value is None else int(value)


def _alone(request: Request) -> bool:
    return not request.source.args.get("joins")


def _smallest_cut(cells: dict[tuple[int, int], int], k: int) -> int:
    """The weight of the lightest cut, or k where there is none below it."""
    names: dict[tuple[str, int], int] = {}

    def node(side: str, place: int) -> int:
        return names.setdefault(("none", -1) if place < 0 else (side, place), len(names))

    edges = [
        (node("old", a), node("new", b), n) for (a, b), n in cells.items() if (a, b) != (-1, -1)
    ]
    heads = _merged(len(names), [(a, b) for a, b, n in edges if n >= k])
    light = [(heads[a], heads[b], n) for a, b, n in edges if n < k and heads[a] != heads[b]]
    if not light:
        return k
    used = sorted({x for a, b, _ in light for x in (a, b)})
    if len(used) > LARGEST_EXACT:
        return 0
    index = {x: i for i, x in enumerate(used)}
    weights = np.zeros((len(used), len(used)), dtype=np.int64)
    for a, b, n in light:
        weights[index[a], index[b]] += n
        weights[index[b], index[a]] += n
    parts = _merged(len(used), [(int(a), int(b)) for a, b in np.argwhere(weights > 0)])
    return min(
        _global_cut(weights[np.ix_(p, p)], k)
        for head in set(parts)
        for p in [np.flatnonzero(np.array(parts) == head)]
    )


def _merged(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    heads = list(range(n))

    def head(x: int) -> int:
        while heads[x] != x:
            heads[x] = heads[heads[x]]
            x = heads[x]
        return x

    for a, b in pairs:
        heads[head(a)] = head(b)
    return [head(x) for x in range(n)]


def _global_cut(weights: NDArray[np.int64], k: int) -> int:
    """Stoer and Wagner's minimum cut of a connected graph."""
    weights = weights.copy()
    best = k
    nodes = list(range(len(weights)))
    while len(nodes) > 1:
        reached = weights[nodes[0], nodes].copy()
        inside = np.zeros(len(nodes), dtype=bool)
        inside[0] = True
        last = before = 0
        for _ in range(len(nodes) - 1):
            following = int(np.where(inside, -1, reached).argmax())
            before, last = last, following
            cut = int(reached[following])
            inside[following] = True
            reached = reached + weights[nodes[following], nodes]
        best = min(best, cut)
        a, b = nodes[before], nodes[last]
        weights[a] += weights[b]
        weights[:, a] += weights[:, b]
        weights[a, a] = 0
        nodes.remove(b)
    return best


def _packed(table: pa.Table) -> str:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def _unpacked(text: str) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(pa.BufferReader(base64.b64decode(text))).read_all()
    except pa.ArrowInvalid:
        raise ValueError from None
