"""Every kind of release is compared: recoded, divided, perturbed, synthetic and private."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.cli.compare import show_comparison
from halfmask.cli.main import run
from halfmask.report.page import estimate_text, render_page
from halfmask.report.words import MADE_UP, comparison_outcome, trials_text

comparison_module = import_module("halfmask.assessment.comparison")
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
    assert 0 < held.sbil <= 3 * ROWS
    assert held.dbil is None or held.dbil <= held.sbil
    assert (held.dbil is not None) or kind != "optimal"
    assert 0 < found.linkage.distance.value < 1
    assert 0 < found.score < 1
    assert not found.made_up


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
    # The rows of a private table are drawn anew each time: once in a while they fit everybody.
    assert found.made_up or kind == "private"
    json.dumps(found.to_dict(), allow_nan=False)


def test_classes_of_made_up_rows_are_not_said_to_hold_people(capsys):
    found = hm.compare(people(), made("synthetic"), learn=False, attacks=60)
    document = found.to_dict()
    page = " ".join(render_page(document).split())
    assert MADE_UP in page
    assert "whom it fits cannot be told" in page
    assert "of the people in the release by guessing" not in page
    assert 'id="plot-risk"' not in page
    assert "100.0% → not known" in page
    assert "of released rows once the quasi-identifiers are known" not in page
    show_comparison(found)
    said = capsys.readouterr()
    line = next(line for line in said.out.splitlines() if "homogeneity of ill" in line)
    assert [cell.strip() for cell in line.split("│")][3] == "not known"
    assert MADE_UP in " ".join(said.err.split())
    true = render_page(hm.compare(people(), made("optimal"), learn=False, attacks=60).to_dict())
    assert 'id="plot-risk"' in true
    assert "Some people fit no released row" not in true


def test_a_page_says_how_often_attacks_were_tried():
    found = hm.compare(people(), made("optimal"), learn=False, attacks=60)
    page = " ".join(render_page(found.to_dict()).split())
    tried = [one for one in found.criteria if not one.name.endswith("by classes")]
    assert page.count("Tried 60 times.") == len(tried) - 1  # linkage has its own sample
    assert f"rows matched rightly, n = {found.linkage.distance.n}" in page
    counted = found.to_dict()["criteria"][0]
    counted["attack"] |= {"low": 0.0, "high": 0.0, "value": 0.0}
    assert trials_text(counted) == ""


def test_control_and_guessing_stand_beside_each_other():
    found = hm.compare(people(), made("optimal"), control=people(), learn=False, attacks=60)
    page = " ".join(render_page(found.to_dict()).split())
    own = ("linkability, by names", "singling out, by classes", "linkability, by classes")
    controlled = [one for one in found.criteria if one.name not in own]
    assert len(controlled) == len(found.criteria) - 3  # nobody else has a row to be found
    for one in controlled:
        assert f"{estimate_text(one.baseline.to_dict())} guessing" in page
    assert page.count("control<br>") == len(controlled)


def test_failed_criteria_are_named_once():
    document = hm.compare(people(), people(), learn=False, attacks=60).to_dict()
    assert comparison_outcome(document).startswith(
        "The attacks that were tried succeed on singling out, linkability by names, inference of "
        "ill."
    )
    document["criteria"] = document["criteria"][1:2]
    assert "succeed on singling out by any column." in comparison_outcome(document)


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


def test_too_many_pairs_of_rows_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(comparison_module, "_PAIRS", 10)
    found = hm.compare(people(), made("optimal"), learn=False, attacks=60).partition
    assert found.dbil is None
    assert found.sbil > 0


def test_a_seed_repeats_what_is_drawn_and_another_draws_anew():
    pytest.importorskip("sklearn")
    some = hm.Table(people().arrow.slice(0, 150), people().schema)
    release = hm.anonymize(some, hm.KAnonymity(3), method="mondrian", seed=0)
    one, same, other = (
        hm.compare(some, release, attacks=40, seed=seed).to_dict() for seed in (1, 1, 2)
    )
    assert one == same
    for drawn in ("criteria", "counting", "likeness"):
        assert one[drawn] != other[drawn], drawn
    drawn = [(one["linkage"][name], other["linkage"][name]) for name in ("distance", "assignment")]
    assert any(mine != theirs for mine, theirs in drawn)  # few hits may be as many by chance
    for counted in ("loss", "before", "after", "finding", "disclosures", "distances", "partition"):
        assert one[counted] == other[counted], counted
