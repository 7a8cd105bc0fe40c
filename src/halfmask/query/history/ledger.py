"""What was answered before, and whether a new answer could be subtracted from it.

The ledger keeps, for every answer, which rows and people stood in which of its rows and said
totals. A new answer is compared with each earlier one that shares people or rows with it, and with
the latest ones all together (``differences``): by people, by the rows of each table, and by rows
joined where a join multiplies both sides. What was told is kept as it was: no option, no name and
no later change of the table alters it. On disk it stands in a ledger file, beside what was spent.
"""

from __future__ import annotations

import base64
import secrets
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.errors import LedgerError, ParameterError, usable_path
from halfmask.ledger import ANSWER, SALT, LedgerFile
from halfmask.query.history.differences import AnswerProfiles, answer_atoms, isolates

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.ledger import LedgerRecord
    from halfmask.query.history.support import Kind, Numbering, Profile, Support, Trace
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.run import PreparedQuery, Session

MOST_TOGETHER, MOST_TRIED = 6, 24
MEANWHILE = (
    "Another answer was noted in the ledger meanwhile; nothing was released. Ask again, to be "
    "compared with it."
)
SEVERAL = -1


@dataclass(frozen=True, slots=True, eq=False)
class Standpoints:
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

    def side(self, size: int, *, once: bool = False) -> AnswerProfiles:
        """The same over ``size`` numbers; ``once``: however often."""
        codes = np.full(size, -1, dtype=np.int32)
        found = np.frombuffer(zlib.decompress(self.packed), dtype=_width(self.profiles))
        codes[self.start : self.start + len(found)] = found.astype(np.int32) - 1
        if not once:
            return AnswerProfiles(codes, self.profiles)
        return AnswerProfiles(
            codes, tuple(tuple((place, 1) for place, _ in p) for p in self.profiles)
        )


def _width(profiles: tuple[Profile, ...]) -> str:
    """As many bytes as the number of the last profile needs."""
    return "<u1" if len(profiles) < 2**8 else "<u2" if len(profiles) < 2**16 else "<u4"


