"""Another user of the machine: reads what the umask, or an earlier hand, left open."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest
from tests.attacks.conftest import SCHEMA, make_rows

import halfmask as hm
from halfmask.cli.main import run as halfmask
from halfmask.dp.budget import Pure
from halfmask.dp.ledger import BudgetLedger
from halfmask.errors import InputError
from halfmask.ownership import make_private, read_secret
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.store.vault import CellVault

OPEN = 0o666
PEOPLE = "name,salary\nada,48517\nbob,2\n"
COMMONS = """
[tables.people.columns.salary]
type = "integer"
role = "sensitive"
"""


pytestmark = pytest.mark.usefixtures("generous_umask")


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def run(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        halfmask([str(word) for word in words])
    assert ended.value.code in (0, None), words


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with an issuer, two people enrolled, and one cell."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "commons.toml").write_text(COMMONS)
    run("cells", "keys", tmp_path / "a" / "keys")
    issuer = tmp_path / "a" / "keys" / "issuer.json"
    out = tmp_path / "b" / "enrolled"
    run("cells", "enroll", tmp_path / "people.csv", "--issuer", issuer, "--person", "name",
        "-o", out)  # fmt: skip
    run("cell", "init", tmp_path / "ada.cell", "--credential", out / "ada.json",
        "--commons", tmp_path / "commons.toml")  # fmt: skip
    return tmp_path


def test_what_cells_begin_with_is_private_and_cannot_be_listed(home: Path) -> None:
    made = [p for name in ("a", "b") for p in (home / name, *(home / name).rglob("*"))]
    made += [home / "ada.cell", home / "ada.cell.key"]
    assert len(made) == 10
    assert {p.name: rights(p) for p in made} == {p.name: 0o700 if p.is_dir() else 0o600
                                                 for p in made}  # fmt: skip


def test_a_folder_that_others_list_takes_no_files_called_after_people(home: Path) -> None:
    shown = home / "shown"
    shown.mkdir(mode=0o755)
    with pytest.raises(SystemExit) as ended:
        halfmask(["cells", "enroll", str(home / "people.csv"), "--person", "name", "--issuer",
              str(home / "a" / "keys" / "issuer.json"), "-o", str(shown)])  # fmt: skip
    assert ended.value.code == 1
    assert not list(shown.iterdir())


@pytest.mark.parametrize("name", ["ada.cell", "ada.cell.key"])
def test_a_cell_that_was_left_open_is_closed_when_it_is_used(home: Path, name: str) -> None:
    (home / name).chmod(OPEN)
    run("cell", "policy", home / "ada.cell", "--k", 5)
    assert rights(home / name) == 0o600


def test_keys_that_were_left_open_are_closed_when_they_are_used(home: Path) -> None:
    issuer, ada = home / "a" / "keys" / "issuer.json", home / "b" / "enrolled" / "ada.json"
    issuer.chmod(OPEN)
    ada.chmod(OPEN)
    run("cells", "enroll", home / "people.csv", "--issuer", issuer, "--person", "name",
        "-o", home / "again")  # fmt: skip
    run("cell", "init", home / "two.cell", "--credential", ada, "--commons", home / "commons.toml")
    assert (rights(issuer), rights(ada)) == (0o600, 0o600)


def test_a_store_of_a_relay_and_its_logs_are_closed(tmp_path: Path) -> None:
    store = RelayStore(tmp_path / "relay.sqlite")
    # A relay that was killed leaves its log behind; whoever copied it back left it open.
    left = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    store.stop()
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(OPEN)
    again = RelayStore(tmp_path / "relay.sqlite")
    found = {p.name: rights(p) for p in tmp_path.iterdir()}
    again.stop()
    assert len(found) == 3
    assert set(found.values()) == {0o600}


def answer(ledger: Path) -> None:
    table = hm.read(pa.table(make_rows()), SCHEMA)
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 3"
    kept = hm.Ledger.read(ledger)
    hm.query({"people": table}, sql, ledger=kept)
    kept.write(ledger)


def spend(ledger: Path) -> None:
    if not ledger.exists():
        BudgetLedger.create(ledger, Pure(1))
    BudgetLedger.open(ledger).spend(Pure("1/4"), "a count")


@pytest.mark.parametrize("use", [answer, spend])
def test_a_ledger_that_was_left_open_is_closed_when_it_is_written(tmp_path: Path, use: Any) -> None:
    ledger = tmp_path / "some.ledger"
    use(ledger)
    assert rights(ledger) == 0o600
    ledger.chmod(OPEN)
    use(ledger)
    assert rights(ledger) == 0o600


def test_the_secret_of_a_ledger_is_closed_when_it_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"k" * 32)
    secret.chmod(OPEN)
    BudgetLedger.create(tmp_path / "some.ledger", Pure(1), key=secret)
    assert rights(secret) == 0o600


def test_what_names_people_whose_demands_fail_is_closed(tmp_path: Path) -> None:
    csv.write_csv(pa.table(make_rows()), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(
        '[table]\nperson = "id"\n[policy]\nk = "k_i"\n[columns.id]\nrole = "identifier"\n'
        '[columns.age]\nrole = "quasi"\n'
    )
    names = tmp_path / "names.csv"
    names.write_text("old")
    names.chmod(OPEN)
    with pytest.raises(SystemExit) as ended:
        halfmask(["check", str(tmp_path / "people.csv"), "--schema", str(tmp_path / "people.toml"),
              "--personal-k", "--failing", str(names)])  # fmt: skip
    assert ended.value.code == 2
    assert rights(names) == 0o600
    assert "17" in names.read_text()


def test_a_proposed_schema_lists_values_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    run("describe", tmp_path / "people.csv", "-o", tmp_path / "people.toml")
    assert rights(tmp_path / "people.toml") == 0o600


def test_what_an_audit_could_compute_is_for_the_controller(tmp_path: Path) -> None:
    rows = {"city": ["a"] * 6 + ["b"] * 7 + ["c"], "sex": (["f", "m"] * 7)}
    table = hm.read(pa.table(rows), {"columns": {"city": "quasi", "sex": "quasi"}})
    released = hm.tabulate(table, ["city", "sex"], threshold=3)
    audit = hm.audit_table(released)
    audit.report(tmp_path / "audit.json")
    audit.write(tmp_path / "audit.csv")
    assert json.loads((tmp_path / "audit.json").read_text())
    assert [rights(tmp_path / f"audit.{kind}") for kind in ("json", "csv")] == [0o600, 0o600]


def test_clusters_of_original_values_are_for_their_owner(tmp_path: Path) -> None:
    rows = {"a": [f"v{i % 4}" for i in range(80)], "b": [f"w{i % 4 // 2}" for i in range(80)]}
    table = hm.read(pa.table(rows), {"columns": {"a": "quasi", "b": "quasi"}})
    found = hm.cocluster(table)
    place = tmp_path / "trees"
    for file in found.write_hierarchies(place):
        Path(file).chmod(OPEN)
    assert rights(place) == 0o700
    assert {rights(Path(file)) for file in found.write_hierarchies(place)} == {0o600}


def test_somebody_elses_open_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "relay.sqlite"
    theirs.touch(mode=OPEN)
    monkeypatch.setattr(Path, "chmod", lambda *_: (_ for _ in ()).throw(PermissionError()))
    with pytest.raises(InputError, match="belongs to somebody else"):
        make_private(theirs)
    assert read_secret(theirs) == b""  # a secret that the system lays out is read as it is


def test_a_vault_is_read_by_its_owner_alone_from_the_start(home: Path) -> None:
    assert CellVault(home / "ada.cell", bytes.fromhex((home / "ada.cell.key").read_text()))
