"""What personal guarantees cost on top of a plain GROUP BY, and how fast groups are filtered.

Eight grouping columns and the ten levels of Fig 4.5, on invented rows shaped like Adult. The
yardstick is the plain query with the same aggregate and COUNT(DISTINCT) on the same engine.

    python benchmarks/query_overhead.py --rows 10000000
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import halfmask as hm
from halfmask.query import semantics
from halfmask.query.groups import Groups, KeyColumn
from halfmask.query.run import Session
from halfmask.query.semantics import publish_groups
from halfmask.table.hierarchies import Flat, Tree

if TYPE_CHECKING:
    from collections.abc import Callable

CHAIN = ((5, 3), (6, 3), (8, 4), (9, 4), (9, 4), (10, 4), (11, 5), (14, 6), (15, 7), (17, 8))
STEPS = (
    "age->20",
    "workclass->up",
    "education->5",
    "marital->up",
    "occupation->up",
    "race->up",
    "gender->del",
    "country->del",
    "age->40",
)
CONDITIONAL = ", SUM(CASE WHEN fnlwgt > 500000 THEN fnlwgt ELSE 0 END)"
KEYS = ("age", "workclass", "education", "marital", "occupation", "race", "gender", "country")
TREES = (100_000, 10_000)  # groups that are filtered, and filtered completely
SIZES = {"workclass": 7, "marital": 7, "occupation": 14, "race": 5, "gender": 2, "country": 41}


def invented(rows: int, groups: int, different: int | None = None, seed: int = 1) -> pa.Table:
    """Rows spread unevenly over about ``groups`` combinations of the eight columns.

    ``different`` is how many values there are to aggregate; unless stated, as many as weights.
    """
    rng = np.random.default_rng(seed)
    kinds: dict[str, np.ndarray] = {
        "age": 17 + rng.integers(0, 74, groups),
        "education": 1 + rng.integers(0, 16, groups),
    }
    for name, size in SIZES.items():
        kinds[name] = np.minimum((rng.random(groups) ** 2 * size).astype(np.int64), size - 1)
    which = (rng.random(rows) ** 2 * groups).astype(np.int64)
    columns: dict[str, pa.Array] = {}
    for name in KEYS:
        if name in SIZES:
            values = pa.array([f"{name}-{i:02d}" for i in range(SIZES[name])])
            codes = pa.array(kinds[name][which].astype(np.int32))
            columns[name] = pa.DictionaryArray.from_arrays(codes, values)
        else:
            columns[name] = pa.array(kinds[name][which].astype(np.int32))
    most = 1_000_000 if different is None else 12_285 + different
    columns["fnlwgt"] = pa.array(rng.integers(12_285, most, rows).astype(np.int32))
    level = rng.integers(0, len(CHAIN), rows)
    for j, name in enumerate(("k_i", "l_i")):
        columns[name] = pa.array(np.array([c[j] for c in CHAIN], dtype=np.int32)[level])
    return pa.table(columns)


def schema() -> hm.Schema:
    """Two groups per text column, one level up."""
    columns = {name: hm.Column("quasi") for name in KEYS} | {"fnlwgt": hm.Column("sensitive")}
    for name in ("workclass", "marital", "occupation"):
        values = [f"{name}-{i:02d}" for i in range(SIZES[name])]
        half = len(values) // 2
        tree = Tree({f"{name} A": values[:half], f"{name} B": values[half:]})
        columns[name] = hm.Column("quasi", hierarchy=tree)
    columns["race"] = hm.Column("quasi", hierarchy=Flat())
    return hm.Schema(columns=columns)


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def overhead(
    rows: int, groups: int, repeat: int, different: int | None = None, more: str = ""
) -> dict[str, float]:
    """The personal query against the plain one; ``more`` is aggregated by both."""
    table = hm.read(invented(rows, groups, different), schema())
    names = ", ".join(KEYS)
    plain = (
        f"SELECT {names}, AVG(fnlwgt), COUNT(DISTINCT fnlwgt){more} FROM the_table GROUP BY {names}"
    )
    k, l = CHAIN[0]
    asked = (
        f"SELECT {names}, AVG(fnlwgt){more} FROM t GROUP BY {names} GUARANTEE k = {k}, l = {l} "
        + " ".join(
            f"THEN {s} GUARANTEE k = {k}, l = {l}"
            for s, (k, l) in zip(STEPS, CHAIN[1:], strict=True)
        )
    )
    with Session(table) as session:
        raw = session.engine._connection  # noqa: SLF001 - the yardstick runs beside the engine
        everybody = session.prepare(asked, {"k": 5, "l": 3})
        spread = session.prepare(asked, {"k": "k_i", "l": "l_i"})
        works: dict[str, Callable[[], object]] = {
            "plain": lambda: raw.sql(plain).to_arrow_table(),
            "all_at_level_0": lambda: session.answer(everybody),
            "spread_over_levels": lambda: session.answer(spread),
        }
        # Turn and turn about, so that what else the machine does hits all alike.
        times: dict[str, list[float]] = {name: [] for name in works}
        used: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(repeat):
            for name, work in works.items():
                before = time.process_time()
                times[name].append(timed(work))
                used[name].append(time.process_time() - before)
        found: dict[str, float] = {"groups": raw.sql(plain).to_arrow_table().num_rows}
    for name, seconds in times.items():
        found[f"{name}_s"] = statistics.median(seconds)
        ratios = [s / p for s, p in zip(seconds, times["plain"], strict=True)]
        found[f"{name}_ratio"] = statistics.median(ratios)
        # Processor time of all threads: steadier on a machine that does other things too.
        found[f"{name}_cpu_ratio"] = min(used[name]) / min(used["plain"])
    return found


def tree(leaves: int, seed: int = 1) -> Groups:
    """A tree of four levels over ``leaves`` groups."""
    rng = np.random.default_rng(seed)
    maps = [
        np.arange(leaves),
        np.arange(leaves) // 10,
        np.arange(leaves) // 100,
        np.zeros(leaves, dtype=np.int64),
    ]
    labels = tuple([""] * (int(m.max()) + 1) for m in maps)
    inner = [
        (level, int(i))
        for level, m in enumerate(maps)
        if level
        for i in np.unique(m, return_index=True)[1]
        if rng.random() < 0.5
    ]
    codes = np.concatenate((np.arange(leaves), [i for _, i in inner])).astype(np.int64)
    levels = np.concatenate((np.zeros(leaves), [x for x, _ in inner])).astype(np.int64)
    people = rng.integers(1, 20, len(codes))
    key = KeyColumn(
        codes, pa.nulls(0), tuple(m.astype(np.int64) for m in maps), labels, (0, 1, 2, 3)
    )
    return Groups(levels, people, (key,), (people,), np.array([[5], [7], [10], [20]]), pa.table({}))


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    many, few = (tree(size) for size in TREES)
    figures = {
        "rows": given.rows,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "adult_like_groups": overhead(given.rows, 18_109, given.repeat),
        "many_groups": overhead(given.rows, 100_000, given.repeat),
        # Fewer values than the largest l: no group is diverse beyond doubt, all are counted twice.
        "undecided_groups": overhead(given.rows, 18_109, given.repeat, CHAIN[-1][1] - 1),
        # Each part of each row is counted as well, with its distinct values.
        "conditional_figures": overhead(given.rows, 18_109, given.repeat, more=CONDITIONAL),
        "filter_100000_groups_s": min(
            timed(lambda: publish_groups(many, semantics.choose_selective(many))) for _ in range(5)
        ),
        "complete_10000_groups_s": timed(lambda: semantics.choose_complete(few)),
        "complete_10000_groups_gap": semantics.choose_complete(few).gap,
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
