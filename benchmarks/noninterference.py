"""How many questions show nothing of a person whose demand cannot be met, and how many do.

Random tables with planted people and random questions over the whole language; each is asked in two
worlds in which only the planted people's values differ, and all that an asker sees is compared.
Then the same for one changed value of anybody, and for questions with noise.

    python benchmarks/noninterference.py --queries 1000000 --processes 8
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tools"))

from interference import Count, compare_noisy, compare_one, compare_world

from halfmask.engines.duckdb import _database

if TYPE_CHECKING:
    from collections.abc import Callable

PER_WORLD = 50
COUNTED = ("asked", "answered", "with_rows", "with_figures", "refused", "failed")
# What is asked: its share of all questions, and how.
SUITES: dict[str, tuple[float, Callable[..., None]]] = {
    "planted, duckdb": (0.7, compare_world),
    "planted, reference": (0.1, partial(compare_world, engine="reference")),
    "one value of anybody": (0.1, compare_one),
    "noise": (0.1, compare_noisy),
}


def one_world(name: str, seed: int, questions: int) -> tuple[dict[str, int], list[str]]:
    """Ask about one world; what became of the questions, and what was found, as texts."""
    warnings.simplefilter("ignore")
    # Several threads add up fractions in any order, which is no question of whose they are.
    _database().execute("SET threads = 1")
    count = Count()
    SUITES[name][1](seed, questions, count=count)
    numbers = {name: getattr(count, name) for name in COUNTED}
    return numbers, [str(one) for one in count.found]


def run_suite(name: str, queries: int, processes: int, seed: int) -> tuple[dict[str, Any], int]:
    """Ask ``queries`` questions, ``PER_WORLD`` of each world."""
    started = time.perf_counter()
    sizes = [PER_WORLD] * (queries // PER_WORLD) + [queries % PER_WORLD] * (queries % PER_WORLD > 0)
    total: dict[str, int] = {}
    found: list[str] = []
    with ProcessPoolExecutor(processes) as pool:
        work = pool.map(one_world, [name] * len(sizes), range(seed, seed + len(sizes)), sizes)
        for numbers, texts in work:
            total = {n: total.get(n, 0) + v for n, v in numbers.items()}
            found += texts
    asked = max(total.get("asked", 0), 1)
    return {
        **total,
        "share_with_rows": round(total.get("with_rows", 0) / asked, 3),
        "interferences": len(found),
        "examples": found[:3],
        "seconds": round(time.perf_counter() - started, 1),
    }, len(found)


def main() -> None:
    """Print the counts as JSON; the exit code is 1 where anything interferes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1_000_000)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    interferences = 0
    for name, (share, _) in SUITES.items():
        queries = max(1, round(given.queries * share))
        found[name], more = run_suite(name, queries, given.processes, given.seed)
        interferences += more
    print(
        json.dumps(
            {
                "queries": sum(f["asked"] for f in found.values()),
                "interferences": interferences,
                "suites": found,
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            },
            indent=1,
            ensure_ascii=False,
        )
    )
    sys.exit(1 if interferences else 0)


if __name__ == "__main__":
    main()
