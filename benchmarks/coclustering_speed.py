"""How long co-clustering takes and what it costs: Iris, Adult, a million people, many columns.

Run: python benchmarks/coclustering_speed.py [--data .data] [--million] [--wide]
    [--khiops]

Costs are in the Khiops 11 form, so that they can be compared. ``--khiops`` lets Khiops search the
same melted Adult in the same run (half an hour on one core; needs the extra ``khiops``); without it
the cost that Khiops 11.0.1 reached is taken as known. Kernels are warm.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfmask as hm
from _adult import complete_rows, found
from halfmask.coclustering.observations import Observations, Variable, observe
from halfmask.coclustering.optimize import optimize_grid
from halfmask.coclustering.prepare import melt

KHIOPS_ADULT = 3_744_247.963  # what Khiops 11.0.1 reaches on the melted table when it ends
IRIS = Path(__file__).parents[1] / "tests" / "coclustering" / "iris.csv"


def quasi(rows: pa.Table) -> hm.Table:
    """A table all of whose columns are quasi-identifiers."""
    return hm.read(rows, dict.fromkeys(rows.column_names, "quasi"))


def iris() -> dict[str, object]:
    """Seconds to the best known cost of the melted table."""
    table = quasi(hm.read(IRIS, hm.Schema()).arrow)
    observed = melt(table, table.schema.quasi, bins=3).observations
    optimize_grid(observed, rounds=1)
    begin = time.perf_counter()
    grid = optimize_grid(observed)
    return {"seconds": round(time.perf_counter() - begin, 3), "cost": round(grid.cost, 6)}


def adult(folder: Path | None, *, rounds: int) -> tuple[Observations, dict[str, object]]:
    """Seconds until the search is below Khiops, and at its end."""
    table = quasi(complete_rows(folder))
    observed = melt(table, table.schema.quasi).observations
    begin, used = time.perf_counter(), time.process_time()
    reached: list[tuple[float, float]] = []
    grid = optimize_grid(
        observed,
        criterion="khiops11",
        rounds=rounds,
        progress=lambda _, cost: reached.append((round(time.perf_counter() - begin, 1), cost)),
    )
    sizes = grid.sizes(0)
    return observed, {
        "observations": observed.total,
        "seconds": round(time.perf_counter() - begin, 1),
        "computing_seconds": round(time.process_time() - used, 1),
        "cost": round(grid.cost, 3),
        "level": round(grid.level, 6),
        "khiops_known_cost": KHIOPS_ADULT,
        "below_khiops": grid.cost <= KHIOPS_ADULT,
        "below_khiops_after_seconds": next((s for s, c in reached if c <= KHIOPS_ADULT), None),
        "parts": grid.parts,
        "people_per_group": [int(sizes.min()), int(sizes.max())],
    }


def khiops(observed: Observations) -> dict[str, object]:
    """The same with Khiops."""
    from halfmask.coclustering.khiops import khiops_cocluster

    begin = time.perf_counter()
    grid = khiops_cocluster(observed)
    return {
        "seconds": round(time.perf_counter() - begin, 1),
        "cost": round(grid.cost, 3),
        "parts": grid.parts,
    }


def million() -> dict[str, object]:
    """A million people in 25 hidden groups, nine columns of twelve values."""
    random = np.random.default_rng(0)
    people, columns, hidden = 1_000_000, 9, random.integers(0, 25, 1_000_000)
    codes = []
    for k in range(columns):
        law = random.dirichlet(np.full(12, 0.3), 25).cumsum(axis=1)
        drawn = (random.random(people)[:, None] > law[hidden]).sum(axis=1).clip(0, 11)
        codes.append((drawn + 12 * k).astype(np.int32))
    sides = [
        Variable("row", "categorical", people),
        Variable("part", "categorical", 12 * columns),
    ]
    rows = np.tile(np.arange(people, dtype=np.int32), columns)
    begin, used = time.perf_counter(), time.process_time()
    grid = optimize_grid(observe(sides, [rows, np.concatenate(codes)]), rounds=2)
    return {
        "seconds": round(time.perf_counter() - begin, 1),
        "computing_seconds": round(time.process_time() - used, 1),
        "parts": grid.parts,
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


def wide() -> dict[str, object]:
    """k-anonymity of 10,000 rows of 60 columns of mixed kinds, in six hidden groups."""
    random = np.random.default_rng(0)
    rows, hidden = 10_000, random.integers(0, 6, 10_000)
    columns: dict[str, np.ndarray] = {}
    for k in range(0, 60, 3):
        columns[f"c{k}"] = random.normal(hidden * (k % 5 - 2), 3, rows)
        names = (hidden * ((k + 1) % 4) + random.integers(0, 8, rows)) % 12
        columns[f"c{k + 1}"] = names.astype(str)
        columns[f"c{k + 2}"] = random.poisson(5 + hidden * ((k + 2) % 3), rows)
    table = hm.read(pa.table(columns), dict.fromkeys(columns, "quasi"))
    begin, used = time.perf_counter(), time.process_time()
    release = hm.anonymize(table, hm.KAnonymity(10), method="cocluster", seed=1)
    return {
        "seconds": round(time.perf_counter() - begin, 1),
        "computing_seconds": round(time.process_time() - used, 1),
        "classes": release.classes.count,
        "true_cells": round(release.statement["measured"]["true_cells"], 3),
    }


def main() -> None:
    """Print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with adult.data")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--khiops", action="store_true")
    given = parser.parse_args()
    made: dict[str, object] = {
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "iris": iris(),
    }
    if found(given.data):
        observed, ours = adult(given.data, rounds=given.rounds)
        made["adult"] = ours
        if given.khiops:
            theirs = khiops(observed)
            made["khiops"] = theirs
            made["times_faster"] = round(theirs["seconds"] / ours["seconds"], 1)  # type: ignore[operator]
    if given.million:
        made["million"] = million()
    if given.wide:
        made["wide"] = wide()
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
