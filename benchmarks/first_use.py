"""Seconds of processor that every verb and method takes on the sample at its first use.

Run: python benchmarks/first_use.py [--only personal,compare] [--rows 2000] [--limit 6]

Each command runs in a fresh process with an empty folder of compiled kernels, and once more with
what the first run left there. Between the commands a yardstick is measured, a loop of Python alone
that takes 0.6 s of a quiet machine: a command is also printed in seconds of such a machine, by the
yardsticks before and behind it. Prints a line per command and JSON at the end; the exit code is 1
where a first use takes longer than ``--limit`` such seconds, where one is given, or where a command
that writes ends without having written.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUIET = 0.6  # seconds of the yardstick on a quiet machine
SQUARES = 10**7  # that it adds up

METHODS = (
    "optimal", "local", "personal", "k-member", "mdav", "mondrian", "exact",
    "cocluster", "cocluster-sets", "cocluster-mode",
)  # fmt: skip
PRIVATE = ("marginals", "histogram", "privbayes", "dp-cocluster")
COLUMNS = ("age", "sex", "education")
MASKS = {
    "rank-swap": "rank-swap salary within=0.05",
    "microaggregate": "microaggregate age salary k=5",
    "suppress": "local-suppression k=3 age sex education reading=any",
}


def commands() -> dict[str, list[str]]:
    """Every verb and method; FILE, OUT and DOMAINS stand for what the run puts there."""
    grant = ["--epsilon", "1", "--domains", "DOMAINS", "--ignore-demands", "--grant", "5"]
    grant += ["--ledger", "LEDGER"]
    counted = "SELECT education, COUNT(*) FROM people GROUP BY education"
    out = {
        f"anonymize {method}": [
            "anonymize", "FILE", "--k", "5", "--ignore-demands", "--method", method, "-o", "OUT",
            *(["--time-limit", "2"] if method == "exact" else []),
        ]
        for method in METHODS
    }  # fmt: skip
    out["anonymize own demands"] = [
        "anonymize", "FILE", "--personal-k", "--personal-l", "disease", "-o", "OUT",
    ]  # fmt: skip
    out |= {
        "describe": ["describe", "FILE"],
        "assess": ["assess", "FILE"],
        "compare": ["compare", "FILE", "RELEASE"],
        "frontier": ["frontier", "FILE", "--k", "2,5", "--ignore-demands"],
        "query": ["query", "FILE", f"{counted} GUARANTEE k = 5"],
        "tabulate": ["tabulate", "FILE", "--by", "sex,education", "--threshold", "5"],
        "cocluster": ["cocluster", "FILE"],
        "demo": ["demo", "-o", "FOLDER"],
    }
    out["tabulate"].append("--ignore-demands")
    for method in PRIVATE:
        out[f"synthesize {method}"] = [
            "synthesize", "SMALL", "--method", method, *grant, "-o", "OUT",
        ]  # fmt: skip
    out["synthesize cocluster"] = [
        "synthesize", "FILE", "--method", "cocluster", "--k", "5", "--ignore-demands", "-o", "OUT",
    ]  # fmt: skip
    for name, step in MASKS.items():
        out[f"mask {name}"] = ["mask", "FILE", "--step", step, "--ignore-demands", "-o", "OUT"]
    return out


def prepare(folder: Path, rows: int) -> dict[str, str]:
    """The sample, a release of it, three columns of it with public values, and names."""
    from halfmask.sample import write

    people = Path(write(folder, rows))
    with people.open(newline="") as file:
        table = [{name: row[name] for name in COLUMNS} for row in csv.DictReader(file)]
    small = folder / "small.csv"
    with small.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(table)
    values = {
        name: sorted({row[name] for row in table if row[name]}) for name in ("sex", "education")
    }
    domains = folder / "domains.toml"
    lists = [
        f"[{name}]\nvalues = {json.dumps(held)}\nmissing = true\n" for name, held in values.items()
    ]
    domains.write_text("[age]\nlow = 0\nhigh = 110\nbins = 11\n\n" + "\n".join(lists))
    return {
        "FILE": str(people),
        "SMALL": str(small),
        "DOMAINS": str(domains),
        "OUT": str(folder / "out.csv"),
        "RELEASE": str(folder / "release.csv"),
        "LEDGER": str(folder / "ledger"),
        "FOLDER": str(folder / "demo"),
    }


def seconds(arguments: list[str], cache: str) -> float:
    """Processor seconds of one command in a process of its own."""
    before = os.times()
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "halfmask", *arguments],
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        capture_output=True,
        check=False,
    )
    after = os.times()
    written = Path(arguments[arguments.index("-o") + 1]) if "-o" in arguments else None
    # A refusal is quick: what writes must have written.
    if ran.returncode not in (0, 2) or (written is not None and ran.returncode):
        raise SystemExit(f"{' '.join(arguments)}: {ran.stderr.decode()}")
    spent = after.children_user - before.children_user
    return spent + after.children_system - before.children_system


def yardstick() -> float:
    """Processor seconds of a loop that is always the same."""
    began = time.process_time()
    sum(i * i for i in range(SQUARES))
    return time.process_time() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="parts of the names of commands, by commas")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--limit", type=float, help="seconds of a quiet machine for a first use")
    given = parser.parse_args()
    parts = given.only.split(",")
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = prepare(folder, given.rows)
        asked = {k: v for k, v in commands().items() if any(part in k for part in parts)}
        if "compare" in asked:
            release = ["--ignore-demands", "-o", known["RELEASE"]]
            seconds(["anonymize", known["FILE"], "--k", "5", *release], str(folder / "cache"))
        before = yardstick()
        for number, (command, words) in enumerate(asked.items()):
            cache = str(folder / f"cache-{number}")
            arguments = [known.get(word, word) for word in words]
            both = []
            for _ in range(2):
                Path(known["LEDGER"]).unlink(missing_ok=True)
                both.append(round(seconds(arguments, cache), 2))
            after = yardstick()
            scale, before = 2 * QUIET / (before + after), after
            one = {"command": command, "first": both[0], "again": both[1]}
            one |= {"quiet": round(both[0] * scale, 2), "quiet again": round(both[1] * scale, 2)}
            found.append(one | {"yardstick": round(QUIET / scale, 2)})
            print(
                f"{command:24} {both[0]:6.1f} s {both[1]:6.1f} s; quiet {both[0] * scale:6.1f} s"
                f" {both[1] * scale:6.1f} s; yardstick {QUIET / scale:.2f} s",
                file=sys.stderr, flush=True,
            )  # fmt: skip
    print(json.dumps(found, indent=2))
    if given.limit is not None and any(one["quiet"] > given.limit for one in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
