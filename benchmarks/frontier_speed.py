"""How much faster a frontier is than the same settings one by one.

Run: python benchmarks/frontier_speed.py [--data ../shared/data/arx] [--rows 1000000]

Prints JSON. Processor seconds of one ``frontier`` and of ``anonymize`` for the same settings, in
the same run with warm kernels: on Adult (8 quasi-identifiers, 10 k x 3 l x 3 suppressions), on the
sample of ``--rows`` (where only every fifteenth setting is run by itself and the sum scaled), and
Mondrian for the same k on Adult.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import halfmask as hm
from halfmask.sample import write
from optimal_search import ARX, adult

KS = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50)
LS = (2, 3, 4)
SHARES = (0.0, 0.02, 0.05)


def seconds(run: Any) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def recodings(table: hm.Table, column: str, every: int = 1) -> dict[str, float]:
    """All settings at once, and one by one."""
    ks, ls = [hm.KAnonymity(k) for k in KS], [hm.LDiversity(l_, column) for l_ in LS]
    together = seconds(lambda: hm.frontier(table, ks, ls, methods=["optimal"], suppression=SHARES))
    settings = list(product(ks, ls, SHARES))
    alone = sum(
        seconds(lambda k=k, l_=l_, share=share: _made(table, k, l_, share))
        for k, l_, share in settings[::every]
    )
    return _compared(len(settings), together, alone * len(settings) / len(settings[::every]))


def _made(table: hm.Table, *models: Any) -> None:
    try:
        hm.anonymize(table, *models[:-1], method="optimal", suppression=models[-1])
    except hm.errors.UnsatisfiableError:
        return


def divisions(table: hm.Table) -> dict[str, float]:
    """Mondrian for every k."""
    ks = [hm.KAnonymity(k) for k in KS]
    together = seconds(lambda: hm.frontier(table, ks, methods=["mondrian"]))
    alone = sum(seconds(lambda k=k: hm.anonymize(table, k, method="mondrian", seed=0)) for k in ks)
    return _compared(len(ks), together, alone)


def _compared(settings: int, together: float, alone: float) -> dict[str, float]:
    return {
        "settings": settings,
        "frontier_seconds": round(together, 3),
        "one_by_one_seconds": round(alone, 3),
        "ratio": round(alone / together, 1),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ARX)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    small = adult(given.data, ("occupation",))
    warm = [hm.KAnonymity(5), hm.LDiversity(2, "occupation")]
    hm.anonymize(small, *warm, suppression=0.02)
    hm.anonymize(small, warm[0], method="mondrian")
    out: dict[str, Any] = {
        "adult": recodings(small, "occupation"),
        "adult_mondrian": divisions(small),
    }
    with tempfile.TemporaryDirectory() as folder:
        large = hm.read(write(folder, given.rows))
        hm.anonymize(large, hm.KAnonymity(2), hm.LDiversity(2, "disease"), method="optimal")
        out["sample"] = {"rows": given.rows, **recodings(large, "disease", every=15)}
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
