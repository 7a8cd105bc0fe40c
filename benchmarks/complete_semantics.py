"""How fast the exact complete semantics is proven, and what it gains over the other two.

Random trees of 4, 7 and 10 levels with about 10,000 groups of 1 to 19 people, and the ten levels of
Fig 4.5 on Adult (30,162 people), where everybody asks for (5, 3) or for one of the ten guarantees.

    python benchmarks/complete_semantics.py [--effort 1] [--data .data]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import _adult
import halfmask as hm
from _adult import TREES
from halfmask.query import semantics
from halfmask.query.groups import Groups, KeyColumn, collect
from halfmask.query.run import Session
from halfmask.query.semantics import publish_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

CHAIN = ((5, 3), (6, 3), (8, 4), (9, 4), (9, 4), (10, 4), (11, 5), (14, 6), (15, 7), (17, 8))
KEYS = {
    "age": 0, "workclass": 1, "education": 4, "marital-status": 5, "occupation": 6, "race": 8,
    "sex": 9, "country": 13,
}  # fmt: skip
STEPS = (
    "age -> 20", "workclass -> up", "education -> 5", '"marital-status" -> up', "occupation -> up",
    "race -> up", "sex -> del", "country -> del", "age -> 40",
)  # fmt: skip
SHAPES = (
    (9_450, 10, (5, 7, 10, 20)),
    (8_600, 4, (5, 6, 8, 10, 12, 15, 20)),
    (6_700, 2, (5, 6, 8, 9, 9, 10, 11, 14, 15, 17)),
)


def tree(leaves: int, branching: int, ks: tuple[int, ...], seed: int = 1) -> Groups:
    """A group in every leaf and in half of the inner nodes."""
    rng = np.random.default_rng(seed)
    maps = [np.arange(leaves) // branching**i for i in range(len(ks) - 1)]
    maps.append(np.zeros(leaves, dtype=np.int64))
    codes, levels = [np.arange(leaves)], [np.zeros(leaves, dtype=np.int64)]
    for level, nodes in enumerate(maps[1:], start=1):
        first = np.unique(nodes, return_index=True)[1]
        codes.append(first[rng.random(len(first)) < 0.5])
        levels.append(np.full(len(codes[-1]), level))
    code = np.concatenate(codes)
    labels = tuple([""] * (int(m.max()) + 1) for m in maps)
    key = KeyColumn(code, pa.nulls(0), tuple(maps), labels, tuple(range(len(ks))))
    people = rng.integers(1, 20, len(code))
    thresholds = np.array(ks)[:, None]
    return Groups(np.concatenate(levels), people, (key,), (people,), thresholds, pa.table({}))


def adult(folder: Path, *, mixed: bool) -> Groups:
    """The groups of Fig 4.5."""
    lines = (folder / "adult.data").read_text(encoding="utf-8").splitlines()[: _adult.MOST]
    cells = [[c.strip() for c in line.split(",")] for line in lines if line.count(",") == 14]
    cells = [c for c in cells if "?" not in c]
    numeric = {"age", "education", "weight"}
    columns = {**KEYS, "weight": 2}
    rows = {n: [int(c[i]) if n in numeric else c[i] for c in cells] for n, i in columns.items()}
    level = np.random.default_rng(1).integers(0, len(CHAIN) if mixed else 1, len(cells))
    for j, name in enumerate(("k_i", "l_i")):
        rows[name] = np.array([c[j] for c in CHAIN])[level].tolist()
    trees = {n: hm.hierarchies.Tree(t) for n, t in TREES.items()}
    trees["race"] = hm.hierarchies.Flat()
    schema = {n: hm.Column("quasi", hierarchy=trees.get(n)) for n in KEYS}
    table = hm.read(pa.table(rows), hm.Schema(columns={**schema, "weight": hm.Column("sensitive")}))
    names = ", ".join(f'"{n}"' for n in KEYS)
    k, l = CHAIN[0]
    asked = f"SELECT {names}, AVG(weight) FROM t GROUP BY {names} GUARANTEE k = {k}, l = {l} "
    asked += " ".join(
        f"THEN {s} GUARANTEE k = {k}, l = {l}" for s, (k, l) in zip(STEPS, CHAIN[1:], strict=True)
    )
    asked += " SEMANTICS complete"
    with Session(table) as session:
        return collect(session.prepare(asked, {"k": "k_i", "l": "l_i"}).plan, session.engine)


def instances(folder: Path | None) -> Iterator[tuple[str, Groups]]:
    """What is measured."""
    for leaves, branching, ks in SHAPES:
        yield f"{len(ks)} levels", tree(leaves, branching, ks)
    if folder:
        yield "Adult, all (5, 3)", adult(folder, mixed=False)
        yield "Adult, mixed", adult(folder, mixed=True)


def main() -> None:
    """Print one line per tree."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--effort", type=float, default=None, help="none: until it is proven")
    parser.add_argument("--data", type=Path, help="a folder with adult.data")
    given = parser.parse_args()
    print(
        f"{'':18}{'groups':>8}{'CPU s':>8}{'gap':>10}{'F1':>8}{'F2':>9}"
        f"{'selective F1':>14}{'F2':>9}{'greedy F2':>11}"
    )
    for name, groups in instances(_adult.found(given.data)):
        before = time.process_time()
        best = semantics.choose_complete(groups, effort=given.effort)
        used = time.process_time() - before
        publish_groups(groups, best)
        other, greedy = semantics.choose_selective(groups), semantics.choose_greedily(groups)
        print(
            f"{name:18}{len(groups):8}{used:8.1f}{best.gap:10.4%}{best.people(groups):8}"
            f"{best.depth(groups):9}{other.people(groups):14}{other.depth(groups):9}"
            f"{greedy.depth(groups):11}",
            flush=True,
        )


if __name__ == "__main__":
    main()
