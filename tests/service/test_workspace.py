"""Private files, names from the browser, and schemas that would name a file."""

from __future__ import annotations

import json
import stat

import pytest
from serving import PEOPLE

from halfmask.errors import SchemaError
from halfmask.sample import write
from halfmask.service.verbs import LoadedTable
from halfmask.service.workspace import Workspace, changed_schema
from halfmask.table.schema import Schema

BAD_NAMES = [
    "../../../etc/passwd",
    "/etc/passwd",
    "..\\..\\boot.ini",
    "..",
    ".",
    "",
    ".bashrc",
    "a\0b",
    "a\nb.csv",
    "x" * 500 + ".csv",
    "people.csv/../../x",
]


@pytest.fixture
def space():
    made = Workspace()
    yield made
    made.close()


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_a_name_from_the_browser_stays_in_the_folder(space, name):
    place = space.room(name)
    assert place.parent.parent == space.folder
    assert place.resolve().is_relative_to(space.folder.resolve())
    assert len(place.name) <= 80
    place.write_text("x")
    assert not place.name.startswith(".")


def test_a_name_keeps_what_says_the_kind(space):
    assert space.room("Meine Leute.csv.gz").name == "Meine_Leute.csv.gz"
    assert space.room("x" * 500 + ".parquet").name.endswith(".parquet")


def test_the_folder_is_private_and_goes(space):
    assert stat.S_IMODE(space.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(space.room("a").parent.stat().st_mode) == 0o700
    space.close()
    assert not space.folder.exists()


def test_the_users_own_file_is_never_removed(space, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text(PEOPLE)
    loaded = LoadedTable()
    space.become(loaded.open(own))
    space.become(loaded.open(write(space.new_folder(), 20, seed=1)))
    assert own.exists()


def test_a_file_that_is_replaced_goes(service):
    service.upload(PEOPLE)
    first = service.space.table_facts.path
    service.upload(PEOPLE, "other.csv")
    assert not first.exists()
    assert service.space.table_facts.name == "other.csv"
    assert len(list(service.space.folder.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\0\0", b"PAR1 no"], ids=repr)
def test_a_file_that_cannot_be_read_leaves_the_former_table(opened, content):
    before = opened.call("GET", "/api/state").json()["table"]
    reply = opened.call("POST", "/api/table?name=x.csv", content=content)
    if reply.status_code == 202:
        while (job := reply.json()["job"])["state"] == "working":
            reply = opened.call("GET", f"/api/jobs/{job['id']}?wait=5")
        assert job["state"] == "failed"
        assert job["result"]["code"] == "input"
        assert str(opened.space.folder) not in job["result"]["message"]
    else:
        assert reply.status_code == 400
    assert opened.call("GET", "/api/state").json()["table"] == before
    assert len(list(opened.space.folder.iterdir())) == 1


def test_the_former_hierarchy_in_a_file_is_kept_and_a_new_one_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x;*\ny;*\n")
    column = {"role": "quasi", "hierarchy": {"csv": "a.csv"}}
    now = Schema.from_dict({"columns": {"a": column, "b": {"role": "quasi"}}}, folder=tmp_path)
    asked = {"columns": {"a": {**column, "weight": 2.0}, "b": {"role": "other"}}}
    found = changed_schema(asked, now)
    assert found.columns["a"].hierarchy == now.columns["a"].hierarchy
    assert found.folder == tmp_path
    for name, path in (("a", "/etc/passwd"), ("b", "a.csv"), ("c", "../x")):
        new = {"columns": {name: {"role": "quasi", "hierarchy": {"csv": path}}}}
        with pytest.raises(SchemaError, match="cannot be named from the page"):
            changed_schema(new, now)
        nested = {"columns": {name: {"role": "quasi", "hierarchy": {"csv": {"path": path}}}}}
        with pytest.raises(SchemaError, match="cannot be named from the page"):
            changed_schema(nested, now)


def test_columns_alone_are_looked_at_too():
    asked = {"a": {"role": "quasi", "hierarchy": {"csv": "/etc/passwd"}}}
    with pytest.raises(SchemaError, match="cannot be named from the page"):
        changed_schema(asked, Schema())


def test_the_text_of_a_schema_file_cannot_name_a_file_either(opened):
    for text in (
        '[age]\nrole = "quasi"\nhierarchy = { csv = "/etc/passwd" }',
        '[columns.age]\nrole = "quasi"\nhierarchy = { csv = { path = "/etc/passwd" } }',
        '[table]\nperson = "age"\n[policy]\nfile = "/etc/passwd"',
    ):
        failed = opened.run("PUT", "/api/schema", json={"toml": text})
        assert failed["code"] == "input.schema"
        assert "cannot be named from the page" in failed["message"]


def test_a_policy_file_cannot_be_named():
    asked = {"columns": {"a": "quasi"}, "table": {"person": "p"}, "policy": {"file": "/etc/passwd"}}
    with pytest.raises(SchemaError, match="policy file cannot be named"):
        changed_schema(asked, Schema())
    own = Schema({}, person="p", policy={"k": "k"}, policy_file="own.csv")
    kept = {"table": {"person": "p"}, "policy": {"k": "k", "file": "own.csv"}}
    assert changed_schema(kept, own).policy_file == "own.csv"


@pytest.mark.parametrize("letter", ["\u4e2d", "\U00020000"], ids=["three bytes", "four bytes"])
def test_a_long_name_of_wide_letters_is_a_name_for_the_disk(service, letter):
    found = service.upload(PEOPLE, f"{letter * 200}.csv")
    assert found["ok"]
    assert found["name"].endswith(f"{letter}.csv")


def test_what_is_sent_is_not_its_own_schema(space, monkeypatch):
    """As where file systems take people.TOML and people.toml for one file."""
    monkeypatch.setattr("halfmask.table.read._beside", lambda _: pytest.fail("looked beside it"))
    place = space.room("people.TOML")
    place.write_text(PEOPLE)
    assert LoadedTable().open_sent(place, 1000).proposed


@pytest.mark.parametrize(
    "text", ["columns = [", "a = " + "[" * 50_000, "\ud800 = 1"], ids=["cut", "deep", "no text"]
)
def test_a_fault_in_a_schemas_text_tells_no_place_on_the_disk(opened, text):
    body = json.dumps({"toml": text})
    headers = {"Content-Type": "application/json"}
    failed = opened.run("PUT", "/api/schema", content=body, headers=headers)
    assert failed["code"] == "input.schema"
    assert str(opened.space.folder) not in failed["message"]
    assert "schema.toml" in failed["message"]


def test_the_rows_of_a_former_table_do_not_stay_in_memory(opened):
    import gc
    import weakref

    opened.call("POST", "/api/links", json={"file": "schema.toml", "download": True})
    table = weakref.ref(opened.loaded.table(opened.space.table_facts))
    opened.upload(PEOPLE, "other.csv")
    opened.call("POST", "/api/links", json={"file": "schema.toml"})
    gc.collect()
    assert table() is None
