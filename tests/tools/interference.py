"""What an asker can see of an answer, and whether two worlds look alike."""

from __future__ import annotations

import json
import random
import re
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from math import floor, isfinite
from typing import TYPE_CHECKING, Any

from planted import TREE, change_all, change_one, change_planted, make_world
from questions import Grammar

import halfmask as hm
from halfmask.engines.duckdb.engine import DuckDB, _database
from halfmask.engines.request import Climb
from halfmask.errors import HalfmaskError, InternalError
from halfmask.query.run import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planted import World

    Step = tuple[str, Any]  # a table that is brought along by its name, or "" and a query

WHOLE = 100  # of comparisons in which an engine gives the same, one takes the whole way
LONG = re.compile(r"\bJOIN\b|-> up\b")  # what is left to whole ways
NUMBERED = re.compile(r"\b(hm_policies|hm_watched)_\d+")
DOMAINS = {
    "city": ["Arras", "Lille", "Bourges"],
    "age": {"low": 0, "high": 80, "bins": 4},
    "flag": [True, False],
    "salary": {"low": 0, "high": 9000},
    "kwh": {"low": 0, "high": 500},
    "score": {"low": 0, "high": 10},
}


class Plain(list):  # type: ignore[type-arg]
    """Rows as values; texts are what is compared, because NaN is not equal to itself."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain)

    def __hash__(self) -> int:
        return 0


@dataclass
class Side:
    """One world in one engine, with its ledger of answers."""

    world: World
    engine: Any = "duckdb"
    ledger: hm.Ledger | None = None

    def __post_init__(self) -> None:
        self.given: Any = self.world.read() if isinstance(self.engine, str) else "people"
        self.options: dict[str, Any] = {"engine": self.engine}
        if not isinstance(self.engine, str):
            self.options["schema"] = self.world.schemas

    def see(self, sql: str) -> dict[str, Any]:
        """Everything that the answer, or the refusal, shows."""
        return self.seen(
            lambda: hm.query(
                self.given, sql, self.world.policies, ledger=self.ledger, **self.options
            )
        )

    def session(self) -> Session:
        """A session on this side that lasts for several questions."""
        return Session(self.given, **self.options)

    def seen(self, ask: Callable[[], Any]) -> dict[str, Any]:
        """Everything that the answer of a question shows."""
        try:
            answer = ask()
        except HalfmaskError as error:
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 - that anything else is raised shows too
            return {"crash": type(error).__name__, "text": str(error)[:300]}
        rows = answer.to_arrow()
        return {
            "rows": [repr(row) for row in rows.to_pylist()],
            "plain": Plain(rows.to_pylist()),
            "types": str(rows.schema),
            "repr": repr(answer),
            **{n: json.dumps(v, default=str) for n, v in answer.to_dict().items() if n != "rows"},
            "count": len(answer),
        }

    def explain(self, sql: str) -> dict[str, Any]:
        """The plan as it is shown."""
        try:
            found = hm.explain(self.given, sql, self.world.policies, **self.options)
        except HalfmaskError as error:
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 - that anything else is raised shows too
            return {"crash": type(error).__name__, "text": str(error)[:300]}
        # Each plan brings the policies under a name of its own, by number.
        plan, document = str(found), json.dumps(found.to_dict(), default=str)
        return {n: NUMBERED.sub(r"\1", t) for n, t in (("plan", plan), ("document", document))}

    def see_noisy(self, sql: str) -> dict[str, Any]:
        """What of a noisy answer is not noise."""
        try:
            answer = hm.query(self.given, sql, domains=DOMAINS, **self.options)
        except HalfmaskError as error:
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 - that anything else is raised shows too
            return {"crash": type(error).__name__, "text": str(error)[:300]}
        rows = answer.to_arrow()
        seen: dict[str, Any] = {"types": str(rows.schema)}
        if "DELTA" not in sql and "HAVING" not in sql:
            seen["rows"] = rows.num_rows
        return seen


def _refusal(error: HalfmaskError) -> dict[str, Any]:
    facts = {k: repr(v) for k, v in vars(error).items() if not k.startswith("_")}
    return {
        "refused": type(error).__name__,
        "code": error.code,
        "text": str(error),
        "facts": facts,
        "bug": isinstance(error, InternalError),
    }


@dataclass(frozen=True)
class Interference:
    """A question on which two worlds look different."""

    world: int
    change: int
    sql: str
    earlier: tuple[str, ...]
    differs: dict[str, tuple[Any, Any]]

    def __str__(self) -> str:
        lines = [f"world {self.world}, change {self.change}", *self.earlier, self.sql]
        refused = "refused" in self.differs
        names = [
            n for n in self.differs if n != "plain" and (not refused or n in ("text", "crash"))
        ]
        lines += [f"  {n}: {self.differs[n][0]!r} <> {self.differs[n][1]!r}" for n in names]
        return "\n".join(line[:800] for line in lines)


@dataclass
class Count:
    """How many questions were asked, what became of them, and what was found."""

    asked: int = 0
    answers: int = 0
    alike: int = 0  # comparisons in which the engine gave what it gave on a whole way
    answered: int = 0
    with_rows: int = 0
    with_figures: int = 0
    refused: int = 0
    failed: int = 0
    found: list[Interference] = field(default_factory=list)

    def note(self, seen: dict[str, Any]) -> None:
        self.asked += 1
        if "refused" in seen:
            self.refused += 1
        elif "crash" in seen:
            self.failed += 1
        else:
            self.answered += 1
            self.with_rows += bool(seen.get("rows"))
            figures = (v for row in seen.get("plain", ()) for n, v in row.items() if n[0] == "x")
            self.with_figures += any(value is not None for value in figures)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "comparisons": self.asked,
            "answers": self.answers,
            "alike": self.alike,
            "answered": self.answered,
            "with_rows": self.with_rows,
            "with_figures": self.with_figures,
            "refused": self.refused,
            "failed": self.failed,
            "share_with_rows": round(self.with_rows / max(self.asked, 1), 3),
            "interferences": len(self.found),
        }


def differences(a: dict[str, Any], b: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The observables in which two sights differ."""
    names = dict.fromkeys((*a, *b))
    return {n: (a.get(n), b.get(n)) for n in names if a.get(n) != b.get(n)}


