"""``halfmask mask`` on the command line."""

from __future__ import annotations

import json

import pytest

from halfmask.cli.main import run

PLACES = [(48.1, 2.1), (48.2, 2.2), (52.4, 13.3), (52.5, 13.4)]


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{20 + i % 5},{1000 + 10 * i},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "people.csv").write_text("age,pay,job\n" + "\n".join(lines) + "\n")
    (tmp_path / "people.toml").write_text(
        '[columns.age]\nrole = "quasi"\n[columns.pay]\nrole = "sensitive"\n'
        '[columns.job]\nrole = "quasi"\n'
    )
    return tmp_path


def shell(*arguments) -> int:
    with pytest.raises(SystemExit) as stop:
        run(arguments)
    return stop.value.code


def test_steps_are_applied_and_told(people, capsys):
    steps = ("--step", "top-code pay share=0.1", "--step", "pram job keep=0.9")
    drawn = ("--k", "2", "--seed", "1")  # other draws may leave one person alone
    given = ("people.csv", *steps, *drawn, "-o", "out.csv", "--report", "out.json")
    assert shell("mask", *given, "--figures", "mine.json") == 0
    told = capsys.readouterr()
    assert "top-code" in told.out
    assert (people / "out.csv").read_text().startswith('"age","pay","job"')
    document = json.loads((people / "out.json").read_text())
    assert [step["mask"] for step in document["steps"]] == ["top-code", "pram"]
    assert document["verdicts"][0]["holds"]
    mine = json.loads((people / "mine.json").read_text())
    assert mine["steps"][0]["columns"]["pay"]["mean"][0] == pytest.approx(1195)
    assert (people / "mine.json").stat().st_mode & 0o077 == 0
    assert (
        shell(
            "mask", "people.csv", "--like", "out.json", "--seed", "1", "-o", "again.csv", "--json"
        )
        == 0
    )
    again = json.loads(capsys.readouterr().out)
    assert [step["mask"] for step in again["steps"]] == ["top-code", "pram"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--step", "top-code job share=0.1"), 1, "holds text"),
        (("--step", "topcode pay"), 1, "did you mean 'top-code'"),
        ((), 1, "No step is named"),
        (("--step", "round pay base=10", "--like", "x.json"), 1, "give one of them"),
        (("--like", "x.json"), 1, "cannot be read"),
        (("--step", "noise age level=1", "--k", "30"), 2, "do not keep k-anonymity"),
        (("--step", "pseudonym job"), 1, "needs a key"),
        (("--step", "round pay base=10", "-o", "people.csv"), 1, "table itself"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(people, capsys, arguments, code, words):
    before = sorted(people.iterdir())
    given = arguments if "-o" in arguments else (*arguments, "-o", "out.csv")
    assert shell("mask", "people.csv", *given) == code
    assert words in capsys.readouterr().err
    assert sorted(people.iterdir()) == before


def test_a_vault_does_not_stand_beside_the_release(people, capsys):
    (people / "people.toml").write_text(
        '[table]\nperson = "id"\n[columns]\nid = "identifier"\nage = "quasi"\n', encoding="utf-8"
    )
    (people / "named.csv").write_text("id,age\np1,30\np2,40\n", encoding="utf-8")
    given = ("mask", "named.csv", "--schema", "people.toml", "--step")
    assert shell(*given, "pseudonym id vault=vault.json", "-o", "out.csv") == 1
    assert "stands beside the release" in capsys.readouterr().err
    assert not (people / "vault.json").exists()
    (people / "own").mkdir()
    assert shell(*given, "pseudonym id vault=own/vault.json", "-o", "own/") == 1
    assert shell(*given, "pseudonym id vault=own/vault.json", "-o", "out.csv") == 0
    assert "p1" not in (people / "out.csv").read_text()
    assert (people / "own" / "vault.json").stat().st_mode & 0o077 == 0


def test_areas_of_a_cloak_are_drawn(tmp_path, capsys):
    rows = "".join(f"{lat},{lon},1\n" for lat, lon in PLACES)
    (tmp_path / "places.csv").write_text(f"lat,lon,n\n{rows}")
    roles = '[columns]\nlat = "quasi"\nlon = "quasi"\nn = "other"\n'
    (tmp_path / "places.toml").write_text(roles)
    source, drawn = str(tmp_path / "places.csv"), tmp_path / "areas.geojson"
    step = "cloak lat longitude=lon k=2 cell=area"
    assert shell("mask", source, "--step", step, "--map", str(drawn)) == 0
    features = json.loads(drawn.read_text())["features"]
    assert sorted(one["properties"]["rows"] for one in features) == [2, 2]
    for one in features:  # each place stands inside a square that is drawn
        (ring,) = one["geometry"]["coordinates"]
        west, east = min(x for x, _ in ring), max(x for x, _ in ring)
        south, north = min(y for _, y in ring), max(y for _, y in ring)
        inside = [p for p in PLACES if south <= p[0] <= north and west <= p[1] <= east]
        assert len(inside) >= 2
    drawn.unlink()
    capsys.readouterr()
    assert shell("mask", source, "--step", "round n base=2", "--map", str(drawn)) == 1
    assert "no step is one" in capsys.readouterr().err
    assert shell("mask", source, "--step", step, "--map", source) == 1
    assert not drawn.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--figures", "same.json", "--map", "same.json"), "named twice"),
        (("--map", "places.toml"), "is read too"),  # found beside the table
        (("--schema", "own.toml", "--map", "own.toml"), "is read too"),
        (("--policies", "asked.csv", "--figures", "asked.csv"), "is read too"),
        (("--step", "pseudonym id key_file=key.txt", "--map", "key.txt"), "is read too"),
        (("--map", "-"), "Only -o writes to stdout"),
        (("--figures", "-"), "Only -o writes to stdout"),
        (("-o", "out.csv", "--map", "out.cells.csv"), "named twice"),  # what a cloak adds
        (("--step", "cloak lat2 longitude=lon2 k=2", "--map", "m.geojson"), "2 steps are"),
    ],
)
def test_no_output_is_written_over_another_or_what_is_read(
    tmp_path, monkeypatch, capsys, arguments, words
):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"p{i},{x},{y},{x},{y}\n" for i, (x, y) in enumerate(PLACES))
    roles = '[table]\nperson = "id"\n[columns]\nid = "identifier"\n'
    roles += "".join(f'{name} = "quasi"\n' for name in ("lat", "lon", "lat2", "lon2"))
    texts = {
        "places.csv": f"id,lat,lon,lat2,lon2\n{rows}", "places.toml": roles, "own.toml": roles,
        "asked.csv": "id,k\np0,2\n", "key.txt": "sixteen bytes ok",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    step = "cloak lat longitude=lon k=2 cell=area"
    assert shell("mask", "places.csv", "--step", step, *arguments) == 1
    assert words in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == texts


def test_help_lists_every_mask(capsys):
    assert shell("mask", "--help") == 0
    told = " ".join(capsys.readouterr().out.split())
    for name in ("top-code COLUMN", "local-suppression", "pseudonym COLUMN", "cloak COLUMN"):
        assert name in told


def test_what_a_step_found_is_told_to_the_controller_and_in_no_document(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    # Whoever is alone in "c" and 9 shares the row of three others once both cells are blank.
    rows = ["a,1"] * 4 + ["b,2"] * 3 + ["c,9", "d,8", "e,7"]
    (tmp_path / "t.csv").write_text("\n".join(["job,age", *rows]) + "\n")
    (tmp_path / "t.toml").write_text('[columns]\njob = "quasi"\nage = "quasi"\n')
    given = ("t.csv", "--schema", "t.toml", "--step", "local-suppression k=3 job age")
    for report in ("r.json", "r.html"):
        assert shell("mask", *given, "--report", report, "--figures", f"{report}.mine.json") == 0
        told = capsys.readouterr().out
        assert "fewest possible" in told
        assert "gap" in told
        # Of age, 7 of 10 cells stay; those that are blank are close to nothing.
        (line,) = [one for one in told.splitlines() if "age" in one and "30.0%" in one]
        assert "70.0%" in line
        assert "fewest" not in (tmp_path / report).read_text()
    (step,) = json.loads((tmp_path / "r.json.mine.json").read_text())["steps"]
    assert (step["facts"]["suppressed"], step["facts"]["fewest_possible"]) == (6, 6)
    assert step["facts"]["gap"] == 0
    assert step["columns"]["job"] == {"changed": 0.3, "shares_moved": pytest.approx(0.3)}
    assert step["columns"]["age"]["missing"] == [0, 3]


def test_like_repeats_the_promises_of_the_release(tmp_path):
    rows = ["id,age", *(f"p{n},{20 + n // 4}" for n in range(12))]
    for name, more in (("a.csv", []), ("b.csv", ["q,70", "r,70"])):
        (tmp_path / name).write_text("\n".join([*rows, *more]) + "\n", encoding="utf-8")
    (tmp_path / "s.toml").write_text(
        '[table]\nperson = "id"\n[columns.age]\nrole = "quasi"\nkind = "numeric"\n', "utf-8"
    )
    report = str(tmp_path / "r.json")

    def masked(file, out, *more):
        schema = ["--schema", str(tmp_path / "s.toml"), "-o", str(tmp_path / out)]
        return shell("mask", str(tmp_path / file), *schema, *more)

    step = ["--step", "round age base=1"]
    assert masked("a.csv", "o.csv", *step, "--k", "4", "--report", report) == 0
    assert masked("a.csv", "p.csv", "--like", report) == 0
    assert masked("b.csv", "q.csv", "--like", report) == 2
    assert not (tmp_path / "q.csv").exists()
    other = ("--k", "2")  # takes their place
    assert masked("b.csv", "q.csv", "--like", report, *other) == 0
