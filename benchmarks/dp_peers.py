"""Private synthesizers side by side on six tables: ours, and AIM, MST and PrivBayes of dpmm.

Run: python benchmarks/dp_peers.py [--data FOLDER] [--rows 5000] [--tables adult network]
    [--columns 99] [--epsilons 0.1 1 3] [--runs 1] [--methods marginals adaptive] [-o FILE]
    [--peer PYTHON --peers aim mst priv_bayes --iterations 0 --limit 600]

``--peer`` names a Python that has dpmm 0.1.9, whose AIM and MST are those of private-pgm; all get
the same codes, epsilon and delta (1e-9); ``--iterations`` of their inference, 0: their own number.
Told are the mean total variation of all pairs and of at most 300 triples of columns, on rows drawn,
and processor time. A peer that does not end within ``--limit`` seconds of it is told as such.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfmask as hm
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
TRIPLES = 300


def distance(sizes: dict[str, int], a: Codes, b: Codes, degree: int) -> float:
    """The mean total variation over sets of ``degree`` columns."""
    sets = list(combinations(sizes, degree))
    if len(sets) > TRIPLES and degree > 2:
        sets = [sets[i] for i in np.random.default_rng(0).permutation(len(sets))[:TRIPLES]]
    found = []
    for names in sets:
        cells = []
        for side in (a, b):
            cell = np.zeros(len(side[names[0]]), np.int64)
            for name in names:
                cell = cell * sizes[name] + side[name]
            cells.append(np.bincount(cell, minlength=int(np.prod([sizes[n] for n in names]))))
        p, q = (cell / cell.sum() for cell in cells)
        found.append(np.abs(p - q).sum() / 2)
    return float(np.mean(found))


def first_columns(coded: CodedTable, most: int) -> CodedTable:
    """The same table with fewer columns."""
    kept = list(coded[0])[:most]
    return (
        {n: coded[0][n] for n in kept},
        [n for n in coded[1] if n in kept],
        {n: coded[2][n] for n in kept},
    )


def ours(coded: CodedTable, epsilon: float, how: str) -> tuple[Codes, float]:
    """Rows of one of our methods, and the processor time."""
    method, options = OURS[how]
    sizes, ordered, codes = coded
    table = Table(pa.table({name: pa.array(held) for name, held in codes.items()}), Schema())
    domains = {n: Values(tuple(range(size)), ordered=n in ordered) for n, size in sizes.items()}
    begun = time.process_time()
    made = hm.synthesize(table, method, epsilon=epsilon, delta=DELTA, domains=domains, **options)
    seconds = time.process_time() - begun
    return {name: made.to_arrow()[name].to_numpy() for name in sizes}, seconds


def theirs(
    coded: CodedTable, epsilon: float, method: str, given: argparse.Namespace
) -> tuple[Codes, float] | None:
    """Rows of a peer, and the processor time; None where it did not end in time."""
    sizes, _, codes = coded
    script = str(Path(__file__).with_name("_dp_peer.py"))
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/in.npz", f"{folder}/out.npz"
        np.savez(source, **{"(sizes)": np.array(list(sizes.values()))}, **codes)
        done = subprocess.run(  # noqa: S603 - a benchmark of our own
            [
                given.peer,
                script,
                method,
                str(epsilon),
                str(DELTA),
                str(given.iterations),
                source,
                target,
            ],
            capture_output=True,
            check=False,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (given.limit,) * 2),
        )
        if not Path(target).exists():
            print((done.stderr or "").strip().splitlines()[-1:], flush=True)
            return None
        held = np.load(target)
        return {name: held[name].astype(np.int64) for name in sizes}, float(held["seconds"])


def main() -> None:
    """Print a line per run, then one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with adult.data")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 1.0, 3.0])
    parser.add_argument("--methods", nargs="*", default=list(OURS))
    parser.add_argument("--peer", help="a Python that has dpmm")
    parser.add_argument("--peers", nargs="*", default=["aim", "mst"])
    parser.add_argument("--columns", type=int, default=99, help="the first columns of each table")
    parser.add_argument("--iterations", type=int, default=0, help="of a peer's inference")
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    found = []
    for name in given.tables:
        coded = first_columns(TABLES[name](given.rows, given.data), given.columns)
        for epsilon in given.epsilons:
            for method in [*given.methods, *(given.peers if given.peer else [])]:
                for _ in range(given.runs):
                    if method in OURS:
                        made = ours(coded, epsilon, method)
                    else:
                        made = theirs(coded, epsilon, method, given)
                    one: dict[str, object] = {"table": name, "epsilon": epsilon, "method": method}
                    if made is not None:
                        one["pairs"] = distance(coded[0], coded[2], made[0], 2)
                        one["triples"] = distance(coded[0], coded[2], made[0], 3)
                        one["seconds"] = made[1]
                    found.append(one)
                    print(one, flush=True)
    if given.output:
        given.output.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
