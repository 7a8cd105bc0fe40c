"""Values of a synthetic Adult against the real ones: zeros, hours, means, and a random forest.

python benchmarks/synthetic_values.py [--rows 12000] [--k 50]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import halfmask as hm
from _adult import FOLDERS


def forest_area(real: pa.Table, made: pa.Table, rows: int) -> float:
    """The area under the curve of a random forest that tells real rows from synthetic ones."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    random = np.random.default_rng(0)
    count = min(rows, real.num_rows, made.num_rows)
    sides = [t.take(random.choice(t.num_rows, count, replace=False)) for t in (real, made)]
    columns = []
    for name in real.column_names:
        both = [*sides[0][name].to_pylist(), *sides[1][name].to_pylist()]
        if isinstance(both[0], str):
            known = {value: i for i, value in enumerate(dict.fromkeys(both))}
            both = [known[value] for value in both]
        columns.append(np.array(both, dtype=float))
    y = np.repeat([0, 1], count)
    order = random.permutation(len(y))
    forest = RandomForestClassifier(100, random_state=0)
    chances = cross_val_predict(
        forest, np.column_stack(columns)[order], y[order], cv=3, method="predict_proba"
    )
    return float(roc_auc_score(y[order], chances[:, 1]))


def main() -> None:
    """Draw, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--k", type=int, default=50)
    given = parser.parse_args()
    path = next((f / "adult.parquet" for f in FOLDERS if (f / "adult.parquet").exists()), None)
    if path is None:
        sys.exit("Adult is not there: make data.")
    real = pq.read_table(path).slice(0, given.rows)
    table = hm.read(real, dict.fromkeys(real.column_names, "quasi"))
    start = time.process_time()
    release = hm.synthesize(table, method="cocluster", k=given.k, seed=1)
    found: dict[str, Any] = {"seconds": round(time.process_time() - start, 1)}
    made = release.to_arrow()
    for name, point in (("capital-gain", 0), ("capital-loss", 0), ("hours-per-week", 40)):
        sides = [t[name].to_numpy() for t in (real, made)]
        found[name] = {
            "mean": [round(float(side.mean()), 1) for side in sides],
            f"share of {point}": [round(float(np.mean(side == point)), 4) for side in sides],
        }
    found["likeness"] = round(release.measured["likeness"]["area"]["value"], 3)
    found["forest"] = round(forest_area(real, made, 8000), 3)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
