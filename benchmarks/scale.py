"""How verbs grow with the rows that DuckDB keeps, within a memory limit.

Run: python benchmarks/scale.py [--rows 1000000 10000000] [--memory-limit 2GB] [--folder /tmp]
     python benchmarks/scale.py --rows 1000000 --distinct --most-tuples 500000 1000000

The yardstick is one grouped count of the same columns by the same engine, in the same process. What
``anonymize`` takes is told apart: counting, search, the door's checks of entries with the rows
written aside, the door's count of what was written. ``compare`` looks at the first release.
Rows are invented by DuckDB: eight columns, six of them quasi-identifiers, at most 230,400
distinct tuples; with ``--distinct`` nearly as many as rows, of which no more than ``--most-tuples``
come to the driver. Processor seconds of all threads, and the peak memory of the process in each
part (where /proc tells it).
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import halfmask as hm
from halfmask.anonymize import run
from halfmask.engines import staging
from halfmask.engines.counting.tuples import MOST
from halfmask.engines.duckdb.engine import connect_within
from halfmask.release import stored_entries
from halfmask.release.doors import stored_rows
from halfmask.release.seal import seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
        "sex": "quasi",
        "zip": {"role": "quasi", "hierarchy": {"mask": {"length": 5}}},
        "job": "quasi",
        "year": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
        "home": "quasi",
        "ill": "sensitive",
        "pay": "other",
    }
}
QUERY = "SELECT job, sex, AVG(pay) AS pay FROM the_table GROUP BY job, sex GUARANTEE k = 10, l = 3"
FEW = {"zips": 12, "apart": 37, "years": 4}
MANY = {"zips": 9000, "apart": 10, "years": 80}
_ROWS = """
SELECT 20 + (hash(i * 10 + 1) % 60)::INT AS age, ['f', 'm'][1 + (hash(i * 10 + 2) % 2)::INT] AS sex,
  (10000 + (hash(i * 10 + 3) % {zips})::INT * {apart})::VARCHAR AS zip,
  'job ' || (hash(i * 10 + 5) % 4) AS job, 2000 + (hash(i * 10 + 6) % {years})::INT AS year,
  'home ' || (hash(i * 10 + 7) % 2) AS home, 'ill ' || (hash(i * 10 + 8) % 5) AS ill,
  (hash(i * 10 + 9) % 100)::INT AS pay
FROM range({rows}) t(i)
"""


def write_rows(place: Path, rows: int, memory_limit: str, values: dict[str, int]) -> None:
    """Invented rows as one Parquet file."""
    with connect_within(memory_limit) as connection:
        query = _ROWS.format(rows=rows, **values)
        connection.execute(f"COPY ({query}) TO '{place}' (FORMAT parquet)")


class Parts:
    """The parts of a run: processor seconds of each, and the peak memory of the process in it."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}

    def measure(self, name: str, work: Callable[[], Any]) -> tuple[Any, float]:
        """What a piece of work gives, and its processor seconds."""
        began = time.process_time()
        found = work()
        self.end(name)
        return found, round(time.process_time() - began, 3)

    def end(self, name: str) -> None:
        """A part ends: its peak in MB is noted, and the next one begins."""
        self.peaks[name] = max(peak_mb(), self.peaks.get(name, 0))
        if CLEAR.exists():
            CLEAR.write_text("5")  # the peak is what is held now


CLEAR = Path("/proc/self/clear_refs")


def peak_mb() -> int:
    """The peak of the process, since it was cleared."""
    if not CLEAR.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(one for one in lines if one.startswith("VmHWM")).split()[1]) // 1024


def grouped_count(place: Path, memory_limit: str) -> int:
    """The yardstick: how many distinct tuples there are."""
    names = ", ".join(SCHEMA["columns"])
    names = names.removesuffix(", pay")
    with connect_within(memory_limit) as connection:
        query = f"SELECT {names}, COUNT(*) AS n FROM read_parquet('{place}') GROUP BY ALL"
        # They stay there: as many as there are rows would not fit here.
        return int(connection.sql(f"SELECT COUNT(n) FROM ({query})").fetchall()[0][0])


@contextmanager
def _stages(parts: Parts, method: str) -> Iterator[list[tuple[str, float]]]:
    """The processor seconds at which each stage of ``anonymize`` ends."""
    found: list[tuple[str, float]] = [("", time.process_time())]

    def note(point: str) -> None:
        found.append((point, time.process_time()))
        parts.end(f"{method}: {point}")

    def sealed(candidate: Any) -> Any:
        note("searched")
        return seal(candidate)

    for module in (stored_entries, staging, stored_rows):
        module.reach = note  # type: ignore[attr-defined]
    run.seal = sealed  # type: ignore[attr-defined]
    yield found
    note("described")


def scale(rows: int, folder: Path, given: argparse.Namespace, most: int) -> dict[str, Any]:
    """One line of the table."""
    memory_limit, methods, parts = given.memory_limit, given.methods, Parts()
    place = folder / f"{rows}.parquet"
    write_rows(place, rows, memory_limit, MANY if given.distinct else FEW)
    parts.end("rows")
    tuples, unit = parts.measure("grouped count", lambda: grouped_count(place, memory_limit))
    table = hm.read(place, SCHEMA, engine="duckdb", memory_limit=memory_limit)
    models = (hm.KAnonymity(5), hm.LDiversity(3, "ill"))
    hm.check(hm.read({"a": [1, 1]}, {"a": "quasi"}), hm.KAnonymity(2))  # kernels are warm
    verbs: dict[str, float] = {}
    if tuples <= MOST:
        _, verbs["check"] = parts.measure("check", lambda: hm.check(table, *models))
    if not given.distinct:
        _, verbs["assess"] = parts.measure("assess", lambda: hm.assess(table))
        _, verbs["query"] = parts.measure("query", lambda: hm.query(table, QUERY))
    runs = {}
    for method in methods:
        with _stages(parts, method) as at:
            release = hm.anonymize(
                table, *models, method=method, suppression=0.01, most_tuples=most
            )
        public = folder / "out.parquet"
        _, wrote = parts.measure(f"{method}: write", lambda: release.write(public))  # noqa: B023
        release.close()
        if not given.distinct and "compare" not in verbs:
            made = hm.read(public, engine="duckdb", memory_limit=memory_limit)
            _, verbs["compare"] = parts.measure("compare", lambda: hm.compare(table, made))  # noqa: B023
        runs[method] = {
            **{name: round(after - before, 3) for (_, before), (name, after) in pairwise(at)},
            "write": wrote,
            "ratio": round((at[2][1] - at[0][1]) / unit, 1),  # seal and write apart
            "suppressed": release.suppressed,
            "loss": round(release.loss, 4),
            "gap": None if release.gap is None else round(release.gap, 4),
            "floors": release.parameters.get("floors", {}),
        }
    place.unlink()
    return {
        "rows": rows,
        "distinct_tuples": tuples,
        "most_tuples": most,
        "grouped_count": unit,
        **verbs,
        **runs,
        "peaks_mb": parts.peaks,
        "peak_mb": max(parts.peaks.values()),
    }


def main() -> None:
    """Print one JSON line a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--methods", nargs="+", default=["optimal", "local"])
    parser.add_argument("--distinct", action="store_true", help="nearly every row is a tuple")
    parser.add_argument("--most-tuples", type=int, nargs="+", default=[MOST])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="halfmask-scale-") as folder:
        for rows, most in product(given.rows, given.most_tuples):
            print(json.dumps(scale(rows, Path(folder), given, most)), flush=True)


if __name__ == "__main__":
    main()
