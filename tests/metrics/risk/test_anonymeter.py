"""Agreement with anonymeter where both try the same attack.

anonymeter 1.1.0 needs an older NumPy than the rest of the tools, so that its figures on these
seeded tables were recorded once. Singling out is left out: anonymeter's conditions are
inequalities, ours are published labels.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.risk.attack import targets
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.linkability import linkability

SCHEMA = {"a": "quasi", "b": "quasi", "c": "quasi", "d": "quasi", "s": "sensitive"}
# Attack rate, control rate, and the interval of the risk, of 500 attacks each.
INFERENCE = (0.7163, 0.3750, (0.4762, 0.6162))
LINKABILITY = (0.1030, 0.0078, (0.0687, 0.1233))


def made(seed):
    random = np.random.default_rng(seed)
    a = random.integers(18, 80, 1000)
    told = np.array(list("pqrt"))[(a // 20) % 4]
    return pa.table(
        {
            "a": a,
            "b": random.normal(size=1000).round(2),
            "c": random.choice(list("uvwxyz"), 1000),
            "d": random.integers(0, 30, 1000),
            "s": np.where(random.random(1000) < 0.5, told, random.choice(list("pqrt"), 1000)),
        }
    )


def test_inference_and_linkability():
    original, control = made(1), made(2)
    rows = np.random.default_rng(0).permutation(1000)[:500]
    leaked = pa.concat_tables([original.take(rows), made(3).slice(0, 500)])
    whom = targets(*(hm.read(t, schema=SCHEMA) for t in (original, leaked, control)), attacks=500)
    found = (inference(whom, "s"), linkability(whom, (["a", "b"], ["c", "d"])))
    for mine, (attack, outside, interval) in zip(found, (INFERENCE, LINKABILITY), strict=True):
        assert mine.attack.value == pytest.approx(attack, abs=0.07)
        assert mine.control.value == pytest.approx(outside, abs=0.07)
        assert mine.risk.low <= interval[1]
        assert interval[0] <= mine.risk.high
