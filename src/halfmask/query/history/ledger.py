"""What was answered before, and whether a new answer could be subtracted from it.

The ledger keeps, for every answer, which rows and people stood in which of its rows and said
totals. A new answer is compared with each earlier one that shares people or rows with it, and with
the latest ones all together (``differences``): by people, by the rows of each table, and by rows
joined where a join multiplies both sides. What was told is kept as it was: no option, no name and
no later change of the table alters it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.errors import InputError, LedgerError, ParameterError, QueryError
from halfmask.query.history.differences import Side, atoms_of, isolates

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.query.history.support import Kind, Part, Profile, Support, Trace
    from halfmask.query.planning.planned import Plan
    from halfmask.query.run import Session, Work

FORMAT, OLD_FORMAT = "halfmask.ledger/2", "halfmask.ledger/1"
MOST_TOGETHER, MOST_TRIED = 6, 24
SEVERAL = -1


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Where the numbered people, or rows of a table, stood in one answer.

    Attributes:
        kind: what is numbered.
        of: which figures are made of it.
        start: the first number.
        packed: per number from there, which profile it has (from 1; 0: none), compressed.
        profiles: the places, and how often.
    """

    kind: Kind
    of: tuple[str, ...]
    start: int
    packed: bytes
    profiles: tuple[Profile, ...]

    def side(self, size: int, *, once: bool = False) -> Side:
        """The same over ``size`` numbers; ``once``: however often."""
        codes = np.full(size, -1, dtype=np.int32)
        found = np.frombuffer(zlib.decompress(self.packed), dtype=_width(self.profiles))
        codes[self.start : self.start + len(found)] = found.astype(np.int32) - 1
        if not once:
            return Side(codes, self.profiles)
        return Side(codes, tuple(tuple((place, 1) for place, _ in p) for p in self.profiles))


