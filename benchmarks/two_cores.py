"""What a second core saves: of grouping rows, and of whole releases.

Run: python benchmarks/two_cores.py [--data ../shared/data/arx] [--rows 1000000 10000000]
         [--methods optimal:1000000 mondrian:50000 mdav:50000 mdav:90000]

Judged by processor time, which a busy machine hardly changes. Grouping in two threads takes as
long as the slower half, and putting the halves together. Of a release, what other threads than the
first do would take half as long on two cores: that is the most that is gained.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import halfmask as hm
from halfmask.kernels.grouping import pack_codes, regroup
from optimal_search import COLUMNS, adult, enlarged

if TYPE_CHECKING:
    from numpy.typing import NDArray

RUNS = 3
_PLACES, _FIELDS = np.empty(0, np.int64), np.empty(0, np.uint64)


def packed(table: hm.Table, rows: int, redrawn: float) -> NDArray[np.uint64]:
    """Keys of rows drawn from ``table``, each column redrawn on a share of them."""
    rng = np.random.default_rng(0)
    pick = rng.integers(0, len(table), rows, dtype=np.int32)
    keys, shift = np.zeros((rows, 1), np.uint64), 0
    for name in COLUMNS:
        encoded = table.encode(name)
        codes = encoded.codes[pick]
        other = rng.random(rows, dtype=np.float32) < redrawn
        codes[other] = rng.integers(0, len(encoded.values), int(other.sum()), dtype=np.int32)
        pack_codes(keys, 0, shift, codes)
        shift += max((len(encoded.values) - 1).bit_length(), 1)
    return keys


def group(keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> tuple[Any, ...]:
    """The number of each key, the distinct keys and their rows, with the seconds it took."""
    began = time.thread_time()
    found = regroup.compiled(keys, rows, _PLACES, _FIELDS, _FIELDS, _PLACES, _FIELDS)
    return *found, time.thread_time() - began


def group_halves(keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> tuple[Any, ...]:
    """The same in two threads; the seconds are those of the longest way through."""
    half = len(keys) // 2
    parts = (slice(0, half), slice(half, None))
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda part: group(keys[part], rows[part]), parts))
    began = time.thread_time()
    both = [np.concatenate([one[i] for one in done]) for i in (1, 2)]
    numbers, distinct, sums, _ = group(*both)
    joined = time.thread_time() - began
    ids = np.empty(len(keys), np.int32)

    def place(at: int) -> float:
        start = time.thread_time()
        first = len(done[0][1]) if at else 0
        np.take(numbers[first:], done[at][0], out=ids[parts[at]])
        return time.thread_time() - start

    with ThreadPoolExecutor(2) as pool:
        placed = max(pool.map(place, (0, 1)))
    return ids, distinct, sums, max(one[3] for one in done) + joined + placed


def measure_grouping(table: hm.Table, rows: int, redrawn: float) -> dict[str, Any]:
    """The best of some runs in one thread and in two, which must give the same."""
    keys, held = packed(table, rows, redrawn), np.ones(rows, np.int64)
    alone = min((group(keys, held) for _ in range(RUNS)), key=lambda one: one[3])
    halves = min((group_halves(keys, held) for _ in range(RUNS)), key=lambda one: one[3])
    if not all(np.array_equal(a, b) for a, b in zip(alone[:3], halves[:3], strict=True)):
        raise SystemExit("Two threads give other groups than one.")
    return {
        "rows": rows,
        "distinct": len(alone[1]),
        "one": alone[3],
        "two": halves[3],
        "times as fast": alone[3] / halves[3],
    }


def measure_release(table: hm.Table, method: str, rows: int) -> dict[str, Any]:
    """The processor seconds of a release, and those of other threads than the first."""
    large, k = enlarged(table, rows), hm.KAnonymity(5)
    more = {"suppression": 0.05} if method in ("optimal", "local") else {}
    hm.anonymize(enlarged(table, 3_000), k, method=method, **more)  # compiles
    everything, first = time.process_time(), time.thread_time()
    hm.anonymize(large, k, method=method, **more)
    everything, first = time.process_time() - everything, time.thread_time() - first
    fastest = first + (everything - first) / 2
    return {
        "method": method,
        "rows": rows,
        "seconds": everything,
        "other threads": everything - first,
        "times as fast at most": everything / fastest,
    }


def main() -> None:
    """Print one line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/arx"))
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument(
        "--methods",
        nargs="*",
        default=["optimal:1000000", "mondrian:50000", "mdav:50000", "mdav:90000"],
    )
    options = parser.parse_args()
    table = adult(options.data)
    group(np.zeros((1, 1), np.uint64), np.ones(1, np.int64))  # compiles
    for rows in options.rows:
        for redrawn in (0.0, 0.1):
            print(json.dumps(measure_grouping(table, rows, redrawn)), flush=True)
    for one in options.methods:
        method, rows = one.split(":")
        print(json.dumps(measure_release(table, method, int(rows))), flush=True)


if __name__ == "__main__":
    main()
