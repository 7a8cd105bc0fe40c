"""``anonymize`` in PostgreSQL and on a cluster of Spark, beside one grouped count there.

Run: python benchmarks/scale_elsewhere.py postgres --address postgresql://host/db [--rows 10000000]
     python benchmarks/scale_elsewhere.py spark [--rows 10000000] [--kill] [--memory 2g]

Wall seconds, since others work there; the rows are those of ``scale.py``. ``spark`` starts a
cluster of two workers on this machine, and ``--kill`` kills one when the rows are written aside:
the release must hold the groups that the same release holds with nobody killed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import halfmask as hm
from halfmask.engines import staging
from halfmask.engines.postgres import copy_batches
from halfmask.release import stored_entries
from halfmask.release.doors import stored_rows
from scale import FEW, SCHEMA, write_rows

NAMES = ", ".join(list(SCHEMA["columns"])[:-1])
COUNT = f"SELECT COUNT(*) FROM (SELECT {NAMES}, COUNT(*) FROM {{}} GROUP BY {NAMES}) t"
KINDS = "age int, sex text, zip text, job text, year int, home text, ill text, pay int"


def clocked(work: Any) -> tuple[Any, float]:
    """What a piece of work gives, and its seconds."""
    began = time.perf_counter()
    return work(), round(time.perf_counter() - began, 2)


def release(table: hm.Table, method: str, target: tuple[str, str | None], unit: float,
            at_point: Any = None) -> dict[str, Any]:  # fmt: skip
    """One release, stage by stage, in seconds."""
    points = [("", time.perf_counter())]

    def note(point: str) -> None:
        points.append((point, time.perf_counter()))
        if at_point is not None:
            at_point(point)

    watched = {module: module.reach for module in (stored_entries, staging, stored_rows)}
    try:
        for module in watched:
            module.reach = note
        models = (hm.KAnonymity(5), hm.LDiversity(3, "ill"))
        made = hm.anonymize(table, *models, method=method, suppression=0.01)
        stages = {name: round(b - a, 1) for (_, a), (name, b) in pairwise(points)}
        place, name = target
        _, wrote = clocked(lambda: made.write(place, **({"table": name} if name else {})))
        made.close()
    finally:
        for module, reach in watched.items():
            module.reach = reach
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "method": method, "grouped_count": unit, **stages, "write": wrote,
        "ratio": round(stages["counted"] / max(unit, 0.01), 1), "driver_peak_mb": peak,
        "load": os.getloadavg()[0],
    }  # fmt: skip


def in_postgres(given: argparse.Namespace, folder: Path) -> None:
    """Rows that are copied into a database, counted and released there."""
    import psycopg

    write_rows(folder / "rows.parquet", given.rows, "2GB", FEW)
    with psycopg.connect(given.address) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS scale_rows; CREATE TABLE scale_rows ({KINDS})")
        rows = pq.ParquetFile(folder / "rows.parquet")
        reader = pa.RecordBatchReader.from_batches(rows.schema_arrow, rows.iter_batches(1 << 18))
        copy_batches(cursor, "scale_rows", reader)
    with psycopg.connect(given.address, autocommit=True) as connection:
        connection.execute("ANALYZE scale_rows")
        _, unit = clocked(lambda: connection.execute(COUNT.format("scale_rows")).fetchone())
    table = hm.read(given.address, SCHEMA, table="scale_rows")
    _, checked = clocked(lambda: hm.check(table, hm.KAnonymity(5)))
    for method in given.methods:
        found = release(table, method, (given.address, "scale_public"), unit)
        print(json.dumps({"rows": given.rows, "check": checked, **found}), flush=True)
    with psycopg.connect(given.address) as connection:
        connection.execute("DROP TABLE scale_rows, scale_public")


def in_spark(given: argparse.Namespace, folder: Path) -> None:
    """Rows that two workers hold, one of which may be killed."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tools"))
    from lost_executor import executors
    from pyspark.sql import SparkSession

    write_rows(folder / "rows.parquet", given.rows, "2GB", FEW)
    session = (
        SparkSession.builder.master(f"local-cluster[2,1,{given.memory}]")
        .config("spark.executor.memory", f"{given.memory}m")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    session.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    while len(executors(session)) < 2:
        time.sleep(0.2)
    session.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("scale_rows")
    session.sql(COUNT.format("scale_rows")).collect()  # compiled
    _, unit = clocked(lambda: session.sql(COUNT.format("scale_rows")).collect())
    killed: list[int] = []

    def kill(point: str) -> None:
        if point == "written aside" and given.kill and rounds == 1:
            killed.append(executors(session)[0])
            os.kill(killed[0], signal.SIGKILL)

    held = []
    for rounds in range(2 if given.kill else 1):
        table = hm.read(str(folder / "rows.parquet"), SCHEMA, engine="spark")
        place = f"{folder}/out{rounds}/"
        found = release(table, given.methods[0], (place, None), unit, kill)
        import duckdb

        groups = f"SELECT HASH(t), COUNT(*) FROM read_parquet('{place}*.parquet') t GROUP BY 1"
        held.append(sorted(duckdb.sql(groups).fetchall()))
        more = {"rows": given.rows, "killed": bool(killed), "same": held[0] == held[-1]}
        print(json.dumps({**more, **found}), flush=True)
    session.stop()


def main() -> None:
    """Print one JSON line a release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("where", choices=["postgres", "spark"])
    parser.add_argument("--address", default=os.environ.get("HALFMASK_POSTGRES"))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--methods", nargs="+", default=["optimal"])
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--memory", type=int, default=1500, help="MB of each worker")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="halfmask-scale-") as folder:
        (in_postgres if given.where == "postgres" else in_spark)(given, Path(folder))


if __name__ == "__main__":
    main()
