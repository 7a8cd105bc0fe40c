"""The verbs of cells: what they say, and what they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import pytest
from patience import PATIENCE
from tests.protocol.town import Town

import halfmask as hm
from halfmask.cli.query import _silent
from halfmask.protocol.common_schema import Policy, Terms, commons_from, read_commons
from halfmask.protocol.keys import AskerKey, CellKey, new_issuer, read_key
from halfmask.protocol.parties.asker import Asker
from halfmask.protocol.parties.relay import Relay
from halfmask.protocol.publication import release_text
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.store.vault import CellVault, read_key_file
from halfmask.protocol.transport import RelayServer, Sender, drive

COMMONS = """
[query]
k = 2
[tables.people.columns]
city = { role = "quasi", values = ["Bourges", "Vierzon"] }
salary = { type = "integer", role = "sensitive" }
"""
ENROLL = (
    "cells", "enroll", "people.csv", "--issuer", "keys/issuer.json", "--person", "name",
)  # fmt: skip
TEXT = "SELECT city, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 2"


@pytest.fixture
def folder(tmp_path, halfmask, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "commons.toml").write_text(COMMONS)
    (tmp_path / "people.csv").write_text("name,city,salary\nann,Bourges,1\nben,Bourges,2\n")
    assert halfmask("cells", "keys", "keys", "--groups", 1).code == 0
    assert halfmask(*ENROLL, "-o", "enrolled").code == 0
    for name in ("ann", "ben"):
        home = f"{name}.cell"
        enroll = ("--credential", f"enrolled/{name}.json", "--commons", "commons.toml")
        assert halfmask("cell", "init", home, *enroll).code == 0
        assert halfmask("cell", "import", home, "people.csv", "--where", f"name={name}").code == 0
        assert halfmask("cell", "policy", home, "--k", 2).code == 0
    return tmp_path


def test_setting_up_a_cell_is_told_as_json(folder, halfmask):
    made = halfmask("cells", "keys", "more", "--groups", 2, "--json").json()
    assert (made["folder"], made["groups"], len(made["issuer"])) == ("more", 2, 64)
    arguments = ("--issuer", "more/issuer.json", "--person", "name", "-o", "people", "--json")
    enrolled = halfmask("cells", "enroll", "people.csv", *arguments).json()
    assert (enrolled["folder"], enrolled["people"], enrolled["groups"]) == ("people", 2, 2)
    given = ("--credential", "people/ann.json", "--commons", "commons.toml", "--json")
    new = halfmask("cell", "init", "eve.cell", *given).json()
    assert (new["verb"], new["cell"]) == ("cell init", "eve.cell")
    assert new["group"] in (0, 1)
    held = halfmask("cell", "import", "eve.cell", "people.csv", "--json").json()
    assert (held["table"], held["rows"]) == ("people", 2)


def test_enrolling_writes_one_private_file_per_person_and_no_rows(folder, halfmask):
    names = ["ann", "../ben", "zoë of the hill", "a/b", "..", "%2F"]
    lines = [f'"{name}",canary-{i},{i}' for i, name in enumerate(names)]
    (folder / "more.csv").write_text("name,city,salary\n" + "\n".join(lines))
    arguments = ("--issuer", "keys/issuer.json", "--person", "name", "-o", "out/more")
    assert halfmask("cells", "enroll", "more.csv", *arguments).code == 0
    files = list((folder / "out" / "more").iterdir())
    assert {unquote(file.name) for file in files} == {f"{name}.json" for name in names}
    assert len(files) == len(names)
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600
        assert "canary" not in file.read_text()
    assert (folder / "out" / "more").stat().st_mode & 0o077 == 0
    keys = [read_key(file, CellKey) for file in files]
    assert len({key.credential.serial for key in keys}) == len(names)


def waiting(*words: str) -> subprocess.Popen[str]:
    """A process of ours that has put its question and waits for cells."""
    asking = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", "halfmask", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(hm.__file__).resolve().parents[1])},
    )  # fmt: skip
    assert asking.stderr is not None
    assert "waiting" in asking.stderr.readline()
    return asking


def test_two_cells_answer_and_remember(folder, halfmask):
    server = RelayServer(Relay(RelayStore())).start()
    try:
        arguments = ("--relay", server.address, "--key", "keys/asker.json", "--commons",
                     "commons.toml", "--cells", "2", "--json")  # fmt: skip
        asking = waiting("ask", TEXT, *arguments)
        joined = halfmask(
            "cell", "join", "ann.cell", "ben.cell", "--relay", server.address, "--json"
        )
        assert joined.code == 0
        assert "ann.cell: contributed" in joined.err
        assert {"cell": "ben.cell", "did": "contributed"} in joined.json()["done"]
        out, _ = asking.communicate(timeout=PATIENCE)
    finally:
        server.stop()
    assert '"n": 2' in out
    assert '"silent": []' in out
    (entry,) = halfmask("cell", "log", "ann.cell", "--json").json()["entries"]
    assert (entry["outcome"], entry["level"], entry["revoked"]) == ("contributed", 0, False)
    again = halfmask("cell", "log", "ann.cell", "--revoke", entry["query"], "--json").json()
    assert again["entries"][0]["revoked"] is True
    assert halfmask("cell", "log", "ann.cell", "--revoke", "zz").code == 1


def test_two_cells_publish_their_rows(folder, halfmask):
    server = RelayServer(Relay(RelayStore())).start()
    arguments = ("--relay", server.address, "--key", "keys/asker.json", "--commons",
                 "commons.toml", "--cells", "2", "--k", "2", "-o")  # fmt: skip
    try:
        refused = halfmask("cells", "publish", "city", "height", *arguments, "release.csv")
        assert (refused.code, "height" in refused.err) == (1, True)
        assert halfmask("cells", "publish", "city", *arguments, "release.docx").code == 1
        asking = waiting("cells", "publish", "city", "salary", *arguments, "release.csv", "--json")
        assert halfmask("cell", "join", "ann.cell", "ben.cell", "--relay", server.address).code == 0
        out, _ = asking.communicate(timeout=PATIENCE)
    finally:
        server.stop()
    assert '"k-anonymity"' in out
    rows = (folder / "release.csv").read_text().splitlines()
    assert rows == ['"city","salary"', '"Bourges",1', '"Bourges",2']
    # The file stands for itself: no schema and no model is named.
    checked = halfmask("check", "release.csv", "--json")
    found = checked.json()
    assert (checked.code, found["holds"], found["smallest"]) == (0, True, 2)
    assert (found["release"]["unchanged"], found["release"]["rows"]) == (True, 2)
    promised = {one["model"]: one.get("k") for one in found["release"]["promises"]}
    assert promised == {"k-anonymity": 2, "personal k-anonymity": None}
    (folder / "release.csv").write_text('"city","salary"\n"Bourges",1\n"Bourges",3\n')
    assert halfmask("check", "release.csv").code == 2
    (folder / "other.toml").write_text("[columns]\ncity = 'quasi'\n")
    taken = halfmask("cells", "publish", "city", *arguments, "other.csv")
    assert (taken.code, "other.toml" in taken.err) == (1, True)


def test_no_file_is_written_where_too_few_cells_take_part(folder, halfmask):
    assert halfmask("cell", "policy", "ann.cell", "--k", 9).code == 0
    server = RelayServer(Relay(RelayStore())).start()
    try:
        asking = waiting(
            "cells", "publish", "city", "--relay", server.address, "--key", "keys/asker.json",
            "--commons", "commons.toml", "--cells", "2", "--k", "2", "-o", "release.csv",
        )  # fmt: skip
        assert halfmask("cell", "join", "ann.cell", "ben.cell", "--relay", server.address).code == 0
        _, said = asking.communicate(timeout=PATIENCE)
    finally:
        server.stop()
    assert (asking.returncode, "Too few people took part" in said) == (2, True)
    assert not list(folder.glob("release*"))


def published(halfmask, monkeypatch, folder, people, *, groups=1):
    """What publishing the rows of a town in memory says and writes, as text and as JSON."""
    columns = {
        "age": {"type": "integer", "role": "quasi"},
        "pay": {"type": "integer", "role": "sensitive"},
    }
    commons = commons_from({"tables": {"people": {"columns": columns}}})
    town = Town(people, commons, Terms(partition=8, frame=16, room=64, release="mondrian"), groups)
    found = town.ask(release_text(commons, ["age", "pay"], k=3))
    monkeypatch.setattr("halfmask.cli.cells.put_to_cells", lambda *_: (town.asker, found))
    arguments = ("cells", "publish", "age", "pay", "--relay", "http://127.0.0.1:1", "--key",
                 "keys/asker.json", "--commons", "commons.toml", "--k", "3", "-o",
                 "out.csv")  # fmt: skip
    said = [halfmask(*arguments, *more) for more in ((), ("--json",))]
    return said, {file.name: file.read_bytes() for file in folder.glob("out*")}


def test_what_is_printed_and_written_hides_whom_nothing_can_serve(folder, halfmask, monkeypatch):
    people = [{"age": 20 + i, "pay": i, "k": 3} for i in range(9)]
    hidden = ({"age": 20, "pay": 3, "k": None}, {"age": 99, "pay": 77, "k": 90, "l": 50})
    seen = [published(halfmask, monkeypatch, folder, [*people, one]) for one in hidden]
    assert seen[0] == seen[1]
    assert seen[0][0][0].code == 0
    assert "10 cells took part" in seen[0][0][0].err


def test_groups_are_named_and_those_without_rows_say_so(folder, halfmask, monkeypatch):
    people = [{"age": 30, "pay": i, "k": 3 if i % 3 else 90} for i in range(12)]
    (text, _), files = published(halfmask, monkeypatch, folder, people, groups=3)
    assert text.out.count("Promises") == 2
    assert "Promises of group 1" in text.out
    assert "Group 0: Too few people took part" in text.err
    assert files["out.csv"].decode().splitlines()[1:] == [
        f"30,{i}" for i in (1, 2, 4, 5, 7, 8, 10, 11)
    ]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"epsilon": 1.0}, "discrete Laplace noise of epsilon = 1 (scale 1), at most 3 up or down"),
        ({"noise": True}, "people reported their groups by chance"),
    ],
)
def test_noise_is_said_in_the_terminal_and_in_json(folder, halfmask, monkeypatch, chosen, words):
    commons = read_commons("commons.toml")
    terms = Terms(partition=64, frame=64, room=64, **chosen)
    town = Town([{"city": "Vierzon", "salary": i, "k": 1} for i in range(20)], commons, terms)
    for cell in town.cells:
        cell.home.demands = Policy(1, epsilon=2.0)
    found = town.ask(TEXT)
    monkeypatch.setattr("halfmask.cli.query.put_to_cells", lambda *_: (town.asker, found))
    arguments = ("ask", TEXT, "--relay", "http://127.0.0.1:1", "--key", "keys/asker.json",
                 "--commons", "commons.toml")  # fmt: skip
    text, document = (halfmask(*arguments, *more) for more in ((), ("--json",)))
    assert words in " ".join(text.err.split())
    assert words in document.out


def test_groups_of_cells_without_an_answer_are_named():
    asker = new_issuer(3).asker("office", 10**9)
    assert _silent(asker, {1: None}) == [0, 2]
    assert _silent(asker, {0: None, 1: None, 2: None}) == []


def test_a_cell_with_an_old_schema_does_not_use_up_the_tries_of_a_task(folder, halfmask):
    (folder / "old.toml").write_text(COMMONS + 'age = { type = "integer", role = "quasi" }\n')
    enroll = ("--credential", "enrolled/ann.json", "--commons", "old.toml")
    assert halfmask("cell", "init", "old.cell", *enroll).code == 0
    asker = Asker(read_key("keys/asker.json", AskerKey), read_commons("commons.toml"))
    question = asker.question(TEXT, time.time(), cells=2)
    server = RelayServer(Relay(RelayStore())).start()
    try:
        send = Sender(server.address)
        drive(asker.ask(question), send)
        for name in ("ann", "ben"):
            vault = CellVault(f"{name}.cell", read_key_file(f"{name}.cell.key"))
            drive(vault.cell().take_part(time.time()), send)
        tried = halfmask("cell", "join", "old.cell", "--relay", server.address, "--seconds", 1)
        assert "refused: protocol.authentication" in tried.err
        assert halfmask("cell", "join", "ann.cell", "--relay", server.address).code == 0
        found = drive(asker.collect(question), send)
        send.close()
    finally:
        server.stop()
    assert found[0].rows["n"].to_pylist() == [2]


def test_a_policy_is_shown_and_checked(folder, halfmask):
    given = ("--k", 5, "--l", 3, "--column", "salary=10,4", "--epsilon", 0.5, "--budget", 2)
    shown = halfmask("cell", "policy", "ann.cell", *given, "--json").json()["policy"]
    assert shown["k"] == 5
    assert shown["columns"] == {"salary": [10, 4]}
    assert shown["epsilon"] == 0.5
    for bad in (
        ("--k", 0),
        ("--k", 2, "--l", 0),
        ("--column", "salary"),
        ("--column", "salery=5"),
        ("--k", 2, "--epsilon", 0),
        ("--days", -1),
    ):
        assert halfmask("cell", "policy", "ann.cell", *bad).code == 1
    assert halfmask("cell", "policy", "ann.cell", "--json").json()["policy"] == shown


def test_one_demand_is_changed_and_the_others_stay(folder, halfmask):
    def stated(*given):
        return halfmask("cell", "policy", "ann.cell", *given, "--json").json()["policy"]

    assert stated("--epsilon", 0.5, "--budget", 2)["k"] == 2
    assert stated("--days", 90)["epsilon"] == 0.5
    assert stated("--column", "salary=4")["days"] == 90
    found = stated("--k", 3, "--column", "city=5,2")
    assert (found["k"], found["columns"]) == (3, {"salary": [4, 1], "city": [5, 2]})
    assert (found["budget"], found["answers"]) == (2, 1)


@pytest.mark.parametrize("arguments", [
    ("cell", "init", "ann.cell", "--credential", "enrolled/ann.json", "--commons", "commons.toml"),
    ("cell", "init", "new.cell", "--credential", "keys/asker.json", "--commons", "commons.toml"),
    ("cell", "init", "new.cell", "--credential", "enrolled/ann.json", "--commons", "people.csv"),
    ("cell", "import", "ann.cell", "commons.toml"),
    ("cell", "import", "ann.cell", "people.csv", "--table", "houses"),
    ("cell", "import", "ann.cell", "people.csv", "--where", "age=3"),
    ("cell", "log", "nobody.cell"),
    ("cells", "keys", "keys"),
    (*ENROLL, "-o", "enrolled"),
    (*ENROLL[:-1], "Name", "-o", "more"),
    (*ENROLL[:-1], "city", "-o", "more"),
    (*ENROLL[:4], "keys/asker.json", *ENROLL[5:], "-o", "more"),
    ("cells", "estimate", "--ram", "0"),
    ("cells", "estimate", "-o", "plots.pdf"),
    ("relay", "--store", "r.sqlite", "--issuer", "zz"),
    ("ask", TEXT, "--relay", "nowhere", "--key", "keys/asker.json", "--commons", "commons.toml"),
    ("ask", "SELECT 1", "--relay", "http://127.0.0.1:9", "--key", "keys/asker.json", "--commons",
     "commons.toml"),
])  # fmt: skip
def test_bad_input_is_one_sentence_and_code_1(folder, halfmask, arguments):
    found = halfmask(*arguments)
    assert found.code == 1, found.err
    assert "defect" not in found.err
    assert "Bourges" not in found.err
    if "new.cell" in arguments:
        assert not (folder / "new.cell").exists()


def test_simulate_and_estimate_speak_json(halfmask):
    done = halfmask("cells", "simulate", "--cells", 400, "--groups", 20, "--json").json()
    assert done["cells"] == 400
    assert set(done["seconds"]) == {"collection", "closing", "aggregation", "filtering"}
    rows = halfmask("cells", "estimate", "--cells", 1e4, "--json").json()["rows"]
    assert {row["merge"] for row in rows} == {"tree", "swap", "network"}
    assert done["credentials"] is False
    told = halfmask("cells", "simulate", "--cells", 200, "--groups", 9, "--plain", "--credentials")
    assert told.code == 0
    assert "credentials checked" in told.err
    assert halfmask("cells", "estimate", "--cells", 1e4).code == 0
