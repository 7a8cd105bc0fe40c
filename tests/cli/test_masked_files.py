"""A masked file says what its columns are and what was promised, as any release does."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.errors import InputError

MASKED = ("--step", "suppress age", "--step", "local-suppression k=3", "--k", 3)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """60 people of three towns and three jobs, five or more of each pair, and one alone."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + i},{'abc'[i % 3]},{'xyz'[i // 3 % 3]},{i % 4}" for i in range(60)]
    (tmp_path / "c.csv").write_text("age,town,job,ill\n" + "\n".join([*rows, "90,d,x,1"]) + "\n")
    roles = {"age": "quasi", "town": "quasi", "job": "quasi", "ill": "sensitive"}
    (tmp_path / "c.toml").write_text(
        "".join(f'[columns.{name}]\nrole = "{role}"\n' for name, role in roles.items())
    )
    return tmp_path


@pytest.mark.parametrize("file", ["r4.csv", "r4.parquet", "r4.arrow"])
def test_a_masked_file_is_checked_and_assessed_as_it_stands(people, halfmask, file):
    assert halfmask("mask", "c.csv", *MASKED, "-o", file).code == 0
    checked = halfmask("check", file, "--json")
    assert checked.code == 0
    (verdict,) = checked.json()["verdicts"]
    assert (verdict["model"], verdict["holds"]) == ("k-anonymity", True)
    assert halfmask("assess", file).code == 0
    assert (people / "r4.toml").exists() == (file == "r4.csv")


def test_a_row_that_is_added_afterwards_is_found(people, halfmask):
    halfmask("mask", "c.csv", *MASKED, "-o", "r4.csv")
    with (people / "r4.csv").open("a") as stream:
        stream.write('"e","z",2\n')
    assert halfmask("check", "r4.csv").code != 0


def test_without_promises_a_masked_file_says_its_roles(people, halfmask):
    assert halfmask("mask", "c.csv", "--step", "round age base=10", "-o", "r.csv").code == 0
    text = (people / "r.toml").read_text()
    assert 'age = "masked: round"' in text
    assert halfmask("assess", "r.csv").code == 0


def test_what_a_masked_file_says_writes_over_no_schema_of_another_table(people, halfmask):
    (people / "other.toml").write_text((people / "c.toml").read_text())
    found = halfmask("mask", "c.csv", *MASKED, "-o", "other.csv")
    assert found.code == 1
    assert "schema file of another table" in found.err
    assert not (people / "other.csv").exists()


# Cells are missing before a step blanks others: only the record tells which way they are read.
PARTLY = """town,job,ill
a,x,0
a,x,1
a,x,2
a,y,0
b,x,1
b,x,2
b,x,0
,x,1
,x,2
,x,3
c,,0
"""
SUPPRESSED = {
    "value": ("--step", "local-suppression k=3", "--k", "3"),
    "any": ("--step", "local-suppression k=3 reading=any"),
}


