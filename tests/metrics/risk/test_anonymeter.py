"""Agreement with anonymeter where both try the same attack.

Singling out is left out: anonymeter's conditions are inequalities, ours are published labels.
"""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.linkability import linkability
from halfmask.metrics.risk.targets import targets

pd = pytest.importorskip("pandas", reason="pandas is not installed")
evaluators = pytest.importorskip(
    "anonymeter.evaluators", reason="anonymeter is not installed (pip install anonymeter)"
)
TARGET = "s"
SCHEMA = {"a": "quasi", "b": "quasi", "c": "quasi", "d": "quasi", "s": "sensitive"}


def made(seed):
    random = np.random.default_rng(seed)
    a = random.integers(18, 80, 1000)
    told = np.array(list("pqrt"))[(a // 20) % 4]
    return pd.DataFrame(
        {
            "a": a,
            "b": random.normal(size=1000).round(2),
            "c": random.choice(list("uvwxyz"), 1000),
            "d": random.integers(0, 30, 1000),
            "s": np.where(random.random(1000) < 0.5, told, random.choice(list("pqrt"), 1000)),
        }
    )


@pytest.fixture(scope="module")
def tables():
    """An original, a copy of half of it among invented rows, and people outside."""
    original, control = made(1), made(2)
    leaked = pd.concat([original.sample(500, random_state=0), made(3)[:500]], ignore_index=True)
    return original, leaked, control


def table(frame):
    return hm.read(pa.Table.from_pandas(frame, preserve_index=False), schema=SCHEMA)


def test_inference_and_linkability(tables):
    original, leaked, control = tables
    whom = targets(*(table(frame) for frame in tables), attacks=500)
    ours = (inference(whom, "s"), linkability(whom, (["a", "b"], ["c", "d"])))
    theirs = (
        evaluators.InferenceEvaluator(
            ori=original, syn=leaked, control=control, aux_cols=list("abcd"), secret=TARGET,
            n_attacks=500,
        ),
        evaluators.LinkabilityEvaluator(
            ori=original, syn=leaked, control=control, aux_cols=(["a", "b"], ["c", "d"]),
            n_attacks=500, n_neighbors=1,
        ),
    )  # fmt: skip
    for mine, other in zip(ours, theirs, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other.evaluate(n_jobs=1)
            risk = other.risk()
        assert mine.attack.value == pytest.approx(other.results().attack_rate.value, abs=0.07)
        assert mine.control.value == pytest.approx(other.results().control_rate.value, abs=0.07)
        assert mine.risk.low <= risk.ci[1]
        assert risk.ci[0] <= mine.risk.high
