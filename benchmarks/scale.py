"""How verbs grow with the rows that DuckDB keeps, within a memory limit.

Run: python benchmarks/scale.py [--rows 1000000 10000000] [--memory-limit 2GB] [--folder /tmp]
     python benchmarks/scale.py --rows 1000000 --distinct --most-tuples 500000 1000000

The yardstick is one grouped count of the same columns by the same engine, in the same process. What
``anonymize`` takes is told apart: counting, search, the door's checks of entries with the rows
written aside, the door's count of what was written. ``compare`` looks at the first release.
Rows are invented by DuckDB: eight columns, six of them quasi-identifiers, at most 230,400
distinct tuples; with ``--distinct`` nearly as many as rows, of which no more than ``--most-tuples``
come to the driver. Processor seconds of all threads; peak memory of the process, which grows only.
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


def measure(work: Callable[[], Any]) -> tuple[Any, float]:
    """What a piece of work gives, and its processor seconds."""
    began = time.process_time()
    return work(), round(time.process_time() - began, 3)


def grouped_count(place: Path, memory_limit: str) -> int:
    """The yardstick: how many distinct tuples there are."""
    names = ", ".join(SCHEMA["columns"])
    names = names.removesuffix(", pay")
    with connect_within(memory_limit) as connection:
        query = f"SELECT {names}, COUNT(*) FROM read_parquet('{place}') GROUP BY ALL"
        return int(connection.sql(query).to_arrow_table().num_rows)


@contextmanager
def _stages() -> Iterator[list[tuple[str, float]]]:
    """The processor seconds at which each stage of ``anonymize`` ends."""
    found: list[tuple[str, float]] = [("", time.process_time())]

    def note(point: str) -> None:
        found.append((point, time.process_time()))

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
    memory_limit, methods = given.memory_limit, given.methods
    place = folder / f"{rows}.parquet"
    write_rows(place, rows, memory_limit, MANY if given.distinct else FEW)
    tuples, unit = measure(lambda: grouped_count(place, memory_limit))
    table = hm.read(place, SCHEMA, engine="duckdb", memory_limit=memory_limit)
    models = (hm.KAnonymity(5), hm.LDiversity(3, "ill"))
    hm.check(hm.read({"a": [1, 1]}, {"a": "quasi"}), hm.KAnonymity(2))  # kernels are warm
    verbs: dict[str, float] = {}
    _, verbs["check"] = measure(lambda: hm.check(table, *models))
    if not given.distinct:
        _, verbs["assess"] = measure(lambda: hm.assess(table))
        _, verbs["query"] = measure(lambda: hm.query(table, QUERY))
    runs = {}
    for method in methods:
        with _stages() as at:
            release = hm.anonymize(
                table, *models, method=method, suppression=0.01, most_tuples=most
            )
        _, wrote = measure(lambda: release.write(folder / "out.parquet"))  # noqa: B023
        release.close()
        if not given.distinct and "compare" not in verbs:
            made = hm.read(folder / "out.parquet", engine="duckdb", memory_limit=memory_limit)
            _, verbs["compare"] = measure(lambda: hm.compare(table, made))  # noqa: B023
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
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
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
