"""How fast tables of figures are protected and audited.

Prints JSON: seconds of processor, with ratios to solving one linear program of fixed size in the
same run.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import numpy as np
import pyarrow as pa

import halfmask as hm

SHAPE, FLAT = (20, 20, 10), (20, 20)
NAMES = ("a", "b", "c")


def yardstick() -> float:
    """Seconds for a transport problem of 60 x 60 cells, the best of three."""
    from scipy.optimize import linprog

    size = 60
    cells = np.arange(size * size).reshape(size, size)
    matrix = np.zeros((2 * size, size * size))
    for i in range(size):
        matrix[i, cells[i]] = 1
        matrix[size + i, cells[:, i]] = 1
    cost = np.random.default_rng(0).random(size * size)
    return min(timed(lambda: linprog(cost, A_eq=matrix, b_eq=np.ones(2 * size)))[0]
               for _ in range(3))  # fmt: skip


def timed(work: Any) -> tuple[float, Any]:
    """Seconds of processor, and what came out."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def people(shape: tuple[int, ...], mean: float = 12.0) -> hm.Table:
    """One row per person of a sparse table of counts."""
    random = np.random.default_rng(1)
    leaves = random.poisson(random.gamma(0.7, mean / 0.7, size=shape))
    places = np.repeat(np.arange(leaves.size), leaves.ravel())
    codes = np.unravel_index(places, shape)
    columns = {
        name: pa.array([f"{name}{i}" for i in range(size)]).take(pa.array(code))
        for name, size, code in zip(NAMES, shape, codes, strict=False)
    }
    return hm.read(pa.table(columns), schema={"columns": dict.fromkeys(columns, "quasi")})


def measure(time_limit: float) -> dict[str, Any]:
    """Seconds and what was found, for each piece of work."""
    large, flat = people(SHAPE), people(FLAT)
    by = list(NAMES)
    seconds, release = timed(lambda: hm.tabulate(large, by, threshold=3, time_limit=time_limit))
    found = release.controller
    out: dict[str, Any] = {
        "suppress_20x20x10": {
            "seconds": seconds,
            "time_limit": time_limit,
            "cells": len(release),
            "primary": found["primary"],
            "secondary": found["secondary"],
            "information_kept": found["information_kept"],
            "gap": found["gap"],
        }
    }
    seconds, release = timed(lambda: hm.tabulate(flat, by[:2], threshold=5))
    out["suppress_20x20"] = {"seconds": seconds, "gap": release.controller["gap"]}
    seconds, audit = timed(lambda: hm.audit_table(release, threshold=5))
    out["audit_20x20"] = {"seconds": seconds, "withheld": audit.withheld, "holds": audit.holds}
    out["round_20x20"] = {"seconds": timed(
        lambda: hm.tabulate(flat, by[:2], method="round", base=5))[0]}  # fmt: skip
    out["cell_key_20x20x10"] = {"seconds": timed(
        lambda: hm.tabulate(large, by, method="cell-key"))[0]}  # fmt: skip
    return out


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time-limit", type=float, default=50.0)
    given = parser.parse_args()
    unit = yardstick()
    found = measure(given.time_limit)
    for one in found.values():
        one["ratio"] = one["seconds"] / unit
    found["yardstick_seconds"] = unit
    found["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
