"""The same figure has the same name and the same number, whichever verb tells it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.risk.reidentification import HIGHEST, MEAN, SMALLEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Each figure that several verbs tell, and where it is counted by hand.
SHARED = ("smallest", "highest_risk", "mean_risk")


def people() -> hm.Table:
    """Sixty people who differ enough that divisions and levels give other classes."""
    draw = np.random.default_rng(5)
    rows = pa.table(
        {
            "id": [f"P{i}" for i in range(60)],
            "age": draw.integers(20, 80, 60),
            "town": draw.choice(["a", "b", "c", "d"], 60),
            "ill": draw.choice(["flu", "gout", "cold"], 60),
            "k_i": draw.choice([2, 3, 6], 60),
        }
    )
    schema = {
        "table": {"person": "id"},
        "policy": {"k": "k_i"},
        "columns": {
            "id": "identifier",
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
            "town": "quasi",
            "ill": "sensitive",
        },
    }
    return hm.read(rows, schema=schema)


WAYS: dict[str, Any] = {
    "levels": {"models": (hm.KAnonymity(3),), "method": "optimal", "suppression": 0.1,
               "demands": "ignore"},
    "local": {"models": (hm.KAnonymity(3),), "method": "local", "demands": "ignore"},
    "mondrian": {"models": (hm.KAnonymity(3),), "method": "mondrian", "demands": "ignore"},
    "personal": {"models": (), "method": "personal"},
    "sets": {"models": (hm.KAnonymity(3),), "method": "personal", "labels": "sets",
             "demands": "ignore"},
    "own demands in sets": {"models": (), "labels": "sets"},
}  # fmt: skip


def released(way: str) -> tuple[hm.Table, hm.Release]:
    table, how = people(), dict(WAYS[way])
    return table, hm.anonymize(table, *how.pop("models"), **how)


def counted(release: hm.Release) -> dict[str, float]:
    """By hand: rows with the same published quasi-identifiers."""
    rows = release.to_arrow().select(["age", "town"]).to_pylist()
    sizes: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = tuple(row.values())
        sizes[key] = sizes.get(key, 0) + 1
    least = min(sizes.values())
    return {"smallest": least, "highest_risk": 1 / least, "mean_risk": len(sizes) / len(rows)}


def told(found: Any) -> Iterator[tuple[str, float]]:
    """Every shared figure in a document, at any depth but those of the original."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name in SHARED:
                yield name, value
            elif name not in ("before", "classes"):
                yield from told(value)
    elif isinstance(found, list):
        for one in found:
            yield from told(one)


@pytest.mark.parametrize("way", WAYS)
def test_verbs_agree_on_a_release_and_on_its_file(way: str, tmp_path: Path) -> None:
    table, release = released(way)
    wanted = counted(release)
    seen = {"release": release.to_dict()}
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"{way}-{suffix}.{suffix}"
        release.write(path)
        seen[f"assess {suffix}"] = hm.assess(str(path)).to_dict()
        seen[f"check {suffix}"] = [one.to_dict() for one in hm.check(str(path))]
    seen["compare rows"] = hm.compare(table, str(path), learn=False, attacks=5).to_dict()
    seen["compare release"] = hm.compare(table, release, learn=False, attacks=5).to_dict()
    for verb, document in seen.items():
        figures = list(told(json.loads(json.dumps(document))))
        assert figures, verb
        for name, value in figures:
            assert value == pytest.approx(wanted[name]), (verb, name)


@pytest.mark.parametrize("way", ["levels", "mondrian", "sets"])
def test_a_criterion_of_one_name_has_one_figure(way: str, tmp_path: Path) -> None:
    """What ``assess`` says of the released rows alone, ``compare`` says too, beside its attacks."""
    table, release = released(way)
    path = tmp_path / "out.csv"
    release.write(path)
    seen = {(c["name"], c["column"]): c for c in hm.assess(str(path)).to_dict()["criteria"]}
    assert [name for name, _ in seen] == [
        "singling out, by classes", "linkability, by classes", "inference, by classes",
    ]  # fmt: skip
    for given in (str(path), release):
        found = hm.compare(table, given, learn=False, attacks=60)
        told = {(c["name"], c["column"]): c for c in found.to_dict()["criteria"]}
        for key, one in seen.items():
            assert told[key]["risk"] == pytest.approx(one["risk"])
            assert told[key]["outcome"] == one["outcome"]
    mean = counted(release)["mean_risk"]
    assert seen["linkability, by classes", None]["attack"]["value"] == pytest.approx(mean)
    assert mean > 0.09
    assert seen["linkability, by classes", None]["outcome"] == "not met"


def test_classes_of_rows_that_stand_for_nobody_judge_nothing() -> None:
    table = people()
    rows = table.arrow.select(["age", "town", "ill"])
    moved = rows.set_column(0, "age", pa.array([99] * len(rows)))
    found = hm.compare(table, hm.read(moved), learn=False, attacks=60)
    assert found.made_up
    assert not [one for one in found.criteria if one.name.endswith("by classes")]


