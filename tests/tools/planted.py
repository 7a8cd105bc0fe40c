"""Random tables with planted people whose demand nothing can meet, and other values for them."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

UNMEETABLE = 1_000_000
BIG = 2**63 - 1
BATCH = 7
ABSENT = 0.3  # of the worlds, those in which planted people have no visits
CITIES = ("Arras", "Bourges", "Lille", "Zoë-sur-Mer", "日本橋", "O'Brien")
TREE = {"north": ["Arras", "Lille", "日本橋"], "south": ["Bourges", "Zoë-sur-Mer", "O'Brien"]}
DISEASES = ("flu", "asthma", "none", "ÉPI", "")
WARDS = ("w1", "w2", "w3")

Form = Literal["mild", "odd", "missing"]
Demand = Literal["k", "l", "file", "column"]

SALARIES = {"integer": pa.int64(), "float": pa.float64(), "decimal": pa.decimal128(18, 2)}
TYPES: dict[str, dict[str, pa.DataType]] = {
    "people": {
        "id": pa.int64(),
        "city": pa.string(),
        "zip": pa.string(),
        "age": pa.int64(),
        "born": pa.date32(),
        "salary": pa.int64(),
        "kwh": pa.float64(),
        "disease": pa.string(),
        "code": pa.string(),
        "score": pa.int32(),
        "flag": pa.bool_(),
        "seen": pa.timestamp("us"),
        "k_i": pa.int64(),
        "l_i": pa.int64(),
        "k_salary": pa.int64(),
    },
    "visits": {
        "id": pa.int64(),
        "ward": pa.string(),
        "cost": pa.float64(),
        "nights": pa.int64(),
        "day": pa.date32(),
    },
    "towns": {"town": pa.string(), "region": pa.string(), "size": pa.int64()},
}
FIXED = ("id", "k_i", "l_i", "k_salary")
ROLES: dict[str, dict[str, Any]] = {
    "people": {
        "id": "identifier",
        "city": {"role": "quasi", "hierarchy": {"tree": {"*": TREE}}},
        "zip": {"role": "quasi", "kind": "nominal", "hierarchy": {"mask": 3}},
        "age": "quasi",
        "born": "quasi",
        "salary": "sensitive",
        "kwh": "sensitive",
        "disease": "sensitive",
        "code": {"role": "other", "kind": "nominal"},
        "score": "other",
        "flag": "other",
        "seen": "other",
    },
    "visits": {
        "id": "identifier",
        "ward": "quasi",
        "cost": "sensitive",
        "nights": "sensitive",
        "day": "quasi",
    },
    "towns": {"town": "other", "region": "other", "size": "other"},
}

_LONG = "y" * 3000
_DAYS = (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2000, 2, 29))
MILD: dict[str, Callable[[random.Random], Any]] = {
    "city": lambda r: r.choice(CITIES),
    "zip": lambda r: f"{r.choice((351, 590, 750))}",
    "age": lambda r: r.randrange(20, 70),
    "born": lambda r: dt.date(1950 + r.randrange(50), 1 + r.randrange(12), 1 + r.randrange(28)),
    "salary": lambda r: 1000 + 10 * r.randrange(400),
    "kwh": lambda r: r.randrange(1, 4000) / 8,
    "disease": lambda r: r.choice(DISEASES),
    "code": lambda r: str(r.randrange(1, 40)),
    "score": lambda r: r.randrange(1, 9),
    "flag": lambda r: r.random() < 0.5,
    "seen": lambda r: dt.datetime(2020, 1 + r.randrange(12), 1 + r.randrange(28), r.randrange(24)),
    "ward": lambda r: r.choice(WARDS),
    "cost": lambda r: r.randrange(1, 900) / 4,
    "nights": lambda r: r.randrange(1, 12),
    "day": lambda r: dt.date(2021, 1 + r.randrange(12), 1 + r.randrange(28)),
}
_FLOATS = (float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -0.0, 0.0, -1.0)
_INTEGERS = (BIG, -BIG - 1, BIG - 1, 0, -1, 2**31, 2**53 + 1, 1)
_DECIMALS = (Decimal("9999999999999999.99"), Decimal("-9999999999999999.99"), Decimal(0))
_TEXTS = ("", "x", "1e999", "-7", "12", "NaN", "2020-02-30", "%", "_", "İß", _LONG, " 12 ", "\\")
ODD: dict[str, tuple[Any, ...]] = {
    "city": ("Atlantis", "", "lille", "*", "north", _LONG),
    "zip": ("1", "999999", "", "é€a", "***"),
    "age": _INTEGERS,
    "born": _DAYS,
    "salary": _INTEGERS,
    "kwh": _FLOATS,
    "disease": _TEXTS,
    "code": _TEXTS,
    "score": (2**31 - 1, -(2**31), 0, -1),
    "flag": (True, False),
    "seen": tuple(dt.datetime(d.year, d.month, d.day, 23, 59, 59, 999999) for d in _DAYS),
    "ward": ("", "W1", _LONG),
    "cost": _FLOATS,
    "nights": _INTEGERS,
    "day": _DAYS,
}


@dataclass(frozen=True, eq=False)
class World:
    """Tables about people, some of whom are planted.

    Attributes:
        rows: table to its rows.
        salary: the type of salaries.
        planted: the people whose demand cannot be met.
        demand: how their demand is stated.
        changeable: table to the columns in which planted people may have any values.
        several: whether people have several rows.
        visits: how many rows somebody has at most in the other table.
        dominance: the rule by which sums are hidden that few people make up, if there is one.
    """

    rows: Mapping[str, list[dict[str, Any]]]
    salary: str
    planted: frozenset[int]
    demand: Demand
    changeable: Mapping[str, tuple[str, ...]]
    several: bool
    visits: int
    dominance: Mapping[str, float] = field(default_factory=dict)
    tables: dict[str, hm.Table] = field(default_factory=dict, repr=False)

    @property
    def arrow(self) -> dict[str, pa.Table]:
        """The tables as rows of the engine."""
        found = {}
        for name, rows in self.rows.items():
            types = dict(TYPES[name])
            if "salary" in types:
                types["salary"] = SALARIES[self.salary]
            table = pa.table(
                {c: pa.array([row[c] for row in rows], type=t) for c, t in types.items()}
            )
            # Few rows a batch: threads read them side by side and add up in any order.
            found[name] = pa.Table.from_batches(table.to_batches(max_chunksize=BATCH), table.schema)
        return found

    @property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """What the columns are."""
        people: dict[str, Any] = {"columns": ROLES["people"], "table": {"person": "id"}}
        people["policy"] = {"k": "k_i", "l": "l_i"}
        if self.dominance:
            people["query"] = {"dominance": dict(self.dominance)}
        visits = {"columns": ROLES["visits"], "table": {"person": "id"}}
        return {"people": people, "visits": visits, "towns": {"columns": ROLES["towns"]}}

    @property
    def policies(self) -> dict[str, Any] | None:
        """Demands beside those of the schema's columns."""
        if self.demand == "file":
            # People below the floor state what they stated in the columns.
            people: dict[str, dict[str, Any]] = {}
            for row in self.rows["people"]:
                known = people.setdefault(str(row["id"]), {"k": 1})
                known["k"] = max(known["k"], row["k_i"])
            people |= {str(who): {"k": UNMEETABLE} for who in self.planted}
            return {"people": people}
        if self.demand == "column":
            return {"k": "k_i", "l": "l_i", "columns": {"salary": {"k": "k_salary"}}}
        return None

    def read(self) -> dict[str, hm.Table]:
        """The tables with their schemas."""
        if not self.tables:
            for name, rows in self.arrow.items():
                self.tables[name] = hm.read(rows, self.schemas[name])
        return self.tables


