"""A cell's home on disk: encrypted, whole or not at all."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from halfmask.errors import AuthenticationError, InputError, SchemaError
from halfmask.protocol.common_schema import Policy
from halfmask.protocol.contribution import Participation
from halfmask.protocol.keys import new_issuer
from halfmask.protocol.store.vault import CellVault, new_key_file, read_key_file

if TYPE_CHECKING:
    from pathlib import Path

COMMONS: dict[str, Any] = {
    "tables": {
        "people": {
            "columns": {
                "name": {"role": "identifier"},
                "city": {"role": "quasi"},
                "salary": {"type": "integer", "role": "sensitive"},
            }
        }
    }
}
ENROLLED = new_issuer().enroll("Canary McCanary", 1 << 40)
ROWS = pa.table({"name": ["Canary McCanary"], "city": ["Canaryville"], "salary": [987654321]})


@pytest.fixture
def vault(tmp_path: Path) -> CellVault:
    made = CellVault.create(tmp_path / "alice.cell", bytes(32), ENROLLED, COMMONS)
    made.put_table("people", ROWS)
    made.put_policy(Policy(5, 3, {"salary": (10, 4)}))
    made.note(
        Participation(
            b"q" * 32, "Canary Office", "SELECT canary", 1, frozenset({"salary"}), "contributed", 2
        )
    )
    return made


def test_everything_comes_back(vault: CellVault, tmp_path: Path) -> None:
    again = CellVault(tmp_path / "alice.cell", bytes(32))
    assert again.tables()["people"].to_pylist() == ROWS.to_pylist()
    assert again.policy() == Policy(5, 3, {"salary": (10, 4)})
    assert [e.asker for e in again.log()] == ["Canary Office"]
    assert again.log()[0].aggregated == frozenset({"salary"})
    assert again.enrolled == ENROLLED


def test_nothing_of_the_person_is_readable_in_the_file(vault: CellVault, tmp_path: Path) -> None:
    content = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    for canary in (
        b"anary",
        b"salary",
        (987654321).to_bytes(4, "little"),
        ENROLLED.secret,
        ENROLLED.signing,
        ENROLLED.credential.serial,
    ):
        assert canary not in content


def test_a_wrong_key_and_a_changed_file_are_refused(vault: CellVault, tmp_path: Path) -> None:
    path = tmp_path / "alice.cell"
    with pytest.raises(AuthenticationError):
        CellVault(path, bytes([1] * 32))
    with pytest.raises(AuthenticationError):
        CellVault(path, "a passphrase")
    db = sqlite3.connect(path)
    with db:
        data = db.execute("SELECT data FROM things WHERE name = 'policy'").fetchone()[0]
        db.execute("UPDATE things SET data = ? WHERE name = 'table people'", (data,))
    db.close()
    with pytest.raises(AuthenticationError):
        vault.tables()


FORGOTTEN = {
    "an answer": "DELETE FROM things WHERE name LIKE 'entry %'",
    "a closing": "DELETE FROM things WHERE name LIKE 'closing %'",
    "the demands": "DELETE FROM things WHERE name = 'policy'",
    "the end": "DELETE FROM things WHERE name = 'head'",
    "a revocation": "UPDATE things SET data = (SELECT data FROM former WHERE former.name = "
    "things.name) WHERE name LIKE 'entry %'",
}


@pytest.mark.parametrize("statement", FORGOTTEN.values(), ids=FORGOTTEN)
def test_nothing_can_be_made_forgotten(vault: CellVault, tmp_path: Path, statement: str) -> None:
    """Whoever may write the file takes a row away, or puts an older one back."""
    path = tmp_path / "alice.cell"
    entry = Participation(b"new", "office", "text", 9, frozenset("s"), "contributed", 0)
    vault.note(entry)
    vault.settle(b"new", b"closing")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE former AS SELECT * FROM things")
    vault.revoke(entry)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)
    attempts = (
        vault.log,
        lambda: vault.note(replace(entry, query=b"other")),
        lambda: vault.settle(b"new", b"another"),
        lambda: CellVault(path, bytes(32)),
    )
    for attempt in attempts:
        with pytest.raises(AuthenticationError):
            attempt()


def test_a_cell_of_a_version_without_a_head_is_opened(vault: CellVault, tmp_path: Path) -> None:
    vault._put("format", b"halfmask.cell/2")
    with closing(sqlite3.connect(tmp_path / "alice.cell")) as db, db:
        db.execute("DELETE FROM things WHERE name = 'head'")
    again = CellVault(tmp_path / "alice.cell", bytes(32))
    entry = Participation(b"new", "office", "text", 9, frozenset("s"), "contributed", 0)
    assert again.note(entry) == entry
    assert entry in CellVault(tmp_path / "alice.cell", bytes(32)).log()


@pytest.mark.parametrize("phrase", ["correct horse", "x" * 32])
def test_passphrases_work_too_and_are_stretched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phrase: str
) -> None:
    stretched = []
    scrypt = hashlib.scrypt
    monkeypatch.setattr(
        hashlib, "scrypt", lambda *a, **more: stretched.append(a) or scrypt(*a, **more)
    )
    CellVault.create(tmp_path / "b.cell", phrase, ENROLLED, COMMONS)
    assert CellVault(tmp_path / "b.cell", phrase).policy() is None
    assert {a[0] for a in stretched} == {phrase.encode()}
    with pytest.raises(AuthenticationError):
        CellVault(tmp_path / "b.cell", phrase.encode())


def test_rows_must_be_what_the_common_schema_says(vault: CellVault) -> None:
    with pytest.raises(SchemaError, match="salary"):
        vault.put_table("people", pa.table({"name": ["x"], "city": ["y"], "salary": ["much"]}))
    with pytest.raises(SchemaError, match="city"):
        vault.put_table("people", pa.table({"name": ["x"], "salary": [1]}))
    with pytest.raises(SchemaError, match="people"):
        vault.put_table("houses", ROWS)
    assert vault.tables()["people"].to_pylist() == ROWS.to_pylist()


def test_a_cell_is_never_overwritten_and_must_exist(vault: CellVault, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        CellVault.create(tmp_path / "alice.cell", bytes(32), ENROLLED, COMMONS)
    with pytest.raises(InputError):
        CellVault(tmp_path / "nobody.cell", bytes(32))
    (tmp_path / "junk.cell").write_bytes(b"junk" * 1000)
    with pytest.raises(InputError):
        CellVault(tmp_path / "junk.cell", bytes(32))


def test_a_full_disk_changes_nothing(vault: CellVault, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def small(*given: Any, **more: Any) -> sqlite3.Connection:
        db = connect(*given, **more)
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
        return db

    monkeypatch.setattr(sqlite3, "connect", small)
    many = pa.table({"name": ["n"] * 5000, "city": ["c" * 20] * 5000, "salary": range(5000)})
    with pytest.raises(InputError, match="full"):
        vault.put_table("people", many)
    assert vault.tables()["people"].to_pylist() == ROWS.to_pylist()


def test_a_closing_is_settled_for_good(vault: CellVault, tmp_path: Path) -> None:
    assert vault.settle(b"q", b"first") == b"first"
    assert CellVault(tmp_path / "alice.cell", bytes(32)).settle(b"q", b"second") == b"first"
    assert vault.settle(b"another", b"second") == b"second"


def test_the_first_entry_on_a_query_stays_and_can_be_revoked(vault: CellVault) -> None:
    first = Participation(b"new", "office", "text", 9, frozenset("s"), "contributed", 0)
    assert vault.note(first) == first
    assert vault.note(replace(first, outcome="no policy")) == first
    vault.revoke(first)
    assert [e for e in vault.log() if e.query == b"new"] == [replace(first, revoked=True)]


def test_key_files(tmp_path: Path) -> None:
    key = new_key_file(tmp_path / "k")
    assert read_key_file(tmp_path / "k") == key
    with pytest.raises(InputError):
        new_key_file(tmp_path / "k")
    with pytest.raises(InputError):
        read_key_file(tmp_path / "none")


def test_a_cell_of_a_version_without_credentials_says_to_enroll_anew(
    vault: CellVault, tmp_path: Path
) -> None:
    vault._put("format", b"halfmask.cell/1")
    with pytest.raises(InputError, match="cells enroll"):
        CellVault(tmp_path / "alice.cell", bytes(32))