def test_lines_for_people_carry_these_names() -> None:
    table, release = released("mondrian")
    found = hm.compare(table, release, learn=False, attacks=5)
    lines = {one.name: one.after.value for one in found.findings if one.after is not None}
    wanted = counted(release)
    for name, key in ((SMALLEST, "smallest"), (HIGHEST, "highest_risk"), (MEAN, "mean_risk")):
        assert lines[name] == pytest.approx(wanted[key])
    page = hm.assess(table)
    assert (page.smallest, page.highest_risk) == (1, 1.0)


def test_people_with_several_rows_are_counted_by_the_door() -> None:
    """Two people of three rows each stand in one class of six rows: the risk is a half."""
    rows = pa.table({"who": list("aaabbb"), "town": ["x"] * 6, "ill": list("uvwuvw")})
    schema = {"table": {"person": "who"}, "columns": {"town": "quasi", "ill": "sensitive"}}
    table = hm.read(rows, schema=schema)
    release = hm.anonymize(table, hm.KAnonymity(2), method="optimal")
    assert release.to_dict()["risk"] == {
        "smallest": 2, "highest_risk": 0.5, "mean_risk": 0.5,
    }  # fmt: skip
    assert hm.compare(table, release, learn=False, attacks=5).highest_risk == 0.5


def test_means_deviations_and_quantiles_before_and_after() -> None:
    rows = {"age": [20, 30, 40, 50], "pay": [1.0, 2.0, None, 5.0], "w": [1, 1, 1, 5]}
    schema = {"age": "quasi", "pay": "sensitive", "w": "other"}
    table = hm.read(pa.table(rows), schema=schema)
    half = hm.read(pa.table({"age": ["20-30"] * 2 + ["40-50"] * 2, "pay": [1.0, 2.0, None, 5.0],
                             "w": [1, 1, 1, 5]}))  # fmt: skip
    found = hm.compare(table, half, learn=False, attacks=5).summaries
    age, pay = (next(c for c in found.columns if c.name == name) for name in ("age", "pay"))
    assert (age.before.mean, age.after.mean) == (35, 35)
    assert age.before.deviation == pytest.approx(np.std([20, 30, 40, 50]))
    assert (age.before.median, age.before.q90) == (30, 50)
    assert pay.before.mean == pay.after.mean == pytest.approx(8 / 3)  # nobody's missing pay counts
    link = next(c for c in found.correlations if set(c.columns) == {"age", "pay"})
    assert link.before == pytest.approx(np.corrcoef([20, 30, 50], [1, 2, 5])[0, 1])
    assert link.after == pytest.approx(np.corrcoef([25, 25, 45], [1, 2, 5])[0, 1])


def test_means_are_weighted_where_weights_are() -> None:
    rows = {"age": [20, 40], "w": [1, 3]}
    table = hm.read(pa.table(rows), schema={"age": "quasi", "w": "other"})
    asked = hm.compare(table, hm.read(pa.table(rows)), learn=False, attacks=2, weights="w")
    assert asked.summaries.weighted == "w"
    assert [one.before.mean for one in asked.summaries.columns] == [35]
    schema = {"table": {"weight": "w"}, "columns": {"age": "quasi", "w": "other"}}
    declared = hm.read(pa.table(rows), schema=schema)
    found = hm.compare(declared, hm.read(pa.table(rows)), learn=False, attacks=2).summaries
    assert found == asked.summaries


def test_weights_that_did_not_leave_are_told() -> None:
    schema = {"table": {"weight": "w"}, "columns": {"age": "quasi", "w": "drop"}}
    table = hm.read(pa.table({"age": [20, 20], "w": [1, 3]}), schema=schema)
    release = hm.anonymize(table, hm.KAnonymity(2))
    for given in (release, hm.read(pa.table({"age": [20, 20]}))):
        found = hm.compare(table, given, learn=False, attacks=2)
        (said,) = [note for note in found.notes if "sampling weights" in note]
        assert said.endswith("the sampling weights in w did not leave with the release.")
    kept = hm.read(pa.table({"age": [20, 20], "w": [1, 3]}))
    found = hm.compare(table, kept, learn=False, attacks=2)
    assert not [note for note in found.notes if "did not leave" in note]


def test_who_was_left_out_is_told_by_group() -> None:
    """Half of the twenty veterans and one other of eighty are left out."""
    served = ["yes"] * 20 + ["no"] * 80
    table = hm.read(
        pa.table({"served": served, "ill": ["flu", "gout"] * 50}),
        schema={"served": "quasi", "ill": "sensitive"},
    )
    keep = [*range(10), *range(20, 99)]
    rows = hm.read(pa.table({"served": [served[i] for i in keep],
                             "ill": [("flu", "gout")[i % 2] for i in keep]}))  # fmt: skip
    found = hm.compare(table, rows, learn=False, attacks=5).left_out
    assert found.share == pytest.approx(11 / 100)
    first = found.most()[0]
    assert (first.column, first.group, first.before, first.after) == ("served", "yes", 20, 10)
    assert first.share == 0.5
    assert found.untold == ()


