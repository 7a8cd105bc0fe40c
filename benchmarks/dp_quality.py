"""Private synthesizers side by side on six tables: ours, and AIM, MST and others of peers.

Run: python benchmarks/dp_quality.py [--peers PYTHON ...] [--state FILE] [--rows 10000]
    [--data FOLDER] [--tables adult network] [--epsilons 0.1 1 3] [--methods marginals dpmm-mst]
    [--columns 99] [--runs 1] [--full] [--limit 3600] [--print]

``--peers`` names Pythons that have mbi (2.0.0, private-pgm's package), dpmm (0.1.9) or
smartnoise-synth (1.0.8 with mbi 1.1.0); all get the same codes, epsilon and delta (1e-9). The
inference of mbi and dpmm ends when it has converged; with ``--full`` after its own thousands of
iterations. Told are, on rows drawn: the mean total variation of all pairs and of at most 300
triples of columns, the mean relative error of 300 counts, the AUC of trees trained on synthetic and
judged on other real rows, pMSE of trees, processor time and, in the state, time by the clock. One
table, epsilon and method is one unit of work; with ``--state`` each is saved as it ends, and a run
that was stopped goes on where it was. "AIM as printed" and "MST as printed" are their rules on our
inference (``_dp_printed.py``), since the peers' own AIM takes hours. Of several ``--runs`` the
means are told with their standard errors. A peer that does not end within ``--limit`` seconds of
processor is told as such. ``--print`` only tells what the state holds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfmask as hm
from _dp_measures import measure
from _dp_printed import aim, mst
from _dp_tables import TABLES, CodedTable, Codes
from halfmask.dp.domain import Values
from halfmask.table.schema import Schema
from halfmask.table.table import Table

DELTA = 1e-9
OURS: dict[str, tuple[str, dict[str, object]]] = {
    "marginals": ("marginals", {}),
    "adaptive": ("adaptive", {}),
    "adaptive, triples": ("adaptive", {"degree": 3}),
}
PRINTED = {"AIM as printed": aim, "MST as printed": mst}  # on our inference: AIM's takes hours
MEASURES = ("pairs", "triples", "queries", "tstr", "pmse", "seconds")
PEER = str(Path(__file__).with_name("_dp_peer.py"))


def first_columns(coded: CodedTable, most: int) -> CodedTable:
    """The same table with fewer columns."""
    kept = list(coded[0])[:most]
    return (
        {n: coded[0][n] for n in kept},
        [n for n in coded[1] if n in kept],
        {n: coded[2][n] for n in kept},
    )


def ours(coded: CodedTable, epsilon: float, how: str) -> tuple[Codes, dict[str, float]]:
    """Rows of one of our methods, and how long it took."""
    sizes, ordered, codes = coded
    if how in PRINTED:
        begun, wall = time.process_time(), time.perf_counter()
        return PRINTED[how](coded, epsilon, DELTA), _spent(begun, wall)
    method, options = OURS[how]
    table = Table(pa.table({name: pa.array(held) for name, held in codes.items()}), Schema())
    domains = {n: Values(tuple(range(size)), ordered=n in ordered) for n, size in sizes.items()}
    begun, wall = time.process_time(), time.perf_counter()
    made = hm.synthesize(table, method, epsilon=epsilon, delta=DELTA, domains=domains, **options)
    spent = _spent(begun, wall)
    return {name: made.to_arrow()[name].to_numpy() for name in sizes}, spent


def _spent(begun: float, wall: float) -> dict[str, float]:
    """Processor time, and time by the clock."""
    return {"seconds": time.process_time() - begun, "wall": time.perf_counter() - wall}


def theirs(
    coded: CodedTable, epsilon: float, method: str, python: str, given: argparse.Namespace
) -> tuple[Codes, dict[str, float]] | str:
    """Rows of a peer, and how long it took; or why there are none."""
    sizes, _, codes = coded
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/in.npz", f"{folder}/out.npz"
        np.savez(source, **{"(sizes)": np.array(list(sizes.values()))}, **codes)
        how = [method, str(epsilon), str(DELTA), str(int(given.full)), source, target]
        done = subprocess.run(  # noqa: S603 - a benchmark of our own
            [python, PEER, *how],
            capture_output=True,
            check=False,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (given.limit,) * 2),
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"not within {given.limit} s"
        if done.returncode < 0:  # the compiler of mbi's inference does, now and then
            return f"died: {signal.Signals(-done.returncode).name}"
        if not Path(target).exists():
            return ((done.stderr or "").strip().splitlines() or ["failed"])[-1][:60]
        held = np.load(target)
        spent = {one: float(held[f"({one})"]) for one in ("seconds", "wall")}
        return {name: held[name].astype(np.int64) for name in sizes}, spent


def peers_of(pythons: list[str]) -> dict[str, str]:
    """Which methods there are beside ours, and with which Python."""
    found = {}
    for python in pythons:
        listed = subprocess.run([python, PEER], capture_output=True, check=True, text=True)  # noqa: S603
        found |= dict.fromkeys(listed.stdout.split(), python)
    return found


def tell(results: list[dict[str, object]]) -> None:
    """Print the means of all runs as a table."""
    print("| table | epsilon | method |", " | ".join(MEASURES), "|")
    print("|" + "---|" * (3 + len(MEASURES)))
    units = sorted({(str(r["table"]), float(r["epsilon"]), str(r["method"])) for r in results})  # type: ignore[arg-type]
    for unit in units:
        mine = [r for r in results if (r["table"], r["epsilon"], r["method"]) == unit]
        told = [r for r in mine if "pairs" in r]
        if told:
            cells = [_mean([float(r[m]) for r in told]) for m in MEASURES]  # type: ignore[arg-type]
        else:
            cells = [str(mine[0].get("failed")), *[""] * (len(MEASURES) - 1)]
        print(f"| {unit[0]} | {unit[1]:g} | {unit[2]} |", " | ".join(cells), "|")


def _mean(values: list[float]) -> str:
    """The mean, and of several values its standard error."""
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{np.mean(values):.4g} +- {np.std(values, ddof=1) / len(values) ** 0.5:.2g}"


def main() -> None:
    """Run what is not in the state yet, then print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with adult.data")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 1.0, 3.0])
    parser.add_argument("--methods", nargs="*", help="some of ours and of the peers'")
    parser.add_argument("--peers", nargs="*", default=[], help="Pythons that have other libraries")
    parser.add_argument("--columns", type=int, default=99, help="the first columns of each table")
    parser.add_argument("--full", action="store_true", help="all iterations of a peer's inference")
    parser.add_argument("--limit", type=int, default=3600)
    parser.add_argument("--state", type=Path, help="what is done; made where it is missing")
    parser.add_argument("--print", action="store_true", help="only print the state")
    given = parser.parse_args()
    found: list[dict[str, object]] = []
    if given.state and given.state.exists():
        found = [json.loads(line) for line in given.state.read_text().splitlines()]
    peers = peers_of(given.peers)
    methods = given.methods or [*OURS, *PRINTED, *peers]
    coded: dict[str, tuple[CodedTable, Codes]] = {}
    work = [(r, m, e, t) for r in range(given.runs) for m in methods for e in given.epsilons
            for t in given.tables]  # fmt: skip
    for run, method, epsilon, name in work if not given.print else []:
        unit = {"table": name, "epsilon": epsilon, "method": method, "run": run, "rows": given.rows,
                "columns": given.columns}  # fmt: skip
        if any(all(one.get(key) == value for key, value in unit.items()) for one in found):
            continue
        if name not in coded:
            whole = first_columns(TABLES[name](given.rows * 5 // 4, given.data), given.columns)
            cut = min(given.rows, len(next(iter(whole[2].values()))) * 4 // 5)
            rest = {n: held[cut:] for n, held in whole[2].items()}
            coded[name] = (*whole[:2], {n: held[:cut] for n, held in whole[2].items()}), rest
        table, test = coded[name]
        made = (
            ours(table, epsilon, method)
            if method in (*OURS, *PRINTED)
            else theirs(table, epsilon, method, peers[method], given)
        )
        one: dict[str, object] = {**unit, "full": given.full}
        if isinstance(made, str):
            one["failed"] = made
        else:
            one |= {**measure(table, test, made[0]), **made[1]}
        found.append(one)
        print(one, flush=True)
        if given.state:
            with given.state.open("a") as file:
                file.write(json.dumps(one) + "\n")
    tell([one for one in found if one["rows"] == given.rows and one["columns"] == given.columns])


if __name__ == "__main__":
    main()
