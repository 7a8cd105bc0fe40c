"""``auto`` against each method, and labels of sets against common labels, all scored alike.

    python benchmarks/auto_default.py [--rows N] [--k 2,5,10,50] [--tables adult,sample,wide,...]

Every release is scored by one measure on its rows, read back from the labels as they are written:
GCP, the mean over rows and quasi-identifiers of how much a label leaves open: for numbers the width
of the range by that of the column, else (values covered - 1) / (values - 1); a row left out loses
everything. Beside it stands the share, by another form that is in use: values covered / values, and
nothing for a single value. Tables that are not there are left out and named.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

import _adult
import halfmask as hm
from halfmask.metrics.sides import sides

ARX = _adult.ROOT.parent / "shared" / "data" / "arx"
CENSUS = _adult.ROOT / ".data"
FOLDER = TemporaryDirectory()  # of the sample, whose hierarchies are read when they are used
METHODS = ("optimal", "local", "mondrian", "personal", "mdav", "k-member")
NAMES = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
    "occupation",
)  # fmt: skip


def gcp(table: hm.Table, release: hm.Release) -> tuple[float, float]:
    """The measure and the share, from the labels as they are written."""
    both = sides(table, release)
    totals = np.zeros(2)
    for column in both.quasi:
        if column.numbers is not None and table.schema.columns[column.name].kind == "numeric":
            held = column.numbers[column.covered]
            low = np.minimum.reduceat(held, column.starts[:-1])
            high = np.maximum.reduceat(held, column.starts[:-1])
            wide = (high - low) / (column.numbers.max() - column.numbers.min())
            forms = np.stack((wide, wide))
        else:
            open_ = np.where(column.sizes > 1, column.sizes / column.leaves, 0.0)
            forms = np.stack(((column.sizes - 1) / max(column.leaves - 1, 1), open_))
        totals += (forms @ column.label_rows + both.before - both.after) / both.before
    lost, share = (totals / len(both.quasi)).tolist()
    return lost, share


def arx_table() -> hm.Table | None:
    """Adult with ARX's hierarchies."""
    if not (ARX / "adult.csv").exists():
        return None
    columns: dict[str, Any] = {
        name: {"role": "quasi", "hierarchy": {"csv": str(ARX / f"adult_hierarchy_{name}.csv")}}
        for name in NAMES
    }
    columns["age"]["kind"] = "numeric"
    columns["salary-class"] = "sensitive"
    return hm.read(str(ARX / "adult.csv"), schema={"columns": columns})


def sample_table() -> hm.Table:
    """The invented people that ship with the package, without their demands."""
    from halfmask.sample import write

    people = hm.read(write(Path(FOLDER.name), 10_000))
    columns = {n: c for n, c in people.schema.columns.items() if n in people.arrow.column_names}
    return hm.Table(people.arrow.select(list(columns)), hm.Schema(columns))


def wide_table() -> hm.Table:
    """Forty columns that six hidden ones make."""
    rng = np.random.default_rng(7)
    hidden = rng.normal(size=(2_000, 6))
    data, columns = {}, {}
    for c in range(40):
        drawn = hidden @ rng.normal(size=6) + rng.normal(size=len(hidden))
        data[f"c{c}"] = np.round(50 + 12 * drawn).astype(int) if c % 2 else (drawn > 0).astype(str)
        columns[f"c{c}"] = _column(number=bool(c % 2))
    return hm.read(pa.table(data), schema={"columns": columns})


def skewed_table() -> hm.Table:
    """Six columns whose values are rare but for a few."""
    rng = np.random.default_rng(8)
    data = {f"c{c}": np.minimum(rng.zipf(1.6, 5_000), 200) for c in range(6)}
    columns = {name: _column(number=True) for name in data}
    return hm.read(pa.table(data), schema={"columns": columns})


def visits_table() -> hm.Table:
    """One to six rows a person, of whom age and town do not change."""
    rng = np.random.default_rng(9)
    who = np.repeat(np.arange(1_500), rng.integers(1, 7, 1_500))
    age, town = rng.integers(18, 90, 1_500), rng.integers(0, 12, 1_500)
    ward = rng.integers(0, 5, len(who)).astype(str)
    data = {"who": who, "age": age[who], "town": town[who].astype(str), "ward": ward}
    columns = {"age": _column(number=True), "town": _column(), "ward": _column()}
    return hm.read(pa.table(data), schema={"table": {"person": "who"}, "columns": columns})


