"""Random questions over everything that the query language takes, and some that it refuses."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planted import CITIES, DISEASES, WARDS

if TYPE_CHECKING:
    from planted import World

TEXTS = {"city": CITIES, "disease": DISEASES, "ward": WARDS, "zip": ("351", "590")}
PEOPLE = {
    "number": ("salary", "kwh", "score"),
    "text": ("disease", "code"),
    "date": ("seen",),
    "truth": ("flag",),
}
KNOWN = {"number": ("age",), "text": ("city", "zip"), "date": ("born",)}
VISITS = {"number": ("cost", "nights")}
KNOWN_VISITS = {"text": ("ward",), "date": ("day",)}
RANGES = {
    "age": (20, 70),
    "salary": (1000, 5000),
    "kwh": (1, 500),
    "score": (1, 9),
    "cost": (1, 220),
    "nights": (1, 12),
}
BEYOND = re.compile(
    r"ROUND|SIGN|NULLIF|EXTRACT|DATE|LN\(|EXP\(|POW|LEFT\(|RIGHT\(|REPLACE|CONCAT|TRIM|STRPOS|SMALLINT"
)
EXTREMES = ("1e30", "1e-30", "5e-324", "1e308", "1e-308", "-1e308", "1e200", "1e-200", "0.0")
DAYS = ("1960-01-01", "2020-04-01", "2021-06-01")
NOISY = (
    "COUNT(*)",
    "COUNT({x})",
    "SUM({x})",
    "AVG({x})",
    "MEDIAN({x})",
    "VARIANCE({x})",
    "COUNT(DISTINCT id)",
    "QUANTILE_CONT({x}, 0.9)",
    "STDDEV_POP({x})",
    "SUM(LEAST(GREATEST({e}, 0), 100))",
    "MAX({x})",
)


@dataclass(frozen=True)
class Source:
    """What stands in FROM, and the columns that may be spoken of.

    Attributes:
        head: what stands in front of SELECT.
        text: what stands behind FROM.
        secret: kind to the columns that may stand together in an aggregate.
        known: kind to the columns that others know.
        bound: whether people have several rows by a join.
    """

    head: str
    text: str
    secret: dict[str, tuple[str, ...]]
    known: dict[str, tuple[str, ...]]
    bound: bool


class Grammar:
    """Draws questions on one world.

    ``small`` leaves out what the plain reference does not know. ``deepest`` is how far operations
    stand within each other: short questions are planned in a fraction of the time.
    """

    def __init__(self, world: World, seed: int, *, small: bool = False, deepest: int = 2) -> None:
        self.world, self.r, self.small, self.deepest = world, random.Random(seed), small, deepest

    def question(self) -> str:
        """A question under guarantees."""
        while True:
            text = self._question()
            if not (self.small and BEYOND.search(text)):
                return text

    def _question(self) -> str:
        drawn = self.r.random()
        text = self._select(self._source())
        if drawn < 0.06:
            return self._broken(text)
        if drawn < 0.07:
            return self._united(text)
        return text

    def plain(self) -> tuple[str, list[str], list[list[tuple[str, object]]]]:
        """A question whose rows can be placed: its text, its keys, and per level their rules."""
        r = self.r
        keys = r.sample(["city", "age", "disease", "score"], r.choice([1, 1, 2]))
        source = Source("", "people", PEOPLE, KNOWN, bound=False)
        calls = self._calls(source)
        where = f"WHERE {self._condition(source, 1)}" if r.random() < 0.3 else ""
        having = "HAVING COUNT(*) >= 4" if r.random() < 0.2 else ""
        chain, rules = self._chain(dict(zip(keys, keys, strict=True)))
        shown = ", ".join([*keys, *(f"{c} AS x{i}" for i, c in enumerate(calls))])
        text = f"SELECT {shown} FROM people {where} GROUP BY {', '.join(keys)} {having} {chain}"
        return f"{text} {self._semantics()}", keys, rules

    def split(self) -> str:
        """A question that counts, in each row, all its people (n) and those of a condition (x0)."""
        r = self.r
        source = Source("", "people", PEOPLE, KNOWN, bound=False)
        keys = r.sample(["city", "age", "zip"], r.choice([0, 1, 1]))
        chain, _ = self._chain({key: key for key in keys})
        condition = self._condition(source, r.choice([0, 0, 1]))
        part = r.choice(
            [
                f"COUNT(*) FILTER (WHERE {condition})",
                f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)",
                f"COUNT(CASE WHEN {condition} THEN 1 END)",
            ]
        )
        shown = ", ".join([*keys, "COUNT(*) AS n", f"{part} AS x0"])
        group = f"GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {shown} FROM people {group} {chain} {self._semantics()}"

    def noisy(self) -> str:
        """A question under EPSILON."""
        r = self.r
        source = Source("", "people", PEOPLE, KNOWN, bound=False)
        numbers = ["salary", "kwh", "score", "age"]
        calls = []
        for _ in range(r.choice([1, 1, 2])):
            x = r.choice(numbers)
            shape = r.choice(NOISY)
            call = shape.format(x=x, e=self._number(source, 2))
            if r.random() < 0.3:
                call += f" FILTER (WHERE {self._condition(source, 2)})"
            calls.append(call)
        keys = r.sample(["city", "age", "disease", "zip", "flag"], r.choice([0, 1, 1, 2]))
        if r.random() < 0.2:
            keys = [self._text(source, 1) + " AS made"]
        names = [k.rpartition(" AS ")[2] for k in keys]
        shown = ", ".join([*keys, *(f"{c} AS x{i}" for i, c in enumerate(calls))])
        where = f"WHERE {self._condition(source, 2)}" if r.random() < 0.5 else ""
        group = f"GROUP BY {', '.join(names)}" if names else ""
        having = "HAVING x0 > 2" if r.random() < 0.1 else ""
        private = {"city", "age", "flag"}
        delta = "DELTA 1e-6" if set(names) - private or r.random() < 0.2 else ""
        most = f"AT MOST {r.randint(1, 4)} ROWS PER PERSON" if r.random() < 0.3 else ""
        return f"SELECT {shown} FROM people {where} {group} {having} WITH EPSILON 1 {delta} {most}"

    def _source(self) -> Source:
        r = self.r
        both = {k: PEOPLE.get(k, ()) + VISITS.get(k, ()) for k in PEOPLE}
        everything = {k: KNOWN[k] + KNOWN_VISITS.get(k, ()) for k in KNOWN}
        towns = {**KNOWN, "number": (*KNOWN["number"], "size"), "text": (*KNOWN["text"], "region")}
        side = r.choice(["", "", "LEFT "])
        several = self.world.visits > 1
        drawn = r.random()
        if drawn < 0.5:
            return Source(
                "", r.choice(["people", "people", "people p"]), PEOPLE, KNOWN, bound=False
            )
        if drawn < 0.62:
            joined = r.choice(
                [
                    f"people {side}JOIN visits USING (id)",
                    f"people p {side}JOIN visits v ON p.id = v.id",
                    f"people p {side}JOIN visits v ON v.id = p.id AND p.id = v.id",
                    f"people p {side}JOIN visits v ON v.id = p.id AND p.disease = v.ward",
                ]
            )
            return Source("", joined, both, everything, bound=several)
        if drawn < 0.66:
            # The row that states the demand may be absent, or one of several.
            joined = r.choice(
                [
                    f"visits {side}JOIN people USING (id)",
                    "visits v LEFT JOIN people p ON p.id = v.id AND p.city = v.ward",
                    f"visits v {side}JOIN people p ON p.id = v.id AND p.score = v.nights",
                ]
            )
            return Source("", joined, both, everything, bound=self.world.several)
        if drawn < 0.74:
            joined = f"people {side}JOIN towns ON city = town"
            return Source("", joined, PEOPLE, towns, bound=False)
        inner = self._inner()
        secret = {**PEOPLE, "number": (*PEOPLE["number"], "made")}
        if drawn < 0.84:
            return Source("", f"({inner}) d", secret, KNOWN, bound=False)
        if drawn < 0.9:
            text = f"({inner}) d {side}JOIN towns ON d.city = towns.town"
            return Source("", text, secret, towns, bound=False)
        return Source(f"WITH w AS ({inner}) ", r.choice(["w", "w x"]), secret, KNOWN, bound=False)

    def _inner(self) -> str:
        source = Source("", "people", PEOPLE, KNOWN, bound=False)
        where = f" WHERE {self._condition(source, 1)}" if self.r.random() < 0.4 else ""
        return f"SELECT *, {self._number(source, 2)} AS made FROM people{where}"

    def _select(self, source: Source) -> str:
        r = self.r
        keys = [self._key(source, i) for i in range(r.choice([0, 1, 1, 1, 2, 2, 3]))]
        keys = list(dict(keys).items())
        calls = self._calls(source)
        shown = [f"{e} AS {n}" if e != n else e for e, n in keys]
        shown += [f"{c} AS x{i}" for i, c in enumerate(calls)]
        if r.random() < 0.15:
            shown.append(
                r.choice(["x0 + 1", "COUNT(*) * 2", "COUNT(*) / 0"]).replace("x0", calls[0])
            )
        parts = [f"{source.head}SELECT {', '.join(shown)} FROM {source.text}"]
        if r.random() < 0.35:
            where = self._condition(self._every(source) if r.random() < 0.5 else source, 2)
            if r.random() < 0.15:
                where = "city IN (SELECT town FROM towns WHERE size > 100)"
            parts.append(f"WHERE {where}")
        if keys:
            by = [
                str(i + 1) if r.random() < 0.3 else (n if r.random() < 0.5 else e)
                for i, (e, n) in enumerate(keys)
            ]
            parts.append(f"GROUP BY {', '.join(by)}")
        parts += self._tail(calls, [n for _, n in keys])
        chain, _ = self._chain({n: e for e, n in keys})
        parts += [chain, self._semantics()]
        if source.bound or r.random() < 0.05:
            parts.append(f"AT MOST {r.choice([2, 9, 9, 9, 20])} ROWS PER PERSON")
        return " ".join(p for p in parts if p)

    def _tail(self, calls: list[str], names: list[str]) -> list[str]:
        r, parts = self.r, []
        if r.random() < 0.1:
            parts.append(
                "HAVING "
                + r.choice(
                    [f"{calls[0]} IS NOT NULL", "COUNT(*) >= 4", "COUNT(*) / 2 > 1", "x0 > 3"]
                )
            )
        if r.random() < 0.35:
            keys = [*names, "x0", "1", "COUNT(*)", calls[0]]
            by = [
                r.choice(keys) + r.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
                for _ in range(r.choice([1, 2]))
            ]
            parts.append(f"ORDER BY {', '.join(by)}")
        if r.random() < 0.2:
            parts.append(f"LIMIT {r.choice([1, 2, 5, 50])}")
            if r.random() < 0.4:
                parts.append(f"OFFSET {r.choice([0, 1])}")
        return parts

    def _key(self, source: Source, i: int) -> tuple[str, str]:
        r = self.r
        if r.random() < 0.7:
            plain = [*source.known["text"], *source.known["number"], "disease", "score", "flag"]
            plain += ["born"] if r.random() < 0.1 else []
            column = r.choice(plain)
            return column, column if r.random() < 0.8 else f"key{i}"
        every = self._every(source)
        kind = r.choice([self._text, self._number, self._bucket, self._bucket])
        return kind(every, 2), f"key{i}"

    def _every(self, source: Source) -> Source:
        """All columns, where one may be tied to any other."""
        names = {k: source.secret.get(k, ()) + source.known.get(k, ()) for k in source.secret}
        return Source(source.head, source.text, names, source.known, bound=source.bound)

    def _bucket(self, source: Source, depth: int) -> str:
        r = self.r
        column = r.choice(source.secret["number"])
        return r.choice(
            [
                f"CASE WHEN {self._condition(source, depth - 1)} THEN 'a' ELSE 'b' END",
                f"FLOOR({column} / 20)",
                f"{column} % 3",
                f"YEAR({r.choice(source.secret['date'])}) % 10",
                f"LENGTH({r.choice(source.secret['text'])})",
                f"LEFT({r.choice(source.secret['text'])}, 1)",
                f"{column} IS NULL",
                f"ROUND({column} / 100)",
            ]
        )

    def _calls(self, source: Source) -> list[str]:
        r = self.r
        made = []
        for _ in range(r.choice([1, 1, 2, 3])):
            one = r.random()
            if one < 0.25:
                call = "COUNT(*)"
            elif one < 0.85:
                verb = r.choice(
                    ["SUM", "SUM", "AVG", "AVG", "MIN", "MAX", "MEDIAN", "VARIANCE", "STDDEV_POP"]
                )
                call = f"{verb}({self._argument(source)})"
            else:
                inner = self._argument(source) if r.random() < 0.5 else self._text(source, 1)
                if r.random() < 0.2:  # some or all of the dates leave the calendar
                    days = r.choice([1, 2_913_000, 2_920_000, 2_925_000, -700_000])
                    inner = f"{r.choice(source.secret['date'])} + INTERVAL '{days}' DAY"
                call = f"{r.choice(['COUNT(', 'COUNT(DISTINCT ', 'MIN('])}{inner})"
            if r.random() < 0.12:
                call += f" FILTER (WHERE {self._condition(source, 1)})"
            if call not in made:
                made.append(call)
        return made

    def _argument(self, source: Source) -> str:
        r = self.r
        if r.random() < 0.45:
            return r.choice(source.secret["number"])
        if r.random() < 0.15:
            # One column that others know may stand alone.
            return r.choice(["age", "age % 7", "CASE WHEN age > 40 THEN 1 ELSE 0 END", "age * age"])
        return self._number(source, 2)

    def _number(self, source: Source, depth: int) -> str:
        r = self.r
        depth = min(depth, self.deepest)
        column = r.choice(source.secret["number"])
        low, high = RANGES.get(column, (0, 50))
        constant = str(r.choice([0, 1, 2, 7, low, high, r.randint(low, high)]))
        if depth <= 0:
            return column if r.random() < 0.7 else constant
        a, b = self._number(source, depth - 1), self._number(source, depth - 1)
        t = r.choice(source.secret["text"])
        d = r.choice(source.secret["date"])
        c = self._condition(source, depth - 1)
        calm = [
            f"{a} + {b}",
            f"({a}) - ({b})",
            f"({a}) * {constant}",
            f"-{column}",
            f"ABS({a})",
            f"ROUND({a})",
            f"FLOOR({a})",
            f"CEIL({a})",
            f"SIGN({a})",
            f"GREATEST({a}, {b})",
            f"LEAST({a}, {b})",
            f"COALESCE({column}, {constant})",
            f"NULLIF({column}, {constant})",
            f"CASE WHEN {c} THEN {a} ELSE {b} END",
            f"CASE WHEN {c} THEN {a} END",
            f"IF({c}, {a}, {b})",
            f"LENGTH({t})",
            f"YEAR({d})",
            f"EXTRACT(MONTH FROM {d})",
            f"CAST({column} AS DOUBLE)",
            f"({a}) / {r.choice([2, 3, 10])}",
            f"({a}) % {r.choice([2, 7])}",
            f"DATE_DIFF('day', {d}, DATE '2021-06-01')",
        ]
        rash = [
            f"({a}) / ({b})",
            f"({a}) % ({b})",
            f"({a}) // ({b})",
            f"({a}) * ({b})",
            f"LN({a})",
            f"SQRT({a})",
            f"EXP({column})",
            f"POW({a}, 2)",
            f"POW({column}, {b})",
            f"CAST({t} AS INT)",
            "TRY_CAST(code AS DOUBLE)",
            "CAST(code AS INT)",
            "CAST(code AS DOUBLE) * 2",
            f"CAST({column} AS INT)",
            f"CAST({column} AS SMALLINT)",
            f"CAST({c} AS INT)",
            f"({column}) * ({c})",
            f"1 / ({column} - {constant})",
            f"STRPOS({t}, 'a')",
            f"EXTRACT(EPOCH FROM {d})",
        ]
        drawn = r.random()
        if drawn < 0.08:
            return self._extreme(column, a)
        return r.choice(rash if drawn < 0.35 else calm)

    def _extreme(self, column: str, a: str) -> str:
        """What vanishes, overflows or is infinite for some values: doubles at their ends."""
        r = self.r
        x, y = r.choice(EXTREMES), r.choice(EXTREMES)
        end = f"CAST('{r.choice(['inf', '-inf', 'nan', '1e400'])}' AS DOUBLE)"
        return r.choice(
            [
                f"({a}) * {x}",
                f"({a}) / {x}",
                f"{x} / ({a})",
                f"{x} * ({column}) * {y}",
                f"({a}) / {x} / {y}",
                f"({a}) * {x} / {y} * {x}",
                f"({column} - 1) * {x} * {x} * {x}",
                f"POW({column}, 40) * {x}",
                f"POW({x}, {column})",
                f"POW(POW({column}, 7), 9) / {x}",
                f"1 / POW({column}, 300)",
                f"EXP(-({column})) * EXP(-({column}))",
                f"SQRT({x}) * ({a})",
                f"LN({x} * ({column}))",
                f"({a}) + {end}",
                f"({column}) * {end}",
                f"GREATEST({column}, {end})",
                f"CAST(CAST(({column}) * {x} AS TEXT) AS DOUBLE)",
                f"CAST(CAST(CAST({column} AS DOUBLE) AS TEXT) AS INT)",
                f"CAST(CAST(({column}) * {x} AS INT) AS DOUBLE) / {y}",
                f"CAST(({column}) * {x} AS DECIMAL(18, 2))",
                f"ROUND(({column}) * {x}, 2)",
                f"FLOOR(({column}) / {x})",
                f"({column}) % {x}",
            ]
        )

    def _text(self, source: Source, depth: int) -> str:
        r = self.r
        depth = min(depth, self.deepest)
        column = r.choice(source.secret["text"])
        if depth <= 0:
            return column
        t = self._text(source, depth - 1)
        return r.choice(
            [
                column,
                f"UPPER({t})",
                f"LOWER({t})",
                f"TRIM({t})",
                f"SUBSTRING({t}, 1, 2)",
                f"LEFT({t}, {r.choice([1, 2])})",
                f"RIGHT({t}, 1)",
                f"REPLACE({t}, 'l', 'll')",
                f"REPLACE(REPLACE({t}, 'y', 'yyyyyyyy'), 'y', 'yyyyyyyy')",
                f"CONCAT({t}, 'x')",
                f"{t} || '-' || {column}",
                f"COALESCE({t}, '?')",
                f"NULLIF({t}, '')",
                f"CASE WHEN {self._condition(source, depth - 1)} THEN {t} ELSE 'other' END",
                f"CAST({r.choice(source.secret['number'])} AS TEXT)",
            ]
        )

    def _condition(self, source: Source, depth: int) -> str:
        r = self.r
        depth = min(depth, self.deepest)
        column = r.choice(source.secret["number"])
        text = r.choice(source.secret["text"])
        low, high = RANGES.get(column, (0, 50))
        value = r.randint(low, high)
        chosen = r.choice(TEXTS.get(text, ("12", "7"))).replace("'", "''")
        flat = [
            f"{column} {r.choice(['>', '<', '>=', '<>'])} {value}",
            f"{column} BETWEEN {low} AND {value}",
            f"{column} IS {r.choice(['', 'NOT ', 'NOT ', 'NOT '])}NULL",
            f"{text} {r.choice(['=', '<>', '<>', '<>'])} '{chosen}'",
            f"{text} LIKE '%{r.choice('aeilf')}%'",
            f"{text} {r.choice(['', 'NOT '])}IN ('{chosen}', 'flu')",
            f"{r.choice(source.secret['truth'])}",
            f"{r.choice(source.secret['date'])} {r.choice(['>=', '<'])} DATE '{r.choice(DAYS)}'",
            f"LENGTH({text}) {r.choice(['>', '<='])} 2",
        ]
        if depth <= 0:
            return r.choice(flat)
        known = r.choice(source.known["number"])
        return r.choice(
            [
                *flat,
                f"({self._condition(source, depth - 1)} AND {self._condition(source, depth - 1)})",
                f"({self._condition(source, depth - 1)} OR {self._condition(source, depth - 1)})",
                f"NOT ({self._condition(source, depth - 1)})",
                f"{known} > {r.randint(20, 40)}",
                f"{self._number(source, depth - 1)} >= {r.choice([0, 1])}",
                f"{self._text(source, depth - 1)} <> 'Flu'",
                f"COALESCE(CAST({text} AS INT), 9) > {r.choice([0, 5])}",
            ]
        )

    def _chain(self, keys: dict[str, str]) -> tuple[str, list[list[tuple[str, object]]]]:
        """Guarantees; per level and key, how it is shown."""
        r = self.r
        k, l = r.choice([3, 3, 3, 4]), r.choice([1, 1, 1, 2])  # noqa: E741
        state: dict[str, tuple[str, object]] = dict.fromkeys(keys, ("as is", 0))
        rules = [[state[n] for n in keys]]
        of = f" OF {r.choice(['disease', 'city', 'salary'])}" if l > 1 else ""
        parts = [f"GUARANTEE k = {k}" + (f", l = {l}{of}" if l > 1 else "")]
        open_keys = list(keys)
        whole = r.random() < 0.6
        while open_keys and (whole or r.random() < 0.7):
            name = r.choice(open_keys)
            state[name], step = self._step(keys[name], state[name])
            if state[name][0] == "del":
                open_keys.remove(name)
            k += r.choice([0, 1, 1])
            parts.append(f"THEN {name} -> {step} GUARANTEE k = {k}")
            rules.append([state[n] for n in keys])
        return " ".join(parts), rules

    def _step(self, expression: str, now: tuple[str, object]) -> tuple[tuple[str, object], str]:
        r = self.r
        kind, how = now
        if kind == "interval" and r.random() < 0.4:
            return ("interval", int(str(how)) * 2), str(int(str(how)) * 2)
        if (
            kind == "as is"
            and expression in ("age", "score", "nights", "size")
            and r.random() < 0.7
        ):
            width = r.choice([5, 10, 20])
            return ("interval", width), str(width)
        if expression == "city" and r.random() < 0.6 and (kind == "as is" or how == 1):
            return ("up", int(str(how)) + 1), "up"
        if expression == "zip" and r.random() < 0.6 and kind == "as is":
            return ("up", 1), "up"
        return ("del", 0), "del"

    def _semantics(self) -> str:
        return self.r.choice(
            ["", "SEMANTICS selective", "SEMANTICS complete", "SEMANTICS complete-greedy"]
        )

    def _united(self, text: str) -> str:
        """Two questions in one, which is refused."""
        word = self.r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
        return text.replace(" GUARANTEE", f" {word} SELECT city FROM people GUARANTEE", 1)

    def _broken(self, text: str) -> str:
        r = self.r
        words = text.split(" ")
        at = r.randrange(len(words))
        change = r.randrange(6)
        if change == 0:
            del words[at]
        elif change == 1:
            words.insert(at, words[at])
        elif change == 2:
            words[at] = r.choice(
                ["nope", "id", "k_i", "*", "(", "OVER ()", "NULL", "999999999999999"]
            )
        elif change == 3:
            return text.replace("SELECT", "SELECT DISTINCT", 1)
        elif change == 4:
            return text.replace(" FROM ", ", id FROM ", 1)
        else:
            return text.replace("GUARANTEE k = ", "GUARANTEE k = -", 1)
        return " ".join(words)