def make_world(seed: int, *, people: int = 36, ruled: bool = False) -> World:
    """A random world; the same for the same seed. ``ruled``: perhaps with a rule of dominance."""
    r = random.Random(seed)
    demand: Demand = r.choice(["k", "k", "k", "l", "file", "column"])
    several, visits = r.random() < 0.35, r.choice([1, 1, 3])
    planted = frozenset(r.sample(range(people), r.choice([1, 1, 2])))
    salary = r.choice([*SALARIES, "integer"])
    gaps = r.choice([0.0, 0.05])
    found: dict[str, list[dict[str, Any]]] = {"people": [], "visits": []}
    mild = random.Random(f"{seed} mild").random() < 0.5
    for who in range(people):
        stated = _stated(r, demand, hopeless=who in planted)
        for i in range(r.choice([1, 2, 3]) if several else 1):
            row = {"id": who, **_mild(r, "people", gaps), **stated}
            if i and mild:  # of somebody's rows one states the demand, the others ask for little
                row |= {"k_i": 1, "l_i": 1, "k_salary": 1}
            found["people"].append(row)
        for _ in range(r.randint(1, visits)):
            found["visits"].append({"id": who, **_mild(r, "visits", gaps)})
    r.shuffle(found["people"])
    r.shuffle(found["visits"])
    found["towns"] = [
        {"town": city, "region": f"region {i % 2}", "size": 100 * i}
        for i, city in enumerate(CITIES[:-1])
    ]
    changeable = {
        table: tuple(c for c in TYPES[table] if c not in FIXED) for table in ("people", "visits")
    }
    if demand == "column":
        changeable = {"people": ("salary",), "visits": ()}
    rule: dict[str, float] = {}
    if ruled:
        rules = [rule, rule, rule, {"p": 10}, {"n": 2, "k": 85}]
        rule = random.Random(f"{seed} dominance").choice(rules)
    return World(found, salary, planted, demand, changeable, several, visits, rule)


