"""Every kind of release is compared: recoded, divided, perturbed, synthetic and private."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.cli.main import run
from halfmask.metrics import partition as measures
from halfmask.metrics.space import space_of

ROWS = 300
SCHEMA = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "sex": "quasi",
    "work": {"role": "quasi", "hierarchy": {"tree": {"out": ["farm", "road"], "in": ["desk"]}}},
    "ill": "sensitive",
}
DOMAINS = {
    "age": {"low": 20, "high": 60, "bins": 8},
    "sex": ["f", "m"],
    "work": ["farm", "road", "desk"],
    "ill": ["flu", "gout", "cold"],
}
CLASSED = ("optimal", "local", "mondrian", "mdav", "k-member", "personal")


@cache
def people():
    random = np.random.default_rng(0)
    group = random.integers(0, 2, ROWS).astype(bool)
    rows = {
        "age": 20 + group * 20 + random.integers(0, 20, ROWS),
        "sex": np.where(group ^ (random.random(ROWS) < 0.1), "f", "m"),
        "work": np.where(group, "desk", random.choice(["farm", "road"], ROWS)),
        "ill": np.where(group, "flu", random.choice(["gout", "cold"], ROWS)),
    }
    return hm.read(pa.table(rows), schema={"columns": SCHEMA})


@cache
def made(kind):
    if kind == "synthetic":
        return hm.synthesize(people(), method="cocluster", k=20, seed=0)
    if kind == "private":
        return hm.synthesize(people(), epsilon=2, domains=DOMAINS)
    return hm.anonymize(people(), hm.KAnonymity(5), method=kind, suppression=0.02, seed=0)


@pytest.mark.parametrize("kind", CLASSED)
def test_classes_of_true_labels_are_measured_in_full(kind):
    found = hm.compare(people(), made(kind), learn=False, attacks=60)
    assert found.loss == pytest.approx(made(kind).loss, abs=1e-9)
    held = found.partition
    assert held.k == made(kind).classes.smallest
    assert held.classes == made(kind).classes.count
    assert held.average_class == pytest.approx(found.rows_released / (held.classes * held.k))
    for name in ("dbil", "sbil", "tbil", "ebil", "wcss"):
        assert 0 <= getattr(held, name).value < held.most * 10
    assert held.dbil.value <= held.sbil.value <= held.most
    assert 0 < found.linkage.distance.value < 1
    assert 0 < found.score < 1


@pytest.mark.parametrize("kind", ["cocluster", "synthetic", "private"])
def test_labels_that_may_be_false_are_compared_too(kind):
    if kind == "cocluster":
        made_ = hm.anonymize(people(), hm.KAnonymity(5), method=kind, seed=0)
    else:
        made_ = made(kind)
    found = hm.compare(people(), made_, learn=False, attacks=60)
    assert found.counting.error.value >= 0
    assert {one.name for one in found.criteria} >= {"singling out", "linkability", "inference"}
    assert all(one.hellinger < 1 for one in found.distances)
    assert found.membership.attribution.ratio > 0
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", ["personal", "synthetic", "private"])
def test_the_command_compares_each_kind_from_files(kind, tmp_path, capfd):
    import pyarrow.csv as csv

    original, release = tmp_path / "people.csv", tmp_path / "release.parquet"
    csv.write_csv(people().arrow, original)
    (tmp_path / "people.toml").write_text(people().schema.to_toml())
    made(kind).write(release)
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit) as stop:
        run(["compare", str(original), str(release), "--no-learn", "--attacks", "60",
             "--earlier", str(release), "-o", str(page), "--json"])  # fmt: skip
    assert stop.value.code == 0
    document = json.loads(capfd.readouterr().out)
    assert document["rows_released"] == len(made(kind))
    text = page.read_text()
    for attack in ("homogeneity", "background knowledge", "skewness", "similarity", "minimality",
                   "differencing", "membership", "record linkage"):  # fmt: skip
        assert f">{attack}" in text


def test_full_domain_classes_lose_what_their_division_loses():
    release = made("optimal")
    found = hm.compare(people(), release, learn=False, attacks=60).partition
    if found.suppressed:
        pytest.skip("the optimum suppresses rows")
    table = people()
    coarse = [table.hierarchy(n).maps[release.levels[n]][table.encode(n).codes]
              for n in table.schema.quasi]  # fmt: skip
    ids = np.unique(np.column_stack(coarse), axis=0, return_inverse=True)[1].reshape(-1)
    space = space_of(table)
    assert found.dbil.value == pytest.approx(measures.diameter_loss(space, ids))
    assert found.sbil.value == pytest.approx(measures.span_loss(space, ids))
    assert found.tbil.value == pytest.approx(measures.tree_loss(space, ids))
    names = list(table.schema.quasi)
    assert found.ebil.value == pytest.approx(measures.entropy_loss(table, ids, names))
    assert found.wcss.value == pytest.approx(measures.squared_distances(space, ids))


def test_a_suppressed_row_is_charged_in_full():
    rows = pa.table({"a": ["x", "x", "y"], "b": ["u", "u", "v"]})
    table = hm.read(rows, schema={"a": "quasi", "b": "quasi"})
    release = hm.read(rows.slice(0, 2), schema={})
    found = hm.compare(table, release, learn=False).partition
    assert (found.dbil.value, found.sbil.value, found.tbil.value, found.most) == (2, 2, 2, 6)
    # The entropy of each column: 2/3 and 1/3.
    assert found.ebil.value == pytest.approx(2 * 0.9182958)
    assert found.discernibility == 4 + 1 * 3


def test_large_classes_are_sampled_between_bounds(monkeypatch):
    monkeypatch.setattr("halfmask.metrics.utility.partition_loss._PAIRS", 10)
    monkeypatch.setattr("halfmask.metrics.utility.partition_loss._SAMPLE", 5)
    whole = hm.compare(people(), made("optimal"), learn=False, attacks=60).partition.dbil
    assert whole.low <= whole.high
    assert "sampled" in whole.reason
    monkeypatch.undo()
    true = hm.compare(people(), made("optimal"), learn=False, attacks=60).partition.dbil.value
    assert whole.low <= true <= whole.high
