"""anonypy's Mondrian and ours with labels of sets, on Adult, scored by one function on labels.

    VENV/bin/pip install anonypy pandas          # an environment of its own
    VENV/bin/python benchmarks/sets_peer.py --peer --k 2,5,10,50
    python benchmarks/sets_peer.py --k 2,5,10,50 [--method auto]

A label is read as it is published: ``[a,b]`` or ``a | b`` as that set, a range of ages by its ends,
a label of the hierarchy as the values below it. Both forms in use are given: ``(values - 1) /
(all - 1)``, and ``values / all`` with nothing for a single value; ages are scored by their width.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ARX = Path(__file__).resolve().parents[2] / "shared" / "data" / "arx"
NAMES = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
    "occupation",
)  # fmt: skip


def people() -> list[dict[str, str]]:
    """The rows of Adult."""
    with (ARX / "adult.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=";"))


def below() -> dict[str, dict[str, set[str]]]:
    """Per column, the values under each label of its hierarchy."""
    found: dict[str, dict[str, set[str]]] = {}
    for name in NAMES:
        labels = found.setdefault(name, {})
        with (ARX / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
            for leaf, *above in csv.reader(file, delimiter=";"):
                for label in (leaf, *above):
                    labels.setdefault(label, set()).add(leaf)
    return found


def score(cells: Counter[tuple[str, str]], rows: list[dict[str, str]]) -> tuple[float, float]:
    """Both forms of what labels leave open, by how often each label stands in each column."""
    held = {name: {row[name] for row in rows} for name in NAMES}
    ages = sorted(map(int, held["age"]))
    known, totals = below(), [0.0, 0.0]
    for (name, label), count in cells.items():
        if name == "age":
            ends = [int(one) for one in re.findall(r"\d+", label)] or [ages[0], ages[-1]]
            forms = [(ends[-1] - ends[0]) / (ages[-1] - ages[0])] * 2
        else:
            pieces = [one.strip() for one in re.split(r"[|,]", label.strip("[]"))]
            covered = set().union(*(known[name].get(piece, set()) for piece in pieces))
            covered = (covered & held[name]) or held[name]
            size, every = len(covered), len(held[name])
            forms = [(size - 1) / (every - 1), size / every if size > 1 else 0.0]
        totals = [total + count * form for total, form in zip(totals, forms, strict=True)]
    cell_count = len(rows) * len(NAMES)
    return totals[0] / cell_count, totals[1] / cell_count


def peer_cells(rows: list[dict[str, str]], k: int) -> Counter[tuple[str, str]]:
    """The labels of anonypy's Mondrian."""
    import anonypy
    import pandas as pd

    frame = pd.DataFrame(rows)[[*NAMES, "salary-class"]]
    frame["age"] = frame["age"].astype(int)
    for name in frame.columns.drop("age"):
        frame[name] = frame[name].astype("category")
    made = anonypy.Preserver(frame, list(NAMES), "salary-class").anonymize_k_anonymity(k=k)
    cells: Counter[tuple[str, str]] = Counter()
    for row in made:
        for name in NAMES:
            label = row[name]
            text = ",".join(map(str, label)) if isinstance(label, list) else str(label)
            cells[name, text] += row["count"]
    return cells


def own_cells(k: int, method: str) -> Counter[tuple[str, str]]:
    """The labels of a release of ours."""
    import halfmask as hm

    columns: dict[str, Any] = {
        name: {"role": "quasi", "hierarchy": {"csv": str(ARX / f"adult_hierarchy_{name}.csv")}}
        for name in NAMES
    }
    columns["age"]["kind"] = "numeric"
    columns["salary-class"] = "sensitive"
    table = hm.read(str(ARX / "adult.csv"), schema={"columns": columns})
    release = hm.anonymize(table, hm.KAnonymity(k), method=method, labels="sets", seed=1)
    made = release.to_arrow()
    return Counter((name, str(label)) for name in NAMES for label in made[name].to_pylist())


def main() -> None:
    """Print both forms for each k."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", default="2,5,10,50")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--peer", action="store_true", help="anonypy in place of halfmask")
    given = parser.parse_args()
    if not ARX.is_dir():  # both sides are scored by these hierarchies: others give other figures
        sys.exit(f"The hierarchies of Adult that ARX ships are not there: put them in {ARX}.")
    rows = people()
    for k in map(int, given.k.split(",")):
        began = time.process_time()
        cells = peer_cells(rows, k) if given.peer else own_cells(k, given.method)
        used = time.process_time() - began
        less, share = score(cells, rows)
        name = "anonypy" if given.peer else given.method
        print(
            f"{name}, k = {k}: {less:.4f} by (values - 1) / (all - 1), {share:.4f} by values / all,"
            f" {used:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