def _stated(r: random.Random, demand: Demand, *, hopeless: bool) -> dict[str, int]:
    k, l = r.choice([1, 1, 2, 3, 3, 5, 9]), r.choice([1, 1, 1, 2])  # noqa: E741
    stated = {"k_i": k, "l_i": l, "k_salary": max(k, r.choice([1, 3, 4]))}
    if hopeless and demand != "file":
        name = {"k": "k_i", "l": "l_i", "column": "k_salary"}[demand]
        stated[name] = UNMEETABLE
    return stated


def _mild(r: random.Random, table: str, gaps: float) -> dict[str, Any]:
    return {c: _value(r, c, "mild", gaps) for c in TYPES[table] if c not in FIXED}


def _value(r: random.Random, column: str, form: Form, gaps: float = 0.0) -> Any:
    if form == "missing" or r.random() < gaps:
        return None
    return MILD[column](r) if form == "mild" else r.choice(ODD[column])


def change_planted(world: World, seed: int) -> World:
    """The same world in which the planted people have other values, and stand elsewhere."""
    r = random.Random(seed)
    form: Form = r.choice(["mild", "odd", "odd", "missing"])
    share = r.choice([1.0, 0.5, 0.15])
    rows = {}
    for table, old in world.rows.items():
        names = world.changeable.get(table, ())
        rows[table] = [
            row | {c: _fitting(world, c, _value(r, c, form)) for c in names if r.random() < share}
            if row.get("id") in world.planted
            else row
            for row in old
        ]
        if r.random() < 0.5:
            rows[table] = _moved(r, rows[table], world.planted)
    if world.changeable["visits"] and random.Random(f"{seed} absent").random() < ABSENT:
        rows["visits"] = _without(rows["visits"], world.planted)
    return replace(world, rows=rows, tables={})


def _without(rows: list[dict[str, Any]], planted: frozenset[int]) -> list[dict[str, Any]]:
    """The rows without those of planted people, where others have as many: AT MOST looks at all."""
    counted = Counter(row["id"] for row in rows)
    most = max(n for who, n in counted.items() if who not in planted)
    return [row for row in rows if row["id"] not in planted or counted[row["id"]] > most]


def _moved(
    r: random.Random, rows: list[dict[str, Any]], planted: frozenset[int]
) -> list[dict[str, Any]]:
    """The rows in which those of planted people stand first, last or anywhere."""
    theirs = [row for row in rows if row.get("id") in planted]
    found = [row for row in rows if row.get("id") not in planted]
    for row in theirs:
        found.insert(r.choice([0, len(found), r.randint(0, len(found))]), row)
    return found


def change_one(world: World, seed: int) -> tuple[World, dict[str, Any], dict[str, Any]]:
    """The world in which one row of somebody else has one other value; the row before and after."""
    r = random.Random(seed)
    rows = list(world.rows["people"])
    at = r.choice([i for i, row in enumerate(rows) if row["id"] not in world.planted])
    column = r.choice([c for c in TYPES["people"] if c not in FIXED])
    form: Form = r.choice(["mild", "mild", "odd", "missing"])
    before = rows[at]
    rows[at] = before | {column: _fitting(world, column, _value(r, column, form))}
    return replace(world, rows={**world.rows, "people": rows}, tables={}), before, rows[at]


def change_all(world: World, seed: int) -> World:
    """Other rows altogether: people come and go, values are any."""
    r = random.Random(seed)
    rows = []
    for row in world.rows["people"]:
        if r.random() < 0.2:
            continue
        for _ in range(r.choice([1, 1, 1, 4])):
            form: Form = r.choice(["mild", "mild", "odd", "missing"])
            names = [c for c in TYPES["people"] if c not in FIXED and r.random() < 0.5]
            rows.append(row | {c: _fitting(world, c, _value(r, c, form)) for c in names})
    if r.random() < 0.1 or not rows:
        rows = rows[:1] or list(world.rows["people"][:1])
    return replace(world, rows={**world.rows, "people": rows}, tables={})


def _fitting(world: World, column: str, value: Any) -> Any:
    """The value in the type that salaries have here."""
    if column != "salary" or value is None or world.salary == "integer":
        return value
    if world.salary == "decimal":
        return _DECIMALS[value % 3] if abs(value) > 10**9 else Decimal(value)
    return _FLOATS[value % len(_FLOATS)] if abs(value) > 10**9 or value in (0, -1) else float(value)