def _width(profiles: tuple[Profile, ...]) -> str:
    """As many bytes as the number of the last profile needs."""
    return "<u1" if len(profiles) < 2**8 else "<u2" if len(profiles) < 2**16 else "<u4"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One earlier answer.

    Attributes:
        sql: the query.
        table: the table that it names in FROM.
        k: the largest guarantee of what was told.
        demand: what every difference must reach: k, and the own k of everybody in it.
        fingerprint: tells whether the table is still the same.
        seen: who stood where.
        reads: the tables at the bottom of all views.
        opaque: whether rows of a view could not be followed to a table.
        places: which groups made up each row, where an older version noted the answer so.
    """

    sql: str
    table: str
    k: int
    demand: int
    fingerprint: str = ""
    seen: tuple[Seen, ...] = ()
    reads: tuple[str, ...] = ()
    opaque: bool = False
    places: pa.Table | None = None

    @property
    def names_people(self) -> bool:
        """Whether it is known whose rows they are."""
        return any(seen.kind == "people" for seen in self.seen)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """All people and rows that answers spoke of.

    Attributes:
        ids: what they are known by, in the order of their appearance.
        who: per number the number of its person; itself where nobody is known; -1: several.
    """

    ids: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    who: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def with_parts(self, parts: tuple[Part, ...]) -> tuple[Numbers, tuple[Seen, ...]]:
        """These and those of an answer, and where they stood in it."""
        ids = self.ids
        for part in parts:
            ids = np.concatenate([ids, part.ids[~_is_in(np.sort(ids), part.ids)]])
        order = np.argsort(ids)

        def at(some: NDArray[np.uint64]) -> NDArray[np.int64]:
            found: NDArray[np.int64] = order[np.searchsorted(ids, some, sorter=order)]
            return found

        who = np.concatenate([self.who, np.arange(len(self.ids), len(ids), dtype=np.int32)])
        seen = []
        for part in parts:
            mine = at(part.ids)
            whose = at(part.who).astype(np.int32)
            unknown, stays = who[mine] == mine, (whose == mine) | (whose == who[mine])
            who[mine] = np.where(
                part.shared, SEVERAL, np.where(unknown, whose, np.where(stays, who[mine], SEVERAL))
            )
            start, end = (int(mine.min()), int(mine.max()) + 1) if len(mine) else (0, 0)
            codes = np.zeros(end - start, dtype=_width(part.profiles))
            codes[mine - start] = part.codes + 1
            packed = zlib.compress(codes.tobytes(), 1)
            seen.append(Seen(part.kind, part.of, start, packed, part.profiles))
        return Numbers(ids, who), tuple(seen)


def _is_in(ordered: NDArray[np.uint64], some: NDArray[np.uint64]) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(some), dtype=bool)
    at = np.minimum(np.searchsorted(ordered, some), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[at] == some
    return found


@dataclass(slots=True)
class Ledger:
    """What has been answered, so that answers cannot be subtracted from each other.

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
    _numbers: Numbers = field(default_factory=Numbers, repr=False, compare=False)
    _salt: str = field(default_factory=lambda: secrets.token_hex(16), repr=False, compare=False)
    _files: dict[Path, bytes | None] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.on_danger not in ("refuse", "warn"):
            raise ParameterError("on_danger", self.on_danger, "'refuse' or 'warn'")

    def note(self, session: Session, work: Work, new: Support) -> tuple[str, ...]:
        """Compare a new answer with the earlier ones and note it; what a reader should know.

        Raises:
            LedgerError: together with earlier answers fewer than k people would be isolated.
        """
        before = len(self.warnings)
        self._renew(session, work)
        numbers, entry = self._entry(session, work.plan, new)
        notes = self._compare(numbers, entry)
        self.warnings[before:] = dict.fromkeys(self.warnings[before:])
        self._numbers = numbers
        self.entries.append(entry)
        return notes

    def _entry(self, session: Session, plan: Plan, new: Support) -> tuple[Numbers, Entry]:
        from halfmask.query.history.support import trace_of

        trace: Trace = trace_of(session.engine, plan, new, self._salt)
        numbers, seen = self._numbers.with_parts(trace.parts)
        entry = Entry(
            plan.statement.text,
            plan.scope.tables[plan.scope.main].name,
            new.k,
            new.demand,
            session.engine.fingerprint(trace.base),
            seen,
            trace.reads,
            trace.opaque,
        )
        return numbers, entry

    def _renew(self, session: Session, work: Work) -> None:
        """Look up who stood where in answers that an older version noted."""
        from halfmask.query.history.support import Support

        for i, entry in enumerate(self.entries):
            if entry.places is None:
                continue
            try:
                plan = session.prepare(entry.sql, work.policies).plan
            except QueryError:
                raise LedgerError(
                    f"Answer {i + 1} of the ledger was noted by an older version and cannot be "
                    "compared with what is given now, so nothing was released: give its tables "
                    "and the schema under which it was answered.",
                    entry=str(i + 1),
                ) from None
            told = Support(entry.places, entry.k, entry.demand)
            self._numbers, found = self._entry(session, plan, told)
            self.entries[i] = replace(found, fingerprint=entry.fingerprint)

    def _compare(self, numbers: Numbers, new: Entry) -> tuple[str, ...]:
        met: dict[Kind, set[int]] = {"people": set(), "rows": set(), "pairs": set()}
        for part in new.seen:
            comparison = _Comparison(self, numbers, new, part)
            # Most often all figures of a part are made of the same rows in all answers.
            for others in dict.fromkeys(self._same(part, of) for of in part.of):
                met[part.kind] |= comparison.run(others)
        strangers = [i for i in range(len(self.entries)) if i not in met["rows"]]
        return (*self._changed(new), *self._apart(numbers, new, strangers))

    def _same(self, part: Seen, of: str) -> tuple[tuple[int, Seen], ...]:
        """The parts of earlier answers that make up the same kind of figure."""
        return tuple(
            (i, seen)
            for i, entry in enumerate(self.entries)
            for seen in entry.seen
            if seen.kind == part.kind and of in seen.of
        )

    def _apart(self, numbers: Numbers, new: Entry, strangers: list[int]) -> tuple[str, ...]:
        """Answers that share no row with the new one: about others, or not to be told."""
        unclear = []
        for i in strangers:
            entry = self.entries[i]
            related = bool(set(entry.reads) & set(new.reads))
            if entry.fingerprint == new.fingerprint:
                continue
            if entry.names_people and new.names_people:
                if related:
                    _Comparison(self, numbers, new, new.seen[0]).by_number(i, entry.seen[0])
                continue
            if related and (entry.opaque or new.opaque):
                self.danger(
                    [i],
                    "This answer cannot be compared with answer {} of the ledger, because rows of "
                    "a view cannot be followed to its table; nothing was released. Declare the "
                    "person column of both, or ask the table itself.",
                )
            elif entry.table != new.table:
                unclear.append(str(i + 1))
        if not unclear:
            return ()
        note = (
            f"Answer {', '.join(unclear)} of the ledger is about other rows, as far as can be "
            "told: declare the person column of both tables, so that people can be compared."
        )
        self.warnings.append(note)
        return (note,)

    def _changed(self, new: Entry) -> tuple[str, ...]:
        kind = new.fingerprint.split(":")[0]
        stale = [
            str(i)
            for i, e in enumerate(self.entries, start=1)
            if e.table == new.table
            and e.fingerprint.split(":")[0] == kind
            and e.fingerprint != new.fingerprint
        ]
        if not stale:
            return ()
        note = (
            f"The table has changed since answer {', '.join(stale)} of the ledger: what changed "
            "for many people together can be learned by comparing the answers."
        )
        self.warnings.append(note)
        return (note,)

    def danger(self, entries: list[int], message: str) -> None:
        """Refuse, or note what would have been refused."""
        which = ", ".join(str(i + 1) for i in entries)
        message = message.format(which)
        if self.on_danger == "refuse":
            raise LedgerError(message, entry=which)
        self.warnings.append(message)

    def write(self, path: str | Path) -> None:
        """Write the ledger, for its owner's eyes only; it belongs beside the table.

        Raises:
            LedgerError: somebody else wrote the file since it was read, so that the new answer was
                not compared with theirs.
        """
        from halfmask.release.files import alone_in, whole_file

        file = Path(path).resolve()
        data = _written(self.entries, self._numbers, self._salt)
        with alone_in(file.parent):
            if file in self._files and self._files[file] != _digest(file):
                raise LedgerError(
                    "Another answer was noted in the ledger meanwhile; nothing was released. Ask "
                    "again, to be compared with it."
                )
            with whole_file(path) as temporary:
                temporary.touch(mode=0o600)
                temporary.write_bytes(data)
            self._files[file] = hashlib.sha256(data).digest()

    @classmethod
    def read(cls, path: str | Path, on_danger: Literal["refuse", "warn"] = "refuse") -> Ledger:
        """Read a ledger; an absent file is an empty one.

        Raises:
            InputError: the file is no ledger, a newer one, or damaged.
        """
        file = Path(path)
        files = {file.resolve(): _digest(file)}  # first: a later change is noticed
        if not file.exists():
            return cls(on_danger, _files=files)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise InputError(
                f"Cannot read {file.name}: {error.strerror or 'no access'}."
            ) from error
        entries, numbers, salt = _read(file.name, data)
        return cls(on_danger, entries, [], numbers, salt or secrets.token_hex(16), files)


