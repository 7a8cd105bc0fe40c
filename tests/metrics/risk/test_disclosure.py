"""What classes give away, counted row by row in plain Python."""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.discrimination.release_rates import meaning_of, original_blocks
from halfmask.metrics.risk.disclosure import disclosure
from halfmask.table.classes import classes_of
from halfmask.table.tuples import Tuples

TREE = {"tree": {"v": ["a", "b"], "c": ["c", "d"]}}
MEANING = {"a": "v", "b": "v", "c": "c", "d": "c"}


def of(q, s, column="sensitive"):
    schema = {"columns": {"q": "quasi", "s": column}}
    table = hm.read(pa.table({"q": q, "s": s}), schema=schema)
    blocks = original_blocks(table, "s", meaning_of(table, "s"))
    return disclosure(classes_of(Tuples.of(table), ["q"], columns=["s"]), "s", blocks)


def bits(counts):
    total = sum(counts)
    return -sum(c / total * math.log2(c / total) for c in counts)


@given(st.data())
def test_every_attack_by_counting(data):
    n = data.draw(st.integers(1, 25))
    q = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    s = data.draw(st.lists(st.sampled_from("abcd"), min_size=n, max_size=n))
    found = of(q, s, {"role": "sensitive", "hierarchy": TREE})
    table = Counter(s)
    mine = [[s[j] for j in range(n) if q[j] == q[i]] for i in range(n)]
    kinds = [len(set(one)) for one in mine]
    assert found.homogeneity == pytest.approx(sum(k == 1 for k in kinds) / n)
    assert found.background == pytest.approx(sum(k <= 2 for k in kinds) / n)
    gains = [one.count(v) / len(one) - table[v] / n for one in mine for v in one]
    assert found.skewness == pytest.approx(max(gains), abs=1e-12)
    shifts = [sum(abs(one.count(v) / len(one) - table[v] / n) for v in table) / 2 for one in mine]
    assert found.mean_shift == pytest.approx(sum(shifts) / n, abs=1e-12)
    alike = [len({MEANING[v] for v in one}) == 1 and len(set(one)) > 1 for one in mine]
    assert found.similarity == pytest.approx(sum(alike) / n)
    assert found.best_guess == pytest.approx(
        sum(max(Counter(one).values()) / len(one) for one in mine) / n
    )
    assert found.prior_guess == max(table.values()) / n
    if len(table) > 1:
        left = sum(bits(Counter(one).values()) for one in mine) / n
        assert found.discrimination == pytest.approx(1 - left / bits(table.values()), abs=1e-9)
        assert found.external == pytest.approx(1 - found.discrimination)
    else:
        assert found.discrimination is found.external is None


def test_numbers_in_one_tenth_of_the_range_are_alike():
    # The range is 100: 0 and 9 are alike, 50 and 61 are not, 100 alone is one value.
    found = of(list("aabbcc"), [0, 9, 50, 61, 100, 100])
    assert found.similarity == pytest.approx(2 / 6)
    # 9 and 11 are near, in two parts: blocks have fixed bounds.
    assert of(list("aabbcc"), [9, 11, 0, 100, 50, 50]).similarity == 0
    assert of(list("aabb"), list("xyzz")).similarity is None
