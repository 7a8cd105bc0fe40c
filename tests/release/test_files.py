"""Files that their owner alone may read, whatever the mask of the process allows."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from halfmask.errors import InputError
from halfmask.ownership import make_private, private_folder
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.release.files import private_file, whole_file

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("generous_umask")


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_file_is_private_from_its_first_byte(tmp_path: Path) -> None:
    place = tmp_path / "risks.csv"
    with private_file(place) as temporary:
        assert rights(temporary) == 0o600
        temporary.write_text("row,risk\n")
    assert rights(place) == 0o600
    assert place.read_text() == "row,risk\n"


def test_a_private_file_takes_the_place_of_an_open_one(tmp_path: Path) -> None:
    place = tmp_path / "risks.csv"
    with whole_file(place) as temporary:
        temporary.write_text("old")
    assert rights(place) == 0o666
    with private_file(place) as temporary:
        temporary.write_text("new")
    assert rights(place) == 0o600


def test_a_database_is_made_private_or_tightened(tmp_path: Path) -> None:
    new, old = tmp_path / "new.sqlite", tmp_path / "old.sqlite"
    old.write_bytes(b"kept")
    for place in (new, old):
        make_private(place)
        assert rights(place) == 0o600
    assert old.read_bytes() == b"kept"


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot write"):
        make_private(tmp_path / "none" / "a.sqlite")


def test_folders_are_made_private_and_others_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o755)
    assert private_folder(mine / "a" / "b") == mine / "a" / "b"
    assert [rights(p) for p in (mine, mine / "a", mine / "a" / "b")] == [0o755, 0o700, 0o700]


def test_the_store_of_a_relay_and_its_log_are_private(tmp_path: Path) -> None:
    store = RelayStore(tmp_path / "relay.sqlite")
    store.begin()
    store.commit()
    found = {p.name: rights(p) for p in tmp_path.iterdir()}
    store.stop()
    assert "relay.sqlite-wal" in found
    assert set(found.values()) == {0o600}


def test_files_that_speak_of_original_rows_are_private(tmp_path: Path) -> None:
    import halfmask as hm

    people = hm.read(
        pa.table({"age": [31, 32, 33, 34] * 3, "job": ["a", "b", "c"] * 4}),
        hm.Schema(
            columns={
                "age": hm.Column("quasi", hierarchy=hm.hierarchies.Intervals([5, 10])),
                "job": hm.Column("quasi", hierarchy=hm.hierarchies.Flat()),
            }
        ),
    )
    hm.row_risks(people).write(tmp_path / "risks.csv")
    hm.row_risks(people).write(tmp_path / "risks.parquet")
    hm.assess(people).report(tmp_path / "assess.json")
    release = hm.anonymize(people, hm.KAnonymity(2), method="optimal")
    release.recoding.save(tmp_path / "recoding.json")
    hm.compare(people, release).report(tmp_path / "compare.html")
    assert {p.name: rights(p) for p in tmp_path.iterdir()} == dict.fromkeys(
        ("assess.json", "compare.html", "recoding.json", "risks.csv", "risks.parquet"), 0o600
    )
    release.write(tmp_path / "release.csv")
    release.report(tmp_path / "release.html")
    assert rights(tmp_path / "release.csv") == rights(tmp_path / "release.html") == 0o666
