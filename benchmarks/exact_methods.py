"""Three ways to a proven optimum compared: column generation, CP-SAT and branch and bound.

Run: python benchmarks/exact_methods.py [--seconds 60] [--k 2,2,3] [--seeds 1]
     [--method columns|cp-sat|bounds] [--metric NAME] [--data .data] [--values]

For each objective and method the samples of Adult grow until one is not proven in the time. By
default 80% of the records demand 2 and 20% demand 3, as in chapter 6 of the thesis. All three
start from the best of the heuristics. CP-SAT needs OR-tools (``pip install ortools``); it is no
dependency of halfmask.

With ``--values`` only ``method="exact"`` with l-diversity and t-closeness, on invented people: two
columns of numbers and a sensitive one of four values (40, 30, 20 and 10%); k = 2.

Seconds are of processor time per core, but for the limit of columns, which is of the clock.

- columns: ``method="exact"`` of ``hm.anonymize``.
- cp-sat: every record names the first record of its class, so that no solution counts twice.
- bounds: depth first over the classes of one record after the other, remote ones first, with the
  thesis's bound as corrected: a record pays at least the lesser of what it would in an open class
  and its distance to the (k - 1)-th nearest record that is still free.

Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, chapter 6.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

import halfmask as hm
from _adult import adult
from halfmask.anonymize.partition import exact, methods
from halfmask.anonymize.partition.task import PartitionTask, task_of
from halfmask.kernels import distance
from halfmask.metrics import partition
from halfmask.models.requirements import prepare

in_classes = partition.PointClasses.of_rows

SIZES = (12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 120, 160, 200, 300)
METRICS = {"dbil": 0, "wcsd": 1, "diameter": 2, "split": 3}
SCALE = 1_000_000  # CP-SAT counts in whole numbers
WORKERS = 2
STEPS = 200_000  # of the search between two looks at the clock


def sample(table: hm.Table, size: int, k: tuple[int, int, int], seed: int) -> PartitionTask:
    """So many records of Adult, 20% of which demand the highest k."""
    pick = np.random.default_rng(seed).choice(len(table), size, replace=False)
    part = hm.Table(table.arrow.take(pa.array(pick)), table.schema)
    shares = (0, 20, 80) if k[0] == k[1] or k[1] == k[2] else (10, 20, 70)
    demands = hm.policies.generate(part, shares, k=k, seed=seed)
    models = (hm.PersonalKAnonymity(),)
    return task_of(prepare(demands, models), models, seed=seed)


def value(task: PartitionTask, ids: Any, metric: str) -> float:
    """What a division costs; less is better."""
    found = {
        "dbil": lambda space, ids: partition.diameter_loss(in_classes(space, ids)),
        "wcsd": lambda space, ids: partition.pair_distances(in_classes(space, ids)),
        "diameter": partition.largest_diameter,
        "split": lambda space, ids: -partition.class_separation(in_classes(space, ids)),
    }[metric](task.space, ids)
    return float(found)


def start(task: PartitionTask, metric: str) -> Any:
    """The best division of the heuristics."""
    starts = (methods.divide_personal, methods.divide_k_member, methods.divide_mondrian)
    found = [divide(task).ids for divide in starts]
    return min(found, key=lambda ids: value(task, ids, metric))


def by_columns(task: PartitionTask, metric: str, seconds: float) -> tuple[float, bool]:
    """What ``method="exact"`` does, on the whole sample."""
    found = exact.optimum(task, metric, time.monotonic() + seconds)
    return found.value, found.gap == 0.0


def by_cp_sat(task: PartitionTask, metric: str, seconds: float) -> tuple[float, bool]:
    """The same as a model of OR-tools."""
    from ortools.sat.python import cp_model

    n, k = len(task), task.demands.k
    far = np.asarray(distance.matrix(task.space.points, np.arange(n)))
    whole = np.rint(far * SCALE).astype(np.int64)
    model = cp_model.CpModel()
    x = {(i, c): model.new_bool_var("") for i in range(n) for c in range(i + 1)}
    for i in range(n):
        model.add_exactly_one(x[i, c] for c in range(i + 1))
        for c in range(i):
            model.add_implication(x[i, c], x[c, c])
    for c in range(n):
        size = sum(x[i, c] for i in range(c, n))
        for i in range(c, n):
            model.add(size >= int(k[i])).only_enforce_if(x[i, c])
    _objective(model, x, whole, metric)
    known = start(task, metric)
    first = {int(one): int(np.flatnonzero(known == one)[0]) for one in np.unique(known)}
    for (i, c), var in x.items():
        model.add_hint(var, first[int(known[i])] == c)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = WORKERS
    over = time.process_time() + WORKERS * seconds
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            if time.process_time() > over:
                solver.stop_search()
                return

    threading.Thread(target=watch, daemon=True).start()
    status = solver.solve(model)
    done.set()
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return value(task, known, metric), False
    ids = np.array([next(c for c in range(i + 1) if solver.value(x[i, c])) for i in range(n)])
    return value(task, np.unique(ids, return_inverse=True)[1], metric), status == cp_model.OPTIMAL


def _objective(model: Any, x: dict[tuple[int, int], Any], far: Any, metric: str) -> None:
    n, most = len(far), int(far.max())
    pairs = [(i, j) for i in range(n) for j in range(i)]
    if metric in ("dbil", "diameter"):
        wide = [model.new_int_var(0, most, "") for _ in range(n if metric == "dbil" else 1)]
        for i, j in pairs:
            for c in range(j + 1):
                both = (x[i, c], x[j, c])
                model.add(wide[c if metric == "dbil" else 0] >= int(far[i, j])).only_enforce_if(
                    both
                )
        if metric == "diameter":
            model.minimize(wide[0])
            return
        paid = [model.new_int_var(0, most, "") for _ in range(n)]
        for (i, c), var in x.items():
            model.add(paid[i] >= wide[c]).only_enforce_if(var)
        model.minimize(sum(paid))
        return
    together = {}
    for i, j in pairs:
        together[i, j] = model.new_bool_var("")
        for c in range(j + 1):
            model.add_implication(together[i, j], x[i, c].negated()).only_enforce_if(
                x[j, c].negated()
            ) if metric == "split" else model.add_bool_or(
                x[i, c].negated(), x[j, c].negated(), together[i, j]
            )
    if metric == "wcsd":
        model.minimize(sum(int(far[p]) * var for p, var in together.items()))
        return
    apart = model.new_int_var(0, most, "")
    for i, j in pairs:
        for c in range(j + 1, i + 1):  # a class that begins after j does not hold it
            model.add_implication(together[i, j], x[i, c].negated())
        model.add(apart <= int(far[i, j])).only_enforce_if(together[i, j].negated())
    model.add(sum(x[c, c] for c in range(n)) >= 2)
    model.maximize(apart)


def by_bounds(task: PartitionTask, metric: str, seconds: float) -> tuple[float, bool]:
    """Branch and bound; the split has no such bound and is left out."""
    n = len(task)
    far = np.asarray(distance.matrix(task.space.points, np.arange(n)))
    order = np.argsort(-far.sum(axis=1), kind="stable")
    far, k = np.ascontiguousarray(far[order][:, order]), task.demands.k[order]
    best = value(task, start(task, metric), metric)
    state = (np.full(n, -1), np.full(n + 1, -1), np.array([0]))
    deadline = time.process_time() + seconds
    while True:
        best, done = search(far, k, METRICS[metric], best, *state, STEPS)
        if done or time.process_time() > deadline:
            return best, done


@njit(cache=True)
def search(
    far: Any, k: Any, kind: int, best: float, ids: Any, tried: Any, at: Any, steps: int
) -> Any:
    """Go on with the search for so many steps; the best value, and whether it came to its end.

    ``ids`` are the classes of the first ``at`` records, ``tried`` the class that each tried last.
    """
    n = len(k)
    for _ in range(steps):
        depth = at[0]
        if depth < 0:
            return best, True
        if depth == n or tried[depth] > ids[:depth].max() if depth else tried[0] >= 0:
            at[0] -= 1
            if at[0] >= 0:
                tried[depth] = -1
                ids[at[0]] = -1
            continue
        tried[depth] += 1
        ids[depth] = tried[depth]
        bound = _bound(far, k, kind, ids, depth + 1, best)
        if bound >= best - 1e-9:
            ids[depth] = -1
            continue
        if depth + 1 == n:
            best = bound
            ids[depth] = -1
            continue
        at[0] += 1
        tried[depth + 1] = -1
    return best, False


@njit(cache=True)
def _bound(far: Any, k: Any, kind: int, ids: Any, count: int, best: float) -> float:
    """What the first ``count`` records pay now and the others at least; infinite if impossible."""
    n = len(k)
    classes = ids[:count].max() + 1
    size, need = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    wide, total = np.zeros(classes), 0.0
    for i in range(count):
        c = ids[i]
        size[c] += 1
        need[c] = max(need[c], k[i])
        for j in range(i):
            if ids[j] == c:
                wide[c] = max(wide[c], far[i, j])
                total += far[i, j]
    short = 0
    for c in range(classes):
        short += max(need[c] - size[c], 0)
    if short > n - count:
        return np.inf
    paid = total if kind == 1 else ((size * wide).sum() if kind == 0 else wide.max())
    near = np.empty(n)
    for i in range(count, n):
        least = np.inf
        if n - count >= k[i]:  # a class of records that are all free still
            near[: n - count] = far[i, count:]
            nearest = np.sort(near[: n - count])  # the record itself stands first
            least = nearest[: k[i]].sum() / 2 if kind == 1 else nearest[k[i] - 1]
        for c in range(classes):
            x = 0.0 if kind == 1 else wide[c]
            for j in range(count):
                if ids[j] == c:
                    x = x + far[i, j] if kind == 1 else max(x, far[i, j])
            least = min(least, x)
        paid = max(paid, least) if kind == 2 else paid + least
        if paid >= best:
            return np.inf
    return paid


RUNS = {"columns": by_columns, "cp-sat": by_cp_sat, "bounds": by_bounds}


def values(metrics: list[str], seeds: int, seconds: float) -> None:
    """Print how far a promise of l or t is proven, and the largest gap of what is not."""
    promises = (hm.LDiversity(2, "s"), hm.LDiversity(3, "s"), hm.TCloseness(0.5, "s"),
                hm.TCloseness(0.3, "s"))  # fmt: skip
    print("| objective | promise | people | proven | seconds | largest gap |")
    print("|---|---|---|---|---|---|")
    for metric in metrics:
        for promise in promises:
            for size in (24, 40, 60):
                begun, gaps = time.process_time(), []
                for seed in range(1, seeds + 1):
                    draw = np.random.default_rng(seed)
                    people = {
                        "age": draw.integers(20, 80, size),
                        "zip": draw.integers(0, 50, size),
                        "s": draw.choice(list("uvwx"), size, p=[0.4, 0.3, 0.2, 0.1]),
                    }
                    roles = {"age": "quasi", "zip": "quasi", "s": "sensitive"}
                    release = hm.anonymize(
                        hm.read(people, schema=roles), hm.KAnonymity(2), promise, method="exact",
                        metric=metric, time_limit=seconds, block=size,
                    )  # fmt: skip
                    gaps.append((release.gap or 0.0) / release.parameters["value"])
                took = (time.process_time() - begun) / seeds
                proven = sum(gap == 0.0 for gap in gaps)
                stated = (
                    f"l = {promise.l}" if isinstance(promise, hm.LDiversity) else f"t = {promise.t}"
                )
                print(f"| {metric} | {stated} | {size} | {proven} of {seeds} | {took:.1f} "
                      f"| {max(gaps):.1%} |", flush=True)  # fmt: skip


def main() -> None:
    """Print how far each method goes for each objective."""
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, help="a folder with adult.data")
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--k", default="2,3,3", help="demands, low to high")
    options.add_argument("--method", choices=tuple(RUNS), action="append")
    options.add_argument("--metric", choices=tuple(METRICS), action="append")
    options.add_argument("--values", action="store_true", help="promises of l and t instead")
    given = options.parse_args()
    if given.values:
        values(given.metric or ["dbil", "wcsd", "diameter"], given.seeds, given.seconds)
        return
    table, k = adult(given.data), tuple(int(one) for one in given.k.split(","))
    print(
        "| objective | method | records proven | seconds there | not proven at |",
        "|---|---|---|---|---|",
        sep="\n",
    )
    for metric in given.metric or METRICS:
        for method in given.method or RUNS:
            if (method, metric) == ("bounds", "split"):
                continue
            reached, took, failed = 0, 0.0, 0
            for size in SIZES:
                begun = time.process_time()
                tasks = [sample(table, size, k, seed) for seed in range(given.seeds)]
                if not all(RUNS[method](task, metric, given.seconds)[1] for task in tasks):
                    failed = size
                    break
                reached, took = size, (time.process_time() - begun) / given.seeds
            print(f"| {metric} | {method} | {reached} | {took:.1f} | {failed or ''} |", flush=True)


if __name__ == "__main__":
    main()
