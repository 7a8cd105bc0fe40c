"""COUNT(DISTINCT ...) by cells: exact while values are few, never too high beyond."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from tests.protocol.town import COMMONS, Town

import halfmask as hm
from halfmask.protocol.blueprint import blueprint
from halfmask.protocol.distinct import SKETCH, lower_bound
from halfmask.protocol.simulate import simulate
from halfmask.protocol.terms import Terms

TEXT = (
    "SELECT b, COUNT(DISTINCT s) AS d, COUNT(*) AS n FROM people GROUP BY b "
    "GUARANTEE k = 2 THEN b -> del GUARANTEE k = 3"
)


def test_few_values_are_counted_exactly() -> None:
    people = [{"a": 1, "b": "xyz"[i % 3] if i else "y", "s": i % 4, "k": 1} for i in range(11)]
    people.append({"a": 1, "b": None, "s": None, "k": 1})
    found = Town(people).ask(TEXT)
    assert found is not None
    table = pa.table({n: [p[n] for p in people] for n in ("a", "b", "s")})
    for semantics in ("selective",):
        expected = hm.query(table, f"{TEXT} SEMANTICS {semantics}", {"k": 1})
        ours = sorted(found[0].rows.to_pylist(), key=str)
        assert ours == sorted(expected.to_arrow().to_pylist(), key=str)


def test_many_values_are_bounded_from_below() -> None:
    random = np.random.default_rng(1)
    people = pa.table({
        "a": [0] * 6000, "b": ["x"] * 5000 + ["y"] * 1000,
        "s": np.concatenate((np.arange(5000), random.integers(0, 200, 1000))),
    })  # fmt: skip
    done = simulate(COMMONS, people, TEXT, Terms(partition=512, frame=16, room=32, ram=1 << 30))
    counts = {r["b"]: r["d"] for r in done.answer.to_arrow().to_pylist()}
    assert counts["y"] == len(set(people["s"].to_pylist()[5000:]))
    assert 5000 * 0.4 < counts["x"] <= 5000
    assert any("sketch" in note for note in done.answer.notes)


def test_the_bound_is_hardly_ever_too_high() -> None:
    random = np.random.default_rng(2)
    high = 0
    for _ in range(300):
        tokens = np.sort(random.integers(-(2**63), 2**63 - 1, 3000))
        high += lower_bound(int(tokens[SKETCH - 1])) > 3000
    assert high == 0


def test_what_is_counted_is_on_the_ledger() -> None:
    assert blueprint(COMMONS, TEXT).aggregated == {"b", "s", "*"}
