"""``anonymize`` inside Spark: the release of memory, written by executors, counted, published."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from places import MODELS, SCHEMA, multiset, people, same

import halfmask as hm
from halfmask.cli.main import run
from halfmask.engines import staging
from halfmask.engines.spark import Spark
from halfmask.release import record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark
ASKED = "SELECT zip, COUNT(*) AS n FROM the_table GROUP BY zip GUARANTEE k = 2"
SETTINGS: dict[str, Any] = {"method": "local", "suppression": 0.05}


@pytest.fixture
def usual_settings(spark: Any) -> Iterator[None]:
    """A release is made by Spark as its users have it; other tests let it plan less."""
    names = ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled")
    before = {name: spark.conf.get(name) for name in names}
    for name in names:
        spark.conf.set(name, "true")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def blocks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """What stands in a checkpoint folder when rows were written; other tests have none."""
    context, found = spark.sparkContext, []

    def look(point: str) -> None:
        if point == "written aside":
            found.extend(tmp_path.glob("blocks/*/rdd-*/part-*"))

    monkeypatch.setattr(staging, "reach", look)
    context.setCheckpointDir(str(tmp_path / "blocks"))
    yield found
    context._jsc.sc().setCheckpointDir(None)
    assert context.getCheckpointDir() is None


@pytest.fixture(scope="module")
def visits(spark: Any) -> Any:
    return spark.createDataFrame(people())


@pytest.mark.usefixtures("in_place", "usual_settings")
def test_spark_gives_the_release_of_memory(
    spark: Any, visits: Any, tmp_path: Path, blocks: list[Path]
) -> None:
    """Blocks in a checkpoint folder outlast an executor, who is killed in test_lost_executor.py."""
    before = {one.name for one in spark.catalog.listTables()}
    memory = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, **SETTINGS)
    table = hm.read(visits, SCHEMA)
    with hm.anonymize(table, *MODELS, **SETTINGS) as release:
        same(memory, release)
        for _ in range(2):  # a release of ours is replaced
            release.write(f"{tmp_path}/out/")
    assert {one.name for one in tmp_path.iterdir()} == {"out", "blocks"}
    assert blocks
    assert multiset(pq.read_table(tmp_path / "out")) == multiset(memory.to_arrow())
    assert all(one.holds for one in hm.check(f"{tmp_path}/out/"))
    assert {one.name for one in spark.catalog.listTables()} == before  # nothing of ours stays


@pytest.mark.usefixtures("in_place")
def test_what_is_counted_stays_in_spark(spark: Any, visits: Any, tmp_path: Path) -> None:
    visits.createOrReplaceTempView("visits")
    pq.write_table(people(), tmp_path / "people.parquet")
    plain = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
    expected = hm.check(hm.read(people(), plain), *MODELS)
    for source, named in (
        (visits, {}),
        (spark, {"table": "visits"}),
        ("visits", {"engine": "spark"}),
        (str(tmp_path / "people.parquet"), {"engine": "spark"}),
    ):
        table = hm.read(source, plain, **named)
        assert table.stored is not None
        assert table.stored.engine == "spark"
    assert len(table) == 300
    assert list(hm.check(table, *MODELS)) == list(expected)
    answer = hm.query(table, ASKED)
    assert sum(answer.to_arrow()["n"].to_pylist()) == 300
    spark.catalog.dropTempView("visits")
    with pytest.raises(hm.errors.InputError, match="Spark has no table"):
        hm.read("visits", plain, engine="spark")


@pytest.mark.usefixtures("in_place", "spark")
def test_the_command_line_counts_in_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(people(), tmp_path / "people.parquet")
    plain = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
    (tmp_path / "people.toml").write_text(hm.Schema.from_dict(plain).to_toml(), encoding="utf-8")
    told = []
    for engine in ("spark", "memory"):
        words = ["discriminate", str(tmp_path / "people.parquet"), "--engine", engine]
        with pytest.raises(SystemExit) as stop:
            run([*words, "--target", "ill", "--key", "age,zip", "--permutations", "0", "--json"])
        assert stop.value.code == 0
        rate = json.loads(capsys.readouterr().out)["rate"]
        told.append({name: one for name, one in rate.items() if isinstance(one, int | float)})
    assert len(told[0]) == 7
    assert told[0] == pytest.approx(told[1])


def test_files_with_one_row_more_do_not_leave(
    visits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Spark.write_pieces

    def generous(self: Spark, name: str, folder: Path) -> None:
        honest(self, name, folder)
        piece = max(folder.glob("*.parquet"), key=lambda one: pq.read_metadata(one).num_rows)
        pq.write_table(pq.read_table(piece).slice(0, 1), folder / "part-more.parquet")
        self.show(name, self._session.read.parquet(folder.as_uri()))

    monkeypatch.setattr(Spark, "write_pieces", generous)
    with (
        hm.anonymize(hm.read(visits, SCHEMA), *MODELS, **SETTINGS) as release,
        pytest.raises(hm.errors.InternalError, match="1 groups differ"),
    ):
        release.write(f"{tmp_path}/out/")
    assert list(tmp_path.iterdir()) == []


def test_a_database_is_not_read_by_spark() -> None:
    with pytest.raises(hm.errors.ParameterError, match="counts its own rows"):
        hm.read("postgresql://host/db", table="t", engine="spark")


def test_a_kind_of_table_that_the_session_lacks_is_refused(visits: Any, tmp_path: Path) -> None:
    table = hm.read(visits, SCHEMA)
    with hm.anonymize(table, hm.KAnonymity(3), method="optimal", suppression=0.05) as release:
        for kind in ("delta", "iceberg"):
            with pytest.raises(hm.errors.InputError, match="start it with the package"):
                release.write(kind, table="public_visits")
        with pytest.raises(hm.errors.ParameterError, match="table"):
            release.write("delta")
    memory = hm.anonymize(hm.read(people(), SCHEMA), hm.KAnonymity(3), suppression=0.05)
    with pytest.raises(hm.errors.InputError, match="Spark session that holds the rows"):
        memory.write("delta", table="public_visits")


def test_a_table_of_the_session_is_counted_before_it_has_its_name(
    spark: Any, visits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet in place of Delta, whose package is not here: the same steps of the same writer."""
    spark.sql(f"CREATE DATABASE lake LOCATION '{tmp_path}'")
    monkeypatch.setattr(record, "is_lake", lambda path: path == "parquet")
    with hm.anonymize(
        hm.read(visits, SCHEMA), hm.KAnonymity(3), method="optimal", suppression=0.05
    ) as release:
        honest = Spark.show

        def other(self: Spark, name: str, frame: Any) -> None:
            honest(self, name, frame.limit(10) if name == "hm_arrived" else frame)

        monkeypatch.setattr(Spark, "show", other)
        with pytest.raises(hm.errors.InternalError, match="nothing was released"):
            release.write("parquet", table="lake.public_visits")
        assert not spark.catalog.tableExists("lake.public_visits")
        assert not [one for one in spark.catalog.listTables("lake") if not one.isTemporary]
        monkeypatch.setattr(Spark, "show", honest)
        release.write("parquet", table="lake.public_visits")
        assert multiset(spark.table("lake.public_visits").toArrow()) == multiset(release.to_arrow())
        with pytest.raises(hm.errors.InputError, match="already"):
            release.write("parquet", table="lake.public_visits")
    said = spark.sql("DESCRIBE TABLE EXTENDED lake.public_visits").toArrow().to_pylist()
    assert any("halfmask release" in str(row["data_type"]) for row in said)
    spark.sql("DROP DATABASE lake CASCADE")
