"""How fast all checks are together, beside pycanon on the same table in the same run.

Run: python benchmarks/checks_speed.py [--rows 1000000] [--pycanon-rows 1000000]

Prints JSON. k-anonymity, (alpha,k)-anonymity, distinct and entropy l-diversity, t-closeness,
beta-likeness and delta-disclosure, on 8 quasi-identifiers and a sensitive column of 20 values. Two
tables: one whose rows are hardly ever equal, for our own time; and one as it would be published, of
at most 13,824 classes, because pycanon loops over classes and would need hours for the first. There
a million rows take it some three minutes of processor time; ``--pycanon-rows 2000`` takes seconds.
pycanon groups the rows anew in each measure, so that our time is given with encoding too. All
figures must agree; pycanon rounds entropy l down, which is held against ours rounded down.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import halfmask as hm
from halfmask.table.classes import classes_of
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = (72, 16, 41, 5, 7, 7, 2, 14, 100, 50)
CHECKED = 8
PUBLISHED = (6, 4, 4, 3, 3, 2, 2, 4)
NAMES = ("k", "alpha", "l", "entropy l", "t", "beta", "delta")


def table(rows: int, columns: int, seed: int = 0) -> hm.Table:
    """Skewed columns, nearly independent: the hard case, where hardly any rows are equal."""
    random = np.random.default_rng(seed)
    data = {
        f"q{i}": (random.beta(1, 3, rows) * size).astype(np.int32)
        for i, size in enumerate(SIZES[:columns])
    }
    made = _read(data | {"s": random.integers(0, 20, rows, dtype=np.int32)})
    encode(made)
    return made


def published(rows: int, seed: int = 0) -> hm.Table:
    """Few values in each column, evenly drawn, and a skewed sensitive column; not encoded yet."""
    random = np.random.default_rng(seed)
    data = {
        f"q{i}": random.integers(0, size, rows, dtype=np.int32) for i, size in enumerate(PUBLISHED)
    }
    return _read(data | {"s": (random.beta(1, 3, rows) * 20).astype(np.int32)})


def _read(data: Mapping[str, Any]) -> hm.Table:
    schema = dict.fromkeys(data, "quasi") | {"s": "sensitive"}
    return hm.read(pa.table({name: pa.array(held) for name, held in data.items()}), schema=schema)


def encode(made: hm.Table) -> None:
    """Encode all columns, which the first use of a table does."""
    for name in made.arrow.column_names:
        made.encode(name)


def models() -> list[Any]:
    """One of each promise that pycanon measures too, in the order of ``NAMES``."""
    return [
        hm.KAnonymity(2),
        hm.AlphaKAnonymity(0.9, 2, "s"),
        hm.LDiversity(2, "s"),
        hm.LDiversity(2, "s", kind="entropy"),
        hm.TCloseness(0.9, "s", distance="ordered"),
        hm.BetaLikeness(9, "s"),
        hm.DeltaDisclosure(5, "s", absent="ignored"),
    ]


def timed(run: Any) -> tuple[float, float]:
    """Wall-clock and processor seconds of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def pycanon_figures(made: hm.Table) -> tuple[list[float], float] | None:
    """The same figures by pycanon and its processor seconds; None where it is not installed."""
    try:
        from pycanon import anonymity
    except ImportError:
        return None
    frame = made.arrow.to_pandas()
    given = (frame, list(made.schema.quasi), ["s"])
    start = time.process_time()
    figures = [
        anonymity.k_anonymity(*given[:2]),
        anonymity.alpha_k_anonymity(*given)[0],
        anonymity.l_diversity(*given),
        anonymity.entropy_l_diversity(*given),
        anonymity.t_closeness(*given),
        anonymity.basic_beta_likeness(*given),
        anonymity.delta_disclosure(*given),
    ]
    return [float(one) for one in figures], time.process_time() - start


def beside_pycanon(rows: int) -> dict[str, Any]:
    """Both on one table: processor seconds, how often one goes into the other, the figures."""
    made = published(rows)
    encoding = timed(lambda: encode(made))[1]
    ours = min(timed(lambda: hm.check(made, *models()))[1] for _ in range(3))
    found = [float(verdict.achieved) for verdict in hm.check(made, *models())]
    out = {
        "rows": rows,
        "classes": len(classes_of(Tuples.of(made), made.schema.quasi)),
        "checks_seconds": ours,
        "encoding_seconds": encoding,
        "figures": dict(zip(NAMES, found, strict=True)),
    }
    theirs = pycanon_figures(made)
    if theirs is None:
        return out | {"pycanon": "not installed"}
    figures, seconds = theirs
    return out | {
        "pycanon_seconds": seconds,
        "times_faster": seconds / ours,
        "times_faster_with_encoding": seconds / (ours + encoding),
        "disagree": disagreements(found, figures),
    }


def disagreements(ours: list[float], theirs: list[float]) -> list[str]:
    """The names of figures that differ, beyond the rounding of floats and of entropy l."""
    out = []
    for name, one, other in zip(NAMES, ours, theirs, strict=True):
        rounded = {float(math.floor(one)), float(math.floor(one - 1e-9))}
        same = other in rounded if name == "entropy l" else math.isclose(one, other, rel_tol=1e-9)
        if not same:
            out.append(name)
    return out


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pycanon-rows", type=int, default=1_000_000)
    given = parser.parse_args()
    hm.check(table(1000, CHECKED), *models())
    hard = table(given.rows, CHECKED)
    wall, cpu = timed(lambda: hm.check(hard, *models()))
    out = {
        "hardly_any_rows_equal": {
            "rows": given.rows,
            "classes": len(classes_of(Tuples.of(hard), hard.schema.quasi)),
            "checks_wall_seconds": wall,
            "checks_seconds": cpu,
        },
        "beside_pycanon": beside_pycanon(given.pycanon_rows),
    }
    print(json.dumps(out, indent=2))
    if out["beside_pycanon"].get("disagree"):
        raise SystemExit("Some figures are not those of pycanon.")


if __name__ == "__main__":
    main()
