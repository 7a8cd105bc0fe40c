"""What leaves after masking: promises, demands, pipelines, and what the door refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InternalError, PrivacyError, UnsatisfiableError
from halfmask.masking.run import read_like, read_like_models
from halfmask.release import seal
from halfmask.release.candidate import MaskedCandidate
from halfmask.release.doors.claims import PseudonymClaim

M = hm.masks
KEY = b"sixteen bytes ok"


def ages(own=None, size=40):
    rows = {"age": [20 + i % 7 for i in range(size)], "ill": ["a", "b", "c", "d"] * (size // 4)}
    schema = {"columns": {"age": "quasi", "ill": "sensitive"}}
    if own is not None:
        rows["k_i"] = [own] * 3 + [1] * (size - 3)
        schema["policy"] = {"k": "k_i"}
    return hm.read(rows, schema=schema)


def test_promises_are_checked_on_the_rows_that_leave():
    kept = hm.mask(ages(), M.Microaggregate("age", k=10), models=[hm.KAnonymity(10)])
    (verdict,) = kept.verdicts
    assert verdict.holds
    assert verdict.achieved >= 10
    assert "all" in kept.to_dict()["outcome"] or "promise" in kept.to_dict()["outcome"]
    with pytest.raises(UnsatisfiableError, match=r"do not keep k-anonymity \("):
        hm.mask(ages(), M.Noise("age", level=1), models=[hm.KAnonymity(10)], seed=1)


@pytest.mark.parametrize(
    ("people", "given"), [(ages(), {"models": [hm.KAnonymity(2)]}), (ages(own=3), {})]
)
def test_a_promise_needs_a_quasi_identifier_among_the_rows_that_leave(people, given):
    with pytest.raises(PrivacyError, match=r"steps take every quasi-identifier out.*keep one"):
        hm.mask(people, M.Suppress("age"), **given)


def test_a_sensitive_promise_looks_at_the_masked_column():
    people = ages()
    release = hm.mask(
        people,
        M.TopCode("age", value=20),
        M.Pram("ill", keep=0.9),
        models=[hm.LDiversity(3, "ill")],
    )
    assert release.verdicts[0].column == "ill"


def test_own_demands_are_kept_or_the_table_is_refused():
    with pytest.raises(UnsatisfiableError, match=r"people state demands") as caught:
        hm.mask(ages(own=30), M.Round("age", base=2))
    assert "40 people" in str(caught.value)
    assert "--ignore-demands" in str(caught.value)
    kept = hm.mask(ages(own=30), M.TopCode("age", value=20))
    assert kept.demands.kept
    aside = hm.mask(ages(own=30), M.Round("age", base=2), demands="ignore")
    assert next(iter(aside.to_dict())) == "demands"
    assert aside.to_dict()["outcome"].startswith("The own demands of 40 people were set aside")
    assert aside.notes[0].startswith("The own demands")


def test_anatomy_refuses_where_people_ask_for_an_own_l():
    rows = {"age": [1, 1, 1, 1], "ill": ["a", "b", "c", "d"], "l_i": [2, 1, 1, 1]}
    people = hm.read(
        rows, schema={"policy": {"l": "l_i"}, "columns": {"age": "quasi", "ill": "sensitive"}}
    )
    with pytest.raises(PrivacyError, match="own l or t"):
        hm.mask(people, M.Anatomy("ill", l=2))


def test_a_population_cannot_be_compared_with():
    people = ages()
    with pytest.raises(PrivacyError, match="population"):
        hm.mask(people, M.Round("age", base=2), models=[hm.KMap(2, people)])


def test_steps_run_in_order_and_are_repeated_on_new_rows(tmp_path):
    steps = (M.TopCode("age", value=24), M.RankSwap("age", within=0.2), M.Sample(0.5))
    release = hm.mask(ages(), *steps, seed=1)
    assert [step["mask"] for step in release.steps] == ["top-code", "rank-swap", "sample"]
    assert release.suppressed == 20
    release.report(tmp_path / "release.json")
    again = hm.mask(ages(size=80), *read_like(tmp_path / "release.json"))
    assert len(again) == 40
    assert max(again.to_arrow()["age"].to_pylist()) == 24


@pytest.mark.parametrize(
    "models", ["null", "[1]", '[{"model": "k-anonymity"}]', '{"k": 3}', '["k"]']
)
def test_a_damaged_promise_is_not_passed_over(tmp_path, models):
    file = tmp_path / "report.json"
    file.write_text(f'{{"format": "halfmask.masked/1", "steps": [], "models": {models}}}', "utf-8")
    with pytest.raises(hm.errors.InputError):
        read_like_models(file)


@pytest.mark.parametrize("secret", ["key", "key_file", "key-file", "vault"])
def test_a_report_that_brings_a_key_is_not_believed(tmp_path, secret):
    step = {"mask": "pseudonym", "column": "id", secret: "known to who wrote the report"}
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"format": "halfmask.masked/1", "steps": [step]}), "utf-8")
    with pytest.raises(hm.errors.InputError, match="state the steps themselves"):
        read_like(file)


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "halfmask.masked/1", "steps": [1]}',
        "{}",
        "[]",
        "no json",
        '{"format": "halfmask.release/1"}',
    ],
)
def test_only_a_report_of_a_masked_release_is_repeated(tmp_path, text):
    file = tmp_path / "other.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(hm.errors.InputError, match=r"report of a masked release|not a JSON"):
        read_like(file)
    with pytest.raises(hm.errors.InputError, match="cannot be read"):
        read_like(tmp_path / "nowhere.json")


def test_no_document_holds_a_key_a_seed_or_the_moments_before():
    rows = {"id": ["u1", "u2", "u3"], "pay": [10, 20, 987_654_321], "age": [1, 1, 1]}
    people = hm.read(
        rows,
        schema={"table": {"person": "id"}, "columns": {"pay": "other", "age": "quasi"}},
    )
    release = hm.mask(people, M.Pseudonym("id", key=KEY), M.TopCode("pay", share=0.4), seed=424_242)
    text = json.dumps(release.to_dict())
    assert "sixteen" not in text
    assert "424242" not in text
    assert "sixteen" not in repr(M.Pseudonym("id", key=KEY))
    mean = sum(rows["pay"]) / 3
    assert str(int(mean)) not in text
    assert release.figures[1]["columns"]["pay"]["mean"][0] == pytest.approx(mean)
    assert "987654321" not in text


def test_what_leaves_beside_the_rows_is_written_beside_them(tmp_path):
    release = hm.mask(ages(), M.Anatomy("ill", l=2))
    release.write(tmp_path / "out.csv")
    assert (tmp_path / "out.ill.csv").exists()
    assert "ill" not in (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[0]


def test_a_step_that_takes_rows_of_a_group_away_is_refused():
    with pytest.raises(PrivacyError, match="use Anatomy last"):
        hm.mask(ages(), M.Anatomy("ill", l=2), M.Sample(0.5), seed=1)


def candidate(**more):
    people = hm.read(
        {"id": ["u", "v"], "age": [1, 2]},
        schema={"table": {"person": "id"}, "columns": {"age": "quasi"}},
    )
    facts = {"table": people, "rows": people, "source": np.arange(2), "tables": {}}
    return MaskedCandidate(**{**facts, "steps": [], "models": (), **more})


def test_the_door_holds_what_is_claimed():
    assert len(seal(candidate(measured={"linked": {"value": None}}))) == 2
    with pytest.raises(InternalError, match="would leave as it was"):
        seal(candidate(claims=[PseudonymClaim("id")]))
    with pytest.raises(InternalError, match="break k-anonymity"):
        seal(candidate(models=(hm.KAnonymity(2),)))
    with pytest.raises(InternalError, match="not those of the table"):
        seal(candidate(source=np.array([0, 0])))
    sound = candidate()
    exposed = replace(sound.rows.schema, person=None, columns={"id": "other", "age": "quasi"})
    with pytest.raises(InternalError, match="must not"):
        seal(replace(sound, rows=sound.rows.with_schema(exposed)))
    none = sound.rows.with_schema(sound.rows.schema, sound.rows.arrow.slice(0, 0))
    with pytest.raises(PrivacyError, match="No row"):
        seal(replace(sound, rows=none, source=np.arange(0)))


def test_a_masked_release_is_made_by_the_door_only():
    with pytest.raises(PrivacyError, match=r"call halfmask\.mask"):
        hm.MaskedRelease(guarantee=None, method="mask", _arrow=pa.table({}), door=None)


def test_rows_that_stay_themselves_are_linked_and_blank_ones_are_not():
    people = hm.read({"age": list(range(50))}, schema={"age": "quasi"})
    linked = hm.mask(people, M.Round("age", base=1)).measured["linked"]["value"]
    assert linked == 1.0
    linked = hm.mask(people, M.TopCode("age", value=0)).measured["linked"]["value"]
    assert linked == pytest.approx(1 / 50)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_moments_of_every_unit_are_masked(unit, zone):
    seconds = pa.array([1_577_836_800 + 86_400 * i for i in range(20)])
    times = seconds.cast(pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    people = hm.read(pa.table({"when": times, "age": [1] * 20}),
                     schema={"when": "other", "age": "quasi"})  # fmt: skip
    for mask in (M.DateShift("when"), M.Microaggregate("when", k=5), M.TopCode("when", share=0.5)):
        found = hm.mask(people, mask, seed=1).to_arrow()["when"]
        assert found.type == times.type
        assert found.null_count == 0
    coded = hm.mask(people, M.TopCode("when", value="2020-01-05")).to_arrow()["when"]
    assert max(coded.to_pylist()).day in (4, 5)


def test_frames_come_back_as_they_came():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 2, 3], "ill": ["a", "b", "c"]})
    people = hm.read(frame, schema={"age": "quasi", "ill": "sensitive"})
    assert isinstance(hm.mask(people, M.Round("age", base=2)).native(), pandas.DataFrame)


def test_buckets_keep_their_values_and_lose_whose_they_are():
    size = 3000
    rows = {"w": list(range(size)), "ill": [i % 6 for i in range(size)]}
    people = hm.read(rows, schema={"w": "quasi", "ill": "sensitive"})
    found = hm.mask(people, M.Bucketize("ill", l=5), seed=1).to_arrow()
    true = found["w"].to_numpy() % 6
    shown, bucket = found["ill"].to_numpy(), found["bucket"].to_numpy()
    for one in range(int(bucket.max()) + 1):
        inside = bucket == one
        assert sorted(shown[inside]) == sorted(true[inside])
        assert len(set(shown[inside])) == inside.sum() >= 5
    assert np.mean(shown == true) == pytest.approx(1 / 5, abs=0.04)


def test_the_door_counts_the_buckets():
    people = ages()
    with pytest.raises(PrivacyError, match="Bucketize last"):
        hm.mask(people, M.Bucketize("ill", l=3), M.Sample(0.5), seed=1)
    own = hm.read(
        {"age": [1] * 8, "ill": list("abcd") * 2, "l_i": [2] * 8},
        schema={"policy": {"l": "l_i"}, "columns": {"age": "quasi", "ill": "sensitive"}},
    )
    with pytest.raises(PrivacyError):
        hm.mask(own, M.Bucketize("ill", l=2))
