from __future__ import annotations

import numpy as np
import pytest

import halfmask as hm


@pytest.fixture(scope="session")
def town():
    """400 people with a place, an age, an illness and an income; all state an own k."""
    rng = np.random.default_rng(0)
    n = 400
    rows = {
        "id": list(range(n)),
        "city": rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05]).tolist(),
        "sex": rng.choice(["f", "m"], n).tolist(),
        "age": rng.integers(18, 90, n).tolist(),
        "ill": rng.choice(["flu", "hiv", "no"], n, p=[0.3, 0.02, 0.68]).tolist(),
        "income": np.round(rng.lognormal(7, 1.5, n)).tolist(),
        "k_i": rng.choice([2, 3, 8], n, p=[0.6, 0.3, 0.1]).tolist(),
    }
    age = {"role": "quasi", "kind": "numeric", "hierarchy": {"intervals": [10, 20, 40]}}
    schema = {
        "table": {"person": "id"},
        "policy": {"k": "k_i"},
        "columns": {
            "id": "identifier", "city": "quasi", "sex": "quasi", "age": age,
            "ill": "sensitive", "income": "sensitive",
        },
    }  # fmt: skip
    return hm.read(rows, schema=schema)
