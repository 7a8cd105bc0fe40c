"""The same people get the same noise in every table, with the variance and maximum stated."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, ParameterError, PrivacyError, SchemaError
from halfmask.tabulate.cell_keys import NoiseTable, cell_keys, record_keys

SECRET = b"a secret of many bytes"


def cells(release):
    rows = release.to_arrow().to_pylist()
    return {tuple(row[name] for name in release.by): row["count"] for row in rows}


def perturb(table, by, **more):
    settings = {"secret": SECRET, "demands": "ignore", **more}
    return hm.tabulate(table, by, method="cell-key", **settings)


def test_the_same_cell_has_the_same_noise_in_every_table(town):
    both, city = cells(perturb(town, ["city", "sex"])), cells(perturb(town, "city"))
    turned = cells(perturb(town, ["sex", "city"]))
    assert all(both[one, "Total"] == city[one,] for one in ("a", "b", "c", "d", "Total"))
    assert all(both[a, b] == turned[b, a] for a, b in both)
    assert both == cells(perturb(town, ["city", "sex"]))


def test_the_same_people_under_another_name_have_the_same_noise(town):
    # All who have this illness live in two cities: the cell of the illness is that of both.
    wide, ages = cells(perturb(town, "ill")), cells(perturb(town, ["ill", "city"]))
    assert wide["hiv",] == ages["hiv", "Total"]


def test_noise_does_not_hang_on_the_order_of_rows_nor_on_levels(town):
    order = np.random.default_rng(0).permutation(len(town))
    turned = hm.read(town.arrow.take(order), schema=town.schema)
    fine = cells(perturb(town, ["age", "sex"], levels={"age": [1, 2]}))
    assert fine == cells(perturb(turned, ["age", "sex"], levels={"age": [1, 2]}))
    coarse = cells(perturb(town, "age", levels={"age": 2}))
    both = [label for label in coarse if (*label, "Total") in fine]  # one part alone stands for it
    assert len(both) > 2
    assert all(fine[*label, "Total"] == coarse[label] for label in both)


def test_another_secret_gives_other_noise(town):
    by = ["city", "sex", "ill"]
    assert cells(perturb(town, by)) != cells(perturb(town, by, secret=b"another long secret!"))


def test_a_secret_file_and_a_column_of_keys(town, tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    assert cells(perturb(town, "city", secret=path)) == cells(perturb(town, "city"))
    rng = np.random.default_rng(1)
    table = hm.read(
        {"g": ["x", "y"] * 50, "key": rng.integers(0, 2**31, 100).tolist()},
        schema={"columns": {"g": "quasi", "key": "identifier"}},
    )
    first = perturb(table, "g", secret=None, record_keys="key")
    assert cells(first) == cells(perturb(table, "g", secret=None, record_keys="key"))
    assert not any("other noise" in note for note in first.notes)


def test_somebody_with_several_rows_has_one_key():
    rows = {"who": [1, 1, 2, 3] * 5, "g": ["x", "y", "x", "y"] * 5, "key": list(range(20))}
    schema = {"table": {"person": "who"},
              "columns": {"who": "identifier", "key": "identifier", "g": "quasi"}}  # fmt: skip
    keys, lasting = record_keys(hm.read(rows, schema=schema), column="key", secret=None)
    assert lasting
    assert len(set(keys.tolist())) == 3


def test_keys_of_one_table_alone_are_said_to_be(town):
    release = perturb(town, "city", secret=None)
    assert any("whose average tells the counts" in note for note in release.notes)


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(2, 8), st.floats(0.3, 4.0), st.integers(0, 1))
def test_the_noise_table_is_as_stated(maximum, variance, least):
    table = NoiseTable.of(variance=variance, maximum=maximum, least=least)
    changes = np.arange(-maximum, maximum + 1)
    assert table.chances[0, maximum] == 1.0  # zeros stay
    for count, chances in enumerate(table.chances):
        assert chances.sum() == pytest.approx(1)
        assert chances @ changes == pytest.approx(0, abs=1e-6)
        after = count + changes[chances > 1e-12]
        assert (after >= 0).all()
        assert ((after == 0) | (after > least)).all()
    last = table.chances[-1]
    if variance < maximum**2 / 4:
        assert last @ changes**2 == pytest.approx(variance, rel=1e-3)


def test_noise_of_many_cells_has_the_stated_variance():
    table = NoiseTable.of(variance=2.0, maximum=5)
    keys = np.random.default_rng(0).integers(0, 2**63, 50_000).astype(np.uint64) * np.uint64(2)
    noise = table.look_up(np.full(len(keys), 100), keys)
    assert abs(noise.mean()) < 0.05
    assert abs(noise.var() - 2) < 0.1
    assert np.abs(noise).max() <= 5


def test_keys_of_cells_are_sums_modulo_a_word():
    keys = np.array([2**63, 2**63 + 5, 7], dtype=np.uint64)
    found = cell_keys(np.array([1, 1, 0]), keys, 3)
    assert found.tolist() == [7, 5, 0]


def test_noise_that_hides_too_little_is_refused(town):
    with pytest.raises(PrivacyError, match="Noise of at most 1"):
        hm.tabulate(town, ["city", "ill", "sex"], method="cell-key", variance=0.5, maximum=1)


@pytest.mark.parametrize(
    "more",
    [{"maximum": 0}, {"variance": 0}, {"variance": 30}, {"least": 5}, {"least": -1}],
    ids=str,
)
def test_parameters_out_of_range(town, more):
    with pytest.raises(ParameterError):
        perturb(town, "city", **more)


def test_secrets_and_keys_that_cannot_be_used(town):
    with pytest.raises(InputError, match="shorter than 16 bytes"):
        perturb(town, "city", secret=b"short")
    with pytest.raises(InputError, match="cannot be read"):
        perturb(town, "city", secret="absent")  # noqa: S106 - the name of no file
    with pytest.raises(SchemaError, match="is not there"):
        perturb(town, "city", record_keys="absent")
    with pytest.raises(SchemaError, match="whole numbers"):
        perturb(town, "city", record_keys="sex")
    nobody = hm.read({"g": ["x"] * 9}, schema={"columns": {"g": "quasi"}})
    with pytest.raises(SchemaError, match="name the person column"):
        perturb(nobody, "g")
