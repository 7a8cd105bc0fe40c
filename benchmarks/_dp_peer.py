"""One private synthesizer of another library on codes; run with the Python that has it.

Run: PYTHON benchmarks/_dp_peer.py                 lists the methods that this Python has
     PYTHON benchmarks/_dp_peer.py METHOD EPSILON DELTA FULL IN.npz OUT.npz

dpmm's inference goes on for its thousands of iterations, 25 halvings of a step each, long after it
has converged. Unless FULL is 1, the same descent stops once twenty steps gain less than a
thousandth of the loss: hours become minutes, and its time is told too short rather than too long.
mbi is private-pgm's own package, of which ``_dp_mbi.py`` makes AIM and MST.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd

from _dp_mbi import of_mbi

DPMM = {"mst": "MSTGM", "privbayes": "PrivBayesGM", "aim": "AIMGM"}
SMARTNOISE = ("mst", "aim", "mwem")
STEPS, ENOUGH, HALVINGS = 20, 1e-3, 25


def methods() -> list[str]:
    """What can be run, quick ones first."""
    found = [f"dpmm-{name}" for name in DPMM] if find_spec("dpmm") else []
    if find_spec("snsynth"):
        return found + [f"smartnoise-{name}" for name in SMARTNOISE]
    return found + (["mbi-mst", "mbi-aim"] if find_spec("mbi") else [])


def log_of_sums(values: np.ndarray, axis: object = None) -> np.ndarray | float:
    """The same as SciPy's, without looking at what kind of array it is."""
    if axis == ():
        return values
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return float(found.ravel()[0]) if axis is None else np.squeeze(found, axis=axis)


def descend(self: object, measurements: list, total: float | None = None, **_: object) -> float:
    """Mirror descent with the same line search as dpmm's, which ends when it has converged."""
    self._setup(measurements, total)
    model = self.model
    theta = model.potentials
    mu = model.belief_propagation(theta)
    loss, slope = self._marginal_loss(mu)
    length, before = 1.0 / model.total**2, loss
    for step in range(1, self.iters + 1):
        length *= 2
        for _ in range(HALVINGS):
            moved = theta - length * slope
            found = model.belief_propagation(moved)
            answer = self._marginal_loss(found)
            if loss - answer[0] >= 0.5 * length * slope.dot(mu - found):
                break
            length *= 0.5
        else:
            break
        theta, mu, (loss, slope) = moved, found, answer
        if step % STEPS == 0:
            if before - loss < ENOUGH * before:
                break
            before = loss
    model.potentials, model.marginals = theta, mu
    return loss


def hasten() -> None:
    """Let dpmm's inference end."""
    from dpmm.models.base.mbi import factor, inference

    factor.logsumexp = log_of_sums
    inference.FactoredInference.mirror_descent = descend


def of_dpmm(method: str, rows: pd.DataFrame, sizes: dict[str, int], how: dict) -> pd.DataFrame:
    """Rows of dpmm's method."""
    kind = getattr(import_module(f"dpmm.models.{method.replace('privb', 'priv_b')}"), DPMM[method])
    if not how["full"]:
        hasten()
    # In one process: its own time is all of it.
    model = kind(epsilon=how["epsilon"], delta=how["delta"], domain=sizes, n_jobs=1)
    model.set_random_state(np.random.RandomState())
    model.fit(rows)
    return model.generate(n_records=len(rows))


def of_smartnoise(method: str, rows: pd.DataFrame, _: dict[str, int], how: dict) -> pd.DataFrame:
    """Rows of smartnoise's method; its own reading of types is switched off."""
    from snsynth import Synthesizer

    more = {} if method == "mwem" else {"delta": how["delta"]}
    model = Synthesizer.create(method, epsilon=how["epsilon"], verbose=False, **more)
    model.fit(rows, categorical_columns=list(rows.columns), preprocessor_eps=0.0)
    return model.sample(len(rows))


def main() -> None:
    """Read codes, learn, draw as many rows, write them with the processor time."""
    if len(sys.argv) == 1:
        print(*methods())
        return
    name, epsilon, delta, full, source, target = sys.argv[1:]
    held = np.load(source)
    names = [name for name in held.files if name != "(sizes)"]
    sizes = dict(zip(names, held["(sizes)"].tolist(), strict=True))
    rows = pd.DataFrame({name: held[name] for name in names})
    library, method = name.split("-")
    run = {"dpmm": of_dpmm, "mbi": of_mbi, "smartnoise": of_smartnoise}[library]
    how = {"epsilon": float(epsilon), "delta": float(delta), "full": bool(int(full))}
    begun, wall = time.process_time(), time.perf_counter()
    made = run(method, rows, sizes, how)
    spent = {"(seconds)": time.process_time() - begun, "(wall)": time.perf_counter() - wall}
    np.savez(target, **spent, **{n: np.asarray(made[n]) for n in names})


if __name__ == "__main__":
    main()
