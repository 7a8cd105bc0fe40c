"""``halfmask discriminate`` and the rates of ``compare`` as a privacy officer calls them."""

from __future__ import annotations

import json

import pytest

T41 = """subject,zip,age,salary,disease
1,35000,22,4,cancer
2,35000,35,5,diabetes
3,35000,63,3,malaria
4,35000,22,13,cancer
5,35000,22,8,cancer
6,35000,35,15,malaria
7,35000,45,9,malaria
8,35000,35,7,diabetes
9,35000,40,11,diabetes
"""


def close(value):
    return pytest.approx(value, abs=1e-4)


@pytest.fixture
def t41(tmp_path):
    file = tmp_path / "t41.csv"
    file.write_text(T41, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("keys", "rate", "kind"),
    [
        ("zip", 0, "zero"),
        ("age", 0.6667, "partial"),
        ("salary", 1, "identifier"),
        ("disease", 0.5, "sketchy"),
        ("age,disease", 0.7632, "partial"),
        ("age,disease,zip", 0.7632, "partial"),
    ],
)
def test_e4_rates_and_classes(halfmask, t41, keys, rate, kind):
    found = halfmask("discriminate", t41, "--target", "subject", "--key", keys, "--json").json()
    assert (found["format"], found["verb"]) == ("halfmask.discrimination/1", "discriminate")
    assert found["rate"]["rate"] == close(rate)
    assert found["rate"]["kind"] == kind
    assert (found["rate"]["rows"], found["rate"]["left_out"]) == (9, 0)
    assert found["rate"]["entropy"] == close(3.1699)
    assert "values" not in found["rate"]
    assert found["sets"] == []


def test_e4_values_with_all_that_stands_beside_them(halfmask, t41):
    options = ("--target", "subject", "--key", "disease,age", "--values")
    found = halfmask("discriminate", t41, *options, "--json").json()["rate"]["values"]
    held = {tuple(one["value"]): one for one in found}
    assert held["cancer", 22]["rate"] == close(0.8333)
    assert held["diabetes", 35]["rate"] == close(0.9299)
    assert held["malaria", 35]["rate"] == 1
    assert ("cancer", 35) not in held
    assert held["diabetes", 35]["count"] == 2
    assert held["diabetes", 35]["share"] == close(2 / 9)
    assert held["diabetes", 35]["unweighted"] == close(1 - 1 / 3.1699)
    assert held["diabetes", 35]["top"] == 0.5
    said = halfmask("discriminate", t41, *options).out
    assert "likeliest outcome" in said
    assert "diabetes, 35" in said


def test_figure_4_3_the_ranking_of_all_sets(halfmask, t41):
    outcome = halfmask("discriminate", t41, "--target", "subject", "--size", 4, "--json")
    sets = {tuple(one["columns"]): one for one in outcome.json()["sets"]}
    assert len(sets) == 15
    assert sets["age", "disease"]["rate"] == close(0.7632)
    assert sets["salary",]["kind"] == "identifier"
    assert sets["age", "salary"]["implied"]
    assert outcome.json()["sets"][0]["inflation"]["chance"]["value"] == 1
    among = halfmask("discriminate", t41, "--target", "subject", "--key", "age,zip", "--size", 1)
    assert among.code == 0
    assert "disease" not in among.out


def test_a_partition_of_any_column(halfmask, tmp_path):
    file = tmp_path / "t53.csv"
    rows = zip((22, 22, 22, 45, 63, 40, 35, 35, 32),
               ["colon", "stomach", "lung", "stomach", "diabetes", "aids", "aids", "flu", "lung"],
               strict=True)  # fmt: skip
    file.write_text("age,disease\n" + "".join(f"{a},{d}\n" for a, d in rows), encoding="utf-8")
    blocks = tmp_path / "blocks.toml"
    blocks.write_text(
        '[disease.blocks]\nother = ["diabetes", "flu", "aids"]\n'
        'cancer = ["colon", "lung", "stomach"]\n[age]\ncuts = [0, 30, inf]\n',
        encoding="utf-8",
    )
    options = ("discriminate", file, "--target", "disease", "--key", "age", "--json")
    assert halfmask(*options).json()["rate"]["rate"] == close(0.7002)
    # Below 30 are three cancers; of the six above, two.
    found = halfmask(*options, "--partition", blocks, "--values").json()["rate"]
    assert [one["value"] for one in found["values"]] == ["[0, 30[", "[30, inf["]
    assert found["entropy"] == close(0.9911)
    assert found["rate"] == close(1 - 6 / 9 * 0.9183 / 0.9911)
    ranked = halfmask("discriminate", file, "--target", "disease", "--partition", blocks, "--json")
    assert ranked.json()["sets"][0]["rate"] == close(found["rate"])


