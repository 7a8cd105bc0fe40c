"""Every verb on the sample: tables for people, one document for programs, the files it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


@pytest.fixture
def released(halfmask, sample, folder):
    """A release of the sample as Parquet, with its recoding."""
    path = folder / "out.parquet"
    if not path.exists():
        outcome = halfmask(
            "anonymize", sample, "--k", 5, "--suppression", 0.05,
            "-o", path, "--report", folder / "out.html", "--recoding", folder / "recoding.json",
        )  # fmt: skip
        assert outcome.code == 0, outcome.err
    return path


def test_describe_proposes_a_schema_that_can_be_used(halfmask, sample, tmp_path):
    schema = tmp_path / "proposed.toml"
    outcome = halfmask("describe", sample, "-o", schema)
    assert outcome.code == 0, outcome.err
    assert "postcode" in outcome.out
    assert "[columns.age]" in schema.read_text(encoding="utf-8")
    again = halfmask("assess", sample, "--schema", schema)
    assert again.code == 0, again.err


def test_describe_as_json_and_on_stdout(halfmask, few):
    document = halfmask("describe", few, "--json").json()
    assert document["ok"] is True
    assert document["verb"] == "describe"
    import tomllib

    outcome = halfmask("describe", few, "-o", "-")
    assert "age" in tomllib.loads(outcome.out)["columns"]


def test_assess(halfmask, sample):
    outcome = halfmask("assess", sample)
    assert outcome.code == 0
    assert "rows alone in their class" in outcome.out
    document = halfmask("assess", sample, "--json").json()
    assert (document["ok"], document["verb"], document["rows"]) == (True, "assess", 600)
    assert document["highest_risk"] == 1.0


def test_check_says_no_with_exit_code_2(halfmask, few):
    outcome = halfmask("check", few, "--k", 5, "--l", "disease=3")
    assert outcome.code == 2
    assert "k-anonymity" in outcome.out
    document = halfmask("check", few, "--k", 5, "--json").json()
    assert document["holds"] is False
    assert document["verdicts"][0]["required"] == 5
    assert document["verdicts"][0]["achieved"] == 1


def test_check_by_roles_from_the_command_line(halfmask, tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("age;ill\n30;flu\n30;gout\n41;flu\n41;flu\n", encoding="utf-8")
    arguments = ("check", path, "--quasi", "age", "--sensitive", "ill")
    assert halfmask(*arguments, "--k", 2).code == 0
    assert halfmask(*arguments, "--k", 3).code == 2
    assert halfmask(*arguments, "--l", "ill=2").code == 2
    assert halfmask(*arguments, "--delimiter", ";", "--k", 2).code == 0


ALL_MODELS = {
    "personal k": ["--personal-k"],
    "distinct l": ["--l", "disease=2"],
    "entropy l": ["--l", "disease=1.5:entropy"],
    "recursive l": ["--l", "disease=2:recursive:4"],
    "alpha": ["--k", "3", "--alpha", "disease=0.9"],
    "t": ["--t", "disease=0.4"],
    "hierarchical t": ["--t", "disease=0.4:hierarchical"],
    "ordered t": ["--t", "salary=0.4:ordered"],
    "delta-disclosure": ["--delta-disclosure", "disease=3:ignored"],
    "beta": ["--beta", "disease=4"],
    "enhanced beta": ["--beta", "disease=4:enhanced"],
    "average risk": ["--average-risk", "0.1"],
    "sample uniques": ["--sample-uniques", "0.01"],
}


@pytest.mark.parametrize("options", ALL_MODELS.values(), ids=ALL_MODELS.keys())
def test_every_model_has_an_option(halfmask, few, options):
    outcome = halfmask("check", few, *options, "--json")
    assert outcome.code in (0, 2), outcome.err
    named = len([o for o in options if o.startswith("--")])
    models = [verdict["model"] for verdict in outcome.json()["verdicts"]]
    assert len(models) > named  # what people demand is checked behind them
    assert all(model.startswith("personal") for model in models[named:])


def test_models_against_a_population(halfmask, tmp_path):
    schema = '[columns.age]\nrole = "quasi"\n'
    for name, rows in (("people", "30\n30\n"), ("population", "30\n30\n30\n41\n")):
        (tmp_path / f"{name}.csv").write_text(f"age\n{rows}", encoding="utf-8")
        (tmp_path / f"{name}.toml").write_text(schema, encoding="utf-8")
    ask = ("check", tmp_path / "people.csv", "--population", tmp_path / "population.csv")
    assert halfmask(*ask, "--k-map", 3).code == 0
    assert halfmask(*ask, "--k-map", 4).code == 2
    assert halfmask(*ask, "--delta-presence", "0,0.7").code == 0
    assert halfmask(*ask, "--delta-presence", "0,0.6").code == 2


def test_where_nobody_demands_anything_a_promise_must_be_named(halfmask, tmp_path) -> None:
    (tmp_path / "people.csv").write_text("age\n30\n30\n", encoding="utf-8")
    (tmp_path / "people.toml").write_text('[columns.age]\nrole = "quasi"\n', encoding="utf-8")
    for verb in ("check", "anonymize"):
        found = halfmask(verb, tmp_path / "people.csv")
        assert found.code == 1
        assert "No promise" in found.err


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--l", "disease"], "COLUMN=NUMBER"),
        (["--l", "disease=many"], "number"),
        (["--t", "disease=0.2:equal:value:release:more"], "COLUMN=NUMBER"),
        (["--t", "disease=0.2:equal:value:more"], "release, original"),
        (["--alpha", "disease=0.5"], "--k"),
        (["--k-map", "3"], "--population"),
        (["--k", "0"], "k"),
        (["--t", "disease=7"], "t"),
        (["--l", "nowhere=2"], "nowhere"),
        (["--l", "disease=2:odd"], "kind"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_promises_are_explained(halfmask, few, options, word):
    outcome = halfmask("check", few, *options)
    assert outcome.code == 1, outcome.err
    assert word in outcome.err
    assert outcome.err.startswith("halfmask:")


def test_anonymize_writes_release_report_and_recoding(released, folder):
    rows = pq.read_table(released)
    assert 570 <= rows.num_rows <= 600
    assert set(rows.column_names).isdisjoint({"id", "k_i", "l_i"})
    assert {"age", "disease", "salary"} <= set(rows.column_names)
    assert (
        (folder / "out.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype")
    )
    assert json.loads((folder / "recoding.json").read_text(encoding="utf-8"))
    assert not list(folder.glob(".*"))


def test_a_release_passes_check(halfmask, sample, released):
    quasi = "age,sex,postcode,visit,education,occupation"
    assert halfmask("check", released, "--quasi", quasi, "--k", 5).code == 0
    assert halfmask("check", sample, "--k", 5).code == 2


def test_anonymize_as_json(halfmask, few):
    document = halfmask("anonymize", few, "--k", 3, "--suppression", 0.1, "--json").json()
    assert document["ok"] is True
    assert document["verb"] == "anonymize"
    assert all(verdict["holds"] for verdict in document["verdicts"])


def test_anonymize_to_stdout_gives_rows_only(halfmask, few):
    outcome = halfmask("anonymize", few, "--k", 3, "--suppression", 0.1, "-o", "-")
    assert outcome.code == 0, outcome.err
    rows = list(csv.DictReader(outcome.out.splitlines()))
    assert 54 <= len(rows) <= 60
    assert "id" not in rows[0]
    assert "Promises" in outcome.err


def test_json_and_stdout_exclude_each_other(halfmask, sample):
    outcome = halfmask("anonymize", sample, "--k", 3, "-o", "-", "--json")
    assert outcome.code == 1
    assert "stdout" in outcome.json()["message"]


def test_the_table_itself_is_never_written_over(halfmask, sample):
    before = sample.read_bytes()
    outcome = halfmask("anonymize", sample, "--k", 3, "-o", sample)
    assert outcome.code == 1
    assert sample.read_bytes() == before


def test_anonymize_locally(halfmask, sample, tmp_path):
    outcome = halfmask(
        "anonymize", sample, "--k", 5, "--method", "local", "--suppression", 0.05,
        "-o", tmp_path / "out.csv",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err


def test_an_impossible_promise_says_what_to_relax(halfmask, sample, tmp_path):
    out = tmp_path / "out.csv"
    outcome = halfmask("anonymize", sample, "--l", "disease=50", "-o", out, "--json")
    assert outcome.code == 2
    assert outcome.json()["code"].startswith("privacy")
    assert not out.exists()


def test_recode_new_rows(halfmask, sample, released, folder, tmp_path):
    out = tmp_path / "new.csv"
    recoding = folder / "recoding.json"
    outcome = halfmask("recode", sample, recoding, "--k", 5, "--suppression", 0.05, "-o", out)
    assert outcome.code == 0, outcome.err
    assert len(out.read_text(encoding="utf-8").splitlines()) - 1 == pq.read_table(released).num_rows
    strict = halfmask("recode", sample, recoding, "--k", 400, "-o", tmp_path / "no.csv")
    assert strict.code == 2
    assert not (tmp_path / "no.csv").exists()


def test_compare(halfmask, few, tmp_path):
    out = tmp_path / "out.parquet"
    assert halfmask("anonymize", few, "--k", 3, "--method", "mondrian", "-o", out).code == 0
    outcome = halfmask("compare", few, out)
    assert outcome.code == 0, outcome.err
    document = halfmask("compare", few, out, "--no-learn", "--json").json()
    assert document["rows"] == 60
    assert 0 < document["loss"] < 1
    assert [column["name"] for column in document["kept"]] == ["disease", "salary"]


def test_demo_does_the_whole_job(halfmask, tmp_path):
    folder = tmp_path / "demo"
    outcome = halfmask("demo", "--rows", 250, "-o", folder)
    assert outcome.code == 0, outcome.err
    assert f"The report is in {folder / 'report.html'}" in outcome.err
    told = outcome.out.splitlines() + outcome.err.splitlines()
    assert len(told) <= 30
    for word in ("Who stands out", "What was promised", "demanded 10", "What is left", "do next"):
        assert any(word in line for line in told), word
    names = {path.name for path in folder.iterdir()}
    assert {"people.anonymous.csv", "people.anonymous.toml", "people.csv", "people.toml",
            "report.html"} <= names  # fmt: skip
    assert halfmask("check", folder / "people.anonymous.csv").code == 0
    document = halfmask("demo", "--rows", 100, "-o", folder, "--json").json()
    assert document["release"]["verdicts"][0]["holds"] is True
    assert document["release"]["loss"] <= document["uniform"]["loss"]


def test_describe_finds_hierarchies_from_the_columns(halfmask, folder):
    path = folder / "iris.csv"
    source = Path(__file__).parents[1] / "coclustering" / "iris.csv"
    path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    schema = folder / "found.toml"
    outcome = halfmask("describe", path, "--hierarchies", "auto", "-o", schema)
    assert outcome.code == 0, outcome.err
    assert "bounds" in schema.read_text(encoding="utf-8")
    again = halfmask("anonymize", path, "--schema", schema, "--k", 5, "-o", folder / "iris.parquet")
    assert again.code == 0, again.err
    assert halfmask("describe", path, "--hierarchies", "found").code == 1


def test_synthesize_says_what_is_not_promised(halfmask, folder):
    path = folder / "iris.csv"
    source = Path(__file__).parents[1] / "coclustering" / "iris.csv"
    path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    names = "sepal_length,sepal_width,petal_length,petal_width,species"
    out, report = folder / "synthetic.csv", folder / "synthetic.json"
    outcome = halfmask(
        "synthesize", path, "--quasi", names, "--k", 20, "-o", out, "--report", report
    )
    assert outcome.code == 0, outcome.err
    assert "No formal guarantee" in outcome.err
    assert len(out.read_text(encoding="utf-8").splitlines()) == 151
    claimed = json.loads(report.read_text(encoding="utf-8"))["statement"]["claimed"]
    assert len(claimed) == 2  # of values, and of pairs
    assert all("at least 20 people" in one for one in claimed)
    document = halfmask(
        "synthesize", path, "--quasi", names, "--k", 20, "--rows", 9, "--json"
    ).json()
    assert (document["verb"], document["rows"]["published"]) == ("synthesize", 9)
    assert halfmask("synthesize", path, "--quasi", names, "--k", 200).code == 1


def test_anonymize_by_coclustering(halfmask, folder):
    path = folder / "iris.csv"
    source = Path(__file__).parents[1] / "coclustering" / "iris.csv"
    path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    names = "sepal_length,sepal_width,petal_length,petal_width,species"
    outcome = halfmask(
        "anonymize", path, "--quasi", names, "--k", 20, "--method", "cocluster",
        "--report", folder / "iris.html", "--recoding", folder / "none.json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "hybrid release" in outcome.err
    assert "no recoding" in outcome.err
    assert not (folder / "none.json").exists()


def test_cocluster_draws_saves_and_takes_a_saved_grid(halfmask, folder):
    path, grid, picture = folder / "iris.csv", folder / "grid.json", folder / "grid.svg"
    source = Path(__file__).parents[1] / "coclustering" / "iris.csv"
    path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    names = "sepal_length,sepal_width,petal_length,petal_width,species"
    outcome = halfmask(
        "cocluster", path, "--columns", names, "--bins", 3, "-o", grid, "--picture", picture
    )
    assert outcome.code == 0, outcome.err
    assert "3 of 150" in outcome.out
    assert "8 of 15" in outcome.out
    assert "it is no release" in outcome.err
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    coarse = halfmask("cocluster", grid, "--cells", 6, "--json").json()
    assert [one["parts"] for one in coarse["variables"]] == [2, 3]
    assert round(coarse["information"], 4) == 0.6355  # of the published form
    assert "Unknown columns: 'x'" in halfmask("cocluster", path, "--columns", "x").err
    assert "at most the 150" in halfmask("cocluster", grid, "--smallest", 151).err
    assert "end its name so" in halfmask("cocluster", grid, "--picture", folder / "a.png").err
    page = folder / "grid.html"
    three = ("--variables", "species,petal_length,petal_width")
    outcome = halfmask("cocluster", path, *three, "--picture", page)
    assert "go together beyond chance" in outcome.out
    assert "up to 0." in outcome.out  # intervals in their order, not single numbers
    assert 'id="level"' in page.read_text(encoding="utf-8")
    assert ".html" in halfmask("cocluster", path, *three, "--picture", picture).err


def visits(folder: Path) -> Path:
    """20 people of two rows each: half of them ask for 2 people, the others for nothing."""
    lines = [f"p{i},{30 + i},{town},{2 if i % 2 else ''}" for i in range(20) for town in "xy"]
    path = folder / "visits.csv"
    path.write_text("who,age,town,own\n" + "\n".join(lines) + "\n", encoding="utf-8")
    path.with_suffix(".toml").write_text(
        '[table]\nperson = "who"\n[policy]\nk = "own"\n[columns]\nwho = "identifier"\n'
        'town = "other"\n[columns.age]\nrole = "quasi"\nhierarchy = { intervals = [5, 20] }\n',
        encoding="utf-8",
    )
    return path


def test_a_file_that_promises_own_demands_alone_is_checked_by_its_record(halfmask, tmp_path):
    out = tmp_path / "out.csv"
    released = halfmask("anonymize", visits(tmp_path), "--method", "personal", "-o", out)
    assert "demanded 2: 10 people" in released.err
    outcome = halfmask("check", out)
    assert (outcome.code, "kept when it was released" in outcome.err) == (0, True)
    out.write_text(out.read_text(encoding="utf-8").replace("x", "z", 1), encoding="utf-8")
    outcome = halfmask("check", out)
    assert (outcome.code, "not those that were released" in outcome.err) == (2, True)


def test_who_states_no_demand_is_said_to_be_promised_nothing(halfmask, tmp_path):
    file, page = visits(tmp_path), tmp_path / "page.json"
    words = "About 10 of 20 people state no demand: nothing is promised to them."
    arguments = ("anonymize", file, "--method", "personal", "--report", page)
    assert words in halfmask(*arguments).err
    assert any(words in note for note in json.loads(page.read_text(encoding="utf-8"))["notes"])
    assert "promised" not in halfmask(*arguments, "--k", 2).err
    lines = file.read_text(encoding="utf-8").splitlines()
    stated = [line + "2" for line in lines[-4:-2]]
    for few in (lines[:-4], [*lines[:-4], *stated, *lines[-2:]]):
        file.write_text("\n".join(few) + "\n", encoding="utf-8")
        said = halfmask(*arguments).err
        assert "Who states no demand is promised nothing." in said  # of few no number is told
        assert "people state no demand" not in said


def test_who_is_left_out_and_what_is_lost_is_pointed_at(halfmask, tmp_path):
    rows = "age,sex\n" + "30,f\n" * 9 + "31,f\n" * 9 + "77,m\n"
    (tmp_path / "p.csv").write_text(rows, encoding="utf-8")
    asked = (
        "anonymize",
        tmp_path / "p.csv",
        "--quasi",
        "age,sex",
        "--k",
        5,
        "-o",
        tmp_path / "o.csv",
    )
    left = halfmask(*asked, "--suppression", 0.1, "--method", "optimal")
    assert "says who was left out, by group" in left.err
    assert "Nothing is left" not in left.err
    lost = halfmask(*asked, "--method", "optimal")
    assert "left out, by group" not in lost.err
    assert "Nothing is left of age, sex: fewer quasi-identifiers" in lost.err


def test_many_columns_are_not_all_printed(halfmask, tmp_path):
    names = [f"c{i}" for i in range(45)]
    rows = ",".join(names) + "\n" + ",".join(["1"] * 45) + "\n" + ",".join(["2"] * 45) + "\n"
    (tmp_path / "p.csv").write_text(rows * 1, encoding="utf-8")
    made = halfmask("anonymize", tmp_path / "p.csv", "--quasi", ",".join(names), "--k", 2,
                    "--method", "mondrian", "-o", tmp_path / "o.csv")  # fmt: skip
    assert "And 5 more columns: --report and --json list them all." in made.err
    assert "c44" not in made.out
    both = halfmask("compare", tmp_path / "p.csv", tmp_path / "o.csv", "--quasi", ",".join(names),
                    "--no-learn", "--attacks", 2)  # fmt: skip
    assert "numeric columns changed" in both.err