class _Comparison:
    """One part of a new answer beside the same of all earlier ones."""

    def __init__(self, ledger: Ledger, numbers: Numbers, new: Entry, part: Seen) -> None:
        self.ledger, self.numbers, self.new, self.part = ledger, numbers, new, part
        self.size = len(numbers.ids)
        self.mine = part.side(self.size, once=part.kind == "people")

    def run(self, others: tuple[tuple[int, Seen], ...]) -> set[int]:
        """Compare with each that shares a number, then together; gives those entries."""
        met = set()
        inside = self.mine.codes >= 0
        for i, seen in others:
            side = self._side(seen)
            if (inside & (side.codes >= 0)).any():
                met.add(i)
                self._judge([side], [i], give_up=True)
        if met:
            self._together(list(reversed(others)), inside)
        return met

    def by_number(self, i: int, seen: Seen) -> None:
        """Compare how many rows people have, where the rows cannot be matched."""
        self.mine, side = self.part.side(self.size), seen.side(self.size)
        # One row per person beside several: another kind of row, made of them.
        if _is_single(self.mine) == _is_single(side):
            self._judge([side], [i], give_up=True)

    def _side(self, seen: Seen) -> Side:
        return seen.side(self.size, once=self.part.kind == "people")

    def _together(self, left: list[tuple[int, Seen]], inside: NDArray[np.bool_]) -> None:
        """Compare the latest answers that are tied to the new one, be it through each other."""
        different: list[tuple[int, Side]] = []
        grown = True
        while grown:
            grown, rest = False, []
            for i, seen in left:
                side = self._side(seen) if len(different) < MOST_TRIED else None
                if side is None or not (inside & (side.codes >= 0)).any():
                    rest.append((i, seen))
                    continue
                inside, grown = inside | (side.codes >= 0), True
                if not any(_tells_same(side, other) for _, other in different):
                    different.append((i, side))
            left = rest
        different.sort(key=lambda pair: -pair[0])
        for most in sorted({min(MOST_TRIED, len(different)), min(MOST_TOGETHER, len(different))}):
            if most > 1:
                latest = different[:most][::-1]
                sides, entries = [s for _, s in latest], [i for i, _ in latest]
                self._judge(sides, entries, give_up=most <= MOST_TOGETHER)

    def _judge(self, sides: list[Side], entries: list[int], *, give_up: bool) -> None:
        """Refuse where the new answer isolates somebody with these; ``give_up``: or perhaps."""
        involved = [self.ledger.entries[i] for i in entries]
        demand = max(e.demand for e in (*involved, self.new))
        k = max(e.k for e in (*involved, self.new))
        if len(sides) == 1 and _tells_same(self.mine, sides[0]):
            return
        atoms = atoms_of([*sides, self.mine], self.numbers.who, demand)
        found = None if atoms is None else isolates(atoms, demand, len(sides))
        if found or (found is None and give_up):
            # How far a demand is above the guarantees is nobody's to know.
            few = f"fewer than {k} people" if demand == k else "fewer people than they demand"
            self.ledger.danger(
                list(dict.fromkeys(entries)),
                "Together with answer {} of the ledger this one would isolate "
                f"{few} by subtraction, or that cannot be ruled out; nothing was released. Ask "
                "with the same conditions and groups as before, or generalize further.",
            )


