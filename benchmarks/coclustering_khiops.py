"""What grids cost, here and with Khiops: sparse, skewed, mixed tables of two to four variables.

python benchmarks/coclustering_khiops.py [--tables 8] [--kinds "sparse,rare values"] [--rounds 1]

Per table and form of the cost: ours less that of Khiops in nats (below 0: ours is cheaper), the
parts, and our processor seconds. Khiops minimizes its own form; its grid is judged in both. Needs
the extra ``khiops``, which takes 2 to 30 s a table.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING

import numpy as np

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.optimize import optimize_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.coclustering.observations import Observations


def sparse(seed: int, values: int, rows: int, groups: int, even: float) -> Observations:
    """Two variables whose values stand in hidden groups; few observations of each pair."""
    random = np.random.default_rng(seed)
    of = [random.integers(0, groups, values) for _ in range(2)]
    cell = random.choice(groups**2, rows, p=random.dirichlet(np.full(groups**2, even)))
    sides = [
        np.array([random.choice(np.flatnonzero(one == g)) for g in wanted], dtype=np.int32)
        for one, wanted in zip(of, (cell // groups, cell % groups), strict=True)
    ]
    return observe([Variable(name, "categorical", values) for name in "ab"], sides)


def mixed(seed: int, rows: int, kinds: str) -> Observations:
    """Categories (c) and numbers (n) that all depend on one of four hidden groups."""
    random = np.random.default_rng(seed)
    hidden = random.integers(0, 4, rows)
    variables, sides = [], []
    for name, kind in zip("abcd", kinds, strict=False):
        if kind == "c":
            values = random.integers(6, 40)
            random.integers(0, values, 4)
            shift = hidden * int(random.integers(1, 7))
            drawn = (shift + random.integers(0, max(2, values // 2), rows)) % values
        else:
            wide = hidden * 20 * random.choice([0.3, 1, 2])
            drawn = (wide + random.normal(0, 8, rows)).round(1)
        codes = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
        word = "categorical" if kind == "c" else "numeric"
        variables.append(Variable(name, word, int(codes.max()) + 1))
        sides.append(codes)
    return observe(variables, sides)


def rare_values(seed: int, rows: int) -> Observations:
    """Two independent skewed variables: what Khiops calls a garbage group pays."""
    random = np.random.default_rng(seed)
    sides = [
        np.unique(np.minimum(random.zipf(1.5, rows), 60), return_inverse=True)[1].astype(np.int32)
        for _ in range(2)
    ]
    variables = [
        Variable(name, "categorical", int(side.max()) + 1)
        for name, side in zip("ab", sides, strict=True)
    ]
    return observe(variables, sides)


KINDS: dict[str, Callable[[int], Observations]] = {
    "sparse": lambda seed: sparse(seed, 100, 800, 4, 0.3),
    "sparser": lambda seed: sparse(seed, 60, 500, 3, 0.3),
    "larger": lambda seed: sparse(seed, 300, 4000, 8, 0.15),
    "two categories": lambda seed: mixed(seed, 1500, "cc"),
    "three categories": lambda seed: mixed(seed, 300, "ccc"),
    "four categories": lambda seed: mixed(seed, 1500, "cccc"),
    "category, number": lambda seed: mixed(seed, 1000, "cn"),
    "two categories, number": lambda seed: mixed(seed, 1500, "ccn"),
    "category, two numbers": lambda seed: mixed(seed, 200, "cnn"),
    "two numbers": lambda seed: mixed(seed, 800, "nn"),
    "three numbers": lambda seed: mixed(seed, 600, "nnn"),
    "rare values": lambda seed: rare_values(seed, 2000),
}
FORMS = ("khiops11", "published")


def main() -> None:
    """Print one line per table, and how many are dearer than with Khiops."""
    from halfmask.coclustering.khiops import khiops_cocluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=8, help="of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS).replace(", ", "; "))
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    dearer, tried, spent = [], 0, 0.0
    for kind in given.kinds.split(","):
        for seed in range(given.tables):
            observed = KINDS[kind.replace("; ", ", ")](seed)
            theirs = khiops_cocluster(observed)
            line: dict[str, object] = {"kind": kind, "seed": seed, "khiops": theirs.parts}
            for form in FORMS:
                judge = GridCriterion(observed, form)
                cost = min(judge.least(theirs.partition), judge.null())
                begin = time.process_time()
                ours = optimize_grid(observed, criterion=form, rounds=given.rounds)
                seconds = time.process_time() - begin
                line[form] = [round(ours.cost - cost, 3), ours.parts, round(seconds, 2)]
                tried, spent = tried + 1, spent + seconds
                if ours.cost > cost + 1e-6:
                    dearer.append((kind, seed, form))
            print(json.dumps(line), flush=True)
    print(json.dumps({"searches": tried, "dearer": dearer, "seconds": round(spent, 1)}))


if __name__ == "__main__":
    main()
