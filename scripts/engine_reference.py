"""Writes the table of verbs and engines in docs/engines.md; ``--check`` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "engines.md"
TITLE = "## What each verb does where\n"
INTRO = """
This table is written by `scripts/engine_reference.py`. `tests/elsewhere/test_every_verb.py` asks
each line of every engine, by one of its verbs at least: the figures and rows of memory, and no row
collected where it says in place.

| verb | DuckDB: files, folders, databases | PostgreSQL | Spark |
|---|---|---|---|
"""
HERE, MEMORY, DRIVER = "in place", "reads the rows into memory", "through the driver's memory"
# One line a verb: what happens to rows of DuckDB, of PostgreSQL, of Spark.
VERBS: tuple[tuple[str, str, str, str], ...] = (
    ("read", HERE, HERE, HERE + " (3)"),
    ("describe", HERE + " (5)", HERE + " (5)", HERE + " (5)"),
    ("check, assess, risks, compare, frontier (optimal), discriminate", HERE, HERE, HERE),
    ("query", HERE, HERE, HERE),
    ("anonymize: optimal, local, auto (of these two)", HERE + " (1)", HERE + " (1)", HERE + " (1)"),
    ("anonymize: personal, mondrian, k-member, mdav, exact, confidential, co-clustering",
     HERE + " (1) (6)", HERE + " (1) (6)", HERE + " (1) (6)"),
    ("anonymize with a pseudonym", HERE + " (1) (6)", HERE + " (1) (6)", HERE + " (1) (6)"),
    ("anonymize with previous, a population, weights", MEMORY + " (2)",
     MEMORY + " (2)", MEMORY + " (2)"),
    ("synthesize with epsilon", HERE + " (7)", HERE + " (7)", HERE + " (7)"),
    ("recode", HERE + " (1)", HERE + " (1)", HERE + " (1)"),
    ("tabulate", HERE + " (8)", HERE + " (8)", HERE + " (8)"),
    ("cocluster", HERE + " (9)", HERE + " (9)", HERE + " (9)"),
    ("synthesize by cocluster", HERE + " (8)", HERE + " (8)", HERE + " (8)"),
    ("mask, randomize", HERE + " (10)", HERE + " (10)", HERE + " (10)"),
    ("frontier of other methods", HERE + " (8)", HERE + " (8)", HERE + " (8)"),
    ("frontier with finished tables or epsilons, series, check --against", MEMORY + " (2)",
     MEMORY + " (2)", MEMORY + " (2)"),
    ("write to a folder of Parquet files", "some rows at a time", "some rows at a time",
     "by the executors (4)"),
    ("write to a file, also the risks of rows", "some rows at a time", "some rows at a time",
     DRIVER),
    ("write to PostgreSQL", "copied, one transaction", "in the database, one transaction",
     "copied through the driver's memory, one transaction"),
    ("write to DuckDB (.duckdb, .ddb)", "copied, one transaction", "copied, one transaction",
     "copied through the driver's memory, one transaction"),
    ("write to Delta or Iceberg (11)", "refuses", "refuses", "by the executors"),
)  # fmt: skip


def table() -> str:
    """The table, one line a verb."""
    return INTRO + "".join(f"| {' | '.join(line)} |\n" for line in VERBS)


def page(text: str) -> str:
    """The page with the table of today in it."""
    before, _, after = text.partition(TITLE)
    rest = after.partition("\n(1)")[2]
    return f"{before}{TITLE}{table()}\n(1){rest}"


def main() -> int:
    """Write the page, or compare it."""
    text = PAGE.read_text(encoding="utf-8")
    wanted = page(text)
    if "--check" in sys.argv:
        return int(text != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