def _tells_same(one: Side, other: Side) -> bool:
    """Whether two answers have the same rows, be it under other numbers."""
    if len(one.profiles) != len(other.profiles):
        return False
    inside = one.codes >= 0
    if not np.array_equal(inside, other.codes >= 0):
        return False
    if not (_is_single(one) and _is_single(other)):
        return one.profiles == other.profiles and np.array_equal(one.codes, other.codes)
    pairs = np.full(len(one.profiles), -1, dtype=np.int64)
    pairs[one.codes[inside]] = other.codes[inside]
    return bool((pairs[one.codes[inside]] == other.codes[inside]).all())


def _is_single(side: Side) -> bool:
    """Whether everything stands in one place, once."""
    return all(len(p) == 1 and p[0][1] == 1 for p in side.profiles)


def _digest(file: Path) -> bytes | None:
    """What tells the content of a file from any other; None where there is none."""
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return None


def _written(entries: list[Entry], numbers: Numbers, salt: str) -> bytes:
    listed = []
    for e in entries:
        plain: dict[str, Any] = {
            "sql": e.sql,
            "table": e.table,
            "k": e.k,
            "demand": e.demand,
            "fingerprint": e.fingerprint,
            "reads": e.reads,
            "opaque": e.opaque,
            "seen": [
                {
                    "kind": s.kind,
                    "of": s.of,
                    "start": s.start,
                    "codes": _text(s.packed),
                    "profiles": s.profiles,
                }
                for s in e.seen
            ],
        }
        if e.places is not None:
            plain["places"] = _packed(e.places)
        listed.append(plain)
    body = {
        "salt": salt,
        "ids": _text(numbers.ids.astype("<u8").tobytes()),
        "who": _text(zlib.compress(numbers.who.astype("<i4").tobytes(), 1)),
        "entries": listed,
    }
    whole = {"format": FORMAT, "checksum": _checksum(body), **body}
    return json.dumps(whole, indent=1).encode()


