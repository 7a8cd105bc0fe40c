"""One private synthesizer of dpmm on codes; run by ``dp_peers.py`` with the Python that has it.

Run: PYTHON benchmarks/_dp_peer.py METHOD EPSILON DELTA ITERATIONS IN.npz OUT.npz
"""

from __future__ import annotations

import sys
import time
from importlib import import_module

import numpy as np
import pandas as pd

MODELS = {"aim": "AIMGM", "mst": "MSTGM", "priv_bayes": "PrivBayesGM"}


def main() -> None:
    """Read codes, learn, draw as many rows, write them with the processor time."""
    method, epsilon, delta, iterations, source, target = sys.argv[1:]
    held = np.load(source)
    names = [name for name in held.files if name != "(sizes)"]
    sizes = dict(zip(names, held["(sizes)"].tolist(), strict=True))
    rows = pd.DataFrame({name: held[name] for name in names})
    begun = time.process_time()
    kind = getattr(import_module(f"dpmm.models.{method}"), MODELS[method])
    more = {"n_iters": int(iterations)} if int(iterations) else {}
    model = kind(epsilon=float(epsilon), delta=float(delta), domain=sizes, **more)
    model.set_random_state(np.random.RandomState())
    model.fit(rows)
    made = model.generate(n_records=len(rows))
    seconds = time.process_time() - begun
    np.savez(target, seconds=seconds, **{name: made[name].to_numpy() for name in names})


if __name__ == "__main__":
    main()
