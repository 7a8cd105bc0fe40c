"""How many questions show nothing of a person whose demand cannot be met, and how many do.

Random tables with planted people and random questions over the whole language; each is asked in two
worlds in which only the planted people's values differ, and all that an asker sees is compared.
Then the same for one changed value of anybody, and for questions with noise.

    python benchmarks/noninterference.py --count 1000000 --workers 8

A comparison is one question whose answers in two worlds are held against each other; each question
is asked in the world as it is and in ``CHANGES`` others.
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
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tools"))

from interference import Count, compare_noisy, compare_one, compare_world

from halfmask.engines.duckdb import _database

if TYPE_CHECKING:
    from collections.abc import Callable

PER_WORLD, CHANGES, THREADS = 12, 8, 4
COUNTED = ("asked", "answers", "answered", "with_rows", "with_figures", "refused", "failed")
# What is asked: its share of all comparisons, and how; one value of anybody has one other world.
SUITES: dict[str, tuple[float, Callable[..., None]]] = {
    "planted, duckdb": (0.7, partial(compare_world, changes=CHANGES)),
    "planted, reference": (0.1, partial(compare_world, engine="reference", changes=CHANGES)),
    "one value of anybody": (0.05, compare_one),
    "noise": (0.15, partial(compare_noisy, changes=CHANGES)),
}


def one_world(name: str, seed: int, questions: int) -> tuple[dict[str, int], list[str]]:
    """Ask about one world; what became of the questions, and what was found, as texts."""
    warnings.simplefilter("ignore")
    _database().execute(f"SET threads = {THREADS}")
    count = Count()
    SUITES[name][1](seed, questions, count=count)
    numbers = {name: getattr(count, name) for name in COUNTED}
    return numbers, [str(one) for one in count.found]


def run_suite(name: str, count: int, workers: int, seed: int) -> tuple[dict[str, Any], int]:
    """Make at least ``count`` comparisons, ``PER_WORLD`` questions of each world."""
    started = time.perf_counter()
    questions = ceil(count / (1 if SUITES[name][1] is compare_one else CHANGES))
    sizes = [PER_WORLD] * (questions // PER_WORLD)
    sizes += [questions % PER_WORLD] * (questions % PER_WORLD > 0)
    total: dict[str, int] = dict.fromkeys(COUNTED, 0)
    found: list[str] = []
    with ProcessPoolExecutor(workers) as pool:
        work = pool.map(one_world, [name] * len(sizes), range(seed, seed + len(sizes)), sizes)
        for numbers, texts in work:
            total = {n: total[n] + v for n, v in numbers.items()}
            found += texts
            for text in texts:
                print(text, file=sys.stderr, flush=True)
    seconds = time.perf_counter() - started
    return {
        "comparisons": total.pop("asked"),
        "interferences": len(found),
        **total,
        "answers_per_second": round(total["answers"] / seconds, 1),
        "examples": found[:3],
        "seconds": round(seconds, 1),
    }, len(found)


def main() -> None:
    """Print the counts as JSON; the exit code is 1 where anything interferes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1_000_000)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    interferences = 0
    for name, (share, _) in SUITES.items():
        count = max(1, round(given.count * share))
        found[name], more = run_suite(name, count, given.workers, given.seed)
        interferences += more
    print(
        json.dumps(
            {
                "comparisons": sum(f["comparisons"] for f in found.values()),
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
