"""A text that grows until memory ends, on one person's row only, fails a noisy question."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.attacks.conftest import AGE, SALARY

# Memory is limited, so that the attack is cheap: an unlimited process would take gigabytes first.
CHILD = """
import resource, sys
sys.path.insert(0, {root!r})
import pyarrow as pa
import halfmask as hm
from tests.attacks.conftest import SCHEMA, make_rows
from halfmask.errors import HalfmaskError
table = hm.read(pa.table(make_rows()), SCHEMA)
hm.query(table, "SELECT COUNT(*) AS n FROM people WITH EPSILON 1")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
print("asked", flush=True)
for sql in {asked!r}:
    try:
        hm.query(table, sql)
    except HalfmaskError:
        print("failed")
    except MemoryError:
        print("failed")
    else:
        print("answered")
"""
GROWTH = "'" + "a" * 32 + "'"


def grown(start: str, times: int = 7) -> str:
    for _ in range(times):
        start = f"REPLACE({start}, 'a', {GROWTH})"
    return start


SHAPES = ("LENGTH({}) >= 0", "{} <> 'x'")  # its length is asked, it is compared


def asks(text: str) -> list[str]:
    """What becomes of the shapes of one text, in a process of its own; what is missing failed."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE {} WITH EPSILON 1"
    root = str(__file__).rsplit("/tests/", 1)[0]
    asked = [sql.format(shape.format(text)) for shape in SHAPES]
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", CHILD.format(root=root, asked=asked)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.split()


def test_memory_tells_no_salary() -> None:
    """Whether she earns more than a guess: two guesses, one below and one above."""
    seen = []
    for guess in (SALARY - 1, SALARY):
        start = f"CASE WHEN age = {AGE} AND salary > {guess} THEN 'a' ELSE '' END"
        seen.append(asks(grown(start)))
    assert seen[0] == seen[1]
    assert seen[0][:1] == ["asked"]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("changed", ["UPPER(code)", "LOWER(code)"])
def test_a_text_is_cut_before_its_case_is_changed(engine: str, changed: str) -> None:
    """PostgreSQL fails where four bytes of each character do not fit into one gigabyte."""
    import pyarrow as pa

    import halfmask as hm

    texts = ["a" * ((1 << 20) + 5), "b" * 3, "c" * 3] * 3
    sql = f"SELECT SUM(LENGTH({changed})) AS n FROM people GUARANTEE k = 3"
    answer = hm.query(pa.table({"code": texts}), sql, engine=engine)
    assert answer.to_arrow()["n"].to_pylist() == [3 * (1 << 20) + 18]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize(
    "read", ["CAST(code AS BIGINT)", "CASE WHEN CAST(code AS BOOLEAN) THEN 1 ELSE 0 END"]
)
def test_a_text_is_cut_before_it_is_read(engine: str, read: str) -> None:
    """What one text of hundreds of megabytes costs, or fails by, would tell whose it is."""
    import pyarrow as pa

    import halfmask as hm

    texts = ["1" + " " * (1 << 20) + "no number", "1", "1"] * 3
    sql = f"SELECT SUM({read}) AS n FROM people GUARANTEE k = 3"
    answer = hm.query(pa.table({"code": texts}), sql, engine=engine)
    assert answer.to_arrow()["n"].to_pylist() == [9]
