"""``anonymize`` inside PostgreSQL: from table to table, in one transaction, grants kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from places import MODELS, SCHEMA, load, multiset, people, same

import halfmask as hm
from halfmask.engines import postgres as server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def visits(postgres: str) -> Iterator[hm.Table]:
    load(postgres, "visits", people())
    yield hm.read(postgres, SCHEMA, table="visits")
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE IF EXISTS visits, visits_public CASCADE")


def tables(address: str) -> set[str]:
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {name for (name,) in found.fetchall()}


@pytest.mark.usefixtures("in_place")
def test_postgres_gives_the_release_of_memory(visits: hm.Table, postgres: str) -> None:
    settings = {"method": "local", "suppression": 0.05}
    memory = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, **settings)
    with hm.anonymize(visits, *MODELS, **settings) as release:
        same(memory, release)
        before = tables(postgres)
        release.write(postgres, table="visits_public")
        assert tables(postgres) == before | {"visits_public"}
    with psycopg.connect(postgres) as connection:
        cursor = connection.execute("SELECT * FROM visits_public")
        rows = cursor.fetchall()
        connection.execute("GRANT SELECT ON visits_public TO PUBLIC")
    assert sum(multiset(memory.to_arrow()).values()) == len(rows)
    assert multiset(memory.to_arrow()) == {row: rows.count(row) for row in rows}
    with hm.anonymize(visits, *MODELS, **settings) as release:
        release.write(postgres, table="visits_public")  # in place of the first
    granted = "SELECT has_table_privilege('public', 'visits_public', 'SELECT')"
    with psycopg.connect(postgres) as connection:
        (kept,) = connection.execute(granted).fetchone() or (False,)
    assert kept


@pytest.mark.usefixtures("in_place")
def test_the_order_of_written_rows_tells_nothing(postgres: str) -> None:
    """It is the same whoever was inserted first, and rows that are alike stand together."""
    rows = people(200).rename_columns([{"pay": "hm_row"}.get(n, n) for n in people(1).column_names])
    columns = {{"pay": "hm_row"}.get(n, n): c for n, c in SCHEMA["columns"].items()}
    told = []
    for given in (rows, rows.take(list(range(199, -1, -1)))):
        load(postgres, "turned", given)
        table = hm.read(postgres, {**SCHEMA, "columns": columns}, table="turned")
        with hm.anonymize(table, *MODELS, method="optimal", suppression=0.1) as release:
            told.append([tuple(row.values()) for row in release.to_arrow().to_pylist()])
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE turned")
    assert told[0] == told[1]
    starts = [row for i, row in enumerate(told[0]) if not i or told[0][i - 1] != row]
    assert len(starts) == len(set(starts)) > 1


def test_rows_in_memory_go_to_a_database(postgres: str) -> None:
    release = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, method="optimal", suppression=0.05)
    release.write(postgres, table="from_memory")
    with psycopg.connect(postgres) as connection:
        rows = connection.execute("SELECT * FROM from_memory").fetchall()
        connection.execute("DROP TABLE from_memory")
    assert multiset(release.to_arrow()) == {row: rows.count(row) for row in rows}


def test_what_is_no_release_stays(visits: hm.Table, postgres: str) -> None:
    with hm.anonymize(visits, hm.KAnonymity(3), method="optimal", suppression=0.05) as release:
        with pytest.raises(hm.errors.InputError, match="no release of ours"):
            release.write(postgres, table="visits")
        with pytest.raises(hm.errors.ParameterError, match="table"):
            release.write(postgres)
    assert len(hm.read(postgres, SCHEMA, table="visits")) == 300


def test_a_dropped_connection_leaves_nothing(visits: hm.Table, postgres: str) -> None:
    release = hm.anonymize(visits, hm.KAnonymity(3), method="optimal", suppression=0.05)
    before = tables(postgres)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(hm.errors.EngineError, match=r"[Nn]othing was released|cannot be reached"):
        release.write(postgres, table="visits_public")
    assert tables(postgres) == before


def test_a_killed_database_leaves_nothing(
    visits: hm.Table, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the server dies before the commit: the server takes everything back."""
    before, pids = tables(postgres), list[int]()
    release = hm.anonymize(visits, hm.KAnonymity(3), method="optimal", suppression=0.05)
    replace = server._replace

    def kill(cursor: Any, *given: Any) -> None:
        replace(cursor, *given)
        cursor.execute("SELECT pg_backend_pid()")
        pids.append(cursor.fetchone()[0])
        os.kill(pids[0], signal.SIGKILL)

    witness = psycopg.connect(postgres, autocommit=True)
    with monkeypatch.context() as patched:
        patched.setattr(server, "_replace", kill)
        with pytest.raises(hm.errors.EngineError, match="Nothing was released"):
            release.write(postgres, table="visits_public")
    assert pids
    _wait_for(postgres, witness)
    assert tables(postgres) == before
    with hm.anonymize(visits, hm.KAnonymity(3), method="optimal", suppression=0.05) as again:
        again.write(postgres, table="visits_public")  # a restart starts clean
    assert tables(postgres) == before | {"visits_public"}


def _wait_for(address: str, witness: psycopg.Connection[Any]) -> None:
    """Until the server has noticed, which ends all that were connected, and has recovered."""
    with pytest.raises(psycopg.OperationalError):
        witness.execute("SELECT pg_sleep(600)")
    witness.close()
    while True:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            continue
        return


def test_a_server_that_dies_after_the_last_row_is_told_in_our_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Cursor:
        def execute(self, _: str) -> None: ...

        def fetchmany(self, _: int) -> list[object]:
            return []

        def close(self) -> None:
            raise psycopg.OperationalError("server closed the connection")

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            self.close()

    class Connection:
        def cursor(self, _: str) -> Cursor:
            return Cursor()

    engine = object.__new__(server.Postgres)
    engine._staged, engine._connection = "aside", Connection()
    monkeypatch.setattr(server.Postgres, "_digits", lambda *_: {"age": pa.int64()})
    with pytest.raises(hm.errors.EngineError, match="could not answer"):
        engine.stream(5).read_all()


_KILLED = """
import os, signal, sys
import halfmask as hm
from halfmask.engines import postgres as server
from places import MODELS, SCHEMA

def reach(point):
    if point == "before publishing":
        os.kill(os.getpid(), signal.SIGKILL)

server.reach = reach
table = hm.read(sys.argv[1], SCHEMA, table="visits")
release = hm.anonymize(table, *MODELS, method="optimal", suppression=0.05)
release.write(sys.argv[1], table="visits_public")
"""


@pytest.mark.usefixtures("visits")
def test_a_killed_process_leaves_no_table(postgres: str) -> None:
    before = tables(postgres)
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _KILLED, postgres],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-500:]
    assert tables(postgres) == before


def test_other_rows_that_arrive_are_not_published(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rows as were released, one with the label of another class."""
    release = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, method="optimal", suppression=0.05)
    before, honest = tables(postgres), server.copy_batches

    def careless(cursor: Any, table: str, rows: Any) -> int:
        found = rows.read_all()
        ages = found["age"].to_pylist()
        other = next(one for one in ages if one != ages[0])
        place = found.column_names.index("age")
        turned = found.set_column(place, "age", pa.chunked_array([pa.array([other, *ages[1:]])]))
        return honest(cursor, table, turned.to_reader())

    monkeypatch.setattr(server, "copy_batches", careless)
    with pytest.raises(hm.errors.InternalError, match="2 groups differ"):
        release.write(postgres, table="visits_public")
    assert tables(postgres) == before