def hospital_table() -> hm.Table:
    """Stays with days and decimals as they are written in German, proposed by ``describe``."""
    rng, rows = np.random.default_rng(10), 4_000
    born, came = rng.integers(0, 33_000, rows), rng.integers(0, 1_400, rows)
    weight = np.char.replace(np.round(rng.normal(76, 14, rows), 1).astype(str), ".", ",")
    data = {
        "Geburtsdatum": _days("1925-01-01", born),
        "Aufnahme": _days("2019-01-01", came),
        "PLZ": (10_000 + 37 * rng.integers(0, 90, rows)).astype(str),
        "Geschlecht": rng.choice(["m", "w", "d"], rows, p=[0.49, 0.49, 0.02]),
        "Gewicht": np.where(rng.random(rows) < 0.03, "-1", weight),
    }
    path = Path(FOLDER.name) / "stays.csv"
    pc.write_csv(pa.table(data), path, pc.WriteOptions(delimiter=";"))
    return hm.read(path, schema=hm.describe(path).to_schema())


def _days(first: str, after: np.ndarray) -> list[str]:
    days = (np.datetime64(first) + after).astype(object)
    return [day.strftime("%d.%m.%Y") for day in days]


def cells_table() -> hm.Table:
    """569 people with thirty measurements each, nearly all of them of one person alone."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    names = [name.replace(" ", "_") for name in found.feature_names]
    digits = [float(f"{value:.2g}") for value in found.data.ravel()]
    data = dict(zip(names, np.reshape(digits, found.data.shape).T, strict=True))
    rows = pa.table(data)
    columns = {}
    for name in names:
        wide = float(data[name].max() - data[name].min())
        step = 10.0 ** np.floor(np.log10(wide / 10))
        rule = {"intervals": [float(f"{step * m:.6g}") for m in (1, 2, 10)]}
        columns[name] = {"role": "quasi", "kind": "numeric", "hierarchy": rule}
    return hm.read(rows, schema={"columns": columns})


def _column(*, number: bool = False) -> dict[str, Any]:
    rule = {"intervals": [5, 10, 50]} if number else {"flat": True}
    return {"role": "quasi", "hierarchy": rule, **({"kind": "numeric"} if number else {})}


def census_table() -> hm.Table | None:
    """KDD census-income, twelve quasi-identifiers, where ``make data`` has fetched it."""
    found = sorted(CENSUS.glob("census*"))
    if not found:
        return None
    options = pc.ReadOptions(autogenerate_column_names=True)
    rows = pc.read_csv(found[0], read_options=options)
    chosen = [name for name in rows.column_names if len(rows[name].unique()) <= 100][:12]
    columns = {name: _column(number=pa.types.is_integer(rows[name].type)) for name in chosen}
    return hm.read(rows.select(chosen), schema={"columns": columns})


TABLES = {
    "adult": lambda: _adult.adult() if _adult.found() else None,
    "arx": arx_table,
    "sample": sample_table,
    "census": census_table,
    "wide": wide_table,
    "skewed": skewed_table,
    "visits": visits_table,
    "hospital": hospital_table,
    "cells": cells_table,
}


def line(table: hm.Table, k: int, method: str, **options: Any) -> None:
    """Make one release and print what it lost."""
    began = time.process_time()
    try:
        found = hm.anonymize(table, hm.KAnonymity(k), method=method, seed=1, **options)
    except hm.errors.HalfmaskError as error:
        print(f"  {method:10} {type(error).__name__}")
        return
    used = time.process_time() - began
    chosen = f" ({found.method})" if method == "auto" else ""
    lost, share = gcp(table, found)
    figures = f"loss {found.loss:.4f}  GCP {lost:.4f}  share {share:.4f}"
    print(f"  {method:10} {figures}  {used:6.1f} s{chosen}", flush=True)


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="the first rows of each table alone")
    parser.add_argument("--k", default="2,5,10,50")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(("auto", *METHODS)))
    parser.add_argument("--labels", default="tight,sets")
    given = parser.parse_args()
    for name in given.tables.split(","):
        table = TABLES[name]()
        if table is None:
            print(f"{name}: not there, left out")
            continue
        if given.rows:
            table = hm.Table(table.arrow.slice(0, given.rows), table.schema)
        for labels in given.labels.split(","):
            for k in map(int, given.k.split(",")):
                print(f"{name}, {len(table):,} rows, k = {k}, labels = {labels}")
                for method in given.methods.split(","):
                    fits = method != "optimal" and (method != "local" or labels == "sets")
                    line(table, k, method, **({"labels": labels} if fits else {}))


if __name__ == "__main__":
    main()
