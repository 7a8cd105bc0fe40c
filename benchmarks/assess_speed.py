"""How fast tables are assessed: discrimination rates, special uniques, comparisons, the sample.

Prints JSON, with ratios to grouping as many rows once with numpy.unique. The checks of promises are
in ``checks_speed.py``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

import halfmask as hm
from checks_speed import CHECKED, table, timed
from halfmask.metrics.discrimination.column_sets import rank_column_sets
from halfmask.metrics.risk.column_sets import special_uniques
from halfmask.table.tuples import Tuples

SAMPLE = 2000  # rows
ALONE = True  # each comparison in a process of its own; a test of the scripts starts none


def sample_seconds() -> float:
    """The command line on the sample, from a cold start."""
    from halfmask.sample import write

    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, SAMPLE)
        command = [sys.executable, "-m", "halfmask", "assess", str(path), "--json"]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own program
        return time.perf_counter() - start


def compare_seconds(rows: int) -> dict[str, Any]:
    """The sample and releases of it, compared in memory and by DuckDB within 300 MB, each alone.

    Labels of the Mondrian release overlap. Models are not trained: their rows are few, whatever
    the size. Peaks are of whole processes.
    """
    from halfmask.sample import write

    out = {}
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, rows)
        optimal, mondrian = f"{folder}/optimal.parquet", f"{folder}/mondrian.parquet"
        people = hm.read(path)
        hm.anonymize(people, hm.KAnonymity(5), method="optimal", suppression=0.05).write(optimal)
        hm.anonymize(people, hm.KAnonymity(5), method="mondrian").write(mondrian)
        runs = {
            "memory": (optimal, "memory"),
            "duckdb_300mb": (optimal, "duckdb"),
            "mondrian": (mondrian, "memory"),
        }
        for name, (release, engine) in runs.items():
            given = (str(path), release, engine)
            out[name] = compared_alone(*given) if ALONE else compared(*given)
    return out


def compared(original: str, release: str, engine: str) -> dict[str, float]:
    """Processor seconds and peak memory of one comparison in this process."""
    import resource

    how = {"engine": engine, "memory_limit": "300MB" if engine == "duckdb" else None}
    _, cpu = timed(
        lambda: hm.compare(hm.read(original, **how), hm.read(release, **how), learn=False)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_seconds": cpu, "peak_mb": peak}


def compared_alone(*given: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--compared", *given]
    ran = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own
    return dict(json.loads(ran.stdout))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--compared", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compared:
        print(json.dumps(compared(*given.compared)))
        return
    small = table(1000, 10)
    rank_column_sets(small, "s", size=2)
    special_uniques(Tuples.of(small), size=2)

    checked = table(given.rows, CHECKED)
    out: dict[str, Any] = {"rows": given.rows}
    key = np.random.default_rng(0).integers(0, 2**40, given.rows)
    out["numpy_unique_seconds"] = timed(lambda: np.unique(key))
    wide = table(given.rows, 10)
    out["discrimination_385_sets_seconds"] = timed(
        lambda: rank_column_sets(wide, "s", list(wide.schema.quasi), size=4)
    )
    out["suda2_up_to_5_of_8_seconds"] = timed(lambda: special_uniques(Tuples.of(checked), size=5))
    out["assess_sample_cold_seconds"] = sample_seconds()
    out["compare"] = compare_seconds(given.rows)
    out["ratios"] = {
        "discrimination": out["discrimination_385_sets_seconds"][0]
        / out["numpy_unique_seconds"][0],
        "suda2": out["suda2_up_to_5_of_8_seconds"][0] / out["numpy_unique_seconds"][0],
        "compare": out["compare"]["memory"]["cpu_seconds"] / out["numpy_unique_seconds"][1],
        "compare_duckdb": out["compare"]["duckdb_300mb"]["cpu_seconds"]
        / out["numpy_unique_seconds"][1],
        "compare_mondrian": out["compare"]["mondrian"]["cpu_seconds"]
        / out["numpy_unique_seconds"][1],
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
