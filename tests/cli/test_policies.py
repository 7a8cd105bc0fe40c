"""The verb ``policies``: invented demands, and what demands gain."""

from __future__ import annotations

import json

import pytest

from halfmask.cli.main import run


@pytest.fixture
def people(tmp_path):
    lines = [f"{20 + i % 40},{'fm'[i % 2]},{('flu', 'cold', 'none')[i % 3]}" for i in range(60)]
    (tmp_path / "people.csv").write_text("age,sex,disease\n" + "\n".join(lines) + "\n")
    (tmp_path / "people.toml").write_text(
        '[columns.age]\nrole = "quasi"\n[columns.sex]\nrole = "quasi"\n'
        '[columns.disease]\nrole = "sensitive"\n'
    )
    return tmp_path / "people.csv"


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        run([str(one) for one in arguments])
    return int(stop.value.code or 0)


def test_demands_are_dealt_and_written(people, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert called("policies", people, "--concern", "general", "-o", out, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    # 10.7%, 35.5% and 53.8% of 60 people.
    wanted = [{"k": 3, "people": 7}, {"k": 5, "people": 21}, {"k": 7, "people": 32}]
    assert document["demands"] == wanted
    assert out.read_text().splitlines()[0] == '"age","sex","disease","k_i"'


def test_gains_are_compared_and_reported(people, tmp_path, capsys):
    page = tmp_path / "gains.html"
    code = called(
        "policies", people, "--compare", "--concern", "personal", "--concern", "50/25/25",
        "--ks", "2,3,5", "--runs", 2, "--report", page, "--json",
    )  # fmt: skip
    assert code == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["concern"] for one in document["gains"]] == ["personal", "50/25/25"]
    assert all(one["over_deleting"]["mean"] > 0 for one in document["gains"])
    assert "What personal demands gain" in page.read_text()


def test_a_table_for_people(people, capsys):
    assert called("policies", people, "--compare", "--concern", "personal", "--runs", 1) == 0
    assert "over k high" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [("--ks", "3,x,7"), ("--concern", "nobody"), ("--compare", "--runs", "0"), ("--ks", "7,5,3")],
    ids=["no number", "unknown concern", "no runs", "falling"],
)
def test_what_cannot_be_meant_is_refused(people, arguments):
    assert called("policies", people, *arguments) == 1


def test_people_who_cannot_be_served_are_left_out_knowingly(people, tmp_path, capsys):
    rows = people.read_text().splitlines()
    demanding = [
        f"{rows[0]},k_i",
        *(f"{row},{61 if i == 0 else 2}" for i, row in enumerate(rows[1:])),
    ]
    people.write_text("\n".join(demanding) + "\n")
    schema = people.with_suffix(".toml")
    schema.write_text('[policy]\nk = "k_i"\n' + schema.read_text())
    assert called("anonymize", people, "--personal-k") == 2
    assert "rows 0" in capsys.readouterr().err
    out = tmp_path / "out.csv"
    code = called("anonymize", people, "--personal-k", "--on-infeasible", "suppress", "-o", out)
    assert code == 0
    assert len(out.read_text().splitlines()) == 60


def test_a_division_has_no_recoding_to_save(people, tmp_path, capsys):
    recoding = tmp_path / "r.json"
    code = called("anonymize", people, "--k", 2, "--method", "mondrian", "--recoding", recoding)
    assert code == 0
    assert "no recoding" in capsys.readouterr().err
    assert not recoding.exists()
