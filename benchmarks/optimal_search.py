"""How long the search takes, as a ratio to one ``numpy.unique`` over the same codes.

Run: python benchmarks/optimal_search.py [--data ../shared/data/arx] [--rows 1000000]

The yardstick U is ``numpy.unique(codes, axis=0, return_counts=True)`` over the int32 dictionary
codes of all columns of the table. Kernels are warm; only the search is timed, but in the last line
of Adult all of ``hm.anonymize``, with its checks and the release. Times are of the processor, the
best of three, and so are those of the yardstick, which runs in between: both see the same load.
Figures in the docs are of the hierarchies that ARX ships; where these
are not there, Adult is what ``make data`` fetches, with hierarchies of ours.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import _adult
import halfmask as hm
from halfmask.anonymize import local, optimal
from halfmask.anonymize.problem import RecodingProblem
from halfmask.metrics.cost import METRICS
from halfmask.models.requirements import statistics
from halfmask.table.tuples import Tuples

COLUMNS = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
    "occupation", "salary-class",
)  # fmt: skip
ARX = _adult.ROOT.parent / "shared" / "data" / "arx"
RULES = {  # of ours, where those of ARX are not there
    "age": {"intervals": [5, 10, 20, 40]},
    "education": {
        "tree": {
            "School": _adult.EDUCATION[:8],
            "Graduate": _adult.EDUCATION[8:12],
            "Higher": _adult.EDUCATION[12:],
        }
    },
    **{name: {"tree": tree} for name, tree in _adult.TREES.items()},
}
MOST: int | None = None  # rows of Adult that are used; None: all
RUNS = 3


def adult(folder: Path, sensitive: tuple[str, ...] = ()) -> hm.Table:
    """Adult with the hierarchies in ``folder``, or with ours."""
    theirs = (folder / "adult.csv").exists()
    columns = {}
    for name in COLUMNS:
        rule = {"csv": f"adult_hierarchy_{name}.csv"} if theirs else RULES.get(name)
        columns[name] = {"role": "sensitive" if name in sensitive else "quasi"}
        columns[name] |= {} if rule is None else {"hierarchy": rule}
    schema = hm.Schema.from_dict({"columns": columns}, folder=folder)
    source = folder / "adult.csv" if theirs else _adult.complete_rows().select(COLUMNS)
    table = hm.read(source, schema)
    return hm.Table(table.arrow.slice(0, MOST), table.schema)


def enlarged(table: hm.Table, rows: int) -> hm.Table:
    """Rows drawn from ``table``, every column redrawn among its values on a tenth of them."""
    rng = np.random.default_rng(0)
    pick = rng.integers(0, len(table), rows)
    arrays = []
    for name in COLUMNS:
        encoded = table.encode(name)
        codes = encoded.codes[pick]
        redrawn = rng.random(rows) < 0.1
        codes[redrawn] = rng.integers(0, len(encoded.values), int(redrawn.sum()))
        arrays.append(pa.DictionaryArray.from_arrays(pa.array(codes), encoded.values))
    return hm.Table(pa.table(arrays, names=COLUMNS), table.schema)


def codes_of(table: hm.Table) -> np.ndarray:
    """What the yardstick counts."""
    return np.column_stack([table.encode(name).codes for name in COLUMNS])


def _timed(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(
    table: hm.Table,
    models: tuple,
    suppression: float,
    method: str = "optimal",
    metric: str = "loss",
) -> dict:
    """Time the search alone and the yardstick beside it, best of three."""
    tuples, _ = statistics(Tuples.of(table), models)
    hierarchies = [table.hierarchy(name) for name in table.schema.quasi]
    solve = {"optimal": optimal.find_levels, "local": local.find_steps}[method]
    codes = codes_of(table)
    unit, best, solution, problem = np.inf, np.inf, None, None
    for _ in range(RUNS):
        unit = min(unit, _timed(lambda: np.unique(codes, axis=0, return_counts=True)))
        problem = RecodingProblem(
            tuples, hierarchies, models, METRICS[metric], suppression=suppression
        )
        start = time.process_time()
        solution = solve(problem, seed=None, time_limit=None)
        best = min(best, time.process_time() - start)
    return {
        "unit": unit,
        "seconds": best,
        "value": solution.value,
        "evaluated": problem.evaluations,
        "tuples": len(tuples),
    }


def measure_release(table: hm.Table, models: tuple) -> dict:
    """Time all of the anonymization without suppression in the same way."""
    codes = codes_of(table)
    unit = best = np.inf
    hm.anonymize(table, *models, method="optimal")  # what is kept with the table is there then
    for _ in range(RUNS):
        unit = min(unit, _timed(lambda: np.unique(codes, axis=0, return_counts=True)))
        best = min(best, _timed(lambda: hm.anonymize(table, *models, method="optimal")))
    return {"unit": unit, "seconds": best}


def main() -> None:
    """Print one line per question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ARX)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    nine, eight = adult(options.data), adult(options.data, ("occupation",))
    k, t = hm.KAnonymity(5), hm.TCloseness(0.2, "occupation")
    two = hm.KAnonymity(2)
    likeness = (hm.DeltaDisclosure(1.0, "occupation"), hm.BetaLikeness(2.0, "occupation"))
    questions = [
        ("Adult, 9 columns, k = 5, no suppression", nine, (k,), 0.0, "optimal", 0.5),
        ("Adult, 9 columns, k = 2, no suppression", nine, (two,), 0.0, "optimal", 0.5),
        ("Adult, 8 columns, t = 0.2, no suppression", eight, (t,), 0.0, "optimal", 0.5),
        ("Adult, 9 columns, k = 5, 5%", nine, (k,), 0.05, "optimal", 5),
        ("Adult, 9 columns, k = 5, unlimited", nine, (k,), 1.0, "optimal", 10),
        ("Adult, 8 columns, t = 0.2, 5%", eight, (t,), 0.05, "optimal", 6),
        ("Adult, 8 columns, k = 5 and t = 0.2, 5%", eight, (k, t), 0.05, "optimal", 6),
        *((f"Adult, 8 columns, {m.name}, 5%", eight, (m,), 0.05, "optimal", 8) for m in likeness),
        *(
            (f"Adult, 9 columns, k = 5, 5%, {metric}", nine, (k,), 0.05, "optimal", 8, metric)
            for metric in ("discernibility", "average-class-size", "ambiguity")
        ),
        ("Adult, 9 columns, k = 5, local", nine, (k,), 0.05, "local", 20),
    ]
    report(questions, as_json=options.json)
    whole = measure_release(nine, (two,))
    tell("Adult, 9 columns, k = 2, with the release", 0.5, whole, as_json=options.json)
    big = enlarged(nine, options.rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report(
        [
            (f"{options.rows:,} rows, k = 5, 5%", big, (k,), 0.05, "optimal", 3),
            (f"{options.rows:,} rows, k = 5, local", big, (k,), 0.05, "local", 20),
        ],
        as_json=options.json,
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory: {before / 1024:.0f} MiB with the table, {after / 1024:.0f} MiB in all")


def report(questions: list, *, as_json: bool) -> None:
    """Measure and print."""
    for name, table, models, suppression, method, goal, *metric in questions:
        found = measure(table, models, suppression, method, *metric)
        tell(name, goal, found, as_json=as_json)


def tell(name: str, goal: float, found: dict, *, as_json: bool) -> None:
    """Print one line."""
    ratio = found["seconds"] / found["unit"]
    if as_json:
        print(json.dumps({"question": name, "ratio": ratio, "goal": goal, **found}))
        return
    line = f"{name:50} {ratio:6.2f} U (goal {goal:3g})  {found['seconds']:7.3f} s"
    line += f"  U = {found['unit'] * 1000:.1f} ms"
    if "value" in found:
        line += f"  value {found['value']:.6g}  {found['evaluated']} evaluated"
        line += f"  {found['tuples']:,} tuples"
    print(line)


if __name__ == "__main__":
    main()
