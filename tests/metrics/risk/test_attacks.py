"""Attacks succeed where they must and fail where they cannot."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.linkability import linkability
from halfmask.metrics.risk.linkage import linkage
from halfmask.metrics.risk.membership import membership
from halfmask.metrics.risk.singling_out import singling_out
from halfmask.metrics.risk.targets import targets

SCHEMA = {"a": "quasi", "b": "quasi", "c": "quasi", "s": "sensitive"}


def people(seed, rows=300):
    random = np.random.default_rng(seed)
    columns = {
        "a": random.integers(0, 1000, rows),
        "b": random.normal(size=rows).round(3),
        "c": random.choice(list("uvwxyz"), rows),
        "s": random.choice(["p", "q", "r", "t"], rows),
    }
    return hm.read(pa.table(columns), schema=SCHEMA)


def blank(table):
    """Nothing of the quasi-identifiers is left."""
    arrow = table.arrow
    for name in "abc":
        star = pa.array(["*"] * len(table))
        arrow = arrow.set_column(arrow.column_names.index(name), name, star)
    return hm.read(arrow, schema={})


def test_a_copy_is_open_to_every_attack():
    table, control = people(0), people(1)
    whom = targets(table, table, control, attacks=200)
    out = singling_out(whom)
    assert out.attack.value > 0.9
    assert out.outcome == "not met"
    assert out.control.value < 0.5
    link = linkability(whom)
    assert link.attack.value > 0.5
    guess = inference(whom, "s")
    assert guess.attack.value == 1
    assert guess.control.value == pytest.approx(0.25, abs=0.12)
    assert guess.outcome == "not met"
    present = membership(whom)
    assert present.area.value > 0.95
    assert present.attribution.copies == 1


def test_a_release_without_detail_tells_nothing():
    table, control = people(0), people(1)
    whom = targets(table, blank(table), control, attacks=200)
    assert singling_out(whom).attack.value == 0
    assert singling_out(whom).outcome == "met"
    assert linkability(whom).attack.value < 0.05
    assert inference(whom, "s").risk.value < 0.15
    assert membership(whom).area.value == pytest.approx(0.5, abs=0.1)


def test_without_a_control_it_is_said():
    found = inference(targets(people(0), people(0), attacks=100), "s")
    assert found.control is None
    assert any("no control" in note for note in found.notes)
    assert membership(targets(people(0), people(0))).area.value is None


def test_linkage_of_a_copy_is_complete_and_of_nothing_is_chance():
    table = people(0)
    same = linkage(table, table, sample=100)
    for name in ("distance", "assignment", "probabilistic"):
        assert getattr(same, name).value == 1
    assert same.interval.value == 1
    none = linkage(table, blank(table), sample=100)
    assert none.distance.value < 0.1
    assert none.probabilistic.value < 0.15


def test_a_little_noise_lowers_linkage_and_interval_disclosure():
    table = people(0)
    random = np.random.default_rng(5)
    noisy = table.arrow.set_column(
        1, "b", pa.array(table.arrow["b"].to_numpy() + random.normal(0, 1, len(table)))
    )
    found = linkage(table, hm.read(noisy, schema=SCHEMA), sample=100)
    assert 0.3 < found.distance.value <= 1
    assert found.interval.value < 1


def test_linkage_needs_pairs():
    with pytest.raises(InputError, match="300 and 299"):
        linkage(people(0), hm.read(people(0).arrow.slice(1), schema=SCHEMA))


def test_nearest_is_the_nearest():
    from halfmask.metrics.risk.space import space
    from halfmask.metrics.sides import sides

    both = sides(people(0, 60), people(1, 50))
    compared = space(list(both.columns.values()))
    rows = np.arange(60)
    found, far = compared.nearest(rows, k=3)
    matrix = compared.matrix(rows, np.arange(50))
    assert np.allclose(np.sort(matrix, axis=1)[:, :3], far)
    assert np.allclose(np.take_along_axis(matrix, found, axis=1), far)
