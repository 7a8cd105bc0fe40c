"""What was answered before, and whether a new answer could be subtracted from it.

Definition: take the rows and the said totals of an earlier answer and of the new one as sets of
people. Adding up some of one and subtracting some of the other leaves the people in which the two
choices differ.
If that difference can be made non-empty and smaller than k, those people would be isolated. Every
pair of answers is compared (``cuts``), then the latest ones all together (``combinations``).
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from halfmask.errors import InputError, LedgerError, ParameterError, QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from halfmask.engines.request import Request
    from halfmask.query.history.told import Told
    from halfmask.query.planning.planned import Plan
    from halfmask.query.run import Session, Work

FORMAT = "halfmask.ledger/1"
MOST_TOGETHER = 6


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One earlier answer: the query, its table, and which groups made up each row and total."""

    sql: str
    table: str
    k: int
    places: pa.Table
    fingerprint: str = ""


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
    _seen: dict[Path, bytes | None] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.on_danger not in ("refuse", "warn"):
            raise ParameterError("on_danger", self.on_danger, "'refuse' or 'warn'")

    def check(self, session: Session, work: Work, new: Told) -> tuple[str, ...]:
        """Compare a new answer with the earlier ones on the same table; what a reader should know.

        Raises:
            LedgerError: together with earlier answers fewer than k people would be isolated.
        """
        from halfmask.query.history.cuts import smallest_cut

        table = _table(work.plan)
        sides: list[tuple[Plan, pa.Table]] = []
        numbers, largest = [], new.k
        for number, entry in enumerate(self.entries, start=1):
            if entry.table != table:
                continue
            k = max(entry.k, new.k)
            earlier = _planned_again(session, entry, number, work)
            if smallest_cut(_cells(session, earlier, entry.places, work.plan, new.places), k) < k:
                self._danger([number], k)
            sides.append((earlier, entry.places))
            numbers.append(number)
            largest = max(largest, k)
        if len(sides) > 1:
            latest = [*sides[-MOST_TOGETHER:], (work.plan, new.places)]
            self._together(session, latest, numbers[-MOST_TOGETHER:], largest)
        return self._changed(session, table)

    def _together(
        self, session: Session, sides: list[tuple[Plan, pa.Table]], numbers: list[int], k: int
    ) -> None:
        from halfmask.query.history.combinations import isolates

        if isolates(_atoms(session, sides), k):
            self._danger(numbers, k)

    def _changed(self, session: Session, table: str) -> tuple[str, ...]:
        now = fingerprint(session, table)
        kind = now.split(":")[0]
        stale = [
            str(i)
            for i, e in enumerate(self.entries, start=1)
            if e.table == table and e.fingerprint.split(":")[0] == kind and e.fingerprint != now
        ]
        if not stale:
            return ()
        note = (
            f"The table has changed since answer {', '.join(stale)} of the ledger: what changed "
            "can be learned by comparing the answers, which the ledger cannot rule out."
        )
        self.warnings.append(note)
        return (note,)

    def enter(self, session: Session, plan: Plan, new: Told) -> None:
        """Note an answer that left."""
        table = _table(plan)
        printed = fingerprint(session, table)
        self.entries.append(Entry(plan.statement.text, table, new.k, new.places, printed))

    def write(self, path: str | Path) -> None:
        """Write the ledger; it belongs beside the table, not to the asker.

        Raises:
            LedgerError: somebody else wrote the file since it was read, so that the new answer was
                not compared with theirs.
        """
        from halfmask.release.files import alone_in, whole_file

        entries = [
            {
                "sql": e.sql,
                "table": e.table,
                "k": e.k,
                "places": _packed(e.places),
                "fingerprint": e.fingerprint,
            }
            for e in self.entries
        ]
        file = Path(path).resolve()
        data = json.dumps({"format": FORMAT, "entries": entries}, indent=1).encode()
        with alone_in(file.parent):
            if file in self._seen and self._seen[file] != _digest(file):
                raise LedgerError(
                    "Another answer was noted in the ledger meanwhile; nothing was released. Ask "
                    "again, to be compared with it."
                )
            with whole_file(path) as temporary:
                temporary.write_bytes(data)
            self._seen[file] = hashlib.sha256(data).digest()

    @classmethod
    def read(cls, path: str | Path, on_danger: Literal["refuse", "warn"] = "refuse") -> Ledger:
        """Read a ledger; an absent file is an empty one.

        Raises:
            InputError: the file is no ledger.
        """
        file = Path(path)
        seen = {file.resolve(): _digest(file)}  # first: a later change is noticed
        if not file.exists():
            return cls(on_danger, _seen=seen)
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            known = document["format"] == FORMAT
            entries = [
                Entry(
                    e["sql"],
                    e["table"],
                    int(e["k"]),
                    _unpacked(e["places"]),
                    str(e.get("fingerprint", "")),
                )
                for e in document["entries"]
            ]
        except (ValueError, KeyError, TypeError, OSError):
            known, entries = False, []
        if not known:
            raise InputError(f"{file.name} is not a ledger that this version can read.")
        return cls(on_danger, entries, _seen=seen)

    def _danger(self, numbers: list[int], k: int) -> None:
        which = ", ".join(map(str, numbers))
        message = (
            f"Together with answer {which} of the ledger this one would isolate fewer than "
            f"{k} people by subtraction, or that cannot be ruled out; nothing was released. Ask "
            "with the same conditions and groups as before, or generalize further."
        )
        if self.on_danger == "refuse":
            raise LedgerError(message, entry=which)
        self.warnings.append(message)