@pytest.fixture
def partly(tmp_path, monkeypatch):
    """Eleven people; four cells of theirs are missing, three stand alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(PARTLY)
    roles = {"town": "quasi", "job": "quasi", "ill": "sensitive"}
    (tmp_path / "p.toml").write_text(
        "".join(f'[columns.{name}]\nrole = "{role}"\n' for name, role in roles.items())
    )
    return tmp_path


def smallest_class(path):
    """By the rows as they stand in the file, a blank cell a value of its own."""
    table = (
        pq.read_table(path)
        if path.suffix == ".parquet"
        else pc.read_csv(path, convert_options=AS_TEXT)
    )
    held = zip(*(table[name].to_pylist() for name in ("town", "job")), strict=True)
    return min(Counter(held).values())


AS_TEXT = pc.ConvertOptions(
    column_types={"town": pa.string(), "job": pa.string()}, strings_can_be_null=True
)


@pytest.mark.parametrize("file", ["r.csv", "r.parquet", "r.arrow"])
@pytest.mark.parametrize("reading", ["value", "any"])
def test_all_verbs_tell_one_smallest_class_of_a_suppressed_file(partly, halfmask, reading, file):
    made = halfmask("mask", "p.csv", *SUPPRESSED[reading], "-o", file, "--report", "r.json")
    assert made.code == 0
    told = json.loads((partly / "r.json").read_text())["risk"]
    checked = halfmask("check", file, "--json").json()
    assessed = halfmask("assess", file, "--json").json()
    compared = halfmask("compare", "p.csv", file, "--no-learn", "--json").json()
    names = ("smallest", "highest_risk", "mean_risk")
    assert told == {name: checked[name] for name in names}
    assert told == {name: assessed[name] for name in names}
    assert told == {name: compared[name] for name in names}
    if not file.endswith(".arrow"):
        assert told["smallest"] == smallest_class(partly / file)
    assert told["highest_risk"] == 1 / told["smallest"]
    assert (told["smallest"] >= 3) == (reading == "value")
    assert not compared["made_up"]
    shown = [one for one in compared["findings"] if one["name"] == "smallest class, people"]
    assert [one["after"]["value"] for one in shown] == [told["smallest"]]


@pytest.mark.parametrize("file", ["r.csv", "r.parquet"])
@pytest.mark.parametrize("reading", ["value", "any"])
def test_terminal_and_page_tell_it_too(partly, halfmask, reading, file):
    report = ("--report", "r.html")
    made = halfmask("mask", "p.csv", *SUPPRESSED[reading], "-o", file, *report)
    least = {"value": "3", "any": "1"}[reading]
    risk = {"value": "33.3%", "any": "100.0%"}[reading]
    compared = halfmask("compare", "p.csv", file, "--no-learn", "-o", "c.html")
    for text in (made.out, compared.out):
        (line,) = (one for one in text.splitlines() if "smallest class, people" in one)
        assert line.split("│")[-2].strip() == least
        (line,) = (one for one in text.splitlines() if "highest risk (prosecutor)" in one)
        assert line.split("│")[-2].strip() == risk
    page = " ".join((partly / "r.html").read_text().split())
    assert f"<dt>smallest class, people</dt><dd>{least}</dd>" in page
    page = " ".join((partly / "c.html").read_text().split())
    assert f"<dt>smallest class, people</dt><dd>1 → {least}</dd>" in page
    assert f"<dt>highest risk (prosecutor)</dt><dd>100.0% → {risk}</dd>" in page


def test_a_release_in_memory_says_it_as_its_file_does(partly):
    people = hm.read("p.csv")
    release = hm.mask(people, hm.masks.LocalSuppression(3), models=[hm.KAnonymity(3)])
    found = hm.compare(people, release, learn=False)
    assert (found.made_up, found.smallest) == (False, 3)
    # Without a record a missing cell is what it is in the original.
    assert hm.compare(people, hm.read(release.to_arrow()), learn=False).made_up


@pytest.mark.parametrize("reading", ["value", "any"])
def test_what_local_suppression_claims_is_checked_by_its_own_rule(partly, halfmask, reading):
    halfmask("mask", "p.csv", *SUPPRESSED[reading], "-o", "r.csv")
    checked = halfmask("check", "r.csv", "--json")
    (claim,) = checked.json()["claims"]
    assert (checked.code, claim["holds"], claim["failing_rows"]) == (0, True, 0)
    how = {"value": "a value of its own", "any": "matching any value"}[reading]
    assert claim["claim"].endswith(how)
    # A row that matches nobody, and a record without the hash that would tell.
    with (partly / "r.csv").open("a") as stream:
        stream.write('"z","z",0\n')
    record = (partly / "r.toml").read_text().splitlines()
    (partly / "r.toml").write_text("\n".join(one for one in record if "sha256" not in one))
    checked = halfmask("check", "r.csv", "--json")
    assert (checked.code, checked.json()["claims"][0]["failing_rows"]) == (2, 1)
    if reading == "any":
        assert "Not kept: what local suppression claims" in halfmask("check", "r.csv").err


def test_a_record_that_speaks_otherwise_of_blank_cells_is_refused(partly, halfmask):
    halfmask("mask", "p.csv", *SUPPRESSED["any"], "-o", "r.csv")
    text = (partly / "r.toml").read_text()
    (partly / "r.toml").write_text(text.replace('reading = "any"', 'reading = "some"'))
    found = halfmask("check", "r.csv")
    assert (found.code, "speaks of blank cells" in found.err) == (1, True)


def test_reasons_stand_below_the_figures_of_releases_side_by_side(partly, halfmask):
    halfmask("mask", "p.csv", *SUPPRESSED["value"], "-o", "r.csv")
    halfmask("mask", "p.csv", "--step", "pram town keep=0.1", "--seed", "1", "-o", "s.csv")
    halfmask("compare", "p.csv", "r.csv", "s.csv", "--no-learn", "-o", "c.html")
    page = (partly / "c.html").read_text()
    assert '<td class="number">not known<sup>1</sup></td>' in page
    assert "not known: " not in page
    assert page.count("<li>Some people fit no released row") == 1


@pytest.fixture
def gaps(tmp_path, monkeypatch):
    """200 people with missing cells, beside a copy whose record calls these suppressed."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(1)
    held = ["town,job,age,ill"]
    for _ in range(200):
        towns, jobs, ages = [*"abcd", ""], [*"xyzwv", ""], [*"12345678", ""]
        held.append(",".join(draw.choice(one) for one in (towns, jobs, ages, [*"012"])))
    roles = {"town": "quasi", "job": "quasi", "age": "quasi", "ill": "sensitive"}
    columns = "".join(
        f'[columns.{name}]\nrole = "{role}"\nkind = "nominal"\n' for name, role in roles.items()
    )
    for name in ("o", "same", "evil"):
        (tmp_path / f"{name}.csv").write_text("\n".join(held) + "\n")
        (tmp_path / f"{name}.toml").write_text(columns)
    return tmp_path