def test_labels_that_overlap_tell_nothing_of_who_was_left_out() -> None:
    table = hm.read({"age": [*range(20, 40)]}, schema={"age": "quasi"})
    rows = hm.read({"age": ["20-30"] * 9 + ["25-39"] * 9})
    found = hm.compare(table, rows, learn=False, attacks=5).left_out
    assert (found.groups, found.untold) == ((), ("age",))


def test_ranges_with_rounded_bounds_are_read() -> None:
    """Neither 20, 39, the first of January nor the last of June is a value of anybody."""
    days = pa.array(["2022-02-03", "2022-03-04", "2022-05-06", "2022-06-07"]).cast(pa.date32())
    table = hm.read(pa.table({"age": [21, 29, 31, 38], "seen": days}),
                    schema={"age": "quasi", "seen": "quasi"})  # fmt: skip
    rows = hm.read({"age": ["20-39"] * 4, "seen": ["2022-01-01 to 2022-06-30"] * 4})
    found = hm.compare(table, rows, learn=False, attacks=4)
    assert not found.made_up
    assert (found.smallest, found.finding.uncovered, found.loss) == (4, 0.0, 1.0)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_file_with_its_record_tells_what_the_door_counted(name, tmp_path) -> None:
    """12 people of three rows each, in classes of more rows than people."""
    each = np.repeat(np.arange(12), 3)
    rows = {
        "who": [f"p{i}" for i in each],
        "age": (20 + 2 * each).tolist(),
        "ill": list("uvw") * 12,
    }
    age = {"role": "quasi", "hierarchy": {"intervals": [5, 20]}}
    schema = {"table": {"person": "who"}, "columns": {"age": age, "ill": "sensitive"}}
    table = hm.read(pa.table(rows), schema=schema)
    release = hm.anonymize(table, hm.KAnonymity(2), method="mondrian")
    wanted, path = release.to_dict()["risk"], tmp_path / name
    release.write(path)
    seen = hm.assess(str(path))
    both = hm.compare(table, str(path), learn=False, attacks=5)
    for found in (seen, both, hm.compare(table, release, learn=False, attacks=5)):
        told = {key: found.to_dict()[key] for key in wanted}
        assert told == wanted
    assert any("when this file was released" in note for note in seen.notes)
    back = hm.read(str(path))
    other = hm.read(back.arrow, schema=back.schema)  # the record is about the file alone
    assert hm.assess(other).smallest == 3 * wanted["smallest"]


def test_a_release_made_with_other_quasi_identifiers_says_so(tmp_path) -> None:
    """The schema of the original counts more columns than the release was made with."""
    rows = people().arrow.drop(["id", "k_i"])
    fewer = {"columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
                         "town": "other", "ill": "sensitive"}}  # fmt: skip
    release = hm.anonymize(hm.read(rows, schema=fewer), hm.KAnonymity(5))
    path = str(tmp_path / "out.csv")
    release.write(path)
    found = hm.compare(hm.read(rows, schema={"age": "quasi", "town": "quasi"}),
                       path, learn=False, attacks=5)  # fmt: skip
    (said,) = [note for note in found.notes if "other quasi-identifiers" in note]
    assert f"smallest class holds {release.risk.smallest} people" in said
    assert f"{release.risk.prosecutor:.1%}" in said
    assert "Here town may be known too" in said
    same = hm.compare(hm.read(rows, schema=fewer), path, learn=False, attacks=5)
    assert not [note for note in same.notes if "other quasi-identifiers" in note]


def test_a_record_that_was_written_over_is_not_believed(tmp_path) -> None:
    table, release = released("mondrian")
    release.write(tmp_path / "out.csv")
    beside, wanted = tmp_path / "out.toml", counted(release)
    lines = beside.read_text(encoding="utf-8").splitlines()
    lies = {"smallest": "999", "highest_risk": repr(1 / 999), "mean_risk": repr(1 / 999)}
    lines = [next((f"{n} = {v}" for n, v in lies.items() if line.startswith(f"{n} = ")), line)
             for line in lines]  # fmt: skip
    beside.write_text("\n".join(lines), encoding="utf-8")
    seen = hm.assess(str(tmp_path / "out.csv"))
    assert seen.smallest == wanted["smallest"]
    assert any("rows were counted" in note for note in seen.notes)
    found = hm.compare(table, str(tmp_path / "out.csv"), learn=False, attacks=5)
    assert found.smallest == wanted["smallest"]
