"""A cluster of two executors, of which one is killed after it wrote rows; run by its test.

It prints what became of the release, whose blocks stand in a checkpoint folder.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from places import MODELS, SCHEMA, multiset, people
from pyspark.sql import SparkSession

import halfmask as hm
from halfmask.engines import staging

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def executors(session: Any) -> list[int]:
    """The processes of this application's executors."""
    name = session.sparkContext.applicationId.encode()
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if name in words and b"CoarseGrainedExecutorBackend" in words:
            found.append(int(place.parent.name))
    return found


def release(session: Any, folder: Path, expected: Any) -> str:
    """Whether the release is that of memory, or what failed, with one executor killed."""
    killed = []

    def kill(point: str) -> None:
        if point == "written aside" and not killed:
            killed.append(executors(session)[0])
            os.kill(killed[0], signal.SIGKILL)

    usual, staging.reach = staging.reach, kill
    try:
        table = hm.read(str(folder / "people.parquet"), SCHEMA, engine="spark")
        with hm.anonymize(table, *MODELS, method="optimal", suppression=0.05) as made:
            made.write(f"{folder}/out/")
    except hm.errors.HalfmaskError as error:
        return f"{type(error).__name__}, published: {(folder / 'out').exists()}"
    finally:
        staging.reach = usual
    assert killed
    return "same" if multiset(pq.read_table(folder / "out")) == expected else "other"


def main(folder: Path) -> None:
    session = (
        SparkSession.builder.master("local-cluster[2,1,768]")
        .config("spark.executor.memory", "512m")
        # What runs once is not worth compiling well.
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.executor.extraJavaOptions", JAVA)
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    rows = people()
    pq.write_table(rows, folder / "people.parquet")
    settings = {"method": "optimal", "suppression": 0.05}
    expected = multiset(hm.anonymize(hm.read(rows, SCHEMA), *MODELS, **settings).to_arrow())
    while len(executors(session)) < 2:
        time.sleep(0.2)
    session.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    found = release(session, folder, expected)
    session.stop()
    sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