def _checksum(body: dict[str, Any]) -> str:
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read(name: str, data: bytes) -> tuple[list[Entry], Numbers, str]:
    try:
        document = json.loads(data)
        found = document["format"]
        reader = _READERS.get(found)
        others = isinstance(found, str) and found.startswith("halfmask.ledger/")
    except (ValueError, KeyError, TypeError):
        if data.lstrip().startswith(b'{\n "format": "halfmask.ledger/'):
            raise InputError(f"{name} is damaged: put a copy of it back.") from None
        raise InputError(f"{name} is not a ledger that this version can read.") from None
    if reader is None:
        newer = "is a ledger of a newer version: use that one." if others else "is not a ledger."
        raise InputError(f"{name} {newer}")
    try:
        return reader(document)
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        raise InputError(f"{name} is damaged: put a copy of it back.") from None


def _read_now(document: dict[str, Any]) -> tuple[list[Entry], Numbers, str]:
    body = {n: v for n, v in document.items() if n not in ("format", "checksum")}
    if _checksum(body) != document["checksum"]:
        raise ValueError
    ids = np.frombuffer(base64.b64decode(body["ids"]), dtype="<u8").astype(np.uint64)
    who = np.frombuffer(zlib.decompress(base64.b64decode(body["who"])), dtype="<i4")
    entries = [
        Entry(
            e["sql"],
            e["table"],
            int(e["k"]),
            int(e["demand"]),
            e["fingerprint"],
            tuple(
                Seen(
                    s["kind"],
                    tuple(s["of"]),
                    int(s["start"]),
                    base64.b64decode(s["codes"]),
                    tuple(tuple((int(p), int(n)) for p, n in profile) for profile in s["profiles"]),
                )
                for s in e["seen"]
            ),
            tuple(e["reads"]),
            bool(e["opaque"]),
            _unpacked(e["places"]) if "places" in e else None,
        )
        for e in body["entries"]
    ]
    return entries, Numbers(ids, who.astype(np.int32)), str(body["salt"])


def _read_old(document: dict[str, Any]) -> tuple[list[Entry], Numbers, str]:
    entries = [
        Entry(
            e["sql"],
            e["table"],
            int(e["k"]),
            int(e["k"]),
            str(e.get("fingerprint", "")),
            places=_unpacked(e["places"]),
        )
        for e in document["entries"]
    ]
    return entries, Numbers(), ""


_READERS: dict[Any, Callable[[dict[str, Any]], tuple[list[Entry], Numbers, str]]] = {
    FORMAT: _read_now,
    OLD_FORMAT: _read_old,
}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _packed(table: pa.Table) -> str:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return _text(sink.getvalue())


def _unpacked(text: str) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(pa.BufferReader(base64.b64decode(text))).read_all()
    except pa.ArrowInvalid:
        raise ValueError from None
