"""Six tables of public codes on which private synthesizers are held against each other.

Each is ``(sizes, ordered, codes)``: how many values a column has, which columns have an order, and
the rows as codes. Invented but for Adult: a network with a known truth, counts with many zeros, a
health survey, a census of households' heads, and forty columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

Codes = dict[str, np.ndarray]
CodedTable = tuple[dict[str, int], list[str], Codes]


def cut(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The interval of each value; public edges."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def adult(rows: int, folder: Path | None) -> CodedTable:
    """Nine columns of Adult."""
    from _adult import complete_rows

    arrow = complete_rows(folder)
    keep = np.random.default_rng(0).permutation(arrow.num_rows)[:rows]
    sizes, codes = {}, {}
    for name in arrow.column_names:
        if name == "age":
            codes[name], sizes[name] = arrow["age"].to_numpy()[keep] - 17, 74
            continue
        values = sorted(set(arrow[name].to_pylist()))
        place = {value: i for i, value in enumerate(values)}
        found = np.array([place[value] for value in arrow[name].to_pylist()])
        codes[name], sizes[name] = found[keep], len(values)
    return sizes, ["age"], codes


def network(rows: int, _: Path | None = None) -> CodedTable:
    """Twelve columns, each drawn by two earlier ones with chances that are known."""
    random = np.random.default_rng(1)
    sizes = {f"c{i}": (3, 4, 6, 8)[i % 4] for i in range(12)}
    names, codes = list(sizes), {}
    for i, name in enumerate(names):
        parents = list(random.choice(names[:i], min(i, 2), replace=False)) if i else []
        group = np.zeros(rows, np.int64)
        for parent in parents:
            group = group * sizes[parent] + codes[parent]
        chances = random.dirichlet(np.full(sizes[name], 0.5), int(group.max()) + 1)
        edges = np.cumsum(chances, axis=1)[group]
        codes[name] = (random.random((rows, 1)) > edges[:, :-1]).sum(axis=1)
    return sizes, [], codes


def inflated(rows: int, _: Path | None = None) -> CodedTable:
    """Eight columns: half are amounts that are 0 for most people, and heavy in the tail."""
    random = np.random.default_rng(2)
    kind, age = random.integers(0, 5, rows), random.integers(18, 90, rows)
    codes = {"kind": kind, "age": age - 18, "sex": random.integers(0, 2, rows)}
    sizes = {"kind": 5, "age": 72, "sex": 2}
    for i in range(4):
        has = random.random(rows) < np.array([0.02, 0.05, 0.1, 0.2, 0.4])[kind] * (1 + i / 4)
        amount = np.exp(random.normal(6 + kind / 2 + age / 60, 1.2))
        edges = np.r_[-0.5, 0.5, np.geomspace(1, 50_000, 31)]
        codes[f"amount{i}"] = cut(np.where(has, amount, 0), edges)
        sizes[f"amount{i}"] = len(edges) - 1
    codes["claims"] = np.minimum(random.poisson(has * 3), 15)
    sizes["claims"] = 16
    return sizes, ["age", "amount0", "amount1", "amount2", "amount3", "claims"], codes


def survey(rows: int, _: Path | None = None) -> CodedTable:
    """Sixteen columns as a health survey asks them: measurements that go together, and diseases."""
    random = np.random.default_rng(3)
    age, sex = random.integers(18, 81, rows), random.integers(0, 2, rows)
    height = random.normal(163 + 13 * sex, 7)
    weight = np.exp(random.normal(3.2, 0.2, rows)) * (height / 100) ** 2
    bmi = weight / (height / 100) ** 2
    pressure = random.normal(95 + age / 2 + bmi / 2, 13)
    sugar = np.exp(random.normal(4.5 + (bmi - 25) / 100 + age / 800, 0.15))
    measured = {
        "age": (age, np.linspace(18, 81, 22)), "height": (height, np.linspace(130, 210, 17)),
        "weight": (weight, np.linspace(30, 170, 21)),
        "pressure": (pressure, np.linspace(70, 210, 21)),
        "sugar": (sugar, np.linspace(50, 250, 21)),
    }  # fmt: skip
    sizes = {name: len(edges) - 1 for name, (_, edges) in measured.items()}
    codes = {name: cut(values, edges) for name, (values, edges) in measured.items()}
    codes["sex"], sizes["sex"] = sex, 2
    codes["origin"], sizes["origin"] = (
        random.choice(6, rows, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03]),
        6,
    )
    codes["school"], sizes["school"] = np.minimum(random.poisson(2, rows), 4), 5
    codes["pay"], sizes["pay"] = (
        np.clip(codes["school"] * 2 + random.integers(-2, 3, rows), 0, 9),
        10,
    )
    risks = {
        "diabetes": (sugar - 120) / 20, "stroke": (pressure - 170) / 15,
        "smokes": 0.5 - codes["school"],
        "asthma": np.full(rows, -2.2), "heart": (age - 80) / 12 + (pressure - 140) / 30,
        "insured": codes["pay"] - 2.0, "active": 1.5 - (bmi - 20) / 8,
    }  # fmt: skip
    for name, score in risks.items():
        codes[name] = (random.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int64)
        sizes[name] = 2
    return sizes, [*measured, "school", "pay"], codes


def census(rows: int, _: Path | None = None) -> CodedTable:
    """Ten columns with many values and impossible combinations."""
    random = np.random.default_rng(4)
    age = np.minimum((random.gamma(2.2, 18, rows)).astype(np.int64), 99)
    region = random.choice(50, rows, p=(w := 1 / np.arange(1, 51)) / w.sum())
    married = np.where(age < 16, 0, random.choice(5, rows, p=[0.3, 0.5, 0.1, 0.05, 0.05]))
    school = np.clip(np.minimum(age // 4, random.poisson(6, rows)), 0, 15)
    works = np.where((age < 15) | (age > 74), 0, random.choice(4, rows, p=[0.25, 0.55, 0.1, 0.1]))
    job = np.where(
        works == 0, 0, 1 + np.minimum(school * 2 + random.integers(-4, 5, rows), 38).clip(0)
    )
    pay = np.where(works == 0, 0, np.clip(job // 2 + random.integers(0, 8, rows), 1, 24))
    codes = {
        "age": age, "region": region, "married": married, "school": school, "works": works,
        "job": job,
        "pay": pay, "sex": random.integers(0, 2, rows),
        "born": np.where(random.random(rows) < 0.85, 0, random.integers(1, 30, rows)),
        "rooms": np.clip(pay // 4 + random.integers(0, 5, rows), 0, 9),
    }  # fmt: skip
    sizes = {"age": 100, "region": 50, "married": 5, "school": 16, "works": 4, "job": 40, "pay": 25,
             "sex": 2, "born": 30, "rooms": 10}  # fmt: skip
    return sizes, ["age", "school", "pay", "rooms"], codes


def forty(rows: int, _: Path | None = None) -> CodedTable:
    """Forty columns of two to five values in a chain with shortcuts."""
    random = np.random.default_rng(5)
    sizes = {f"c{i}": 2 + i % 4 for i in range(40)}
    names, codes = list(sizes), {}
    for i, name in enumerate(names):
        fresh = random.integers(0, sizes[name], rows)
        source = names[i - 1] if i % 7 else names[max(0, i - 7)]
        near = codes[source] % sizes[name] if i else fresh
        codes[name] = np.where(random.random(rows) < 0.6, near, fresh)
    return sizes, [], codes


TABLES = {
    "adult": adult, "survey": survey, "census": census, "network": network, "inflated": inflated,
    "forty": forty,
}  # fmt: skip
