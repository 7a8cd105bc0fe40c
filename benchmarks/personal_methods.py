"""How fast each partition method is, what it loses against k-member, and how far optima are proven.

Run: python benchmarks/personal_methods.py [--data .data] [--rows 1000000] [--exact]

Demands are those of the personal profile at k = 3, 5, 7. Times are those of ``hm.anonymize`` with
the seal, kernels warm, best of three (one for the large table). ``value`` is the DBIL.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfmask as hm
from _adult import adult, beside, enlarged

METHODS = ("mondrian", "mdav", "k-member", "personal")
LIMITS = {"mondrian": 0.3, "mdav": 5.0, "k-member": 5.0, "personal": 3.0}


def timed(
    table: hm.Table, method: str, repeats: int, **options: object
) -> tuple[float, hm.Release]:
    """The best time and the last release."""
    best, release = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        release = hm.anonymize(
            table, hm.PersonalKAnonymity(), method=method, metric="dbil", **options
        )
        best = min(best, time.perf_counter() - start)
    return best, release


def methods(table: hm.Table) -> list[dict]:
    """Every method on Adult."""
    demands = hm.policies.generate(table, "personal", seed=0)
    out = []
    for method in METHODS:
        timed(demands, method, 1, seed=0)
        seconds, release = timed(demands, method, 3, seed=0)
        out.append(
            {"method": method, "rows": len(table), "seconds": round(seconds, 3),
             "limit": LIMITS[method], "dbil": round(release.parameters["value"], 1)}
        )  # fmt: skip
    base = next(one["dbil"] for one in out if one["method"] == "k-member")
    for one in out:
        one["of_k_member"] = round(one["dbil"] / base, 4)
    return out


def large(table: hm.Table, rows: int) -> list[dict]:
    """Mondrian and personal on many rows, beside what each loses per row on Adult's size.

    Two tables: Adult again and again in regions of its own, where the least loss per row stays what
    it is; and rows drawn from Adult with ages and schooling moved, where distinct tuples grow with
    the rows and all methods lose less per row, because rows stand closer.
    """
    copies = -(-rows // len(table))
    quarter = max(copies // 4, 1)
    drawn = enlarged(table, rows)
    small = hm.Table(drawn.arrow.slice(0, len(table)), drawn.schema)
    pairs = (
        ("regions", beside(table, quarter), table),
        ("regions", beside(table, copies), table),
        ("drawn", drawn, small),
    )
    out = []
    for name, many, part in pairs:
        demands, base = (hm.policies.generate(one, "personal", seed=0) for one in (many, part))
        for method, limit in (("mondrian", 10.0), ("personal", 180.0)):
            before = timed(base, method, 1)[1].parameters["value"] / len(part)
            begun = time.process_time()
            seconds, release = timed(demands, method, 1)
            processor = time.process_time() - begun
            per_row = release.parameters["value"] / len(many)
            out.append(
                {"table": name, "method": method, "rows": len(many),
                 "distinct": distinct(many), "seconds": round(seconds, 1),
                 "processor_seconds": round(processor, 1), "limit": limit,
                 "dbil_per_row": round(per_row, 4), "at_adult_size": round(before, 4),
                 "ratio": round(per_row / before, 4),
                 "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}
            )  # fmt: skip
            print(json.dumps(out[-1]), file=sys.stderr, flush=True)
    return out


def distinct(table: hm.Table) -> int:
    """How many distinct tuples of quasi-identifiers there are."""
    names = list(table.schema.quasi)
    return table.arrow.select(names).group_by(names).aggregate([]).num_rows


def exact(table: hm.Table, seconds: float = 60.0) -> list[dict]:
    """The largest samples whose optimum is proven within a minute, for each objective."""
    out = []
    for metric, sizes in {
        "dbil": (40, 80, 120, 160, 200),
        "wcsd": (40, 80, 160, 240),
        "diameter": (100, 200, 300),
        "split": (40, 100, 200, 300),
    }.items():
        for size in sizes:
            proven, slowest = 0, 0.0
            for seed in range(3):
                rng = np.random.default_rng(seed)
                pick = pa.array(rng.choice(len(table), size, replace=False))
                part = hm.Table(table.arrow.take(pick), table.schema)
                demands = hm.policies.generate(part, (0, 20, 80), k=(2, 3, 3), seed=seed)
                start = time.perf_counter()
                release = hm.anonymize(
                    demands, hm.PersonalKAnonymity(), method="exact", metric=metric,
                    time_limit=seconds, block=size,
                )  # fmt: skip
                slowest = max(slowest, time.perf_counter() - start)
                proven += release.gap == 0.0
            out.append({"metric": metric, "records": size, "proven": f"{proven} of 3",
                        "slowest_seconds": round(slowest, 2)})  # fmt: skip
            if not proven:
                break
    return out


def main() -> None:
    """Print one JSON document."""
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, help="a folder with adult.data")
    options.add_argument("--rows", type=int, default=0, help="also a table of so many rows")
    options.add_argument("--exact", action="store_true", help="also how far optima are proven")
    given = options.parse_args()
    table = adult(given.data)
    document: dict[str, object] = {"adult": methods(table)}
    if given.rows:
        document["large"] = large(table, given.rows)
    if given.exact:
        document["exact"] = exact(table)
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