@pytest.mark.parametrize("sealed", [False, True])
def test_no_record_makes_a_table_look_safer_than_its_rows(gaps, sealed):
    digest = hashlib.sha256((gaps / "evil.csv").read_bytes()).hexdigest()
    record = '[release]\nformat = "halfmask.file/1"\nblank = ["town", "job", "age"]\n'
    record += f'sha256 = "{digest}"\n' if sealed else ""
    (gaps / "evil.toml").write_text(record + (gaps / "o.toml").read_text())
    true, told = (
        hm.compare("o.csv", one, learn=False, attacks=200) for one in ("same.csv", "evil.csv")
    )
    assert true.criteria[0].risk.value > 0.9  # nothing is hidden: nearly everybody is singled out
    for mine, theirs in zip(true.criteria, told.criteria, strict=True):
        assert (mine.name, mine.column) == (theirs.name, theirs.column)
        assert theirs.risk.value >= mine.risk.value
        assert theirs.attack.value >= mine.attack.value
    assert told.linkage.risk >= true.linkage.risk
    assert told.finding.found >= true.finding.found
    assert told.finding.highest >= true.finding.highest
    assert told.membership.attribution.ratio <= true.membership.attribution.ratio
    assert told.minimality.value >= true.minimality.value
    assert told.discrimination.loss <= true.discrimination.loss
    names = ("smallest", "highest_risk", "mean_risk")
    assert [getattr(told, n) for n in names] == [getattr(true, n) for n in names]


def test_cells_that_were_missing_before_do_not_count_as_suppressed_in_attacks(gaps, halfmask):
    """One age is blanked; that others were missing before protects nobody."""
    table = pc.read_csv(gaps / "o.csv")
    ages = table["age"].to_pylist()
    ages[next(i for i, age in enumerate(ages) if age is not None)] = 99
    pc.write_csv(table.set_column(2, "age", pa.array(ages)), gaps / "o.csv")
    made = halfmask("mask", "o.csv", "--step", "suppress age rare=2", "-o", "r.csv")
    assert made.code == 0
    assert 'blank = ["age"]' in (gaps / "r.toml").read_text()
    told = hm.compare("o.csv", "r.csv", learn=False, attacks=200)
    plain = hm.read("r.csv", schema=hm.Schema())
    bare = hm.compare("o.csv", plain, learn=False, attacks=200)
    assert told.criteria[0].risk.value >= bare.criteria[0].risk.value
    assert told.linkage.distance.value >= bare.linkage.distance.value
    assert not told.made_up


def test_a_forged_mean_risk_is_not_told(partly, halfmask):
    halfmask("mask", "p.csv", *SUPPRESSED["value"], "-o", "r.csv")
    true = halfmask("check", "r.csv", "--json").json()
    text = (partly / "r.toml").read_text()
    (partly / "r.toml").write_text(re.sub("mean_risk = .*", "mean_risk = 0.0001", text))
    told = halfmask("check", "r.csv", "--json").json()
    assert (told["smallest"], true["mean_risk"]) == (true["smallest"], 3 / 11)
    assert told.get("mean_risk", 1) >= true["mean_risk"]


@pytest.mark.parametrize(
    "claims",
    [
        '{ k = -5, reading = "any", columns = ["town", "job"] }',
        '{ k = true, reading = "any", columns = ["town", "job"] }',
        '{ k = 3, reading = "any", columns = [] }',
        '{ k = 3, reading = "any", columns = [1] }',
        '"x"',
    ],
)
def test_a_claim_that_says_nothing_is_refused(partly, halfmask, claims):
    halfmask("mask", "p.csv", *SUPPRESSED["any"], "-o", "r.csv")
    text = (partly / "r.toml").read_text()
    (partly / "r.toml").write_text(re.sub("claims = .*", f"claims = [{claims}]", text))
    found = halfmask("check", "r.csv")
    assert (found.code, "damaged" in found.err, "--k" in found.err) == (1, True, True)
    with pytest.raises(InputError, match="damaged"):
        hm.check("r.csv")


def test_a_claim_of_some_quasi_identifiers_is_no_check_of_the_file(partly, halfmask):
    halfmask("mask", "p.csv", *SUPPRESSED["any"], "-o", "r.csv")
    text = (partly / "r.toml").read_text()
    claim = 'claims = [{ k = 2, reading = "any", columns = ["town"] }]'
    (partly / "r.toml").write_text(re.sub("claims = .*", claim, text))
    found = halfmask("check", "r.csv")
    assert (found.code != 0, "--k" in found.err) == (True, True)


def test_promises_that_are_no_promises_are_refused(partly, halfmask):
    halfmask("mask", "p.csv", *SUPPRESSED["value"], "-o", "r.csv")
    text = (partly / "r.toml").read_text()
    (partly / "r.toml").write_text(
        re.sub("(?s)promises = .*?\n(?=recoding)", 'promises = ["x"]\n', text)
    )
    found = halfmask("check", "r.csv")
    assert (found.code, "damaged" in found.err) == (1, True)


def test_python_checks_claims_as_the_command_does(partly, halfmask):
    halfmask("mask", "p.csv", *SUPPRESSED["any"], "-o", "r.csv")
    (verdict,) = hm.check("r.csv")
    assert (verdict.model, verdict.holds, verdict.required) == ("local suppression", True, 3)