def _planned_again(session: Session, entry: Entry, number: int, work: Work) -> Plan:
    """The plan of an earlier query, which the schema of today may not allow any more."""
    try:
        return session.prepare(entry.sql, work.policies).plan
    except QueryError:
        raise LedgerError(
            f"Answer {number} of the ledger cannot be compared under this schema, so nothing was "
            "released: put the roles and hierarchies back under which it was answered.",
            entry=str(number),
        ) from None


def fingerprint(session: Session, table: str) -> str:
    """What tells whether a table is still the same, as far as its engine can say."""
    return session.engine.fingerprint(table)


def _table(plan: Plan) -> str:
    return plan.scope.tables[plan.scope.main].name


def _cells(
    session: Session, earlier: Plan, old: pa.Table, plan: Plan, new: pa.Table
) -> dict[tuple[int, int], int]:
    """How many people each pair of rows shares; -1 stands for nobody's row."""
    from halfmask.query.history.compare import by_person, by_row

    session.engine.add("hm_places_0", old)
    session.engine.add("hm_places_1", new)
    if earlier.request.person is not None and plan.request.person is not None:
        query = by_person(earlier.request, plan.request)
    else:
        _comparable([earlier, plan])
        query = by_row([earlier.request, plan.request])
    rows = session.engine.run(query).to_pylist()
    return {(_place(r["p0"]), _place(r["p1"])): int(r["n"]) for r in rows if r["n"]}


def _comparable(plans: list[Plan]) -> None:
    if not all(_alone(p.request) for p in plans):
        raise LedgerError(
            "This answer cannot be compared with an earlier one: declare the person "
            "column, so that the ledger can tell who stands where."
        )


def _atoms(
    session: Session, sides: list[tuple[Plan, pa.Table]]
) -> list[tuple[tuple[tuple[int, int], ...], int]]:
    """The people whom no answer tells apart: the rows (answer, place) they stand in, how many."""
    from halfmask.query.history.compare import by_row, together

    for i, (_, rows) in enumerate(sides):
        session.engine.add(f"hm_places_{i}", rows)
    requests = [plan.request for plan, _ in sides]
    if all(r.person is not None for r in requests):
        query, twice = together(requests), True
    else:
        _comparable([plan for plan, _ in sides])
        query, twice = by_row(requests), False
    found = []
    for r in session.engine.run(query).to_pylist():
        names = [(i, n) for i in range(len(sides)) for n in ("p", "q")[: 1 + twice]]
        rows = {(i, int(r[f"{n}{i}"])) for i, n in names if r[f"{n}{i}"] is not None}
        if rows:
            found.append((tuple(sorted(rows)), int(r["n"])))
    return found


def _place(value: int | None) -> int:
    return -1 if value is None else int(value)


def _alone(request: Request) -> bool:
    return not request.source.args.get("joins")


def _digest(file: Path) -> bytes | None:
    """What tells the content of a file from any other; None where there is none."""
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return None


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