def test_suppressed_cells_count_as_asked(halfmask, tmp_path):
    file = tmp_path / "starred.csv"
    file.write_text("x,y\na,1\nb,2\na,*\nb,*\n", encoding="utf-8")
    options = ("discriminate", file, "--target", "x", "--key", "y", "--json")
    assert halfmask(*options).json()["rate"]["rate"] == close(0.5)
    dropped = halfmask(*options, "--suppressed", "drop").json()
    assert (dropped["rate"]["rate"], dropped["rate"]["left_out"]) == (1, 2)
    cuts = file.with_name("cuts.toml")
    cuts.write_text("[y]\ncuts = [0, 5]\n", encoding="utf-8")
    cut = halfmask(*options, "--suppressed", "drop", "--partition", cuts).json()
    assert cut["rate"]["kind"] == "zero"
    missing = halfmask(*options, "--suppressed", "missing", "--partition", cuts).json()
    assert missing["rate"]["kind"] == "zero"
    refused = halfmask(*options, "--partition", cuts)
    assert refused.code == 1
    assert "cannot be cut" in refused.err


def test_an_engine_gives_the_same(halfmask, sample):
    options = ("discriminate", sample, "--target", "disease", "--json")
    for more in (("--key", "age,sex", "--values"), ("--size", 2, "--key", "age,sex,education")):
        own = halfmask(*options, *more).json()
        other = halfmask(*options, *more, "--engine", "duckdb", "--memory-limit", "500MB").json()
        if own["rate"]:
            assert own["rate"]["inflation"] == other["rate"]["inflation"]
            own, other = ({v["count"]: v for v in d["rate"]["values"]} for d in (own, other))
            assert own.keys() == other.keys()
        else:
            pairs = zip(own["sets"], other["sets"], strict=True)
            assert all(a["rate"] == pytest.approx(b["rate"]) for a, b in pairs)


def test_pages_and_documents_are_written(halfmask, sample, tmp_path):
    page, document = tmp_path / "rate.html", tmp_path / "rate.json"
    options = ("discriminate", sample, "--target", "disease")
    assert halfmask(*options, "--key", "age", "--values", "-o", page).code == 0
    assert "likeliest outcome" in page.read_text()
    outcome = halfmask(*options, "--size", 2, "-o", document, "--json")
    assert json.loads(document.read_text())["sets"] == outcome.json()["sets"]
    assert halfmask(*options, "--size", 2, "-o", page).code == 0
    assert "Column sets" in page.read_text()


def test_only_the_first_lines_are_shown_to_people(halfmask, sample):
    outcome = halfmask("discriminate", sample, "--target", "disease", "--key", "age", "--values")
    assert "The first 20 of" in outcome.err
    assert outcome.out.count("%") <= 2 * 20 + 5


def test_a_target_that_never_varies(halfmask, t41):
    outcome = halfmask("discriminate", t41, "--target", "zip", "--key", "age", "--values")
    assert outcome.code == 0
    assert "undefined" in outcome.out
    found = halfmask("discriminate", t41, "--target", "zip", "--key", "age", "--json").json()
    assert (found["rate"]["rate"], found["rate"]["inflation"]["rate"]) == (None, None)
    sets = halfmask("discriminate", t41, "--target", "zip", "--size", 1, "--json").json()["sets"]
    assert {one["rate"] for one in sets} == {None}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "nothing", "--key", "age"), "Unknown columns: 'nothing'"),
        (("--target", "subject", "--key", "nothing"), "Unknown columns: 'nothing'"),
        (("--key", "age"), "--target"),
        (("--target", "subject", "--values"), "keys too"),
        (("--target", "subject", "--size", 0), "at least 1"),
        (("--target", "subject", "--suppressed", "drop"), "keys"),
        (("--target", "subject", "--key", "age", "--permutations", 1), "at least 2"),
        (("--target", "subject", "--key", "age", "--partition", "none.toml"), "cannot be read"),
    ],
)
def test_what_is_wrong_is_said(halfmask, t41, options, words):
    outcome = halfmask("discriminate", t41, *options)
    assert outcome.code == 1
    assert words in outcome.err


def test_compare_tells_rates_needs_and_inversions(halfmask, sample, tmp_path):
    strong, weak, page = (tmp_path / name for name in ("strong.csv", "weak.csv", "report.html"))
    for k, out in ((5, strong), (2, weak)):
        made = halfmask("anonymize", sample, "--k", k, "--method", "mondrian", "-o", out)
        assert made.code == 0
    needs = tmp_path / "needs.toml"
    needs.write_text(
        '[[need]]\nname = "care"\ntarget = "disease"\nkeys = ["age"]\nat_least = 0.99\n'
        "[need.partitions.age]\ncuts = [0, 40, inf]\n",
        encoding="utf-8",
    )
    options = ("compare", sample, strong, "--no-learn", "--attacks", 20)
    more = ("--needs", needs, "--need", "disease=sex", "--weaker", weak)
    outcome = halfmask(*options, *more, "-o", page)
    assert outcome.code == 2, outcome.err  # the need asks for more
    for words in ("overall information loss", "identity", "at least 0.99", "weaker"):
        assert words in outcome.out + outcome.err
    assert "from above" in outcome.err
    text = page.read_text()
    for words in ("How much of each column is still told", "not met", "weaker release"):
        assert words in text
    found = halfmask(*options, *more, "--json").json()
    assert [one["met"] for one in found["needs"]] == [None, False]
    rates = found["discrimination"]["rates"]
    assert {one["attack"] for one in rates} == {
        "identity", "homogeneity", "background", "skewness", "similarity",
    }  # fmt: skip
    assert 0 < found["discrimination"]["loss"] < 1
    assert isinstance(found["discrimination"]["inversions"], list)
    assert halfmask(*options, "--partition", needs).code == 1
