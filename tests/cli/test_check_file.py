"""``check`` of a release file as it stands, whatever was promised of it."""

from __future__ import annotations

import json
import re

import pytest

import halfmask as hm

ROWS = ["age,town,home,w,ill"] + [
    f"{20 + i % 3},{'ab'[i % 2]},{i % 12},{10 + i % 5},{('flu', 'gout', 'none')[i % 3]}"
    for i in range(60)
]
SCHEMA = """
[table]
household = "home"
weight = "w"
[columns.age]
role = "quasi"
hierarchy = { intervals = [5, 20] }
[columns.town]
role = "quasi"
[columns.ill]
role = "sensitive"
"""


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("\n".join(ROWS) + "\n", encoding="utf-8")
    (tmp_path / "p.toml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


UNSEEN = {
    "household": (("--k", 3, "--k-households", 3, "--l", "ill=2"),
                  "household k-anonymity", "who lives with whom"),
    "weights": (("--population-risk", 0.05), "population risk", "whom rows stand"),
}  # fmt: skip


@pytest.mark.parametrize("what", ["household", "weights"])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_promise_that_rows_do_not_show_is_named_and_the_rest_checked(
    people, halfmask, what, name
):
    options, model, reason = UNSEEN[what]
    assert halfmask("anonymize", "p.csv", *options, "--method", "local", "-o", name).code == 0
    said = halfmask("check", name)
    assert (said.code, f"{model}: kept when it was released" in said.err) == (0, True)
    assert "hash is the one in the record" in said.err
    document = halfmask("check", name, "--json").json()
    assert [one["model"] for one in document["release"]["not_seen"]] == [model]
    assert reason in document["release"]["not_seen"][0]["reason"]
    assert document["smallest"] >= 1
    checked = [one["model"] for one in document["verdicts"]]
    assert ("distinct l-diversity" in checked) == (what == "household")
    assert model not in checked
    # Naming it asks for what is not there.
    asked = options[2:4] if what == "household" else options
    assert halfmask("check", name, *asked).code == 1
    # Rows that were changed are noticed all the same.
    if name.endswith("csv"):
        text = (people / name).read_text(encoding="utf-8")
        (people / name).write_text(text.replace("flu", "gout", 1), encoding="utf-8")
        assert halfmask("check", name).code == 2


DRAWN = {
    "private": (("--method", "marginals", "--epsilon", 1, "--domains", "book.csv"),
                "left under epsilon = 1, for tables that differ by"),
    "synthetic": (("--k", 2), "left without a formal guarantee"),
}  # fmt: skip


@pytest.mark.parametrize("what", DRAWN)
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_drawn_rows_say_how_they_left_and_which_they_are(
    tmp_path, monkeypatch, halfmask, what, name
):
    monkeypatch.chdir(tmp_path)
    rows = "sex,ill\n" + "f,flu\n" * 40 + "m,gout\n" * 40 + "m,flu\n" * 9 + "f,gout\n" * 9
    (tmp_path / "p.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "book.csv").write_text(
        "column,value\nsex,f\nsex,m\nill,flu\nill,gout\n", encoding="utf-8"
    )
    roles = ("--quasi", "sex", "--sensitive", "ill")
    options, left = DRAWN[what]
    made = halfmask("synthesize", "p.csv", *roles, *options, "-o", name)
    assert made.code == 0, made.err
    said = halfmask("check", name)
    assert (said.code, left in said.err) == (0, True)
    assert "hash is the one in the record" in said.err
    assert "Name --k" not in said.err
    assert left.removeprefix("left ") in halfmask("check", name, "--json").json()["release"]["left"]
    if name.endswith("csv"):
        assert "0." not in (tmp_path / "out.toml").read_text(encoding="utf-8")  # nothing measured
        text = (tmp_path / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("flu", "gout", 1), encoding="utf-8")
        assert halfmask("check", name).code == 2


def test_python_says_what_it_cannot_look_at(people, halfmask):
    halfmask("anonymize", "p.csv", "--population-risk", 0.05, "--method", "local", "-o", "o.csv")
    text = (people / "o.toml").read_text(encoding="utf-8")
    (people / "o.toml").write_text(re.sub("(?m)^smallest = .*$", "smallest = 1", text))
    with pytest.raises(hm.errors.InputError, match=r"population risk \(the people for whom"):
        hm.check("o.csv")
    assert hm.check("o.csv", hm.KAnonymity(2))[0].required == 2


def test_a_masked_file_without_a_promise_is_told_as_what_it_is(people, halfmask):
    halfmask("mask", "p.csv", "--step", "round age base=10", "-o", "m.csv")
    said = halfmask("check", "m.csv")
    assert (said.code, "states no promise of a model" in said.err) == (0, True)
    assert "smallest class" in said.err
    text = (people / "m.csv").read_text(encoding="utf-8")
    (people / "m.csv").write_text(text.replace("gout", "flu", 1), encoding="utf-8")
    said = halfmask("check", "m.csv")
    assert (said.code, "not those that were released" in said.err) == (2, True)
    assert halfmask("check", "m.csv", "--json").json()["holds"] is False


def test_a_release_without_its_record_asks_for_it(people, halfmask):
    halfmask("anonymize", "p.csv", "--k", 3, "--method", "local", "-o", "o.csv")
    (people / "o.toml").unlink()
    said = halfmask("check", "o.csv")
    assert (said.code, "o.toml, which says what was promised, is not beside it" in said.err) == (
        1, True,
    )  # fmt: skip
    assert halfmask("check", "o.csv", "--k", 3, "--quasi", "age,town").code == 0


@pytest.mark.parametrize("promises", ['"x"', "5", '[{ model = "k-anonymity", k = 3 }, 7]'])
def test_a_damaged_list_of_promises_is_refused(people, halfmask, promises):
    halfmask("anonymize", "p.csv", "--k", 3, "--method", "local", "-o", "o.csv")
    text = (people / "o.toml").read_text(encoding="utf-8")
    (people / "o.toml").write_text(re.sub("(?m)^promises = .*$", f"promises = {promises}", text))
    said = halfmask("check", "o.csv")
    assert (said.code, "damaged" in said.err) == (1, True)


def test_a_promise_of_a_later_version_is_named(people, halfmask):
    halfmask("anonymize", "p.csv", "--k", 3, "--method", "local", "-o", "o.csv")
    text = (people / "o.toml").read_text(encoding="utf-8")
    more = 'promises = [{ model = "k-anonymity", k = 3 }, { model = "later", q = 1 }]'
    (people / "o.toml").write_text(re.sub("(?m)^promises = .*$", more, text))
    said = halfmask("check", "o.csv", "--json").json()
    assert [one["model"] for one in said["verdicts"]] == ["k-anonymity"]
    assert said["release"]["not_seen"][0]["model"] == "later"
    assert json.dumps(said)