@dataclass(frozen=True, slots=True, eq=False)
class AnswerEntry:
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
    """

    sql: str
    table: str
    k: int
    demand: int
    fingerprint: str = ""
    seen: tuple[Standpoints, ...] = ()
    reads: tuple[str, ...] = ()
    opaque: bool = False

    @property
    def names_people(self) -> bool:
        """Whether it is known whose rows they are."""
        return any(seen.kind == "people" for seen in self.seen)


@dataclass(frozen=True, slots=True, eq=False)
class Register:
    """All people and rows that answers spoke of.

    Attributes:
        ids: what they are known by, in the order of their appearance.
        who: per number the number of its person; itself where nobody is known; -1: several.
    """

    ids: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    who: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def with_parts(self, parts: tuple[Numbering, ...]) -> tuple[Register, tuple[Standpoints, ...]]:
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
            seen.append(Standpoints(part.kind, part.of, start, packed, part.profiles))
        return Register(ids, who), tuple(seen)


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
    entries: list[AnswerEntry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _numbers: Register = field(default_factory=Register, repr=False, compare=False)
    _salt: str = field(default_factory=lambda: secrets.token_hex(16), repr=False, compare=False)
    _files: dict[Path, _FileState] = field(default_factory=dict, repr=False, compare=False)
    _key: bytes = field(default=b"", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.on_danger not in ("refuse", "warn"):
            raise ParameterError("on_danger", self.on_danger, "'refuse' or 'warn'")

    def note(self, session: Session, work: PreparedQuery, new: Support) -> tuple[str, ...]:
        """Compare a new answer with the earlier ones and note it; what a reader should know.

        Raises:
            LedgerError: together with earlier answers fewer than k people would be isolated.
        """
        before = len(self.warnings)
        numbers, entry = self._entry(session, work.plan, new)
        notes = self._compare(numbers, entry)
        self.warnings[before:] = dict.fromkeys(self.warnings[before:])
        self._numbers = numbers
        self.entries.append(entry)
        return notes

    def _entry(
        self, session: Session, plan: GuaranteePlan, new: Support
    ) -> tuple[Register, AnswerEntry]:
        from halfmask.query.history.support import trace_of

        trace: Trace = trace_of(session.engine, plan, new, self._salt)
        numbers, seen = self._numbers.with_parts(trace.parts)
        entry = AnswerEntry(
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

    def _compare(self, numbers: Register, new: AnswerEntry) -> tuple[str, ...]:
        met: dict[Kind, set[int]] = {"people": set(), "rows": set(), "pairs": set()}
        for part in new.seen:
            comparison = _Comparison(self, numbers, new, part)
            # Most often all figures of a part are made of the same rows in all answers.
            for others in dict.fromkeys(self._same(part, of) for of in part.of):
                met[part.kind] |= comparison.run(others)
        strangers = [i for i in range(len(self.entries)) if i not in met["rows"]]
        return (*self._find_changed(new), *self._apart(numbers, new, strangers))

    def _same(self, part: Standpoints, of: str) -> tuple[tuple[int, Standpoints], ...]:
        """The parts of earlier answers that make up the same kind of figure."""
        return tuple(
            (i, seen)
            for i, entry in enumerate(self.entries)
            for seen in entry.seen
            if seen.kind == part.kind and of in seen.of
        )

    def _apart(self, numbers: Register, new: AnswerEntry, strangers: list[int]) -> tuple[str, ...]:
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

    def _find_changed(self, new: AnswerEntry) -> tuple[str, ...]:
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

    def write(self, path: str | PathLike[str]) -> None:
        """Note the new answers in a file, for its owner's eyes only; it belongs beside the table.

        Raises:
            LedgerError: somebody else noted an answer in the file since it was read, so that the
                new one was not compared with theirs; or it is another ledger than was read.
        """
        from halfmask.release.files import folder_lock

        file = usable_path(path).resolve()
        with folder_lock(file.parent):
            known = self._files.get(file, _FileState())
            self._files[file] = self._append(LedgerFile(Path(path), self._key), known)

    def _append(self, file: LedgerFile, known: _FileState) -> _FileState:
        if not file.present:
            if known.answers:
                raise LedgerError(MEANWHILE)
            file.create()
        with file.change() as change:
            if _ends(change.of(ANSWER)) != (known.answers, known.last):
                raise LedgerError(MEANWHILE)
            if [record.body for record in change.of(SALT)[-1:]] != [{"salt": self._salt}]:
                change.append(SALT, {"salt": self._salt})
            numbers = known.numbers
            for entry in self.entries[known.answers :]:
                more = {} if numbers is self._numbers else _more(numbers, self._numbers)
                change.append(ANSWER, {**_document(entry), **more})
                numbers = self._numbers
            return _FileState(*_ends(change.of(ANSWER)), numbers)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        on_danger: Literal["refuse", "warn"] = "refuse",
        *,
        key: str | PathLike[str] | None = None,
    ) -> Ledger:
        """The answers of a ledger; an absent file is an empty one.

        Args:
            path: the file, which may hold a budget too.
            on_danger: ``"refuse"`` to raise, ``"warn"`` to note it in ``warnings`` and answer.
            key: the file of the secret that the ledger is sealed with, if any.

        Raises:
            InputError: the file is no ledger.
            LedgerError: the file is damaged, or has no key and one is given.
        """
        file = LedgerFile.at(path, key)
        place = file.path.resolve()
        if file.path.exists():
            entries, numbers, salt, known = _read(file)
        else:
            entries, numbers, salt, known = [], Register(), "", _FileState()
        salt = salt or secrets.token_hex(16)
        return cls(on_danger, entries, [], numbers, salt, {place: known}, file.key)


@dataclass(frozen=True, slots=True, eq=False)
class _FileState:
    """What a file held when it was last read or written.

    Attributes:
        answers: how many.
        last: the seal of the last of them.
        numbers: the people and rows they spoke of.
    """

    answers: int = 0
    last: str = ""
    numbers: Register = field(default_factory=Register)


class _Comparison:
    """One part of a new answer beside the same of all earlier ones."""

    def __init__(
        self, ledger: Ledger, numbers: Register, new: AnswerEntry, part: Standpoints
    ) -> None:
        self.ledger, self.numbers, self.new, self.part = ledger, numbers, new, part
        self.size = len(numbers.ids)
        self.mine = part.side(self.size, once=part.kind == "people")

    def run(self, others: tuple[tuple[int, Standpoints], ...]) -> set[int]:
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

    def by_number(self, i: int, seen: Standpoints) -> None:
        """Compare how many rows people have, where the rows cannot be matched."""
        self.mine, side = self.part.side(self.size), seen.side(self.size)
        # One row per person beside several: another kind of row, made of them.
        if _is_single(self.mine) == _is_single(side):
            self._judge([side], [i], give_up=True)

    def _side(self, seen: Standpoints) -> AnswerProfiles:
        return seen.side(self.size, once=self.part.kind == "people")

    def _together(self, left: list[tuple[int, Standpoints]], inside: NDArray[np.bool_]) -> None:
        """Compare the latest answers that are tied to the new one, be it through each other."""
        different: list[tuple[int, AnswerProfiles]] = []
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

    def _judge(self, sides: list[AnswerProfiles], entries: list[int], *, give_up: bool) -> None:
        """Refuse where the new answer isolates somebody with these; ``give_up``: or perhaps."""
        involved = [self.ledger.entries[i] for i in entries]
        demand = max(e.demand for e in (*involved, self.new))
        k = max(e.k for e in (*involved, self.new))
        if len(sides) == 1 and _tells_same(self.mine, sides[0]):
            return
        atoms = answer_atoms([*sides, self.mine], self.numbers.who, demand)
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


def _tells_same(one: AnswerProfiles, other: AnswerProfiles) -> bool:
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


def _is_single(side: AnswerProfiles) -> bool:
    """Whether everything stands in one place, once."""
    return all(len(p) == 1 and p[0][1] == 1 for p in side.profiles)


def _document(entry: AnswerEntry) -> dict[str, Any]:
    """An answer as plain values."""
    return {
        "sql": entry.sql,
        "table": entry.table,
        "k": entry.k,
        "demand": entry.demand,
        "fingerprint": entry.fingerprint,
        "reads": entry.reads,
        "opaque": entry.opaque,
        "seen": [
            {
                "kind": s.kind,
                "of": s.of,
                "start": s.start,
                "codes": _text(s.packed),
                "profiles": s.profiles,
            }
            for s in entry.seen
        ],
    }


def _entry(plain: dict[str, Any]) -> AnswerEntry:
    """What ``_document`` gave."""
    seen = tuple(
        Standpoints(
            s["kind"],
            tuple(s["of"]),
            int(s["start"]),
            base64.b64decode(s["codes"]),
            tuple(tuple((int(p), int(n)) for p, n in profile) for profile in s["profiles"]),
        )
        for s in plain["seen"]
    )
    return AnswerEntry(
        plain["sql"],
        plain["table"],
        int(plain["k"]),
        int(plain["demand"]),
        plain["fingerprint"],
        seen,
        tuple(plain["reads"]),
        bool(plain["opaque"]),
    )


def _more(former: Register, numbers: Register) -> dict[str, str]:
    """What numbers have over former ones; whose they are as differences, which are mostly 0."""
    start = len(former.ids)
    apart = numbers.who - _extend(former.who, len(numbers.who))
    return {
        "ids": _text(numbers.ids[start:].astype("<u8").tobytes()),
        "who": _text(zlib.compress(apart.astype("<i4").tobytes(), 1)),
    }


def _with_more(former: Register, plain: dict[str, Any]) -> Register:
    """Former numbers and what ``_more`` gave."""
    if "ids" not in plain:
        return former
    ids = np.frombuffer(base64.b64decode(plain["ids"]), dtype="<u8").astype(np.uint64)
    apart = np.frombuffer(zlib.decompress(base64.b64decode(plain["who"])), dtype="<i4")
    who = _extend(former.who, len(apart)) + apart.astype(np.int32)
    return Register(np.concatenate([former.ids, ids]), who)


def _extend(who: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """``who`` with numbers behind it that nobody is known of."""
    return np.concatenate([who, np.arange(len(who), size, dtype=np.int32)])


def _ends(answers: list[LedgerRecord]) -> tuple[int, str]:
    """How many answers there are, and the seal of the last."""
    return len(answers), answers[-1].seal if answers else ""


def _read(file: LedgerFile) -> tuple[list[AnswerEntry], Register, str, _FileState]:
    salt, numbers, entries = "", Register(), []
    records = file.records()
    try:
        for record in records:
            if record.kind == SALT:
                salt = str(record.body["salt"])
            elif record.kind == ANSWER:
                plain = record.body
                numbers = _with_more(numbers, plain)
                entries.append(_entry(plain))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        file.fail("is damaged: a row cannot be read.")
    ends = _ends([record for record in records if record.kind == ANSWER])
    return entries, numbers, salt, _FileState(*ends, numbers)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
