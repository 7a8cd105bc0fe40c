"""What holds of every mask, whatever it does."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections import Counter
from datetime import date
from html import unescape

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError, UnsatisfiableError
from halfmask.masking.masks import known_masks, metavar, read_step
from halfmask.masking.methods.pseudonyms import vault_tokens
from halfmask.masking.run import read_like

KEY = b"sixteen bytes ok"
M = hm.masks
ALL = {
    "top-code": M.TopCode("pay", share=0.05),
    "bottom-code": M.BottomCode("age", value=25),
    "round": M.Round("pay", base=100, how="random"),
    "noise": M.Noise(["pay", "age", "fee"], level=0.2, kind="correlated"),
    "date-shift": M.DateShift("day", days=10),
    "rank-swap": M.RankSwap(["pay", "fee", "day"], within=0.1),
    "record-swap": M.RecordSwap(["region", "town"], similar="sex", household="id"),
    "shuffle": M.Shuffle("pay", given=["age"]),
    "pram": M.Pram("job", keep=0.7),
    "randomize": M.Randomize("sex", epsilon=1),
    "microaggregate": M.Microaggregate(["pay", "age"], k=3),
    "local-suppression": M.LocalSuppression(k=2, columns=["age", "sex", "job"]),
    "suppress": M.Suppress(["job", "fee"]),
    "sample": M.Sample(0.5, by="sex"),
    "massc": M.Massc(calibrate="sex"),
    "partly-synthetic": M.PartlySynthetic(["pay", "ill", "day"], k=5, draws=2),
    "hybrid": M.Hybrid(["pay", "age", "fee"], k=4),
    "anatomy": M.Anatomy("ill", l=2),
    "bucketize": M.Bucketize("ill", l=2),
    "guard": M.Guard("ill", guard="guarded"),
    "cloak": M.Cloak("lat", "lon", k=4),
    "pseudonym": M.Pseudonym("id", key=KEY),
}
every = pytest.mark.parametrize("name", ALL)


def test_every_mask_is_tried_here():
    assert [mask.name for mask in known_masks()] == list(ALL)


@every
def test_a_seed_repeats_it(people, name):
    one, other = (hm.mask(people, ALL[name], seed=7) for _ in range(2))
    assert one.to_arrow().equals(other.to_arrow())
    assert one.steps == other.steps
    assert "seed" not in one.to_dict()["parameters"]


@every
def test_it_says_what_it_did(people, name, tmp_path):
    release = hm.mask(people, ALL[name], seed=1)
    document = release.to_dict()
    (step,) = document["steps"]
    assert document["format"] == "halfmask.masked/1"
    assert step["mask"] == name
    assert all(step[word] for word in ("protects", "open", "sentence"))
    release.report(tmp_path / "report.html")
    page = unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert step["protects"] in page
    release.write(tmp_path / "out.parquet")
    claims = name in ("local-suppression", "cloak")
    said = "claimed is k-anonymity" if claims else "no formal promise"
    assert said in document["outcome"]


@every
def test_identifiers_do_not_leave(people, name):
    release = hm.mask(people, ALL[name], seed=1)
    if name != "pseudonym":
        assert "id" not in release.to_arrow().column_names
        return
    column = next(c for c in release.columns if c.name == "id")
    assert "not anonymous" in column.action
    originals = set(people.arrow["id"].to_pylist())
    assert not originals & set(release.to_arrow()["id"].to_pylist())
    assert any("not anonymous" in note for note in release.notes)


@every
def test_missing_stays_missing_and_types_stay(singles, name):
    mask = ALL[name]
    if name == "pseudonym":
        return
    if name == "record-swap":
        mask = M.RecordSwap(["region", "town"], similar="sex")
    release = hm.mask(singles, mask, seed=3)
    rows = release.to_arrow()
    blanks = name == "local-suppression"
    for column in rows.column_names:
        if column not in singles.arrow.column_names:
            continue
        before, after = singles.arrow[column], rows[column]
        if len(rows) == len(singles) and not blanks:
            assert after.null_count == before.null_count, column
        if not pa.types.is_dictionary(before.type) and name != "microaggregate":
            assert after.type == before.type, column


@every
def test_its_release_is_repeated(people, name, tmp_path):
    if name == "pseudonym":
        return
    hm.mask(people, ALL[name], seed=1).report(tmp_path / "release.json")
    assert read_like(tmp_path / "release.json") == (ALL[name],)


@pytest.mark.parametrize("mask", known_masks(), ids=lambda mask: mask.name)
def test_it_is_declared(mask):
    assert re.fullmatch(r"[a-z-]+", mask.name)
    assert metavar(mask).startswith(mask.name)
    assert mask.words.does.endswith(".")
    assert (inspect.getmodule(mask).__doc__ or "").count("Definition:") == 1
    assert (inspect.getmodule(mask).__doc__ or "").count("Source:") == 1
    assert getattr(hm.masks, mask.__name__) is mask


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("top-code income share=0.01", M.TopCode("income", share=0.01)),
        ("bottom-code 'monthly pay' value=10", M.BottomCode("monthly pay", value=10)),
        ("noise a b level=0.5 kind=correlated", M.Noise(["a", "b"], level=0.5, kind="correlated")),
        ("microaggregate income k=5", M.Microaggregate("income", k=5)),
        ("local-suppression k=3 importance=a,b", M.LocalSuppression(3, importance=["a", "b"])),
        ("record-swap region town household=hh", M.RecordSwap(["region", "town"], household="hh")),
        ("cloak lat longitude=lon k=5", M.Cloak("lat", "lon", 5)),
        ("top-code day value=2020-05-01", M.TopCode("day", value="2020-05-01")),
        ("sample share=0.5", M.Sample(0.5)),
    ],
)
def test_text_states_a_mask(text, mask):
    assert read_step(text) == mask


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topcode income", "did you mean 'top-code'"),
        ("round income", "round needs base"),
        ("round income base=x", "takes a number"),
        ("pram job matrix=1", "state it in Python"),
        ("pseudonym id key=secret", "state it in Python"),
        ("top-code a b share=0.1", "takes one column"),
        ("", "A step is a mask"),
        ("round 'income base=2", "A step is a mask"),
    ],
)
def test_bad_text_is_answered_in_one_sentence(text, words):
    with pytest.raises(InputError, match=words):
        read_step(text)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (lambda: M.TopCode("pay"), "either share= or value="),
        (lambda: M.TopCode("pay", share=0.1, value=3), "either share= or value="),
        (lambda: M.TopCode("pay", share=2), "from 0 to 1|above 0 to 1"),
        (lambda: M.RankSwap("pay", within=0), "above 0"),
        (lambda: M.Microaggregate("pay", k=1), "at least 2"),
        (lambda: M.DateShift("day", days=99_999_999_999), "at most 3,652,058 days"),
        (lambda: M.Noise("pay", kind="loud"), "one of additive"),
        (lambda: M.Pram("job"), "either keep= or matrix="),
        (lambda: M.Pram("job", matrix=[[0.5, 0.4], [0, 1]]), "rows 1.*add up to 1"),
        (lambda: M.Pram("job", matrix=[[1, 0, 0], [0, 1, 0]]), "as many columns as rows"),
        (lambda: M.Pram("job", matrix=[[1.5, -0.5], [0, 1]]), "add up to 1"),
        (lambda: M.Pram("job", matrix="abc"), "rows of probabilities"),
        (lambda: M.Pseudonym("id"), "needs a key"),
        (lambda: M.Pseudonym("id", key="short"), "16 random bytes"),
        (lambda: M.Pseudonym("id", key_file="nowhere.key").apply, None),
    ],
)
def test_bad_parameters_are_refused(mask, words):
    if words is None:
        mask()
        return
    with pytest.raises(InputError, match=words) as caught:
        mask()
    assert "short" not in str(caught.value)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (M.TopCode("job", share=0.1), "holds text; it takes numbers, dates"),
        (M.Noise("sex"), "holds text; it takes numbers"),
        (M.Noise("day"), "holds date32.*takes numbers"),
        (M.DateShift("age"), "takes dates"),
        (M.DateShift("job"), "distinct value.* are no dates"),
        (M.RankSwap("nowhere"), "not in the table"),
        (M.Round("id", base=2), "never leaves|holds text"),
        (M.Pram("id", keep=0.5), "never leaves"),
        (M.Pseudonym("sex", key=KEY), "tokens of so few"),
        (M.Anatomy("sex", l=2), "quasi-identifier"),
        (M.LocalSuppression(2, columns="age", importance="sex"), "not among"),
        (M.RecordSwap("town", similar="town"), "cannot say who is alike"),
        (M.Sample(0.5, weight="age"), "already"),
        (M.Cloak("age", "lon", k=2, cell="pay"), "already"),
        (M.Pram("job", matrix=[[1, 0], [0, 1]]), "matrix has 2 rows.* 4 values"),
        (M.Pram("job", matrix={"a": {"a": 1.0}}), "lacks 3 values"),
        (M.TopCode("day", value="May"), "a date"),
    ],
)
def test_a_mask_on_the_wrong_column_is_refused(people, mask, words):
    with pytest.raises(InputError, match=words):
        hm.mask(people, mask)


@pytest.mark.parametrize("matrix", [[], {}, {"a": 1}, {"a": [1]}, 5, "abc"])
def test_what_is_no_matrix_is_refused(matrix):
    with pytest.raises(InputError, match=r"matrix = .* rows of probabilities"):
        M.Pram("job", matrix=matrix)


@pytest.mark.parametrize("held", ["a", "c"])
def test_a_matrix_may_name_values_that_no_row_holds(held):
    # Serving or refusing would tell whether anybody holds them.
    swap = {"a": {"b": 1.0}, "b": {"a": 1.0}, "c": {"c": 1.0}}
    people = hm.read({"job": [held, "b", None]}, schema={"job": "quasi"})
    shown = hm.mask(people, M.Pram("job", matrix=swap)).to_arrow()["job"].to_pylist()
    assert Counter(shown) == Counter(["b" if held == "a" else "c", "a", None])
    numbers = hm.read({"n": [1, 2]}, schema={"n": "quasi"})
    with pytest.raises(InputError, match="cannot hold"):
        hm.mask(numbers, M.Pram("n", matrix={"1": {"1": 1}, "2": {"2": 1}, "x": {"x": 1}}))
    more = M.Pram("n", matrix={"1": {"3": 1}, "2": {"2": 1}, "3": {"1": 1}})
    assert sorted(hm.mask(numbers, more).to_arrow()["n"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("content", ["[" * 100_000, None])
def test_a_vault_that_is_no_file_of_tokens_is_refused(tmp_path, content):
    place = tmp_path / "vault.json"
    if content is None:
        os.mkfifo(place, 0o600)  # reading it would wait for ever
    else:
        place.write_text(content, encoding="utf-8")
        place.chmod(0o600)
    with pytest.raises(InputError, match=r"no vault of tokens|no file"):
        vault_tokens(place, "id", pa.array(["a"]))


def test_dates_outside_the_calendar_are_refused():
    people = hm.read(
        {"day": pa.array([2932890] * 99, pa.int32()).cast(pa.date32()), "age": list(range(99))},
        schema={"day": "other", "age": "quasi"},
    )
    mask = M.DateShift("day", days=300)
    with pytest.raises(InputError, match="beyond the years"):
        hm.mask(people, mask)


def test_texts_that_are_dates_are_moved():
    people = hm.read(
        {"day": ["2020-01-05", None, "2020-03-01"], "age": [1, 2, 3]},
        schema={"day": {"role": "other", "kind": "nominal"}, "age": "quasi"},
    )
    found = hm.mask(people, M.DateShift("day", days=3), seed=1).to_arrow()["day"]
    assert found.null_count == 1


def test_no_step_and_what_is_none_are_refused(people):
    with pytest.raises(InputError, match="No step is named"):
        hm.mask(people)
    with pytest.raises(ParameterError, match="its parameters"):
        hm.mask(people, M.TopCode)
    with pytest.raises(ParameterError, match="masks, such as"):
        hm.mask(people, 3)
    with pytest.raises(ParameterError, match="demands"):
        hm.mask(people, ALL["round"], demands="maybe")
    with pytest.raises(AttributeError, match="has no 'Blur'; it has Anatomy"):
        _ = M.Blur


def test_an_undeclared_column_stops_everything():
    people = hm.read({"age": [1, 2], "note": ["a", "b"]}, schema={"age": "quasi"})
    with pytest.raises(SchemaError, match="'note' is not declared"):
        hm.mask(people, M.Round("age", base=2))


def test_the_schema_states_steps(tmp_path):
    file = tmp_path / "people.toml"
    file.write_text(
        '[mask]\nsteps = ["round pay base=10", { mask = "top-code", column = "pay", value = 50 }]\n'
        '[columns.age]\nrole = "quasi"\n[columns.pay]\nrole = "other"\n',
        encoding="utf-8",
    )
    schema = hm.Schema.read(file)
    assert hm.Schema.from_dict(schema.to_dict()).mask == schema.mask
    people = hm.read({"age": [1, 2], "pay": [12, 77]}, schema=schema)
    release = hm.mask(people)
    assert sorted(release.to_arrow()["pay"].to_pylist()) == [10, 50]
    (tmp_path / "again.toml").write_text(schema.to_toml(), encoding="utf-8")
    assert hm.Schema.read(tmp_path / "again.toml").mask == schema.mask
    with pytest.raises(SchemaError, match="must be a list"):
        hm.Schema.from_dict({"mask": {"steps": "round"}, "columns": {"age": "quasi"}})


def test_tokens_are_those_of_hmac(people):
    import hmac

    rows = hm.mask(people, ALL["pseudonym"]).to_arrow()
    own = hmac.digest(KEY, b"id", "sha256")
    expected = {hmac.digest(own, f"p{i}".encode(), "sha256").hex()[:32] for i in range(100)}
    assert set(rows["id"].to_pylist()) == expected


def test_a_vault_gives_the_same_value_the_same_random_token_over_runs(people, tmp_path):
    vault = tmp_path / "own" / "vault.json"
    vault.parent.mkdir()
    step = M.Pseudonym("id", vault=str(vault))
    one, other = (hm.mask(people, step, seed=seed) for seed in (1, 2))
    tokens = one.to_arrow()["id"].to_pylist()
    assert sorted(tokens) == sorted(other.to_arrow()["id"].to_pylist())
    assert vault.stat().st_mode & 0o077 == 0
    held = json.loads(vault.read_text())["columns"]["id"]
    assert set(held) == {f"p{i}" for i in range(100)}
    assert set(held.values()) == set(tokens)
    assert all(re.fullmatch("[0-9a-f]{32}", token) for token in tokens)
    assert any("not anonymous" in note and "vault" in note for note in one.notes)
    # Random: another vault gives none of them, and the vault itself is told by nothing.
    elsewhere = hm.mask(people, M.Pseudonym("id", vault=str(vault.with_name("b.json"))))
    assert not set(elsewhere.to_arrow()["id"].to_pylist()) & set(tokens)
    assert not any(name in json.dumps(one.to_dict()) for name in ("p17", held["p17"]))


def test_a_vault_that_others_may_read_or_that_is_none_is_refused(people, tmp_path):
    vault = tmp_path / "vault.json"
    hm.mask(people, M.Pseudonym("id", vault=str(vault)))
    vault.chmod(0o644)
    with pytest.raises(InputError, match="Others may read the vault"):
        hm.mask(people, M.Pseudonym("id", vault=str(vault)))
    vault.chmod(0o600)
    vault.write_text('{"format": "another"}')
    with pytest.raises(InputError, match="is no vault of tokens"):
        hm.mask(people, M.Pseudonym("id", vault=str(vault)))
    with pytest.raises(InputError, match="a key or a vault, and not both"):
        M.Pseudonym("id", key=KEY, vault=str(vault))


def test_a_vault_behind_a_link_is_the_vault_itself(people, tmp_path, monkeypatch):
    own, out = tmp_path / "own", tmp_path / "out"
    own.mkdir()
    out.mkdir()
    link = out / "vault.json"
    link.symlink_to(own / "vault.json")
    release = hm.mask(people, M.Pseudonym("id", vault=str(link)))
    assert link.is_symlink()
    assert (own / "vault.json").stat().st_mode & 0o077 == 0
    release.write(out / "out.csv")  # beside a link, which holds nothing
    monkeypatch.setenv("HOME", str(own))
    again = hm.mask(people, M.Pseudonym("id", vault="~/vault.json"))
    assert set(again.to_arrow()["id"].to_pylist()) == set(release.to_arrow()["id"].to_pylist())


def test_no_release_is_written_beside_its_vault(people, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "own")
    release = hm.mask(people, M.Pseudonym("id", vault=str(tmp_path / "own" / "vault.json")))
    for folder in ("own", "here"):
        with pytest.raises(InputError, match="stands beside the release"):
            release.write(tmp_path / folder / "out.csv")
    assert [one.name for one in (tmp_path / "own").iterdir()] == ["vault.json"]
    release.write(tmp_path / "out.csv")


def test_no_document_tells_where_key_or_vault_stand(people, tmp_path):
    own = tmp_path / "cellar-of-mine"
    own.mkdir()
    (own / "key").write_bytes(KEY)
    steps = (
        M.Pseudonym("id", vault=str(own / "vault.json")),
        M.Pseudonym("id", key_file=str(own / "key")),
        M.DateShift("day", key_file=str(own / "key")),
        M.DateShift("day", key=KEY),  # else repeated by other days, silently
    )
    for place, step in enumerate(steps):
        release = hm.mask(people, step)
        report = tmp_path / f"{place}.json"
        release.report(report)
        release.report(tmp_path / "page.html")
        assert "cellar-of-mine" not in report.read_text() + (tmp_path / "page.html").read_text()
        assert "cellar-of-mine" not in json.dumps(release.to_dict()) + repr(release.steps)
        with pytest.raises(InputError, match="had a key or vault"):
            read_like(report)


@pytest.mark.parametrize(
    "columns",
    [
        [],
        {"id": ["p1"]},
        {"id": {"p1": 7}},
        {"id": {"p1": "p1"}},
        {"id": {"p1": "0" * 32, "p2": "0" * 32}},
    ],
)
def test_a_damaged_vault_is_refused(people, tmp_path, columns):
    vault = tmp_path / "vault.json"
    vault.touch(mode=0o600)
    vault.write_text(json.dumps({"format": "halfmask.vault/1", "columns": columns}))
    with pytest.raises(InputError, match="is damaged"):
        hm.mask(people, M.Pseudonym("id", vault=str(vault)))


def test_a_folder_is_no_vault(people, tmp_path):
    with pytest.raises(InputError, match="is a folder: name a file"):
        hm.mask(people, M.Pseudonym("id", vault=str(tmp_path)))


def test_a_key_moves_people_alike_in_every_table(people):
    mask = M.DateShift("day", key=KEY)
    one, other = (hm.mask(people, mask, seed=seed).to_arrow() for seed in (1, 2))

    def sort(rows):
        return rows.sort_by([("lat", "ascending")])["day"].to_pylist()

    assert sort(one) == sort(other)


def nobodys_rows(rows):
    """All on one day; of the last ones nobody knows whose they are."""
    ids = ["a", "a", "b", *[None] * rows]
    table = {"id": ids, "day": [date(2020, 6, 1)] * len(ids), "age": [1] * len(ids)}
    schema = {
        "table": {"person": "id"},
        "columns": {"id": "identifier", "day": "other", "age": "quasi"},
    }
    return hm.read(table, schema)


@pytest.mark.parametrize(("rows", "words"), [(1, "in 1 row:"), (4, "in 4 rows:")])
def test_a_key_does_not_move_rows_that_are_nobodys(rows, words):
    with pytest.raises(SchemaError, match=f"'id' is missing {words} say whose they are"):
        hm.mask(nobodys_rows(rows), M.DateShift("day", key=KEY))


def test_dates_that_are_nobodys_move_each_for_itself():
    """Else whoever knows one of them knows by how much all others were moved."""
    days = hm.mask(nobodys_rows(40), M.DateShift("day", days=30), seed=1).to_arrow()["day"]
    assert len(days.unique()) > 20


def test_dates_of_a_person_keep_their_distance(people):
    rows = hm.mask(people, M.DateShift("day"), M.Pseudonym("id", key=KEY), seed=4).to_arrow()
    spans = []
    for table in (people.arrow, rows):
        whole = (
            table.select(["id", "day"])
            .group_by("id")
            .aggregate([("day", "min"), ("day", "max"), ("day", "count")])
        )
        whole = whole.filter(pc.equal(whole["day_count"], 2))
        low, high = (whole[c].cast(pa.int32()).to_numpy() for c in ("day_min", "day_max"))
        spans.append(sorted((high - low).tolist()))
    assert spans[0] == spans[1]


def test_cells_of_a_cloak_become_a_map():
    places = hm.read(
        {"lat": [48.1, 48.1, 48.1], "lon": [-1.6, -1.6, -1.6]}, {"lat": "quasi", "lon": "quasi"}
    )
    cells = hm.mask(places, M.Cloak("lat", "lon", k=2)).tables["cells"]
    found = json.loads(M.geojson(cells))
    ((ring,),) = (one["geometry"]["coordinates"] for one in found["features"])
    assert found["type"] == "FeatureCollection"
    assert min(x for x, _ in ring) <= -1.6 <= max(x for x, _ in ring)
    assert min(y for _, y in ring) <= 48.1 <= max(y for _, y in ring)
    assert ring[0] == ring[-1]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("hybrid pay k=100000", "^hybrid: no group of 100,000 people"),
        ("local-suppression k=5000", r"^local-suppression: \d+ people are fewer than k = 5,000:"),
        (
            "cloak lat longitude=lon k=5000",
            r"^cloak: .* people with a place \(\d+\) than k.*lower k",
        ),
        ("noise pay level=1e308", "^level = .{1,40} is not possible"),
        (f"noise pay level={10**308}", "^level = a number of about 308 digits is not possible"),
        ("randomize job epsilon=1000000", "above 0 to 20"),
        ("round x1 x2 x3 base=2", "^round: columns 'x1', 'x2', 'x3' are not in the table, which"),
    ],
)
def test_refusals_say_who_refuses_and_what_to_do(people, step, words):
    with pytest.raises((InputError, UnsatisfiableError), match=words) as caught:
        hm.mask(people, step)
    assert len(str(caught.value).splitlines()) == 1


def test_what_never_leaves_is_named_for_each_reason():
    data = {"age": [1, 2], "w": [1, 2]}
    people = hm.read(data, schema={"columns": {"age": "quasi", "w": "drop"}})
    with pytest.raises(SchemaError, match="is dropped"):
        hm.mask(people, "round w base=2")


def test_the_note_of_no_guarantee_fits_what_steps_claim():
    people = hm.read({"age": [1, 1, 2, 2]}, schema={"age": "quasi"})
    release = hm.mask(people, "local-suppression k=2")
    assert release.statement["claimed"]
    assert any("is claimed but what the steps claim" in note for note in release.notes)
    plain = hm.mask(people, "round age base=1")
    assert not plain.statement["claimed"]
    assert any("No formal guarantee is claimed:" in note for note in plain.notes)