def shown_key(
    row: dict[str, Any], keys: Sequence[str], rules: Sequence[tuple[str, object]]
) -> tuple[str, ...]:
    """How the key of a row of the table is shown at one level."""
    return tuple(
        _text(_generalized(key, row[key], kind, how))
        for key, (kind, how) in zip(keys, rules, strict=True)
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _generalized(key: str, value: Any, kind: str, how: Any) -> Any:
    if kind == "del":
        return "*"
    if value is None or kind == "as is":
        return value
    if kind == "interval":
        if not isfinite(value):
            return None
        low = floor(value / how) * how
        return f"[{low}, {low + how})"
    if key == "city" and how == 1:
        return next((name for name, below in TREE.items() if value in below), value)
    return "*"


def compare_world(
    seed: int,
    questions: int,
    engine: Any = "duckdb",
    *,
    changes: int = 1,
    deepest: int = 2,
    count: Count,
) -> None:
    """Ask questions in a world and in others where the planted people have other values.

    Args:
        seed: of the world and of the questions.
        questions: how many.
        engine: a name, or what makes an engine of the tables.
        changes: in how many other worlds they are asked too.
        deepest: how far operations of a question stand within each other.
        count: what was asked and found so far.
    """
    with ExitStack() as stack:
        sides = _sides(stack, seed, changes, engine)
        small = sides[0].engine == "reference"
        grammar = Grammar(sides[0].world, seed, small=small, deepest=deepest)
        r, earlier, left = random.Random(seed), [], 0
        for _ in range(questions):
            if not left and r.random() < 0.05:
                left = r.choice([2, 3, 4])
                for side in sides:
                    side.ledger = hm.Ledger()
            sql = grammar.question()
            explained = r.random() < 0.15
            _ask(sides, sql, tuple(earlier), seed, count, explained=explained)
            left, earlier = max(left - 1, 0), [*earlier, sql] if left > 1 else []
            if not left:
                for side in sides:
                    side.ledger = None


def compare_sequence(seed: int, questions: int = 5, *, changes: int = 1, count: Count) -> None:
    """Ask one question after the other, and a like one again, with one ledger on each side."""
    with ExitStack() as stack:
        sides = _sides(stack, seed, changes, "duckdb", kept=True)
        for side in sides:
            side.ledger = hm.Ledger()
        grammar = Grammar(sides[0].world, seed, deepest=1)
        r, earlier = random.Random(seed), []
        for _ in range(questions):
            # A question that was answered once, on other rows: this is what a ledger is for.
            sql = grammar.question()
            if earlier and r.random() < 0.5:
                sql = _narrowed(earlier[-1], r)
            _ask(sides, sql, tuple(earlier), seed, count)
            earlier.append(sql)


def _narrowed(sql: str, r: random.Random) -> str:
    """The same question of fewer people."""
    condition = r.choice(["age <> 37", "salary > 1200", "city <> 'Lille'", "score < 8"])
    if " WHERE " in sql:
        return sql.replace(" WHERE ", f" WHERE {condition} AND ", 1)
    for word in (" GROUP BY ", " HAVING ", " ORDER BY ", " LIMIT ", " GUARANTEE "):
        if word in sql:
            return sql.replace(word, f" WHERE {condition}{word}", 1)
    return sql


class Recorder(DuckDB):
    """An engine that notes what was asked of its rows, and what was brought along for it."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self.trail: list[Step] = []
        super().__init__(tables)

    def run_text(self, query: str) -> Any:
        """Run one query, and note it: all that is known of rows comes this way."""
        self.trail.append(("", query))
        return super().run_text(query)

    def add(self, name: str, rows: Any) -> None:
        """Bring a table along, and note it."""
        self.trail.append((name, rows))
        super().add(name, rows)

    def bring(self, name: str, rows: Any, like: tuple[str, str | None]) -> None:
        """Bring a table along to join with, and note it."""
        self.trail.append((name, rows))
        super().bring(name, rows, like)

    def turn_to(self, tables: dict[str, Any]) -> None:
        """Have the rows of another world in the place of these."""
        for name, rows in tables.items():
            super().add(name, rows)

    def repeat(self, step: Step, given: dict[str, str]) -> str:
        """What the rows give to the same query, in any order: none is sure; "" for what is brought.

        As text, because NaN is not equal to itself. ``given`` keeps what rows gave to queries that
        nothing was brought along for: every question asks some of them.
        """
        import duckdb

        name, what = step
        if name:
            super().add(name, what)
            return ""
        if what in given:
            return given[what]
        try:
            rows = self._connection.execute(f"EXECUTE {self._plan(what)}").fetchall()
            found = repr(sorted(map(repr, rows)))
        except duckdb.Error:
            found = "failed"  # which is all that is told of it
        if "hm_" not in what:
            given[what] = found
        return found


class Known:
    """What was asked of rows on the way to an answer, and by what they gave, how it went on."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self.after: dict[str, Known] = {}
        self.seen: dict[str, Any] | None = None

    def learn(
        self, engine: Recorder, trail: Sequence[Step], seen: dict[str, Any], given: dict[str, str]
    ) -> None:
        """Take up what was asked and seen in a world whose rows the engine has now."""
        node = self
        for step in trail:
            if node.step is None or not _same(node.step, step):
                node.step, node.after = step, {}
            node = node.after.setdefault(engine.repeat(step, given), Known())
        node.step, node.after, node.seen = None, {}, seen

    def follow(self, engine: Recorder, given: dict[str, str]) -> tuple[dict[str, Any] | None, int]:
        """What is seen where rows give only what is known, else None; how many steps were known."""
        node: Known | None = self
        steps = 0
        while node is not None and node.step is not None:
            node = node.after.get(engine.repeat(node.step, given))
            steps += node is not None
        return (None if node is None else node.seen), steps


def _same(a: Step, b: Step) -> bool:
    return a[0] == b[0] and bool(a[1].equals(b[1]) if a[0] else a[1] == b[1])


def compare_planned(
    seed: int, questions: int, *, changes: int = 1, deepest: int = 1, count: Count
) -> None:
    """Ask each question the whole way in one world; in others ask the engine what was asked there.

    All that is known of rows is what the engine gives. Where it gives the very same as in a world
    in which the question went the whole way, in planning and in answering, the code behind it does
    the same, and what is seen is the same; where it gives anything else, the question goes the
    whole way there too. So does one of ``WHOLE`` in any case: that nothing but rows decides is
    asserted rather than assumed. What is refused before anything is asked of rows, whatever they
    are, goes the whole way in one other world.

    What takes many queries is left to ``compare_world``: keys that climb a hierarchy, whose plans
    list the values of rows, joins, policies of single people, and most worlds in which people have
    several rows.
    """
    while _is_slow(make_world(seed), seed):
        seed += 1_000_000
    world = make_world(seed, ruled=True)
    worlds = [world, *(change_planted(world, seed * 100 + n) for n in range(changes))]
    tables = [one.arrow for one in worlds]
    if _threads() == 1:  # nobody reads batches side by side
        tables = [{n: rows.combine_chunks() for n, rows in one.items()} for one in tables]
    given: list[dict[str, str]] = [{} for _ in worlds]
    grammar, r, asked = Grammar(world, seed, deepest=deepest), random.Random(seed), 0
    with closing(Recorder(tables[0])) as engine:
        side = Side(world, engine)
        while asked < questions:
            sql = grammar.question()
            if LONG.search(sql):
                continue
            engine.turn_to(tables[0])
            engine.trail = []
            with side.session() as session:
                works: list[Any] = []
                prepare = partial(session.prepare, sql, policies=world.policies)
                first = side.seen(partial(_answer, session, prepare, works))
                if works and _is_long(works[0][0]):
                    continue
                asked += 1
                trail, planned = engine.trail, works[0][1] if works else 0
                known, seen = Known(), [first]
                known.learn(engine, trail, first, given[0])
                for rows, gave in list(zip(tables, given, strict=True))[1 : None if trail else 2]:
                    engine.turn_to(rows)
                    whole = not trail or r.random() * WHOLE < 1
                    found, steps = (None, 0) if whole else known.follow(engine, gave)
                    if found is not None:
                        count.alike += 1
                        seen.append(found)
                        continue
                    engine.trail = []
                    if works and steps >= planned > 0:
                        engine.trail += trail[:planned]
                        seen.append(side.seen(partial(session.answer, works[0][0])))
                    else:
                        seen.append(side.see(sql))
                    known.learn(engine, engine.trail, seen[-1], gave)
            _compare(seen, sql, (), seed, count)


def _answer(session: Session, prepare: Callable[[], Any], works: list[Any]) -> Any:
    """Answer a question; its plan is kept aside, and how much was asked of rows for it."""
    work, engine = prepare(), session.engine
    works.append((work, len(engine.trail) if isinstance(engine, Recorder) else 0))
    return session.answer(work)


def _threads() -> int:
    """How many read rows side by side."""
    return int(_database().execute("SELECT current_setting('threads')").fetchone()[0])


def _is_slow(world: World, seed: int) -> bool:
    """Whether demands stand in a file, or, mostly, whether people have several rows."""
    several = world.several and random.Random(f"{seed} several").random() < 0.6
    return world.demand == "file" or several


def _is_long(work: Any) -> bool:
    """Whether a plan lists values of the rows of its tables, or reads several tables."""
    climbs = any(isinstance(rule, Climb) for key in work.plan.request.keys for rule in key.rules)
    return climbs or len(work.plan.scope.tables) > 1


def _sides(
    stack: ExitStack, seed: int, changes: int, engine: Any, *, kept: bool = False
) -> list[Side]:
    """A world and others in which planted people have other values; half of them stay open.

    ``kept``: all stay open, and sums that few people make up may be hidden.
    """
    world = make_world(seed, ruled=kept)
    sides = []
    for one in (world, *(change_planted(world, seed * 100 + n) for n in range(changes))):
        made = engine
        if engine == "duckdb" and (seed % 2 or kept):
            made = stack.enter_context(closing(DuckDB(one.arrow)))
        elif not isinstance(engine, str):
            made = stack.enter_context(engine(one.arrow))
        sides.append(Side(one, made))
    return sides


def _ask(
    sides: list[Side],
    sql: str,
    earlier: tuple[str, ...],
    seed: int,
    count: Count,
    *,
    explained: bool = False,
) -> None:
    """Ask one question on all sides, and compare what is seen."""
    seen = [side.see(sql) for side in sides]
    if explained:
        for side, one in zip(sides, seen, strict=True):
            one |= {f"EXPLAIN {name}": value for name, value in side.explain(sql).items()}
    _compare(seen, sql, earlier, seed, count)


def _compare(
    seen: list[dict[str, Any]], sql: str, earlier: tuple[str, ...], seed: int, count: Count
) -> None:
    count.answers += len(seen)
    first, *rest = seen
    for i, one in enumerate(rest, start=1):
        count.note(first)
        if differs := differences(first, one):
            count.found.append(Interference(seed, i, sql, earlier, differs))


def compare_one(seed: int, questions: int, *, count: Count) -> None:
    """Change one value of somebody; only rows on the way up from the old and new group may change.

    ``selective``: a row that covers neither key, at its level, is the same before and after.
    ``complete`` and ``complete-greedy`` weigh groups against each other as far as the last level's
    node that holds them: there, a row below another node of the last level is the same. A figure
    that depends on a condition is empty in rows without a part that is too small in another row:
    whether there is such a part may change; a figure that is shown in both may not.
    """
    world = make_world(seed)
    other, before, after = change_one(world, seed)
    sides = Side(world), Side(other)
    grammar = Grammar(world, seed)
    for _ in range(questions):
        sql, keys, rules = grammar.plain()
        seen = [side.see(sql) for side in sides]
        count.answers += len(seen)
        count.note(seen[0])
        if "level" in str(seen[0].get("types")) and "level" in str(seen[1].get("types")):
            last = None if "complete" not in sql else rules[-1]
            a, b = (
                [r for r in s["plain"] if not _touched(r, keys, rules, last, (before, after))]
                for s in seen
            )
            a, b = _without_withheld(sql, a, b)
            differs = differences({"rows": sorted(map(repr, a))}, {"rows": sorted(map(repr, b))})
        else:
            differs = differences(*seen)
        if differs:
            count.found.append(Interference(seed, 0, sql, (), differs))


CALLED = re.compile(r"(\S.*?) AS (x\d+)(?:, | FROM )")
UNCONDITIONAL = re.compile(r"COUNT\(\*\)|(SUM|AVG|MIN|MAX|MEDIAN|VARIANCE|STDDEV_POP)\(\w+\)")


def _without_withheld(sql: str, *sides: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows of two sides without the figures of a condition that the same row withholds in one."""
    shown = re.sub(r"^SELECT ", "", sql)
    calls = {name: call.rpartition(", ")[2] for call, name in CALLED.findall(shown)}
    free = {name for name, call in calls.items() if not UNCONDITIONAL.fullmatch(call)}
    empty: dict[str, set[str]] = {}

    def same(row: dict[str, Any]) -> set[str]:
        return empty.setdefault(repr({n: v for n, v in row.items() if n not in free}), set())

    for row in (row for side in sides for row in side):
        same(row).update(n for n in free if row[n] is None)
    return [
        [{n: None if n in same(row) else v for n, v in row.items()} for row in side]
        for side in sides
    ]


def _touched(
    row: dict[str, Any],
    keys: Sequence[str],
    rules: Sequence[Sequence[tuple[str, object]]],
    last: Sequence[tuple[str, object]] | None,
    people: tuple[dict[str, Any], dict[str, Any]],
) -> bool:
    """Whether a published row stands on the way up from the group of either row of the table."""
    shown = tuple(_text(row[key]) for key in keys)
    rule = rules[row["level"]]
    if last is None:
        return any(shown == shown_key(p, keys, rule) for p in people)
    # What is shown is generalized already: compare as far as the last level lets it be seen.
    tops = [shown_key(p, keys, last) for p in people]
    return any(
        all(_within(s, t, how, now) for s, t, how, now in zip(shown, top, last, rule, strict=True))
        for top in tops
    )


def _within(shown: str, top: str, last: tuple[str, object], now: tuple[str, object]) -> bool:
    if last[0] == "del" or now == last:
        return last[0] == "del" or shown == top
    if last[0] == "interval":
        low = re.match(r"\[?(-?\d+)", shown)
        if low is None:
            return shown == top
        return _text(_generalized("", int(low[1]), "interval", last[1])) == top
    return shown == top or shown in TREE.get(top, ()) or top == "*"


def compare_parts(seed: int, questions: int, *, count: Count) -> None:
    """Ask for parts of rows: none that is shown, nor what it leaves, may be of fewer than k people.

    Somebody who stands in a row may change its figures. What must not leave is a figure of few, so
    that each row is held against the k that it states: where everybody has one row, a count of
    those who meet a condition is empty, nobody, everybody, or k people who leave k others.
    """
    seed = next(s for s in range(seed, seed + 100) if not make_world(s).several)
    side = Side(make_world(seed))
    grammar = Grammar(side.world, seed)
    for _ in range(questions):
        sql = grammar.split()
        seen = side.see(sql)
        count.answers += 1
        count.note(seen)
        few = {str(row): "made of few people" for row in seen.get("plain", ()) if _shows_few(row)}
        if few:
            count.found.append(Interference(seed, 0, sql, (), {"rows": (list(few), "no such")}))


def _shows_few(row: dict[str, Any]) -> bool:
    stated = re.match(r"k>=(\d+)", str(row["guarantee"]))
    assert stated is not None
    k, part = int(stated[1]), row["x0"]
    return part is not None and any(0 < number < k for number in (part, row["n"] - part))


def compare_noisy(seed: int, questions: int, *, changes: int = 1, count: Count) -> None:
    """Ask noisy questions in worlds whose rows are all different."""
    world = make_world(seed)
    sides = [Side(world), *(Side(change_all(world, seed * 100 + n)) for n in range(changes))]
    grammar = Grammar(world, seed)
    for _ in range(questions):
        sql = grammar.noisy()
        first, *rest = (side.see_noisy(sql) for side in sides)
        count.answers += len(sides)
        for i, seen in enumerate(rest, start=1):
            count.note(first)
            if differs := differences(first, seen):
                count.found.append(Interference(seed, i, sql, (), differs))
